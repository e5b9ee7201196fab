"""The certificate of an audit: the verdict, and the findings on every pair.

The verdicts are those of every result, and ``RELAXATION``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar

from spectheory.auditing.rounds.batch_battery import shapes_of_batches
from spectheory.auditing.subjects.provenance import Provenance
from spectheory.auditing.verdicts.cases import DRAWN, FOLLOWED, PROBED, RISK, AuditCase
from spectheory.exact.certificate import Certificate
from spectheory.foundation.documents import count_text, to_json
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, UNDECIDED, Result, Templates
from spectheory.foundation.scope import SCOPE_FACTS, Scope
from spectheory.pairs.contexts import context_number

RELAXATION = "equals its stated relaxation"
"""The verdict on a sampler that is lossy by design: it is not lossless, and has no defect."""
BOUNDARY = "boundary"
"""The kind of a finding that is not part of a verdict."""

# What every audit rests on; docs/audits.md lists it.
ASSUMPTIONS = (
    "elementwise functions are monotone in each random number, as their rounding is; two points inside "
    "every cell of a comparison were probed",
    "multinomial, bernoulli, randint and races of exponential or Gumbel numbers are drawn from the exact law "
    "of the floats they are given; the weights e^x of Gumbel numbers are rounded to float64",
    "in a race -log u of a uniform number u is an exponential number, as real numbers, and a shift or clamp "
    "of at most 2^-23 before a logarithm is left out",
    "numbers that kernels make out of a seed and a counter are uniform, and independent where one of them "
    "differs",
    "source semantics on a CPU: a compiled kernel may round in another way",
    "a sampler draws all its numbers from the functions that are replaced, and keeps nothing for longer than "
    "two calls: one run of eight was made again, with ordinary numbers; tokens are read when a call ends, "
    "and its module changes nothing in torch, numpy or this package",
    "a sampler does not ask of what kind its random numbers, its generator or its tensors are, nor where, "
    "when or in which mode of torch it runs",
    "rows are given as they are: a filter, a penalty or another processor inside the sampler is not known",
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AuditCertificate(Result):
    """The verdict on a shipped sampler.

    Attributes:
        sampler, signature: its name and how it is called.
        verdict: lossless, not lossless, undecided, or ``RELAXATION``.
        reasons: the reasons of the verdict, in sentences; empty for a lossless sampler.
        cases: one per pair.
        counterexample: the certificate on the pair that ``reasons`` names, where the law is not the target's.
            ``None`` if the sampler states the law of another verifier.
        relaxation: the law that the sampler states; empty if this is the target's.
        provenance: the code that was run.
        primitives: the random functions that we replaced, and the laws of their numbers.
        findings: defects that do not depend on the law, and findings at the boundary: (subject, text).
        batches: the kinds of batches in which we compared a request with the same request alone.
        stand_ins: the parts around the shipped code that we replaced.
        seeds, probes: the seeds of the runs, and the checks that we made by further runs.
        note: a remark, for example on a version that was not tested.
        ways: why we did not follow or did not probe the code; empty if we followed it.
        batches_within: the error of the laws of batches, if we learned them from calls.
        scope: the cases that the verdict covers.
    """

    sampler: str
    signature: str
    verdict: str
    reasons: tuple[str, ...]
    cases: tuple[AuditCase, ...]
    counterexample: Certificate | None
    relaxation: str = ""
    provenance: Provenance
    primitives: tuple[str, ...] = ()
    findings: tuple[tuple[str, str], ...] = ()
    scope: Scope
    batches: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    probes: tuple[str, ...] = ()
    note: str = ""
    ways: tuple[str, ...] = ()
    batches_within: float = 0.0

    @property
    def is_defective(self) -> bool:
        """Whether a defect was found."""
        return self.verdict == NOT_LOSSLESS

    @property
    def is_decided(self) -> bool:
        """Whether the verdict is not *undecided*."""
        return self.verdict != UNDECIDED

    @property
    def is_lossless(self) -> bool:
        """Whether the law is the target's on every pair, exactly or up to arithmetic."""
        return self.verdict == LOSSLESS

    def __bool__(self) -> bool:
        return self.is_lossless

    def without_code(self) -> "AuditCertificate":
        """Return the certificate without the sampler, which cannot be pickled.

        The law in the counterexample then has no verifier and no numbers.
        """
        wrong = self.counterexample
        if wrong is None or wrong.law is None:
            return self
        law = replace(wrong.law, verifier=None, numbers=())  # type: ignore[arg-type]
        return replace(self, counterexample=replace(wrong, law=law))

    @property
    def total_variation(self) -> Fraction | None:
        """The largest total variation of all pairs.  ``None`` if no case was judged."""
        return max((case.total_variation for case in self.cases), default=None)

    @property
    def forbidden(self) -> Fraction | None:
        """The largest probability of forbidden outputs.  ``None`` if no case was judged."""
        return max((case.forbidden for case in self.cases), default=None)

    @property
    def least_efficient(self) -> AuditCase | None:
        """The case with the largest gap to the optimum.

        ``None`` if a law is wrong or not decided: more tokens are no gain if their law is not the target's.
        """
        known = [case for case in self.cases if case.gap is not None]
        if not known or any(case.is_wrong or case.is_open for case in self.cases):
            return None
        return max(known, key=lambda case: case.gap or Fraction(0))

    @property
    def block_efficiency(self) -> Fraction | None:
        """Tokens per target call of the least efficient case."""
        return None if self.least_efficient is None else self.least_efficient.block_efficiency

    @property
    def optimum(self) -> Fraction | None:
        """The optimum of the least efficient case, in tokens per target call."""
        return None if self.least_efficient is None else self.least_efficient.optimum

    @property
    def gap(self) -> Fraction | None:
        """The gap of the least efficient case, in tokens per target call."""
        return None if self.least_efficient is None else self.least_efficient.gap

    @property
    def boundary(self) -> tuple[str, ...]:
        """Findings on forbidden tokens, which are reported beside the verdict."""
        return tuple(text for kind, text in self.findings if kind == BOUNDARY)

    facts: ClassVar[Templates] = {
        "code": "{release}, sha256 {sha256}",
        "called as": "{signature}",
        "note": "{note}",
        "tokens per call": "{tokens}",
        "scope": "{looked_at}",
        **SCOPE_FACTS,
        "batches of": "{batches}",
        "stated law": "{relaxation}",
        "largest total variation": "{total_variation}",
        "because": "{reasons}",
        BOUNDARY: "{boundary}",
        "counterexample": "{in_words}",
        "rows there": "{rows_there}",
        "random numbers": "{primitives}",
        "stand-in": "{stand_ins}",
        "way": "{ways}",
        "probed": "{probes}",
    }
    columns: ClassVar[Templates] = {
        "sampler": "{sampler}",
        "code": "{code}",
        "verdict": "{verdict}",
        "total variation": "{total_variation:.3g}",
        "forbidden": "{forbidden:.3g}",
        "scope": "{looked_at}",
        "because": "{because}",
    }

    @property
    def answers(self) -> tuple[str, ...]:  # type: ignore[override]
        """The counterexample; but the reason if a run has no valid output, as we may call it wrongly."""
        fails = any(case.undefined for case in self.cases)
        found = ("because", "counterexample") if fails else ("counterexample", "because")
        return (*found, "tokens per call", "scope")

    fine_print: ClassVar[tuple[str, ...]] = (
        "drafts", "arithmetic", "tolerance", "batches of", "stand-in", "random numbers", "way", "probed",
    )  # fmt: skip

    @property
    def basis(self) -> str | None:
        """The weakest way on which the verdict rests: followed, probed or drawn.  ``None`` without a case."""
        wrong = [case.basis for case in self.cases if case.is_wrong]
        of_batches = [PROBED] if self.batches_within else []
        bases = wrong[:1] or [case.basis for case in self.cases] + of_batches
        return max(bases, key=(FOLLOWED, PROBED, DRAWN).index, default=None)

    @property
    def within(self) -> float | None:
        """Bound on the total variation between probed laws and true laws; confidence 1 - 10^-6 for all.

        0 if nothing was probed, and ``None`` without a basis.
        """
        cases = (float(case.undecided) for case in self.cases if case.basis == PROBED)
        return None if self.basis is None else max((self.batches_within, *cases))

    @property
    def would_have_been_seen(self) -> float | None:
        """The total variation that draws would have detected on every pair, each with probability 0.99.

        0 if nothing was drawn, and ``None`` without a basis.
        """
        cases = (float(case.undecided) for case in self.cases if case.basis == DRAWN)
        return None if self.basis is None else max(cases, default=0.0)

    @property
    def basis_text(self) -> str:
        """The basis, and the error that it leaves open.  "" without a basis."""
        if self.verdict == LOSSLESS and self.basis == PROBED:
            return f"{PROBED}, within {self.within:.2g} at confidence 1-{RISK:g}"
        if self.verdict == UNDECIDED and self.basis == DRAWN:
            return f"{DRAWN}, a total variation of {self.would_have_been_seen:.2g} would have been seen"
        return self.basis or ""

    def judgement(self) -> tuple[str, str]:
        if self.basis is None:
            seen = "no case was judged" if self.verdict == UNDECIDED else "in batches; no pair was judged"
            return self.verdict, f"{self.sampler}, {seen}"
        words = f"{self.verdict} ({self.basis_text})"
        return words, f"{self.sampler} on {count_text(len(self.cases), 'case')}"

    def headline(self) -> str:
        """The verdict with its first reason.  Without a reason, the verdict with its scope."""
        if self.reasons:
            return f"{self.sampler}: {self.verdict}: {self.reasons[0]}"
        where = f"{count_text(len(self.cases), 'case')} in float32"
        if self.basis != FOLLOWED:
            where = f"{where} ({self.basis_text})"
        if self.batches:
            where += f" and in batches ({self.batches_text()})"
        return f"{self.sampler}: {self.verdict} on {where}, {self.scope.in_words()}"

    def batches_text(self) -> str:
        """The kinds of batches and the shapes of their requests.  "" without batches."""
        if not self.batches:
            return ""
        return f"{', '.join(self.batches)}; {shapes_of_batches(self.signature, self.batches)}"

    def tokens_text(self) -> str:
        """Tokens per call of the least efficient case, and its gap to the optimum.  "" if not known."""
        case = self.least_efficient
        if case is None or case.optimum is None or case.gap is None:
            return ""
        earned, best, gap = (f"{float(n):.6g}" for n in (case.block_efficiency, case.optimum, case.gap))
        found = f"{earned} on {case.where}, at most {best} without loss"
        is_rounding = abs(case.gap) <= case.draft_length * (case.bound + case.undecided)
        return f"{found}: no gap beyond rounding" if is_rounding else f"{found}: gap {gap}, the largest"

    def scope_text(self) -> str:
        """The scope of the verdict in one line.  ``--verbose`` prints the details."""
        if not self.cases:
            return "no case"
        parts = [
            f"{count_text(len(self.cases), 'case')}, (V, L, K) = {self.scope.shapes_text()}",
            self.scope.processes_text(),
            f"batches: {', '.join(self.batches)}" if self.batches else "",
        ]
        return "; ".join(filter(None, parts))

    def shown(self) -> dict[str, Any]:
        """The code, exact numbers and the counterexample in words."""
        code, found = self.provenance, self.counterexample
        return {
            "code": f"{code.package} {code.version}".strip() or code.file,
            "release": f"{code.package} {code.version} {code.file}".strip(),
            "sha256": code.sha256[:16] or "none",
            "tokens": self.tokens_text(),
            "looked_at": self.scope_text(),
            **self.scope.shown(),
            "batches": self.batches_text(),
            "total_variation": self.total_variation,
            "forbidden": self.forbidden,
            "boundary": self.boundary,
            "because": next(iter(self.reasons), self.relaxation),
            "in_words": None if found is None else found.in_words(),
            "rows_there": "" if found is None else rows_in_words(found),
        }

    def to_document(self) -> dict[str, Any]:
        """The JSON object of ``spectheory audit --json``.

        The counterexample has the basis of the audit: its numbers are rationals of a law that was followed
        or learned.
        """
        found = self.counterexample
        names = [field.name for field in fields(self) if field.name != "counterexample"]
        names += ["total_variation", "forbidden", "basis", "within", "would_have_been_seen"]
        names += ["block_efficiency", "optimum", "gap"]
        document = {name: to_json(getattr(self, name)) for name in names}
        return document | {
            "lossless": self.is_lossless if self.is_decided else None,
            "scope": self.scope.to_document(),
            "counterexample": None if found is None else found.to_document() | {"basis": self.basis},
        }


def rows_in_words(found: Certificate) -> str:
    """The rows of both models where a counterexample ends, as floats; "" without a path.

    Example:
        >>> from spectheory import certify, instances
        >>> from spectheory.verification.defective import defects
        >>> wrong = certify(defects["target_correction"], instances.bernoulli("1/4", "1/2"))
        >>> rows_in_words(wrong)
        'target (0.5, 0.5), draft (0.75, 0.25) at the root'
    """
    if found.counterexample is None or found.law is None:
        return ""
    pair = found.law.pair
    context = tuple(pair.vocab.index(token) for token in found.counterexample.path[:-1])
    number = context_number(context, pair.vocab_size)
    rows = [f"target {_row_text(pair.target[len(context)][number])}"]
    if len(context) < pair.draft_length:
        rows.append(f"draft {_row_text(pair.draft[len(context)][number])}")
    after = f"after {' '.join(found.counterexample.path[:-1])}" if context else "at the root"
    return f"{', '.join(rows)} {after}"


def _row_text(row: Sequence[Any]) -> str:
    return f"({', '.join(f'{float(prob):.4g}' for prob in row)})"
