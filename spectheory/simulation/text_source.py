"""Whole texts behind prompts: every call of the target judged, summed by prompt.

Each verifier writes texts of its own, for behind the first call the contexts differ.  Where two are at one
context they draw the same drafts (``CommonNumbers``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import check_count
from spectheory.pairs.drafts import DraftProcess
from spectheory.simulation.ceilings import ceilings, has_ceiling
from spectheory.simulation.estimates import Tally
from spectheory.simulation.judging import FAULTS, law_errors, refuse_what_is_no_law, tolerance_of
from spectheory.simulation.sources import LanguageModelSource
from spectheory.verification.outcome import Stop
from spectheory.verification.verifier import Verifier

if TYPE_CHECKING:
    from spectheory.decoding import Iteration, Speed
    from spectheory.models import LanguageModelPair, Restriction, SamplingOptions, UnloadedPair


class TextSource(LanguageModelSource):
    """Prompts in batches, behind which whole texts are decoded.

    Args:
        pair, prompts, process, draft_length, options, batch_size, max_prompt_tokens: as in
            ``LanguageModelSource``.
        restriction: None; texts are written in the whole vocabulary.
        max_new_tokens: of a text; it ends before that at an end-of-sequence token of the target.
        with_ceilings: whether ceilings are added up for the verifiers that have one.

    Raises:
        InvalidInputError: as in ``LanguageModelSource``; there is one prompt only, over which no interval
            can be taken; or ceilings are asked for and several models draft.
    """

    def __init__(
        self,
        pair: LanguageModelPair | UnloadedPair,
        prompts: Any,
        process: DraftProcess,
        draft_length: int,
        options: SamplingOptions,
        restriction: Restriction | None,
        batch_size: int,
        max_prompt_tokens: int | None,
        max_new_tokens: int,
        with_ceilings: bool = False,
    ) -> None:
        super().__init__(pair, prompts, process, draft_length, options, None, batch_size, max_prompt_tokens)
        self.max_new_tokens = check_count("max_new_tokens", max_new_tokens)
        self.with_ceilings = with_ceilings
        if with_ceilings and len(pair.drafts) > 1:
            raise InvalidInputError("ceilings are those of i.i.d. paths, and there are several draft models")
        if restriction is not None:
            raise InvalidInputError("whole texts are not restricted to few tokens; leave the restriction out")
        if len(self.token_ids) < 2:
            raise InvalidInputError("an interval over texts needs at least 2 prompts, got 1")
        for ids in self.token_ids:
            pair.check_length(len(ids) + self.max_new_tokens, self.draft_length)

    def tally(
        self,
        verifier: Verifier,
        num_drafts: int,
        batch: int,
        texts_per_prompt: int,
        seed: int,
        tolerance: float | None,
    ) -> Tally:
        """Sums over all calls of one verifier's texts behind the prompts of a batch.

        Args:
            verifier: bound to ``num_drafts`` paths.
            num_drafts: K.
            batch: its number.
            texts_per_prompt: how many are decoded behind each prompt.
            seed: of the run.
            tolerance: as in ``Judge``.

        Raises:
            InvalidOutcomeError: an answer was no law.
        """
        from spectheory.decoding import Stopping, end_of_sequence, iterations
        from spectheory.models import prefill
        from spectheory.simulation.common_numbers import CommonNumbers

        with_ceilings = self.with_ceilings and has_ceiling(verifier)
        first = batch * self.batch_size
        prompts = self.token_ids[first : first + self.batch_size]
        texts = prompts * texts_per_prompt
        shape = (len(texts), self.max_new_tokens, self.draft_length, num_drafts)
        tally, errors = Tally.zeros(len(prompts), self.draft_length), np.zeros((len(FAULTS), len(prompts)))
        for call in iterations(
            prefill(self.pair, texts),
            verifier,
            self.pair.draft_process(num_drafts),
            self.draft_length,
            Stopping(self.max_new_tokens, end_of_sequence(self.pair.target_model)),
            CommonNumbers((seed, batch), *shape, self.pair.device),
            self.options,
        ):
            stratum = np.array(call.numbers) % len(prompts)
            expected, length_probs, found = _looked_up(call)
            most = _ceilings(call, verifier) if with_ceilings else 0.0
            tally.add_calls(stratum, expected, np.array(call.accepted), length_probs, most)
            np.maximum.at(errors.T, stratum, found)
            tolerance = tolerance_of(call.drafted.target_rows, tolerance)
        assert tolerance is not None
        refuse_what_is_no_law(verifier, errors, tolerance, lambda stratum: self.place(batch, stratum))
        return tally

    def speeds(self, wanted: Sequence[tuple[Verifier, int]], seed: int) -> list[Speed]:
        """How fast the first batch of prompts is decoded, by verifier and K, beside one plain decoding."""
        from spectheory.decoding import plain_decoding, timed_decode

        prompts, size = self.token_ids[: self.batch_size], self.batch_size
        length, options = self.max_new_tokens, self.options
        plain = plain_decoding(self.pair, prompts, max_new_tokens=length, options=options, batch_size=size)
        return [
            timed_decode(
                self.pair, prompts, verifier, plain=plain, num_drafts=num_drafts, max_new_tokens=length,
                draft_length=self.draft_length, options=options, batch_size=size, seed=seed,
            )[1]
            for verifier, num_drafts in wanted
        ]  # fmt: skip


def _ceilings(call: Iteration, verifier: Verifier) -> np.ndarray:
    """The most that could have been earned, [n]; a verifier of one path sees the first alone."""
    drafted, sample, seen = call.drafted, call.sample, 1 if verifier.single_path else None
    most = ceilings(
        drafted.paths[:, :seen], drafted.target_rows[:, :seen], drafted.draft_rows[:, :seen],
        sample.path_index, sample.length,
    )  # fmt: skip
    return most.cpu().numpy()


def _looked_up(call: Iteration) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of every answer of one call E[tau + 1], [n], P(tau), [n, L+1], and how far it is from a law, [n, 3].

    They are fetched from the device together.
    """
    import torch

    drawn, probs = call.sample, call.outcome.stop_probs
    number = drawn.path_index * probs.shape[-1] + drawn.length
    prob = probs.flatten(-2).gather(-1, number[:, None])[:, 0]
    stop = Stop(drawn.path_index, drawn.length, prob, prob)
    rows = call.outcome.correction(drawn.path_index, drawn.length)
    parts = [
        call.outcome.expected_tokens()[:, None],
        call.outcome.length_probs(),
        law_errors(call.outcome, stop, rows).T,
    ]
    found = torch.cat([part.double() for part in parts], dim=1).cpu().numpy()
    return found[:, 0], found[:, 1 : -len(FAULTS)], found[:, -len(FAULTS) :]
