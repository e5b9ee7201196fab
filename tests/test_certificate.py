"""certify(): golden values of the papers, wrong verifiers caught, users' own verifiers, the JSON document."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

import reference
from law_checks import assert_same_law
from spectheory import certify, instances
from spectheory.drafts import PrefixTree
from spectheory.errors import EnumerationTooLargeError, InvalidOutcomeError, UnknownNameError
from spectheory.law import output_law
from spectheory.outcome import Outcome
from spectheory.pair import ModelPair
from table import GENERAL, groups, random_cases
from user_verifiers import LoopVerifier, UserBlock, UserToken
from wrong_verifiers import (
    MALFORMED,
    NOT_LOSSLESS,
    BlockWithoutWeight,
    IndependentAcceptance,
    TokenTargetResidual,
)

# --------------------------------------------------------------- golden values

TWO_TOKEN_ONE_PATH = [
    # verifier, L, E[tau] (block2024 section 2; theory.md §4)
    ("token", 2, "10/9"),
    ("block", 2, "11/9"),
    ("token", 3, "38/27"),
    ("block", 3, "5/3"),
    ("token", 4, "130/81"),
    ("block", 4, "166/81"),
    ("token", 8, "12610/6561"),
    ("block", 8, "20384/6561"),
]


@pytest.mark.parametrize(("name", "draft_length", "accepted"), TWO_TOKEN_ONE_PATH)
def test_two_token_example_on_one_path(name: str, draft_length: int, accepted: str) -> None:
    """The motivating example of block2024; block is the optimum, token is not."""
    certificate = certify(name, instances.two_token(draft_length))
    assert certificate.block_efficiency == Fraction(accepted) + 1
    assert certificate.is_valid
    assert (certificate.optimum == certificate.block_efficiency) == (name == "block")
    assert certificate.arithmetic == "exact"


def test_two_token_example_at_the_length_of_the_experiments() -> None:
    """L = 8: block earns 20384/6561 + 1 = 26945/6561, exactly the optimum of the program."""
    certificate = certify("block", instances.two_token(8))
    assert certificate.block_efficiency == Fraction(26945, 6561)
    assert certificate.optimum == Fraction(26945, 6561)
    assert certificate.gap_float == 0


@pytest.mark.parametrize(
    ("draft_length", "num_drafts", "efficiency"), [(1, 2, "17/9"), (2, 2, "212/81"), (2, 3, "2018/729")]
)
def test_two_token_example_with_greedy_multipath(draft_length: int, num_drafts: int, efficiency: str) -> None:
    """theory.md §5; at L = 1, K = 2 it is the optimum (1 + α_2 = 1 + 8/9)."""
    certificate = certify("greedy_multipath", instances.two_token(draft_length), num_drafts)
    assert certificate.block_efficiency == Fraction(efficiency)
    assert certificate.block_efficiency <= certificate.optimum
    if draft_length == 1:
        assert certificate.optimum == Fraction(17, 9)


@pytest.mark.parametrize(
    ("draft_length", "num_drafts", "efficiency"), [(1, 2, 1.811420), (2, 2, 2.405487), (2, 3, 2.593306)]
)
def test_two_token_example_with_spectr(draft_length: int, num_drafts: int, efficiency: float) -> None:
    """theory.md §5, to the six decimals given."""
    certificate = certify("spectr", instances.two_token(draft_length), num_drafts)
    assert certificate.block_efficiency == pytest.approx(efficiency, abs=5e-7)
    assert certificate.arithmetic == "float64"
    assert certificate.is_valid
    assert certificate.gap_float > 0


def test_greedy_multipath_can_be_worse_than_block_on_one_path() -> None:
    """Two fair coins, L = 1, K = 2: r = (1/4, 3/4), 7/4 < 2 (theory.md Statement 5.7)."""
    certificate = certify("greedy_multipath", instances.uniform_equal(1), 2)
    assert certificate.block_efficiency == Fraction(7, 4)
    assert certificate.optimum == 2
    assert certify("block", instances.uniform_equal(1), 2).block_efficiency == 2


@pytest.mark.parametrize("num_drafts", [1, 2, 3])
def test_optimum_lies_between_its_bounds(num_drafts: int) -> None:
    """lower <= optimum <= upper, as floats, and within 1e-9 of each other for rational programs."""
    for case in random_cases(2, 2, 2, 6):
        certificate = certify("greedy_multipath", case.pair, num_drafts)
        assert isinstance(certificate.optimum, Fraction)
        assert Fraction(certificate.best.lower) <= certificate.optimum <= Fraction(certificate.best.upper)
        assert certificate.best.upper - certificate.best.lower < 1e-9
        assert float(certificate.optimum) == float(certificate.optimum)
        assert certificate.gap_float == float(certificate.optimum - certificate.block_efficiency)


def test_float_pairs_are_certified_within_a_tolerance() -> None:
    """float64 rows: the same verdicts, ``None`` for nothing, bounds around the optimum."""
    for case in random_cases(2, 2, 2, 6):
        exact, in_float = (certify("block", pair, 2) for pair in (case.pair, case.pair.to_float()))
        assert in_float.arithmetic == "float64"
        assert in_float.is_valid
        assert in_float.counterexample is None
        assert in_float.block_efficiency == pytest.approx(float(exact.block_efficiency), abs=1e-12)
        assert in_float.best.value_float == pytest.approx(float(exact.optimum), abs=1e-6)
        assert in_float.best.lower - 1e-12 <= exact.optimum <= in_float.best.upper + 1e-12


# ------------------------------------------------------------- wrong verifiers


@pytest.mark.parametrize("verifier", NOT_LOSSLESS, ids=lambda verifier: verifier.name)
@pytest.mark.parametrize(
    "pair", [instances.two_token(2), instances.sticky_chain(2)], ids=["two_token", "sticky_chain"]
)
def test_wrong_verifiers_are_caught(verifier: LoopVerifier, pair: ModelPair) -> None:
    """Not target-matching, a positive total variation, and a counterexample that is one."""
    num_drafts = 2 if isinstance(verifier, IndependentAcceptance) else 1
    certificate = certify(verifier, pair, num_drafts)
    assert not certificate.target_matching
    assert not certificate.is_valid
    assert isinstance(certificate.total_variation, Fraction)
    assert certificate.total_variation > 0
    for deviation in (certificate.counterexample, certificate.worst_path):
        assert deviation is not None
        path = tuple(pair.vocab.index(name) for name in deviation.path)
        completed = completed_law_acted_out(verifier, pair, num_drafts)
        reached = sum(mass for leaf, mass in completed.items() if leaf[: len(path)] == path)
        assert deviation.law == reached
        assert deviation.target == reference.target_prob(pair, path)
        assert deviation.law != deviation.target
    assert len(certificate.worst_path.path) == pair.draft_length + 1
    deviations = [
        abs(mass - reference.target_prob(pair, leaf))
        for leaf, mass in completed_law_acted_out(verifier, pair, num_drafts).items()
    ]
    assert certificate.total_variation == sum(deviations) / 2
    assert max(deviations) == abs(certificate.worst_path.law - certificate.worst_path.target)


def completed_law_acted_out(verifier: LoopVerifier, pair: ModelPair, num_drafts: int) -> dict[Any, Fraction]:
    """The completed output law of a loop verifier, tuple after tuple, in plain Fractions."""
    size, length = pair.vocab_size, pair.draft_length
    completed = dict.fromkeys(product(range(size), repeat=length + 1), Fraction(0))
    for drafts in product(reference.leaves(pair), repeat=num_drafts):
        weight = Fraction(1)
        for path in drafts:
            weight *= reference.draft_prob(pair, path)
        if weight == 0:
            continue
        target_rows = [[reference.target_row(pair, path[:i]) for i in range(length + 1)] for path in drafts]
        draft_rows = [[reference.draft_row(pair, path[:i]) for i in range(length)] for path in drafts]
        stops, rows = verifier.law_given_drafts([list(path) for path in drafts], target_rows, draft_rows)
        for k, path in enumerate(drafts):
            for i in range(length + 1):
                for y in range(size):
                    output = (*path[:i], y)
                    for rest in product(range(size), repeat=length - i):
                        full = (*output, *rest)
                        steps = [
                            reference.target_row(pair, full[:j])[full[j]] for j in range(i + 1, length + 1)
                        ]
                        probability = weight * stops[k][i] * rows[k][i][y]
                        for step in steps:
                            probability *= step
                        completed[full] += probability
    return completed


@pytest.mark.parametrize("num_drafts", [1, 2, 3, 4])
def test_independent_acceptance_on_the_example_of_spectr(num_drafts: int) -> None:
    """spectr2023 section 4: draft Ber(1), target Ber(1/2): a head comes out with probability 1 - 2^-K."""
    certificate = certify(IndependentAcceptance(), instances.bernoulli("1", "1/2"), num_drafts)
    heads = 1 - Fraction(1, 2**num_drafts)
    assert certificate.first_token_law == (1 - heads, heads)
    assert certificate.target_matching == (num_drafts == 1)
    # the second token is the target's: the first token carries all of the defect
    assert certificate.total_variation == heads - Fraction(1, 2)
    if num_drafts > 1:
        assert len(certificate.counterexample.path) == 1
        assert certificate.counterexample.target == Fraction(1, 2)
        assert certificate.counterexample.law in (heads, 1 - heads)


def test_target_residual_by_hand() -> None:
    """Two tokens, L = 1: A comes out with 2/3 * 1/2 + (2/3 * 1/2) * 1/3 = 4/9, not 1/3."""
    certificate = certify(TokenTargetResidual(), instances.two_token(1))
    assert certificate.counterexample.path == ("A",)
    assert certificate.counterexample.law == Fraction(4, 9)
    assert certificate.counterexample.target == Fraction(1, 3)
    assert certificate.total_variation == Fraction(1, 9)
    assert certificate.first_token_law == (Fraction(4, 9), Fraction(5, 9))


def test_misprinted_block_is_right_where_the_weight_is_one() -> None:
    """At L = 1 the only weight in Eq. 4 is w = 1 at the root: the misprint shows from L = 2 on."""
    assert certify(BlockWithoutWeight(), instances.two_token(1)).is_valid
    assert not certify(BlockWithoutWeight(), instances.two_token(2)).is_valid


def test_published_verifiers_have_no_counterexample() -> None:
    """The partner of the wrong ones: nothing is found where nothing is wrong."""
    for name in GENERAL:
        certificate = certify(name, instances.sticky_chain(2), 2)
        assert certificate.is_valid
        assert certificate.counterexample is None
        assert certificate.worst_path is None
        assert certificate.antichain_violation is None


@pytest.mark.parametrize("what", MALFORMED)
def test_what_is_not_a_conditional_law_is_refused(what: str) -> None:
    """Shapes, signs, sums and arithmetic are checked; the error names verifier and defect."""
    verifier, message = MALFORMED[what]
    with pytest.raises(InvalidOutcomeError, match=message) as caught:
        certify(verifier, instances.two_token(2))
    assert repr(verifier.name) in str(caught.value)


def test_undefined_outputs_are_part_of_the_defect() -> None:
    """A row of zeros says that the output is undefined: certified, with the probability of it."""
    verifier = type(MALFORMED["rows of one half"][0])("silent", rows=lambda array: array * 0)
    certificate = certify(verifier, instances.two_token(1))
    assert certificate.undefined == 1
    assert certificate.total_variation == 1
    assert not certificate.is_valid
    assert certificate.to_document()["undefined"] == "1"
    assert certify("token", instances.two_token(1)).undefined == 0


class Broken:
    """A user's verifier whose code fails."""

    name = "broken"

    def outcome(self, *arguments: object) -> Outcome:
        raise KeyError("x")


class NotAnOutcome:
    """A user's verifier that returns a number."""

    def outcome(self, *arguments: object) -> int:
        return 3


def test_users_code_that_fails_is_named() -> None:
    """The error names the verifier and what happened, and chains the original."""
    with pytest.raises(InvalidOutcomeError, match=r"'broken' failed: KeyError: 'x'") as caught:
        certify(Broken(), instances.two_token(1))
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(InvalidOutcomeError, match="'NotAnOutcome' returned int, expected an Outcome"):
        certify(NotAnOutcome(), instances.two_token(1))


def test_a_float_optimum_is_never_below_a_valid_verifier() -> None:
    """What a lossless verifier attains is attainable: the optimal one, exactly, beyond the exact program."""
    certificate = certify("optimal_multipath", instances.two_token(4), 2)
    assert certificate.best.lower <= certificate.block_efficiency <= certificate.best.upper
    assert certificate.gap_float >= 0
    assert "too large" in certificate.optimum_note


def test_not_a_number_is_refused() -> None:
    """A NaN is not a probability, neither in the stops nor in the rows."""
    for what in ("_stop_probs", "_rows"):
        verifier = type(MALFORMED["rows of one half"][0])("not_a_number")
        setattr(verifier, what, lambda array: array * float("nan"))
        with pytest.raises(InvalidOutcomeError, match="not_a_number"):
            certify(verifier, instances.two_token(2).to_float())


def test_rows_of_another_width_are_refused() -> None:
    """A correction row has one entry per token."""
    verifier = type(MALFORMED["rows of one half"][0])("narrow", rows=lambda array: array[..., :1] * 0 + 1)
    with pytest.raises(InvalidOutcomeError, match="narrow"):
        certify(verifier, instances.two_token(2))


def test_float_stops_are_allowed_where_the_verifier_says_so() -> None:
    """``exact = False``: the pair is given in float64 and the certificate says so."""
    verifier = type("FloatToken", (UserToken,), {"exact": False, "name": "float_token"})()
    certificate = certify(verifier, instances.two_token(2))
    assert certificate.arithmetic == "float64"
    assert certificate.block_efficiency == pytest.approx(19 / 9, abs=1e-12)


# --------------------------------------------------------- user-defined verifiers


@pytest.mark.parametrize(("verifier", "name"), [(UserToken(), "token"), (UserBlock(), "block")])
@pytest.mark.parametrize("group", ["two_token", "partial_overlap", "equal_models", "random-V3-L2-K2"])
def test_users_verifiers_have_the_law_of_the_built_in_ones(group: str, verifier: Any, name: str) -> None:
    """A duck-typed object in Fractions: the law of the built-in verifier, exactly."""
    for case in groups()[group]:
        assert_same_law(output_law(verifier, case.pair, 2), output_law(name, case.pair, 2))


def test_certificate_of_a_users_verifier() -> None:
    """Its own name, the safe defaults, the same numbers."""
    certificate = certify(UserBlock(), instances.two_token(3))
    assert certificate.verifier == "user_block"
    assert certificate.source == "user-defined"
    assert certificate.block_efficiency == certificate.optimum == Fraction(8, 3)
    assert certificate.is_valid


# --------------------------------------------------------------------- document


def test_document_of_an_exact_certificate() -> None:
    """Rationals as strings, everything JSON."""
    document = certify("block", instances.two_token(2)).to_document()
    assert json.loads(json.dumps(document)) == document
    assert document["verifier"] == "block"
    assert (document["vocab_size"], document["draft_length"], document["num_drafts"]) == (2, 2, 1)
    assert document["arithmetic"] == "exact"
    assert document["block_efficiency"] == document["optimum"] == "20/9"
    assert document["block_efficiency_float"] == 20 / 9
    assert document["target_matching"] is True
    assert document["prefix_matching"] is True
    assert document["total_variation"] == "0"
    assert document["gap_float"] == 0
    assert document["first_token_law"] == {"A": "1/3", "B": "2/3"}
    assert document["worst_path"] is None
    assert document["counterexample"] is None


def test_document_of_a_float_certificate() -> None:
    """Where the law is float64 the exact block efficiency is null and its float is given."""
    document = certify("spectr", instances.two_token(1), 2).to_document()
    assert json.loads(json.dumps(document)) == document
    assert document["arithmetic"] == "float64"
    assert document["block_efficiency"] is None
    assert document["block_efficiency_float"] == pytest.approx(1.811420, abs=5e-7)
    assert document["total_variation"] == pytest.approx(0, abs=1e-12)
    assert document["optimum_float"] == 17 / 9


def test_document_of_a_counterexample() -> None:
    """The counterexample is written with token names and rationals."""
    document = certify(TokenTargetResidual(), instances.two_token(1)).to_document()
    assert json.loads(json.dumps(document)) == document
    assert document["target_matching"] is False
    assert document["total_variation"] == "1/9"
    assert document["counterexample"] == {
        "path": ["A"], "law": "4/9", "target": "1/3", "drafts": [["A"]], "given_drafts": "2/3",
    }  # fmt: skip


# ----------------------------------------------------------------------- limits


def test_optimum_of_a_large_pair_is_an_interval() -> None:
    """V = 2, L = 5, K = 2: antichains cannot be listed; floats certify the optimum from both sides."""
    certificate = certify("greedy_multipath", instances.two_token(5), 2)
    assert certificate.is_valid
    assert isinstance(certificate.block_efficiency, Fraction)
    assert certificate.best.lower is not None
    assert certificate.best.upper is not None
    assert 0 < certificate.best.upper - certificate.best.lower < 1e-5
    assert certificate.block_efficiency <= certificate.best.upper
    assert certificate.gap_float == float(certificate.best.upper - certificate.block_efficiency)
    document = certificate.to_document()
    assert document["optimum"] is None
    assert document["optimum_float"] == certificate.best.lower
    assert document["optimum_note"] == certificate.optimum_note
    assert certificate.optimum_note.startswith("too large for the exact program; interior point")


def test_only_the_program_is_too_large() -> None:
    """A prefix tree at L = 5: the law is certified, the optimum is not, and the note says why."""
    certificate = certify("token", instances.two_token(5), drafts=PrefixTree((2, 1, 1, 1, 1)))
    assert certificate.is_valid
    assert certificate.prefix_matching is None
    assert certificate.optimum is None
    assert certificate.best is None
    assert certificate.gap_float is None
    assert "antichains" in certificate.optimum_note
    assert "limit" in certificate.optimum_note
    document = certificate.to_document()
    assert document["optimum"] is None
    assert document["optimum_note"] == certificate.optimum_note


def test_optimum_can_be_left_out() -> None:
    """``with_optimum=False`` solves nothing."""
    certificate = certify("block", instances.two_token(2), with_optimum=False)
    assert certificate.optimum is None
    assert certificate.gap_float is None
    assert certificate.optimum_note == "not asked for"


def test_errors_pass_through() -> None:
    """The law is too large, or the verifier unknown: no certificate, a clear error."""
    with pytest.raises(EnumerationTooLargeError, match="exceed max_tuples = 100"):
        certify("spectr", instances.two_token(4), 2, max_tuples=100)
    with pytest.raises(UnknownNameError, match="greedy_multipath"):
        certify("greedy", instances.two_token(1))
