"""Texts that the target writes alone, at every token of which all verifiers judge the same drafts.

A draw drafts K paths behind the text so far and scores them.  The target's row behind the text is among these
rows, and the next token of the text is drawn from it.  So one call of the target per token serves every
verifier and every K, and writes the text.  Up to rounding, the text depends on the seed, not on the drafts.

The estimand is the mean of E[τ + 1 | context] over the contexts of such texts.  A decoding loop meets other
contexts: its calls begin behind accepted tokens (``text_source.py``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spectheory.foundation.arrays import Array
from spectheory.simulation.protocol import DraftedPaths, Draw
from spectheory.simulation.sources import LanguageModelSource
from spectheory.verification.outcome import sample_rows


class CommonTextSource(LanguageModelSource):
    """Prompts in batches, behind which the target writes texts; arguments as in ``LanguageModelSource``."""

    @property
    def draws_per_sample(self) -> int:
        return self.max_new_tokens

    def open_batch(self, batch: int) -> Draw:
        """Its draws go on along a text, and begin the next text once it is as long as was asked for."""
        from spectheory.models.drafting import draft_and_score

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
    """Texts that the target writes behind the prompts of a batch, a token at a time.

    Args:
        source: has the prompts and the seed.
        batch: its number; the tokens depend on the seed and on it alone.

    Attributes:
        prefilled: the texts so far, read by both models.
    """

    def __init__(self, source: LanguageModelSource, batch: int) -> None:
        import torch

        from spectheory.decoding import end_of_sequence

        self._source, self._batch = source, batch
        self._ends = torch.tensor(
            sorted(end_of_sequence(source.pair.target_model)), device=source.pair.device
        )
        seed = np.random.SeedSequence([source.settings.seed, batch], spawn_key=(0,)).generate_state(1)
        self._generator = source.generator(int(seed[0]))
        self.begin()

    def begin(self) -> None:
        from spectheory.models.drafting import prefill

        self.prefilled = prefill(self._source.pair, self._source.prompts_of(self._batch))
        self._first = self.prefilled.texts.ends * 0
        self._goes_on = self._first == 0

    def write(self, target_rows: Array, draft_length: int) -> Array:
        """Draw the next token from the target's rows behind the texts, [B, V].

        Returns:
            [B], whether the texts went on until here; those that ended are lengthened too and do not count.
        """
        import torch

        token = sample_rows(target_rows, self._generator)
        counted, self._goes_on = self._goes_on, self._goes_on & ~torch.isin(token, self._ends)
        tokens = token[:, None].expand(-1, draft_length + 1)
        width = self.prefilled.texts.width + 1
        self.prefilled.accept(self._first, draft_length, tokens, self._first + 1, width=width)
        return counted
