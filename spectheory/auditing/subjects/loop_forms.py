"""The forms in which decoding loops take prompts and call models."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch

from spectheory.auditing.subjects.table_tokenizer import TableTokenizer

PROMPT = (1, 0, 1, 1)
"""The text before the judged tokens.  It is longer than a round, so that no drawn text is taken for it."""
ANSWERS = ("answer", "logits", "probs", "last probs")
"""The forms of what a model returns: an object with ``logits`` and ``past_key_values``; logits [B, T, V];
probabilities [T, V] in numpy; probabilities of the last position, [B, V]."""


class LoopForm(NamedTuple):
    """How we call a loop.

    Attributes:
        prompt: the form of the prompt: "[1, T]", "[T]", "list", "lists" (a list of one), "numpy", "text" (a
            letter for every token) or "texts" (a list of one).
        answer: what a model returns, one of ``ANSWERS``.
        takes_whole_text: whether a call with a cache has the whole text.
        cache: "tuple" or "dynamic".
        top_p: the value that switches nucleus sampling off.
        draft_length: the number of drafted tokens per step.
        extra: the number of tokens that the text has beyond the judged ones.
        shift: 1 if the vocabulary has a token 0 without probability, for loops that fail on it.
        has_prompt: whether the returned text begins with the prompt.
    """

    prompt: str
    answer: str
    takes_whole_text: bool
    cache: str
    top_p: float
    draft_length: int
    extra: int
    shift: int
    has_prompt: bool = True

    @property
    def of_one_law(self) -> "LoopForm":
        """The form without the number of tokens that are asked for."""
        return self._replace(extra=0)

    @property
    def words(self) -> str:
        parts = [
            f"prompt {self.prompt}",
            f"models return {self.answer}",
            *(["a cache beside the whole text"] if self.takes_whole_text else []),
            *([f"{self.cache} cache"] if self.answer == "answer" else []),
            f"draft length {self.draft_length}",
            *([f"{self.extra} tokens more than judged"] if self.extra else []),
            *(["token ids from 1"] if self.shift else []),
        ]
        return ", ".join(parts)


def all_forms(draft_length: int) -> Iterator[list[LoopForm]]:
    """The forms that we try, grouped by what the models return."""
    for answer, cache, whole in (
        ("answer", "dynamic", False),  # before tuples: some loops call a method of it only now and then
        ("answer", "tuple", False),
        *((answer, "tuple", whole) for answer in ANSWERS[1:] for whole in (False, True)),
    ):
        yield [
            LoopForm(prompt, answer, whole, cache, top_p, draft_length, extra, shift)
            for prompt, top_p, extra, shift in product(PROMPTS, (1.0, 0.0), (0, 1, 3), (0, 1))
        ]


PROMPTS: dict[str, Callable[[list[int]], Any]] = {
    "[1, T]": lambda tokens: torch.tensor([tokens]),
    "list": list,
    "lists": lambda tokens: [tokens],
    "numpy": np.array,
    "[T]": torch.tensor,
    "text": lambda tokens: TableTokenizer(max(tokens) + 1).decode(tokens),
    "texts": lambda tokens: [TableTokenizer(max(tokens) + 1).decode(tokens)],
}
"""In the order in which they are tried."""
