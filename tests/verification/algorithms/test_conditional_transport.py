"""conditional_transport: lossless, block with one draft, otm at one position, traversal with another plan."""

from itertools import cycle
from typing import ClassVar

import pytest

from law_checks import assert_same_law
from spectheory import ModelPair, certify, instances, optimum, output_law, verifiers
from spectheory.foundation.arrays import Array, ones_like
from spectheory.pairs.drafts import DraftProcess, Iid, PrefixTree
from spectheory.verification.algorithms import conditional_transport
from spectheory.verification.algorithms.conditional_transport import ConditionalTransport
from spectheory.verification.algorithms.position_by_position.multi_round import MultiRound
from spectheory.verification.algorithms.position_by_position.positions import Position, PositionByPosition

OURS = verifiers["conditional_transport"]
CASES: tuple[tuple[int, int, DraftProcess], ...] = (
    (2, 2, Iid(2)),
    (3, 2, Iid(2)),
    (2, 2, PrefixTree((2, 2))),
    (3, 1, Iid(3)),
    (2, 3, PrefixTree((1, 2, 1))),
    (4, 1, Iid(2)),
    (2, 3, Iid(2)),
    (3, 2, PrefixTree((1, 3))),
)
"""V, L and the drafts."""


def numbered_pair(number: int, vocab_size: int, draft_length: int) -> ModelPair:
    """Rationals with zeros and ties; every fifth pair is context-free."""
    pair = instances.random_rational([96, number], vocab_size, draft_length)
    if number % 5:
        return pair
    return ModelPair.context_free_pair(pair.target[0][0], pair.draft[0][0], draft_length)


def compare(first: int, count: int) -> list[int]:
    """Exactly lossless, and at one position otm; -> pairs above traversal, above otm, below traversal."""
    cases, counts = cycle(CASES), [0, 0, 0]
    for number in range(first, first + count):
        size, length, drafts = next(cases)
        pair = numbered_pair(number, size, length)
        law, *others = (output_law(name, pair, drafts) for name in (OURS, "traversal", "otm"))
        assert law.total_variation == 0, number
        earned, leaves, plans = (it.block_efficiency for it in (law, *others))
        assert length > 1 or earned == plans, number
        for place, holds in enumerate((earned > leaves, earned > plans, earned < leaves)):
            counts[place] += holds
    return counts


def test_lossless_and_mostly_above_traversal_and_otm() -> None:
    """theory.md Statement 5.30, in rationals; i.i.d. drafts and trees.  It is below traversal on number 9."""
    assert compare(0, 24) == [9, 6, 1]


def test_optimal_on_the_two_token_pair() -> None:
    """With two drafts of two tokens and on trees; with three drafts it is not."""
    for drafts in (Iid(2), PrefixTree((1, 2)), PrefixTree((1, 3)), PrefixTree((2, 1))):
        certificate = certify(OURS, instances.two_token(2), drafts)
        assert certificate
        assert certificate.block_efficiency == certificate.optimum, drafts
    pair = instances.two_token(2)
    assert output_law(OURS, pair, 3).block_efficiency < optimum(pair, 3).value


@pytest.mark.parametrize(("size", "widths"), [(2, (1, 3)), (3, (1, 2)), (2, (1, 1, 2)), (3, (3,))])
def test_optimal_on_trees_that_branch_at_the_last_position(size: int, widths: tuple[int, ...]) -> None:
    """Statement 5.30 (v)."""
    for number in range(6):
        pair, drafts = numbered_pair(number, size, len(widths)), PrefixTree(widths)
        assert output_law(OURS, pair, drafts).block_efficiency == optimum(pair, drafts).value, number


class OfRecursiveRejection(ConditionalTransport):
    plan: ClassVar[PositionByPosition] = MultiRound()


def test_with_recursive_rejection_it_is_traversal() -> None:
    """Statement 5.30 (iv), whole output laws."""
    for number, (size, length, drafts) in enumerate(CASES):
        pair = numbered_pair(number, size, length)
        laws = [output_law(it, pair, drafts) for it in (OfRecursiveRejection(), "traversal")]
        assert_same_law(*laws)


def test_partner_plans_that_are_not_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weight of the context left out of its plan: not lossless."""
    pair = numbered_pair(1, 3, 2)
    assert output_law(OURS, pair, 2).total_variation == 0
    scaled = conditional_transport._scaled

    def unscaled(weight: Array, *rest: object) -> Position:
        return scaled(ones_like(weight), *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(conditional_transport, "_scaled", unscaled)
    assert output_law(ConditionalTransport(), pair, 2).total_variation > 0


def test_partner_paths_that_are_counted_as_drafts() -> None:
    """On a tree the paths that repeat a draw are one draft: counted as several they are not lossless."""
    pair, drafts = instances.two_token(2), PrefixTree((1, 2))
    assert output_law(OURS, pair, drafts).total_variation == 0

    class PathsAsDrafts(ConditionalTransport):
        def draws(self, paths: Array) -> Array:
            return super().draws(paths) | True

    assert output_law(PathsAsDrafts(), pair, drafts).total_variation > 0
