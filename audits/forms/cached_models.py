"""Rounds of libraries that call both models themselves, with stand-in models that keep a cache of tokens."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from spectheory.auditing.subjects.drafting_rounds import Model

STAND_INS = ("the models: rows that are looked up behind the tokens of their caches, and a first token",)
Step = Callable[["CachedModel", "CachedModel", torch.Tensor, int], Sequence[int]]
"""(target, draft, a first token and the text [1, T], draft_length) -> accepted tokens and the one after."""


class CachedModel:
    """A stand-in model with a cache of tokens by their positions; position 0 has a first token.

    A position that was not written is that of the token 0, as in a cache of zeros.

    Attributes:
        row: the model of the pair.
        asked: the tokens of the last call.
        told: the row that was last returned after every position.
        max_seq_length: what masks are made for.
    """

    max_seq_length = 128

    def __init__(self) -> None:
        self.row: Model = torch.tensor
        self.cache: dict[int, int] = {}
        self.asked: list[int] = []
        self.told: dict[int, torch.Tensor] = {}

    def __call__(self, *given: Any) -> torch.Tensor:
        """Write tokens [1, T] at their places, by default from 0 on; the logits behind each, [1, T, V].

        A mask before them is not looked at.
        """
        tokens, places = given[-2:] if len(given) > 1 else (given[0], None)
        self.asked = tokens.flatten().tolist()
        at = list(range(len(self.asked))) if places is None else places.flatten().tolist()
        self.cache.update(zip(at, self.asked, strict=True))
        rows = [self.row([self.cache.get(before, 0) for before in range(1, place + 1)]) for place in at]
        self.told.update(zip(at, rows, strict=True))
        return torch.stack(rows).log()[None]


def with_models(step: Step) -> Callable[..., Any]:
    """A round whose models keep their caches; the target is asked about the drafted tokens last.

    The reported rows are those that the draft model returned, also where its cache lacks a token.
    """
    models: list[CachedModel] = []

    def play(text: Sequence[int], target: Model, draft: Model, draft_length: int, generator: Any) -> Any:
        """As the library's own loop calls it, behind a first token."""
        if not text:
            models[:] = CachedModel(), CachedModel()
        big, small = models
        big.row, small.row = target, draft
        tokens = step(big, small, torch.tensor([[0, *text]]), draft_length)
        drafted = big.asked[-draft_length:]
        rows = [small.told[len(text) + place] for place in range(draft_length)]
        return drafted, torch.stack(rows), list(tokens)

    return play
