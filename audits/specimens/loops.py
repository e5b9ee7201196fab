"""Decoding loops in the forms that people write, each with the mistakes that such loops have had.

They are the negative controls of audits with ``--as generate`` and ``--as step``.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor


def _token(row: Tensor) -> Tensor:
    return torch.multinomial(row, 1)


def generate(
    input_ids: Tensor,
    target_model: Any,
    draft_model: Any,
    max_new_tokens: int,
    gamma: int = 4,
    temperature: float = 1.0,
    *,
    bonus: Callable[[Tensor], Tensor] = _token,
    residual: Callable[[Tensor, Tensor], Tensor] = lambda p, q: (p - q).clamp(min=0),
    cut: int = 0,
) -> Tensor:
    """A loop in the form of HF models with a tuple cache; lossless without a mistake.

    Args:
        input_ids, target_model, draft_model, max_new_tokens, gamma, temperature: as of all loops.
        bonus: draws the token after a fully accepted path; a mistake takes the likeliest.
        residual: (target row, draft row) -> weights of the correction token.
        cut: a mistake: the target's cache keeps that many rejected tokens.
    """
    text, cache = input_ids, None
    while text.shape[1] < input_ids.shape[1] + max_new_tokens:
        start, q = text.shape[1], []
        for _ in range(gamma):
            q.append(torch.softmax(draft_model(text).logits[0, -1] / temperature, dim=-1))
            text = torch.cat([text, _token(q[-1])[None]], dim=1)
        known = 0 if cache is None else cache[0][0].shape[2]
        answer = target_model(text[:, known:], past_key_values=cache)
        p = torch.softmax(answer.logits[0, -gamma - 1 :] / temperature, dim=-1)
        accepted = 0
        for row, drafted in zip(p, q, strict=False):
            token = text[0, start + accepted]
            if not torch.rand(()) * drafted[token] < row[token]:
                break
            accepted += 1
        row = p[accepted]
        new = bonus(row) if accepted == gamma else _token(residual(row, q[accepted]))
        text = torch.cat([text[:, : start + accepted], new[None]], dim=1)
        kept = start + accepted + cut
        cache = [(keys[:, :, :kept], values[:, :, :kept]) for keys, values in answer.past_key_values]
    return text


def stream(
    prompt: list[int],
    model: Callable[[Any], Any],
    draft: Callable[[Any], Any],
    n_tokens: int,
    ratio: bool = True,
) -> Iterator[int]:
    """Models are functions from a list of tokens to probabilities [T, V] in numpy, which random it uses too.

    Args:
        prompt, model, draft, n_tokens: as of all loops.
        ratio: False is a mistake: every drafted token is accepted.
    """
    text, made = list(prompt), 0
    while made < n_tokens:
        q, p = draft(text)[-1], model(text)[-1]
        token = np.random.choice(len(q), p=q / q.sum())  # noqa: NPY002
        if ratio and np.random.random() * q[token] >= p[token]:  # noqa: NPY002
            rest = np.maximum(p - q, 0)
            token = np.random.choice(len(q), p=rest / rest.sum())  # noqa: NPY002
        text.append(int(token))
        made += 1
        yield int(token)


class Engine:
    """A decoder whose step is a method; it cannot be constructed without files."""

    def __init__(self, checkpoint: Any, args: Any) -> None:
        self.target_model = checkpoint.load("target")
        self.draft_model = checkpoint.load("draft")
        self.args = args
        self.margin = 1.0

    def step(self, input_ids: Tensor) -> list[int]:
        """One drafted token and its verification."""
        return self._verified(input_ids, self.margin)

    def eager_step(self, input_ids: Tensor) -> list[int]:
        """A mistake: it accepts with twice the ratio."""
        return self._verified(input_ids, 2 * self.margin)

    def _verified(self, input_ids: Tensor, margin: float) -> list[int]:
        q = torch.softmax(self.draft_model(input_ids).logits[0, -1] / self.args.temperature, dim=-1)
        token = _token(q)
        longer = torch.cat([input_ids, token[None]], dim=1)
        p = torch.softmax(self.target_model(longer).logits[0, -2:] / self.args.temperature, dim=-1)
        if torch.rand(()) * q[token] < margin * p[0, token]:
            return [int(token), int(_token(p[1]))]
        return [int(_token((p[0] - q).clamp(min=0)))]


class TextDecoder:
    """Takes a text and returns one; the target's cache is cut to the length that is kept.

    Args:
        target_model, draft_model, tokenizer: as of all loops.
        factor: a mistake if not 1: drafts are accepted with so many times the ratio.
    """

    def __init__(self, target_model: Any, draft_model: Any, tokenizer: Any) -> None:
        self.target_model, self.draft_model, self.tokenizer = target_model, draft_model, tokenizer

    def generate(self, prompt: str, max_new_tokens: int, factor: float = 1.0) -> str:
        """The prompt, and at least ``max_new_tokens`` tokens, as one text."""
        text = self.tokenizer(prompt, return_tensors="pt").input_ids
        cache, wanted = None, text.shape[1] + max_new_tokens
        while text.shape[1] < wanted:
            kept = text.shape[1]
            q = torch.softmax(self.draft_model(text).logits[0, -1], dim=-1)
            token = _token(q)
            longer = torch.cat([text, token[None]], dim=1)
            known = 0 if cache is None else cache.get_seq_length()
            answer = self.target_model(longer[:, known:], past_key_values=cache, use_cache=True)
            cache, p = answer.past_key_values, torch.softmax(answer.logits[0, -2:], dim=-1)
            if torch.rand(()) * q[token] < factor * p[0, token]:
                text = torch.cat([longer, _token(p[1])[None]], dim=1)
            else:
                text = torch.cat([text, _token((p[0] - q).clamp(min=0))[None]], dim=1)
                cache.crop(kept)
        return self.tokenizer.decode(text[0], skip_special_tokens=True)

    def eager(self, prompt: str, max_new_tokens: int) -> str:
        """A mistake: it accepts with twice the ratio."""
        return self.generate(prompt, max_new_tokens, factor=2.0)


def unpadded(input_ids: Tensor, target_model: Any, draft_model: Any, max_new_tokens: int) -> Tensor:
    """A mistake: the target is asked without the first token of the prompt."""
    text = input_ids
    while text.shape[1] < input_ids.shape[1] + max_new_tokens:
        draft_model(text)
        text = torch.cat(
            [text, _token(torch.softmax(target_model(text[:, 1:]).logits[0, -1], dim=-1))[None]], 1
        )
    return text


def with_unknown_method(input_ids: Tensor, target_model: Any, draft_model: Any, max_new_tokens: int) -> Any:
    """Needs a method of its models that no stand-in has: undecided."""
    return target_model.graph_verify(input_ids, draft_model, max_new_tokens)


LOOP_SPECIMENS: Mapping[str, tuple[str, Callable[..., Any], Callable[..., Any]]] = {
    "argmax_bonus": ("generate", partial(generate, bonus=lambda row: row.argmax()[None]), generate),
    "uncut_cache": ("generate", partial(generate, cut=1), generate),
    "residual_of_the_target": ("generate", partial(generate, residual=lambda p, q: p), generate),
    "no_ratio": ("generate", partial(stream, ratio=False), stream),
    "eager_method": ("step", Engine.eager_step, Engine.step),
    "eager_text": ("generate", TextDecoder.eager, TextDecoder.generate),
}
"""Name -> (signature, the wrong loop, its mended partner)."""
