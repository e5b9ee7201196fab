"""plan(): which drafts and which verifier earn the most tokens per unit of cost, within a budget of rows.

On an enumerated pair every candidate has its exact value.  For an acceptance profile the best shape of a tree
is found by dynamic programming (``optima.tree_shapes``).  On language models the candidates race: each
decodes texts behind the first half of the prompts, and the few best decode texts behind the second half.
Only these texts are reported.  The intervals of all that decode them hold together, so that the choice does
not spoil that of the chosen one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from spectheory.exact.law import output_law
from spectheory.foundation.documents import both, count_text
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.foundation.exact_numbers import Number, float_tolerance
from spectheory.foundation.results import Result, Table, Templates, no_verdict
from spectheory.foundation.settings import Progress, Settings, setting, shows_settings
from spectheory.foundation.validation import check_confidence, check_count, check_draft_length
from spectheory.optima.pair_optimum import optimum
from spectheory.optima.tree_shapes import best_shapes, profile_levels, ranked_acceptance
from spectheory.pairs.drafts import (
    ConfidenceTree,
    Deterministic,
    DraftProcess,
    Iid,
    PrefixTree,
    ShapedTree,
    WithoutReplacement,
)
from spectheory.pairs.drafts.process import ANY_PROCESS
from spectheory.pairs.pair import ModelPair, check_pair
from spectheory.simulation.cost import predicted_speed_up
from spectheory.simulation.runs import looked_up, said_to_be_lossless, simulate
from spectheory.verification.verifier import Verifier

if TYPE_CHECKING:
    from spectheory.models import LanguageModelPair, SamplingOptions, UnloadedPair

VERIFIERS = ("block", "scored_multipath", "traversal", "multi_round_without_replacement", "naive_sampling")
"""Verifiers that are tried: the best known of every draft process."""
OF_PAIRS = (*VERIFIERS, "conditional_transport")
"""On enumerated pairs: the last one plans on the CPU, too slowly for texts."""
MAX_TUPLES = 2_000
"""The largest enumeration of one candidate on an enumerated pair."""
FEWEST_PLANNED = 8
"""Half of them race, and an interval over texts needs a few."""
MOST_PATHS = 64
NOTHING_FITS = "no verifier takes drafts that fit the budget"
TOLERANCE = 1e-9
"""The total variation that counts as zero in float64."""


class Budget(NamedTuple):
    """What may be spent, and what it costs.

    Attributes:
        target_rows: the most drafted tokens that a call of the target scores.
        cost_ratio, row_cost: c and r of ``predicted_speed_up``.
        draft_length: the largest L.
    """

    target_rows: int
    cost_ratio: float = 0.0
    row_cost: float = 0.0
    draft_length: int = 8

    def checked(self) -> Budget:
        """The same budget.

        Raises:
            InvalidInputError: a number is out of range.
        """
        check_count("target_rows", self.target_rows)
        check_draft_length("draft_length", self.draft_length)
        predicted_speed_up(1.0, self.draft_length, self.cost_ratio, self.target_rows, self.row_cost)
        return self


@dataclass(frozen=True)
class Choice:
    """Drafts with a verifier, and what they earn.

    Attributes:
        verifier: its name; None for an acceptance profile, which is that of a verifier already.
        drafts: the process as ``--tree`` takes it, or ``iid:K``.
        num_drafts, draft_length: K and L.
        target_rows: drafted tokens that the target scores.
        block_efficiency: tokens per target call.
        speed_up: tokens per unit of cost, one unit being a call of the target that scores no drafts.
        interval, speed_up_interval: of an estimate; None for an exact value.
    """

    verifier: str | None
    drafts: str
    num_drafts: int
    draft_length: int
    target_rows: int
    block_efficiency: Number
    speed_up: float
    interval: tuple[float, float] | None = None
    speed_up_interval: tuple[float, float] | None = None


class Candidate(NamedTuple):
    """A verifier with a draft process that it takes."""

    verifier: Verifier
    process: DraftProcess
    draft_length: int

    @property
    def target_rows(self) -> int:
        """The drafted tokens, where equal tokens of different draws count each."""
        if isinstance(self.process, (ConfidenceTree, ShapedTree)):
            return self.process.num_nodes
        return int(self.process.draws(self.draft_length).sum())

    def choice(self, budget: Budget, value: Number, interval: tuple[float, float] | None = None) -> Choice:
        def speed_up(tokens: Number) -> float:
            costs = budget.cost_ratio, self.target_rows, budget.row_cost
            return predicted_speed_up(float(tokens), self.draft_length, *costs)

        return Choice(
            self.verifier.name, self.process.text, self.process.num_drafts, self.draft_length,
            self.target_rows, value, speed_up(value),
            interval, interval and (speed_up(interval[0]), speed_up(interval[1])),
        )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Result):
    """The drafts and verifiers that were tried, the best first.

    Attributes:
        choices: at least one.
        budget: what was asked for.
        tried: how many candidates were looked at.
        skipped: how many candidates were too large to enumerate.
        optimum: the largest block efficiency of any valid verifier on the drafts of the best choice; None
            where it is not known.
        confidence: of all intervals together; None for exact values.
        left_out: the names of verifiers of which one call is not lossless on the pair; they are not chosen.
        unknown: the names of verifiers of which nobody has said whether they are lossless, or that say they
            are not; on language models this cannot be computed.
    """

    choices: Sequence[Choice]
    budget: Budget
    tried: int
    skipped: int = 0
    optimum: Number | None = None
    confidence: float | None = None
    left_out: Sequence[str] = ()
    unknown: Sequence[str] = ()

    def __bool__(self) -> bool:
        raise no_verdict(self, ".best")

    columns: ClassVar[Templates] = {
        "verifier": "{verifier}",
        "drafts": "{drafts}",
        "L": "{draft_length}",
        "rows": "{target_rows}",
        "tokens per call": "{tokens}",
        "per unit of cost": "{earned}",
    }

    @property
    def best(self) -> Choice:
        return self.choices[0]

    def headline(self) -> str:
        best = self.best
        by = f"{best.verifier} on " if best.verifier else ""
        said = " (not known to be lossless)" if best.verifier in self.unknown else ""
        earned = f"{best.speed_up:.4f} tokens per unit of cost"
        return f"{by}{best.drafts}, L = {best.draft_length}: {earned}{said}"

    def to_document(self) -> dict[str, Any]:
        """The JSON object of ``spectheory plan --json``."""
        return {
            "budget": self.budget._asdict(),
            "tried": self.tried,
            "skipped": self.skipped,
            "confidence": self.confidence,
            "left_out": list(self.left_out),
            "unknown": list(self.unknown),
            **(
                {"optimum": None, "optimum_float": None}
                if self.optimum is None
                else both("optimum", self.optimum)
            ),
            "choices": self.rows(),
        }

    def rows(self) -> list[dict[str, Any]]:
        """One flat row per choice."""
        return [vars(choice) | both("block_efficiency", choice.block_efficiency) for choice in self.choices]

    def tables(self) -> list[Table]:
        shown = []
        for choice in self.choices:
            tokens: Any = choice.block_efficiency
            earned = f"{choice.speed_up:.4f}"
            if choice.interval and choice.speed_up_interval:
                tokens = "{:.4f} ({:.4f} to {:.4f})".format(float(tokens), *choice.interval)
                earned += " ({:.4f} to {:.4f})".format(*choice.speed_up_interval)
            shown.append(vars(choice) | {"tokens": tokens, "earned": earned})
        budget = self.budget
        note = f"{count_text(self.tried, 'candidate')} tried"
        note += f", {self.skipped} too large to enumerate" if self.skipped else ""
        if self.left_out:
            note += f"; left out, because one call is not lossless on this pair: {', '.join(self.left_out)}"
        note += f"; not known to be lossless: {', '.join(self.unknown)}" if self.unknown else ""
        if self.confidence is not None:
            note += f"; all intervals together hold with {100 * self.confidence:g} % confidence"
        if self.optimum is not None:
            note += f"; on the drafts of the first line no verifier earns more than {float(self.optimum):.6f}"
        title = (
            f"at most {budget.target_rows} drafted tokens per call, a call of the draft at "
            f"{budget.cost_ratio:g} and a drafted token at {budget.row_cost:g} of a target call"
        )
        named = any(choice.verifier for choice in self.choices)  # a profile has none
        columns = {label: text for label, text in self.columns.items() if named or label != "verifier"}
        return [Table(title, shown, columns, note)]


def plan_pair(
    pair: ModelPair, budget: Budget, verifiers: Sequence[str | Any] = OF_PAIRS, *, most: int = 8
) -> Plan:
    """The drafts and the verifier that earn the most per unit of cost on an enumerated pair, exactly.

    Candidates are i.i.d. paths, prefix trees and trees without replacement of all widths, the best fixed
    shapes of likeliest tokens (``best_shapes``) and confidence trees, each with the verifiers that take it.

    Args:
        pair: the models; L is at most its draft length.
        budget: rows and costs.
        verifiers: names, or objects with ``outcome``.
        most: how many choices are kept.

    Raises:
        InvalidInputError: a number is out of range, or no verifier takes any of the drafts.

    Example:
        >>> from spectheory import instances
        >>> found = plan_pair(instances.two_token(2), Budget(4, cost_ratio=0.1), ["greedy_multipath"])
        >>> print(found.best.verifier, found.best.drafts, found.best.block_efficiency, found.optimum)
        greedy_multipath iid:2 212/81 212/81
    """
    check_pair(pair)
    budget, given = budget.checked(), looked_up(verifiers)
    found, skipped, left_out = [], 0, dict[str, None]()
    for length in range(1, min(pair.draft_length, budget.draft_length) + 1):
        part = pair.truncate(length)
        for candidate in _candidates(given, _processes(part, budget.target_rows), length):
            try:
                law = output_law(candidate.verifier, part, candidate.process, max_tuples=MAX_TUPLES)
            except EnumerationTooLargeError:
                skipped += 1
                continue
            if law.total_variation > float_tolerance(law.pair, TOLERANCE):
                left_out[candidate.verifier.name] = None
                continue
            found.append((candidate.choice(budget, law.block_efficiency), candidate))
    if left_out:
        found = [entry for entry in found if entry[1].verifier.name not in left_out]
    if not found and left_out:
        raise InvalidInputError(
            f"one call is not lossless on this pair: {', '.join(left_out)}; certify says where"
        )
    if not found:
        raise InvalidInputError(f"{NOTHING_FITS}; name others, or raise the budget")
    found.sort(key=lambda entry: -entry[0].speed_up)
    best = found[0][1]
    try:
        limit = optimum(pair.truncate(best.draft_length), best.process)
        ceiling = limit.upper if limit.is_interval else limit.value
    except EnumerationTooLargeError:
        ceiling = None
    kept = [choice for choice, _ in found[:most]]
    return Plan(kept, budget, len(found), skipped, ceiling, left_out=tuple(left_out))


def plan_profile(profile: Sequence[Any], budget: Budget) -> Plan:
    """The best shapes of trees for an acceptance profile, one for every length, the best first.

    Args:
        profile: a_j, the probability that the j-th child of a node is accepted, the same at every node;
            texts are exact.
        budget: rows and costs.

    Raises:
        InvalidInputError: not probabilities with a sum of at most 1, or a number out of range.

    Example:
        >>> found = plan_profile(["3/5", "3/10"], Budget(target_rows=4, cost_ratio=0.1, draft_length=3))
        >>> found.best.drafts, str(found.best.block_efficiency), round(found.best.speed_up, 4)
        ('shaped_tree:2,1,1', '61/25', 2.0333)
    """
    budget = budget.checked()
    choices = []
    for length in range(1, budget.draft_length + 1):
        shapes = best_shapes(profile_levels(profile, length), budget.target_rows)
        of_length = []
        for best in shapes:
            if not best.children:
                raise InvalidInputError("the profile accepts nothing, so that no drafts pay")
            process = ShapedTree(best.children)
            if process.depth == length:
                rows = process.num_nodes
                earned = predicted_speed_up(
                    float(best.value), length, budget.cost_ratio, rows, budget.row_cost
                )
                of_length.append(
                    Choice(None, process.text, process.num_drafts, length, rows, best.value, earned)
                )
        if of_length:
            choices.append(max(of_length, key=lambda choice: choice.speed_up))
    choices.sort(key=lambda choice: -choice.speed_up)
    return Plan(choices, budget, budget.draft_length * budget.target_rows)


@dataclass(frozen=True, kw_only=True)
class PlanSettings(Settings):
    """The settings of ``plan``.

    Attributes:
        finalists: Choices that are confirmed, m.
        max_new_tokens: Tokens of every text.
        options: ``SamplingOptions``: temperature, top-k and top-p of both models.
        seed: Of the race; the finalists have another one.
        confidence: Level of all intervals together, c.
        max_prompt_tokens: Keep at most the last N tokens of every prompt.
        progress: Called with (runs done, runs in all).
    """

    finalists: int = setting(3, "--finalists", metavar="M")
    max_new_tokens: int = setting(32, "--tokens", "-n", metavar="N")
    options: SamplingOptions | None = None
    seed: int = setting(0, "--seed")
    confidence: float = setting(0.95, "--confidence")
    max_prompt_tokens: int | None = setting(None, "--max-prompt-tokens", metavar="N")
    progress: Progress | None = None

    def __post_init__(self) -> None:
        self._check(check_count, "finalists", "max_new_tokens", "max_prompt_tokens")
        self._check(partial(check_count, at_least=0), "seed")
        self._check(lambda name, value: check_confidence(value, name), "confidence")


@shows_settings(PlanSettings)
def plan(
    pair: LanguageModelPair | UnloadedPair,
    prompts: Sequence[str | Sequence[int]],
    budget: Budget,
    verifiers: Sequence[str | Any] = VERIFIERS,
    settings: PlanSettings | None = None,
    **changes: Any,
) -> Plan:
    """The drafts and the verifier that earn the most per unit of cost on language models, estimated.

    1. Every candidate decodes texts behind each other prompt: i.i.d. paths, paths with distinct first tokens
       and confidence trees, with 1, 2, 4, .. paths or nodes and lengths 1, 2, 3, 4, 6, 8, ..
    2. The finalists, those that earn the most per unit of cost, decode texts behind the other prompts.
    3. The best of these in the mean of both runs is the choice.  Its numbers are those of the second run.
       With m finalists the intervals have the confidence 1 - (1 - c) / m each, so that all of them hold
       together with confidence c, whichever is chosen.

    Args:
        pair: the models.
        prompts: texts or token ids, at least 8.
        budget: rows and costs.
        verifiers: names, or objects with ``outcome``.
        settings: where to start from; None: the defaults.
        changes: settings by keyword, as in ``PlanSettings``, which describes each.

    Raises:
        InvalidInputError: a number is out of range, there are too few prompts, or no verifier takes any of
            the drafts.
    """
    settings = replace(settings or PlanSettings(), **changes)
    budget = budget.checked()
    from spectheory.models import encode_prompts

    halves: tuple[list[list[int]], ...] = [], []
    numbers = dict[tuple[int, ...], int]()  # of different prompts; equal ones stay in one half
    for ids in encode_prompts(pair, prompts, 0, settings.max_prompt_tokens, settings.max_new_tokens):
        numbers.setdefault(tuple(ids), len(numbers))
        halves[numbers[tuple(ids)] % 2].append(ids)
    if len(numbers) < FEWEST_PLANNED:
        raise InvalidInputError(
            f"a plan needs at least {FEWEST_PLANNED} different prompts, got {len(numbers)}"
        )
    loaded = pair.loaded()
    candidates = candidates_of_models(budget, verifiers)
    finalists, done = min(settings.finalists, len(candidates)), 0
    common = {name: getattr(settings, name) for name in ("max_new_tokens", "options", "max_prompt_tokens")}

    def run(
        asked: Sequence[Candidate], first: int, seed: int, level: float
    ) -> list[tuple[Choice, Candidate]]:
        nonlocal done
        found = []
        for candidate in asked:
            (estimate,) = simulate(
                loaded, halves[first], [candidate.verifier], drafts=candidate.process,
                draft_length=candidate.draft_length, seed=seed, confidence=level, **common,
            ).estimates  # fmt: skip
            found.append((candidate.choice(budget, estimate.block_efficiency, estimate.interval), candidate))
            done += 1
            if settings.progress:
                settings.progress(done, len(candidates) + finalists)
        return found

    raced = sorted(
        run(candidates, 0, settings.seed, settings.confidence), key=lambda entry: -entry[0].speed_up
    )[:finalists]
    level = 1 - (1 - settings.confidence) / finalists
    again = run([candidate for _, candidate in raced], 1, settings.seed + 1, level)
    both_runs = sorted(zip(raced, again, strict=True), key=lambda runs: -sum(run[0].speed_up for run in runs))
    kept, names = (
        [choice for _, (choice, _) in both_runs],
        {one.verifier.name: one.verifier for one in candidates},
    )
    unknown = [name for name, verifier in names.items() if not said_to_be_lossless(verifier)]
    return Plan(kept, budget, len(candidates), confidence=settings.confidence, unknown=unknown)


def candidates_of_models(budget: Budget, verifiers: Sequence[str | Any] = VERIFIERS) -> list[Candidate]:
    """What ``plan`` tries on language models, the shortest drafts first."""
    given = looked_up(verifiers)
    found = [
        candidate
        for length in _spread(min(budget.draft_length, budget.target_rows), (1, 2, 3))
        for candidate in _candidates(given, _samples(budget.target_rows, length), length)
    ]
    if not found:
        raise InvalidInputError(f"{NOTHING_FITS}; name others, or raise the budget")
    return found


def _candidates(
    verifiers: Sequence[Verifier], processes: Iterator[DraftProcess], draft_length: int
) -> Iterator[Candidate]:
    """Every process with the verifiers that take it; sampled drafts not with one that takes any drafts.

    One path is verified by verifiers of one path alone, if there are some.
    """
    of_one_path = [verifier for verifier in verifiers if verifier.single_path]
    for process in processes:
        for verifier in of_one_path or verifiers if process == Iid(1) else verifiers:
            if verifier.single_path and process != Iid(1):
                continue
            if process.name not in verifier.draft_processes or draft_length > (
                verifier.max_draft_length or draft_length
            ):
                continue
            if verifier.draft_processes is ANY_PROCESS and not isinstance(process, Deterministic):
                continue
            yield Candidate(verifier, process, draft_length)


def _processes(pair: ModelPair, rows: int) -> Iterator[DraftProcess]:
    """All drafts of an enumerated pair within a number of rows."""
    length = pair.draft_length
    for drafts in range(1, min(rows // length, MOST_PATHS) + 1):
        yield Iid(drafts)
    for widths in _widths(rows, length):
        for process in (PrefixTree(widths), WithoutReplacement(widths)):
            branches = (
                set(widths[1:]) != {1} and length > 1 if process.name == "prefix_tree" else max(widths) > 1
            )
            if branches and process.fits(pair):
                yield process
    yield from dict.fromkeys(_shaped(pair, rows))
    for number in range(1, rows + 1):
        if (tree := ConfidenceTree(number)).fits(pair):
            yield tree


def _shaped(pair: ModelPair, rows: int) -> Iterator[ShapedTree]:
    try:
        found = best_shapes(ranked_acceptance(pair, ShapedTree.name, min(rows, pair.vocab_size)), rows)
    except EnumerationTooLargeError:
        return
    for value in found:
        if value.children and (tree := ShapedTree(value.children)).depth == pair.draft_length:
            yield tree


def _samples(rows: int, length: int) -> Iterator[DraftProcess]:
    for drafts in _spread(rows // length, (1, 2)):
        yield Iid(drafts)
        if drafts > 1:
            yield WithoutReplacement((drafts, *[1] * (length - 1)))
    for nodes in _spread(rows, (1, 2)):
        if nodes >= length:
            yield ConfidenceTree(nodes)


def _spread(most: int, start: Sequence[int]) -> list[int]:
    """Numbers up to ``most``: those to start with, then each twice the last but one or the last."""
    found = list(start)
    while found[-1] < most:
        found.append(2 * found[1 - len(start)])
    return sorted({number for number in found if number < most} | ({most} if most else set()))


def _widths(rows: int, length: int) -> Iterator[tuple[int, ...]]:
    if not length:
        yield ()
        return
    for width in range(1, rows // length + 1):
        for below in _widths(rows // width - 1, length - 1):
            yield width, *below
