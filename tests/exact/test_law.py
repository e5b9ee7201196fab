"""The output law against independent routes: plain-Python references, closed forms, enumeration orders."""

from fractions import Fraction
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
import pytest

import reference
from deep import first_is_quick
from drawn_trees import acted_out, drawn_paths, given_paths, kseq_rule_by_hand
from law_checks import assert_same_law, budget_masses, trusted_law
from spectheory import instances
from spectheory.exact import law as law_module
from spectheory.exact.law import SHOWN_OUTPUTS, output_law
from spectheory.exact.laws import route
from spectheory.foundation.errors import (
    EnumerationTooLargeError,
    InvalidOutcomeError,
)
from spectheory.pairs.drafts import Iid
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms import verifiers
from spectheory.verification.algorithms.position_by_position.spectr import SpecTr
from spectheory.verification.defective import defects
from spectheory.verification.outcome import Outcome
from spectheory.verification.verifier import Verifier
from table import GENERAL, Case, groups, random_cases, small_cases
from user_verifiers import UserToken

SMALL = small_cases()


def named(case: Case) -> str:
    return f"{case.name}, K = {case.num_drafts}"


def test_token_law_is_the_printed_algorithm_acted_out() -> None:
    """block2024 Algorithm 1, token after token, in plain Fractions."""
    for case in SMALL:
        found = reference.law_of(output_law("token", case.pair))
        assert found == reference.token_law(case.pair), named(case)


def test_block_law_is_the_printed_algorithm_acted_out() -> None:
    """block2024 Algorithm 2, over all 2^L outcomes of the independent acceptances."""
    for case in SMALL:
        found = reference.law_of(output_law("block", case.pair))
        assert found == reference.block_law(case.pair), named(case)


def test_greedy_multipath_law_is_block_against_the_global_ranking() -> None:
    """All leaves ranked at once, r(P_i) = F_i^K - F_{i-1}^K, then block verification against r."""
    for case in SMALL:
        found = reference.law_of(output_law("greedy_multipath", case.pair, case.num_drafts))
        assert found == reference.greedy_multipath_law(case.pair, case.num_drafts), named(case)


def test_spectr_law_is_the_printed_algorithm_acted_out() -> None:
    """spectr2023 Algorithms 2 and 3 for every ordered tuple of drafts; ρ* from another root finder."""
    for case in SMALL:
        expected = acted_out(
            case.pair, drawn_paths(case.pair, [case.pair] * case.num_drafts), kseq_rule_by_hand
        )
        law = output_law("spectr", case.pair, case.num_drafts)
        for depth, masses in enumerate(law.masses, start=1):
            for number, mass in enumerate(masses):
                where = case.pair.context(depth, number)
                assert abs(mass - expected.get(where, 0.0)) < 1e-9, (named(case), where)


def law_given(name: str, pair: ModelPair, drafts: tuple[tuple[int, ...], ...]) -> reference.Law:
    """The conditional law of the output that a verifier's ``outcome`` states for one tuple of drafts."""
    length = pair.draft_length
    target_rows = [[reference.target_row(pair, path[:i]) for i in range(length + 1)] for path in drafts]
    draft_rows = [[reference.draft_row(pair, path[:i]) for i in range(length)] for path in drafts]
    outcome = verifiers[name].outcome(
        np.array([drafts]), np.array([target_rows], dtype=float), np.array([draft_rows], dtype=float)
    )
    found: reference.Law = {}
    for k, i in np.argwhere(outcome.stop_probs[0] > 0):
        row = outcome.correction(np.array([k]), np.array([i]))[0]
        for token, mass in enumerate(row * outcome.stop_probs[0, k, i]):
            output = (*drafts[k][:i], token)
            found[output] = found.get(output, 0.0) + mass
    return found


def largest_difference(one: reference.Law, other: reference.Law) -> float:
    return max(abs(one.get(output, 0.0) - other.get(output, 0.0)) for output in {*one, *other})


def test_spectr_outcome_given_the_drafts_in_their_order() -> None:
    """spectr2023 Algorithm 2 tries the drafts first to last: the conditional law, tuple by tuple."""
    order_matters = 0
    for case in (*random_cases(2, 2, 2, 4), *random_cases(2, 2, 3, 2), *random_cases(3, 2, 2, 3)):
        possible = [path for path in reference.leaves(case.pair) if reference.draft_prob(case.pair, path) > 0]
        for drafts in product(possible, repeat=case.num_drafts):
            found = law_given("spectr", case.pair, drafts)
            expected, backwards = (
                acted_out(case.pair, given_paths(case.pair, order), kseq_rule_by_hand)
                for order in (drafts, drafts[::-1])
            )
            assert largest_difference(found, expected) < 1e-9
            order_matters += largest_difference(found, backwards) > 0.01
    assert order_matters > 10


def test_reference_partner_the_references_tell_algorithms_apart() -> None:
    pair = instances.two_token(2)
    laws = [reference.token_law(pair), reference.block_law(pair), reference.greedy_multipath_law(pair, 2)]
    for one, other in combinations(laws, 2):
        assert one != other
    assert reference.law_of(output_law("token", pair)) != reference.block_law(pair)


def acceptance_weights(pair: ModelPair, block: bool) -> list[Fraction]:
    """Σ q(a_{1:i}) w(a_{1:i}) for i = 0..L, with w the block weight or Π min(1, p/q)."""
    totals = []
    for depth in range(pair.draft_length + 1):
        total = Fraction(0)
        for path in product(range(pair.vocab_size), repeat=depth):
            if (q := reference.draft_prob(pair, path)) == 0:
                continue
            weight = Fraction(1)
            for i, token in enumerate(path):
                context = path[:i]
                ratio = reference.target_row(pair, context)[token] / reference.draft_row(pair, context)[token]
                weight = min(Fraction(1), weight * ratio) if block else weight * min(Fraction(1), ratio)
            total += q * weight
        totals.append(total)
    return totals


@pytest.mark.parametrize("name", ["token", "block"])
def test_length_law_has_the_closed_form(name: str) -> None:
    """P(τ ≥ i) = Σ q w with w = min(1, w p/q) (block) or Π min(1, p/q) (token) (theory.md Statement 4.3)."""
    for case in SMALL:
        length_probs = output_law(name, case.pair).length_probs
        assert len(length_probs) == case.pair.draft_length + 1
        at_least = [sum(length_probs[i:], Fraction(0)) for i in range(len(length_probs))]
        assert at_least == acceptance_weights(case.pair, block=name == "block"), named(case)


def over_all_tuples(name: str) -> Verifier:
    kind = type(verifiers[name])
    return type(f"AllTuples{kind.__name__}", (kind,), {"exchangeable": False})()


class AsIfExchangeable(SpecTr):
    """spectr with a false claim: the order of the drafts is thrown away."""

    exchangeable: ClassVar[bool] = True


@pytest.mark.parametrize("name", [name for name in GENERAL if verifiers[name].exchangeable])
@pytest.mark.parametrize(
    "group", ["two_token", "sticky_chain", "partial_overlap", "random-V2-L2-K3", "random-V3-L2-K2"]
)
def test_exchangeable_claims_hold(group: str, name: str) -> None:
    chosen = [c for c in groups()[group] if c.pair.vocab_size ** (c.pair.draft_length * c.num_drafts) <= 81]
    for case in chosen[:5]:
        from_tuples = trusted_law(over_all_tuples(name), case.pair, case.num_drafts)
        tolerance = 0.0 if verifiers[name].exact else 1e-13
        assert_same_law(output_law(name, case.pair, case.num_drafts), from_tuples, tolerance)


def test_exchangeable_partner_spectr_depends_on_the_order_of_the_drafts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """spectr tries the drafts in order: enumerating sorted drafts only, if trusted, gives a wrong law."""
    pair = instances.two_token(1)
    assert output_law(AsIfExchangeable(), pair, 2).total_variation < 1e-12
    monkeypatch.setattr("spectheory.verification.resolve.as_verifier", lambda verifier: verifier)
    proper, claimed = output_law("spectr", pair, 2), output_law(AsIfExchangeable(), pair, 2)
    assert proper.total_variation < 1e-12
    assert claimed.total_variation > 0.01
    rows = np.tile(np.array([2 / 3, 1 / 3]), (2, 1, 1))
    target_rows = np.tile(np.array([1 / 3, 2 / 3]), (2, 2, 1))
    in_order = SpecTr().outcome(np.array([[0], [1]]), target_rows, rows).stop_probs
    swapped = SpecTr().outcome(np.array([[1], [0]]), target_rows, rows).stop_probs
    assert np.abs(in_order - swapped[::-1]).max() > 0.01


@first_is_quick("name", GENERAL, quick=2)
def test_chunks_do_not_change_the_law(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for case in (*random_cases(3, 2, 2, 1), *random_cases(2, 2, 3, 2)):
        whole = output_law(name, case.pair, case.num_drafts)
        for chunk_entries in (1, 100):
            with monkeypatch.context() as patch:
                patch.setattr(law_module, "CHUNK_ENTRIES", chunk_entries)
                pieces = output_law(name, case.pair, case.num_drafts)
            assert_same_law(pieces, whole, 0.0 if verifiers[name].exact else 1e-14)


def test_properties_of_the_law_are_consistent() -> None:
    """E[τ+1] three ways; accepted masses are P(X_{1:τ} passes a); prefix laws marginalise."""
    for case in random_cases(3, 2, 2, 6):
        law = output_law("greedy_multipath", case.pair, case.num_drafts)
        efficiency = sum(probability * (i + 1) for i, probability in enumerate(law.length_probs))
        assert law.block_efficiency == efficiency
        assert law.accepted_masses[0].tolist() == [1]
        assert sum(level.sum() for level in law.accepted_masses) == efficiency
        assert len(law.accepted_masses) == case.pair.draft_length + 1
        assert (law.prefix_law(case.pair.draft_length + 1) == law.completed_law).all()
        for depth in range(case.pair.draft_length + 1):
            coarser = law.prefix_law(depth + 1).reshape(-1, case.pair.vocab_size).sum(axis=1)
            assert (coarser == law.prefix_law(depth)).all()
        # for a target-matching law D(a) p(a) is the probability that the accepted prefix passes a
        for passed, mass in zip(law.accepted_masses, budget_masses(law), strict=True):
            assert passed.shape == mass.shape
            assert (passed == mass).all()


def test_the_limit_counts_what_is_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly max_tuples tuples are allowed; multisets, single paths and drafts without mass count less.

    Of a route it counts the contexts, times the next tokens.
    """
    pair = instances.two_token(4)
    output_law("greedy_multipath", pair, 2, max_tuples=32)  # 16 contexts of 4 tokens, 2 next tokens
    with pytest.raises(EnumerationTooLargeError):
        output_law("greedy_multipath", pair, 2, max_tuples=31)
    monkeypatch.setattr(route, "_taken", False)
    output_law("spectr", pair, 2, max_tuples=256)
    with pytest.raises(EnumerationTooLargeError):
        output_law("spectr", pair, 2, max_tuples=255)
    output_law("greedy_multipath", pair, 2, max_tuples=136)  # multisets: 16 * 17 / 2
    with pytest.raises(EnumerationTooLargeError):
        output_law("greedy_multipath", pair, 2, max_tuples=135)
    output_law("block", pair, 50, max_tuples=16)
    output_law("spectr", instances.point_masses(4), 3, max_tuples=1)
    with pytest.raises(EnumerationTooLargeError, match="1 tuples of 1001 drafted paths"):
        output_law("spectr", instances.point_masses(1), 1001)


class OnEitherPath(Verifier):
    """Token verification of a path picked by a fair coin, so that two stops of one depth have mass."""

    name, source = "on_either_path", "here"

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        token = verifiers["token"]
        each = [
            token.outcome(*(array[:, k : k + 1] for array in (paths, target_rows, draft_rows)))
            for k in (0, 1)
        ]
        stops = np.concatenate([outcome.stop_probs for outcome in each], axis=1) / 2

        def correction(path_index: Any, length: Any) -> Any:
            rows = [outcome.correction(0 * path_index, length) for outcome in each]
            return np.where((path_index == 0)[:, None], *rows)

        return Outcome(stops, correction)


def test_every_stop_of_a_tuple_counts() -> None:
    pair = instances.random_rational(2, 2, 2)
    either, token = output_law(OnEitherPath(), pair, 2), output_law("token", pair)
    for mass, expected in zip(either.masses, token.masses, strict=True):
        assert (mass == expected).all()


class RightButOnce(UserToken):
    """Token verification whose correction rows are halves for one tuple of drafts of thousands."""

    def __init__(self, first: tuple[int, ...], second: tuple[int, ...]) -> None:
        self.once = np.array([first, second])

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        right = super().outcome(paths, target_rows, draft_rows)
        here = (paths == self.once).all(axis=(1, 2))

        def correction(path_index: Any, length: Any) -> Any:
            rows = right.correction(path_index, length)
            return np.where(here[:, None], rows / 2, rows)

        return Outcome(right.stop_probs, correction)


def test_every_correction_row_is_checked() -> None:
    """Not only those of the tuples on which a user's own verifier is vetted."""
    pair = instances.random_rational(3, 2, 5, zero_probability=0.0)
    with pytest.raises(InvalidOutcomeError, match="correction rows that are not laws"):
        output_law(RightButOnce((0, 1, 0, 1, 1), (1, 1, 0, 0, 1)), pair, 2)


class DeclaresOnePath(UserToken):
    """It says that it looks at the first path."""

    single_path = True


def test_tables_show_the_likeliest_outputs() -> None:
    """All lengths, and so many outputs, from the likeliest on; the note counts the others."""
    law = output_law("block", instances.random_rational(4, 6, 3), 1)
    lengths, outputs = law.tables()
    assert [row["probability"] for row in lengths.rows] == list(law.length_probs)
    shown = [row["probability"] for row in outputs.rows]
    masses = sorted((mass for level in law.masses for mass in level.ravel() if mass), reverse=True)
    assert shown == masses[:SHOWN_OUTPUTS]
    assert outputs.note == f"and {len(masses) - SHOWN_OUTPUTS} other outputs"


def test_too_many_tuples_are_refused_with_a_way_out() -> None:
    with pytest.raises(EnumerationTooLargeError, match=r"65536 tuples of 4 .* max_tuples = 400;.*simulate"):
        output_law("spectr", instances.two_token(4), 4, max_tuples=400)
    with pytest.raises(EnumerationTooLargeError, match="fewer tokens"):
        output_law("token", instances.two_token(4), 1, max_tuples=15)


def test_the_cause_is_the_same_in_any_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    law = output_law(defects["target_correction"], instances.sticky_chain(2), 2)
    whole = [law.cause(prefix) for prefix in ((0,), (1,), (0, 1))]
    tuples = Iid.tuples
    for size in (1, 3):
        monkeypatch.setattr(
            Iid, "tuples", lambda *arguments, size=size: tuples(*arguments[:2], size, *arguments[3:])
        )
        assert [law.cause(prefix) for prefix in ((0,), (1,), (0, 1))] == whole


def test_so_many_drafts_that_no_tuple_can_be_written_down() -> None:
    """A verifier of one path looks at the first; what a user's declares is checked on whole tuples."""
    pair, many = instances.two_token(1), 10**9
    one = output_law("token", pair)
    assert all(
        (a == b).all() for a, b in zip(output_law("token", pair, many).numbers, one.numbers, strict=True)
    )
    with pytest.raises(EnumerationTooLargeError, match="1000000000 drafted paths"):
        output_law(DeclaresOnePath(), pair, many)
