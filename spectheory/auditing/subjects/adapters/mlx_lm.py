"""MLX LM: sample from the target at every position and compare with the drafts."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from spectheory.auditing.subjects.one_module import file_of, module_alone
from spectheory.foundation.wheels import Release

MODULE = "mlx_lm.generate"
FILES = (file_of(MODULE),)
STAND_INS = (
    "mlx.core: numpy's arrays",
    "mlx_lm.models.cache: caches that hold nothing",
    "the models: rows that are looked up",
    "the sampler argument: the drafted path, then torch.multinomial",
)


def speculative_generate_step(release: Release) -> Callable[..., Any]:
    """A sampler of the signature "sampler", on numpy's arrays.

    The models look up rows.  The sampler argument first returns the drafted path, and then draws from the
    target's log probabilities.
    """
    given: dict[str, dict[str, Any]] = {
        "mlx.core": {
            "array": lambda values, dtype=None: np.array(values, dtype=dtype),
            "uint32": np.uint32,
            "concatenate": np.concatenate,
            "logsumexp": lambda x, axis, keepdims: np.log(np.exp(x).sum(axis=axis, keepdims=keepdims)),
            **dict.fromkeys(("eval", "async_eval", "clear_cache"), lambda *_: None),
            "stream": nullcontext,
        },
        "mlx_lm.models.cache": {
            "make_prompt_cache": lambda model: [],
            "can_trim_prompt_cache": lambda cache: True,
            "trim_prompt_cache": lambda *_: None,
        },
    }
    shipped = module_alone(release.folder, [MODULE], given).speculative_generate_step

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

        steps = shipped(
            np.array([0]),
            model(target_rows[0]),
            model(draft_rows[0]),
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
