"""Laws that lossy samplers state for themselves: what is audited is whether they have that law."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from spectheory.errors import InvalidInputError
from spectheory.pair import ModelPair


@dataclass(frozen=True)
class Mixture:
    """At every drafted position the token has the law v = w p + (1-w) q; after the last one it has p.

    Attributes:
        weight: w, of the target, in (0, 1].

    Example:
        >>> from spectheory import instances
        >>> pair = Mixture(Fraction(1, 2)).stated(instances.bernoulli("1/2", "1"))
        >>> print(pair.target[0][0][0], pair.target[1][0][0])
        1/4 0
    """

    weight: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.weight <= 1:
            raise InvalidInputError(f"the weight must lie above 0 and be at most 1, got {self.weight}")

    @property
    def words(self) -> str:
        """What is stated."""
        return f"tokens at drafted positions have the law {self.weight} p + {1 - self.weight} q"

    def stated(self, pair: ModelPair) -> ModelPair:
        """The pair whose target is the stated law."""
        mixed = [
            self.weight * target + (1 - self.weight) * draft
            for target, draft in zip(pair.target, pair.draft, strict=False)
        ]
        return ModelPair((*mixed, pair.target[-1]), pair.draft, pair.vocab)

    def target_rows(self, stated_rows: np.ndarray, draft_rows: np.ndarray) -> np.ndarray:
        """The rows p [K, L+1, V] behind the stated ones, by depth."""
        rows = stated_rows.copy()
        rows[..., :-1, :] = (stated_rows[..., :-1, :] - (1 - self.weight) * draft_rows) / self.weight
        return rows
