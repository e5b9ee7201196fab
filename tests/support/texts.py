"""The law of texts decoded in several iterations, by plain recursion over the texts."""

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

from reference import Law, Path, draft_row, target_row
from spectheory.pairs.pair import ModelPair


def subtree(pair: ModelPair, context: Path, draft_length: int) -> ModelPair:
    """The models after a context, cut to a draft length; built row by row."""

    def levels(depths: int, row: Callable[[ModelPair, Path], list[Any]]) -> dict[Path, list[Any]]:
        return {
            below: row(pair, context + below)
            for depth in range(depths)
            for below in product(range(pair.vocab_size), repeat=depth)
        }

    return ModelPair.from_contexts(
        levels(draft_length + 1, target_row), levels(draft_length, draft_row), draft_length
    )


def texts_after(
    one_iteration: Callable[[ModelPair, Path], Law], pair: ModelPair, draft_length: int, num_iterations: int
) -> Law:
    """The law of everything decoded in so many iterations, by recursion over the texts.

    Args:
        one_iteration: (the models behind a text, the text) -> the law of the next output.
    """
    texts: Law = {(): Fraction(1)}
    for _ in range(num_iterations):
        longer: Law = defaultdict(Fraction)
        for text, prob in texts.items():
            for output, mass in one_iteration(subtree(pair, text, draft_length), text).items():
                longer[text + output] += prob * mass
        texts = longer
    return texts


def lengths_of(texts: Law, longest: int) -> list[Fraction]:
    """P(n tokens) for n = 0..longest."""
    counts = [Fraction(0)] * (longest + 1)
    for text, prob in texts.items():
        counts[len(text)] += prob
    return counts
