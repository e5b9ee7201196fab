"""The certificate of an audit: the verdict, and the findings on every pair.

The verdicts are those of every result, and ``RELAXATION``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar

from spectheory.auditing.rounds.batch_battery import shapes_of_batches
from spectheory.auditing.subjects.shipped import Provenance
from spectheory.exact.certificate import Certificate
from spectheory.foundation.documents import count_text, to_json
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, UNDECIDED, Result, Templates, no_verdict
from spectheory.foundation.scope import SCOPE_FACTS, Scope
from spectheory.pairs.contexts import context_number

FOLLOWED, PROBED, DRAWN = "followed", "probed", "drawn"
"""The three ways.  Each takes over where the one before it cannot go on."""
RISK = 1e-6
"""The probability that a verdict on the basis *probed* or *drawn* is wrong by more than it says."""
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
    "two calls: one run of eight was made twice; tokens are read when a call ends, and its module changes "
    "nothing in torch, numpy or this package",
    "a sampler does not ask of what kind its random numbers, its generator or its tensors are, nor where, "
    "when or in which mode of torch it runs",
    "rows are given as they are: a filter, a penalty or another processor inside the sampler is not known",
)


@dataclass(frozen=True)
class AuditCase:
    """The findings on one pair.

    Attributes:
        pair, vocab_size, draft_length, num_drafts: its name, V, L and K.
        process: how the paths are drafted.
        total_variation: of the completed output from the target (or from the stated law of a relaxation).
        undecided: a bound on the error of the total variation, where random numbers are multiplied or the law
            was learned from calls; of draws, the total variation from which on they would have shown it.
        bound: the largest total variation that rounding to float32 can cause.
        forbidden: the probability of outputs that have probability 0 under the target (or the stated law).
        undefined: the probability of ending without output.
        block_efficiency: tokens per target call.
        optimum: the largest block efficiency of a lossless verifier; ``None`` with several paths, on pairs of
            many paths, and of a relaxation.
        samples: the samples that a χ² test needs to find the difference; ``None`` where there is none.
        basis: followed, probed or drawn.
        calls: of the sampler, where it was probed or drawn.
        is_rejected: whether draws have shown another law.
        because: how they have shown it.
    """

    pair: str
    vocab_size: int
    draft_length: int
    num_drafts: int
    process: str
    total_variation: Fraction
    undecided: Fraction
    bound: Fraction
    forbidden: Fraction
    undefined: Fraction
    block_efficiency: Fraction
    optimum: Fraction | None
    samples: int | None
    basis: str = FOLLOWED
    calls: int = 0
    is_rejected: bool = False
    because: str = ""

    def __bool__(self) -> bool:
        raise no_verdict(self, ".is_wrong and .is_open, or the certificate")

    @property
    def gap(self) -> Fraction | None:
        """Optimum minus block efficiency, in tokens per target call; ``None`` without an optimum."""
        return None if self.optimum is None else self.optimum - self.block_efficiency

    @property
    def where(self) -> str:
        """The pair, and the drafts where they are several paths."""
        return self.pair if self.num_drafts == 1 else f"{self.pair} with {self.process}"

    @property
    def is_wrong(self) -> bool:
        """Whether the law differs by more than rounding can cause."""
        if self.basis == DRAWN:
            return self.is_rejected
        return self.total_variation - self.undecided > self.bound

    @property
    def is_open(self) -> bool:
        """Whether the law is not known well enough to decide; draws never say that a law is right."""
        if self.is_wrong or self.basis == DRAWN:
            return not self.is_wrong
        # A law that was learned is right, or wrong by more than rounding, which fewer mistakes could explain.
        error = 0 if self.basis == PROBED else self.undecided
        return self.total_variation + error > self.bound

    @property
    def makes_forbidden_tokens(self) -> bool:
        """Whether an output of probability 0 under the target has a positive probability."""
        return self.forbidden > self.undecided

    @property
    def is_above_the_optimum(self) -> bool:
        """Whether no lossless verifier has this block efficiency: a proof without a comparison of laws.

        The margin: a call has 1 to L+1 tokens, so a misplaced probability d changes the mean by at most L d.
        """
        margin = self.draft_length * (self.bound + self.undecided)
        return self.optimum is not None and self.block_efficiency - margin > self.optimum


@dataclass(frozen=True, eq=False, repr=False)
class AuditCertificate(Result):
    """The verdict on a shipped sampler.

    Attributes:
        sampler, signature: its name and how it is called.
        verdict: lossless, not lossless, undecided, or ``RELAXATION``.
        reasons: why, in sentences; empty for a lossless sampler.
        cases: one per pair.
        counterexample: on the smallest pair found where the law is not the target's; ``None`` where the
            sampler states the law of another verifier.
        relaxation: the law that the sampler states; empty where this is the target's.
        provenance: the code that was run.
        primitives: the random functions that were replaced, and the laws of their numbers.
        findings: defects that do not depend on the law, and findings at the boundary: (subject, text).
        batches: the kinds of batches in which a request was compared with itself alone.
        stand_ins: replaced surroundings of the shipped code.
        seeds, probes: of the runs that were made.
        note: a remark, for example on a version that was not tested.
        ways: why the code was not followed, and not probed; empty if it was followed.
        batches_within: the error of the laws of batches, where they were learned from calls.
        scope: what the verdict has looked at.
    """

    sampler: str
    signature: str
    verdict: str
    reasons: tuple[str, ...]
    cases: tuple[AuditCase, ...]
    counterexample: Certificate | None
    relaxation: str
    provenance: Provenance
    primitives: tuple[str, ...]
    findings: tuple[tuple[str, str], ...]
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
        """Whether the sampler could be followed."""
        return self.verdict != UNDECIDED

    @property
    def is_lossless(self) -> bool:
        """Whether the law is the target's on every pair, exactly or up to arithmetic."""
        return self.verdict == LOSSLESS

    def __bool__(self) -> bool:
        return self.is_lossless

    def without_code(self) -> "AuditCertificate":
        """The certificate without the sampler, which cannot be pickled: the counterexample has no law."""
        wrong = self.counterexample
        if wrong is None or wrong.law is None:
            return self
        law = replace(wrong.law, verifier=None, numbers=())  # type: ignore[arg-type]
        return replace(self, counterexample=replace(wrong, law=law))

    @property
    def total_variation(self) -> Fraction:
        """The largest total variation of all pairs."""
        return max((case.total_variation for case in self.cases), default=Fraction(0))

    @property
    def forbidden(self) -> Fraction:
        """The largest probability of forbidden outputs."""
        return max((case.forbidden for case in self.cases), default=Fraction(0))

    @property
    def least_efficient(self) -> AuditCase | None:
        """The case with the largest gap to the optimum, of a sampler whose laws are all right.

        ``None`` where a law is wrong: tokens that are not the target's are no gain.
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
        """What a lossless verifier earns there at most."""
        return None if self.least_efficient is None else self.least_efficient.optimum

    @property
    def gap(self) -> Fraction | None:
        """Optimum minus block efficiency there, in tokens per target call."""
        return None if self.least_efficient is None else self.least_efficient.gap

    @property
    def samples(self) -> int | None:
        """The fewest samples with which a χ² test at 99 % finds the difference, on the best of the pairs."""
        return min((case.samples for case in self.cases if case.samples is not None), default=None)

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
        "seen by a χ² test with": "{samples:,} samples",
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
        "because": "{because}",
    }

    answers: ClassVar[tuple[str, ...]] = ("counterexample", "because", "tokens per call", "scope")
    fine_print: ClassVar[tuple[str, ...]] = (
        *SCOPE_FACTS, "batches of", "stand-in", "random numbers", "way", "probed",
    )  # fmt: skip

    @property
    def basis(self) -> str:
        """How the verdict was found: the weakest way that it rests on."""
        wrong = [case.basis for case in self.cases if case.is_wrong]
        of_batches = [PROBED] if self.batches_within else []
        bases = wrong[:1] or [case.basis for case in self.cases] + of_batches
        return max(bases, key=(FOLLOWED, PROBED, DRAWN).index, default=FOLLOWED)

    @property
    def within(self) -> float:
        """How wrong probed laws can be, a total variation, with confidence 1 - 10^-6 for all of them."""
        cases = (float(case.undecided) for case in self.cases if case.basis == PROBED)
        return max((self.batches_within, *cases))

    @property
    def would_have_been_seen(self) -> float:
        """The total variation that draws would have shown on every pair, each with probability 0.99."""
        return max((float(case.undecided) for case in self.cases if case.basis == DRAWN), default=0.0)

    @property
    def basis_text(self) -> str:
        """The basis, and what it leaves open."""
        if self.verdict == LOSSLESS and self.basis == PROBED:
            return f"{PROBED}, within {self.within:.2g} at confidence 1-{RISK:g}"
        if self.verdict == UNDECIDED and self.basis == DRAWN:
            return f"{DRAWN}, a total variation of {self.would_have_been_seen:.2g} would have been seen"
        return self.basis

    def judgement(self) -> tuple[str, str]:
        words = f"{self.verdict} ({self.basis_text})"
        return words, f"{self.sampler} on {count_text(len(self.cases), 'case')}"

    def headline(self) -> str:
        """The verdict with its first reason, or with what it has looked at."""
        if self.reasons:
            return f"{self.sampler}: {self.verdict}: {self.reasons[0]}"
        where = f"{count_text(len(self.cases), 'case')} in float32"
        if self.basis != FOLLOWED:
            where = f"{where} ({self.basis_text})"
        if self.batches:
            where += f" and in batches ({self.batches_text()})"
        return f"{self.sampler}: {self.verdict} on {where}, {self.scope.in_words()}"

    def batches_text(self) -> str:
        """The kinds of batches, and the shapes of their requests; "" without batches."""
        if not self.batches:
            return ""
        return f"{', '.join(self.batches)}; {shapes_of_batches(self.signature, self.batches)}"

    def tokens_text(self) -> str:
        """Tokens per call of the least efficient case, and what they are short of; "" if not known."""
        case = self.least_efficient
        if case is None or case.optimum is None or case.gap is None:
            return ""
        earned, best, gap = (f"{float(n):.6g}" for n in (case.block_efficiency, case.optimum, case.gap))
        found = f"{earned} on {case.where}, at most {best} without loss"
        is_rounding = abs(case.gap) <= case.draft_length * (case.bound + case.undecided)
        return f"{found}: no gap beyond rounding" if is_rounding else f"{found}: gap {gap}, the largest"

    def scope_text(self) -> str:
        """What the verdict has looked at, in one line; ``--verbose`` has the details."""
        parts = [
            f"{count_text(len(self.cases), 'case')}, (V, L, K) = {self.scope.shapes_text()}",
            self.scope.processes_text(),
            f"batches: {', '.join(self.batches)}" if self.batches else "",
            f"left out: {count_text(len(self.scope.refused), 'question')}" if self.scope.refused else "",
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
        """The JSON object of ``spectheory audit --json``."""
        found = self.counterexample
        names = [field.name for field in fields(self) if field.name != "counterexample"]
        names += ["total_variation", "forbidden", "samples", "basis", "within", "would_have_been_seen"]
        names += ["block_efficiency", "optimum", "gap"]
        document = {name: to_json(getattr(self, name)) for name in names}
        return document | {
            "lossless": self.is_lossless if self.is_decided else None,
            "scope": self.scope.to_document(),
            "counterexample": None if found is None else found.to_document(),
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
