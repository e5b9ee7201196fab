"""The gallery of known-wrong verifiers: each is proper, each is caught, with the exact total variation."""

from __future__ import annotations

from copy import copy
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import torch

from defect_programs import PROGRAMS, exact_law, token_program
from law_checks import assert_same_law
from spectheory import certify, instances
from spectheory.algorithms import verifiers
from spectheory.algorithms.one_path.greedy_block import GreedyBlock
from spectheory.algorithms.position_by_position.base import Position, PositionByPosition, Selection
from spectheory.arrays import Array, normalise
from spectheory.defects import defects
from spectheory.defects.acceptance import ThresholdAcceptance
from spectheory.defects.skeletons import BlockSkeleton, Defect, PositionSkeleton, TokenSkeleton
from spectheory.drafts import DraftProcess, Iid, WithoutReplacement
from spectheory.law import OutputLaw, output_law
from spectheory.outcome import Outcome
from spectheory.resolve import find_verifier
from spectheory.suite import kill_matrix, standard_pairs
from spectheory.verifier import Verifier
from table import groups

F = Fraction
PAIRS = standard_pairs()
MATRIX = kill_matrix()
VALID = [name for name, verifier in verifiers.items() if verifier.lossless]
MARGIN = 1e-12
"""What float64 leaves of the total variation of spectr and kseq."""
SEVERAL = [name for name, defect in defects.items() if not defect.single_path]


def _one_survivor_taken_for_two() -> F:
    """all_drafts_assumed on three_token_reversed-L2: P(one draft survives) times the error there.

    K-SEQ with ρ = n = 2: m = min(q, p/2), β = sum m.  Run on one draft instead of two, it outputs
    m + (1 - β) (p - m (2 - β)) / (1 - β)^2 = (p - m) / (1 - β), off from p by (β p - m) / (1 - β).
    """
    target, draft = (F(1, 2), F(1, 3), F(1, 6)), (F(1, 6), F(1, 3), F(1, 2))
    accepted = [min(q, p / 2) for p, q in zip(target, draft, strict=True)]
    beta = sum(accepted)
    residual = [(p - m * (2 - beta)) / (1 - beta) ** 2 for p, m in zip(target, accepted, strict=True)]
    reject = [1 - m / q for m, q in zip(accepted, draft, strict=True)]
    # Two different drafts i, j at the root: the round goes on, with one draft, unless Y is neither.
    one_left = sum(
        2 * draft[i] * draft[j] * (1 - reject[i] * reject[j] * (1 - residual[i] - residual[j]))
        for i, j in combinations(range(3), 2)
    )
    off = sum(max(beta * p - m, 0) for p, m in zip(target, accepted, strict=True)) / (1 - beta)
    return one_left * off


GOLDEN: dict[str, tuple[str, F]] = {
    # Derived by hand, K = 2.  two_token: p = (1/3, 2/3), q = (2/3, 1/3) on A, B; token verification
    # accepts A with 1/2 and B always, so that a draft is rejected with 1/3 and then Y = B.
    # A comes again from p.
    "target_correction": ("two_token-L1", F(1, 3) * F(1, 3)),
    # A comes again from q.
    "draft_correction": ("two_token-L1", F(1, 3) * F(2, 3)),
    # |p - q| = (1/3, 1/3).
    "absolute_residual": ("two_token-L1", F(1, 3) * F(1, 2)),
    # p = (1/2, 1/3, 1/6), q reversed: C is rejected with 1/2 * 2/3, and Y = B has 2/5 instead of 0.
    "rejected_token_masked": ("three_token_reversed-L1", F(1, 2) * F(2, 3) * F(2, 5)),
    # (1/1000, 1/3 + 1/1000), normalised.
    "smoothed_residual": ("two_token-L1", F(1, 3) * F(1, 1000) / (F(1, 3) + F(2, 1000))),
    # Accepted with 2/3; q and p are 1/3 apart.
    "draft_bonus": ("two_token-L1", F(2, 3) * F(1, 3)),
    # p squared is (1/5, 4/5), normalised.
    "sharpened_bonus": ("two_token-L1", F(2, 3) * (F(1, 3) - F(1, 5))),
    # A is rejected with 3/4 * 1/3, at u in (2/3, 1]; the residual (0, 5/12, 7/12) has B below 5/12.
    "shared_uniform": ("two_residual_tokens-L1", F(3, 4) * F(1, 3) * F(5, 12)),
    # After 0 (2/3 * 3/4), draft 1 is rejected with 1/2 * 1/2: Y is 0, the root's residual says 1.  After 1
    # both residuals are 1.
    "stale_correction_row": ("sticky_chain-L2", F(2, 3) * F(3, 4) * F(1, 2) * F(1, 2)),
    # The row after the rejected token is the target's, nothing being drafted there.
    "next_correction_row": ("two_token-L1", F(1, 3) * F(1, 3)),
    # A always accepted, B with 1/2, otherwise A.
    "swapped_models": ("two_token-L1", F(2, 3) + F(1, 3) * F(1, 2) - F(1, 3)),
    # A accepted with (1/3) / (2/3 + 1/1000), B always.
    "smoothed_ratio": ("two_token-L1", F(1, 3) - F(2, 3) * F(1, 3) / (F(2, 3) + F(1, 1000))),
    # 2 p/q >= 1 for both: the output is the draft's.
    "lenient_acceptance": ("two_token-L1", F(2, 3) - F(1, 3)),
    # p >= 3/10 for both: the output is the draft's.
    "threshold_acceptance": ("two_token-L1", F(2, 3) - F(1, 3)),
    # Never A.
    "argmax_acceptance": ("two_token-L1", F(1, 3)),
    # q squared is (4/5, 1/5): A accepted with (1/3) / (4/5).
    "tempered_draft_law": ("two_token-L1", F(1, 3) - F(2, 3) * F(5, 12)),
    # q is reported as (1, 0): A accepted with 1/3.
    "truncated_draft_law": ("two_token-L1", F(1, 3) - F(2, 3) * F(1, 3)),
    # p is (0, 1): never A.
    "truncated_target": ("two_token-L1", F(1, 3)),
    # Path AA has w = 1/2, 1/4 and should stop at 0 or 2.  h_1 = (1/3) / (1 - 1/2 + 1/3) = 2/5 lets
    # it stop at 1: an A that should be the correction B.  The other paths are right.
    "block_acceptance_without_weight": ("two_token-L2", F(4, 9) * F(3, 4) * F(2, 5)),
    # After A (3/4) w = 2/3: the residual (0, 7/144, 5/144) is drawn as 5 : 7 instead of 7 : 5.
    "block_residual_without_weight": ("two_residual_tokens-L2", F(3, 4) * F(12, 144) * F(7 - 5, 12)),
    # block2024 App. C (Eq. 30): BA has 1/3 instead of 2/9; theory.md §4.
    "block_uncapped_weight": ("two_token-L2", F(1, 3) - F(2, 9)),
    # h_1 = 0 after A, so A is never output.
    "block_first_rejection": ("two_token-L2", F(1, 3)),
    # Path AA: accepted at 1 with w_1 = 1/2, where h_1 = 0.
    "block_weight_as_acceptance": ("two_token-L2", F(4, 9) * F(3, 4) * F(1, 2)),
    # p = q = (1/2, 1/2): token 0 is selected with 3/4, and assumed to be with 1/4: 0 is accepted, 1
    # with (1/2) / (3/4), otherwise 0.
    "greedy_multipath_ties": ("uniform_equal-L1", F(3, 4) + F(1, 4) * F(1, 3) - F(1, 2)),
    # A is selected with 4/9 and accepted with 1/2.
    "greedy_multipath_unskewed": ("two_token-L1", F(1, 3) - F(4, 9) * F(1, 2)),
    # A is selected with 8/9 and accepted with 1/2.
    "likeliest_draft": ("two_token-L1", F(8, 9) * F(1, 2) - F(1, 3)),
    # AA gives A with 3/4, AB with 1/2, BA never.
    "longest_accepted": ("two_token-L1", F(4, 9) * F(3, 4) + F(2, 9) * F(1, 2) - F(1, 3)),
    # spectr2023 section 4: draft Ber(1), target Ber(1/2), a head unless both are rejected.
    "independent_acceptance": ("bernoulli_one_half-L1", 1 - F(1, 2) ** 2 - F(1, 2)),
    # As longest_accepted, because two rejected drafts give B.
    "small_division_factor": ("two_token-L1", F(4, 9) * F(3, 4) + F(2, 9) * F(1, 2) - F(1, 3)),
    "all_drafts_assumed": ("three_token_reversed-L2", _one_survivor_taken_for_two()),
    # Both drafts A (rejected with 1/3, then with 1): Y ~ (0, 5/12, 7/12) instead of (0, 17/36, 19/36).
    "recursive_without_update": ("two_residual_tokens-L1", F(3, 4) ** 2 * F(1, 3) * (F(17, 36) - F(5, 12))),
    # AA rejected: the second A has p = q = 0 left, the residual (0, 1) - (0, 1) is empty, and Y ~ p.
    "distinct_drafts_assumed": ("two_token-L1", F(4, 9) * F(1, 2) * F(1, 3)),
}


def test_gallery_is_described() -> None:
    """Every entry says what was meant, where the mistake comes from, what it breaks; none is published."""
    assert len(defects) >= 18
    for name, defect in defects.items():
        assert isinstance(defect, Defect)
        assert name == defect.name
        assert name not in verifiers
        assert defect.exact
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
    """What the command line takes: ``--verifier spectheory.defects.corrections:TargetCorrection``."""
    assert find_verifier("spectheory.defects.corrections:TargetCorrection").name == "target_correction"


def test_every_defect_has_a_golden_value() -> None:
    """No defect goes without a total variation derived by hand."""
    assert list(GOLDEN) == list(defects)


@pytest.mark.parametrize("name", GOLDEN)
def test_defect_is_caught_with_the_total_variation_derived_by_hand(name: str) -> None:
    """The certificate flags it, names a wrong prefix, and its total variation is the golden one."""
    label, expected = GOLDEN[name]
    certificate = certify(defects[name], PAIRS[label], num_drafts=2, with_optimum=False)
    assert expected > 0
    assert certificate.total_variation == expected
    assert MATRIX[name][label] == expected
    assert not certificate.target_matching
    assert not certificate.is_valid
    assert certificate.counterexample is not None
    assert certificate.counterexample.law != certificate.counterexample.target


def _as_mapping(law: OutputLaw) -> dict[tuple[int, ...], Fraction]:
    """R with its zeros left out, keyed by the tokens of the output."""
    return {
        law.pair.context(depth, number): value
        for depth, mass in enumerate(law.masses, start=1)
        for number, value in enumerate(mass)
        if value
    }


@pytest.mark.parametrize("name", defects)
def test_defect_is_the_program_with_the_mistake(name: str) -> None:
    """R is that of a plain sampling program in which the mistake is made, run on all outcomes of its dice."""
    for label, pair in PAIRS.items():
        expected = exact_law(PROGRAMS[name], pair, 2)
        assert sum(expected.values()) == 1, label
        assert _as_mapping(output_law(defects[name], pair, 2)) == expected, label


def test_programs_partner_without_a_mistake() -> None:
    """The same machinery gives token verification's law for its program, and not for another one's."""
    pair = PAIRS["three_token_reversed-L2"]
    law = exact_law(token_program(), pair, 1)
    assert law == _as_mapping(output_law("token", pair))
    assert law != exact_law(PROGRAMS["rejected_token_masked"], pair, 1)
    assert list(PROGRAMS) == list(defects)


def _laws_of_lossless(name: str, num_drafts: int) -> dict[str, OutputLaw]:
    """label -> law, on the pairs and the drafts that the verifier is meant for."""
    verifier, laws = verifiers[name], {}
    for label, pair in PAIRS.items():
        if verifier.max_draft_length is not None and pair.draft_length > verifier.max_draft_length:
            continue
        process: DraftProcess = Iid(num_drafts)
        if "iid" not in verifier.draft_processes:
            process = WithoutReplacement((num_drafts,) + (1,) * (pair.draft_length - 1))
            if min((row > 0).sum() for row in pair.draft[0]) < num_drafts:
                continue  # fewer tokens than there are to be drafted
        laws[label] = output_law(verifier, pair, process=process)
    return laws


@pytest.mark.parametrize("name", VALID)
@pytest.mark.parametrize("num_drafts", [1, 2, 3])
def test_lossless_verifiers_survive_the_table(name: str, num_drafts: int) -> None:
    """The partner: what kills every defect kills no published lossless verifier (ρ* is float64)."""
    laws = _laws_of_lossless(name, num_drafts)
    assert len(laws) >= (7 if name in ("kseq", "multi_round_without_replacement") else len(PAIRS))
    for label, law in laws.items():
        assert law.total_variation <= (0 if verifiers[name].exact else MARGIN), label


def test_every_lossless_verifier_is_among_the_survivors() -> None:
    """None is left out, and the matrix itself says 0 of those that take every pair of i.i.d. drafts."""
    assert {"token", "block", "spectr", "multi_round", "otm", "kseq"} < set(VALID)
    assert {"greedy_multipath", "mixed_multipath", "optimal_multipath"} < set(VALID)
    assert "multi_round_without_replacement" in VALID
    matrix = kill_matrix(verifiers={name: verifiers[name] for name in ("token", "otm", "greedy_multipath")})
    for row in matrix.values():
        assert list(row) == list(PAIRS)
        assert set(row.values()) == {F(0)}


@pytest.mark.parametrize("name", defects)
def test_defects_are_caught_on_the_shared_table(name: str) -> None:
    """The table on which every verifier is judged notices every mistake: random-V3-L3-K2, 8 pairs."""
    cases = groups()["random-V3-L3-K2"]
    assert len(cases) == 8
    caught = [output_law(defects[name], case.pair, case.num_drafts).total_variation > 0 for case in cases]
    assert sum(caught) >= 4


@pytest.mark.parametrize("num_drafts", [1, 2])
def test_skeletons_are_the_algorithms_they_stand_for(num_drafts: int) -> None:
    """Without a mistake: the laws of token and block exactly, and a lossless K-SEQ with ρ = n."""
    for label, pair in PAIRS.items():
        for skeleton, name in ((TokenSkeleton(), "token"), (BlockSkeleton(), "block")):
            assert_same_law(output_law(skeleton, pair), output_law(name, pair))
        assert output_law(PositionSkeleton(), pair, num_drafts).total_variation == 0, label


def test_uncapped_weight_is_greedy_block_verification() -> None:
    """Block verification without the cap is block2024 Algorithm 4, law for law."""
    for pair in PAIRS.values():
        assert_same_law(output_law(defects["block_uncapped_weight"], pair), output_law(GreedyBlock(), pair))


@pytest.mark.parametrize("num_drafts", [1, 2, 3])
def test_defects_return_proper_laws(num_drafts: int) -> None:
    """No InvalidOutcomeError on the whole table; R is non-negative and sums to 1, exactly."""
    # A verifier of one path looks at the first, however many there are.
    for name in defects if num_drafts == 1 else SEVERAL:
        for label, pair in PAIRS.items():
            law = output_law(defects[name], pair, num_drafts)
            assert sum(mass.sum() for mass in law.masses) == 1, (name, label)
            assert all((mass >= 0).all() for mass in law.masses), (name, label)


def test_proper_laws_partner_an_empty_residual_is_flagged() -> None:
    """Without the fallback on the target's row, a rejection at p = q has no correction token."""

    class NoFallback(ThresholdAcceptance):
        def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
            proper = super().outcome(paths, target_rows, draft_rows)
            return Outcome(
                proper.stop_probs,
                lambda path_index, length: normalise(
                    self.residual(target_rows[:, 0, 0], draft_rows[:, 0, 0])
                ),
            )

    law = output_law(NoFallback(), instances.equal_models(1))
    assert law.undefined > 0
    assert law.total_variation > 0
    assert output_law(ThresholdAcceptance(), instances.equal_models(1)).undefined == 0


def test_every_pair_of_the_table_is_informative() -> None:
    """Every pair kills something, no two the same defects; every defect dies, no two in the same way."""
    killed_by = {label: frozenset(name for name in MATRIX if MATRIX[name][label]) for label in PAIRS}
    assert all(killed_by.values())
    assert len(set(killed_by.values())) == len(PAIRS)
    assert all(any(row.values()) for row in MATRIX.values())
    assert len({tuple(row.values()) for row in MATRIX.values()}) == len(MATRIX)


def test_no_single_pair_is_enough() -> None:
    """No pair kills all; one random pair of three tokens and one with ties in p/q do."""
    killed = {label: {name for name in MATRIX if MATRIX[name][label]} for label in PAIRS}
    assert max(map(len, killed.values())) == len(defects) - 1
    assert killed["random_seed6_V3-L2"] | killed["uniform_equal-L1"] == set(defects)


def test_what_short_paths_and_small_vocabularies_hide() -> None:
    """Docstrings: block defects need two drafted tokens; four wrong residuals need three tokens."""
    for label, pair in PAIRS.items():
        if pair.draft_length == 1:
            hidden = [name for name in defects if name.startswith("block_")]
            hidden += ["stale_correction_row", "all_drafts_assumed"]
            assert not any(MATRIX[name][label] for name in hidden), label
        if pair.vocab_size == 2:
            hidden = ["rejected_token_masked", "shared_uniform"]
            hidden += ["block_residual_without_weight", "recursive_without_update"]
            assert not any(MATRIX[name][label] for name in hidden), label


def test_block_residual_without_weight_keeps_the_block_efficiency() -> None:
    """Its docstring's claim: measured speed says nothing; the law does."""
    for pair in PAIRS.values():
        wrong = output_law(defects["block_residual_without_weight"], pair)
        assert wrong.block_efficiency == output_law("block", pair).block_efficiency


def test_defects_of_several_drafts_vanish_with_one() -> None:
    """Each mistake about several drafts is none with K = 1: exactly lossless there."""
    rows = kill_matrix(num_drafts=1, verifiers={name: defects[name] for name in SEVERAL})
    assert len(rows) >= 8
    assert all(set(row.values()) == {F(0)} for row in rows.values())


@pytest.mark.parametrize("name", defects)
def test_one_definition_in_float64(name: str) -> None:
    """The same definition in float64 has the same law."""
    for label, pair in PAIRS.items():
        exact = output_law(defects[name], pair, 2)
        rounded = output_law(defects[name], pair.to_float(), 2)
        for mass, expected in zip(rounded.masses, exact.masses, strict=True):
            assert np.abs(mass - expected.astype(float)).max() < 1e-12, label


def _drafted_batch() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Paths [64, 2, 2] of a three-token pair with their rows, in float64."""
    pair = instances.random_float(11, vocab_size=3, draft_length=2)
    rng = np.random.default_rng(5)
    paths = rng.integers(3, size=(64, 2, 2))
    depths = [np.zeros_like(paths[..., 0]), paths[..., 0], paths[..., 0] * 3 + paths[..., 1]]
    target_rows = np.stack([pair.target[i][depths[i]] for i in range(3)], axis=-2)
    return paths, target_rows, np.stack([pair.draft[i][depths[i]] for i in range(2)], axis=-2)


@pytest.mark.parametrize("name", defects)
def test_one_definition_in_torch(name: str) -> None:
    """The same definition on torch tensors gives the numbers numpy gives."""
    arrays = _drafted_batch()
    on_numpy = defects[name].outcome(*arrays)
    on_torch = defects[name].outcome(*map(torch.from_numpy, arrays))
    assert np.abs(on_torch.stop_probs.numpy() - on_numpy.stop_probs).max() < 1e-12
    for path_index in range(2 if name in SEVERAL else 1):
        for length in range(3):
            where = np.full(64, path_index), np.full(64, length)
            expected = on_numpy.correction(*where)
            found = on_torch.correction(*map(torch.from_numpy, where)).numpy()
            assert np.abs(found - expected).max() < 1e-12


@pytest.mark.parametrize("name", [name for name in SEVERAL if defects[name].exchangeable])
def test_exchangeable_defects_are(name: str) -> None:
    """Enumerating multisets of drafts gives the law of all tuples."""
    defect: Verifier = copy(defects[name])
    defect.exchangeable = False  # type: ignore[misc]
    for pair in PAIRS.values():
        assert_same_law(output_law(defect, pair, 2), output_law(defects[name], pair, 2))


def test_kill_matrix_takes_pairs_drafts_and_verifiers() -> None:
    """Its arguments: labels of the caller, K = 3 of spectr2023's example, float pairs, other verifiers."""
    pairs = {"here": instances.bernoulli("1", "1/2"), "there": instances.bernoulli(1.0, 0.5)}
    matrix = kill_matrix(pairs, 3, verifiers={"wrong": defects["independent_acceptance"]})
    assert matrix == {"wrong": {"here": F(3, 8), "there": 0.375}}
    assert isinstance(matrix["wrong"]["there"], float)


def test_a_new_mistake_is_seen() -> None:
    """The partner of the survival test: the skeletons are not lossless whatever one overrides."""

    class AlwaysAccept(PositionByPosition):
        name = "always_accept"

        def select(self, position: Position) -> Selection:
            one = position.is_draft.astype(position.target_rows.dtype) * position.target_rows[..., :1] ** 0
            first = one * (np.cumsum(position.is_draft, axis=-1) == 1)
            return Selection(first, 1 - first.sum(axis=-1), position.target_rows)

    row = kill_matrix(verifiers={"always_accept": AlwaysAccept()})["always_accept"]
    assert row["two_token-L1"] == F(1, 3)
    assert row["equal_models-L2"] == 0
