"""certify(): bounds of the optimum, wrong verifiers caught, users' own verifiers, the JSON document."""

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import reference
from deep import first_is_quick
from law_checks import assert_same_law
from spectheory import certify, instances, optimum
from spectheory.exact.law import output_law
from spectheory.exact.suite import certify_suite
from spectheory.exact.suite_cases import SuiteCase
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.pairs.drafts import Iid, PerPath, PrefixTree
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms import verifiers
from spectheory.verification.defective import defects
from spectheory.verification.outcome import Outcome
from table import groups, random_cases
from user_verifiers import UserBlock, UserToken
from wrong_verifiers import Altered


@pytest.mark.parametrize("num_drafts", [1, 2, 3])
def test_optimum_lies_between_its_bounds(num_drafts: int) -> None:
    """lower <= optimum <= upper, as floats, and within 1e-9 of each other for rational programs."""
    for case in random_cases(2, 2, 2, 6):
        certificate = certify("greedy_multipath", case.pair, num_drafts)
        assert isinstance(certificate.optimum, Fraction)
        assert Fraction(certificate.best.lower) <= certificate.optimum <= Fraction(certificate.best.upper)
        assert certificate.best.upper - certificate.best.lower < 1e-9
        assert certificate.gap == certificate.optimum - certificate.block_efficiency


def test_float_pairs_are_certified_within_a_tolerance() -> None:
    for case in random_cases(2, 2, 2, 6):
        exact, in_float = (certify("block", pair, 2) for pair in (case.pair, case.pair.to_float()))
        assert in_float.arithmetic == "float64"
        assert in_float
        assert in_float.counterexample is None
        assert in_float.block_efficiency == pytest.approx(float(exact.block_efficiency), abs=1e-12)
        assert float(in_float.best.value) == pytest.approx(float(exact.optimum), abs=1e-6)
        assert in_float.best.lower - 1e-12 <= exact.optimum <= in_float.best.upper + 1e-12


WRONG = {
    "target_correction": 1,
    "draft_bonus": 1,
    "block_acceptance_without_weight": 1,
    "independent_acceptance": 2,
}
"""Defects, and how many drafts it takes to see them."""


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize(
    "pair", [instances.two_token(2), instances.sticky_chain(2)], ids=["two_token", "sticky_chain"]
)
def test_wrong_verifiers_are_caught(name: str, pair: ModelPair) -> None:
    """Not target-matching, a positive total variation, and a counterexample that is one."""
    certificate = certify(defects[name], pair, WRONG[name])
    assert not certificate.target_matching
    assert not certificate
    assert isinstance(certificate.total_variation, Fraction)
    assert certificate.total_variation > 0
    completed = completed_law(pair, reference.law_of(output_law(defects[name], pair, WRONG[name])))
    deviation = certificate.counterexample
    assert deviation is not None
    path = tuple(pair.vocab.index(token) for token in deviation.path)
    reached = sum(mass for leaf, mass in completed.items() if leaf[: len(path)] == path)
    assert deviation.probability == reached
    assert deviation.target == reference.target_prob(pair, path)
    assert deviation.probability != deviation.target
    deviations = [abs(mass - reference.target_prob(pair, leaf)) for leaf, mass in completed.items()]
    assert certificate.total_variation == sum(deviations) / 2


def completed_law(pair: ModelPair, law: reference.Law) -> reference.Law:
    """The law of L + 1 tokens: every output goes on with the target."""
    return {
        (*path, token): sum(
            law.get(text[:length], 0)
            * reference.target_prob(pair, text)
            / reference.target_prob(pair, text[:length])
            for length in range(1, len(text) + 1)
        )
        for path in reference.leaves(pair)
        for token in range(pair.vocab_size)
        for text in [(*path, token)]
    }


def test_undefined_outputs_are_part_of_the_defect() -> None:
    verifier = Altered("silent", rows=lambda array: array * 0)
    certificate = certify(verifier, instances.two_token(1))
    assert certificate.undefined == 1
    assert certificate.total_variation == 1
    assert not certificate
    assert certificate.to_document()["undefined"] == "1"
    assert certify("token", instances.two_token(1)).undefined == 0


class Broken:
    name = "broken"

    def outcome(self, *arguments: object) -> Outcome:
        raise KeyError("x")


class NotAnOutcome:
    def outcome(self, *arguments: object) -> int:
        return 3


def test_users_code_that_fails_is_not_lossless() -> None:
    """The error and the drafts are named; its law has no number."""
    for verifier, said in (
        (Broken(), "outcome of verifier 'broken' failed: KeyError: 'x'"),
        (NotAnOutcome(), "verifier 'NotAnOutcome' returned int; expected an Outcome"),
    ):
        found = certify(verifier, instances.two_token(1))
        assert not found
        assert (found.verdict, found.block_efficiency, found.gap) == ("not lossless", None, None)
        assert found.failure is not None
        assert found.failure.error.startswith(said)
        assert found.failure.drafts == (("A",),)
        assert said in found.headline()
    with pytest.raises(InvalidOutcomeError, match=r"'broken' failed: KeyError: 'x'") as caught:
        output_law(Broken(), instances.two_token(1))
    assert isinstance(caught.value.__cause__, KeyError)


def test_the_optimal_verifier_attains_the_optimum() -> None:
    """Exactly, where antichains cannot be listed; partner: another lossless verifier does not."""
    pair = instances.two_token(4)
    assert certify("optimal_multipath", pair, 2).gap == 0
    assert certify("greedy_multipath", pair, 2).gap > 0


@pytest.mark.parametrize(("verifier", "name"), [(UserToken(), "token"), (UserBlock(), "block")])
@first_is_quick("group", ["partial_overlap", "equal_models", "random-V3-L2-K2"])
def test_users_verifiers_have_the_law_of_the_built_in_ones(group: str, verifier: Any, name: str) -> None:
    for case in groups()[group][:4]:
        assert_same_law(output_law(verifier, case.pair, 2), output_law(name, case.pair, 2))


def test_optimum_of_a_large_pair_is_an_interval() -> None:
    """V = 2, L = 7, K = 2: beyond 100 leaves floats certify the optimum from both sides."""
    certificate = certify("greedy_multipath", instances.two_token(7), 2)
    assert certificate
    assert isinstance(certificate.block_efficiency, Fraction)
    assert certificate.best.lower is not None
    assert certificate.best.upper is not None
    assert 0 < certificate.best.upper - certificate.best.lower < 1e-5
    assert certificate.block_efficiency <= certificate.best.upper
    assert certificate.gap == certificate.best.upper - certificate.block_efficiency
    document = certificate.to_document()
    assert document["optimum"] is None
    assert document["optimum_float"] == certificate.best.lower
    assert document["optimum_note"] == certificate.optimum_note
    assert certificate.optimum_note.startswith("too large for the exact program; interior point")


def test_trees_need_no_list() -> None:
    """A prefix tree at L = 5: prefix matching and the optimum are decided in both arithmetics."""
    pair, tree = instances.two_token(5), PrefixTree((2, 1, 1, 1, 1))
    exact, floats = (certify("token", it, drafts=tree) for it in (pair, pair.to_float()))
    assert exact.prefix_matching
    assert floats.prefix_matching
    assert exact.optimum > exact.block_efficiency
    assert exact.optimum <= optimum(pair, 2).upper
    assert floats.best.lower <= exact.optimum <= floats.best.upper


class OwnBlock:
    name = "own_block"

    def outcome(self, *given: Any) -> Outcome:
        return verifiers["block"].outcome(*given)


class ChangesTheNextCalls(OwnBlock):
    """Lossless in one call, and puts the draft's rows in place of the target's for the next ones."""

    def modified_target_rows(self, target_rows: Any, draft_rows: Any, *_: Any) -> Any:
        return 1 * draft_rows


FEW = [SuiteCase(name, instances.two_token(2), Iid(drafts)) for name, drafts in (("one", 1), ("two", 2))]


def test_a_verdict_is_of_one_call() -> None:
    """It says so of a verifier that changes the target between calls."""
    calls = "later calls: modified_target_rows changes their target"
    for verifier, expected in (
        (ChangesTheNextCalls(), (calls,)),
        (OwnBlock(), ()),
        ("block", ()),
    ):
        for found in (certify(verifier, instances.two_token(2)), certify_suite(verifier, FEW)):
            assert set(expected) == {text for text in found.scope.refused if "modified" in text}
            assert ("later calls" in found.headline()) == bool(expected)


def test_certificate_of_a_users_verifier() -> None:
    certificate = certify(UserBlock(), instances.two_token(3))
    assert certificate.verifier == "user_block"
    assert certificate.source == "user-defined"
    assert certificate.block_efficiency == certificate.optimum == Fraction(8, 3)
    assert certificate


def test_document_of_an_exact_certificate() -> None:
    """Rationals are strings; every field of the contract is there, in its order."""
    document = {
        "verifier": "block",
        "verdict": "lossless",
        "basis": "rationals",
        "lossless": True,
        "vocab_size": 2,
        "draft_length": 2,
        "num_drafts": 1,
        "draft_process": "iid",
        "arithmetic": "exact",
        "block_efficiency": "20/9",
        "block_efficiency_float": 20 / 9,
        "target_matching": True,
        "total_variation": "0",
        "undefined": "0",
        "prefix_matching": True,
        "optimum": "20/9",
        "optimum_float": 20 / 9,
        "optimum_lower": 2.222222222222222,
        "optimum_upper": 2.2222222222222223,
        "optimum_note": "single-path LP",
        "gap": "0",
        "gap_float": 0.0,
        "first_token_law": {"A": "1/3", "B": "2/3"},
        "counterexample": None,
        "failure": None,
        "machine_proof": "block_lossless",
        "scope": {
            "arithmetic": "exact",
            "tolerance": "none",
            "shapes": [[2, 2, 1]],
            "processes": ["1 draft"],
            "refused": [],
            "shapes_text": "(2, 2, 1)",
        },
    }
    certificate = certify("block", instances.two_token(2))
    assert json.dumps(certificate.to_document()) == json.dumps(document)
    assert {name: value for name, value in certificate.shown().items() if value is not None} == {
        "algorithm": "block2024 Alg. 2",
        "proved_for_every_pair": "in exact arithmetic, for every V and L: machine proof block_lossless",
        "drafts": "1 draft",
        "lossless": True,
        "block_efficiency": Fraction(20, 9),
        "total_variation": 0,
        "optimum": Fraction(20, 9),
        "gap": 0,
        "gap_in_words": "0; 2.222 of 2.222 tokens per call (100 %)",
        "prefix_matching": True,
        "first_token_law": {"A": Fraction(1, 3), "B": Fraction(2, 3)},
    }


def test_document_of_a_float_certificate() -> None:
    document = certify("spectr", instances.two_token(1), 2).to_document()
    assert json.loads(json.dumps(document)) == document
    assert document["arithmetic"] == "float64"
    assert document["block_efficiency"] is None
    assert document["block_efficiency_float"] == pytest.approx(1.811420, abs=5e-7)
    assert document["total_variation"] == pytest.approx(0, abs=1e-12)
    assert document["optimum_float"] == 17 / 9
    assert document["gap_float"] > 0


def test_only_the_program_is_too_large() -> None:
    """A model per path at L = 5: the law is certified, the optimum is not, and the note says why."""
    pair = instances.two_token(5)
    certificate = certify("token", pair, drafts=PerPath((pair, pair)))
    assert certificate
    assert certificate.prefix_matching is None
    assert certificate.optimum is None
    assert certificate.best is None
    assert certificate.gap is None
    assert "antichains" in certificate.optimum_note
    assert "limit" in certificate.optimum_note
    document = certificate.to_document()
    assert document["optimum"] is None
    assert document["optimum_note"] == certificate.optimum_note


def test_optimum_can_be_left_out() -> None:
    certificate = certify("block", instances.two_token(2), with_optimum=False)
    assert certificate.optimum is None
    assert certificate.gap is None
    assert certificate.optimum_note == "not asked for"


def test_a_violated_limit_in_words() -> None:
    """A law that is the target's, of budgets that no verifier has."""
    found = certify("block", instances.two_token(2))
    assert found.in_words() == "none"
    wrong = replace(found, prefix_matching=False)
    assert wrong.in_words() == "the node budgets violate an antichain inequality"
    assert not wrong
