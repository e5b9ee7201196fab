"""Every published verifier on the whole table of pairs: validity, the optimum, and what equals what."""

from collections.abc import Iterable, Iterator
from fractions import Fraction

import pytest

from deep import first_is_quick
from law_checks import assert_same_law
from spectheory import certify, instances
from spectheory.exact.law import OutputLaw, output_law
from spectheory.optima import optimal_acceptance
from spectheory.optima.block_transport import block_transport_value
from spectheory.pairs.drafts import DraftProcess, Iid, WithoutReplacement
from spectheory.verification.algorithms import verifiers
from table import (
    GENERAL,
    ONE_POSITION,
    Case,
    best_of,
    every_group,
    groups,
    law_of,
    law_of_case,
    law_on_one_path,
    parametrized_by_group,
)

GROUPS = groups()
CLAIMED = [name for name, verifier in verifiers.items() if verifier.lossless]
UNCLAIMED = [name for name, verifier in verifiers.items() if not verifier.lossless]
OPTIMAL_LEAVES = 27
"""optimal_multipath solves a program and decomposes its point for every pair: small trees only."""
OTM_TUPLES = 64
"""otm solves a program of V times as many variables at every context."""


def process_of(name: str, case: Case) -> DraftProcess | None:
    """The drafts on which this verifier is judged on this pair; None where it does not apply."""
    verifier, pair, num_drafts = verifiers[name], case.pair, case.num_drafts
    if verifier.max_draft_length is not None and pair.draft_length > verifier.max_draft_length:
        return None
    if name == "optimal_multipath" and pair.vocab_size**pair.draft_length > OPTIMAL_LEAVES:
        return None
    if name == "otm" and pair.vocab_size**num_drafts > OTM_TUPLES:
        return None
    if "iid" in verifier.draft_processes:
        return Iid(num_drafts)
    process = WithoutReplacement((num_drafts,) + (1,) * (pair.draft_length - 1))
    return process if process.fits(pair) else None  # too few tokens with mass


def combinations(names: Iterable[str], groups: Iterable[str] = GROUPS) -> list[tuple[str, str]]:
    """(group, name) wherever the verifier applies to a pair of the group: no test runs over nothing."""
    return [
        (group, name)
        for group in groups
        for name in names
        if any(process_of(name, case) for case in every_group()[group])
    ]


def judged(name: str, group: str) -> Iterator[tuple[Case, OutputLaw]]:
    """The laws of a verifier on the pairs of a group to which it applies; there is at least one."""
    judged_pairs = 0
    for case in every_group()[group]:
        process = process_of(name, case)
        if process is not None:
            judged_pairs += 1
            yield case, law_of(name, case.pair, process)
    assert judged_pairs > 0, (name, group)


def test_every_verifier_is_judged_on_many_pairs() -> None:
    """No verifier passes by being left out: each meets at least 60 pairs, random ones among them."""
    for name in verifiers:
        cases = [case for group in GROUPS.values() for case in group if process_of(name, case)]
        assert len(cases) >= 60, (name, len(cases))
        assert any(case.name.startswith("random") for case in cases), name


def test_a_group_without_pairs_is_an_error() -> None:
    """The partner: a test that would run over nothing fails, and no such combination is made."""
    with pytest.raises(AssertionError, match="kseq"):
        list(judged("kseq", "random-V2-L3-K2"))
    assert ("random-V2-L3-K2", "kseq") not in combinations(CLAIMED)
    for combination in (
        ("random-V3-L3-K2", "optimal_multipath"),
        ("random-V4-L2-K2", "optimal_multipath"),
        ("random-V2-L3-K2", "otm"),
        ("random-V4-L1-K3", "otm"),
    ):
        assert combination in combinations(CLAIMED)


SPECIAL = [name for name in CLAIMED if name not in GENERAL]


@parametrized_by_group()
def test_lossless_and_below_the_optimum_of_its_drafts(group: str) -> None:
    """Lossless exactly where the arithmetic is exact, to 1e-12 otherwise.  (GENERAL:
    test_general_verifiers.py.)  greedy2026 Theorem 4.3, with P(some draft passes through T) of the process at
    hand.
    """
    for _, name in combinations(SPECIAL, groups=[group]):
        slack = 0 if verifiers[name].exact else Fraction(1, 10**12)
        for case, law in judged(name, group):
            assert law.total_variation <= slack, (case, name)
            if case.has_optimum:
                best = best_of(case.pair, process_of(name, case))
                assert Fraction(law.block_efficiency) <= best + slack, (case, name)


@parametrized_by_group(has_optimum=True)
def test_optimal_multipath_attains_the_optimum(group: str) -> None:
    """greedy2026 Theorem 4.6: exactly the value of the antichain program."""
    cases = [case for case, _ in judged("optimal_multipath", group) if case.has_optimum]
    assert cases
    for case in cases:
        law = law_of_case("optimal_multipath", case)
        assert law.block_efficiency == best_of(case.pair, Iid(case.num_drafts)), case


def test_every_special_verifier_meets_an_optimum() -> None:
    for name in SPECIAL:
        cases = [case for group in GROUPS.values() for case in group if case.has_optimum]
        assert sum(process_of(name, case) is not None for case in cases) >= 20, name


@first_is_quick("name", ["token", "block", "greedy_multipath", "spectr"], quick=4)
def test_lossless_on_the_largest_pair(name: str) -> None:
    """V = 4, L = 3, K = 3: 64 leaves, up to 262 144 tuples of drafts."""
    law = output_law(name, instances.random_rational(43_300, 4, 3), 3)
    assert law.total_variation <= (0 if verifiers[name].exact else 1e-12)


LEAST_FLAGGED = {"greedy_block": Fraction(1, 4), "spectr_gbv": Fraction(3, 4)}
"""Of the 75 random pairs of two drafted tokens, K = 2: greedy_block fails on 25, spectr_gbv on 59; any
other fails on one at least."""


@pytest.mark.parametrize("name", UNCLAIMED)
def test_what_is_not_claimed_is_not_so(name: str) -> None:
    """Every pair gets a certificate, and many of them flag the algorithm as printed."""
    cases = [case for group in ("random-V2-L2-K2", "random-V3-L2-K2") for case in GROUPS[group]]
    verdicts = [bool(certify(name, case.pair, case.num_drafts, with_optimum=False)) for case in cases]
    assert len(verdicts) == 36
    assert verdicts.count(False) >= LEAST_FLAGGED.get(name, Fraction(1, 75)) * len(verdicts)


@pytest.mark.parametrize("group", ["uniform_equal", "equal_models"])
def test_spectr_gbv_is_flagged_where_it_divides_zero_by_zero(group: str) -> None:
    """Identical models, K >= 2: all drafts can be rejected, though p - q has no mass.  No exception."""
    cases = [case for case in GROUPS[group] if case.num_drafts > 1]
    assert len(cases) == 4
    for case in cases:
        assert not certify("spectr_gbv", case.pair, case.num_drafts, with_optimum=False), case


@first_is_quick("group", ONE_POSITION, quick=5)
def test_one_position_is_optimal_transport(group: str) -> None:
    """At L = 1 otm accepts with α_K, and kseq with no more.  (GENERAL: test_general_verifiers.py.)"""
    judged_pairs = 0
    for case, law in judged("otm", group):
        if case.pair.draft_length == 1:
            judged_pairs += 1
            rows = case.pair.target[0][0], case.pair.draft[0][0]
            best = optimal_acceptance(*rows, case.num_drafts).value
            assert law.length_probs[1] == best, case
            assert Fraction(law_of_case("kseq", case).length_probs[1]) <= best + Fraction(1, 10**12), case
    assert judged_pairs > 0


ONE_DRAFT = {
    "kseq": "token",
    "spectr": "token",
    "multi_round": "token",
    "multi_round_without_replacement": "token",
    "otm": "token",
    "greedy_multipath": "block",
    "mixed_multipath": "block",
    "scored_multipath": "block",
    "traversal": "block",
    "conditional_transport": "block",
    "spectr_gbv": "greedy_block",
}
"""With one draft the first is the second."""


@first_is_quick("name", ONE_DRAFT, quick=4)
def test_one_draft_reductions(name: str) -> None:
    cases = [case for group in GROUPS.values() for case in group if case.pair.vocab_size**2 <= 9]
    compared = 0
    for case in cases[::3]:
        one = Case(case.name, case.pair, 1, case.has_optimum)
        process = process_of(name, one)
        if process is None:
            continue
        law = output_law(name, one.pair, drafts=process)
        expected = law_on_one_path(ONE_DRAFT[name], law.pair)
        assert_same_law(law, expected, 0.0 if verifiers[name].exact and name != "otm" else 1e-12)
        compared += 1
    assert compared >= 20


@pytest.mark.parametrize("group", GROUPS)
def test_greedy_block_solves_block_transport(group: str) -> None:
    """block2024 Eq. 40-42: E[τ] = Σ_l Σ_a min(p(a), q(a)), never below block (Theorem 3)."""
    for case in GROUPS[group]:
        reached = law_on_one_path("greedy_block", case.pair).block_efficiency
        assert reached - 1 == block_transport_value(case.pair), case
        assert reached >= law_on_one_path("block", case.pair).block_efficiency, case


def test_block_and_token_agree_at_one_position_only() -> None:
    """At L = 1 they are one algorithm; at L = 2 the two-token pair tells them apart."""
    for group in GROUPS:
        for case in (case for case in GROUPS[group] if case.pair.draft_length == 1):
            assert_same_law(law_on_one_path("block", case.pair), law_on_one_path("token", case.pair))
    longer = instances.two_token(2)
    assert output_law("block", longer).block_efficiency > output_law("token", longer).block_efficiency
