"""plan(): recommend drafts and a verifier within a budget of target rows, and predict their speed.

On an enumerated pair we compute the exact value of every candidate.  On language models we measure the costs
of calls, and every candidate decodes texts after one half of the prompts.  From these results we choose
(``choosing.py``).  The chosen and the next best candidates then decode texts after the other half, and we
measure their costs again.  We report only the second numbers, which are not biased by the choice.
"""

from __future__ import annotations

import inspect
import platform
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectheory.exact.law import output_law
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.foundation.exact_numbers import Number, float_tolerance
from spectheory.foundation.settings import Progress
from spectheory.foundation.validation import check_count, check_draft_length
from spectheory.optima.pair_optimum import optimum
from spectheory.pairs.pair import ModelPair
from spectheory.simulation.candidates import PLAIN, Candidate, candidates_of_models, candidates_of_pair
from spectheory.simulation.choosing import by_speed, choose, report
from spectheory.simulation.cost import check_cost
from spectheory.simulation.drawn_tree import drawn_tree
from spectheory.simulation.finished_lines import open_lines
from spectheory.simulation.first_line import first_line
from spectheory.simulation.measuring import Measured, Units, call_seconds, halves
from spectheory.simulation.plans import Plan, Planned
from spectheory.simulation.runs import looked_up, model_threads, said_to_be_lossless
from spectheory.simulation.settings import SimulationSettings
from spectheory.verification.verifier import Verifier

if TYPE_CHECKING:
    from spectheory.models import LanguageModelPair, SamplingOptions

VERIFIERS = ("block", "scored_multipath", "traversal", "multi_round_without_replacement", "naive_sampling")
"""Verifiers tried by default: the best known verifier of every draft process."""
OF_PAIRS = (*VERIFIERS, "conditional_transport")
"""Verifiers tried on enumerated pairs.  The last one solves its plan on the CPU, too slowly for texts."""
DRAFT_COST, ROW_COST = 0.15, 0.01
"""Default costs on an enumerated pair, which has no seconds to measure.

We measured them with SmolLM2 and its draft model on an H200 (benchmarks/results/nvidia-h200.md).
"""
MAX_TUPLES = 2_000
"""Largest number of tuples enumerated per candidate; it is small, as a plan has hundreds of candidates."""
REPORTED = 3
"""Number of candidates measured again.  More would widen all intervals, because they hold together."""
TOLERANCE = 1e-9
"""Largest total variation that counts as zero in float64."""
SAME_SPEED = 1e-12
"""Largest relative difference of tied speeds on enumerated pairs: speeds are computed in float64."""


def plan(
    pair: ModelPair | LanguageModelPair,
    prompts: Sequence[str | Sequence[int]] | None = None,
    verifiers: Sequence[str | Any] | None = None,
    *,
    target_rows: int = 8,
    draft_length: int = 8,
    draft_cost: float | None = None,
    row_cost: float | None = None,
    max_new_tokens: int = 32,
    options: SamplingOptions | None = None,
    max_prompt_tokens: int | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    jobs: int | None = None,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Recommend drafts and a verifier, and predict how much faster they are than plain decoding.

    On an enumerated pair all values are exact.  On language models the costs of calls are measured here,
    unless they are given.  All candidates decode texts after half of the prompts, and the results choose.
    The chosen and the next best candidates decode texts after the other half, and these numbers are reported.

    Every candidate verifies a fixed number of tokens.  If your engine changes it with the drafts, take a
    verifier with *yes* for adaptive lengths (``spectheory verifiers``).

    Args:
        pair: The models, enumerated or language models.
        prompts: Texts or token ids, at least 8 of them different.  An enumerated pair has none.
        verifiers: Names, ``package.module:attribute``, or objects with ``outcome``.  Default: the best known.
        target_rows: Largest number of drafted tokens that a call of the target scores, N.
        draft_length: Length of the longest path, L; on an enumerated pair at most its draft length.
        draft_cost: Time to draft one token, divided by the time of a target call that scores no drafts.
            Default: measured; on an enumerated pair 0.15.
        row_cost: Time that each drafted token adds to a target call, in the same unit.  Default: measured; on
            an enumerated pair 0.01.
        max_new_tokens: Number of tokens of each text.
        options: ``SamplingOptions``: temperature, top-k and top-p of both models.
        max_prompt_tokens: Keep at most the last N tokens of every prompt.
        confidence: Level of all intervals together, and of the statement that the fastest candidate is tied.
        seed: The same seed decodes the same texts.
        jobs: Number of processes that decode.  Times are measured in one process.
        checkpoint: Keep finished measurements in this file.  The same plan resumes from it.
        progress: Called with (finished measurements, all measurements).

    Returns:
        The plan; ``.best`` is the recommendation.

    Raises:
        InvalidInputError: an argument is out of range or does not fit the pair, there are too few prompts, no
            verifier accepts any of the drafts, or the checkpoint belongs to another plan.
        InvalidOutcomeError: an answer of a verifier is not a law.

    Example:
        >>> from spectheory import instances
        >>> found = plan(instances.two_token(2), verifiers=["greedy_multipath"], target_rows=4)
        >>> print(found.best.verifier, found.best.drafts, found.best.block_efficiency, found.optimum)
        greedy_multipath iid:2 212/81 212/81
    """
    rows = check_count("target_rows", target_rows)
    length = check_draft_length("draft_length", draft_length)
    costs = _given_costs(draft_cost, row_cost)
    if isinstance(pair, ModelPair):
        _refuse_arguments_of_models(
            prompts=prompts, max_new_tokens=max_new_tokens, options=options,
            max_prompt_tokens=max_prompt_tokens, confidence=confidence, seed=seed, jobs=jobs,
            checkpoint=checkpoint, progress=progress,
        )  # fmt: skip
        return _plan_exactly(
            pair, looked_up(OF_PAIRS if verifiers is None else verifiers), rows, length, costs
        )
    from spectheory.models.language_model import check_models

    check_models(pair)
    settings = SimulationSettings(
        draft_length=length, max_new_tokens=check_count("max_new_tokens", max_new_tokens), options=options,
        max_prompt_tokens=max_prompt_tokens, confidence=confidence, seed=seed, jobs=jobs,
        checkpoint=checkpoint, progress=progress,
    )  # fmt: skip
    given = looked_up(VERIFIERS if verifiers is None else verifiers)
    return _plan_measured(pair, prompts, given, rows, costs, settings)


def _refuse_arguments_of_models(**given: Any) -> None:
    """Refuse arguments for language models that differ from their defaults."""
    for name, value in given.items():
        if value != inspect.signature(plan).parameters[name].default:
            raise InvalidInputError(
                f"{name} is an argument of language models, and the pair is enumerated; leave it out"
            )


def _given_costs(draft_cost: Any, row_cost: Any) -> tuple[float, float] | None:
    if draft_cost is row_cost is None:
        return None
    if draft_cost is None or row_cost is None:
        missing = "draft_cost" if draft_cost is None else "row_cost"
        raise InvalidInputError(
            f"{missing} was not given, and the other cost was; give both, or neither to have them measured"
        )
    return check_cost("draft_cost", draft_cost), check_cost("row_cost", row_cost)


def _plan_exactly(
    pair: ModelPair,
    verifiers: Sequence[Verifier],
    rows: int,
    length: int,
    given: tuple[float, float] | None,
) -> Plan:
    costs = given or (DRAFT_COST, ROW_COST)
    found: list[tuple[Candidate, Number]] = []
    skipped, left_out = 0, dict[str, None]()
    for part, candidate in candidates_of_pair(pair, verifiers, rows, length):
        assert candidate.verifier is not None
        assert candidate.process is not None
        try:
            law = output_law(candidate.verifier, part, candidate.process, max_tuples=MAX_TUPLES)
        except EnumerationTooLargeError:
            skipped += 1
            continue
        if law.total_variation > float_tolerance(law.pair, TOLERANCE):
            left_out[candidate.verifier.name] = None
            continue
        found.append((candidate, law.block_efficiency))
    found = [entry for entry in found if entry[0].name not in left_out]
    if not found and left_out:
        raise InvalidInputError(
            f"one call is not lossless on this pair: {', '.join(left_out)}; certify says where"
        )
    if not found:
        raise _nothing_fits()
    found.insert(0, (PLAIN, Fraction(1)))
    speeds = [float(value) / candidate.cost(*costs) for candidate, value in found]
    fastest = max(speeds)
    tied = [speed >= fastest * (1 - SAME_SPEED) for speed in speeds]
    order = sorted(
        range(len(found)), key=lambda n: (not tied[n], found[n][0].target_rows if tied[n] else -speeds[n])
    )
    best, _ = found[order[0]]
    choices = [
        _planned(candidate, value, candidate.cost(*costs), speeds[number], tied[number])
        for number in order
        for candidate, value in [found[number]]
    ]
    return Plan(
        choices, rows, length, "given" if given else "assumed", len(found), sum(tied), skipped,
        _ceiling(pair, best), left_out=tuple(left_out), tree=drawn_tree(best.process, best.draft_length),
    )  # fmt: skip


def _ceiling(pair: ModelPair, candidate: Candidate) -> Number | None:
    """Compute the optimum over lossless verifiers on the drafts of a candidate; None if unknown."""
    if candidate.process is None:
        return None
    try:
        limit = optimum(pair.truncate(candidate.draft_length), candidate.process)
    except EnumerationTooLargeError:
        return None
    return limit.upper if limit.is_interval else limit.value


def _planned(candidate: Candidate, *numbers: Any) -> Planned:
    return Planned(
        candidate.name, candidate.drafts, candidate.num_drafts, candidate.draft_length,
        candidate.target_rows, *numbers,
    )  # fmt: skip


def _nothing_fits() -> InvalidInputError:
    return InvalidInputError("no verifier takes drafts of so few rows; name others, or raise target_rows")


def _plan_measured(
    pair: LanguageModelPair,
    prompts: Any,
    verifiers: Sequence[Verifier],
    rows: int,
    costs: tuple[float, float] | None,
    settings: SimulationSettings,
) -> Plan:
    from spectheory.models.language_model import encode_prompts

    encoded = encode_prompts(
        pair, prompts, settings.draft_length, settings.max_prompt_tokens, settings.max_new_tokens or 0
    )
    chooses, reports = halves(encoded, settings.seed)
    candidates = candidates_of_models(verifiers, rows, settings.draft_length)
    if candidates == [PLAIN]:
        raise _nothing_fits()
    arguments = settings.record() | {"target_rows": rows, "costs": costs}
    if costs is None:  # costs differ between machines
        arguments["machine"] = platform.node()
    first = {}
    if settings.checkpoint is not None:
        processes = [candidate.process for candidate in candidates if candidate.process is not None]
        first = first_line(pair, encoded, verifiers, arguments, processes)
    shown = min(REPORTED, len(candidates))
    with open_lines(settings.checkpoint, first) as kept, model_threads(pair, settings.threads) as threads:
        units = Units(kept, len(candidates) + shown + (2 if costs is None else 0), settings.progress)
        measured = Measured(pair, units, settings, threads, costs)
        trials, seconds = measured.trials(candidates, chooses, settings.seed)
        tied = choose(trials, settings.confidence)
        kept_candidates = list(dict.fromkeys([tied[0], *by_speed(trials)]))[:shown]
        again, more = measured.trials(
            [candidates[number] for number in kept_candidates], reports, settings.seed + 1
        )
    found = zip(kept_candidates, again, report(again, settings.confidence), strict=True)
    choices = [
        _planned(candidates[n], trial.tokens, trial.cost, trial.speed_up, n in tied, *intervals)
        for n, trial, intervals in found
    ]
    best = candidates[tied[0]]
    return Plan(
        choices, rows, settings.draft_length, "measured" if costs is None else "given", len(candidates),
        len(tied), confidence=settings.confidence,
        unknown=[entry.name for entry in verifiers if not said_to_be_lossless(entry)],
        calls=call_seconds([*seconds, *more]), device=str(pair.device) if costs is None else None,
        tree=drawn_tree(best.process, best.draft_length),
    )  # fmt: skip
