"""Audits of functions that an engine has around its drafts.  They draw no random numbers.

We call them on all drafts of a pair, so their law is exact.  No verifier of the engine is run.

- A *schedule* says how many drafted tokens of every request are verified.
- A *draft map* turns tokens and rows of a draft with another vocabulary into the target's.
- *Processors* apply sampling parameters to the target's rows after the text and after each drafted token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch

from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.auditing.rounds.rounding import rounding_bound
from spectheory.auditing.subjects.provenance import Provenance
from spectheory.auditing.verdicts.audit_certificate import AuditCertificate
from spectheory.auditing.verdicts.cases import AuditCase
from spectheory.exact.certificate import Certificate
from spectheory.exact.certifying import certify
from spectheory.foundation.documents import count_text
from spectheory.foundation.errors import InvalidOutcomeError, NotJudgedError
from spectheory.foundation.exact_numbers import exact_values
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, UNDECIDED
from spectheory.foundation.scope import Scope
from spectheory.pairs.contexts import Context, prefix_numbers, rows_along
from spectheory.pairs.drafts import PerPath, Shortened, draft_defect
from spectheory.pairs.drafts.defect import completed_laws, variations
from spectheory.pairs.drafts.kept import DisclosedDrafts
from spectheory.pairs.drafts.process import whole_paths
from spectheory.pairs.instances import random_rational, tiny_probabilities
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.processors import ROUNDING, Processor, processed
from spectheory.verification.defective.other_rows import OtherTargetRows

SCHEDULE, DRAFT_MAP, PROCESSORS = "schedule", "draft_map", "processors"
FORMS: Mapping[str, str] = {
    SCHEDULE: "(tokens [B, L], rows [B, L, V]) -> the number of tokens to verify, of every request",
    DRAFT_MAP: "(draft_tokens [L], draft_rows [L, W]) -> (tokens [n], rows [n, V])",
    PROCESSORS: "(text, draft_tokens, rows [len(draft_tokens) + 1, V]) -> rows",
}
"""Signature -> form.  Tokens and rows are tensors, rows are probabilities in float32."""
PROMPT = (0,)
"""The text before the drafts of processors: it has not all tokens, or a penalty would change no row."""
BATTERY: Mapping[str, Mapping[Callable[..., ModelPair], Sequence[tuple[int, int, int]]]] = {
    # Thresholds need flat rows and tiny probabilities, and four depths tell look-ahead from lags.
    SCHEDULE: {
        random_dyadic: ((3, 3, 2), (1, 2, 2), (2, 2, 3), (9, 2, 4)),
        tiny_probabilities: ((8, 2, 3), (9, 3, 2)),
    },
    # Four draft tokens leave room for tokens without an image and for two tokens with one image.
    DRAFT_MAP: {random_dyadic: ((4, 4, 1), (6, 4, 2))},
    PROCESSORS: {random_dyadic: ((3, 3, 2), (2, 2, 3), (4, 4, 1))},
}
"""Signature -> maker of random pairs -> (seed, V, L) of the pairs on which we judge it."""
REQUESTS, MOST_DRAFTS = (1, 2, 3), 256
"""A schedule is asked of up to three requests, if they have at most so many drafts."""


@dataclass(frozen=True)
class DraftFunction:
    """A schedule, a draft map or processors, unmodified, with a signature of ``FORMS``, for ``audit``."""

    function: Callable[..., Any]
    signature_name: str
    is_of_a_library = False

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__name__", "function"))


Finding = tuple[Any, str, ModelPair, Certificate | None]
"""The draft defect, in words too, and the pair over the target's tokens.

Where the draft defect does not decide, the total variation of token verification, with a certificate.
"""


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
    own = {
        f"{make.__name__.replace('_', ' ')}, V={key[1]}, L={key[2]}": make(*key)
        for make, keys in BATTERY[kind].items()
        for key in keys
    }
    judges: Mapping[str, Callable[..., Finding]] = {
        SCHEDULE: _schedule,
        DRAFT_MAP: _map,
        PROCESSORS: partial(_processors, stated=stated),
    }
    for number, (name, pair) in product(REQUESTS if kind == SCHEDULE else (1,), (pairs or own).items()):
        is_large = pair.vocab_size ** (pair.draft_length * number) > MOST_DRAFTS
        if number > 1 and (is_large or any(case.is_wrong for case in cases if case.num_drafts < number)):
            continue
        words = f"{count_text(number, 'request')} on {name}" if kind == SCHEDULE else name
        try:
            variation, because, judged, found = judges[kind](subject.function, pair, number)
        except NotJudgedError as error:
            verdict, reasons = UNDECIDED, [str(error)]
            break
        except Exception as error:  # whatever the function raises
            verdict, reasons = NOT_LOSSLESS, [f"{words}: it raises {type(error).__name__}: {error}"]
            if kind == DRAFT_MAP and pairs is None:  # which may be due to our vocabulary
                verdict, reasons = UNDECIDED, [f"{reasons[0]}; give the size of the draft's vocabulary"]
            break
        case = AuditCase(
            pair=name,
            vocab_size=judged.vocab_size,
            draft_length=judged.draft_length,
            num_drafts=number,
            process="independent requests" if kind == SCHEDULE else "one path",
            total_variation=variation,
            bound=Fraction(0) if kind == SCHEDULE else rounding_bound(judged),
        )
        if case.is_wrong and all(case.total_variation > other.total_variation for other in cases):
            verdict, reasons, counterexample = NOT_LOSSLESS, [f"{words}: {because}"], found
        cases.append(case)
    return AuditCertificate(
        sampler=subject.name,
        signature=kind,
        verdict=verdict,
        reasons=tuple(reasons),
        cases=tuple(cases),
        counterexample=counterexample,
        provenance=Provenance.of(subject.function),
        scope=Scope(
            arithmetic="the function's own, on rows of float32; laws of its answers in rationals",
            tolerance="none for lengths; for rows, rounding to float32",
            shapes=tuple(sorted({(case.vocab_size, case.draft_length, case.num_drafts) for case in cases})),
            processes=tuple(dict.fromkeys(case.process for case in cases)),
        ),
    )


def _schedule(function: Callable[..., Any], pair: ModelPair, requests: int) -> Finding:
    """Compute the draft defect of a schedule (theory.md Statements 8.4 and 8.7).

    Request r has the pair's draft rows with the tokens moved by r, so that requests differ.
    """
    drafts = [tuple(np.roll(level, r, axis=1) for level in pair.draft) for r in range(requests)]
    models = tuple(ModelPair(pair.target, levels, pair.vocab) for levels in drafts)
    answers: dict[bytes, tuple[int, ...]] = {}

    def rule(paths: Any, rows: Any) -> tuple[int, ...]:
        tokens, probs = np.reshape(paths, (requests, -1)), np.reshape(rows, (requests, -1, pair.vocab_size))
        lengths = tuple(map(int, function(torch.tensor(tokens), torch.tensor(probs.astype(np.float32)))))
        known = answers.setdefault(tokens.tobytes(), lengths)
        if known != lengths:
            raise NotJudgedError(
                f"it answers {known} and {lengths} to the same drafts: it keeps state or draws random numbers"
            )
        return lengths

    process = Shortened(PerPath(models), rule)
    found = draft_defect(process, pair)
    because = found.in_words()
    if not found and requests > 1:
        completed, handed = completed_laws(process.kept_law(pair), models, pair.draft_length)
        if not any(variations(completed - handed)[1:]):
            because += "; every request by itself is right"
    return found.total_variation, because, pair, None


def _map(function: Callable[..., Any], pair: ModelPair, requests: int) -> Finding:
    """Compute the draft defect of a draft map on the draft of a pair (theory.md Statement 8.14).

    If one text has two rows, or a row has a sum above 1, token verification decides on a positive target
    (Statement 8.15).
    """
    events = []
    for path, prob, along in whole_paths(pair):
        tokens, rows = function(torch.tensor(path), torch.tensor(along.astype(np.float32)))
        if len(rows) < len(tokens):
            raise InvalidOutcomeError(f"a draft map returned {len(tokens)} tokens and {len(rows)} rows")
        events.append((prob, tuple(map(int, tokens)), [_exact(row) for row in rows[: len(tokens)]]))
    kept = max(len(tokens) for _, tokens, _ in events)
    size = max((len(row) for _, _, given in events for row in given), default=0)
    target = random_rational([8, 14], size, kept, zero_probability=0, equal_row_probability=0)
    variation, because, _, found = _judged("by token verification,", "token", target, DisclosedDrafts(events))
    if found is None or found.draft_defect is None:
        return variation, because, target, found
    return found.draft_defect.total_variation, found.draft_defect.in_words(), target, None


def _processors(
    function: Callable[..., Any], pair: ModelPair, requests: int, stated: Processor | None
) -> Finding:
    """Judge the rows of windows by token verification (theory.md Statement 8.17).

    Row i of a window must be the row that the function returns for this row alone, without drafted tokens,
    after the text with the first i of them.  Or it must be the row of a stated processor.
    """

    def called(text: Context, drafted: Context, rows: np.ndarray) -> list[np.ndarray]:
        found = list(map(_exact, function(list(text), list(drafted), torch.tensor(rows.astype(np.float32)))))
        if len(found) != len(drafted) + 1:
            raise InvalidOutcomeError(f"processors returned {len(found)} rows, expected {len(drafted) + 1}")
        # No output reaches a text after which no token is left, and its row does not matter.
        return [row / row.sum() if row.sum() > 0 else raw for row, raw in zip(found, rows, strict=True)]

    windows: dict[Context, list[np.ndarray]] = {}

    def row_of(path: Context, depth: int) -> Any:
        if path not in windows:
            prefixes = prefix_numbers(np.array(path), pair.vocab_size)
            windows[path] = called(PROMPT, path, rows_along(pair.target, prefixes))
        return windows[path][depth]

    plain = stated or Processor("one row", lambda text, row: called(text, (), row[None])[0])
    wanted = processed(pair, plain, prompt=PROMPT)
    return _judged("rows of a window are not the rows of plain decoding:", OtherTargetRows(row_of), wanted)


def _judged(words: str, verifier: Any, pair: ModelPair, drafts: Any = 1) -> Finding:
    judged = certify(verifier, pair, drafts, with_optimum=False)
    return judged.total_variation, f"{words} {judged.in_words()}", pair, judged


def _exact(row: Any) -> Any:
    """The row in rationals; a sum near 1 becomes 1.  Numbers that are not finite become 0."""
    exact = exact_values(np.nan_to_num(np.array([*map(float, row)]), posinf=0.0, neginf=0.0))
    return exact / exact.sum() if abs(exact.sum() - 1) <= ROUNDING else exact
