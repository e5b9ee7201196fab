"""Certify a verifier on a suite of pairs, to extend the verdict from one pair to the verifier.

"Lossless" on one pair says little.  With two tokens, normalisation hides a wrong residual.  With one drafted
token there are no prefixes to weigh.  With context-free models a row of a wrong context is not noticed.  The
standard suite distinguishes every known-wrong verifier of ``spectheory.defects`` from the lossless verifiers.
"""

import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from zlib import crc32

from spectheory.exact.certificate import (
    Certificate,
    basis_of,
    certify,
    tolerance_text,
)
from spectheory.exact.proof.check import proved_shapes
from spectheory.exact.rounded import (
    ARITHMETICS,
    DoesNotRunError,
    RaisesError,
    certify_rounded,
    failed_rounded,
)
from spectheory.exact.suite_cases import (
    MAX_RERUN,
    RANDOM_LAW,
    RANDOM_NAMES,
    SuiteCase,
    random_cases,
    suite_for,
)
from spectheory.foundation.documents import count_text, decimal_text, to_json
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.foundation.results import (
    LOSSLESS,
    NOT_LOSSLESS,
    UNDECIDED,
    Result,
    Templates,
)
from spectheory.foundation.scope import SCOPE_FACTS, Scope
from spectheory.pairs.drafts import DraftProcess
from spectheory.verification.machine_proofs import MachineProof, machine_proofs
from spectheory.verification.resolve import find_verifier
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier

_log = logging.getLogger(__name__)


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
            str(case), found.is_valid, found.total_variation, found.block_efficiency, found.arithmetic
        )

    def __bool__(self) -> bool:
        return self.is_lossless


def largest_share(cases: int) -> float:
    """With 99 % confidence, bound the share of a law on which a verifier fails, if none of N draws failed.

    If it fails on the share f, all N draws miss the failures with probability (1 - f)^N < e^(-fN).  At the
    bound this is 0.01.
    """
    return min(1.0, math.log(100) / cases)


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
        return LOSSLESS if self.is_lossless else NOT_LOSSLESS if self.failures else UNDECIDED

    @property
    def basis(self) -> str:
        """The basis of the smallest failure.  If there is none, the most exact basis of all verdicts."""
        decided = self.failures[:1] or self.verdicts
        return basis_of(min((verdict.arithmetic for verdict in decided), default="exact"))

    @property
    def is_lossless(self) -> bool:
        """Whether the verifier is lossless on all certified cases, of which there is at least one."""
        return bool(self.verdicts) and not self.failures

    def __bool__(self) -> bool:
        return self.is_lossless

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
        about = f"{failed} of {cases} of the suite failed" if failed else f"{cases} of the suite"
        return f"{self.verdict} ({self.basis})", f"{self.verifier}, {about}"

    def headline(self) -> str:
        """Describe the verdict and its scope.

        For a failure, name the pair on which the verifier raises, or else the pair with the largest
        deviation.
        """
        cases = f"{count_text(len(self.verdicts), 'case')} of the suite"
        if self.is_lossless:
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
            "lossless": self.is_lossless,
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


IN_TORCH = ("torch float64", "torch float32")
"""Arithmetics in torch.  A case is rerun in one of the two, chosen by a hash of its name."""
QUICK_ARITHMETICS = ("float64", "float32")


def certify_suite(
    verifier: str | Any,
    suite: Iterable[SuiteCase] | None = None,
    *,
    quick: bool = False,
    cases: int = 0,
    seed: int = 0,
    stop_at_first: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> SuiteCertificate:
    """Certify a verifier on every pair of a suite, and on most pairs again in floats.

    Reruns are in float64, in float32 and in torch, with the verifier bound without the pair
    (``exact.rounded``).  They are compared with the exact target.

    Args:
        verifier: a name, ``"package.module:attribute"``, or any object with ``outcome``.
        suite: the cases; by default ``standard_suite`` for the draft processes of the verifier.
        quick: whether to certify only small cases of the standard suite, and a third of them again in float64
            and float32, without torch.
        cases: number of random pairs to add (``random_cases``).
        seed: seed of the random pairs.
        stop_at_first: whether to stop at the first pair on which the verifier is not lossless.
        progress: called with (finished cases, all cases).

    Raises:
        InvalidInputError: the object is not a verifier, or its ``bind`` refuses every case.
        NotJudgedError: user code fails before it gets drafts, or only on rationals.

    Example:
        >>> from spectheory.verification.defective import defects
        >>> found = certify_suite(defects["shared_uniform"], stop_at_first=True)
        >>> found.is_lossless, found.verdicts[-1].case
        (False, 'random_seed6_V3-L1, 1 draft')
    """
    judged = find_verifier(verifier)
    given = list(suite_for(judged, quick) if suite is None else suite)
    for case in given:
        if not isinstance(case, SuiteCase):
            raise InvalidInputError(
                f"a suite is made of SuiteCase objects, got {case!r}; see standard_suite()"
            )
    drawn = random_cases(judged, cases, seed) if cases else ()
    run = _Run(judged, quick)
    total = len(given) + len(drawn)
    for number, case in enumerate((*given, *drawn)):
        if progress is not None:
            progress(number, total)
        _log.info("%s: case %d of %d, %s", judged.name, number + 1, total, case.name)
        run.judge(case)
        if stop_at_first and run.failed:
            break
    if progress is not None:
        progress(total, total)
    if not run.verdicts:
        reason = next(iter(run.refused.values()), f"there are {total} cases for it")
        raise InvalidInputError(f"verifier {judged.name!r} was judged on no case of the suite: {reason}")
    return run.result(drawn, seed)


class _Run:
    """Collects the verdicts on a verifier."""

    def __init__(self, verifier: Verifier, quick: bool) -> None:
        self.verifier = verifier
        self.arithmetics, self.one_in = (QUICK_ARITHMETICS, 3) if quick else (tuple(ARITHMETICS), 1)
        self.judged: list[SuiteCase] = []
        self.verdicts: list[CaseVerdict] = []
        self.reruns: list[CaseVerdict] = []
        self.counterexample: Certificate | None = None
        self.wrong_again: Certificate | None = None
        self.raised: list[tuple[SuiteCase, RaisesError]] = []
        self.refused: dict[str, str] = {}
        self.left_out: Counter[tuple[str, str]] = Counter()
        self.not_looked_at: dict[str, None] = {}
        self.names: dict[str, None] = {}

    @property
    def failed(self) -> bool:
        return self.counterexample is not None or self.wrong_again is not None

    def judge(self, case: SuiteCase) -> None:
        try:
            found = certify(self.verifier, case.pair, case.process, with_optimum=False)
        except InvalidOutcomeError as error:
            raise type(error)(f"on {case}: {error}") from error.__cause__
        except InvalidInputError:
            try:  # bind again: only a refusal to bind is recorded
                self.verifier.bind(case.process, case.pair)
            except InvalidInputError as error:
                self.refused[str(case)] = str(error)
                return
            raise
        self.judged.append(case)
        self.verdicts.append(CaseVerdict.of(case, found))
        self.not_looked_at |= dict.fromkeys(found.scope.refused)
        self.names[found.verifier] = None
        if not found.is_valid and self.counterexample is None:
            self.counterexample = found
        if found.failure is not None:
            return
        number = crc32(str(case).encode())
        left_out = IN_TORCH[number % 2]
        if case.process.count_tuples(case.pair) <= MAX_RERUN and number % self.one_in == 0:
            for name in self.arithmetics:
                if name != left_out:
                    self._rerun(case, name)

    def _rerun(self, case: SuiteCase, name: str) -> None:
        try:
            found = certify_rounded(self.verifier, case.pair, case.process, name)
        except DoesNotRunError as error:
            if name == "float64" and isinstance(error, RaisesError):
                self.raised.append((case, error))
            else:
                self.left_out[name, str(error)] += 1
            return
        self._add_rerun(case, found)

    def _add_rerun(self, case: SuiteCase, found: Certificate) -> None:
        self.reruns.append(CaseVerdict.of(case, found))
        if not found.is_valid and self.wrong_again is None:
            self.wrong_again = found

    def _count_raised(self) -> None:
        """Count an error on float64 as a failure if the verifier runs on float64 with other drafts."""
        takes_floats = any(verdict.arithmetic == "float64" for verdict in self.reruns)
        for case, error in self.raised:
            # The verifier that a user's ``bind`` returns without a pair may need the pair.
            if takes_floats and isinstance(self.verifier, UserVerifier) and not self.verifier.has_own_bind:
                failed = failed_rounded(self.verifier, case.pair, case.process, "float64", error)
                self._add_rerun(case, failed)
            else:
                self.left_out["float64", str(error)] += 1

    def result(self, drawn: Collection[SuiteCase], seed: int) -> SuiteCertificate:
        self._count_raised()
        names = {str(case) for case in drawn}
        random = [verdict.is_lossless for verdict in self.verdicts if verdict.case in names]
        failed = [verdict for verdict in self.reruns if verdict.case in names and not verdict.is_lossless]
        about = {"cases": len(random), "seed": seed, "law": RANDOM_LAW}
        about |= {"largest_share": largest_share(len(random))} if random else {}
        bound_to_several = f"{self.verifier.name} (bound to {len(self.names)} verifiers)"
        return SuiteCertificate(
            next(iter(self.names)) if len(self.names) == 1 else bound_to_several,
            self.verifier.source,
            tuple(self.verdicts),
            tuple(self.reruns),
            self.wrong_again if self.counterexample is None else self.counterexample,
            self.refused,
            self._scope(),
            about if random and all(random) and not failed else None,
            tuple(proved_shapes(self.verifier)),
            self._machine_proofs(),
        )

    def _machine_proofs(self) -> tuple[MachineProof, ...]:
        processes = {case.process.name for case in self.judged}
        proofs = machine_proofs(self.verifier).items()
        return tuple(dict.fromkeys(proof for process, proof in proofs if process in processes))

    def _scope(self) -> Scope:
        first = dict.fromkeys(verdict.arithmetic for verdict in self.verdicts)
        counts = Counter(verdict.arithmetic for verdict in self.reruns)
        again = [f"{name} ({count})" for name, count in counts.items()]
        reasons = Counter(self.refused.values())
        refused = [f"{count_text(count, 'case')}: {reason}" for reason, count in reasons.items()]
        for (name, reason), count in self.left_out.items():
            refused.append(f"{name} on {count_text(count, 'case')}: {reason}")
        refused += [f"{name}: not asked for" for name in ARITHMETICS if name not in self.arithmetics]
        random = [case for case in self.judged if case.name.startswith(RANDOM_NAMES)]
        shape_of = {str(case): _shape_of(case) for case in random or self.judged}
        shapes = tuple(dict.fromkeys(shape_of.values()))
        for name in counts:
            seen = {shape_of.get(verdict.case) for verdict in self.reruns if verdict.arithmetic == name}
            if missing := len(set(shapes) - seen):
                refused.append(f"{name} at {missing} of {count_text(len(shapes), 'shape')}")
        return Scope(
            " and ".join(map(_in_words, first)) + (f", again in {', '.join(again)}" if again else ""),
            "; ".join(f"{name} {_tolerance(name)}" for name in ARITHMETICS if name in {*first, *counts})
            or tolerance_text(0, 0),
            shapes,
            tuple(sorted({_without_number(case.process) for case in self.judged})),
            (*refused, *self.not_looked_at),
        )


def _shape_of(case: SuiteCase) -> tuple[int, int, int]:
    """Return V, L and K."""
    return case.pair.vocab_size, case.pair.draft_length, case.process.num_drafts


def _without_number(process: DraftProcess) -> str:
    """Name a process without the number of i.i.d. paths, which is part of the shapes (V, L, K)."""
    return process.text if process.shape and process.name != "iid" else process.name


def _tolerance(name: str) -> str:
    return tolerance_text(ARITHMETICS[name].tolerance, ARITHMETICS[name].epsilon)


def _in_words(name: str) -> str:
    return "exact arithmetic" if name == "exact" else f"{name} {_tolerance(name)}"
