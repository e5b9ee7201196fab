"""Two checks of a loaded model: it does not look ahead, and a cache does not change its rows."""

import warnings
from typing import Any

import torch
from torch import Tensor

from spectheory.foundation.errors import InvalidInputError, SlowReadingNotice
from spectheory.models.growing_texts import Texts
from spectheory.models.reading import CachedReading, RecomputedReading, run_model

ROUNDING = {torch.float64: 1e-3, torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.1}
"""Per dtype of the weights: the largest total variation between two rows that we attribute to rounding."""


def check_causal(side: str, model: Any, vocab_size: int) -> None:
    """Refuse a model whose rows depend on later tokens.

    Raises:
        InvalidInputError: they do, or the model cannot score a text.
    """
    name, text = _name(side, model), _tokens(model, vocab_size)
    other = torch.cat([text[:3], text[:3]])
    try:
        rows = [run_model(model, ids[None], keep=6)[0, :3] for ids in (text, other)]
    except Exception as error:  # the model takes something other than a text
        problem = f"cannot score a text ({type(error).__name__}: {error})"
        raise InvalidInputError(f"{name} {problem}; expected a causal language model") from error
    if not _close(model, *rows):
        problem = "looks ahead: its rows change with tokens that come later"
        raise InvalidInputError(f"{name} {problem}; expected a causal language model")


def reads_on_from_cache(side: str, model: Any, vocab_size: int) -> bool:
    """Whether the model gives the same rows with a cache as without.

    For each of two texts we draft two paths, accept one, and draft two again.  If the rows differ, a
    ``SlowReadingNotice`` warns that whole texts are read at every call.
    """
    if getattr(model, "reads_anew", False):
        return False
    tokens, found = _tokens(model, vocab_size), []
    try:
        for kind in (RecomputedReading, CachedReading):
            texts = Texts.of([tokens[:3].tolist(), tokens[2:3].tolist()], tokens.device)
            reading, paths = kind(model, texts), torch.stack([tokens[[3, 4]], tokens[[5, 3]]]).expand(2, 2, 2)
            rows = [reading.follow(texts, paths[:, :, :1], first=0), reading.follow(texts, paths, first=2)]
            reading.accept(texts, torch.tensor([1, 0], device=tokens.device), draft_length=2)
            texts.append(tokens[[5, 3, 1]].expand(2, 3), torch.tensor([3, 1], device=tokens.device))
            found.append(torch.cat([*rows, reading.follow(texts, paths, first=0)], dim=2))
    except Exception:  # any error means that the cache of the model cannot be used
        del found[1:]
    if len(found) == 2 and _close(model, *found):
        return True
    warnings.warn(
        f"{_name(side, model)} cannot read on from a cache; it reads the whole text for every token, which "
        "gives the same numbers and takes longer",
        SlowReadingNotice,
        stacklevel=2,
    )
    return False


def _tokens(model: Any, vocab_size: int) -> Tensor:
    """Six token ids at equal distances in the vocabulary."""
    return (torch.arange(1, 7) * vocab_size // 7).to(next(model.parameters()).device)


def _close(model: Any, logits: Tensor, others: Tensor) -> bool:
    """Whether the total variation of each pair of rows is within ``ROUNDING``."""
    gap = torch.softmax(logits.double(), dim=-1) - torch.softmax(others.double(), dim=-1)
    return bool((gap.abs().sum(dim=-1) / 2 <= ROUNDING.get(next(model.parameters()).dtype, 0.1)).all())


def _name(side: str, model: Any) -> str:
    return f"the {side} model {getattr(model.config, '_name_or_path', '') or type(model).__name__!r}"
