"""The verdicts of a suite on one verifier."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from spectheory.exact.certificate import Certificate, basis_of
from spectheory.exact.suite_cases import SuiteCase
from spectheory.foundation.documents import count_text, decimal_text, to_json
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, UNDECIDED, Result, Templates
from spectheory.foundation.scope import SCOPE_FACTS, Scope
from spectheory.verification.machine_proofs import MachineProof


@dataclass(frozen=True)
class CaseVerdict:
    """The verdict on a verifier in one case.

    Attributes:
        case: the name of the case with its draft process.
        is_lossless: whether the verifier is lossless on this pair.
        total_variation: total variation between completed output and target; ``None`` if the verifier fails.
        block_efficiency: tokens per target call; ``None`` if the verifier fails.
        arithmetic: arithmetic of the law.
    """

    case: str
    is_lossless: bool
    total_variation: Any
    block_efficiency: Any
    arithmetic: str

    @staticmethod
    def of(case: SuiteCase, found: Certificate) -> "CaseVerdict":
        return CaseVerdict(
            str(case), bool(found), found.total_variation, found.block_efficiency, found.arithmetic
        )

    def __bool__(self) -> bool:
        return self.is_lossless


@dataclass(frozen=True, eq=False, repr=False)
class SuiteCertificate(Result):
    """The verdicts of a suite on one verifier.

    Attributes:
        verifier, source: name of the verifier, and its paper or origin.
        verdicts: one verdict per certified case.
        reruns: verdicts of cases certified again in floats, with the verifier bound as in ``simulate``.
        counterexample: certificate of the first of ``failures``; the cases of the standard suite are sorted
            by size.
        refused: the reason of each refusal, by case.
        scope: the cases that the verdict covers.
        random: the number and the seed of the random pairs, a description of their law, and
            ``largest_share``: with 99 % confidence, the verifier fails on at most this share of that law.
            None if there are no random pairs, or if a random pair failed.
        proved_for: shapes for which a stored proof says that this code is lossless on every pair.
        machine_proofs: the theorems about a published algorithm, for the draft processes of the cases; they
            are no basis of the verdict.
    """

    verifier: str
    source: str
    verdicts: tuple[CaseVerdict, ...]
    reruns: tuple[CaseVerdict, ...]
    counterexample: Certificate | None
    refused: Mapping[str, str]
    scope: Scope
    random: Mapping[str, Any] | None = None
    proved_for: tuple[str, ...] = ()
    machine_proofs: tuple[MachineProof, ...] = ()

    @property
    def verdict(self) -> str:
        """``"lossless"``, ``"not lossless"``, or ``"undecided"`` if no case was certified."""
        return LOSSLESS if self else NOT_LOSSLESS if self.failures else UNDECIDED

    @property
    def basis(self) -> str:
        """The basis of the smallest failure.  If there is none, the most exact basis of all verdicts."""
        decided = self.failures[:1] or self.verdicts
        return basis_of(min((verdict.arithmetic for verdict in decided), default="exact"))

    def __bool__(self) -> bool:
        """Whether the verifier is lossless on all certified cases, of which there is at least one."""
        return bool(self.verdicts) and not self.failures

    @property
    def failures(self) -> tuple[CaseVerdict, ...]:
        """The verdicts that are not lossless, with reruns last."""
        return tuple(verdict for verdict in (*self.verdicts, *self.reruns) if not verdict.is_lossless)

    facts: ClassVar[Templates] = {
        "algorithm": "{algorithm}",
        "cases": "{cases} of a pair and its drafts, {again} in floats, {failures} failed",
        "(V, L, K)": "{shapes}",
        **SCOPE_FACTS,
        "random pairs": "{random_cases} pairs with seed {random_seed}, drawn from {random_law}: with 99 % "
        "confidence it fails on at most {random_largest_share:.2g} of it",
        "every pair of": "{proved}",
        "beyond these pairs": "{machine_proved}",
        "smallest failure": "{smallest_failure}",
        "counterexample": "{in_words}",
    }

    answers: ClassVar[tuple[str, ...]] = ("counterexample", "every pair of", "cases")
    fine_print: ClassVar[tuple[str, ...]] = tuple(SCOPE_FACTS)

    def judgement(self) -> tuple[str, str]:
        cases = count_text(len(self.verdicts), "case")
        failed = len({verdict.case for verdict in self.failures})
        without_law = len({verdict.case for verdict in self.failures if verdict.total_variation is None})
        about = f"{failed} of {cases} of the suite failed" if failed else f"{cases} of the suite"
        about += f", {without_law} with an error in place of a law" if without_law else ""
        return f"{self.verdict} ({self.basis})", f"{self.verifier}, {about}"

    def headline(self) -> str:
        """Describe the verdict and its scope.

        For a failure, name the pair on which the verifier raises, or else the pair with the largest
        deviation.
        """
        cases = f"{count_text(len(self.verdicts), 'case')} of the suite"
        if self:
            found = f"lossless on {cases}"
        else:
            fails = [verdict for verdict in self.failures if verdict.total_variation is None]
            worst = max(fails or self.failures, key=lambda v: round(float(v.total_variation or 0), 9))
            off = "it fails" if fails else f"total variation {decimal_text(worst.total_variation)}"
            found = (
                f"NOT lossless, {off} on {worst.case} "
                f"({worst.arithmetic}); {len({verdict.case for verdict in self.failures})} of {cases} failed"
            )
        drafts = f"{self.scope.processes_text()} drafts"
        return f"{self.verifier}: {found}, in {self.scope.arithmetic}, {drafts}, {self.scope.in_words()}"

    def shown(self) -> dict[str, Any]:
        """Write the source, the scope and the smallest counterexample as texts."""
        found = self.counterexample
        return {
            "algorithm": self.source,
            "again": count_text(len(self.reruns), "rerun"),
            **self.scope.shown(),
            "proved": ", ".join(self.proved_for) or None,
            "machine_proved": "; ".join(proof.in_words() for proof in self.machine_proofs) or None,
            **{f"random_{name}": value for name, value in (self.random or {}).items()},
            "smallest_failure": None if found is None else self.failures[0].case,
            "in_words": None if found is None else found.in_words(),
        }

    def to_document(self) -> dict[str, Any]:
        found = self.counterexample
        return {
            "verifier": self.verifier,
            "verdict": self.verdict,
            "basis": self.basis,
            "lossless": bool(self),
            "cases": len(self.verdicts),
            "failures": len({verdict.case for verdict in self.failures}),
            "refused": dict(self.refused),
            "scope": self.scope.to_document(),
            "random": self.random,
            "proved_for": list(self.proved_for),
            "machine_proofs": [proof.theorem for proof in self.machine_proofs],
            "counterexample": None if found is None else found.to_document(),
            "verdicts": [to_json(verdict) for verdict in self.verdicts],
            "reruns": [to_json(verdict) for verdict in self.reruns],
        }
