"""Stand-ins for language models: a table of rows in the forms in which decoding loops call models.

A model looks a row up by the whole text.  Its cache holds the tokens of the text, so a loop that cuts its
cache at a wrong place asks about another text, and gets another row.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch

from spectheory.auditing.following.intercept import Journal
from spectheory.auditing.subjects.loop_forms import PROMPT, LoopForm
from spectheory.auditing.subjects.roles import UNREACHED
from spectheory.auditing.subjects.table_tokenizer import tokens_of

_WITHOUT_EFFECT = {"attention_mask", "pad_token_id", "use_cache", "output_scores", "output_logits"}
"""Options of ``generate`` that leave the law of one text as it is."""
_ONLY = {"num_return_sequences": (1,), "eos_token_id": (None, UNREACHED)}
"""Other options of ``generate``, and the values with which they leave it as it is."""


class Answer(tuple[Any, ...]):
    """Logits and a cache, for loops that read ``.logits``, ``["logits"]``, ``[0]`` or unpack the two."""

    @property
    def logits(self) -> torch.Tensor:
        return self[0]

    @property
    def past_key_values(self) -> Any:
        return self[1]

    def __getitem__(self, key: Any) -> Any:
        return getattr(self, key) if isinstance(key, str) else super().__getitem__(key)


class TokenCache(tuple[Any, ...]):
    """One layer (keys, values) of shape [B, 1, T, 1], whose numbers are the tokens of the text."""

    def get_seq_length(self, layer: int = 0) -> int:
        return int(self[layer][0].shape[2])


class TableModel(torch.nn.Module):
    """A causal language model with given rows.

    Args:
        row: a text after the prompt -> the probabilities of its next token, V numbers of float32.
        draft_row: the same of the draft, for models that draft themselves (``self_draft``).
        vocab_size: V.
        form: what it returns, its cache, and how much larger tokens are than those of the rows.

    Attributes:
        texts: the number of texts that the model was asked about.
        has_drafted: whether the loop has asked the model for drafts, by ``self_draft``.
        strange: the first text that does not begin with the prompt, if there was one.
    """

    def __init__(
        self,
        row: Callable[[Sequence[int]], list[float]],
        draft_row: Callable[[Sequence[int]], list[float]],
        vocab_size: int,
        form: LoopForm,
    ) -> None:
        super().__init__()
        self.row, self.draft_row, self.form = row, draft_row, form
        self.vocab_size = vocab_size = vocab_size + form.shift
        self.prompt = [token + form.shift for token in PROMPT]
        self.texts = 0
        self.strange: tuple[int, ...] = ()
        self.drafts_itself = self.has_drafted = False
        self.device, self.dtype = torch.device("cpu"), torch.float32
        self.config = SimpleNamespace(
            vocab_size=vocab_size,
            is_encoder_decoder=False,
            max_position_embeddings=1000,
            num_hidden_layers=1,
            n_layer=1,
            eos_token_id=UNREACHED,
            pad_token_id=None,
            model_type="table",
        )
        self.generation_config = SimpleNamespace(eos_token_id=UNREACHED, pad_token_id=None)
        self.weight = torch.nn.Parameter(torch.zeros(1), requires_grad=False)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError as error:
            raise AttributeError(
                f"the stand-in for a model has no attribute {name!r}", name=name, obj=self
            ) from error

    @contextmanager
    def self_draft(self) -> Iterator[None]:
        """Inside this context the model answers as the draft."""
        self.drafts_itself = self.has_drafted = True
        try:
            yield
        finally:
            self.drafts_itself = False

    def forward(
        self,
        input_ids: Any = None,
        past_key_values: Any = None,
        cache: Any = None,
        use_cache: bool | None = None,
        **others: Any,
    ) -> Any:
        """Answer as models do: without ``use_cache`` there is no cache in the answer."""
        is_list = not isinstance(input_ids, torch.Tensor)
        rows = [[int(token) for token in input_ids]] if is_list else input_ids.tolist()
        is_single = bool(rows) and not isinstance(rows[0], list)
        batch: Any = [rows] if is_single else rows
        known = past_key_values if past_key_values is not None else cache
        past = _tokens_of(known) or [[] for _ in batch]
        texts, after = [], []
        for old, new in zip(past, batch, strict=True):
            text = old + (new[len(old) :] if self.form.takes_whole_text else new)
            texts.append(text)
            after.append([self._after(text[:end]) for end in range(len(old) + 1, len(text) + 1)])
        # One operation of torch: every operation is intercepted, which takes most of the time of a run.
        probs = torch.tensor(after, dtype=torch.float32).reshape(len(batch), -1, self.vocab_size)
        if self.form.answer == "last probs":
            return probs[:, -1]
        if self.form.answer == "probs":
            return probs[0].double().numpy() if is_list else probs[0]
        found = probs[0].log() if is_single else probs.log()
        if self.form.answer == "logits":
            return found
        return Answer((found, None if use_cache is False else self._cache_of(texts, known)))

    def generate(
        self,
        input_ids: torch.Tensor,
        max_new_tokens: int | None = None,
        do_sample: bool = False,
        return_dict_in_generate: bool = False,
        **others: Any,
    ) -> Any:
        """Continue one text as transformers' ``generate`` does: with the likeliest tokens, or drawn ones.

        Raises:
            AttributeError: it is called without ``max_new_tokens``, or with an option that changes what is
                drawn.
        """
        changing = {
            name
            for name, value in others.items()
            if not (isinstance(value, int | None) and value in _ONLY.get(name, ()))
        }
        for name in [*sorted(changing - _WITHOUT_EFFECT), *["max_length"] * (max_new_tokens is None)]:
            raise AttributeError(
                f"the stand-in for a model has no option {name!r} of generate", name=name, obj=self
            )
        text, scores = input_ids, []
        for _ in range(max_new_tokens or 0):
            scores.append(self(text).logits[:, -1])
            drawn = torch.multinomial(torch.softmax(scores[-1], -1), 1) if do_sample else None
            text = torch.cat([text, scores[-1].argmax(-1, keepdim=True) if drawn is None else drawn], dim=1)
        if not return_dict_in_generate:
            return text
        return SimpleNamespace(sequences=text, scores=tuple(scores), logits=tuple(scores))

    def _after(self, text: list[int]) -> list[float]:
        self.texts += 1
        start = len(self.prompt)
        if text[:start] != self.prompt[: len(text)]:
            self.strange = self.strange or tuple(text)
        if len(text) < start or self.strange:
            return [1 / self.vocab_size] * self.vocab_size
        look_up, shift = self.draft_row if self.drafts_itself else self.row, self.form.shift
        return [0.0] * shift + look_up([token - shift for token in text[start:]])

    def _cache_of(self, texts: list[list[int]], known: Any) -> Any:
        keys = torch.tensor(texts, dtype=torch.float32)[:, None, :, None]
        if self.form.takes_whole_text:
            return keys, None
        if self.form.cache == "tuple":
            return TokenCache([(keys, keys.clone())])
        if not hasattr(known, "update"):
            known = _dynamic_cache()()
        new = keys[:, :, known.get_seq_length() :]
        known.update(new, new.clone(), 0)
        return known


@cache
def _dynamic_cache() -> type:
    """The ``DynamicCache`` of transformers, whose ``crop`` also takes the length to keep.

    transformers 5.24 takes only the number of tokens to remove, as a negative number or 0.  Loops written
    before say how many to keep, the ``max_length``, which is never 0 of a text with a prompt.
    """
    from transformers import DynamicCache

    class Cropped(DynamicCache):
        def crop(self, tokens_to_remove: int = 0, *, max_length: int | None = None) -> None:
            length = tokens_to_remove if max_length is None else max_length
            removed = -length if length <= 0 else self.get_seq_length() - length
            if removed > 0:
                super().crop(-removed)

    return Cropped


def _tokens_of(cache: Any) -> list[list[int]]:
    """The tokens of every text that a cache holds."""
    if cache is None:
        return []
    if hasattr(cache, "update"):
        if not cache.get_seq_length():
            return []
        keys = cache.layers[0].keys
    else:
        keys = cache[0][0] if isinstance(cache[0], (tuple, list)) else cache[0]
    found: list[list[int]] = keys[:, 0, :, 0].long().tolist()
    return found


def note_strange_texts(journal: Journal, *models: TableModel) -> None:
    """Add a finding if a model was asked about a text that does not begin with the prompt."""
    for model in models:
        if model.strange:
            journal.findings.add(
                (
                    "contract",
                    f"it asks a model about the text {list(model.strange)}, and the prompt is {model.prompt}",
                )
            )


def tokens_returned(returned: Any) -> list[int]:
    """The tokens in what a loop returns: a tensor, list, generator, string, or part of a tuple or mapping."""
    if inspect.isgenerator(returned):
        returned = [each[0] if isinstance(each, tuple) else each for each in returned]
    if hasattr(returned, "keys"):
        named = [
            value for key, value in returned.items() if any(word in key for word in ("id", "token", "text"))
        ]
        returned = next(value for value in named if not isinstance(value, (int, float)))
    if isinstance(returned, tuple):
        returned = returned[0]
    if hasattr(returned, "sequences"):
        returned = returned.sequences
    if isinstance(returned, list) and returned and not isinstance(returned[0], int):
        inner = returned[0]
        is_text = isinstance(inner, list) or getattr(inner, "ndim", 0) > 0
        returned = inner if (is_text and len(inner) > 1) or isinstance(inner, str) else returned
    if isinstance(returned, str):
        return tokens_of(returned)
    tokens = returned.flatten().tolist() if hasattr(returned, "flatten") else returned
    return [int(token) for token in tokens]
