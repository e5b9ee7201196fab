"""Draft processes: their laws against a brute-force drawing procedure, and what is valid on them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest

from drawn_trees import Draw, drawn_paths, drawn_trees
from law_checks import all_antichains
from spectheory import certify, instances
from spectheory.exact.law import output_law
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima import optimum
from spectheory.pairs.drafts import DraftProcess, Iid, PerPath, PrefixTree, WithoutReplacement
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms import verifiers
from spectheory.verification.algorithms.path_selection.greedy_multipath import GreedyMultipath
from spectheory.verification.outcome import Outcome

Path = tuple[int, ...]
Law = dict[tuple[Path, ...], Any]


def path_of(pair: ModelPair, leaf: int) -> Path:
    return pair.context(pair.draft_length, leaf)


def law_of_draws(trees: Iterable[tuple[list[Draw], Any]]) -> Law:
    """The leaves of every tree of draws, in order, with its probability."""
    law: Law = defaultdict(Fraction)
    for draws, prob in trees:
        law[tuple(leaves_below(draws))] += prob
    return dict(law)


def leaves_below(draws: list[Draw], context: Path = ()) -> Iterator[Path]:
    for draw in draws:
        path = (*context, draw.token)
        yield from leaves_below(draw.below, path) if draw.below else (path,)


def law_of(process: DraftProcess, pair: ModelPair, size: int = 7) -> Law:
    """The tuples of a process, in chunks, as a mapping; a tuple that comes twice would fail."""
    law: Law = {}
    for leaves, probs in process.tuples(pair, size):
        assert leaves.shape == (len(probs), process.num_drafts)
        for row, prob in zip(leaves, probs, strict=True):
            paths = tuple(path_of(pair, int(leaf)) for leaf in row)
            assert paths not in law
            law[paths] = prob
    return law


PAIRS = {
    "two_token-L1": instances.two_token(1),
    "two_token-L2": instances.two_token(2),
    "sticky_chain-L2": instances.sticky_chain(2),
    "three_token-L1": instances.three_token_reversed(1),
    "partial_overlap-L1": instances.partial_overlap(1),
    "random-V2-L2": instances.random_rational(41, 2, 2),
    "random-V3-L2": instances.random_rational(42, 3, 2, zero_probability=0.3),
    "random-V3-L2-full": instances.random_rational(43, 3, 2, zero_probability=0),
    "random-V4-L1": instances.random_rational(44, 4, 1, zero_probability=0),
}
TREES = {1: ((1,), (2,), (3,)), 2: ((1, 1), (2, 1), (1, 2), (2, 2))}


def other_model(pair: ModelPair, seed: int) -> ModelPair:
    return instances.random_rational(seed, pair.vocab_size, pair.draft_length)


def cases() -> Iterator[tuple[str, ModelPair, DraftProcess, Law]]:
    """(name, pair, process, its law acted out) for everything small enough."""
    for name, pair in PAIRS.items():
        for num_drafts in (1, 2, 3):
            if pair.vocab_size ** (num_drafts * pair.draft_length) <= 1000:
                expected = law_of_draws(drawn_paths(pair, [pair] * num_drafts))
                yield f"{name}-iid{num_drafts}", pair, Iid(num_drafts), expected
        models = [other_model(pair, 71), other_model(pair, 72)]
        yield f"{name}-per_path", pair, PerPath(tuple(models)), law_of_draws(drawn_paths(pair, models))
        for widths in TREES[pair.draft_length]:
            yield (
                f"{name}-tree{widths}",
                pair,
                PrefixTree(widths),
                law_of_draws(drawn_trees(pair, widths, False)),
            )
            process = WithoutReplacement(widths)
            enough = all(
                int((level > 0).sum(axis=1).min()) >= width
                for level, width in zip(pair.draft, widths, strict=True)
            )
            if enough:
                yield f"{name}-distinct{widths}", pair, process, law_of_draws(drawn_trees(pair, widths, True))


CASES = list(cases())


def test_the_cases_cover_every_process() -> None:
    """No process is missing, and each meets draft rows with zeros where it can."""
    names = {process.name for _, _, process, _ in CASES}
    assert names == {"iid", "prefix_tree", "without_replacement", "per_path"}
    for name in names:
        assert sum(process.name == name for _, _, process, _ in CASES) >= 9, name


def test_tuple_law_is_the_drawing_procedure() -> None:
    """Every tuple with its exact probability, a total of 1, and count_tuples of them."""
    for name, pair, process, expected in CASES:
        process.check(pair)
        found = law_of(process, pair)
        assert sum(found.values()) == 1, name
        assert found == expected, name
        assert all(prob > 0 for prob in found.values()), name
        assert process.count_tuples(pair) == len(expected), name


def passes(paths: Collection[Path], antichain: list[Path]) -> bool:
    return any(path[: len(context)] == context for path in paths for context in antichain)


SMALL = [case for case in CASES if case[1].vocab_size ** case[1].draft_length <= 4]


def test_hit_probability_is_the_sum_over_tuples() -> None:
    """P(some draft passes through T) for all antichains T, exactly."""
    counts = {(2, 1): 5, (2, 2): 26, (3, 1): 9, (4, 1): 17}
    for name, pair, process, expected in SMALL:
        antichains = all_antichains(pair.vocab_size, pair.draft_length)
        assert len(antichains) == counts[pair.vocab_size, pair.draft_length]
        for antichain in antichains:
            by_hand = sum((prob for paths, prob in expected.items() if passes(paths, antichain)), Fraction(0))
            assert process.hit_probability(pair, antichain) == by_hand, (name, antichain)


def test_hit_probability_partner_processes_differ() -> None:
    pair = instances.three_token_reversed(1)
    hits = [
        process.hit_probability(pair, [(2,)])
        for process in (Iid(1), Iid(2), WithoutReplacement((2,)), PerPath((pair, instances.uniform(3, 3))))
    ]
    # q(2) = 1/2; 1 - (1/2)^2; 1/2 + (1/6)(1/2)/(5/6) + (1/3)(1/2)/(2/3); 1 - (1/2)(2/3)
    assert hits == [Fraction(1, 2), Fraction(3, 4), Fraction(17, 20), Fraction(2, 3)]


def test_multisets_of_iid_drafts() -> None:
    """As multisets: every unordered draw once, with the probability of all its orders."""
    pair = instances.random_rational(43, 3, 1, zero_probability=0)
    ordered = law_of(Iid(3), pair)
    unordered: Law = defaultdict(Fraction)
    for paths, prob in ordered.items():
        unordered[tuple(sorted(paths))] += prob
    found = {
        tuple(sorted(path_of(pair, int(leaf)) for leaf in row)): prob
        for leaves, probs in Iid(3).tuples(pair, 4, as_multisets=True)
        for row, prob in zip(leaves, probs, strict=True)
    }
    assert found == dict(unordered)
    assert Iid(3).count_tuples(pair, as_multisets=True) == len(found) == 10


@pytest.mark.parametrize(
    ("process", "expected"),
    [
        (Iid(2), [[1, 1], [1, 1]]),
        (PrefixTree((2, 1)), [[1, 1], [1, 1]]),
        (PrefixTree((1, 2)), [[1, 1], [0, 1]]),
        (PrefixTree((2, 2)), [[1, 1], [0, 1], [1, 1], [0, 1]]),
        (WithoutReplacement((1, 3)), [[1, 1], [0, 1], [0, 1]]),
    ],
)
def test_draws_mark_the_first_path_below_every_node(process: DraftProcess, expected: Any) -> None:
    """A node's own draw belongs to the first of the paths through it."""
    np.testing.assert_array_equal(process.draws(2), np.array(expected, dtype=bool))


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: Iid(0), "num_drafts must be a whole number of at least 1, got 0"),
        (lambda: PerPath(()), "num_drafts must be a whole number of at least 1, got 0"),
        (lambda: PrefixTree(()), "needs one width per drafted token, got none"),
        (lambda: PrefixTree(2), "widths must be a tuple of whole numbers, one per depth, got 2"),
        (lambda: PrefixTree((2, 0)), "a width of the tree must be a whole number of at least 1, got 0"),
        (lambda: WithoutReplacement((1.5,)), "a width of the tree must be a whole number"),
    ],
)
def test_bad_processes_are_refused(build: Any, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        build()


@pytest.mark.parametrize(
    ("process", "says"),
    [
        (PrefixTree((2,)), r"1 width, \[2\]; expected one per drafted token, 2"),
        (PrefixTree((2, 1, 1)), r"3 widths, \[2, 1, 1\]; expected one per drafted token, 2"),
        (WithoutReplacement((3, 1)), "cannot draw 3 distinct tokens at depth 0"),
        (WithoutReplacement((1, 3)), "cannot draw 3 distinct tokens at depth 1"),
        (PerPath((instances.two_token(1),)), "draft model 0 has 2 tokens, draft length 1"),
        (PerPath(("a language model",)), "draft model 0 is not an enumerated pair"),
        (PerPath((instances.two_token(2), instances.uniform(3, 3, 2))), "draft model 1 has 3 tokens"),
        (PerPath((instances.two_token(2).to_float(),)), "float64 entries; expected 2, 2 and exact"),
    ],
)
def test_processes_that_do_not_fit_the_pair_are_refused(process: DraftProcess, says: str) -> None:
    """On the two-token pair of length 2, by ``check`` and through certify and output_law alike."""
    pair = instances.two_token(2)
    with pytest.raises(InvalidInputError, match=says):
        process.check(pair)
    with pytest.raises(InvalidInputError, match=says):
        output_law("token", pair, drafts=process)
    with pytest.raises(InvalidInputError, match=says):
        certify("block", pair, drafts=process)


@pytest.mark.parametrize("name", ["token", "block"])
def test_single_path_verifiers_are_valid_under_every_process(name: str) -> None:
    """Lossless and prefix-matching, exactly; and the efficiency of one path from the first model."""
    for where, pair, process, _ in CASES:
        certificate = certify(name, pair, drafts=process, with_optimum=False)
        assert certificate.draft_process == process.name
        assert certificate, where
        assert certificate.total_variation == 0, where
        levels = process.drafter(pair, 0).draft
        alone = ModelPair(pair.target, levels, pair.vocab)
        assert certificate.block_efficiency == output_law(name, alone).block_efficiency, where


@pytest.mark.parametrize(
    "process", [PrefixTree((2, 1)), WithoutReplacement((2, 1)), PerPath((PAIRS["two_token-L2"],) * 2)]
)
def test_greedy_multipath_is_refused_where_it_is_not_valid(process: DraftProcess) -> None:
    """Its skewed draft law U^K - B^K is that of K i.i.d. paths."""
    says = f"'greedy_multipath' is not valid for '{process.name}' drafts; it takes iid"
    with pytest.raises(InvalidInputError, match=says):
        output_law("greedy_multipath", instances.two_token(2), drafts=process)
    with pytest.raises(InvalidInputError, match=says):
        certify("greedy_multipath", instances.two_token(2), drafts=process)


class Unchecked:
    """A verifier with its statement about draft processes left out."""

    def __init__(self, name: str) -> None:
        self.verifier = verifiers[name]
        self.name = f"unchecked_{name}"

    def outcome(self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray) -> Outcome:
        return self.verifier.outcome(paths, target_rows, draft_rows)


def test_refusal_partner_greedy_multipath_on_other_drafts_is_not_lossless() -> None:
    """With the check bypassed the defect is exact and positive; on a tree that is i.i.d. it is 0."""
    pair = instances.two_token(2)
    certificate = certify(Unchecked("greedy_multipath"), pair, drafts=PrefixTree((1, 2)), with_optimum=False)
    assert not certificate
    assert isinstance(certificate.total_variation, Fraction)
    assert certificate.total_variation > Fraction(1, 100)
    assert certificate.counterexample is not None
    iid = output_law(Unchecked("greedy_multipath"), pair, drafts=PrefixTree((2, 1)))
    assert iid.total_variation == 0
    assert iid.block_efficiency == output_law(GreedyMultipath(), pair, 2).block_efficiency
    law = output_law(
        Unchecked("greedy_multipath"), instances.three_token_reversed(1), drafts=WithoutReplacement((2,))
    )
    assert law.total_variation > 0


def cut_by_brute_force(pair: ModelPair, law: Law) -> Fraction:
    """min over all 2^V sets H of p(H) + 1 - P(all drafts in H) (theory.md Statement 3.2, any process)."""
    values = []
    for size in range(pair.vocab_size + 1):
        for members in combinations(range(pair.vocab_size), size):
            inside = sum(
                (prob for paths, prob in law.items() if all(path[0] in members for path in paths)),
                Fraction(0),
            )
            values.append(sum((pair.target[0][0][token] for token in members), Fraction(0)) + 1 - inside)
    return min(values)


ONE_POSITION = [case for case in CASES if case[1].draft_length == 1]


@pytest.mark.parametrize(
    ("pair", "process", "expected"), [c[1:] for c in ONE_POSITION], ids=[c[0] for c in ONE_POSITION]
)
def test_optimum_at_one_position_is_the_cut(pair: ModelPair, process: DraftProcess, expected: Law) -> None:
    """The antichain program of a draft process is 1 + α of the general transport problem, exactly."""
    best = optimum(pair, drafts=process).value
    assert best == 1 + cut_by_brute_force(pair, expected)


def test_every_path_has_its_own_model() -> None:
    """The rows of path k are those of model k, and normalising a process normalises all of its models."""
    rows = np.array([[0.5, 0.5 + 5e-10]])
    pair = ModelPair((np.array([[0.5, 0.5]]), np.full((2, 2), 0.5)), (np.array([[0.25, 0.75]]),), ("A", "B"))
    other = ModelPair(pair.target, (rows,), pair.vocab)
    process = PerPath((pair, other))
    assert process.drafter(pair, 0).draft is pair.draft
    assert process.drafter(pair, 1).draft is other.draft
    assert rows.sum() != 1
    assert process.normalised().drafter(pair, 1).draft[0].sum() == 1


def test_first_path_has_the_marginal_it_says() -> None:
    for name, pair, process, expected in CASES:
        marginal: Law = defaultdict(Fraction)
        for paths, prob in expected.items():
            marginal[paths[:1]] += prob
        assert law_of(process.first_path(), pair) == dict(marginal), name


@pytest.mark.parametrize("num_drafts", [1, 2, 3])
def test_a_tree_that_branches_at_the_root_only_is_iid(num_drafts: int) -> None:
    for name, pair in PAIRS.items():
        if pair.vocab_size ** (num_drafts * pair.draft_length) > 1000:
            continue
        tree = PrefixTree((num_drafts,) + (1,) * (pair.draft_length - 1))
        assert law_of(tree, pair) == law_of(Iid(num_drafts), pair), name
        assert tree.draws(pair.draft_length).all()
    pair = instances.two_token(2)  # partner: a tree that branches later shares its first token
    assert law_of(PrefixTree((1, 2)), pair) != law_of(Iid(2), pair)


def test_zeros_of_the_draft_limit_distinct_draws() -> None:
    """Four tokens, of which the draft has three: three can be drawn without replacement, four cannot."""
    pair = instances.equal_models(1)
    assert len(law_of(WithoutReplacement((3,)), pair)) == 6
    with pytest.raises(InvalidInputError, match="only 3 tokens with mass"):
        WithoutReplacement((4,)).check(pair)


def test_optimum_partner_distinct_drafts_are_worth_more() -> None:
    pair = instances.three_token_reversed(1)
    iid, distinct = (optimum(pair, drafts=process).value for process in (Iid(2), WithoutReplacement((2,))))
    assert iid == 1 + Fraction(29, 36)  # theory.md §3
    assert distinct > iid


def test_a_number_of_tuples_beyond_floats_is_infinite() -> None:
    """And is not computed: 200 drafts of 400 paths, in every order or none; the partner has 10."""
    pair = ModelPair.context_free_pair([Fraction(1, 400)] * 400, [Fraction(1, 400)] * 400, 1)
    for as_multisets, tuples in ((False, 400**10), (True, comb(409, 10))):
        assert Iid(200).count_tuples(pair, as_multisets) == float("inf")
        assert Iid(10).count_tuples(pair, as_multisets) == tuples
