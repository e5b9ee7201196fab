"""Certify a verifier on a suite of pairs, to extend the verdict from one pair to the verifier.

"Lossless" on one pair says little.  With two tokens, normalisation hides a wrong residual.  With one drafted
token there are no prefixes to weigh.  With context-free models a row of a wrong context is not noticed.  The
standard suite distinguishes every known-wrong verifier of ``spectheory.defects`` from the lossless verifiers.
"""

import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Any
from zlib import crc32

from spectheory.exact.certificate import Certificate
from spectheory.exact.certifying import certify, tolerance_text
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
from spectheory.exact.suite_certificate import CaseVerdict, SuiteCertificate
from spectheory.foundation.documents import count_text
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.foundation.scope import Scope
from spectheory.pairs.drafts import DraftProcess
from spectheory.verification.machine_proofs import MachineProof, machine_proofs
from spectheory.verification.resolve import find_verifier
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier

_log = logging.getLogger(__name__)


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
        >>> found.verdict, found.verdicts[-1].case
        ('not lossless', 'random_seed6_V3-L1, 1 draft')
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


def largest_share(cases: int) -> float:
    """With 99 % confidence, bound the share of a law on which a verifier fails, if none of N draws failed.

    If it fails on the share f, all N draws miss the failures with probability (1 - f)^N < e^(-fN).  At the
    bound this is 0.01.
    """
    return min(1.0, math.log(100) / cases)


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
        if not found and self.counterexample is None:
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
        if not found and self.wrong_again is None:
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
