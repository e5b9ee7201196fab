"""The verdict on a sampler from the findings on its pairs, its reasons in words, and its certificate."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from spectheory.auditing.rounds.batch_battery import JOINT_LAWS, KINDS
from spectheory.auditing.rounds.conventions import CALLS, CALLS_OF_NAN
from spectheory.auditing.rounds.questions import Question
from spectheory.auditing.rounds.two_rounds import JOINT
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import ROUND_BATCH
from spectheory.auditing.tape.atoms import PROBES
from spectheory.auditing.verdicts.audit_certificate import BOUNDARY, RELAXATION, AuditCertificate
from spectheory.auditing.verdicts.cases import DRAWN, PROBED, AuditCase, certify_again, prepared
from spectheory.foundation.documents import number_text
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, UNDECIDED
from spectheory.foundation.scope import Scope


@dataclass
class Findings:
    """What an audit has found so far.

    Attributes:
        sampler: the sampler, whose journal has more findings.
        not_asked: the questions that were left out or that the sampler refused, in words.
        cases, asked: the cases, and their questions.
        refused: why we could not judge a part.
        ways: why we changed to the next way (probe or draw), in sentences.
        batches, batches_within: the kinds of batches, and the error of their laws, if we learned them.
        conventions: the conventions of engines that we checked by calls of batches.
    """

    sampler: Shipped
    not_asked: list[str]
    cases: list[AuditCase] = field(default_factory=list)
    asked: list[Question] = field(default_factory=list)
    refused: list[InvalidInputError] = field(default_factory=list)
    ways: list[str] = field(default_factory=list)
    batches: tuple[str, ...] = ()
    batches_within: float = 0.0
    conventions: tuple[str, ...] = ()

    def verdict(self) -> tuple[str, list[str]]:
        """The verdict on the sampler, and its reasons in sentences."""
        reasons = [
            *self._defects(),
            *(f"{kind}: {text}" for kind, text in sorted(self.sampler.journal.findings)),
        ]
        if reasons:
            return NOT_LOSSLESS, reasons
        unknown = [case for case in self.cases if case.is_open]
        if self.refused or unknown:
            why = (
                str(self.refused[0]) if self.refused else _open(max(unknown, key=lambda case: case.undecided))
            )
            return UNDECIDED, [*(way for way in self.ways if why not in way), why]
        if not self.cases:
            return UNDECIDED, ["; ".join(("no pair was asked about", *self.not_asked))]
        return LOSSLESS if self.sampler.relaxation is None else RELAXATION, []

    def _defects(self) -> Iterator[str]:
        """The defects that the laws of the cases show."""
        wrong, undefined = [case for case in self.cases if case.is_wrong], _without_output(self.cases)
        if undefined is not None:
            about = "about " if undefined.basis == DRAWN else ""
            yield (
                f"it makes no valid output with probability {about}{number_text(undefined.undefined)} on "
                f"{undefined.where}: {undefined.without_output}"
            )
        if wrong:
            worst = _farthest(wrong)
            whose = "the one it states" if self.sampler.relaxation else "the target's"
            yield f"its law is not {whose} on {worst.where}, {_distance(worst)}"
        above = next((case for case in wrong if case.is_above_the_optimum), None)
        if above is not None:
            earned = f"{float(above.block_efficiency):.6g}"
            if above.undecided:
                earned = (
                    f"at least {float(above.block_efficiency - above.draft_length * above.undecided):.4g}"
                )
            yield (
                f"it earns {earned} tokens per call on {above.where}, and no "
                f"lossless verifier earns more than {number_text(above.optimum, decimal=False)}"
            )

    def certificate(self) -> AuditCertificate:
        sampler, cases = self.sampler, self.cases
        journal, relaxation = sampler.journal, sampler.relaxation
        verdict, reasons = self.verdict()
        has_own_law = relaxation is not None and relaxation.verifier is not None
        shown = None if verdict != NOT_LOSSLESS or has_own_law else _case_of_the_headline(cases)
        counterexample = None
        if shown is not None and shown.basis != DRAWN:
            counterexample = certify_again(*prepared(sampler, self.asked[cases.index(shown)]))
        return AuditCertificate(
            sampler=sampler.name,
            signature=sampler.signature_name,
            verdict=verdict,
            reasons=tuple(reasons),
            cases=tuple(cases),
            counterexample=counterexample,
            relaxation="" if relaxation is None else relaxation.words,
            provenance=sampler.provenance,
            primitives=tuple(sorted(journal.primitives)),
            findings=tuple(sorted(journal.findings | _boundary_findings(cases))),
            scope=self._scope(),
            batches=self.batches,
            stand_ins=sampler.stand_ins,
            seeds=sampler.seeds,
            probes=self._further_checks(),
            note=sampler.note,
            ways=tuple(self.ways),
            batches_within=self.batches_within,
        )

    def _scope(self) -> Scope:
        bound = max((case.bound for case in self.cases), default=None)
        largest = "" if bound is None else f", here up to {float(bound):.2g}"
        within = max((case.undecided for case in self.cases if case.basis == PROBED), default=None)
        hidden = [] if within is None else [f"faults on less than {float(within):.2g} of the random numbers"]
        return Scope(
            arithmetic="the sampler's own, on rows of float32; its law in rationals",
            tolerance=f"rounding to float32, a total variation of 4 (L+1) (Λ+V+8) 2^-24{largest}",
            shapes=tuple(
                sorted({(case.vocab_size, case.draft_length, case.num_drafts) for case in self.cases})
            ),
            processes=tuple(dict.fromkeys(case.process for case in self.cases)),
            refused=(
                *self.not_asked,
                *hidden,
                *self.sampler.journal.refused,
                *dict.fromkeys(map(str, self.refused)),
            ),
        )

    def _further_checks(self) -> tuple[str, ...]:
        """The checks that we made by further runs, in words."""
        journal, signature = self.sampler.journal, self.sampler.signature_name
        joint = (JOINT,) if signature == ROUND_BATCH else (JOINT_LAWS,) if signature in KINDS else ()
        return (
            f"inside of every cell of a comparison, at {' and '.join(map(str, PROBES))} of it",
            f"{journal.repeated} of {journal.runs} runs were made again, if possible with ordinary numbers; "
            "a state (a generator of its own, a count of calls) that decides only the others is not found",
            f"{journal.pairs_of_calls} runs of two calls in a row",
            *(
                (
                    f"by {CALLS} calls of each batch, {CALLS_OF_NAN} with rows without a distribution: "
                    f"{', '.join(self.conventions)}",
                )
                if self.conventions
                else ()
            ),
            *joint,
        )


def _distance(case: AuditCase) -> str:
    """Say in words what we know of the total variation."""
    if case.basis == DRAWN:
        return case.because
    if case.basis == PROBED:
        learned = f"{float(case.total_variation):.4g}, learned to within {float(case.undecided):.2g}"
        return f"total variation {learned}"
    if case.undecided:
        return f"total variation at least {float(case.total_variation - case.undecided):.4g}"
    return f"total variation {number_text(case.total_variation)}"


def _open(case: AuditCase) -> str:
    """Say why we cannot decide on a pair."""
    error = f"{float(case.undecided):.3g}"
    if case.basis == DRAWN:
        seen = f"a total variation of {error} would have been seen"
        return f"{case.calls} draws on {case.where} have shown no wrong law; {seen}"
    if case.basis == PROBED:
        return (
            f"a total variation of {float(case.total_variation):.3g} was learned on {case.where}, to within "
            f"{error}; a smaller within decides"
        )
    return f"random numbers are combined, and the total variation on {case.where} is known to {error} only"


def _boundary_findings(cases: list[AuditCase]) -> set[tuple[str, str]]:
    """Findings on forbidden tokens.

    For example, a sampler accepts if coin <= ratio, and both are exactly 0.  We report these findings beside
    the verdict, which counts their probability in the total variation.
    """
    made = [case for case in cases if case.makes_forbidden_tokens]
    if not made:
        return set()
    worst = max(made, key=lambda case: case.forbidden)
    prob = number_text(worst.forbidden, decimal=False)
    return {(BOUNDARY, f"a forbidden token is made with probability {prob} on {worst.where}")}


def _without_output(cases: Sequence[AuditCase]) -> AuditCase | None:
    """The case with the largest probability of runs without a valid output, if there are such runs."""
    return max((case for case in cases if case.undefined), key=lambda case: case.undefined, default=None)


def _farthest(cases: Sequence[AuditCase]) -> AuditCase:
    return max(cases, key=lambda case: case.total_variation - case.undecided)


def _case_of_the_headline(cases: Sequence[AuditCase]) -> AuditCase | None:
    """The case that the headline of a defect names, if its law is wrong."""
    wrong = [case for case in cases if case.is_wrong]
    named = _without_output(cases)
    if named is None:
        return _farthest(wrong) if wrong else None
    return named if named in wrong else None
