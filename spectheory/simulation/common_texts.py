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

from spectheory.simulation.sources import DraftedPaths, Draw, LanguageModelSource
from spectheory.verification.outcome import sample_rows


class CommonTextSource(LanguageModelSource):
    """Prompts in batches, behind which the target writes texts; arguments as in ``LanguageModelSource``."""

    @property
    def draws_per_sample(self) -> int:
        return self.max_new_tokens

    def open_batch(self, batch: int) -> Draw:
        """Its draws go on along a text, and begin the next text once it is as long as was asked for."""
        import torch

        from spectheory.decoding import end_of_sequence
        from spectheory.models import draft_and_score, prefill

        prompts, device, length = self.token_ids[self._places(batch)], self.pair.device, self.draft_length
        ends = torch.tensor(sorted(end_of_sequence(self.pair.target_model)), device=device)
        seed = np.random.SeedSequence([self.settings.seed, batch], spawn_key=(0,)).generate_state(1)
        text_generator = self.generator(int(seed[0]))
        first = torch.zeros(len(prompts), dtype=torch.int64, device=device)
        written, prefilled, goes_on = 0, prefill(self.pair, prompts), first == 0

        def draw(generator: Any, draws: int) -> DraftedPaths:
            nonlocal written, prefilled, goes_on
            if written == self.draws_per_sample:
                written, prefilled, goes_on = 0, prefill(self.pair, prompts), first == 0
            drafted = draft_and_score(prefilled, self.process, length, generator, self.settings.sampling)
            token = sample_rows(drafted.target_rows[:, 0, 0], text_generator)
            counted = goes_on
            goes_on = goes_on & ~torch.isin(token, ends)
            tokens = token[:, None].expand(-1, length + 1)
            prefilled.accept(first, length, tokens, first + 1, width=prefilled.texts.width + 1)
            written += 1
            return DraftedPaths(drafted.paths, drafted.target_rows, drafted.draft_rows, counted)

        return draw
