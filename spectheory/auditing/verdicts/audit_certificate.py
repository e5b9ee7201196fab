"""The certificate of an audit: the verdict, and the findings on every pair.

The verdicts are the first five constants of this module.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from spectheory.auditing.subjects.shipped import Provenance
from spectheory.certificate import Certificate
from spectheory.documents import number_text, plain
from spectheory.results import Result

EXACT = "exactly lossless"
ARITHMETIC = "lossless up to arithmetic"
RELAXATION = "equals its stated relaxation"
DEFECT = "defect"
NOT_DECIDED = "not decided"
BOUNDARY = "boundary"
"""The kind of a finding that is not part of a verdict."""

ASSUMPTIONS = (
    "elementwise functions are monotone in each random number, as their rounding is; two points inside "
    "every cell of a comparison were probed",
    "multinomial, bernoulli, randint and races of exponential or Gumbel numbers are drawn from the exact law "
    "of the floats they are given; the weights e^x of Gumbel numbers are rounded to float64",
    "numbers that kernels make out of a seed and a counter are uniform, and independent where one of them "
    "differs",
    "source semantics on a CPU: a compiled kernel may round in another way",
    "a sampler draws all its numbers from the functions that are replaced: one run of eight was made twice",
)


@dataclass(frozen=True)
class AuditCase:
    """The findings on one pair.

    Attributes:
        pair, draft_length: its name, and L.
        total_variation: of the completed output from the target (or from the stated law of a relaxation).
        undecided: a bound on the error of the total variation, where random numbers are multiplied.
        bound: the largest total variation that rounding to float32 can cause.
        forbidden: the probability of outputs that have probability 0 under the target (or the stated law).
        undefined: the probability of ending without output.
        block_efficiency: tokens per target call.
        optimum: the largest block efficiency of a lossless verifier; computed only where the law is wrong.
        samples: the samples that a χ² test needs to find the difference; ``None`` where there is none.
    """

    pair: str
    draft_length: int
    total_variation: Fraction
    undecided: Fraction
    bound: Fraction
    forbidden: Fraction
    undefined: Fraction
    block_efficiency: Fraction
    optimum: Fraction | None
    samples: int | None

    @property
    def is_wrong(self) -> bool:
        """Whether the law differs by more than rounding can cause."""
        return self.total_variation - self.undecided > self.bound

    @property
    def is_open(self) -> bool:
        """Whether the law is not known well enough to decide."""
        return not self.is_wrong and self.total_variation + self.undecided > self.bound

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
        verdict: one of the five verdicts of this module.
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
        assumptions: the assumptions behind the verdict.
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
    batches: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    probes: tuple[str, ...] = ()
    note: str = ""
    assumptions: tuple[str, ...] = ASSUMPTIONS

    @property
    def is_defective(self) -> bool:
        """Whether a defect was found."""
        return self.verdict == DEFECT

    @property
    def is_lossless(self) -> bool:
        """Whether the law is the target's on every pair, exactly or up to arithmetic."""
        return self.verdict in (EXACT, ARITHMETIC)

    @property
    def total_variation(self) -> Fraction:
        """The largest total variation of all pairs."""
        return max((case.total_variation for case in self.cases), default=Fraction(0))

    @property
    def forbidden(self) -> Fraction:
        """The largest probability of forbidden outputs."""
        return max((case.forbidden for case in self.cases), default=Fraction(0))

    @property
    def samples(self) -> int | None:
        """The fewest samples with which a χ² test at 99 % finds the difference, on the best of the pairs."""
        return min((case.samples for case in self.cases if case.samples is not None), default=None)

    @property
    def boundary(self) -> tuple[str, ...]:
        """Findings on forbidden tokens, which are reported beside the verdict."""
        return tuple(text for kind, text in self.findings if kind == BOUNDARY)

    def headline(self) -> str:
        """The verdict, with the first reason."""
        return f"{self.sampler}: {': '.join((self.verdict, *self.reasons[:1]))}"

    def facts(self) -> list[tuple[str, str]]:
        """The code, the law and the findings, as (subject, text)."""
        code = f"{self.provenance.package} {self.provenance.version} {self.provenance.file}".strip()
        facts = [
            ("code", f"{code}, sha256 {self.provenance.sha256[:16] or 'none'}"),
            ("called as", self.signature),
            *([("note", self.note)] if self.note else []),
            ("pairs", f"{len(self.cases)}"),
            *([("batches of", ", ".join(self.batches))] if self.batches else []),
        ]
        if self.relaxation:
            facts.append(("stated law", self.relaxation))
        if self.cases:
            facts.append(("largest total variation", number_text(self.total_variation)))
        if self.samples is not None:
            facts.append(("seen by a χ² test with", f"{self.samples:,} samples".replace(",", " ")))
        facts += [("because", reason) for reason in self.reasons]
        facts += [(BOUNDARY, text) for text in self.boundary]
        if self.counterexample is not None:
            facts.append(("counterexample", self.counterexample.in_words()))
        facts += [("random numbers", text) for text in self.primitives]
        facts += [("stand-in", text) for text in self.stand_ins]
        facts += [("probed", text) for text in self.probes]
        return facts + [("assumed", text) for text in self.assumptions]

    def to_document(self) -> dict[str, Any]:
        """The JSON object of ``spectheory audit --json``."""
        found = self.counterexample
        names = [field.name for field in fields(self) if field.name != "counterexample"]
        names += ["total_variation", "forbidden", "samples"]
        document = {name: plain(getattr(self, name)) for name in names}
        return document | {"counterexample": None if found is None else found.to_document()}
