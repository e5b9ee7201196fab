"""The audit of a shipped sampler: its exact law on a battery of pairs, and a verdict on the code that exists.

>>> import torch
>>> from spectheory.audit.shipped import Shipped
>>> def first_draft(paths, target_rows, draft_rows, generator):
...     '''Takes the drafted token and draws the next one from the target.'''
...     return [int(paths[0, 0]), int(torch.multinomial(target_rows[0, 1], 1, generator=generator))]
>>> from spectheory import instances
>>> found = audit_sampler(Shipped(first_draft, "sampler"), {"thirds": instances.two_token(1)})
>>> print(found)
<first_draft: defect: its law is not the target's on thirds, total variation 1/3>
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from spectheory.adapt import noncentrality
from spectheory.audit.batches import audit_batches
from spectheory.audit.battery import audit_pairs
from spectheory.audit.derandomise import PROBES
from spectheory.audit.intercept import Journal
from spectheory.audit.replay import HiddenRandomnessError, NotEnumerableError
from spectheory.audit.shipped import HIDDEN, Provenance, Shipped
from spectheory.audit.two_calls import call_twice, pairs_of_calls
from spectheory.certificate import Certificate, certify
from spectheory.documents import number_text, to_json
from spectheory.errors import EnumerationTooLargeError, InvalidInputError, InvalidPairError
from spectheory.law import OutputLaw, output_law
from spectheory.pair import ModelPair
from spectheory.results import Result, Templates

EXACT = "exactly lossless"
ARITHMETIC = "lossless up to arithmetic"
RELAXATION = "equals its stated relaxation"
DEFECT = "defect"
NOT_DECIDED = "not decided"
BOUNDARY = "boundary"
"""The kind of a finding that is no part of a verdict."""

PRECISION = Fraction(1, 2**24)
"""Half the distance of neighbouring floats of 32 bits just below 1, and the step of ``torch.rand``."""
SIGNIFICANCE = 0.01
POWER = 0.99
"""Of the χ² test whose number of samples is given."""
MAX_RUNS_FOUND_AGAIN = 1_000
"""The first law that is wrong is computed twice; of a longer one enough runs were made twice."""
MAX_LEAVES = 16
"""A second proof, by the optimum, is looked for on pairs of at most so many drafted paths."""

ASSUMPTIONS = (
    "elementwise functions are monotone in each random number, as their rounding is; two points inside of "
    "every cell of a comparison were probed",
    "multinomial, bernoulli, randint and races of exponential or Gumbel numbers are drawn from the exact law "
    "of the floats they are given; the weights e^x of Gumbel numbers are rounded to float64",
    "numbers that kernels make out of a seed and a counter are uniform, and independent where one of them "
    "differs",
    "source semantics on a CPU: a compiled kernel may round in another way",
    "a sampler draws nothing behind the functions that are replaced: one run of eight was made twice",
)


@dataclass(frozen=True)
class AuditCase:
    """What was found on one pair.

    Attributes:
        pair, draft_length: its name, and L.
        total_variation: of the completed output from the target (from the stated law of a relaxation).
        undecided: how far the total variation may be off, where random numbers are multiplied.
        bound: what rounding to float32 can account for.
        forbidden: the probability of an output that the target (the stated law of a relaxation) never makes.
        undefined: the probability of ending without an output.
        block_efficiency: tokens per target call.
        optimum: the largest of any lossless verifier; only looked for where the law is wrong.
        samples: how many samples a χ² test needs to see the difference; ``None`` where there is none.
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
        """Whether rounding cannot account for the law."""
        return self.total_variation - self.undecided > self.bound

    @property
    def is_open(self) -> bool:
        """Whether the law is not known well enough to say."""
        return not self.is_wrong and self.total_variation + self.undecided > self.bound

    @property
    def makes_forbidden_tokens(self) -> bool:
        """Whether an output that the target never makes has a positive probability."""
        return self.forbidden > self.undecided

    @property
    def is_above_the_optimum(self) -> bool:
        """Whether no lossless verifier earns as much: a proof without a comparison of laws.

        The margin: a call has 1 to L+1 tokens, so that probability d that is misplaced moves its mean by L d.
        """
        margin = self.draft_length * (self.bound + self.undecided)
        return self.optimum is not None and self.block_efficiency - margin > self.optimum


@dataclass(frozen=True, eq=False, repr=False)
class AuditCertificate(Result):
    """The verdict on a shipped sampler.

    Attributes:
        sampler, signature: its name and how it is called.
        verdict: one of the five words of this module.
        reasons: why, in sentences; empty where there is nothing to say.
        cases: one per pair.
        counterexample: on the smallest pair found on which the law is not the target's; none where another
            verifier's law is stated.
        relaxation: the law that it states; empty where that is the target's.
        provenance: which code was run.
        primitives: the random functions that were answered, and the laws of their numbers.
        findings: what is wrong whatever the law, and what is found at the boundary: (what was audited, text).
        batches: what the batches mixed in which a request was compared with itself alone.
        stand_ins: what is not the shipped code.
        seeds, probes: of the runs that were made.
        note: what else is to be known, as of a version that was not tested.
        assumptions: what the verdict rests on.
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
        """The largest of all pairs."""
        return max((case.total_variation for case in self.cases), default=Fraction(0))

    @property
    def forbidden(self) -> Fraction:
        """The largest probability of an output that the target never makes."""
        return max((case.forbidden for case in self.cases), default=Fraction(0))

    @property
    def samples(self) -> int | None:
        """The fewest samples with which a χ² test at 99 % sees the law differ, on the best of the pairs."""
        return min((case.samples for case in self.cases if case.samples is not None), default=None)

    @property
    def boundary(self) -> tuple[str, ...]:
        """What is found of forbidden tokens, which is said beside the verdict."""
        return tuple(text for kind, text in self.findings if kind == BOUNDARY)

    facts: ClassVar[Templates] = {
        "code": "{release}, sha256 {sha256}",
        "called as": "{signature}",
        "note": "{note}",
        "pairs": "{pairs}",
        "batches of": "{batches}",
        "stated law": "{relaxation}",
        "largest total variation": "{total_variation}",
        "seen by a χ² test with": "{samples:,} samples",
        "because": "{reasons}",
        BOUNDARY: "{boundary}",
        "counterexample": "{in_words}",
        "random numbers": "{primitives}",
        "stand-in": "{stand_ins}",
        "probed": "{probes}",
        "assumed": "{assumptions}",
    }
    columns: ClassVar[Templates] = {
        "sampler": "{sampler}",
        "code": "{code}",
        "verdict": "{verdict}",
        "total variation": "{total_variation:.3g}",
        "forbidden": "{forbidden:.3g}",
        "because": "{because}",
    }

    def headline(self) -> str:
        """The verdict, with the first reason."""
        return f"{self.sampler}: {': '.join((self.verdict, *self.reasons[:1]))}"

    def shown(self) -> dict[str, Any]:
        """The code, exact numbers and the counterexample in words."""
        code, found = self.provenance, self.counterexample
        return {
            "code": f"{code.package} {code.version}".strip() or code.file,
            "release": f"{code.package} {code.version} {code.file}".strip(),
            "sha256": code.sha256[:16] or "none",
            "pairs": str(len(self.cases)),
            "batches": ", ".join(self.batches),
            "total_variation": self.total_variation,
            "forbidden": self.forbidden,
            "boundary": self.boundary,
            "because": next(iter(self.reasons), self.relaxation),
            "in_words": None if found is None else found.in_words(),
        }

    def to_document(self) -> dict[str, Any]:
        """The JSON object of ``spectheory audit --json``."""
        found = self.counterexample
        return {
            "sampler": self.sampler,
            "signature": self.signature,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "total_variation": to_json(self.total_variation),
            "forbidden": to_json(self.forbidden),
            "samples": self.samples,
            "relaxation": self.relaxation,
            "counterexample": None if found is None else found.to_document(),
            "batches": list(self.batches),
            "findings": [list(finding) for finding in self.findings],
            "cases": [to_json(case) for case in self.cases],
            "provenance": asdict(self.provenance),
            "primitives": list(self.primitives),
            "stand_ins": list(self.stand_ins),
            "seeds": list(self.seeds),
            "probes": list(self.probes),
            "note": self.note,
            "assumptions": list(self.assumptions),
        }


def audit_sampler(
    sampler: Shipped,
    pairs: Mapping[str, ModelPair] | None = None,
    *,
    stop_at_first: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> AuditCertificate:
    """Compute the exact law of a shipped sampler on every pair, and judge it.

    Args:
        sampler: the shipped code with its random numbers replaced.
        pairs: name -> exact pair; by default ``audit_pairs()``.
        stop_at_first: whether to stop at the first pair that shows a defect.
        progress: called with (pairs done, pairs in all).

    Raises:
        InvalidInputError: a pair is not exact.
        InvalidOutcomeError: the sampler fails, or returns something that is no output.
    """
    given = audit_pairs() if pairs is None else pairs
    for name, pair in given.items():
        if not pair.is_exact:
            raise InvalidInputError(
                f'an audit is exact and takes exact pairs; write the rows of {name!r} as texts, such as "1/3"'
            )
    cases: list[AuditCase] = []
    refused: list[InvalidInputError] = []
    for pair in pairs_of_calls(given.values()):
        try:
            call_twice(*sampler.prepared(pair))
        except HiddenRandomnessError as error:
            refused.append(error)
    for number, (name, pair) in enumerate(given.items()):
        if progress is not None:
            progress(number, len(given))
        try:
            asked, prepared = sampler.prepared(pair)
            runs = -sampler.journal.runs
            cases.append(_case(name, asked, prepared))
            runs += sampler.journal.runs
            if [case.pair for case in cases if case.is_wrong] == [name] and runs <= MAX_RUNS_FOUND_AGAIN:
                _must_be_found_again(asked, prepared)
        except (NotEnumerableError, EnumerationTooLargeError) as error:
            refused.append(error)
        if stop_at_first and _verdict(sampler, cases, refused)[0] == DEFECT:
            break
    batches: tuple[str, ...] = ()
    if sampler.signature_name == "batch" and not (
        stop_at_first and _verdict(sampler, cases, refused)[0] == DEFECT
    ):
        try:
            batches = audit_batches(sampler)
        except (NotEnumerableError, EnumerationTooLargeError) as error:
            refused.append(error)
    if progress is not None:
        progress(len(given), len(given))
    journal = sampler.journal
    verdict, reasons = _verdict(sampler, cases, refused)
    boundary = _boundary(cases)
    wrong = [case for case in cases if case.is_wrong]
    has_own_law = sampler.relaxation is not None and sampler.relaxation.verifier is not None
    return AuditCertificate(
        sampler=sampler.name,
        signature=sampler.signature_name,
        verdict=verdict,
        reasons=tuple(reasons),
        cases=tuple(cases),
        counterexample=_shrunk(sampler, given[wrong[0].pair])
        if verdict == DEFECT and wrong and not has_own_law
        else None,
        relaxation="" if sampler.relaxation is None else sampler.relaxation.words,
        provenance=sampler.provenance,
        primitives=tuple(sorted(journal.primitives)),
        findings=tuple(sorted(journal.findings | boundary)),
        batches=batches,
        stand_ins=sampler.stand_ins,
        seeds=sampler.seeds,
        probes=_probes(journal),
        note=sampler.note,
    )


def _case(name: str, sampler: Shipped, pair: ModelPair) -> AuditCase:
    law, undecided = _law(sampler, pair)
    stated = _stated_law(sampler, pair)
    found, wanted = _compared(sampler, law, stated)
    case = AuditCase(
        pair=name,
        draft_length=pair.draft_length,
        total_variation=_distance(found, wanted, law.undefined),
        undecided=undecided,
        bound=rounding_bound(pair),
        forbidden=law.completed_law[_allowed(pair, stated) == 0].sum() + Fraction(0),
        undefined=law.undefined,
        block_efficiency=law.block_efficiency,
        optimum=None,
        samples=_samples_needed(found, wanted, law.undefined),
    )
    if not case.is_wrong or pair.vocab_size**pair.draft_length > MAX_LEAVES or sampler.relaxation is not None:
        return case
    best = certify("token", pair).optimum
    return replace(case, optimum=best) if isinstance(best, Fraction) else case


def _must_be_found_again(sampler: Shipped, pair: ModelPair) -> None:
    """A law is found by all of its runs a second time.

    Raises:
        HiddenRandomnessError: it is not; what was found is then not the sampler's law.
    """
    law, _ = _law(sampler, pair)
    sampler.forget()
    again, _ = _law(sampler, pair)
    if not all(np.array_equal(*levels) for levels in zip(law.masses, again.masses, strict=True)):
        raise HiddenRandomnessError(f"{HIDDEN}: followed twice, it has two laws")


def _stated_law(sampler: Shipped, pair: ModelPair) -> OutputLaw | None:
    """Of the verifier whose law a relaxation states."""
    verifier = None if sampler.relaxation is None else sampler.relaxation.verifier
    return None if verifier is None else output_law(verifier, pair)


def _compared(sampler: Shipped, law: OutputLaw, stated: OutputLaw | None) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities that are held against each other: those found, those wanted.

    Of completed outputs and the target; where a verifier's law is stated, of outputs as they are, with the
    correction token or without.
    """
    if stated is None or sampler.relaxation is None:
        return law.completed_law, law.pair.target_path_probs(law.pair.draft_length + 1)
    masses = [law.masses, stated.masses]
    if not sampler.relaxation.is_about_tokens:
        size = law.pair.vocab_size
        masses = [tuple(mass.reshape(-1, size).sum(1) for mass in levels) for levels in masses]
    found, wanted = map(np.concatenate, masses)
    return found, wanted


def _allowed(pair: ModelPair, stated: OutputLaw | None) -> np.ndarray:
    """The law of completed outputs that is wanted: where it is 0, an output is forbidden."""
    return pair.target_path_probs(pair.draft_length + 1) if stated is None else stated.completed_law


def _distance(found: np.ndarray, wanted: np.ndarray, undefined: Fraction) -> Fraction:
    """Their total variation; an undefined output is one more outcome."""
    distance: Fraction = (abs(found - wanted).sum() + undefined) / 2
    return distance


def _law(sampler: Shipped, pair: ModelPair) -> tuple[OutputLaw, Fraction]:
    """The law, and how far it may be off."""
    sampler.undecided = Fraction(0)
    return output_law(sampler, pair), sampler.undecided


def rounding_bound(pair: ModelPair) -> Fraction:
    """A total variation that float32 alone can cause: 4 (L+1) (Λ + V + 8) 2^-24.

    Λ is the largest |log| of a positive probability: a logit x is off by |x| 2^-24, and so is its exponential
    relative to itself.  V + 8 roundings make a row out of exponentials, a ratio and a residual, of both
    models, and the step of the coin counts as one.

    Example:
        >>> from spectheory import instances
        >>> print(rounding_bound(instances.two_token(1)) < Fraction(1, 10**5))
        True
    """
    smallest = min(value for level in (*pair.target, *pair.draft) for value in level.flat if value)
    logarithm = math.ceil(-math.log(smallest))
    return 4 * (pair.draft_length + 1) * (logarithm + pair.vocab_size + 8) * PRECISION


def _samples_needed(found: np.ndarray, wanted: np.ndarray, undefined: Fraction) -> int | None:
    """How many samples a χ² test needs; at least as many as any test.

    The law of n samples is within 1 - (1 - d)^n of the target's in total variation, d the distance of one.  A
    test has that much more power than its level.  The χ² approximation asks for less where cells are nearly
    empty, and is then not to be believed.
    """
    possible = wanted > 0
    impossible = float(found[~possible].sum() + undefined)
    distance = float(((found - wanted)[possible] ** 2 / wanted[possible]).sum())
    needed = []
    if distance > 0:
        needed.append(noncentrality(int(possible.sum()) - 1, SIGNIFICANCE, POWER) / distance)
    if impossible > 0:
        needed.append(math.log1p(-POWER) / math.log1p(-impossible) if impossible < 1 else 1.0)
    if not needed:
        return None
    variation = float(_distance(found, wanted, undefined))
    least = math.log1p(SIGNIFICANCE - POWER) / math.log1p(-variation) if variation < 1 else 1.0
    return math.ceil(max(min(needed), least))


def _verdict(
    sampler: Shipped, cases: list[AuditCase], refused: list[InvalidInputError]
) -> tuple[str, list[str]]:
    """The word, and why."""
    hidden = [error for error in refused if isinstance(error, HiddenRandomnessError)]
    if hidden:  # then no law that was found is known to be the sampler's
        return NOT_DECIDED, [str(hidden[0])]
    wrong = [case for case in cases if case.is_wrong]
    reasons = []
    if wrong:
        first = wrong[0]
        whose = "the one it states" if sampler.relaxation else "the target's"
        distance = number_text(first.total_variation, decimal=False)
        if first.undecided:
            distance = f"at least {float(first.total_variation - first.undecided):.4g}"
        reasons.append(f"its law is not {whose} on {first.pair}, total variation {distance}")
    above = [case for case in wrong if case.is_above_the_optimum]
    if above:
        case = above[0]
        earned = f"{float(case.block_efficiency):.6g}"
        if case.undecided:
            earned = f"at least {float(case.block_efficiency - case.draft_length * case.undecided):.4g}"
        reasons.append(
            f"it earns {earned} tokens per call on {case.pair}, and no "
            f"lossless verifier earns more than {number_text(case.optimum, decimal=False)}"
        )
    undefined = max((case for case in cases if case.undefined), key=lambda case: case.undefined, default=None)
    if undefined is not None:
        reasons.append(
            "it ends without an output with probability "
            f"{number_text(undefined.undefined, decimal=False)} on {undefined.pair}: "
            f"{min(sampler.journal.undefined)}"
        )
    reasons += _sentences(sampler.journal.findings)
    if reasons:
        return DEFECT, reasons
    if refused:
        return NOT_DECIDED, [str(refused[0])]
    unknown = [case for case in cases if case.is_open]
    if unknown:
        case = unknown[0]
        return NOT_DECIDED, [
            f"random numbers are combined, and the total variation on {case.pair} is known to "
            f"{float(case.undecided):.3g} only"
        ]
    if sampler.relaxation is not None:
        return RELAXATION, []
    return (ARITHMETIC if any(case.total_variation for case in cases) else EXACT), []


def _probes(journal: Journal) -> tuple[str, ...]:
    """What was tried."""
    return (
        f"inside of every cell of a comparison, at {' and '.join(map(str, PROBES))} of it",
        f"{journal.repeated} of {journal.runs} runs were made twice, with the same numbers",
        f"{journal.pairs_of_calls} runs of two calls in a row",
    )


def _sentences(findings: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{kind}: {text}" for kind, text in sorted(findings)]


def _boundary(cases: list[AuditCase]) -> set[tuple[str, str]]:
    """What is found of tokens that are forbidden: a coin of exactly 0 that is at most a ratio of 0.

    It is said beside the verdict and is none: the probability counts towards the total variation.
    """
    made = [case for case in cases if case.makes_forbidden_tokens]
    if not made:
        return set()
    worst = max(made, key=lambda case: case.forbidden)
    prob = number_text(worst.forbidden, decimal=False)
    return {(BOUNDARY, f"a forbidden token is made with probability {prob} on {worst.pair}")}


def _shrunk(sampler: Shipped, pair: ModelPair) -> Certificate | None:
    """The certificate on the smallest pair that still shows the defect: shorter paths, then fewer tokens.

    ``None`` where boxes are undecided there: the law, of which a counterexample tells, is then not known.
    """
    for smaller in _smaller(pair):
        try:
            asked, prepared = sampler.prepared(smaller)
            law, undecided = _law(asked, prepared)
        except InvalidInputError:  # the sampler does not take the pair
            continue
        distance = _distance(*_compared(asked, law, _stated_law(asked, prepared)), law.undefined)
        if distance - undecided > rounding_bound(prepared):
            return _shrunk(sampler, smaller)
    asked, prepared = sampler.prepared(pair)
    if _law(asked, prepared)[1]:
        return None
    return certify(asked, prepared, with_optimum=False)


def _smaller(pair: ModelPair) -> Iterator[ModelPair]:
    if pair.draft_length > 1:
        yield pair.truncate(pair.draft_length - 1)
    if pair.vocab_size > 2:
        for left_out in range(pair.vocab_size):
            try:
                yield pair.restrict([token for token in range(pair.vocab_size) if token != left_out])
            except InvalidPairError:  # a row has no mass on the others
                continue
