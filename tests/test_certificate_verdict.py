"""What a verdict is made of: exact where it can be, the worst antichain, the shortest counterexample."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from spectheory import certify, instances, output_law
from spectheory.optima import antichains, optimum, single_path_optimum
from spectheory.optima.multi_path import named_antichains
from spectheory.pairs import levels
from spectheory.pairs.drafts import DraftProcess, Iid, PrefixTree
from spectheory.pairs.pair import ModelPair
from spectheory.verification.defective import defects
from user_verifiers import UserToken


@pytest.mark.parametrize("process", [Iid(1), Iid(2), PrefixTree((2, 1)), PrefixTree((1, 2))], ids=str)
def test_an_output_where_no_draft_passes_is_a_violation(process: DraftProcess) -> None:
    """Of a wrong verifier the worst antichain, against all of them listed; of a right one there is none."""
    pair = instances.two_token(2)
    wrong = certify(defects["target_correction"], pair, drafts=process, with_optimum=False)
    masses = np.concatenate([wrong.law.node_budgets[i] * pair.target_path_probs(i) for i in range(3)])
    members = antichains(2, 2)
    excesses = [
        masses[row].sum() - process.hit_probability(pair, nodes)
        for row, nodes in zip(members, named_antichains(pair, members), strict=True)
    ]
    assert wrong.law.largest_excess[0] == max(excesses) > 0
    assert wrong.prefix_matching is None  # its budgets are not the masses that it accepts
    right = certify("block", pair, drafts=process, with_optimum=False)
    assert right.prefix_matching is True
    assert right.law.largest_excess[0] == 0


def test_very_many_drafts_are_judged_by_one() -> None:
    """What is not too often for one draft is not for 2 000; what is, is not decided."""
    pair = instances.two_token(2)
    assert certify("token", pair, 2_000, with_optimum=False).prefix_matching is True
    assert output_law(defects["target_correction"], pair, 2_000).largest_excess is None


def test_both_conditions_make_a_verdict() -> None:
    certificate = certify("token", instances.two_token(1))
    for target_matching, prefix_matching, is_valid in (
        (True, True, True),
        (True, None, True),
        (True, False, False),
        (False, True, False),
    ):
        changed = replace(certificate, target_matching=target_matching, prefix_matching=prefix_matching)
        assert bool(changed) is is_valid


def test_the_optimum_is_no_less_for_a_verifier_that_cheats() -> None:
    """Accepting everything earns 3 tokens of 20/9 that can be earned; under a tree its own optimum counts."""
    pair = instances.two_token(2)
    cheating = certify(defects["lenient_acceptance"], pair)
    assert cheating.block_efficiency > cheating.optimum == Fraction(20, 9)
    assert cheating.gap == Fraction(20, 9) - cheating.block_efficiency < 0
    tree = PrefixTree((1, 2))
    assert certify("block", pair, drafts=tree).optimum == optimum(pair, drafts=tree).value
    assert optimum(pair, drafts=tree).value < optimum(pair, 2).value


class AlmostToken(UserToken):
    """Wrong with probability 10^-12: so often the correction comes from the target itself."""

    def correction(self, target: list[Any], draft: list[Any]) -> list[Any]:
        share = Fraction(1, 10**12) if isinstance(target[0], Fraction) else 1e-12
        rows = zip(super().correction(target, draft), target, strict=True)
        return [(1 - share) * right + share * wrong for right, wrong in rows]


def test_an_exact_verdict_has_no_tolerance_and_a_float_one_has() -> None:
    """The same verifier on the same pair: 10^-12 is a defect in rationals, and rounding in floats."""
    pair = instances.two_token(2)
    exact = certify(AlmostToken(), pair)
    assert 0 < exact.total_variation < 1e-12
    assert not exact.target_matching
    assert exact.prefix_matching is None
    assert exact.counterexample is not None
    in_float = certify(AlmostToken(), pair.to_float())
    assert in_float
    assert in_float.counterexample is None


def test_the_counterexample_is_the_shortest_prefix() -> None:
    pair = instances.two_token(2)
    for name, length in (("target_correction", 1), ("draft_bonus", 3)):
        found = certify(defects[name], pair, with_optimum=False).counterexample
        assert found is not None
        assert len(found.path) == length


def test_rows_off_one_within_the_tolerance_are_divided_by_their_sums(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A verifier is not blamed for rows of sum 1 + 5·10^-7; what was done is said."""
    monkeypatch.setattr(levels, "SUM_TOLERANCE", 1e-6)
    rows = [0.3, 0.7 + 5e-7], [0.6, 0.4 + 5e-7]
    pair = ModelPair.context_free_pair(*rows, 2)
    certificate = certify("block", pair)
    assert certificate
    assert certificate.row_defect == pytest.approx(5e-7)
    assert sum(certificate.first_token_law) == pytest.approx(1, abs=1e-12)
    assert "sums off 1 by up to 5e-07" in dict(certificate.tables()[0].texts())["rows of the pair"]
    assert certificate.optimum == optimum(pair.normalised()).value == optimum(pair).value
    assert certificate.optimum != single_path_optimum(pair).value  # on the rows as they are given
