"""Random pairs over the agreement of the models, the number of drafts and their length, with their optima."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from figures.results import Checks
from spectheory.optima import multi_path_interval
from spectheory.optima.interval.interval import CertifiedInterval
from spectheory.pairs.instances import random_float
from spectheory.pairs.pair import ModelPair


class Cell(NamedTuple):
    """Random pairs of one agreement and length, and their optima with K drafts.

    Attributes:
        agreement: a; the draft row is a times the target's and 1 − a times an independent one.
        pairs: the same for every K.
        optima: of the pairs, certified from both sides.
    """

    agreement: float
    num_drafts: int
    draft_length: int
    pairs: Sequence[ModelPair]
    optima: Sequence[CertifiedInterval]

    @property
    def columns(self) -> dict[str, float]:
        return {key: getattr(self, key) for key in ("agreement", "num_drafts", "draft_length")}

    def expect_at_most_optimal(self, checks: Checks, values: Mapping[str, Iterable[float]]) -> None:
        """Try on every pair that no verifier's block efficiency is above the optimum."""
        for name, earned in values.items():
            for number, (value, best) in enumerate(zip(earned, self.optima, strict=True)):
                where = f"{name}, {self[:3]}, pair {number}: {value} > {best.upper}"
                checks.expect(
                    "no verifier exceeds the optimum on any pair", value <= best.upper + 1e-9, where
                )


def random_cells(
    agreements: Sequence[float],
    num_drafts: Sequence[int],
    draft_lengths: Sequence[int],
    num_pairs: int,
    seed: int,
    vocab_size: int,
    relative_gap: float,
) -> Iterator[Cell]:
    """The cells; the same random numbers for every agreement and length."""
    for length, agreement in product(draft_lengths, agreements):
        pairs = [random_float([seed, n], vocab_size, length, agreement=agreement) for n in range(num_pairs)]
        for drafts in num_drafts:
            optima = [multi_path_interval(pair, drafts, relative_gap=relative_gap) for pair in pairs]
            yield Cell(agreement, drafts, length, pairs, optima)
