"""A result is true in Python exactly if its verdict is lossless; one without a verdict refuses, and says why.

Whoever writes ``assert certify(mine, pair)`` must be told of a wrong verifier.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import spectheory
from audits.release_history import NOT_THERE, AuditedRelease, History
from audits.specimens.samplers import greedy_acceptance, token_verification
from cli_support import write_pair
from spectheory import (
    acceptance,
    audit,
    certify,
    instances,
    optimum,
    output_law,
    prove,
)
from spectheory.auditing.subjects.relaxations import mixture
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.verdicts.audit_certificate import RELAXATION
from spectheory.command_line.main import main
from spectheory.exact.iteration import first_tokens_law
from spectheory.exact.suite import certify_suite
from spectheory.exact.suite_cases import SuiteCase
from spectheory.exact.suite_certificate import SuiteCertificate
from spectheory.foundation.errors import InvalidInputError, NoVerdictError
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, UNDECIDED, Result, Table
from spectheory.optima import (
    fewest_calls,
    on_path_program,
    optimal_acceptance,
    optimal_rankings,
    path_selection_optimum,
    solve_exact,
)
from spectheory.optima.context_free.merged_weights import context_free_path_optimum
from spectheory.optima.solving.solution import optimality_residuals
from spectheory.optima.tree_shapes import best_shapes, likeliest_acceptance
from spectheory.pairs.drafts import Iid
from spectheory.simulation import CallSeconds, plan, simulate
from spectheory.verification.defective import defects

PAIR = instances.two_token(1)
ROWS = (["1/3", "2/3"], ["2/3", "1/3"])
WRONG = defects["target_correction"]


def suite(verifier: Any) -> SuiteCertificate:
    return certify_suite(verifier, [SuiteCase("mine", PAIR, Iid(1))])


def audited(sampler: Any, **options: Any) -> Any:
    return audit(sampler, {"thirds": PAIR}, **options)


def normal_coins(paths: Any, target_probs: Any, draft_probs: Any, generator: Any) -> Any:
    import torch

    return token_verification(paths, target_probs, draft_probs, torch.randn(1, generator=generator))


def of_a_relaxation() -> Any:
    """The stated mixture is the target's own law."""
    stated = Shipped(token_verification, "sampler", relaxation=mixture(Fraction(1)), num_drafts=(1,))
    found = audited(stated)
    assert found.verdict == RELAXATION
    return found


def proof(verdict: str) -> Any:
    return replace(prove("token", 2, 1), verdict=verdict)


VERDICTS: dict[str, tuple[Callable[[], Any], bool]] = {
    "pair: right": (lambda: certify("block", PAIR), True),
    "pair: right in floats": (lambda: certify("block", PAIR.to_float()), True),
    "pair: wrong": (lambda: certify(WRONG, PAIR), False),
    "pair: wrong in floats": (lambda: certify(WRONG, PAIR.to_float()), False),
    "suite: right": (lambda: suite("block"), True),
    "suite: wrong": (lambda: suite(WRONG), False),
    "suite: nothing was judged": (lambda: replace(suite("block"), verdicts=()), False),
    "suite: a right case": (lambda: suite("block").verdicts[0], True),
    "suite: a wrong case": (lambda: suite(WRONG).verdicts[0], False),
    "suite: its counterexample": (lambda: suite(WRONG).counterexample, False),
    "audit: right": (lambda: audited(token_verification, drafts=1), True),
    "audit: wrong": (lambda: audited(greedy_acceptance, drafts=1), False),
    "audit: not decided": (lambda: audited(normal_coins, drafts=1), False),
    "audit: the law that it states": (of_a_relaxation, False),
    "proof": (lambda: prove("token", 2, 1), True),
    "proof: optimal": (lambda: prove("token", 2, 1, statement="optimal"), True),
    "proof: refuted": (lambda: prove(WRONG, 2, 1), False),
    "proof: undecided": (lambda: proof("undecided"), False),
    **{
        f"release: {verdict}": (lambda verdict=verdict: AuditedRelease("1", verdict, ""), is_lossless)
        for verdict, is_lossless in {
            LOSSLESS: True,
            RELAXATION: False, NOT_LOSSLESS: False, UNDECIDED: False, NOT_THERE: False,
        }.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("name", VERDICTS)
def test_a_verdict_is_true_exactly_if_it_says_lossless(name: str) -> None:
    """A stated relaxation, a test that does not reject, and what is not decided do not say so."""
    make, is_lossless = VERDICTS[name]
    found = make()
    assert bool(found) is is_lossless
    assert all([found]) is any([found]) is is_lossless


def test_an_assertion_about_a_wrong_verifier_fails() -> None:
    assert certify("block", PAIR)
    with pytest.raises(AssertionError):
        assert certify(WRONG, PAIR)
    with pytest.raises(AssertionError):
        assert suite(WRONG)


@pytest.mark.parametrize(("verifier", "is_lossless"), [("block", True), ("target_correction", False)])
def test_the_exit_status_says_the_same(verifier: str, is_lossless: bool, tmp_path: Path) -> None:
    """Of certify and prove; 0 exactly where the result is true."""
    file = str(write_pair(tmp_path, draft_length=1))
    name = verifier if is_lossless else "spectheory.verification.defective.corrections:TargetCorrection"
    assert (main(["certify", file, "-v", name, "--json"]) == 0) is is_lossless
    assert (main(["prove", name, "--vocab-size", "2", "--draft-length", "1", "--json"]) == 0) is is_lossless


def residuals() -> Any:
    program = on_path_program([PAIR], 1)
    return optimality_residuals(program, solve_exact(program))


WITHOUT: dict[str, Callable[[], Any]] = {
    "a law": lambda: output_law("block", PAIR),
    "a law of two calls": lambda: first_tokens_law("block", instances.two_token(2), 2),
    "an optimum": lambda: optimum(PAIR),
    "an optimum of one path": lambda: context_free_path_optimum(PAIR),
    "an optimum of several calls": lambda: fewest_calls(PAIR, 2),
    "an acceptance": lambda: acceptance(*ROWS, 2),
    "an optimal acceptance": lambda: optimal_acceptance(*ROWS, 2),
    "rankings of a position": lambda: optimal_rankings(*ROWS, 2),
    "their weights": lambda: optimal_rankings(*ROWS, 2).rankings,
    "shapes": lambda: best_shapes(likeliest_acceptance(PAIR, 2), 2)[0],
    "a selection": lambda: path_selection_optimum(PAIR, 2),
    "residuals": residuals,
    "a proof of something else": lambda: prove("block", 2, 1, statement="at_least:token"),
    "estimates": lambda: simulate(PAIR, verifiers=["token"], samples=100),
    "an estimate": lambda: simulate(PAIR, verifiers=["token"], samples=100).estimates[0],
    "a plan": lambda: plan(PAIR, target_rows=2),
    "what a plan takes": lambda: plan(PAIR, target_rows=2).best,
    "seconds of calls": lambda: CallSeconds(0, 1.0, (0.5, 2.0)),
    "a case of an audit": lambda: audited(token_verification, drafts=1).cases[0],
    "several releases": lambda: History("vllm", (AuditedRelease("1", LOSSLESS, ""),)),
    "a table": lambda: Table("", []),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_the_others_are_neither_true_nor_false(name: str) -> None:
    """What the error tells to ask is there, and answers."""
    found = WITHOUT[name]()
    with pytest.raises(NoVerdictError, match=r"; ask \.") as caught:
        bool(found)
    assert isinstance(caught.value, (InvalidInputError, TypeError))
    asked = re.findall(r"[ ,]\.(\w+)", str(caught.value))
    assert asked
    assert all(hasattr(found, field) for field in asked)
    for use in (lambda: found or None, lambda: not found, lambda: any([found]), lambda: all([found])):
        with pytest.raises(NoVerdictError):
            use()


INPUTS = {
    "DecodedText", "DraftProcess", "Iteration", "LinearProgram", "ModelPair", "SamplerVerifier", "SuiteCase",
    "TupleVerifier",
}  # fmt: skip
"""The classes that public functions return and that are no results: inputs, and decoded texts."""


ROOMS = (
    "", ".auditing", ".decoding", ".exact", ".exact.iteration", ".exact.proof", ".exact.suite_cases",
    ".models", ".optima", ".pairs", ".simulation", ".testing", ".verification",
)  # fmt: skip


def returned() -> Iterator[type]:
    """The classes of the package that its public functions return."""
    for room in ROOMS:
        module = import_module(f"spectheory{room}")
        public = [getattr(module, name) for name in getattr(module, "__all__", vars(module))]
        for function in filter(inspect.isfunction, public):
            if function.__module__.startswith(module.__name__):
                home = vars(sys.modules[function.__module__])
                for word in re.findall(r"\w+", str(inspect.signature(function).return_annotation)):
                    known = home.get(word) or getattr(spectheory.auditing, word, None)
                    if inspect.isclass(known) and known.__module__.startswith("spectheory."):
                        yield known


def has_truth(kind: type) -> bool:
    return any("__bool__" in vars(base) for base in kind.__mro__)


def test_the_first_counterexample_is_kept() -> None:
    """Although it is false: the shortest pair, not the last."""
    cases = [SuiteCase(f"{length}", instances.two_token(length), Iid(1)) for length in (1, 2)]
    found = certify_suite(WRONG, cases)
    assert len(found.failures) > 1
    assert found.counterexample is not None
    assert found.counterexample.draft_length == 1


def test_no_class_of_a_result_is_forgotten() -> None:
    """A class that a public function returns says what its truth is, or is named above."""
    found = set(returned())
    assert {kind.__name__ for kind in found if not has_truth(kind)} == INPUTS
    assert {"Certificate", "AuditCertificate", "MinCut", "TokensLaw", "Proof"} <= {
        kind.__name__ for kind in found
    }


def test_partner_a_new_result_must_say_its_truth() -> None:
    class New(Result):
        def to_document(self) -> dict[str, Any]:
            return {}

        def headline(self) -> str:
            return ""

    with pytest.raises(TypeError, match="__bool__"):
        New()  # type: ignore[abstract]
    assert not has_truth(SuiteCase)
