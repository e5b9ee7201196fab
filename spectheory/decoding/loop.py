"""The decoding loop: draft, score, verify, append and repeat, for a batch of texts of different lengths."""

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
"""(indices of the texts in the batch, number of decoded tokens of each) -> the generator of the next call."""


@dataclass(frozen=True, eq=False)
class Iteration:
    """One call of the target on the b texts that were not finished.

    Attributes:
        numbers: indices of these texts in the batch, ascending.
        drafted: paths and rows.  The target rows are the modified ones if the verifier modifies targets.
        outcome: the verifier's answer.
        sample: sample from the outcome, fields [b].
        tokens: per text, the tokens appended: the accepted ones and the correction token, up to the end of
            the text.
        accepted: per text, the number of drafted tokens accepted, also if the text ended before the last.
        finished: per text, the reason why it ends here, or None if it continues.
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

    1. The draft model draws K paths of L tokens after every text.
    2. One call of the target scores all of them.
    3. The verifier gives the law of the accepted prefix and of the correction token; we sample both.
    4. We append the sampled tokens to each text.  Later tokens overwrite rejected ones.  Finished texts are
       dropped.

    Args:
        prefilled: B texts that both models have read; must not be used afterwards.
        verifier: the verifier, bound to the process.
        stopping: rules that end a text.
        generator: generator on the device of the models, or a function that returns one for each call.
        options: temperature, top-k and top-p of both models.
        processors: change the logits of both models, before ``options``.

    Raises:
        ComputationError: a model returned logits without a finite maximum.
        InvalidOutcomeError: a row to sample from has no mass.
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
        # The only place where the host waits for the device.
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
    """Check that the rows we sampled from a user's verifier are laws.

    Raises:
        InvalidOutcomeError: a row is not; the message names the fault and the number of the text.
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
    """Join the accepted prefix, the correction token, then arbitrary entries.  [B, K, L] -> [B, L+1]"""
    batch = torch.arange(len(token_ids), device=token_ids.device)
    path = token_ids[batch, sample.path_index]
    return torch.cat([path, path[:, :1]], dim=1).scatter(1, sample.length[:, None], sample.token[:, None])
