"""Audits of schedules, draft maps and processors: the drafter is judged without a verifier."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import product

from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.auditing.rounds.rounding import rounding_bound
from spectheory.auditing.subjects.draft_functions import (
    DRAFT_MAP,
    PROCESSORS,
    SCHEDULE,
    DraftFunction,
    UnstableAnswerError,
)
from spectheory.auditing.subjects.provenance import Provenance
from spectheory.auditing.verdicts.audit_certificate import AuditCertificate
from spectheory.auditing.verdicts.cases import AuditCase
from spectheory.foundation.documents import count_text
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, UNDECIDED
from spectheory.foundation.scope import Scope
from spectheory.pairs.instances import random_steep
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.processors import Processor

PAIRS = {"dyadic": random_dyadic, "steep": random_steep}
"""Kind of a random pair -> its maker.  Rows of steep pairs go down to 2^-11."""
BATTERY: Mapping[str, tuple[tuple[str, int, int, int], ...]] = {
    # Thresholds need flat rows and steep ones, and four depths tell look-ahead from lags.
    SCHEDULE: (
        *(("dyadic", *key) for key in ((3, 3, 2), (1, 2, 2), (2, 2, 3), (9, 2, 4))),
        *(("steep", *key) for key in ((8, 2, 3), (9, 3, 2))),
    ),
    # Four draft tokens leave room for tokens without an image and for two tokens with one image.
    DRAFT_MAP: (("dyadic", 4, 4, 1), ("dyadic", 6, 4, 2)),
    PROCESSORS: (("dyadic", 3, 3, 2), ("dyadic", 2, 2, 3), ("dyadic", 4, 4, 1)),
}
"""Signature -> (kind, seed, V, L) of the pairs on which we judge it."""
REQUESTS, MOST_DRAFTS = (1, 2, 3), 256
"""A schedule is asked of up to three requests, if they have at most so many drafts."""


def audit_draft_function(
    subject: DraftFunction, pairs: Mapping[str, ModelPair] | None = None, stated: Processor | None = None
) -> AuditCertificate:
    """Judge a schedule, a draft map or processors on pairs.

    The draft defect decides on the first two (theory.md Statements 8.4, 8.7 and 8.14): no target is read, and
    the verdict is about the drafts of the pairs.  Processors must return the rows of plain decoding.

    Args:
        subject: the function.
        pairs: name -> exact pair; by default ``BATTERY``.  The vocabulary of a draft map is the draft's.
        stated: for processors, the processor that a request states; by default the function without drafts.

    Example:
        >>> def keeps_likely(tokens, rows):
        ...     likely = rows.gather(2, tokens[..., None])[..., 0] > 0.5
        ...     return likely.long().cumprod(1).sum(1)
        >>> found = audit_draft_function(DraftFunction(keeps_likely, "schedule"))
        >>> print(found.verdict, found.cases[0].total_variation)
        not lossless 605/2048
    """
    cases: list[AuditCase] = []
    kind, verdict, reasons, counterexample = subject.signature_name, LOSSLESS, list[str](), None
    own = {f"random {form}, V={key[1]}, L={key[2]}": PAIRS[form](*key) for form, *key in BATTERY[kind]}
    for number, (name, pair) in product(REQUESTS if kind == SCHEDULE else (1,), (pairs or own).items()):
        is_large = pair.vocab_size ** (pair.draft_length * number) > MOST_DRAFTS
        if number > 1 and (is_large or any(case.is_wrong for case in cases if case.num_drafts < number)):
            continue
        words = f"{count_text(number, 'request')} on {name}" if kind == SCHEDULE else name
        try:
            found = subject.finding(pair, number, stated)
        except UnstableAnswerError as error:
            verdict, reasons = UNDECIDED, [str(error)]
            break
        except Exception as error:  # whatever the function raises
            verdict, reasons = NOT_LOSSLESS, [f"{words}: it raises {type(error).__name__}: {error}"]
            if kind == DRAFT_MAP and pairs is None:  # which may be due to our vocabulary
                verdict, reasons = UNDECIDED, [f"{reasons[0]}; give the size of the draft's vocabulary"]
            break
        case = AuditCase(
            pair=name,
            vocab_size=found.pair.vocab_size,
            draft_length=found.pair.draft_length,
            num_drafts=number,
            process="independent requests" if kind == SCHEDULE else "one path",
            total_variation=found.total_variation,
            bound=Fraction(0) if kind == SCHEDULE else rounding_bound(found.pair),
        )
        if case.is_wrong and all(case.total_variation > other.total_variation for other in cases):
            verdict, reasons, counterexample = NOT_LOSSLESS, [f"{words}: {found.because}"], found.certificate
        cases.append(case)
    return AuditCertificate(
        sampler=subject.name,
        signature=kind,
        verdict=verdict,
        reasons=tuple(reasons),
        cases=tuple(cases),
        counterexample=counterexample,
        relaxation="",
        provenance=Provenance.of(subject.function),
        primitives=(),
        findings=(),
        scope=Scope(
            arithmetic="the function's own, on rows of float32; laws of its answers in rationals",
            tolerance="none for lengths; for rows, rounding to float32",
            shapes=tuple(sorted({(case.vocab_size, case.draft_length, case.num_drafts) for case in cases})),
            processes=tuple(dict.fromkeys(case.process for case in cases)),
        ),
    )
