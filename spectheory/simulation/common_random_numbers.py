"""Random numbers of whole texts that depend on where a call starts, and on nothing that happened before."""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import torch
from torch import Tensor


class CommonRandomNumbers:
    """The uniform numbers of every call that a batch of texts may make, by text, length and path.

    A call is drawn with the numbers of the length that its text has.  So texts that hold the same tokens draw
    the same drafts, whichever verifier wrote them and in however many calls.  Each path has separate numbers:
    the first K' of K paths are the K' paths of a run with K'.  A text starts one call at most at each length,
    so that each text alone is drawn with independent numbers.

    Args:
        seed: whole numbers that tell the batch from all others.
        max_new_tokens: the longest text; a call starts at 0..max_new_tokens - 1 tokens.
        draws: of a call: L draws of K tokens, the stop, and the token behind it.
        device: where the numbers are wanted.

    Example:
        >>> numbers = CommonRandomNumbers([7], texts=2, max_new_tokens=3, draws=3, num_drafts=2)
        >>> first, again = (numbers([1, 0], [2, 0]) for _ in range(2))
        >>> torch.equal(first((2, 2, 1)), again((2, 2, 1)))
        True
    """

    def __init__(
        self,
        seed: Sequence[int],
        texts: int,
        max_new_tokens: int,
        draws: int,
        num_drafts: int,
        device: torch.device | str = "cpu",
    ) -> None:
        shape = (texts, max_new_tokens, draws)
        paths = [np.random.default_rng([*seed, path]).random(shape) for path in range(num_drafts)]
        self._numbers = torch.tensor(np.stack(paths, axis=-1), device=device)

    def __call__(self, texts: list[int], lengths: list[int]) -> Callable[[tuple[int, ...]], Tensor]:
        """The draws of a call, in shapes [b, 1] and [b, K', 1], for b texts of these lengths in tokens."""
        draws = iter(self._numbers[texts, lengths].unbind(dim=1))
        return lambda shape: next(draws)[:, : prod(shape[1:])].reshape(shape)
