"""Audit a shipped sampler: find its law on a battery of pairs, and give a verdict on its code."""

import logging
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from spectheory.auditing.handing.handing import handing
from spectheory.auditing.handing.numbers import NotHandedError
from spectheory.auditing.probing.claim import Probed, points_needed
from spectheory.auditing.probing.learning import BudgetSpentError
from spectheory.auditing.rounds.batch_battery import batches_of
from spectheory.auditing.rounds.batches import audit_batches
from spectheory.auditing.rounds.by_calls import call_once, draw_question, learn_question, learn_requests
from spectheory.auditing.rounds.conventions import check_conventions
from spectheory.auditing.rounds.questions import questions
from spectheory.auditing.rounds.trace import trace_run
from spectheory.auditing.rounds.two_calls import follow_two_calls, questions_of_calls
from spectheory.auditing.rounds.two_rounds import OF_REQUESTS, follow_rounds
from spectheory.auditing.subjects.adapters import load_subject
from spectheory.auditing.subjects.asked import Question
from spectheory.auditing.subjects.drafting_rounds import DraftingRound
from spectheory.auditing.subjects.model_loops import ModelLoop, as_shipped
from spectheory.auditing.subjects.plain_steps import plain_step
from spectheory.auditing.subjects.runs import TimeIsUpError
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import ROUND_BATCH
from spectheory.auditing.tape.decisions import HiddenRandomnessError, NotEnumerableError
from spectheory.auditing.verdicts.audit_certificate import AuditCertificate
from spectheory.auditing.verdicts.cases import (
    DRAWN,
    FOLLOWED,
    RISK,
    AuditCase,
    check_law_again,
    drawn_case,
    followed_case,
    prepared,
    probed_case,
)
from spectheory.auditing.verdicts.draft_functions import FORMS, DraftFunction, audit_draft_function
from spectheory.auditing.verdicts.judging import Findings
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.foundation.results import NOT_LOSSLESS, UNDECIDED
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.processors import Processor
from spectheory.verification.user import users_line

_log = logging.getLogger(__name__)

GREEDY_OF_A_RELAXATION = (
    "whether greedy requests get the likeliest tokens: a relaxation states no law for them"
)
WITHIN, QUICK_WITHIN = 0.002, 0.02
"""A fault on fewer of the random numbers can hide; 8 200 calls per pair take 1 to 5 seconds.

A quick audit makes 860 calls per pair.
"""
MISSED = 1.001
"""A bound more than this factor above the requested bound has missed it.  A smaller excess is rounding."""
OF_BATCHES, MOST_REQUESTS = 0.02, 5
"""Laws of batches are learned to within 0.02, as there are dozens; 4 requests have 5, with the joint one."""
WRONG_ALONE = "batches: the sampler is wrong on one request, and its batches take long"
"""Two requests whose random numbers are multiplied have too many boxes; calls are thousands."""


def audit(
    sampler: str | Callable[..., Any] | Shipped | DraftFunction,
    pairs: Mapping[str, ModelPair] | None = None,
    *,
    signature: str = "sampler",
    drafts: int | DraftProcess | Sequence[int | DraftProcess] = (),
    processor: Processor | None = None,
    plain: Callable[..., Any] | None = None,
    within: float | None = None,
    stop_at_first: bool = False,
    quick: bool = False,
    time_limit: float | None = None,
    trace: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> AuditCertificate:
    """Find the law of a shipped sampler on every pair, and judge it.

    We *follow* all runs of the code, which gives its exact law.  If the code does something that we cannot
    follow, we *probe* it: we call it on random numbers that we hand it, and learn its law to within
    ``within``.  If it draws numbers that we cannot hand to it, we *draw* its answers, and bet against the
    target's law.  Draws can show *not lossless*, but never *lossless*.

    Args:
        sampler: a function in torch, unmodified; the name of a library's sampler, such as "transformers";
            or a ``Shipped`` sampler with more settings.
        pairs: name -> exact pair; by default ``audit_pairs()``, and for several paths
            ``pairs_of_several_paths()``.
        signature: how we call a function: a name in ``SIGNATURES``; or "schedule", "draft_map" or
            "processors" for a function around the drafts (``verdicts.draft_functions``).
        drafts: the number K of independent paths, a draft process for which a function is meant if its paths
            are not independent, or several of them.  The default is 1, and also 2 and 3 if the signature has
            several paths.
        processor: the sampling parameters of the request, declared (``spectheory.pairs.processors``).  The
            sampler gets raw rows, and must have the law of the processed target.
        plain: the engine's own plain step, in place of a processor: (row, text, generator) -> a token, given
            a raw row [V] in float32.  The sampler must have the law of plain decoding on the same raw rows.
        within: the largest error, as a total variation, of the law of a probed sampler on each pair, at a
            confidence of 1 - 10^-6 for all pairs.  We make about 17 / within calls per pair.  The default is
            0.002, and 0.02 for a quick audit.
        stop_at_first: whether to stop at the first pair, or batch, that shows a defect.
        quick: whether to use only a few pairs and batches, and to follow at most 600 runs of a call.
        time_limit: seconds after which we start no run.  We then report the findings so far.
        trace: whether to print one run, to the standard error: every decision with its line, bound, case and
            probability.
        progress: called with (pairs done, number of pairs).

    Raises:
        InvalidInputError: a pair is not exact; or the signature has one path and ``drafts`` several; or a
            sampler that is not a function is given with a signature or drafts.
        UnknownNameError: no library's sampler, or no signature, has this name.

    Example:
        >>> import torch
        >>> from spectheory import instances
        >>> def first_draft(paths, target_rows, draft_rows, generator):
        ...     '''Takes the drafted token and draws the next token from the target.'''
        ...     return [int(paths[0, 0]), int(torch.multinomial(target_rows[0, 1], 1, generator=generator))]
        >>> print(audit(first_draft, {"thirds": instances.two_token(1)}))
        <first_draft: not lossless: its law is not the target's on thirds, total variation 1/3 = 0.333333>
    """
    if pairs is not None and not isinstance(pairs, Mapping):
        raise InvalidInputError(f"pairs must be a mapping of names to pairs, got {type(pairs).__name__}")
    for name, pair in (pairs or {}).items():
        if not pair.is_exact:
            raise InvalidInputError(
                f'an audit is exact and takes exact pairs; write the rows of {name!r} as texts, such as "1/3"'
            )
    if within is not None and not 0 < within < 1:
        raise InvalidInputError(f"within must lie between 0 and 1, got {within}")
    if processor is not None and plain is not None:
        raise InvalidInputError("give a processor or a plain step, not both")
    used = processor if plain is None else plain_step(plain)
    if signature in FORMS and not isinstance(sampler, (str, Shipped, DraftFunction)):
        sampler = DraftFunction(sampler, signature)
    if isinstance(sampler, DraftFunction):
        return audit_draft_function(sampler, pairs, used)
    sampler = _subject(sampler, signature, drafts)
    if used is not None:
        if getattr(sampler.sampler, "takes_bonus", False):
            raise InvalidInputError(
                "bonus_token_ids are drawn from raw rows; with declared parameters take bonus_probs, and "
                "draw this token"
            )
        sampler.processor, sampler.declared = used, processor
        sampler.note = "; ".join(filter(None, (sampler.note, f"judged with {used.name}")))
    sampler.quick = quick
    sampler.deadline = None if time_limit is None else time.monotonic() + time_limit
    batches_of(sampler)  # refuses a kind that is not known before the pairs are asked about
    groups, left_out = questions(sampler, pairs)
    total = sum(map(len, groups.values()))
    asked = _Audit(
        sampler, list(left_out), total=total, stop_at_first=stop_at_first, progress=progress,
        within=(QUICK_WITHIN if quick else WITHIN) if within is None else within,
    )  # fmt: skip
    for group in islice(groups.values(), 1 if trace else 0):
        (*_, question) = questions_of_calls(group)
        print(*trace_run(sampler, question), sep="\n", file=sys.stderr)
    asked.judge_pairs(groups)
    asked.judge_batches()
    asked.show_progress(total)
    return asked.certificate()


def _subject(
    sampler: str | Callable[..., Any] | Shipped,
    signature: str,
    drafts: int | DraftProcess | Sequence[int | DraftProcess],
) -> Shipped:
    """Resolve the sampler that a user gives."""
    if isinstance(sampler, (str, Shipped)):
        if signature != "sampler" or drafts:
            raise InvalidInputError(
                "signature and drafts say how a function is called, and "
                f"{getattr(sampler, 'name', sampler)!r} knows; leave them out"
            )
        return load_subject(sampler) if isinstance(sampler, str) else sampler
    given = drafts if isinstance(drafts, (list, tuple, range)) else (drafts,)
    numbers = [one for one in given if not isinstance(one, DraftProcess)]
    trees = [one for one in given if isinstance(one, DraftProcess)]
    return as_shipped(sampler, signature, num_drafts=numbers, trees=trees)


@dataclass
class _Audit(Findings):
    """An audit that is under way.

    Attributes:
        total: the number of questions.
        within, stop_at_first, progress: as in ``audit``.
        is_called: whether we only call the sampler, because its followed runs do not give its law.
    """

    total: int = 0
    within: float = WITHIN
    stop_at_first: bool = False
    progress: Callable[[int, int], None] | None = None
    is_called: bool = False
    _refused_calls: list[InvalidInputError] = field(default_factory=list)
    _least_large: float = math.inf
    """The number of tuples of paths in the smallest question that had too many runs."""
    _most_tuples: float = math.inf

    def judge_pairs(self, groups: Mapping[str, Sequence[Question]]) -> None:
        """Judge the sampler on all pairs, with few paths first.

        If following finds randomness that we do not replace, we begin again, and only call the sampler.
        """
        try:
            self._judge_groups(groups)
        except HiddenRandomnessError as error:
            self.cases, self.asked, self.is_called = [], [], True
            self.ways = [f"not followed: {error}"]
            self._judge_groups(groups)
        if self.ways:
            self.not_asked += [f"two calls in a row: {error}" for error in self._refused_calls]
        else:
            self.refused += self._refused_calls

    def _judge_groups(self, groups: Mapping[str, Sequence[Question]]) -> None:
        for number, (words, group) in enumerate(groups.items()):
            if not number and not self.is_called:
                call_once(self.sampler, group[0])
            known = self.verdict()[0] if self.cases or self.refused else ""
            if self.refused or known == NOT_LOSSLESS or (known == UNDECIDED and not self.ways):
                return  # with fewer paths it is not lossless
            may_refuse = group[0].num_drafts > 1 and not self.sampler.has_given_drafts
            for question in group:
                self.show_progress(len(self.cases))
                _log.info("%s: %s, case %d", self.sampler.name, question.name, len(self.cases) + 1)
                case, is_first = self._case(question), question is group[0]
                if is_first and may_refuse and case is not None and self._is_refused(case):
                    self.not_asked.append(f"{words}: {case.without_output}")
                    break
                if case is not None:
                    self.cases.append(case)
                    self.asked.append(question)
                if self.stop_at_first and self.verdict()[0] == NOT_LOSSLESS:
                    return
                if is_first and case is not None and case.basis == FOLLOWED:
                    self._follow_two_calls(group)
                elif is_first and not self.is_called and not isinstance(self.sampler, ModelLoop):
                    self.not_asked.append(f"{words}: two calls in a row, as one is not followed")

    def _is_refused(self, case: AuditCase) -> bool:
        """Whether the sampler raises in all runs."""
        return case.undefined == 1 and case.without_output in self.sampler.journal.raised

    def show_progress(self, done: int) -> None:
        if self.progress is not None:
            self.progress(done, self.total)

    def _follow_two_calls(self, group: Sequence[Question]) -> None:
        """Follow two calls in a row on a few of the questions."""
        sampler = self.sampler
        if isinstance(sampler, ModelLoop):
            return  # a text has several steps
        for question in questions_of_calls(group, isinstance(sampler, DraftingRound)):
            try:
                if isinstance(sampler, DraftingRound):
                    words, why = "two rounds in a row", follow_rounds(sampler, question.pair)
                else:
                    words, why = "two calls in a row", follow_two_calls(*prepared(sampler, question))
                self._note_left_out(f"{words} on {question.where}", why)
            except HiddenRandomnessError:
                raise
            except NotEnumerableError as error:
                self._refused_calls.append(error)
        if isinstance(sampler, DraftingRound) and sampler.signature_name == ROUND_BATCH:
            for words, asked in OF_REQUESTS.items():
                self._note_left_out(words, follow_rounds(sampler, **asked))

    def _note_left_out(self, what: str, why: str) -> None:
        if why:
            self.not_asked.append(f"{what}: {why}")

    def _case(self, question: Question) -> AuditCase | None:
        """Judge the sampler on a question, in the first way that works.  ``None`` if no way does."""
        self.sampler.reasons.clear()
        case = None
        try:
            if not self.is_called:
                case = self._followed(question)
            if case is None and self.verdict()[0] != NOT_LOSSLESS:
                case = self._called(question)
        except HiddenRandomnessError:
            raise
        except NotEnumerableError as error:  # the time is up, or a stand-in lacks something
            self.refused.append(error)
        if case is None or not case.undefined:
            return case
        return replace(case, without_output=min(self.sampler.reasons, default="it returns no tokens"))

    def _followed(self, question: Question) -> AuditCase | None:
        """Follow the sampler on a question.  If this fails, note why."""
        if self._is_large(question):
            return None
        runs = -self.sampler.journal.runs
        try:
            asked, posed = prepared(self.sampler, question)
            case = followed_case(asked, posed)
            runs += self.sampler.journal.runs
            if case.is_wrong and not any(case.is_wrong for case in self.cases):
                check_law_again(asked, posed, runs)
            return case
        except (HiddenRandomnessError, TimeIsUpError):
            raise
        except EnumerationTooLargeError as error:
            self._least_large = _num_tuples(question)
            self.ways.append(f"not followed: {error} (on {question.where})")
        except NotEnumerableError as error:
            if not self.ways:
                self.ways.append(f"not followed: {error}")
        return None

    def _is_large(self, question: Question) -> bool:
        """Whether a question of this size had too many runs before."""
        return _num_tuples(question) >= self._least_large

    def _called(self, question: Question) -> AuditCase:
        """Probe the sampler on a question, or draw."""
        risk = RISK / self.total
        probed = self._probed(question, risk)
        if probed is not None:
            return probed_case(*prepared(self.sampler, question), probed)
        draws = points_needed(self.within, risk)  # as many calls as probing takes
        return drawn_case(question, *draw_question(self.sampler, question, draws, risk))

    def _probed(self, question: Question, risk: float) -> Probed[Any] | None:
        """Learn the law of the sampler on a question.  If this fails, note why."""
        tuples = question.process.count_tuples(question.pair)
        is_large = isinstance(self.sampler, ModelLoop) and self._is_large(question)
        if tuples >= self._most_tuples or (is_large and self._most_tuples < math.inf):
            return None
        try:
            probed = learn_question(self.sampler, question, self.within, risk, is_large=is_large)
        except NotHandedError as error:
            self._most_tuples, why = 0, f"{error}{users_line(error)}"
        except BudgetSpentError as error:
            self._most_tuples, why = tuples, f"{error} on {question.name}"
        else:
            if probed.within <= self.within * MISSED:
                return probed
            differ = f"{probed.mismatches} of {probed.points} calls on {question.name}"
            why = f"{differ} have another answer than was learned"
        self.ways.append(f"not probed: {why}")
        return None

    def judge_batches(self) -> None:
        """Compare requests in batches with the same requests alone.

        We follow the batches, or learn their laws from calls.
        """
        sampler, is_defect = self.sampler, self.verdict()[0] == NOT_LOSSLESS
        number = len(batches_of(sampler))
        if not number or (is_defect and self.stop_at_first):
            return
        try:
            self.conventions = check_conventions(sampler)
        except NotEnumerableError as error:
            self.refused.append(error)
            return
        if is_defect and (self.ways or any(case.undecided for case in self.cases)):
            self.not_asked.append(WRONG_ALONE)
            return
        if any(case.basis == DRAWN for case in self.cases):
            self.not_asked.append("batches: the random numbers cannot be handed to the sampler")
            return
        try:
            if not self.ways:
                try:
                    self.batches = audit_batches(sampler, stop_at_first=self.stop_at_first)
                except (NotEnumerableError, EnumerationTooLargeError) as error:
                    if sampler.journal.findings:
                        raise
                    self.ways.append(f"not followed: batches: {error}")
            if self.ways:
                self.batches_within = max(self.within, OF_BATCHES)
                # A law of each batch, and of each of its requests alone.
                sampler.learns = learn_requests(self.batches_within, RISK / (MOST_REQUESTS * number))
                with handing():
                    self.batches = audit_batches(sampler, stop_at_first=self.stop_at_first)
        except (NotEnumerableError, EnumerationTooLargeError) as error:
            self.refused.append(error)
        finally:
            sampler.learns = None
        if sampler.relaxation is not None and "greedy" in self.batches:
            self.not_asked.append(GREEDY_OF_A_RELAXATION)


def _num_tuples(question: Question) -> float:
    """The number of tuples of paths, also of paths that are never drafted: loops may draft several."""
    return float(question.pair.vocab_size) ** (question.pair.draft_length * question.num_drafts)
