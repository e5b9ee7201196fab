"""Deterministic drafts: their trees by brute force, what reaches a verifier, and a process of one's own."""

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from spectheory import certify, instances, optimum, output_law
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.models.language_model import draft_process_of_models
from spectheory.optima.multi_path import antichains
from spectheory.pairs.contexts import all_contexts, context_number
from spectheory.pairs.drafts import (
    ConfidenceTree,
    Deterministic,
    DraftProcess,
    DraftTuples,
    Iid,
    PerPath,
    PrefixTree,
    ShapedTree,
    TopTree,
    WithoutReplacement,
)
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.naive_sampling import NaiveSampling
from spectheory.verification.evaluator import Evaluator
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import resolve

PAIRS = [
    instances.random_rational(seed, size, length, zero_probability=zeros)
    for seed, (size, length) in enumerate(((2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1), (4, 2)))
    for zeros in (0, 0.3)
]


def confidence(pair: ModelPair, context: tuple[int, ...]) -> Any:
    prob = Fraction(1)
    for depth, token in enumerate(context):
        prob *= pair.draft[depth][context_number(context[:depth], pair.vocab_size), token]
    return prob


def test_a_confidence_tree_holds_the_likeliest_nodes() -> None:
    """All nodes sorted by their draft probability; a stable sort, nodes breadth first."""
    for pair in PAIRS:
        nodes = all_contexts(pair.vocab_size, pair.draft_length)[1:]
        expected = sorted(nodes, key=lambda node: -confidence(pair, node))
        for number in range(1, len(nodes) + 1):
            paths = ConfidenceTree(number).paths(pair)
            assert paths == expected[:number]
            assert all(path[:-1] in ((), *paths[:place]) for place, path in enumerate(paths))


@pytest.mark.parametrize(
    "process", [ConfidenceTree(2), TopTree((2, 1)), ShapedTree((2, 1))], ids=lambda process: process.text
)
def test_nothing_is_drawn_so_there_is_one_tuple(process: DraftProcess) -> None:
    """As many as are listed, with all the probability; the partner draws, and has several."""
    pair = instances.random_rational(1, 3, 2, zero_probability=0)
    for one, several in ((process, False), (PrefixTree((2, 1)), True)):
        chunks = list(one.tuples(pair, 1000))
        assert one.count_tuples(pair) == sum(len(chunk.leaves) for chunk in chunks)
        assert (one.count_tuples(pair) > 1) == several
        assert sum(prob for chunk in chunks for prob in chunk.probs) == 1


def test_a_top_tree_takes_the_likeliest_tokens_of_each_node() -> None:
    pair = ModelPair.from_contexts(
        {context: ["1/3", "1/3", "1/3"] for context in all_contexts(3, 2)},
        {
            (): ["1/6", "1/2", "1/3"],
            (0,): ["1", "0", "0"],
            (1,): ["2/5", "1/5", "2/5"],
            (2,): ["0", "1", "0"],
        },
        2,
    )
    assert TopTree((2, 2)).paths(pair) == [(1, 0), (1, 2), (2, 1), (2, 0)]  # of equals the first
    assert TopTree((1, 3)).paths(pair) == [(1, 0), (1, 2), (1, 1)]
    assert ShapedTree((3, 1, 2)).paths(pair) == [(0,), (1, 0), (2, 1), (2, 0)]


def test_a_shaped_tree_has_the_shape_that_was_asked_for() -> None:
    tree = ShapedTree((2, 0, 2, 1))
    assert tree.nodes == [(0,), (1,), (1, 0), (1, 1), (1, 0, 0)]
    assert (tree.num_nodes, tree.depth, tree.num_drafts, tree.text) == (5, 3, 3, "shaped_tree:2,0,2,1")
    assert tree.ranks(3).tolist() == [[0, -1, -1], [1, 1, -1], [1, 0, 0]]
    pair = instances.random_rational(4, 3, 2)
    uniform, same = TopTree((2, 2)), ShapedTree((2, 2, 2))
    assert sorted(uniform.paths(pair)) == sorted(same.paths(pair)) != sorted(ShapedTree((2, 2)).paths(pair))
    for wrong in ((), (0,), (1, 1, 1, 1, 0, 1), (2, -1), (1.5,)):
        with pytest.raises(InvalidInputError):
            ShapedTree(wrong)  # type: ignore[arg-type]
    one_token = ModelPair.context_free_pair(["1"], ["1"], 3)
    for refused, message in ((pair, "3 tokens deep"), (one_token, "out of 1")):
        with pytest.raises(InvalidInputError, match=message):
            tree.check(refused)


class Unaware(NaiveSampling):
    """Takes the token -1 for a token, as numpy does: the last one."""

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        return super().outcome(paths % target_rows.shape[-1], target_rows, draft_rows)


def test_a_stop_behind_the_end_of_a_path_is_refused() -> None:
    pair = instances.random_rational(5, 2, 2, zero_probability=0)
    assert certify(NaiveSampling(), pair, ConfidenceTree(3)).target_matching
    with pytest.raises(
        InvalidOutcomeError, match=r"stops 2 tokens along path 0 of the drafts .* ends before"
    ):
        output_law(Unaware(), pair, ConfidenceTree(3))


@pytest.mark.parametrize("name", ["token", "block", "multi_round", "greedy_multipath"])
def test_verifiers_of_sampled_drafts_refuse_deterministic_ones(name: str) -> None:
    for process in (TopTree((2,)), ConfidenceTree(2)):
        with pytest.raises(InvalidInputError, match=f"not valid for '{process.name}' drafts"):
            certify(name, instances.two_token(1), process)


def test_a_verifier_that_names_no_process_is_not_given_paths_that_end() -> None:
    class Mine:
        def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
            return NaiveSampling().outcome(paths, target_rows, draft_rows)

    with pytest.raises(InvalidInputError, match="not valid for 'confidence_tree'"):
        certify(Mine(), instances.two_token(2), ConfidenceTree(2))
    Mine.draft_processes = {"confidence_tree"}  # type: ignore[attr-defined]
    assert certify(Mine(), instances.two_token(2), ConfidenceTree(2)).target_matching


@pytest.mark.parametrize(
    ("process", "said"),
    [
        (lambda: TopTree((3,)), "3 different next tokens out of 2"),
        (lambda: TopTree((1, 1)), "expected one per drafted token, 1"),
        (lambda: ConfidenceTree(3), "there are 2 nodes, and 3 were asked for"),
        (lambda: ConfidenceTree(2, 1), "beam 1 there are 1 nodes"),
        (lambda: ConfidenceTree(0), "at least 1"),
        (lambda: ConfidenceTree(2, 0), "beam must be"),
    ],
)
def test_trees_that_cannot_be_drafted(process: Any, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        certify("naive_sampling", instances.two_token(1), process())


class Listed(DraftProcess):
    """A process of one's own, from a list of tuples."""

    name, num_drafts = "listed", 2

    def __init__(self, tuples: dict[tuple[int, int], Fraction]) -> None:
        self._tuples = tuples

    def tuples(self, pair: ModelPair, size: int, as_multisets: bool = False) -> Any:
        yield DraftTuples(np.array(list(self._tuples)), np.array(list(self._tuples.values())))


def test_a_process_of_ones_own() -> None:
    """Its law in place of i.i.d. drafts gives their numbers; a law that is not one is refused."""
    pair = instances.two_token(1)
    row = pair.draft[0][0]
    same = Listed({(x, y): row[x] * row[y] for x in range(2) for y in range(2)})
    assert not isinstance(same, Deterministic)
    assert optimum(pair, same).value == optimum(pair, 2).value
    ours, iid = (output_law("naive_sampling", pair, drafts) for drafts in (same, 2))
    assert ours.block_efficiency == iid.block_efficiency
    certificate = certify("naive_sampling", pair, same)
    assert certificate.optimum == optimum(pair, 2).value
    assert "listed drafts" in certificate.headline()
    half = Fraction(1, 2)
    for wrong, said in (
        ({(0, 1): half}, "sum 1/2; expected sum 1"),
        ({(0, 2): half, (0, 0): half}, "expected paths from -3 to 1"),
        ({(0, -4): half, (0, 0): half}, "expected paths from -3 to 1"),
        ({(0, 1): 3 * half, (0, 0): -half}, "none below 0"),
        ({(0, 1): 0.5, (0, 0): 0.5}, "expected exact ones"),
        ({(0, 1): half, (0, 0): 0.5}, "expected an exact rational, got float 0.5"),
        ({(0, 1): "1/2", (0, 0): half}, "expected an exact rational, got str '1/2'"),
        ({}, "lists paths float64"),
    ):
        for ask in (optimum, partial(output_law, "naive_sampling")):
            with pytest.raises(InvalidInputError, match=said):
                ask(pair, Listed(wrong))
    with pytest.raises(InvalidInputError, match="tuples of draft process 'listed' failed: AttributeError"):
        optimum(pair, Listed([]))  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="not valid for 'listed' drafts"):
        certify("block", pair, same)


def test_rows_behind_the_end_of_a_path_say_nothing() -> None:
    """They are those of no prefix, so that a verifier that reads them is not lossless."""
    pair = instances.sticky_chain(2)
    shown = Evaluator.of(resolve("naive_sampling", pair, ConfidenceTree(4)), ConfidenceTree(4)).tuples(
        next(ConfidenceTree(4).tuples(pair, 1)).leaves
    )
    half = (pair.numbers.target[0][0, 0] * 0 + 1) / 2
    for path, lengths in enumerate(map(len, ConfidenceTree(4).paths(pair))):
        assert (shown.target_rows[0, path, lengths + 1 :] == half).all()
        assert (shown.draft_rows[0, path, lengths:] == half).all()
        for depth in range(lengths + 1):
            number = shown.prefixes[0, path, depth]
            assert (shown.target_rows[0, path, depth] == pair.numbers.target[depth][number]).all()


def test_a_beam_expands_few_nodes() -> None:
    """With a beam of 1 the tree is the greedy path, and a beam of V^(L-1) leaves nothing out."""
    for pair in PAIRS:
        size, length = pair.vocab_size, pair.draft_length
        (greedy,) = TopTree((1,) * length).paths(pair)
        assert ConfidenceTree(length, 1).paths(pair) == [greedy[:depth] for depth in range(1, length + 1)]
        number = min(6, size**length)
        assert ConfidenceTree(number, size**length).paths(pair) == ConfidenceTree(number).paths(pair)
    two = instances.random_rational(3, 3, 3, zero_probability=0)
    assert ConfidenceTree(12, 2).paths(two) != ConfidenceTree(12).paths(two)


def test_deterministic_drafts_are_point_masses_of_models_of_their_own() -> None:
    """multi_round, which reads the rows that tokens were drawn from, earns the same on these models."""
    for pair in PAIRS[:10]:
        tree = TopTree((min(2, pair.vocab_size),) * pair.draft_length)
        models = PerPath(tuple(tree.drafter(pair, path) for path in range(tree.num_drafts)))
        ours, theirs = output_law("naive_sampling", pair, tree), output_law("multi_round", pair, models)
        assert [level.tolist() for level in ours.masses] == [level.tolist() for level in theirs.masses]
        members = np.eye(len(all_contexts(pair.vocab_size, pair.draft_length)), dtype=bool)
        assert tree.hit_probabilities(pair, members).tolist() == (
            models.hit_probabilities(pair, members).tolist()
        )


def test_hits_by_a_list_of_tuples_are_those_of_the_recursions() -> None:
    for pair in PAIRS:
        size, length = pair.vocab_size, pair.draft_length
        if size**length > 4:
            continue
        members, one = antichains(size, length), [1] * (length - 1)
        for process in (Iid(2), PrefixTree((2, *one)), WithoutReplacement((*one, 2)), PerPath((pair, pair))):
            try:
                process.check(pair)
            except InvalidInputError:
                continue
            listed = DraftProcess._hits(process, pair, members)
            assert listed.tolist() == process._hits(pair, members).tolist()


def test_a_users_process_cannot_pass_for_one_of_the_package() -> None:
    """By its name, as a subclass: a right verifier would be blamed for other drafts."""

    class Correlated(Iid):
        def tuples(self, pair: ModelPair, size: int, as_multisets: bool = False) -> Any:
            yield DraftTuples(np.array([[0, 0], [1, 1]]), np.array([Fraction(1, 2)] * 2))

    with pytest.raises(InvalidInputError, match="has the name of the process 'iid'"):
        certify("multi_round", instances.two_token(1), Correlated(2))
    assert certify("multi_round", instances.two_token(1), Iid(2))


def test_a_process_that_is_no_process_is_refused() -> None:
    """In one line, whatever it raises: an exit would pass for a verdict."""

    class Leaving(Listed):
        def tuples(self, pair: ModelPair, size: int, as_multisets: bool = False) -> Any:
            raise SystemExit(0)

    class Table(Listed):
        def tuples(self, pair: ModelPair, size: int, as_multisets: bool = False) -> Any:
            print("not in a document")
            yield DraftTuples(np.array([[0, 1]]), np.array([[Fraction(1)]]))

    class Disguised(Listed):
        name = "iid"

    for process, said in (
        (Leaving, "failed: SystemExit: 0"),
        (Table, r"lists probabilities \[1, 1\]; expected one per tuple"),
        (Disguised, "has the name of the process 'iid'"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            certify("naive_sampling", instances.two_token(1), process({(0, 1): Fraction(1)}))


def test_language_models_refuse_processes_of_enumerated_pairs() -> None:
    for process in (Listed({}), PerPath((instances.two_token(1),) * 2)):
        with pytest.raises(InvalidInputError, match="language models cannot draft by it"):
            draft_process_of_models(process)
