"""Sources of drafted paths: language models after prompts, or an enumerated pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import DraftProcess, Iid
from spectheory.pairs.pair import ModelPair
from spectheory.simulation.judging import DraftedPaths, Draw, Source
from spectheory.verification.outcome import sample_rows

if TYPE_CHECKING:
    from spectheory.models import LanguageModelPair
    from spectheory.simulation.settings import DrawSettings, SimulationSettings


class LanguageModelSource(Source):
    """Prompts in batches.  The models read a batch once and draft for it any number of times.

    All arguments are checked, with tokenizer and configurations, before weights are read.

    Args:
        prompts: texts or token ids; the strata.

    Raises:
        InvalidInputError: there are no prompts, a prompt is invalid, or a number is out of range.  For whole
            texts also: there is a restriction, a text can exceed the length limit of the models, or all
            prompts are equal.
    """

    settings: SimulationSettings

    def __init__(
        self,
        pair: LanguageModelPair,
        prompts: Sequence[str | Sequence[int]],
        process: DraftProcess,
        settings: SimulationSettings,
    ) -> None:
        from spectheory.models.language_model import encode_prompts

        self.settings = replace(settings, progress=None)
        self.draft_length = settings.draft_length
        self.process, self.prompts, self.pair = process, prompts, pair
        self.max_new_tokens = settings.max_new_tokens or 0
        self.token_ids = encode_prompts(
            pair, prompts, self.draft_length, settings.max_prompt_tokens, self.max_new_tokens
        )
        size, count = settings.batch_size, len(self.token_ids)
        self.strata_per_batch = [min(size, count - first) for first in range(0, count, size)]
        if settings.restriction is not None:
            settings.restriction.check(pair.vocab_size)
        if settings.whole_texts:
            self._check_texts()

    def _check_texts(self) -> None:
        if self.settings.restriction is not None:
            raise InvalidInputError("whole texts are not restricted to few tokens; leave the restriction out")
        if len({*self._prompt_numbers}) < 2:
            got = f"{len(self.token_ids)} equal ones" if len(self.token_ids) > 1 else "1"
            raise InvalidInputError(f"an interval over texts needs at least 2 different prompts, got {got}")

    def open_batch(self, batch: int) -> Draw:
        from spectheory.models.drafting import draft_and_score, prefill

        prefilled = prefill(self.pair, self.prompts_of(batch))

        def draw(generator: Any, draws: int) -> DraftedPaths:
            # ``draws`` is 1, see ``draws_at_once``.
            drafted = draft_and_score(
                prefilled,
                self.process,
                self.draft_length,
                generator,
                self.settings.sampling,
                self.settings.restriction,
            )
            return DraftedPaths(drafted.paths, drafted.target_rows, drafted.draft_rows)

        return draw

    @cached_property
    def _prompt_numbers(self) -> list[int]:
        first: dict[tuple[int, ...], int] = {}
        return [first.setdefault(tuple(ids), number) for number, ids in enumerate(self.token_ids)]

    def prompt_numbers(self, batch: int) -> list[int]:
        return self._prompt_numbers[self._places(batch)]

    def prompts_of(self, batch: int) -> list[list[int]]:
        return self.token_ids[self._places(batch)]

    def _places(self, batch: int) -> slice:
        return slice(batch * self.settings.batch_size, (batch + 1) * self.settings.batch_size)

    def generator(self, seed: int) -> Any:
        return self.pair.generator(seed)

    def place(self, batch: int, stratum: int) -> str:
        from spectheory.models.prompts import prompt_name

        number = batch * self.settings.batch_size + stratum
        return f"after {prompt_name(number + 1, self.prompts[number])}"


class EnumeratedSource(Source):
    """One stratum: an enumerated pair in float64, with many draws at a time.

    Raises:
        InvalidInputError: the paths are not independent.
    """

    strata_per_batch = (1,)
    draws_at_once = 2_000

    def __init__(self, pair: ModelPair, process: DraftProcess, settings: DrawSettings) -> None:
        if not isinstance(process, Iid):
            raise InvalidInputError(
                f"an enumerated pair is simulated with independent paths, got {process}; certify takes "
                "every draft process"
            )
        self.pair, self.process, self.settings = pair, process, replace(settings, progress=None)
        self.draft_length = pair.draft_length

    def prompt_numbers(self, batch: int) -> list[int]:
        return [batch]

    def open_batch(self, batch: int) -> Draw:
        def draw(generator: Any, draws: int) -> DraftedPaths:
            context = np.zeros((draws, self.process.num_drafts), dtype=np.int64)
            tokens, target_rows, draft_rows = [], [self.pair.target[0][context]], []
            for depth in range(self.draft_length):
                draft_rows.append(self.pair.draft[depth][context])
                tokens.append(sample_rows(draft_rows[-1], generator))
                context = context * self.pair.vocab_size + tokens[-1]
                target_rows.append(self.pair.target[depth + 1][context])
            return DraftedPaths(
                np.stack(tokens, axis=-1), np.stack(target_rows, axis=-2), np.stack(draft_rows, axis=-2)
            )

        return draw

    def generator(self, seed: int) -> np.random.Generator:
        return np.random.default_rng(seed)

    def place(self, batch: int, stratum: int) -> str:
        return "on the enumerated pair"
