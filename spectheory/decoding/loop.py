"""The decoding loop: draft, score, verify, roll back, again, for all texts of a batch at their own pace."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from spectheory.decoding.modified_targets import Modifications
from spectheory.decoding.stopping import Stopping
from spectheory.models import SamplingOptions
from spectheory.models.drafting import (
    DraftedBatch,
    PrefilledPrompts,
    ScoreProcessors,
    draft_and_score,
)
from spectheory.models.sampling import refuse_logits
from spectheory.pairs.drafts import DraftProcess
from spectheory.verification.law_errors import law_errors, refuse_errors, tolerance_of
from spectheory.verification.outcome import Outcome, Sample
from spectheory.verification.sampler_runs import outcome_or_run
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier

NumbersOfCall = Callable[[list[int], list[int]], Any]
"""(numbers of the texts in the batch, how many tokens each has) -> the generator of the next call."""


@dataclass(frozen=True, eq=False)
class Iteration:
    """One call of the target on all texts that were not finished, b of them.

    Attributes:
        numbers: of these texts in the batch, b of them, ascending.
        drafted: the paths and rows, the target's modified where the verifier asks for it.
        outcome: the verifier's answer.
        sample: drawn from the outcome, fields [b].
        tokens: of each text the accepted tokens and the one behind them, as far as the text takes them.
        accepted: how many drafted tokens were accepted, cut off or not, per text.
        finished: why each text is finished by these tokens, None if it is not.
    """

    numbers: list[int]
    drafted: DraftedBatch
    outcome: Outcome
    sample: Sample
    tokens: list[list[int]]
    accepted: list[int]
    finished: list[str | None]


@torch.no_grad()
def decoding_iterations(
    prefilled: PrefilledPrompts,
    verifier: Verifier,
    process: DraftProcess,
    draft_length: int,
    stopping: Stopping,
    generator: torch.Generator | NumbersOfCall,
    options: SamplingOptions,
    processors: ScoreProcessors | None = None,
) -> Iterator[Iteration]:
    """Decode until every text is finished, one call of the target at a time.

    1. The draft model draws K paths of L tokens behind every text.
    2. One call of the target scores all of them.
    3. The verifier says where to stop and by which law to go on; that is drawn.
    4. The texts are lengthened, each by its own number of tokens.  Rejected tokens are forgotten by being
       written over.  Finished texts are dropped.

    Args:
        prefilled: B texts that both models have read; used up.
        verifier: bound to the process.
        stopping: when a text is finished.
        generator: on the models' device; or a function that gives the one of each call.
        options: temperature, top-k and top-p of both models.
        processors: change the logits of both models before that.

    Raises:
        ComputationError: a model returned logits without a finite maximum.
        InvalidOutcomeError: a row that was drawn from has no mass.
    """
    numbers, prompt_width = list(range(prefilled.num_prompts)), prefilled.texts.width
    texts: list[list[int]] = [[] for _ in numbers]
    modifications = None
    if verifier.modified_target_rows is not None:
        modifications = Modifications.none(
            verifier.modified_target_rows, len(numbers), draft_length, prefilled.texts.ends
        )
    while numbers:
        drawn_with: Any = generator
        if callable(generator):
            drawn_with = generator(numbers, [len(texts[number]) for number in numbers])
        drafted = draft_and_score(
            prefilled, process, draft_length, drawn_with, options, processors=processors, wait=False
        )
        if modifications is not None:
            met = modifications.apply(drafted)
            drafted = replace(drafted, target_rows=met.target_rows)
        outcome = outcome_or_run(verifier, drafted.paths, drafted.target_rows, drafted.draft_rows, drawn_with)
        sample = outcome.sample(drawn_with)
        if modifications is not None:
            modifications = modifications.after(met, sample.path_index, sample.length, sample.token)
        output = output_tokens(drafted.token_ids, sample)
        tokens, accepted, finished = [], [], []
        # The one place where the host waits for the device.
        assert drafted.failed is not None
        failed = drafted.failed.to(output.dtype).expand(len(output), 1)
        drawn = torch.cat([sample.length[:, None], failed, output], dim=1).tolist()
        refuse_logits(any(row[1] for row in drawn))
        for number, (length, _, *row) in zip(numbers, drawn, strict=True):
            longer, reason = stopping.extend(number, texts[number], row[: length + 1])
            tokens.append(longer[len(texts[number]) :])
            texts[number] = longer
            accepted.append(length)
            finished.append(reason)
        yield Iteration(numbers, drafted, outcome, sample, tokens, accepted, finished)
        width = prompt_width + max(len(texts[number]) for number in numbers)
        prefilled.accept(sample.path_index, draft_length, output, sample.length + 1, width)
        going_on = [place for place, reason in enumerate(finished) if reason is None]
        if len(going_on) < len(numbers):
            rows = torch.tensor(going_on, device=output.device, dtype=torch.int64)
            prefilled, numbers = prefilled.select(rows), [numbers[place] for place in going_on]
            modifications = None if modifications is None else modifications.select(rows)


def refuse_wrong_laws(verifier: Verifier, call: Iteration) -> None:
    """Refuse an answer of a user's verifier that is not a law where it was drawn from.

    Raises:
        InvalidOutcomeError: the text names the fault and the text.
    """
    if isinstance(verifier, UserVerifier):
        outcome, drafted = call.outcome, call.drafted
        refuse_errors(
            verifier,
            law_errors(outcome, outcome.stop_of(call.sample), drafted.paths, call.sample),
            tolerance_of(drafted.target_rows, None),
            lambda place: f"behind text {call.numbers[place] + 1} of its batch",
        )


def output_tokens(token_ids: Tensor, sample: Sample) -> Tensor:
    """The accepted prefix and the token behind it; what follows means nothing.  [B, K, L] -> [B, L+1]"""
    batch = torch.arange(len(token_ids), device=token_ids.device)
    path = token_ids[batch, sample.path_index]
    return torch.cat([path, path[:, :1]], dim=1).scatter(1, sample.length[:, None], sample.token[:, None])
