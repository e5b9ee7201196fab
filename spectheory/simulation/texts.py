"""Estimates on whole texts, written by each verifier or by the target alone.

With ``TextSource`` each verifier writes texts in its own decoding loop, and we sum its calls by prompt.  The
contexts of two verifiers differ after the first call.  At equal contexts both draw the same drafts
(``CommonRandomNumbers``).

With ``CommonTextSource`` the target writes the texts, and all verifiers run on the same drafts at every
token.  A draw drafts K paths after the text so far and scores them.  One of these rows is the target's law of
the next token, from which we draw it.  One call of the target per token therefore serves every verifier and
every K, and also writes the text.  Up to rounding, the text depends on the seed and not on the drafts.  The
estimand is the mean of E[τ + 1 | context] over the contexts of these texts.  The contexts of a decoding loop
differ: its calls begin after accepted tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spectheory.decoding import Iteration, Stopping, decoding_iterations, end_of_sequence
from spectheory.foundation.arrays import Array
from spectheory.models.drafting import draft_and_score, prefill
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.drafts.without_replacement import DistinctTree
from spectheory.simulation.estimates import Tally
from spectheory.simulation.judging import DraftedPaths, Draw, Stream
from spectheory.simulation.sources import LanguageModelSource
from spectheory.verification.law_errors import FAULTS, law_errors, refuse_errors, tolerance_of
from spectheory.verification.outcome import sample_rows
from spectheory.verification.verifier import Verifier


class CommonRandomNumbers:
    """Uniform random numbers for all calls on a batch of texts, by text, length and path.

    A call uses the numbers that belong to the current length of its text.  Texts with equal tokens therefore
    get the same drafts, for any verifier and any number of calls.  Each path has separate numbers: the first
    K' of K paths are the K' paths of a run with K'.  A text starts at most one call at each length, so that
    the numbers of one text are independent.

    Args:
        seed: integers that identify the batch.
        texts: number of texts.
        max_new_tokens: length of the longest text; a call starts at 0..max_new_tokens - 1 tokens.
        draws: number of draws of a call: L draws of K tokens, the stop, and the correction token.
        num_drafts: K.
        device: device of the numbers.

    Example:
        >>> numbers = CommonRandomNumbers([7], texts=2, max_new_tokens=3, draws=3, num_drafts=2)
        >>> first, again = (numbers([1, 0], [2, 0]) for _ in range(2))
        >>> torch.equal(first((2, 2, 1)), again((2, 2, 1)))
        True
    """

    def __init__(
        self,
        seed: Sequence[int],
        texts: int,
        max_new_tokens: int,
        draws: int,
        num_drafts: int,
        device: torch.device | str = "cpu",
    ) -> None:
        shape = (texts, max_new_tokens, draws)
        paths = [np.random.default_rng([*seed, path]).random(shape) for path in range(num_drafts)]
        self._numbers = torch.tensor(np.stack(paths, axis=-1), device=device)

    def __call__(self, texts: list[int], lengths: list[int]) -> Callable[[tuple[int, ...]], Tensor]:
        """Return a function that gives the numbers of each draw of a call, in shape [b, 1] or [b, K', 1].

        Args:
            texts: indices of the b texts.
            lengths: their lengths in decoded tokens.
        """
        draws = iter(self._numbers[texts, lengths].unbind(dim=1))
        return lambda shape: next(draws)[:, : prod(shape[1:])].reshape(shape)


class TextSource(LanguageModelSource):
    """Decodes whole texts after prompts.  Arguments as in ``LanguageModelSource``."""

    shares_draws = False

    def tally(
        self, streams: Mapping[str, Stream], batch: int, step: Callable[[int], None]
    ) -> dict[str, Tally]:
        """Compute the sums over all calls of each verifier's texts after the prompts of a batch."""
        found = {}
        for name, stream in streams.items():
            found[name] = self._tally(stream.verifier, stream.process, batch)
            step(self.settings.samples_per_prompt * self.strata_per_batch[batch])
        return found

    def _tally(self, verifier: Verifier, process: DraftProcess, batch: int) -> Tally:
        settings, tolerance = self.settings, self.settings.tolerance
        prompts = self.prompts_of(batch)
        texts = prompts * settings.samples_per_prompt
        # Draws of a call: stop, correction token, and one per depth (without replacement, one per token).
        one_by_one = isinstance(process, DistinctTree)
        draws = 2 + (int(process.draws(self.draft_length).sum()) if one_by_one else self.draft_length)
        tally, errors = Tally.zeros(len(prompts), self.draft_length), np.zeros((len(FAULTS), len(prompts)))
        for call in decoding_iterations(
            prefill(self.pair, texts),
            verifier,
            process,
            self.draft_length,
            Stopping(self.max_new_tokens, end_of_sequence(self.pair.readers[0])),
            CommonRandomNumbers(
                (settings.seed, batch), len(texts), self.max_new_tokens, draws, process.num_drafts,
                self.pair.device,
            ),
            settings.sampling,
        ):  # fmt: skip
            stratum = np.array(call.numbers) % len(prompts)
            expected, length_probs, found = _looked_up(call)
            tally.add_calls(stratum, expected, np.array(call.accepted), length_probs)
            np.maximum.at(errors.T, stratum, found)
            tolerance = tolerance_of(call.drafted.target_rows, tolerance)
        assert tolerance is not None
        refuse_errors(verifier, errors, tolerance, lambda stratum: self.place(batch, stratum))
        return tally


def _looked_up(call: Iteration) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fetch E[tau + 1], [n], P(tau), [n, L+1], and distances from a law, [n, 4], of the answers of a call.

    They are copied from the device together.
    """
    outcome = call.outcome
    parts = [
        outcome.expected_tokens()[:, None],
        outcome.length_probs(),
        law_errors(outcome, outcome.stop_of(call.sample), call.drafted.paths, call.sample).T,
    ]
    found = torch.cat([part.double() for part in parts], dim=1).cpu().numpy()
    return found[:, 0], found[:, 1 : -len(FAULTS)], found[:, -len(FAULTS) :]


class CommonTextSource(LanguageModelSource):
    """Verifies on texts that the target writes after prompts.  Arguments as in ``LanguageModelSource``."""

    @property
    def draws_per_sample(self) -> int:
        return self.max_new_tokens

    def open_batch(self, batch: int) -> Draw:
        """Open a batch.  Each draw adds one token to the texts.  After ``max_new_tokens`` new texts begin."""
        length, options = self.draft_length, self.settings.sampling
        written, texts = 0, TargetTexts(self, batch)

        def draw(generator: Any, draws: int) -> DraftedPaths:
            nonlocal written
            if written == self.draws_per_sample:
                written = 0
                texts.begin()
            drafted = draft_and_score(texts.prefilled, self.process, length, generator, options)
            counted = texts.write(drafted.target_rows[:, 0, 0], length)
            written += 1
            return DraftedPaths(drafted.paths, drafted.target_rows, drafted.draft_rows, counted)

        return draw


class TargetTexts:
    """Texts that the target writes after the prompts of a batch, one token at a time.

    Args:
        source: gives the prompts and the seed.
        batch: index of the batch.  The tokens depend only on it and on the seed.

    Attributes:
        prefilled: the texts so far, read by both models.
    """

    def __init__(self, source: LanguageModelSource, batch: int) -> None:
        self._source, self._batch = source, batch
        self._ends = torch.tensor(sorted(end_of_sequence(source.pair.readers[0])), device=source.pair.device)
        seed = np.random.SeedSequence([source.settings.seed, batch], spawn_key=(0,)).generate_state(1)
        self._generator = source.generator(int(seed[0]))
        self.begin()

    def begin(self) -> None:
        self.prefilled = prefill(self._source.pair, self._source.prompts_of(self._batch))
        self._first = self.prefilled.texts.ends * 0
        self._goes_on = self._first == 0

    def write(self, target_rows: Array, draft_length: int) -> Array:
        """Draw the next token from the target's rows after the texts, [B, V], and append it.

        Returns:
            [B], False for texts that had already ended.  They are lengthened too, but do not count.
        """
        token = sample_rows(target_rows, self._generator)
        counted, self._goes_on = self._goes_on, self._goes_on & ~torch.isin(token, self._ends)
        tokens = token[:, None].expand(-1, draft_length + 1)
        width = self.prefilled.texts.width + 1
        self.prefilled.accept(self._first, draft_length, tokens, self._first + 1, width=width)
        return counted
