"""Libraries for MLX: numpy's arrays stand in for it."""

from collections.abc import Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import softmax

from audits.loading.one_module import Given


def _categorical(logits: np.ndarray) -> np.ndarray:
    return np.array(np.random.default_rng().choice(len(logits), p=softmax(logits.astype(float))))


def _arrays() -> Mapping[str, Any]:
    return {
        **{name: getattr(np, name) for name in ("arange", "cumprod", "int32", "log", "maximum", "minimum")},
        "softmax": softmax,
        "random": SimpleNamespace(
            uniform=lambda shape: np.random.default_rng().random(shape), categorical=_categorical
        ),
        "array": lambda values, dtype=None: np.array(values, dtype=dtype),
        "uint32": np.uint32,
        "concatenate": np.concatenate,
        "logsumexp": lambda x, axis, keepdims: np.log(np.exp(x).sum(axis=axis, keepdims=keepdims)),
        **dict.fromkeys(("eval", "async_eval", "clear_cache"), lambda *_: None),
        "stream": nullcontext,
    }


ARRAYS = Given("mlx.core: numpy's arrays", _arrays)
