"""MTPLX: verification of one token at a time, as the batched decoding loop calls it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from audits.loading.library_code import Code
from audits.loading.reached_code import Function
from audits.subject import Library, Subject
from spectheory.auditing.tape.coins import UniformDraw
from spectheory.auditing.tape.races import UndefinedDrawError

LIBRARY = Library("mtplx", "mtplx", "2.12.2")
FUNCTION = Function(
    "verify_one_token",
    ("mtplx.sampling",),
    frozenset({"target_p", "draft_q", "draft_token", "rng"}),
)
NO_FLOAT = "float: a random number is compared as it is"


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


SUBJECTS = {
    "mtplx": Subject(
        LIBRARY,
        FUNCTION,
        mtplx,
        {"776744804b67b5b04ff06025a09d0fab0263e9e485c18b313185a3b9a91567fd": LIBRARY.tested},
        "sampler",
        mistake=("float(rng.random()) <= accept_p", "float(rng.random()) >= accept_p"),
        settings={"num_drafts": (1,), "stand_ins": (NO_FLOAT,)},
    )
}
