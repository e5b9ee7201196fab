"""dspark-mlx: token verification of one path with coins of numpy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from audits.loading.library_code import Code
from audits.loading.reached_code import Function
from audits.subject import Library, Subject
from spectheory.auditing.tape.races import UndefinedDrawError

LIBRARY = Library("dspark-mlx", "dspark_mlx", "0.1.0")
FUNCTION = Function(
    "speculative_sample_accept",
    ("dspark_mlx.verify",),
    frozenset({"draft_tokens", "draft_probs", "base_probs", "rng"}),
)


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


SUBJECTS = {
    "dspark-mlx": Subject(
        LIBRARY,
        FUNCTION,
        dspark_mlx,
        {"5d20b46e2dbc7c6f98a4a8c6d5322a9472957668f6b119cbcdb6000df5e42d3b": LIBRARY.tested},
        "sampler",
        mistake=("if rng.random() < ratio", "if rng.random() > ratio"),
        settings={"num_drafts": (1,)},
    )
}
