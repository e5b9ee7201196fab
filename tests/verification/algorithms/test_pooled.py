"""pooled: lossless, never below scored selection, whatever is imagined of other rows."""

from copy import copy
from fractions import Fraction
from itertools import cycle
from typing import Any

import numpy as np
import pytest

from law_checks import trusted_law
from spectheory import ModelPair, instances, output_law, verifiers
from spectheory.foundation.errors import InvalidInputError
from spectheory.verification.algorithms import pooled
from spectheory.verification.algorithms.path_selection.score_couplings import intervals
from spectheory.verification.algorithms.path_selection.scored_multipath import ScoredMultipath
from spectheory.verification.algorithms.pooled import Family, Pooled, two_token_rows
from spectheory.verification.algorithms.recoupled import Recoupled
from torch_support import DEVICES, assert_agrees_on

SCORED = verifiers["scored_multipath"]
POOLED = Pooled(SCORED)
COARSE = Pooled(SCORED, two_token_rows(2))
"""With smaller programs."""
SHAPES = ((2, 2, 2), (2, 2, 3), (2, 2, 1), (2, 3, 2), (2, 2, 2), (3, 2, 2), (3, 1, 2))
"""(V, L, K)."""
LARGER = (*SHAPES, (4, 2, 2), (3, 2, 3), (3, 2, 2), (2, 2, 4), (2, 3, 3))


def numbered_pair(number: int, vocab_size: int, draft_length: int) -> ModelPair:
    """Rationals with zeros and ties; every fifth pair is context-free."""
    pair = instances.random_rational([93, number], vocab_size, draft_length)
    if number % 5:
        return pair
    return ModelPair.context_free_pair(pair.target[0][0], pair.draft[0][0], draft_length)


def check_laws(verifier: Recoupled, numbers: range, shapes: tuple[tuple[int, int, int], ...]) -> int:
    """Exactly lossless, lengths below L-1 as before, values as by cuts; -> pairs above scored selection."""
    some, ahead = cycle(shapes), 0
    for number in numbers:
        size, length, drafts = next(some)
        pair = numbered_pair(number, size, length)
        law, other = (output_law(it, pair, drafts) for it in (verifier, SCORED))
        assert law.total_variation == 0, number
        assert law.block_efficiency == verifier.block_efficiency(pair, drafts) >= other.block_efficiency, (
            number
        )
        assert list(law.length_probs[:-2]) == list(other.length_probs[:-2])
        ahead += law.block_efficiency > other.block_efficiency
    return ahead


def test_lossless_and_never_below_scored_selection() -> None:
    """theory.md Statement 5.25, in rationals."""
    assert check_laws(COARSE, range(8, 9), SHAPES) > 0


@pytest.mark.deep
@pytest.mark.parametrize("first", range(18, 118, 50))
def test_lossless_on_many_pairs(first: int) -> None:
    """100 pairs, V = 2 to 4, K = 1 to 4, L = 1 to 3."""
    assert check_laws(POOLED, range(first, first + 50), LARGER) > 5


def test_any_rows_may_be_imagined() -> None:
    """Another coupling of scored selection too: the choice changes what is earned, and nothing else."""
    pair = instances.random_rational([93, 23], 2, 2)
    greedy = ScoredMultipath(coupling=intervals)
    rows = [([Fraction(0), Fraction(1)], [Fraction(1), Fraction(0)])]
    values = []
    for base, imagined in ((SCORED, None), (SCORED, rows), (greedy, rows)):
        law, other = (output_law(it, pair, 2) for it in (Pooled(base, imagined), base))
        assert law.total_variation == 0
        assert law.block_efficiency >= other.block_efficiency
        values.append(law.block_efficiency)
    assert values[0] == Fraction(597, 200)
    assert len(set(values)) > 1
    with pytest.raises(InvalidInputError, match="imagined needs at least one pair of rows"):
        Pooled(SCORED, [])


class ImaginesTheDraftedRows(Pooled):
    """Wrong: the others are imagined with the rows that they have, so that e(a, . | E) reads these."""

    def output_masses(self, tokens: np.ndarray, targets: np.ndarray, drafts: np.ndarray) -> np.ndarray:
        outputs = []
        for one in range(len(tokens)):
            knowing = copy(self)
            knowing._families = {}
            knowing.imagined = list(zip(targets[one, :, -2], drafts[one, :, -1], strict=True))
            outputs.append(
                Pooled.output_masses(knowing, *(side[one][None] for side in (tokens, targets, drafts)))
            )
        return np.concatenate(outputs)


def defect(verifier: Any) -> Any:
    pair = instances.random_float([95, 1], 2, 2, agreement=0.3)
    return trusted_law(verifier, pair, 2).total_variation


def test_partner_rows_of_other_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of another context in e(a, . | E), in the program or in the base's masses, are not lossless."""
    assert defect(COARSE) < 1e-12
    assert defect(ImaginesTheDraftedRows(SCORED)) > 1e-6

    own = Family.own_masses

    def of_the_first_path(family: Family, *arguments: Any) -> np.ndarray:
        family.seen = getattr(family, "seen", arguments[3:])  # type: ignore[attr-defined]
        return own(family, *arguments[:3], *family.seen)  # type: ignore[attr-defined]

    monkeypatch.setattr(Family, "own_masses", of_the_first_path)
    monkeypatch.setattr(Family, "imagined_limits", lambda *arguments: np.ones((1, len(arguments[-1]))))
    assert defect(Pooled(SCORED, COARSE.imagined)) > 1e-6


def test_partner_a_law_of_the_output_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what a context keeps given every event stays: not lossless."""
    monkeypatch.setattr(
        pooled, "with_sums", lambda point, kept, totals: point * 0 + kept[:, None] / len(totals)
    )
    monkeypatch.setattr(pooled, "SLACK", 9)
    pair = instances.random_float([95, 1], 2, 2, agreement=0.3)
    assert output_law(POOLED, pair, 2).total_variation > 1e-3


def test_partner_without_the_floor_it_falls_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row imagined, and no floor: below scored selection on some pair."""

    def smallest() -> Any:
        alike = Pooled(SCORED, [([0.5, 0.5], [0.5, 0.5])])
        pairs = (instances.random_float([94, number], 3, 2, agreement=0.6) for number in range(4))
        gains = (
            alike.block_efficiency(pair, 2) - SCORED.skewed_draft(pair, 2).block_efficiency(pair)
            for pair in pairs
        )
        return min(gains)

    assert smallest() >= -1e-12
    program = pooled.pooling_program
    monkeypatch.setattr(
        pooled, "pooling_program", lambda *arguments: program(*arguments[:3], arguments[3][1:], -1)
    )
    monkeypatch.setattr(pooled, "SLACK", 9)
    assert smallest() < -1e-4


@pytest.mark.parametrize("device", DEVICES)
def test_torch_agrees_with_numpy(device: str) -> None:
    assert_agrees_on(device, POOLED, numbered_pair(4, 2, 2), 2, "pooled")
