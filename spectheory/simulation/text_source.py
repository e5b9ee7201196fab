"""Whole texts behind prompts: every call of the target judged, summed by prompt.

Each verifier writes its own texts, because the contexts differ behind the first call.  Two verifiers at one
context draw the same drafts (``CommonRandomNumbers``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.drafts.without_replacement import DistinctTree
from spectheory.simulation.ceilings import ceilings, has_ceiling
from spectheory.simulation.estimates import Tally
from spectheory.simulation.protocol import Stream
from spectheory.simulation.sources import LanguageModelSource
from spectheory.verification.law_errors import FAULTS, law_errors, refuse_errors, tolerance_of
from spectheory.verification.verifier import Verifier

if TYPE_CHECKING:
    from spectheory.decoding import Iteration


class TextSource(LanguageModelSource):
    """Prompts in batches, behind which whole texts are decoded; arguments as in ``LanguageModelSource``."""

    shares_draws = False

    def tally(
        self, streams: Mapping[str, Stream], batch: int, step: Callable[[int], None]
    ) -> dict[str, Tally]:
        """Sums over all calls of each verifier's texts behind the prompts of a batch."""
        found = {}
        for name, stream in streams.items():
            found[name] = self._tally(stream.verifier, stream.process, batch)
            step(self.settings.samples_per_prompt * self.strata_per_batch[batch])
        return found

    def _tally(self, verifier: Verifier, process: DraftProcess, batch: int) -> Tally:
        from spectheory.decoding import Stopping, decoding_iterations, end_of_sequence
        from spectheory.models.drafting import prefill
        from spectheory.simulation.common_random_numbers import CommonRandomNumbers

        settings, tolerance = self.settings, self.settings.tolerance
        with_ceilings = settings.with_ceilings and has_ceiling(verifier)
        prompts = self.prompts_of(batch)
        texts = prompts * settings.samples_per_prompt
        # Draws of a call: one of all paths per depth, or one per path without replacement; stop and token.
        one_by_one = isinstance(process, DistinctTree)
        draws = 2 + (int(process.draws(self.draft_length).sum()) if one_by_one else self.draft_length)
        tally, errors = Tally.zeros(len(prompts), self.draft_length), np.zeros((len(FAULTS), len(prompts)))
        for call in decoding_iterations(
            prefill(self.pair, texts),
            verifier,
            process,
            self.draft_length,
            Stopping(self.max_new_tokens, end_of_sequence(self.pair.target_model)),
            CommonRandomNumbers(
                (settings.seed, batch), len(texts), self.max_new_tokens, draws, process.num_drafts,
                self.pair.device,
            ),
            settings.sampling,
        ):  # fmt: skip
            stratum = np.array(call.numbers) % len(prompts)
            expected, length_probs, found = _looked_up(call)
            most = _ceilings(call, verifier) if with_ceilings else 0.0
            tally.add_calls(stratum, expected, np.array(call.accepted), length_probs, most)
            np.maximum.at(errors.T, stratum, found)
            tolerance = tolerance_of(call.drafted.target_rows, tolerance)
        assert tolerance is not None
        refuse_errors(verifier, errors, tolerance, lambda stratum: self.place(batch, stratum))
        return tally


def _ceilings(call: Iteration, verifier: Verifier) -> np.ndarray:
    """The most that could have been earned, [n]; a verifier of one path sees the first alone."""
    drafted, sample, seen = call.drafted, call.sample, 1 if verifier.single_path else None
    most = ceilings(
        drafted.paths[:, :seen], drafted.target_rows[:, :seen], drafted.draft_rows[:, :seen],
        sample.path_index, sample.length,
    )  # fmt: skip
    return most.cpu().numpy()


def _looked_up(call: Iteration) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of every answer of one call E[tau + 1], [n], P(tau), [n, L+1], and how far it is from a law, [n, 4].

    They are fetched from the device together.
    """
    import torch

    outcome = call.outcome
    parts = [
        outcome.expected_tokens()[:, None],
        outcome.length_probs(),
        law_errors(outcome, outcome.stop_of(call.sample), call.drafted.paths, call.sample).T,
    ]
    found = torch.cat([part.double() for part in parts], dim=1).cpu().numpy()
    return found[:, 0], found[:, 1 : -len(FAULTS)], found[:, -len(FAULTS) :]
