"""Probes of a loaded model: does it look ahead, and is its cache right?"""

import warnings
from typing import Any

import torch
from torch import Tensor

from spectheory.foundation.errors import InvalidInputError, SlowReadingNotice
from spectheory.models.growing_texts import Texts
from spectheory.models.reading import CachedReading, RecomputedReading, run_model

ROUNDING = {torch.float64: 1e-3, torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.1}
"""By the type of the weights: total variation between two ways to one row that is still rounding."""


def check_causal(side: str, model: Any, vocab_size: int) -> None:
    """Refuse a model whose rows change with tokens that come later: it scores no next tokens."""
    text = _tokens(model, vocab_size)
    other = text.clone()
    other[3:] = text[:-3]
    try:
        rows, changed = (_rows(run_model(model, ids[None], keep=len(ids)))[0, :3] for ids in (text, other))
    except Exception as error:  # the model takes something other than a text
        raise InvalidInputError(
            f"the {side} model {_name(model)!r} cannot score a text ({type(error).__name__}: {error}); "
            "expected a causal language model"
        ) from error
    if not _close(model, rows, changed):
        raise InvalidInputError(
            f"the {side} model {_name(model)!r} looks ahead: its rows change with tokens that come later; "
            "expected a causal language model"
        )


def reads_on_from_cache(side: str, model: Any, vocab_size: int) -> bool:
    """Whether reading on from a cache gives the rows of full texts.

    Two texts of different lengths are read as prompts are.  Two paths behind each are read at once and token
    by token.  Then one of them is accepted, by more tokens in one text than in the other, and both texts are
    read on.  A model that keeps no cache, keeps one that cannot be used so, or gives other rows with it, is
    read without one, and a ``SlowReadingNotice`` says so.
    """
    if getattr(model, "reads_anew", False):
        return False
    tokens = _tokens(model, vocab_size)

    def rows(kind: Any) -> Tensor:
        texts = Texts.of([tokens[:3].tolist(), tokens[2:3].tolist()], tokens.device)
        paths = torch.stack([tokens[[3, 4]], tokens[[5, 3]]]).expand(2, 2, 2)
        reading, found = kind.of(model, texts), []
        for _ in range(2):
            found += [reading.follow(texts, paths, first=0)]
            found += [reading.follow(texts, paths[:, :, :depth], first=depth) for depth in range(2)]
            reading.accept(texts, torch.tensor([1, 0], device=tokens.device), draft_length=2)
            texts.append(tokens[[5, 3, 1]].expand(2, 3), torch.tensor([3, 1], device=tokens.device))
            paths = paths.flip(1)
        return _rows(torch.cat(found, dim=2))

    try:
        cached = rows(CachedReading)
    except Exception:  # whatever it is that the model keeps: it cannot be used like a cache
        cached = None
    if cached is not None and _close(model, cached, rows(RecomputedReading)):
        return True
    warnings.warn(
        f"the {side} model {_name(model)!r} cannot read on from a cache; it reads the whole text for every "
        "token, which gives the same numbers and takes longer",
        SlowReadingNotice,
        stacklevel=2,
    )
    return False


def _tokens(model: Any, vocab_size: int) -> Tensor:
    """Six tokens from all over the vocabulary."""
    return (torch.arange(1, 7) * vocab_size // 7).to(next(model.parameters()).device)


def _rows(logits: Tensor) -> Tensor:
    return torch.softmax(logits.double(), dim=-1)


def _close(model: Any, rows: Tensor, others: Tensor) -> bool:
    """Whether no two rows are further apart, in total variation, than rounding takes them."""
    tolerance = ROUNDING.get(next(model.parameters()).dtype, 0.1)
    return bool(((rows - others).abs().sum(dim=-1) / 2 <= tolerance).all())


def _name(model: Any) -> str:
    return getattr(model.config, "_name_or_path", "") or type(model).__name__
