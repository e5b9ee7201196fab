"""MLX LM: it samples from the target at every position and compares with the drafts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from audits.forms.mlx import ARRAYS
from audits.loading.library_code import Code
from audits.loading.one_module import Given
from audits.loading.reached_code import Function
from audits.subject import Library, Subject

CACHES = Given(
    "mlx_lm.models.cache: caches that hold nothing",
    lambda: {
        "make_prompt_cache": lambda model: [],
        "can_trim_prompt_cache": lambda cache: True,
        "trim_prompt_cache": lambda *_: None,
    },
)
LIBRARY = Library("mlx-lm", "mlx_lm", "0.32.2", {"mlx.core": ARRAYS, "mlx_lm.models.cache": CACHES})
FUNCTION = Function(
    "speculative_generate_step",
    ("mlx_lm.generate",),
    frozenset(("prompt", "model", "draft_model", "num_draft_tokens", "max_tokens", "sampler")),
)
STAND_INS = (
    "the models: rows that are looked up after the tokens they were given",
    "the sampler argument: the drafted path, then torch.multinomial",
)


def speculative_generate_step(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "sampler", on numpy's arrays.

    The models look up rows after all tokens that they were given.  The sampler argument first returns the
    drafted path, and then draws from the target's log probabilities.
    """

    def sampler(
        paths: torch.Tensor, target_rows: torch.Tensor, draft_rows: torch.Tensor, generator: Any
    ) -> list[int]:
        length = paths.shape[1]
        drafted = iter(paths[0].tolist())

        def model(rows: torch.Tensor) -> Callable[..., np.ndarray]:
            """A model with its cache of tokens; after other tokens than the path's its row is uniform."""
            text, seen, logits = [0, *paths[0].tolist()], list[int](), rows.log().numpy()

            def row(place: int) -> np.ndarray:
                is_known = place < len(rows) and seen[: place + 1] == text[: place + 1]
                return logits[place] if is_known else np.zeros_like(logits[0])

            def after(tokens: np.ndarray, cache: Any) -> np.ndarray:
                seen.extend(tokens[0].tolist())
                return np.stack([row(place) for place in range(len(seen) - tokens.size, len(seen))])[None]

            return after

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


SUBJECTS = {
    "mlx-lm": Subject(
        LIBRARY,
        FUNCTION,
        speculative_generate_step,
        {"9d46803799f99d6fc7c35fff2d4357c79b1a25ae98cc63efeaaebeb50a7b5f33": LIBRARY.tested},
        "sampler",
        mistake=("yield tokens[n], logprobs[n], False", "yield tokens[0], logprobs[n], False"),
        settings={"num_drafts": (1,), "stand_ins": STAND_INS},
    )
}
