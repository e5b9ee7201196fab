"""Where drafted paths come from: language models after prompts, or an enumerated pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from spectheory.arrays import Array, namespace
from spectheory.drafts import DraftProcess, Iid
from spectheory.errors import InvalidInputError
from spectheory.outcome import sample_rows
from spectheory.pair import ModelPair
from spectheory.validate import check_count

if TYPE_CHECKING:
    from spectheory.models import LanguageModelPair, Restriction, SamplingOptions


class DraftedPaths(NamedTuple):
    """K drafted paths for each of B strata, or for each of several draws, as a verifier takes them."""

    paths: Array
    target_rows: Array
    draft_rows: Array


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


class LanguageModelSource:
    """Prompts in batches; both models read a batch once and draft from it any number of times.

    Args:
        pair: the language models.
        prompts: texts or token ids; the strata.
        process: how the paths of a draw are drafted.
        draft_length: L.
        options: temperature, top-k and top-p of both models.
        restriction: keep m tokens per context; None for all.
        batch_size: prompts per batch.

    Raises:
        InvalidInputError: there are no prompts, or a number is out of range.
    """

    draws_at_once = 1

    def __init__(
        self,
        pair: LanguageModelPair,
        prompts: Sequence[str | Sequence[int]],
        process: Iid,
        draft_length: int,
        options: SamplingOptions,
        restriction: Restriction | None,
        batch_size: int,
    ) -> None:
        if not prompts:
            raise InvalidInputError("no prompts to draft from; give at least one")
        batch_size = check_count("batch_size", batch_size)
        self.pair, self.process = pair, process
        self.draft_length = check_count("draft_length", draft_length)
        self.options, self.restriction = options, restriction
        self.batches = [prompts[i : i + batch_size] for i in range(0, len(prompts), batch_size)]

    @property
    def strata_per_batch(self) -> list[int]:
        return [len(batch) for batch in self.batches]

    def open_batch(self, batch: int) -> Draw:
        from spectheory.models import draft_and_score, prefill

        prefilled = prefill(self.pair, self.batches[batch])
        restriction = self._restriction_of(batch)

        def draw(generator: Any, draws: int) -> DraftedPaths:
            # ``draws`` is 1, see ``draws_at_once``.
            drafted = draft_and_score(
                prefilled, self.process.num_drafts, self.draft_length, generator, self.options, restriction
            )
            return DraftedPaths(drafted.paths, drafted.target_rows, drafted.draft_rows)

        return draw

    def _restriction_of(self, batch: int) -> Restriction | None:
        """The restriction of this batch: its own prompts' token sets where there is one per prompt."""
        restriction = self.restriction
        if restriction is None or restriction.token_sets is None or len(restriction.token_sets) == 1:
            return restriction
        from spectheory.models import Restriction

        start = sum(self.strata_per_batch[:batch])
        return Restriction.fixed(*restriction.token_sets[start : start + self.strata_per_batch[batch]])

    def generator(self, seed: int) -> Any:
        return self.pair.generator(seed)


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
