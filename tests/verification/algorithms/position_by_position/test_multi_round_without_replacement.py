"""multi_round_without_replacement: lossless on distinct draws, as acted out, and on them alone."""

from fractions import Fraction

import numpy as np
import pytest

from deep import first_is_quick
from drawn_trees import acted_out, drawn_trees, without_replacement_rule
from edge_pairs import SPREAD
from reference import law_of
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import Iid, PerPath, PrefixTree, WithoutReplacement
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.position_by_position.multi_round import MultiRound
from spectheory.verification.algorithms.position_by_position.multi_round_without_replacement import (
    MultiRoundWithoutReplacement,
)


@first_is_quick(
    ("vocab_size", "widths", "how_many"),
    [
        (2, (2,), 10),
        (3, (2,), 25),
        (3, (3,), 15),
        (4, (3,), 10),
        (3, (2, 1), 15),
        (3, (1, 2), 15),
        (3, (2, 2), 12),
    ],
    quick=2,
)
def test_multi_round_without_replacement_is_lossless_and_as_acted_out(
    vocab_size: int, widths: tuple[int, ...], how_many: int
) -> None:
    """102 random pairs, exactly; zeros wherever every draft row still has enough tokens."""
    process, used = WithoutReplacement(widths), 0
    for number in range(20 * how_many):
        zeros = 0.15 if vocab_size > max(widths) else 0.0
        pair = instances.random_rational(800 + number, vocab_size, len(widths), zero_probability=zeros)
        support = min(int((level > 0).sum(axis=1).min()) for level in pair.draft)
        if support < max(widths):
            continue
        law = output_law(MultiRoundWithoutReplacement(), pair, drafts=process)
        assert law.total_variation == 0
        expected = acted_out(pair, drawn_trees(pair, widths, True), without_replacement_rule)
        assert law_of(law) == expected
        used += 1
        if used == how_many:
            break
    assert used == how_many


def test_multi_round_without_replacement_edge_cases() -> None:
    """Equal models accept the first draft, disjoint supports nothing; with all tokens drawn one is."""
    equal, disjoint = instances.equal_models(1), instances.disjoint_supports(1)
    for widths in ((1,), (2,)):
        process = WithoutReplacement(widths)
        for pair, efficiency in ((equal, 2), (disjoint, 1)):
            law = output_law(MultiRoundWithoutReplacement(), pair, drafts=process)
            assert (law.block_efficiency, law.total_variation) == (efficiency, 0)
    whole = output_law(
        MultiRoundWithoutReplacement(), instances.two_token(2), drafts=WithoutReplacement((2, 2))
    )
    assert whole.block_efficiency == 3


def test_without_replacement_partner_the_wrong_rows_are_not_lossless() -> None:
    """Multi-round rejection with q where the draft came from q without the earlier token: a defect."""

    class WithReplacementRows(MultiRound):
        draft_processes = frozenset({"without_replacement"})

    pair = ModelPair.context_free_pair(*SPREAD, 1)
    law = output_law(WithReplacementRows(), pair, drafts=WithoutReplacement((2,)))
    assert law.total_variation > Fraction(1, 100)


def test_multi_round_without_replacement_needs_its_process() -> None:
    """Other processes are refused by name; paths without a process too, because their draws are unknown."""
    verifier = MultiRoundWithoutReplacement()
    for process in (Iid(2), PrefixTree((2,)), PerPath((instances.two_token(1),) * 2)):
        with pytest.raises(
            InvalidInputError, match=f"not valid for '{process.name}' drafts; it takes without"
        ):
            output_law(verifier, instances.two_token(1), drafts=process)
    half = np.full((2, 2, 2), 0.5)
    with pytest.raises(InvalidInputError, match="set it up with bind"):
        verifier.outcome(np.array([[0], [1]]), half, half[:, :1])
