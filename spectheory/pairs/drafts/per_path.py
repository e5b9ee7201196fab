"""Independent paths, each drawn from its own draft model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import check_num_drafts
from spectheory.pairs.drafts.process import DraftTuples, OwnProcess, path_hits
from spectheory.pairs.pair import ModelPair


@dataclass(frozen=True)
class PerPath(OwnProcess):
    """K independent paths, each from its own draft model (spectr2023, footnote 8).

    Attributes:
        models: one pair per path, with the shape of the certified pair; only its draft is used.  For language
            models, the draft models.

    Example:
        >>> from spectheory import instances
        >>> pair = instances.bernoulli("1/4", "1/2")
        >>> process = PerPath((pair, instances.bernoulli("3/4", "1/2")))
        >>> print(process.hit_probability(pair, [(1,)]))
        13/16
    """

    models: tuple[Any, ...]
    name: ClassVar[str] = "per_path"

    def __post_init__(self) -> None:
        check_num_drafts(len(self.models))

    @property
    def num_drafts(self) -> int:  # type: ignore[override]
        return len(self.models)

    def check(self, pair: ModelPair) -> None:
        for number, model in enumerate(self._enumerated()):
            same = (model.vocab_size, model.draft_length) == (pair.vocab_size, pair.draft_length)
            if not same or model.is_exact != pair.is_exact:
                raise InvalidInputError(
                    f"draft model {number} has {model.vocab_size} tokens, draft length "
                    f"{model.draft_length} and {model.arithmetic} entries; expected {pair.vocab_size}, "
                    f"{pair.draft_length} and {pair.arithmetic} as in the pair"
                )

    def to_float(self) -> PerPath:
        return PerPath(tuple(model.to_float() for model in self._enumerated()))

    def normalised(self) -> PerPath:
        return PerPath(tuple(model.normalised() for model in self._enumerated()))

    def _enumerated(self) -> tuple[ModelPair, ...]:
        for number, model in enumerate(self.models):
            if not isinstance(model, ModelPair):
                raise InvalidInputError(
                    f"draft model {number} is not an enumerated pair; give one ModelPair per path"
                )
        return self.models

    def first_path(self) -> PerPath:
        return PerPath(self.models[:1])

    def count_tuples(self, pair: ModelPair, as_multisets: bool = False) -> int:
        return prod(int((probs > 0).sum()) for probs in self._leaf_probs(pair))

    def _leaf_probs(self, pair: ModelPair) -> list[np.ndarray]:
        """List, for each model, the probability of every path of L tokens, [V^L]."""
        return [model.numbers.draft_path_probs[pair.draft_length] for model in self.models]

    def enumerate(self, pair: ModelPair, size: int, as_multisets: bool = False) -> Iterator[DraftTuples]:
        probs = self._leaf_probs(pair)
        supports = [np.flatnonzero(path_probs > 0) for path_probs in probs]
        for start in range(0, self.count_tuples(pair), size):
            rest = np.arange(start, min(start + size, self.count_tuples(pair)))
            columns = []
            for support in supports:
                rest, digit = np.divmod(rest, len(support))
                columns.append(support[digit])
            joint = prod(path_probs[column] for path_probs, column in zip(probs, columns, strict=True))
            yield DraftTuples(np.stack(columns, axis=1), np.asarray(joint))

    def _hits(self, pair: ModelPair, members: np.ndarray) -> np.ndarray:
        return 1 - np.asarray(prod(1 - path_hits(model, members) for model in self.models))

    def drafter(self, pair: ModelPair, path_index: int) -> ModelPair:
        return self.models[path_index]
