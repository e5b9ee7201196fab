"""Where drafted paths come from: language models after prompts, or an enumerated pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from spectheory.foundation.arrays import Array, namespace
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import check_count
from spectheory.pairs.drafts import DraftProcess, Iid
from spectheory.pairs.pair import ModelPair
from spectheory.verification.outcome import sample_rows

if TYPE_CHECKING:
    from spectheory.models import LanguageModelPair, Restriction, SamplingOptions, UnloadedPair

MAX_NUM_DRAFTS = 10_000
"""The most paths drafted by language models; each has L + 1 rows of the vocabulary."""


class DraftedPaths(NamedTuple):
    """K drafted paths for each of B strata, or for each of several draws, as a verifier takes them."""

    paths: Array
    target_rows: Array
    draft_rows: Array

    def first(self, num_drafts: int) -> DraftedPaths:
        """The first K' of K independent paths."""
        return DraftedPaths(
            self.paths[..., :num_drafts, :],
            self.target_rows[..., :num_drafts, :, :],
            self.draft_rows[..., :num_drafts, :, :],
        )


Draw = Callable[[Any, int], DraftedPaths]
"""(generator, number of draws) -> drafted paths with leading axes draws * strata."""


class DraftSource(Protocol):
    """Strata in batches, each batch drawn from again and again.

    Attributes:
        draft_length: L.
        draws_at_once: the most draws that one call of a ``Draw`` makes.
    """

    draft_length: int
    draws_at_once: int

    @property
    def process(self) -> DraftProcess:
        """How the K paths of a draw are drafted."""

    @property
    def strata_per_batch(self) -> Sequence[int]:
        """How many strata each batch has."""

    def open_batch(self, batch: int) -> Draw:
        """What draws from this batch."""

    def generator(self, seed: int) -> Any:
        """A random generator of the kind and device that the drafts are drawn with."""

    def place(self, batch: int, stratum: int) -> str:
        """Where a stratum's paths are drafted, for an error: ``"after prompt 3 ('def main(')"``."""


class LanguageModelSource:
    """Prompts in batches; both models read a batch once and draft from it any number of times.

    Everything is checked at once, with tokenizer and configurations; weights are read on the first use of
    ``pair``.

    Args:
        pair: the language models, loaded or not.
        prompts: texts or token ids; the strata.
        process: how the paths of a draw are drafted.
        draft_length: L.
        options: temperature, top-k and top-p of both models.
        restriction: keep m tokens per context; None for all.
        batch_size: prompts per batch.
        max_prompt_tokens: keep at most so many tokens of a prompt, its last ones; None keeps all.

    Raises:
        InvalidInputError: there are no prompts, one cannot be read on from, or a number is out of range.
    """

    draws_at_once = 1

    def __init__(
        self,
        pair: LanguageModelPair | UnloadedPair,
        prompts: Sequence[str | Sequence[int]],
        process: DraftProcess,
        draft_length: int,
        options: SamplingOptions,
        restriction: Restriction | None = None,
        batch_size: int = 8,
        max_prompt_tokens: int | None = None,
    ) -> None:
        from spectheory.models import encode_prompts

        self.batch_size = check_count("batch_size", batch_size)
        if process.num_drafts > MAX_NUM_DRAFTS:
            raise InvalidInputError(
                f"num_drafts must be at most {MAX_NUM_DRAFTS} for language models, got {process.num_drafts}"
            )
        self.process, self.options, self.restriction = process, options, restriction
        self.draft_length = check_count("draft_length", draft_length)
        self.prompts = prompts
        self.token_ids = encode_prompts(pair, prompts, self.draft_length, max_prompt_tokens)
        if restriction is not None:
            restriction.check(pair.vocab_size, len(prompts))
        self.unloaded = pair

    @cached_property
    def pair(self) -> LanguageModelPair:
        """The language models, their weights loaded on first use."""
        return self.unloaded.loaded()

    def __getstate__(self) -> dict[str, Any]:
        """Another process loads weights by itself, unless the models are in memory only."""
        return {name: value for name, value in vars(self).items() if name != "pair"}

    @property
    def strata_per_batch(self) -> list[int]:
        size, count = self.batch_size, len(self.token_ids)
        return [min(size, count - first) for first in range(0, count, size)]

    def open_batch(self, batch: int) -> Draw:
        from spectheory.models import draft_and_score, prefill

        first = batch * self.batch_size
        prefilled = prefill(self.pair, self.token_ids[first : first + self.batch_size])
        restriction = self._restriction_of(batch)

        def draw(generator: Any, draws: int) -> DraftedPaths:
            # ``draws`` is 1, see ``draws_at_once``.
            drafted = draft_and_score(
                prefilled, self.process.num_drafts, self.draft_length, generator, self.options, restriction,
                process=self.process,
            )  # fmt: skip
            return DraftedPaths(drafted.paths, drafted.target_rows, drafted.draft_rows)

        return draw

    def _restriction_of(self, batch: int) -> Restriction | None:
        """The restriction of this batch: its own prompts' token sets where there is one per prompt."""
        restriction = self.restriction
        if restriction is None or restriction.token_sets is None or len(restriction.token_sets) == 1:
            return restriction
        from spectheory.models import Restriction

        first = batch * self.batch_size
        return Restriction.fixed(*restriction.token_sets[first : first + self.batch_size])

    def generator(self, seed: int) -> Any:
        return self.pair.generator(seed)

    def place(self, batch: int, stratum: int) -> str:
        from spectheory.models import prompt_name

        number = batch * self.batch_size + stratum
        return f"after {prompt_name(number + 1, self.prompts[number])}"


class EnumeratedSource:
    """One stratum, an enumerated pair in float64; many draws at a time.

    Args:
        pair: the models.
        process: how the paths of a draw are drafted.
        device: ``"cpu"`` runs on numpy, ``"cuda"`` on torch.

    Raises:
        InvalidInputError: there is no such device.
    """

    strata_per_batch: Sequence[int] = (1,)
    draws_at_once = 2_000

    def __init__(self, pair: ModelPair, process: Iid, device: str) -> None:
        if device not in ("cpu", "cuda"):
            raise InvalidInputError(f"device must be 'cpu' or 'cuda', got {device!r}")
        if device == "cuda":
            from spectheory.models import resolve_device

            resolve_device(device)
        self.pair, self.process = pair.to_float(), process
        self.draft_length, self.device = pair.draft_length, device

    def open_batch(self, batch: int) -> Draw:
        target = [self._to_device(level) for level in self.pair.target]
        draft = [self._to_device(level) for level in self.pair.draft]

        def draw(generator: Any, draws: int) -> DraftedPaths:
            context = self._to_device(np.zeros((draws, self.process.num_drafts), dtype=np.int64))
            tokens, target_rows, draft_rows = [], [target[0][context]], []
            for depth in range(self.draft_length):
                draft_rows.append(draft[depth][context])
                tokens.append(sample_rows(draft_rows[-1], generator))
                context = context * self.pair.vocab_size + tokens[-1]
                target_rows.append(target[depth + 1][context])
            stack = namespace(context).stack
            return DraftedPaths(
                stack(tokens, axis=-1), stack(target_rows, axis=-2), stack(draft_rows, axis=-2)
            )

        return draw

    def _to_device(self, array: np.ndarray) -> Array:
        if self.device == "cpu":
            return array
        from spectheory.models import to_tensor

        return to_tensor(array, self.device)

    def generator(self, seed: int) -> Any:
        if self.device == "cpu":
            return np.random.default_rng(seed)
        from spectheory.models import random_generator

        return random_generator(seed, self.device)

    def place(self, batch: int, stratum: int) -> str:
        return "on the enumerated pair"
