"""A stand-in for a tokenizer, for decoding loops that take and return strings: every letter is a token."""

from collections.abc import Callable, Mapping, Sequence
from string import ascii_lowercase
from typing import Any

import numpy as np
import torch

from spectheory.auditing.subjects.roles import UNREACHED

_BEYOND = 0x4E00
"""From here on Unicode has 20 000 letters, none of which is a space."""
_ARRAYS: Mapping[str | None, Callable[[Any], Any]] = {None: list, "pt": torch.tensor, "np": np.array}
"""``return_tensors`` -> what makes it of a list."""


class Encoding(dict[str, Any]):
    """``input_ids`` and ``attention_mask``, as keys and as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def to(self, *_: Any, **__: Any) -> "Encoding":
        """Stay on the CPU."""
        return self


class TableTokenizer:
    """A tokenizer whose tokens are letters, with the methods of transformers' tokenizers that loops call.

    Args:
        vocab_size: V.

    Example:
        >>> tokenizer = TableTokenizer(3)
        >>> tokenizer.encode("abca"), tokenizer.decode([2, 0])
        ([0, 1, 2, 0], 'ca')
    """

    padding_side = "left"
    eos_token, pad_token, bos_token, unk_token = "</s>", "<pad>", "<s>", "<unk>"
    eos_token_id, pad_token_id, bos_token_id, unk_token_id = UNREACHED, 0, None, None

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the stand-in for a tokenizer has no attribute {name!r}", name=name, obj=self)

    def __len__(self) -> int:
        return self.vocab_size

    def __call__(
        self, text: str | Sequence[str], *_: Any, return_tensors: str | None = None, **__: Any
    ) -> Encoding:
        if return_tensors not in _ARRAYS:
            raise ValueError(f"expected return_tensors of None, 'pt' or 'np', received {return_tensors!r}")
        rows = [self._tokens(each) for each in ([text] if isinstance(text, str) else text)]
        named = {"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]}
        is_row = isinstance(text, str) and not return_tensors
        return Encoding(
            {name: _ARRAYS[return_tensors](each[0] if is_row else each) for name, each in named.items()}
        )

    def encode(self, text: str, *_: Any, return_tensors: str | None = None, **__: Any) -> Any:
        """Token ids of a text."""
        return self(text, return_tensors=return_tensors).input_ids

    def decode(self, ids: Any, *_: Any, **__: Any) -> str:
        """The text of token ids."""
        found = ids.tolist() if hasattr(ids, "tolist") else ids
        return "".join(map(_letter, [found] if isinstance(found, int) else map(int, found)))

    def batch_decode(self, rows: Any, *_: Any, **__: Any) -> list[str]:
        """The text of every row of token ids."""
        return [self.decode(row) for row in rows]

    def apply_chat_template(
        self,
        messages: Sequence[Mapping[str, str]],
        *_: Any,
        tokenize: bool = True,
        return_tensors: str | None = None,
        return_dict: bool = False,
        **__: Any,
    ) -> Any:
        """The last message: a table has no other text than the prompt."""
        text = messages[-1]["content"]
        if not tokenize:
            return text
        found = self(text, return_tensors=return_tensors)
        return found if return_dict else found.input_ids

    def convert_tokens_to_ids(self, tokens: str | Sequence[str]) -> Any:
        """The id of a token, or ``unk_token_id``; of several tokens a list."""
        if isinstance(tokens, str):
            return self._tokens(tokens)[0] if len(tokens) == 1 else self.unk_token_id
        return [self.convert_tokens_to_ids(token) for token in tokens]

    def convert_ids_to_tokens(self, ids: Any) -> Any:
        """The token of an id; of several ids a list."""
        return _letter(ids) if isinstance(ids, int) else list(self.decode(ids))

    def _tokens(self, text: Any) -> list[int]:
        if not isinstance(text, str):
            raise TypeError(f"expected a text, received {type(text).__name__}")
        tokens = tokens_of(text)
        if not all(0 <= token < self.vocab_size for token in tokens):
            raise ValueError(f"expected letters of {self.vocab_size} tokens, received {text!r}")
        return tokens


def tokens_of(text: str) -> list[int]:
    """The tokens of a text.  A character that stands for no token becomes -1."""
    return [
        ascii_lowercase.find(letter) if letter < chr(_BEYOND) else ord(letter) - _BEYOND for letter in text
    ]


def _letter(token: int) -> str:
    if token < 0:
        raise ValueError(f"expected token ids, received {token}")
    return ascii_lowercase[token] if token < len(ascii_lowercase) else chr(_BEYOND + token)
