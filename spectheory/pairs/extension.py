"""Extend an enumerated pair beyond its depth if its rows depend on the last few tokens only."""

from collections.abc import Sequence

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import check_count
from spectheory.pairs.contexts import Context, context_number
from spectheory.pairs.pair import ModelPair

Level = Sequence[np.ndarray]
"""The rows of one model, one array [V^depth, V] per depth."""


class ExtendedPair:
    """The rows of two models at every text that several calls with L drafted tokens can reach.

    Args:
        pair: the models.  They must be deep enough, unless ``memory`` is given.
        draft_length: L of every call; by default the pair's draft length.
        memory: the number of last tokens on which the rows depend (0: none; 1: a Markov chain).  By default 0
            for a context-free pair; another pair is then not extended.

    Raises:
        InvalidInputError: the rows depend on more than ``memory`` tokens, or the pair is too short for it.

    Example:
        >>> from spectheory import instances
        >>> models = ExtendedPair(instances.two_token(1))
        >>> models.follow((0,), 1)
        ()
        >>> print(models.row(models.pair.target, (1, 1, 0)))
        [Fraction(1, 3) Fraction(2, 3)]
    """

    def __init__(
        self,
        pair: ModelPair,
        draft_length: int | None = None,
        memory: int | None = None,
    ) -> None:
        self.pair = pair
        default = pair.draft_length if draft_length is None else draft_length
        self.draft_length = check_count("draft_length", default)
        self.memory = 0 if memory is None and pair.context_free else memory
        if self.memory is not None:
            _check_memory(pair, self.memory)

    def check_depth(self, needed: int, fewer: str = "iterations") -> None:
        """Raise ``InvalidInputError`` if the pair has no rows for texts of ``needed`` tokens."""
        if self.memory is None and self.pair.draft_length < needed:
            raise InvalidInputError(
                f"the iterations reach contexts that need a pair of draft length {needed}, and this one has "
                f"{self.pair.draft_length}; use a deeper pair with draft_length={self.draft_length}, fewer "
                f"{fewer}, or memory=n if the rows depend on the last n tokens only"
            )

    def follow(self, context: Context, token: int) -> Context:
        """Append a token to the context, and cut it to the tokens on which the rows depend."""
        return self._cut((*context, token))

    def row(self, levels: Level, context: Context) -> np.ndarray:
        known = self._cut(context)
        return levels[len(known)][context_number(known, self.pair.vocab_size)]

    def levels_below(self, levels: Level, context: Context, depths: int) -> list[np.ndarray]:
        """List a model's rows below a context, one array [V^i, V] per depth i = 0..depths-1."""
        contexts, below = [context], []
        for _ in range(depths):
            below.append(np.stack([self.row(levels, c) for c in contexts]))
            contexts = [self.follow(c, token) for c in contexts for token in range(self.pair.vocab_size)]
        return below

    def _cut(self, text: Context) -> Context:
        return text if self.memory is None else text[len(text) - min(self.memory, len(text)) :]


def _check_memory(pair: ModelPair, memory: int) -> None:
    memory = check_count("memory", memory, at_least=0)
    if pair.draft_length <= memory:
        raise InvalidInputError(
            f"memory={memory} needs the draft rows after {memory} tokens, a pair of draft length at least "
            f"{memory + 1}; this one has {pair.draft_length}"
        )
    for side, levels in (("target", pair.target), ("draft", pair.draft)):
        for depth in range(memory + 1, len(levels)):
            suffixes = np.arange(pair.vocab_size**depth) % pair.vocab_size**memory
            different = np.flatnonzero((levels[depth] != levels[memory][suffixes]).any(axis=1))
            if different.size:
                context = pair.context(depth, int(different[0]))
                raise InvalidInputError(
                    f"the {side} row at context {context} differs from the row after its last {memory} "
                    "tokens; use a larger memory, or a pair that is deep enough without one"
                )
