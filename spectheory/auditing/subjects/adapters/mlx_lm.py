"""Libraries for MLX: numpy's arrays stand in for it.

MLX LM samples from the target at every position and compares with the drafts.  mlx-dspark, dspark-mlx and
MTPLX accept with coins.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from scipy.special import softmax

from spectheory.auditing.subjects.adapters.answers import counted
from spectheory.auditing.subjects.library_code import Code
from spectheory.auditing.subjects.one_module import Given
from spectheory.auditing.subjects.reached_code import Function
from spectheory.auditing.tape.coins import UniformDraw
from spectheory.auditing.tape.races import UndefinedDrawError

FUNCTION = Function(
    "speculative_generate_step",
    ("mlx_lm.generate",),
    frozenset(("prompt", "model", "draft_model", "num_draft_tokens", "max_tokens", "sampler")),
)
STAND_INS = (
    "the models: rows that are looked up after the tokens they were given",
    "the sampler argument: the drafted path, then torch.multinomial",
)


MLX_DSPARK = Function(
    "_spec_sample_accept",
    ("mlx_dspark.generate",),
    frozenset({"v_logits", "draft", "q_probs", "temperature"}),
)
DSPARK_MLX = Function(
    "speculative_sample_accept",
    ("dspark_mlx.verify",),
    frozenset({"draft_tokens", "draft_probs", "base_probs", "rng"}),
)
MTPLX = Function(
    "verify_one_token",
    ("mtplx.sampling",),
    frozenset({"target_p", "draft_q", "draft_token", "rng"}),
)
CATEGORICAL = "mx.random.categorical: a draw with the softmax of the logits"
NO_FLOAT = "float: a random number is compared as it is"


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


def mlx_dspark(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "sampler", of one path."""

    def sampler(
        paths: torch.Tensor, target_rows: torch.Tensor, draft_rows: torch.Tensor, generator: Any
    ) -> list[int]:
        path = paths[0].tolist()
        logits, draft = target_rows[0].log().numpy(), draft_rows[0].numpy()
        count, token = code.call(v_logits=logits, draft=path, q_probs=draft, temperature=1.0)
        return counted(path, count, token)

    return sampler


def dspark_mlx(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "sampler", of one path."""

    def sampler(
        paths: torch.Tensor, target_rows: torch.Tensor, draft_rows: torch.Tensor, generator: Any
    ) -> list[int]:
        found = code.call(
            draft_tokens=paths[0].numpy(),
            draft_probs=draft_rows[0].double().numpy(),
            base_probs=target_rows[0].double().numpy(),
            rng=np.random.default_rng(),
        )
        tokens = found.tokens.tolist()
        if found.n_accepted != len(tokens) - 1:
            raise UndefinedDrawError(
                f"it returns the tokens {tokens}, and says that {found.n_accepted} are accepted"
            )
        return tokens

    return sampler


def mtplx(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "sampler", of one path: a call per position, then a draw from the target."""
    (module,) = (each for each in code.modules.values() if hasattr(each, code.function.__name__))
    vars(module)["float"] = lambda value: value if isinstance(value, UniformDraw) else float(value)

    def sampler(
        paths: torch.Tensor, target_rows: torch.Tensor, draft_rows: torch.Tensor, generator: Any
    ) -> list[int]:
        """As the batched decoding loop calls it, with a generator of numpy."""
        rng, target, tokens = np.random.default_rng(), target_rows[0].double().numpy(), []
        for p, q, token in zip(target, draft_rows[0].double().numpy(), paths[0].tolist(), strict=False):
            found = code.call(target_p=p, draft_q=q, draft_token=token, rng=rng)
            tokens.append(found.token_id)
            if not found.accepted:
                return tokens
            if found.token_id != token:
                raise UndefinedDrawError(
                    f"it accepts the drafted token {token}, and returns {found.token_id}"
                )
        return [*tokens, module.sample_from_distribution(target[-1], rng)]

    return sampler
