"""The verdict on a sampler from the findings on its pairs, and its reasons in words."""

from collections.abc import Sequence

from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.verdicts.audit_certificate import BOUNDARY, RELAXATION
from spectheory.auditing.verdicts.cases import DRAWN, PROBED, AuditCase
from spectheory.foundation.documents import number_text
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, UNDECIDED


def judge(
    sampler: Shipped, cases: list[AuditCase], refused: list[InvalidInputError]
) -> tuple[str, list[str]]:
    """Return the verdict on a sampler, and its reasons.

    Args:
        sampler: the sampler, whose journal has the findings.
        cases: the findings on all pairs.
        refused: why we could not follow, or judge, a part.
    """
    wrong = [case for case in cases if case.is_wrong]
    reasons = []
    undefined = _without_output(cases)
    if undefined is not None:
        about = "about " if undefined.basis == DRAWN else ""
        reasons.append(
            f"it makes no valid output with probability {about}{number_text(undefined.undefined)} on "
            f"{undefined.where}: {undefined.without_output}"
        )
    if wrong:
        worst = _farthest(wrong)
        whose = "the one it states" if sampler.relaxation else "the target's"
        reasons.append(f"its law is not {whose} on {worst.where}, {_distance(worst)}")
    above = [case for case in wrong if case.is_above_the_optimum]
    if above:
        case = above[0]
        earned = f"{float(case.block_efficiency):.6g}"
        if case.undecided:
            earned = f"at least {float(case.block_efficiency - case.draft_length * case.undecided):.4g}"
        reasons.append(
            f"it earns {earned} tokens per call on {case.where}, and no "
            f"lossless verifier earns more than {number_text(case.optimum, decimal=False)}"
        )
    reasons += [f"{kind}: {text}" for kind, text in sorted(sampler.journal.findings)]
    if reasons:
        return NOT_LOSSLESS, reasons
    if refused:
        return UNDECIDED, [str(refused[0])]
    unknown = [case for case in cases if case.is_open]
    if unknown:
        return UNDECIDED, [_open(max(unknown, key=lambda case: case.undecided))]
    if sampler.relaxation is not None:
        return RELAXATION, []
    return LOSSLESS, []


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


def boundary_findings(cases: list[AuditCase]) -> set[tuple[str, str]]:
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


def case_of_the_headline(cases: Sequence[AuditCase]) -> AuditCase | None:
    """The case that the headline of a defect names, if its law is wrong."""
    wrong = [case for case in cases if case.is_wrong]
    named = _without_output(cases)
    if named is None:
        return _farthest(wrong) if wrong else None
    return named if named in wrong else None
