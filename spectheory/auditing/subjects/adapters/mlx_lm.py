"""MLX LM: sample from the target at every position and compare with the drafts."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from spectheory.auditing.subjects.library_code import Code
from spectheory.auditing.subjects.one_module import Given
from spectheory.auditing.subjects.reached_code import Function

FUNCTION = Function(
    "speculative_generate_step",
    ("mlx_lm.generate",),
    frozenset(("prompt", "model", "draft_model", "num_draft_tokens", "max_tokens", "sampler")),
)
STAND_INS = (
    "the models: rows that are looked up",
    "the sampler argument: the drafted path, then torch.multinomial",
)


def _arrays() -> Mapping[str, Any]:
    return {
        "array": lambda values, dtype=None: np.array(values, dtype=dtype),
        "uint32": np.uint32,
        "concatenate": np.concatenate,
        "logsumexp": lambda x, axis, keepdims: np.log(np.exp(x).sum(axis=axis, keepdims=keepdims)),
        **dict.fromkeys(("eval", "async_eval", "clear_cache"), lambda *_: None),
        "stream": nullcontext,
    }


GIVEN = {
    "mlx.core": Given("mlx.core: numpy's arrays", _arrays),
    "mlx_lm.models.cache": Given(
        "mlx_lm.models.cache: caches that hold nothing",
        lambda: {
            "make_prompt_cache": lambda model: [],
            "can_trim_prompt_cache": lambda cache: True,
            "trim_prompt_cache": lambda *_: None,
        },
    ),
}


def speculative_generate_step(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "sampler", on numpy's arrays.

    The models look up rows.  The sampler argument first returns the drafted path, and then draws from the
    target's log probabilities.
    """

    def sampler(
        paths: torch.Tensor, target_rows: torch.Tensor, draft_rows: torch.Tensor, generator: Any
    ) -> list[int]:
        """Take tokens from the generator, until one was not drafted."""
        length = paths.shape[1]
        drafted = iter(paths[0].tolist())

        def model(rows: torch.Tensor) -> Callable[..., np.ndarray]:
            logits = rows[None].log().numpy()
            asked = iter(range(len(rows)))
            return lambda tokens, cache: logits[:, next(asked), None] if len(rows) == length else logits

        def draw(logprobs: np.ndarray) -> np.ndarray:
            if len(logprobs) == 1:
                return np.array([next(drafted)], dtype=np.uint32)
            probs = torch.from_numpy(np.exp(logprobs))
            return torch.multinomial(probs, 1, generator=generator)[:, 0].numpy().astype(np.uint32)

        steps = code.call(
            prompt=np.array([0]),
            model=model(target_rows[0]),
            draft_model=model(draft_rows[0]),
            num_draft_tokens=length,
            max_tokens=length + 1,
            sampler=draw,
        )
        tokens = []
        for token, _, is_drafted in steps:
            tokens.append(int(token))
            if not is_drafted:
                break
        return tokens

    return sampler
