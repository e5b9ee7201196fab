"""SGLang DSpark: token verification of a chain, in Triton kernels."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from audits.forms.answers import counted
from audits.libraries.sglang import LIBRARY, OPS
from audits.loading.library_code import NOISE, Code
from audits.loading.reached_code import Function
from audits.subject import Subject
from spectheory.auditing.following.kernel_draws import elementwise, gumbel_noise
from spectheory.auditing.subjects.signatures import Row
from spectheory.auditing.tape.races import UndefinedDrawError

FUNCTION = Function(
    "blockwise_rejection_triton",
    (f"{OPS}.dspark.blockwise_rejection",),
    frozenset(
        {
            "candidates", "target_logits", "draft_logits", "target_temperatures", "draft_temperatures",
            "noise",
        }
    ),
)  # fmt: skip
KEY = 7
"""The key of a server's random numbers."""
SEEDS = (f"the server's key: {KEY}; its counter starts at the seed of the generator",)


def blockwise_rejection(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "batch": DSpark's verification of a chain.

    The generator's seed holds the step counter of its random numbers, so that a call continues where the
    previous call ended.
    """
    device = SimpleNamespace(log1p=elementwise(np.log1p))
    code.replace(("libdevice",), lambda _: (device,), "libdevice: numpy's log1p")
    code.replace(("_murmur3_uniform32", "_log1p_neg_stable"), gumbel_noise, NOISE)

    def sampler(rows: Sequence[Row], generator: torch.Generator) -> list[list[int]]:
        """As the verification step of a chain calls it, at temperature 1."""
        drafted = torch.stack([row.draft_tokens for row in rows])
        counter = torch.tensor([generator.initial_seed()])
        accepted, bonus, cut = code.call(
            candidates=torch.cat([torch.zeros((len(rows), 1), dtype=torch.long), drafted], dim=1),
            target_logits=torch.cat([row.target_probs for row in rows]).log(),
            draft_logits=torch.stack([row.draft_probs for row in rows]).log(),
            target_temperatures=torch.ones(len(rows)),
            draft_temperatures=torch.ones(len(rows)),
            noise=SimpleNamespace(key=KEY, counter=counter),
        )
        generator.manual_seed(int(counter))
        if any(cut.tolist()):
            raise UndefinedDrawError(
                "it says that accepted tokens are cut off, and was given no length for it"
            )
        return list(map(counted, drafted.tolist(), accepted.tolist(), bonus.tolist()))

    return sampler


SUBJECTS = {
    "sglang-dspark": Subject(
        LIBRARY,
        FUNCTION,
        blockwise_rejection,
        {"c5a47f8676a9451f98f307f0eb397cc515728ec3f5031630eb2dc865adbe9090": LIBRARY.tested},
        "batch",
        mistake=("log_p > tl.log(u) + log_q", "log_p < tl.log(u) + log_q"),
        settings={"mixes": (), "seeds": SEEDS},
    )
}
