"""Audit a shipped sampler: find its exact law on a battery of pairs, and give a verdict on its code."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from spectheory.auditing.handing.handing import handing
from spectheory.auditing.rounds.batch_battery import JOINT_LAWS, KINDS, batches_of
from spectheory.auditing.rounds.batches import audit_batches
from spectheory.auditing.rounds.by_calls import call_once, learn_batches
from spectheory.auditing.rounds.questions import Question, followed_law, questions, refusal
from spectheory.auditing.rounds.rounding import rounding_bound
from spectheory.auditing.rounds.two_calls import MAX_RUNS_OF_TWO_CALLS, call_twice, questions_of_calls
from spectheory.auditing.rounds.two_rounds import JOINT, OF_REQUESTS, follow_rounds
from spectheory.auditing.subjects.adapters import load_subject
from spectheory.auditing.subjects.drafting_rounds import DraftingRound
from spectheory.auditing.subjects.model_loops import ModelLoop, as_shipped
from spectheory.auditing.subjects.plain_steps import plain_step
from spectheory.auditing.subjects.shipped import HIDDEN, OTHER_SEED, Shipped, TimeIsUpError
from spectheory.auditing.subjects.signatures import ROUND_BATCH
from spectheory.auditing.tape.atoms import PROBES
from spectheory.auditing.tape.decisions import HiddenRandomnessError, NotEnumerableError
from spectheory.auditing.verdicts.audit_certificate import (
    BOUNDARY,
    DRAWN,
    PROBED,
    RELAXATION,
    RISK,
    AuditCase,
    AuditCertificate,
)
from spectheory.auditing.verdicts.calls import Calls, Found
from spectheory.auditing.verdicts.chi_squared import samples_needed, total_variation_of_cells
from spectheory.exact.certificate import Certificate, certify
from spectheory.exact.law import OutputLaw, output_law
from spectheory.foundation.documents import number_text
from spectheory.foundation.errors import (
    EnumerationTooLargeError,
    InvalidInputError,
    InvalidOutcomeError,
)
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, UNDECIDED
from spectheory.foundation.scope import Scope
from spectheory.optima.pair_optimum import optimum
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.processors import Processor

_log = logging.getLogger(__name__)

MAX_RUNS_FOUND_AGAIN = 1_000
"""The first wrong law is computed twice unless it has more runs: then enough runs were made twice."""
MAX_SEEDS = 16
"""The most seeds that it is followed with again: fair coins agree for all of them with probability 2^-16."""
MAX_RUNS_OF_SEEDS = 100
"""The most runs of all these seeds: of numbers that are made of a seed few runs can be followed."""
GREEDY_OF_A_RELAXATION = (
    "whether greedy requests get the likeliest tokens: a relaxation states no law for them"
)
GREEDY_TIES = "greedy requests whose rows have one likeliest token, no ties"
WITHIN = 0.002
"""A fault on fewer of the random numbers can hide; 8 200 calls per pair take 1 to 5 seconds."""
OF_BATCHES, MOST_REQUESTS = 0.02, 5
"""Laws of batches are learned to within 0.02, as there are dozens; 4 requests have 5, with the joint one."""
LEARNED, MOST_PARTS = ("total_variation", "forbidden", "undefined", "block_efficiency"), 10**5
"""Numbers of learned laws are rounded to so many parts, which changes them by less than 10^-10."""
MAX_LEAVES = 16
"""The optimum, as a second proof, is computed on pairs of at most 16 drafted paths."""


def audit(
    sampler: str | Callable[..., Any] | Shipped,
    pairs: Mapping[str, ModelPair] | None = None,
    *,
    signature: str = "sampler",
    num_drafts: int | Sequence[int] = (),
    trees: Sequence[DraftProcess] = (),
    processor: Processor | None = None,
    plain: Callable[..., Any] | None = None,
    within: float = WITHIN,
    stop_at_first: bool = False,
    quick: bool = False,
    time_limit: float | None = None,
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
        signature: how we call a function: a name in ``SIGNATURES``.
        num_drafts: the number K of independent paths, or several such numbers.  The default is 1, and also 2
            and 3 if the signature has several paths.
        trees: the draft processes for which a function is meant, if its paths are not independent.
        processor: the sampling parameters of the request, declared (``spectheory.pairs.processors``).  The
            sampler gets raw rows, and must have the law of the processed target.
        plain: the engine's own plain step, in place of a processor: (row, text, generator) -> a token, given
            a raw row [V] in float32.  The sampler must have the law of plain decoding on the same raw rows.
        within: the largest error, as a total variation, of the law of a probed sampler on each pair, at a
            confidence of 1 - 10^-6 for all pairs.  We make about 17 / within calls per pair.
        stop_at_first: whether to stop at the first pair, or batch, that shows a defect.
        quick: whether to use only a few pairs and batches.
        time_limit: seconds after which we start no run.  We then report the findings so far.
        progress: called with (pairs done, number of pairs).

    Raises:
        InvalidInputError: a pair is not exact; or the signature has one path but ``num_drafts`` is larger; or
            a sampler that is not a function is given with a signature, num_drafts or trees.
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
    if isinstance(sampler, (str, Shipped)):
        if signature != "sampler" or num_drafts or trees:
            raise InvalidInputError(
                "signature, num_drafts and trees say how a function is called, and "
                f"{getattr(sampler, 'name', sampler)!r} knows; leave them out"
            )
        sampler = load_subject(sampler) if isinstance(sampler, str) else sampler
    else:
        numbers = num_drafts if isinstance(num_drafts, Iterable) else (num_drafts,)
        sampler = as_shipped(sampler, signature, num_drafts=numbers, trees=trees)
    if processor is not None and plain is not None:
        raise InvalidInputError("give a processor or a plain step, not both")
    used = processor if plain is None else plain_step(plain)
    if used is not None:
        sampler.processor, sampler.declared = used, processor
        sampler.note = "; ".join(filter(None, (sampler.note, f"judged with {used.name}")))
    sampler.quick = quick
    sampler.deadline = None if time_limit is None else time.monotonic() + time_limit
    if pairs is not None and not isinstance(pairs, Mapping):
        raise InvalidInputError(f"pairs must be a mapping of names to pairs, got {type(pairs).__name__}")
    for name, pair in (pairs or {}).items():
        if not pair.is_exact:
            raise InvalidInputError(
                f'an audit is exact and takes exact pairs; write the rows of {name!r} as texts, such as "1/3"'
            )
    batches_of(sampler)  # refuses a kind that is not known before the pairs are asked about
    groups, left_out = questions(sampler, pairs)
    total = sum(map(len, groups.values()))
    found = _Found(sampler, not_asked=list(left_out))
    for group in islice(groups.values(), 1):
        call_once(sampler, group[0])
    for words, group in groups.items():
        if found.cases and found.verdict()[0] in (NOT_LOSSLESS, UNDECIDED):
            break  # with fewer paths it is not lossless
        may_refuse = group[0].num_drafts > 1 and not sampler.has_given_drafts
        error = refusal(sampler, group[0]) if may_refuse else None
        if error is not None:
            found.not_asked.append(f"{words}: {error}")
            continue
        found.follow_two_calls(group)
        for question in group:
            if progress is not None:
                progress(len(found.cases), total)
            _log.info("%s: %s, case %d of %d", sampler.name, question.name, len(found.cases) + 1, total)
            found.add(question)
            if stop_at_first and found.verdict()[0] == NOT_LOSSLESS:
                break
    found.take_over(groups, within, stop_at_first, progress)
    batches: tuple[str, ...] = ()
    is_defect = found.verdict()[0] == NOT_LOSSLESS
    if is_defect and any(case.undecided for case in found.cases):
        # The boxes of two requests together are so many as their product: minutes for what is wrong alone.
        found.not_asked.append("batches: the sampler multiplies random numbers, and is wrong on one request")
    elif not (stop_at_first and is_defect):
        batches = found.ask_batches(within, stop_at_first)
    if progress is not None:
        progress(total, total)
    return found.certificate(batches)


@dataclass
class _Found:
    """The findings of an audit so far.

    Attributes:
        sampler: the sampler, whose journal has the findings.
        not_asked: the questions that were left out or that the sampler refused, in words.
        cases, asked: the cases, and their questions.
        whys: per case, why a run had no valid output, if there was such a run.
        refused: the errors raised when we could not follow random numbers.
        ways: why we changed to the next way (probe or draw), in sentences.
        batches_within: the error of the laws of batches, if we learned them.
    """

    sampler: Shipped
    not_asked: list[str]
    cases: list[AuditCase] = field(default_factory=list)
    asked: list[Question] = field(default_factory=list)
    whys: list[str] = field(default_factory=list)
    refused: list[InvalidInputError] = field(default_factory=list)
    ways: list[str] = field(default_factory=list)
    batches_within: float = 0.0

    def follow_two_calls(self, group: Sequence[Question]) -> None:
        """Follow two calls in a row on a few of the questions."""
        sampler = self.sampler
        if isinstance(sampler, ModelLoop):
            return  # a text has several steps
        for question in questions_of_calls(group, isinstance(sampler, DraftingRound)):
            try:
                if isinstance(sampler, DraftingRound):
                    _, why = follow_rounds(sampler, question.pair)
                    self._note_left_out(f"two rounds in a row on {question.name}", why)
                else:
                    runs = call_twice(*_prepared(sampler, question))
                    if runs >= MAX_RUNS_OF_TWO_CALLS:
                        words = "the law of two calls in a row"
                        where = f"{question.words} on {question.name}"
                        self._note_left_out(words, f"{MAX_RUNS_OF_TWO_CALLS} branches or more, {where}")
            except NotEnumerableError as error:
                self.refused.append(error)
        if isinstance(sampler, DraftingRound) and sampler.signature_name == ROUND_BATCH:
            for words, asked in OF_REQUESTS.items():
                _, why = follow_rounds(sampler, **asked)
                self._note_left_out(words, why)

    def _note_left_out(self, what: str, why: str) -> None:
        if why:
            self.not_asked.append(f"{what}: {why}")

    def add(self, question: Question) -> None:
        sampler = self.sampler
        try:
            runs = -sampler.journal.runs
            sampler.reasons.clear()
            asked, prepared = _prepared(sampler, question)
            self.cases.append(_case(asked, prepared))
            self.asked.append(question)
            self.whys.append(min(sampler.reasons, default="it returns no tokens"))
            runs += sampler.journal.runs
            is_first = self.cases[-1].is_wrong and sum(case.is_wrong for case in self.cases) == 1
            if is_first and runs <= MAX_RUNS_FOUND_AGAIN:
                _check_law_again(asked, prepared, runs)
        except (NotEnumerableError, EnumerationTooLargeError) as error:
            self.refused.append(error)

    def take_over(
        self,
        groups: Mapping[str, Sequence[Question]],
        within: float,
        stop_at_first: bool,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        """Probe or draw the questions on which we could not follow the sampler, unless a defect was found.

        Args:
            groups: all questions, by the words of their process.
            within: the largest allowed error of a probed law, as a total variation.
            stop_at_first: whether to stop at the first wrong law.
            progress: as in ``audit``.
        """
        is_over = any(isinstance(error, TimeIsUpError) for error in self.refused)
        if not self.refused or is_over or self.verdict()[0] == NOT_LOSSLESS:
            return
        if any(isinstance(error, HiddenRandomnessError) for error in self.refused):
            self.cases, self.asked, self.whys = (
                [],
                [],
                [],
            )  # no law that was found is known to be the sampler's
        asked = list(map(id, self.asked))
        questions = [each for group in groups.values() for each in group if id(each) not in asked]
        if not questions:
            return
        self.ways.append(f"not followed: {self.refused[0]}")
        self.refused.clear()
        calls = Calls(self.sampler, within, RISK / len(questions))
        left_out: set[str] = set()
        for number, question in enumerate(questions):
            if question.words in left_out:
                continue
            if self.asked and question.words != self.asked[-1].words and self.verdict()[0] == NOT_LOSSLESS:
                break  # with fewer paths it is not lossless
            if progress is not None:
                progress(len(self.cases), len(self.cases) + len(questions) - number)
            self.sampler.reasons.clear()
            try:
                found = calls.ask(question)
            except NotEnumerableError as error:  # of a stand-in: calls do not help
                self.refused.append(error)
                break
            is_first = question.num_drafts > 1 and question.words not in {each.words for each in self.asked}
            if found.fails and is_first and not self.sampler.has_given_drafts:
                left_out.add(question.words)
                self.not_asked.append(f"{question.words}: {min(self.sampler.reasons, default='it fails')}")
                continue
            case = _case_of_calls(self.sampler, question, found)
            self.cases.append(case)
            self.asked.append(question)
            self.whys.append(min(self.sampler.reasons, default="it returns no tokens"))
            if case.is_wrong and stop_at_first:
                break
        self.ways += calls.ways

    def ask_batches(self, within: float, stop_at_first: bool) -> tuple[str, ...]:
        """Compare requests in batches with the same requests alone, and return the kinds of batches.

        We follow them, or learn their laws from calls.
        """
        sampler = self.sampler
        number = sum(1 for _ in batches_of(sampler))
        if not number:
            return ()
        if any(case.basis == DRAWN for case in self.cases):
            self.not_asked.append("batches: the random numbers cannot be handed to the sampler")
            return ()
        kinds: tuple[str, ...] = ()
        try:
            if not self.ways:
                try:
                    kinds = audit_batches(sampler, stop_at_first=stop_at_first)
                except (NotEnumerableError, EnumerationTooLargeError) as error:
                    if sampler.journal.findings:
                        raise
                    self.ways.append(f"not followed: batches: {error}")
            if self.ways:
                self.batches_within = max(within, OF_BATCHES)
                # A law of each batch, and of each of its requests alone.
                sampler.learns = learn_batches(self.batches_within, RISK / (MOST_REQUESTS * number))
                with handing():
                    kinds = audit_batches(sampler, stop_at_first=stop_at_first)
        except (NotEnumerableError, EnumerationTooLargeError) as error:
            self.refused.append(error)
        finally:
            sampler.learns = None
        if sampler.relaxation is not None and "greedy" in kinds:
            self.not_asked.append(GREEDY_OF_A_RELAXATION)
        return kinds

    def verdict(self) -> tuple[str, list[str]]:
        verdict, reasons = _verdict(self.sampler, self.cases, self.whys, self.refused)
        if verdict == UNDECIDED:
            reasons = [*self.ways, *reasons]
        if not self.cases and verdict != NOT_LOSSLESS and not reasons:
            return UNDECIDED, ["; ".join(("no pair was asked about", *self.not_asked))]
        return verdict, reasons

    def certificate(self, batches: tuple[str, ...]) -> AuditCertificate:
        sampler, cases = self.sampler, self.cases
        journal, relaxation = sampler.journal, sampler.relaxation
        verdict, reasons = self.verdict()
        has_own_law = relaxation is not None and relaxation.verifier is not None
        shown = None if verdict != NOT_LOSSLESS or has_own_law else _of_the_headline(cases)
        shown = None if shown is not None and shown.basis == DRAWN else shown
        return AuditCertificate(
            sampler=sampler.name,
            signature=sampler.signature_name,
            verdict=verdict,
            reasons=tuple(reasons),
            cases=tuple(cases),
            counterexample=_counterexample(sampler, self.asked[cases.index(shown)])
            if shown is not None
            else None,
            relaxation="" if relaxation is None else relaxation.words,
            provenance=sampler.provenance,
            primitives=tuple(sorted(journal.primitives)),
            findings=tuple(sorted(journal.findings | _boundary(cases))),
            scope=self.scope(),
            batches=batches,
            stand_ins=sampler.stand_ins,
            seeds=sampler.seeds,
            probes=(
                f"inside of every cell of a comparison, at {' and '.join(map(str, PROBES))} of it",
                f"{journal.repeated} of {journal.runs} runs were made twice, with the same numbers",
                f"{journal.pairs_of_calls} runs of two calls in a row",
                *((GREEDY_TIES,) if "greedy" in batches else ()),
                *self._joint_laws(),
            ),
            note=sampler.note,
            ways=tuple(self.ways),
            batches_within=self.batches_within,
        )

    def scope(self) -> Scope:
        bound = max((case.bound for case in self.cases), default=Fraction(0))
        within = max((case.undecided for case in self.cases if case.basis == PROBED), default=None)
        hidden = [] if within is None else [f"faults on less than {float(within):.2g} of the random numbers"]
        return Scope(
            arithmetic="the sampler's own, on rows of float32; its law in rationals",
            tolerance="rounding to float32, a total variation of 4 (L+1) (Λ+V+8) 2^-24, here up to "
            f"{float(bound):.2g}",
            shapes=tuple(
                sorted({(case.vocab_size, case.draft_length, case.num_drafts) for case in self.cases})
            ),
            processes=tuple(dict.fromkeys(case.process for case in self.cases)),
            refused=(
                *self.sampler.left_out,
                *self.not_asked,
                *hidden,
                *self.sampler.journal.refused,
                *dict.fromkeys(map(str, self.refused)),
            ),
        )

    def _joint_laws(self) -> tuple[str, ...]:
        """Say in words of which requests side by side we followed the joint law."""
        signature = self.sampler.signature_name
        return (JOINT,) if signature == ROUND_BATCH else (JOINT_LAWS,) if signature in KINDS else ()


def _prepared(sampler: Shipped, question: Question) -> tuple[Shipped, Question]:
    """Return the sampler, and the question with the pair on which we judge the sampler."""
    asked, pair = sampler.prepared(question.pair)
    return asked, question._replace(pair=pair)


def _case(sampler: Shipped, question: Question) -> AuditCase:
    pair, (law, undecided) = question.pair, followed_law(sampler, question)
    stated = _stated_law(sampler, pair, question.process)
    found, wanted = _compared(sampler, law, stated)
    case = AuditCase(
        pair=question.name,
        vocab_size=pair.vocab_size,
        draft_length=pair.draft_length,
        num_drafts=question.num_drafts,
        process=question.words,
        total_variation=total_variation_of_cells(found, wanted, law.undefined),
        undecided=undecided,
        bound=rounding_bound(pair),
        forbidden=law.completed_law[_allowed(pair, stated) == 0].sum() + Fraction(0),
        undefined=law.undefined,
        block_efficiency=Fraction(law.block_efficiency),
        optimum=None,
        samples=samples_needed(found, wanted, law.undefined),
    )
    is_large = pair.vocab_size**pair.draft_length > MAX_LEAVES
    is_loop = isinstance(sampler, ModelLoop)  # whose drafts we do not see
    if is_large or is_loop or question.num_drafts > 1 or sampler.relaxation is not None:
        return case
    best = optimum(pair).value
    return replace(case, optimum=best) if isinstance(best, Fraction) else case


def _case_of_calls(sampler: Shipped, question: Question, found: Found) -> AuditCase:
    """Build the case of a question judged by draws, or by a learned law.

    A run without output may be rarer than rounding.  Then it is the end of a grid, at which code divides by
    0, and we do not count it.
    """
    if found.drawn is not None:
        return found.drawn
    assert found.probed is not None
    probed = found.probed
    asked, prepared = _prepared(sampler, question)
    case = _case(asked, prepared)
    if case.undefined <= case.bound:
        case = replace(case, undefined=Fraction(0))
    case = replace(
        case,
        **{name: getattr(case, name).limit_denominator(MOST_PARTS) for name in LEARNED},
        undecided=Fraction(probed.within).limit_denominator(MOST_PARTS),
        basis=PROBED,
        calls=probed.learned + probed.points,
    )
    return case if case.is_wrong else replace(case, samples=None)


def _check_law_again(sampler: Shipped, question: Question, runs: int) -> None:
    """Check that all runs give the same law a second time, and with as many other seeds as time allows.

    Numbers that another library computes from a seed may lead to the same law for one other seed by chance.
    """
    law, _ = followed_law(sampler, question)
    try:
        for number in range(1 + max(1, min(MAX_SEEDS, MAX_RUNS_OF_SEEDS // max(runs, 1)))):
            sampler.seed = number * OTHER_SEED
            sampler.forget()
            again, _ = followed_law(sampler, question)
            if not all(np.array_equal(*levels) for levels in zip(law.masses, again.masses, strict=True)):
                raise HiddenRandomnessError(f"{HIDDEN}: followed twice, it has two laws")
    finally:
        sampler.seed = 0


def _stated_law(sampler: Shipped, pair: ModelPair, process: DraftProcess) -> OutputLaw | None:
    verifier = None if sampler.relaxation is None else sampler.relaxation.verifier
    return None if verifier is None else output_law(verifier, pair, process)


def _compared(sampler: Shipped, law: OutputLaw, stated: OutputLaw | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the two arrays of probabilities that we compare: found and wanted.

    They are the law of completed outputs and the target.  If the sampler states the law of a verifier, they
    are the laws of outputs that are not completed, with or without the correction token.
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
    """The wanted law of completed outputs.  Outputs that have probability 0 under it are forbidden."""
    return pair.target_path_probs(pair.draft_length + 1) if stated is None else stated.completed_law


def _verdict(
    sampler: Shipped, cases: list[AuditCase], whys: list[str], refused: list[InvalidInputError]
) -> tuple[str, list[str]]:
    hidden = [error for error in refused if isinstance(error, HiddenRandomnessError)]
    if hidden:  # no law that was found is known to be the sampler's
        return UNDECIDED, [str(hidden[0])]
    wrong = [case for case in cases if case.is_wrong]
    reasons = []
    undefined = _without_output(cases)
    if undefined is not None:
        reasons.append(
            f"it makes no valid output with probability {number_text(undefined.undefined)} on "
            f"{undefined.where}: {whys[cases.index(undefined)]}"
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


def _boundary(cases: list[AuditCase]) -> set[tuple[str, str]]:
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


def _of_the_headline(cases: Sequence[AuditCase]) -> AuditCase | None:
    """The case that the headline of a defect names, if its law is wrong."""
    wrong = [case for case in cases if case.is_wrong]
    named = _without_output(cases)
    if named is None:
        return _farthest(wrong) if wrong else None
    return named if named in wrong else None


def _counterexample(sampler: Shipped, question: Question) -> Certificate | None:
    """Certify the sampler on the pair of a question.

    Return ``None`` if boxes are undecided, because we then do not know the law exactly.  Return ``None`` also
    if a run without a valid output cannot be distinguished from a stop.
    """
    asked, prepared = _prepared(sampler, question)
    if followed_law(asked, prepared)[1]:
        return None
    try:
        found = certify(asked, prepared.pair, drafts=question.process, with_optimum=False)
    except InvalidOutcomeError:
        return None
    return found if found.failure is None else None
