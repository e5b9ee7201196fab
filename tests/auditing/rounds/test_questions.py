"""Several drafted paths: the questions, the law by a second route, wrong samplers and right partners."""

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from audits.specimens.samplers import (
    SPECIMENS_OF_SEVERAL_PATHS,
    recursive_rejection,
    token_verification,
    top_three,
)
from deep import first_is_quick
from snapshots import digest
from spectheory import audit, instances, output_law
from spectheory.auditing.rounds.battery import (
    audit_pairs,
    pairs_of_several_paths,
    pairs_of_shapes,
    random_dyadic,
)
from spectheory.auditing.rounds.questions import followed_law, questions
from spectheory.auditing.rounds.two_calls import follow_two_calls
from spectheory.auditing.subjects.asked import drafts_and_rows
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, UNDECIDED
from spectheory.pairs.drafts import Iid, PrefixTree, WithoutReplacement
from spectheory.pairs.pair import ModelPair


def test_drafts_coincide_at_the_first_the_second_and_every_position() -> None:
    """And three of them share a token behind which they split in three."""
    groups, left_out = questions(Shipped(recursive_rejection, "sampler"), None)
    assert list(groups) == ["1 independent path", "2 independent paths", "3 independent paths"]
    assert left_out == ()
    for group in list(groups.values())[1:]:
        seen = set()
        for question in group:
            for paths, *_ in drafts_and_rows(question):
                if paths.shape[1] > 1:
                    seen.add(tuple(len(set(column.tolist())) for column in paths.T[:2]))
        assert {(1, 1), (1, 2), (2, 1)} <= seen
    assert (1, 3) in seen


def test_four_tokens_have_mass_under_both_models() -> None:
    pair = audit_pairs()["random dyadic, 4 tokens"]
    assert all((level > 0).all() for level in (*pair.target, *pair.draft))
    assert pair.vocab_size == 4


@pytest.mark.deep
def test_a_cut_off_after_three_tokens_shows_on_four() -> None:
    """And on none of the pairs of fewer tokens; a specimen of the battery."""
    pairs = {name: pair for name, pair in audit_pairs().items() if "4 tokens" not in name}
    assert audit(top_three, dict(list(pairs.items())[-3:]), drafts=[1]).is_lossless
    assert "4 tokens" in audit(top_three, drafts=[1], stop_at_first=True).reasons[0]


@first_is_quick("name", SPECIMENS_OF_SEVERAL_PATHS)
def test_wrong_from_two_or_three_drafts_on(name: str) -> None:
    """Lossless for one path; the partner ``recursive_rejection`` is among the lossless samplers."""
    sampler = SPECIMENS_OF_SEVERAL_PATHS[name]
    assert audit(sampler, {"residual": instances.two_residual_tokens(1)}, drafts=[1]).is_lossless
    number = 3 if name == "three_way_split" else 2
    shows = dict(list(pairs_of_several_paths(number).items())[-1 if number == 3 else 0 :])
    found = audit(sampler, shows, drafts=[number], stop_at_first=True)
    assert found.verdict == NOT_LOSSLESS
    assert "independent paths, total variation" in found.headline()


@first_is_quick("num_drafts", [1, 2])
def test_the_law_is_that_of_the_outcomes(num_drafts: int) -> None:
    """Summed over drafts here, and through the interface of verifiers; the verifier of the package agrees."""
    sampler = Shipped(recursive_rejection, "sampler", num_drafts=[num_drafts])
    (group,) = questions(sampler, {"residual": instances.two_residual_tokens(1)})[0].values()
    law, undecided = followed_law(sampler, group[0])
    known = output_law(sampler, group[0].pair, num_drafts)
    assert undecided == 0
    for ours, theirs in zip(law.masses, known.masses, strict=True):
        assert np.array_equal(ours, theirs)
    assert law.block_efficiency == known.block_efficiency


def takes_one(paths: Any, *others: Any) -> list[int]:
    (_,) = paths
    return token_verification(paths, *others)


def fails_where_paths_coincide(paths: Any, *others: Any) -> list[int]:
    if len(paths) > 1 and torch.equal(paths[0], paths[1]):
        raise ValueError("equal paths")
    return token_verification(paths, *others)


def test_a_sampler_that_refuses_several_paths_says_so() -> None:
    """In the headline; asked for by number, or failing on some drafts only, it is a defect."""
    pairs = {"thirds": instances.two_token(1)}
    found = audit(takes_one, pairs)
    assert found.is_lossless
    assert found.headline().endswith(
        "(V, L, K) = (2, 1, 1); refused or left out: 2 independent paths, 3 independent paths"
    )
    assert "too many values to unpack" in found.scope.refused[0]
    for sampler, numbers in ((takes_one, [2]), (fails_where_paths_coincide, [])):
        wrong = audit(sampler, pairs, drafts=numbers)
        assert not wrong
        assert "no valid output" in wrong.reasons[0]
        assert "failed: ValueError" in wrong.reasons[0]


def test_more_tuples_than_are_asked_about_are_said() -> None:
    found = audit(token_verification, {"large": random_dyadic(1, 3, 2)})
    assert found.scope.refused == (
        "2 independent paths on large: 81 tuples of drafts, more than 64",
        "3 independent paths on large: 729 tuples of drafts, more than 64",
    )
    assert found.scope.shapes == ((3, 2, 1),)
    nothing = audit(token_verification, {"large": random_dyadic(1, 3, 2)}, drafts=[5])
    assert nothing.verdict == UNDECIDED
    assert nothing.headline() == (
        "token_verification: undecided: no pair was asked about; 5 independent paths on large: 59049 "
        "tuples of drafts, more than 4096"
    )


def without_replacement(
    paths: Any, target: Any, draft: Any, generator: Any, renews: bool = True
) -> list[int]:
    """Two different drafted tokens; after a rejection the draft's row is without the first."""
    row, q = target[0, 0], draft[0, 0].clone()
    for path in paths:
        token = int(path[0])
        if torch.rand((), generator=generator) * q[token] < row[token]:
            return [token, int(torch.multinomial(target[int((paths[:, 0] == token).nonzero()[0]), 1], 1))]
        left = (row - q).clamp(min=0)
        row = left / left.sum() if left.sum() > 0 else row
        if renews:
            q[token] = 0
            q = q / q.sum()
    return [int(torch.multinomial(row, 1, generator=generator))]


@pytest.mark.deep
def test_trees_are_asked_where_the_sampler_takes_them() -> None:
    """Right and wrong for two different tokens; on a tree of which no pair has the depth, an error."""
    target, draft = ["1/8", "1/2", "1/4", "1/8"], ["5/8", "1/16", "1/8", "3/16"]
    pairs = {"four": ModelPair.context_free_pair(target, draft, 1)}
    tree = WithoutReplacement((2,))
    right = audit(without_replacement, pairs, drafts=[tree])
    assert (right.verdict, right.cases[0].process) == (LOSSLESS, "without_replacement:2")
    assert right.scope.shapes == ((4, 1, 2),)

    def wrong(*arguments: Any) -> list[int]:
        return without_replacement(*arguments, renews=False)

    assert audit(wrong, pairs, drafts=[tree]).verdict == NOT_LOSSLESS
    assert audit(recursive_rejection, pairs, drafts=[PrefixTree((2,))]).verdict == LOSSLESS


def tree_posterior(logits: Any, candidates: Any, processor: Any, forgets: bool = False) -> Any:
    """Deterministic paths: every token at a node is tried once, against what the tokens before have left."""
    accepted = candidates[0, :1].tolist()
    best = 0
    for place in range(1, candidates.shape[1]):
        alive = [n for n, path in enumerate(candidates.tolist()) if path[:place] == accepted]
        row = processor(None, logits[alive[0], place - 1]).softmax(-1)
        for number in dict.fromkeys(int(candidates[n, place]) for n in alive):
            if random.random() < row[number]:
                accepted.append(number)
                best = next(n for n in alive if candidates[n, place] == number)
                break
            if not forgets or number == int(candidates[alive[0], place]):
                left = row.clone()
                left[number] = 0
                row = left / left.sum() if left.sum() > 0 else row
        else:
            return best, place - 1, row
    return best, candidates.shape[1] - 1, processor(None, logits[best, -1]).softmax(-1)


ASKED: dict[str, dict[str, Any]] = {
    "sampler": {},
    "sampler, K = 3": {"num_drafts": [3]},
    "sampler, trees": {"trees": [PrefixTree((2, 1)), WithoutReplacement((2, 1))]},
    "batch": {},
    "evaluate_posterior": {},
}
OF_BEFORE: dict[str, tuple[Any, ...]] = {
    "sampler": (37, "1f7ac6ee", 0),
    "sampler, K = 3": (11, "7e018ed1", 0),
    "sampler, trees": (21, "804bad05", 0),
    "batch": (14, "d126b133", 0),
    "evaluate_posterior": (71, "2c361267", 0),
    "shapes": (28, "495cac8b"),
}


@pytest.mark.parametrize("name", ASKED)
def test_the_questions_are_those_of_before(name: str) -> None:
    """After a change that is meant, the new digests are in the message."""
    groups, left_out = questions(Shipped(print, name.partition(",")[0], **ASKED[name]), None)
    asked = [(f"{words}: {one.name}", one.pair, one.process) for words in groups for one in groups[words]]
    assert (*digest(asked), len(left_out)) == OF_BEFORE[name]


def test_pairs_of_shapes_are_those_of_before() -> None:
    found = [pairs_of_shapes([5], [1]), pairs_of_shapes([], [3]), pairs_of_shapes([2, 3], [])]
    asked = [(name, pair, Iid(1)) for pairs in found for name, pair in pairs.items()]
    assert digest(asked) == OF_BEFORE["shapes"]


@pytest.mark.deep
def test_deterministic_paths_of_a_tree() -> None:
    """A second token that is not left out of the row shows with two paths only."""
    pairs = {"three": random_dyadic(3, 3, 2)}
    right = audit(tree_posterior, pairs, signature="evaluate_posterior")
    assert (right.verdict, right.scope.shapes) == (LOSSLESS, ((3, 2, 1), (3, 2, 2), (3, 2, 3)))
    assert right.scope.processes[1] == "2 deterministic paths"

    def wrong(*arguments: Any) -> Any:
        return tree_posterior(*arguments, forgets=True)

    found = audit(wrong, pairs, signature="evaluate_posterior")
    assert found.verdict == NOT_LOSSLESS
    assert "with 2 deterministic paths" in found.headline()


def test_two_calls_of_several_paths() -> None:
    """The second call reads the numbers of the first where a second path is drafted."""

    def reseeds(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
        if len(paths) > 1:
            generator.manual_seed(0)
        return token_verification(paths, target, draft, generator)

    for sampler, finds in ((reseeds, True), (recursive_rejection, False)):
        shipped = Shipped(sampler, "sampler", num_drafts=[2])
        (group,) = questions(shipped, {"residual": instances.two_residual_tokens(1)})[0].values()
        follow_two_calls(shipped, group[0])
        assert shipped.journal.pairs_of_calls > 1
        assert bool(shipped.journal.findings) is finds


def test_names_of_the_pairs_of_several_paths_are_pairs_of_their_own() -> None:
    known = audit_pairs()
    for name, pair in pairs_of_several_paths().items():
        assert known.get(name, pair) == pair


def beyond_the_vocabulary(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
    """Every stop is made, and a quarter of the rejected outputs is an unknown token."""
    tokens = token_verification(paths, target, draft, generator)
    return [target.shape[-1]] if len(tokens) == 1 and torch.rand(()) < 0.25 else tokens


def test_a_token_beyond_the_vocabulary_is_a_defect_with_its_probability() -> None:
    found = audit(beyond_the_vocabulary, {"thirds": instances.two_token(1)}, drafts=[1])
    assert found.verdict == NOT_LOSSLESS
    assert found.cases[0].undefined == Fraction(1, 12)
    assert found.reasons[0] == (
        "it makes no valid output with probability 1/12 = 0.083333 on thirds: it returns the token 2, which "
        "is not in 0..1"
    )
