"""The gallery of known-wrong verifiers: each is proper, each is caught, with the exact total variation."""

from copy import copy
from fractions import Fraction

import numpy as np
import pytest
import torch

from deep import first_is_quick
from defect_table import PAIRS, SEVERAL, matrix
from law_checks import assert_same_law
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms import verifiers
from spectheory.verification.algorithms.position_by_position.kseq import KSeq
from spectheory.verification.defective import defects
from spectheory.verification.defective.skeletons import Defect
from spectheory.verification.resolve import find_verifier
from spectheory.verification.verifier import Verifier
from table import random_cases
from torch_support import assert_agrees_on


def pairs_for(num_drafts: int) -> dict[str, ModelPair]:
    """The table; where three paths are drafted, without its pairs of more than 500 tuples."""
    limit = 500 if num_drafts == 3 else 10_000
    found = {
        label: pair
        for label, pair in PAIRS.items()
        if pair.vocab_size ** (pair.draft_length * num_drafts) <= limit
    }
    assert len(found) >= 13
    return found


@first_is_quick("name", defects, quick=11)
def test_defects_are_caught_on_the_shared_table(name: str) -> None:
    """The table on which every verifier is judged notices every mistake: V = 3, L = 3, K = 2, 8 pairs."""
    cases = random_cases(3, 3, 2, 8)
    caught = [output_law(defects[name], case.pair, case.num_drafts).total_variation > 0 for case in cases]
    assert sum(caught) >= 4


@first_is_quick("num_drafts", [1, 2, 3])
def test_defects_return_proper_laws(num_drafts: int) -> None:
    """No InvalidOutcomeError on the whole table; R is non-negative and sums to 1, exactly."""
    # A verifier of one path looks at the first, however many there are.
    for name in defects if num_drafts == 1 else SEVERAL:
        for label, pair in pairs_for(num_drafts).items():
            law = output_law(defects[name], pair, num_drafts)
            assert sum(mass.sum() for mass in law.masses) == 1, (name, label)
            assert all((mass >= 0).all() for mass in law.masses), (name, label)


def test_defects_of_several_drafts_vanish_with_one() -> None:
    """Each mistake about several drafts is none with K = 1: lossless there."""
    assert len(SEVERAL) >= 8
    for name in SEVERAL:
        assert all(output_law(defects[name], pair, 1).total_variation == 0 for pair in PAIRS.values())


@first_is_quick("name", defects, quick=11)
def test_one_definition_in_float64(name: str) -> None:
    for label, pair in PAIRS.items():
        exact = output_law(defects[name], pair, 2)
        rounded = output_law(defects[name], pair.to_float(), 2)
        for mass, expected in zip(rounded.masses, exact.masses, strict=True):
            assert np.abs(mass - expected.astype(float)).max() < 1e-12, label


@pytest.mark.parametrize("name", defects)
def test_one_definition_in_torch(name: str) -> None:
    pair = instances.random_float(11, vocab_size=3, draft_length=2)
    assert_agrees_on("cpu", defects[name], pair, 2, name)


@pytest.mark.parametrize("name", defects)
def test_a_defect_stays_on_the_device_of_its_rows(name: str) -> None:
    """A device whose tensors have no entries meets no number of the host, and gives no number to it."""
    defect, shape = defects[name], (5, 1 if defects[name].single_path else 2)
    paths, stop = (torch.empty(size, dtype=torch.int64, device="meta") for size in ((*shape, 3), (5,)))
    target_rows, draft_rows = (torch.empty((*shape, length, 6), device="meta") for length in (4, 3))
    found = defect.outcome(paths, target_rows, draft_rows)
    rows = found.correction(stop, stop)
    for array, size in ((found.stop_probs, (*shape, 4)), (rows, (5, 6))):
        assert (array.device.type, array.dtype, array.shape) == ("meta", torch.float32, size)


@first_is_quick("name", [name for name in SEVERAL if defects[name].exchangeable])
def test_exchangeable_defects_are(name: str) -> None:
    """Enumerating multisets of drafts gives the law of all tuples."""
    defect: Verifier = copy(defects[name])
    defect.exchangeable = False  # type: ignore[misc]
    for pair in list(PAIRS.values())[::2]:
        assert_same_law(output_law(defect, pair, 2), output_law(defects[name], pair, 2))


F = Fraction


def test_gallery_is_described() -> None:
    """Every entry says what was meant, where the mistake comes from, what it breaks; none is published."""
    assert len(defects) >= 18
    for name, defect in defects.items():
        assert isinstance(defect, Defect)
        assert name == defect.name
        assert name not in verifiers
        assert defect.exact
        assert not defect.lossless
        assert defect.parent
        assert defect.origin.endswith(".")
        assert defect.origin.count(". ") == 0
        assert type(defect).__doc__
        assert "lausible" in type(defect).__doc__ or "Right at" in type(defect).__doc__
        assert "outcome" in dir(defect)
    assert len({defect.origin for defect in defects.values()}) == len(defects)
    with pytest.raises(TypeError):
        defects["token"] = verifiers["token"]  # type: ignore[index]


def test_a_defect_is_found_by_its_module_name() -> None:
    """As the command line takes it, ``--verifier package.module:name``."""
    found = find_verifier("spectheory.verification.defective.corrections:TargetCorrection")
    assert found.name == "target_correction"


def test_what_short_paths_and_small_vocabularies_hide() -> None:
    """Docstrings: block defects need two drafted tokens; four wrong residuals need three tokens."""
    for label, pair in PAIRS.items():
        if pair.draft_length == 1:
            hidden = [name for name in defects if name.startswith("block_")]
            hidden += ["stale_correction_row", "all_drafts_assumed"]
            assert not any(matrix()[name][label] for name in hidden), label
        if pair.vocab_size == 2:
            hidden = ["rejected_token_masked", "shared_uniform"]
            hidden += ["block_residual_without_weight", "recursive_without_update"]
            assert not any(matrix()[name][label] for name in hidden), label


def test_block_residual_without_weight_keeps_the_block_efficiency() -> None:
    for pair in PAIRS.values():
        wrong = output_law(defects["block_residual_without_weight"], pair)
        assert wrong.block_efficiency == output_law("block", pair).block_efficiency


def test_a_division_factor_that_is_not_checked_claims_nothing() -> None:
    claims = [KSeq().lossless, KSeq(F(3, 2)).lossless, KSeq(F(3, 2), checked=False).lossless]
    assert claims == [True, True, False]
