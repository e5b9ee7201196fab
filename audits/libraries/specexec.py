"""SpecExec: its SpecInfer, where distinct children of a node are tried in turn."""

import logging
from collections.abc import Callable
from typing import Any

import torch

from audits.forms.children import ChildProposals, of_children
from audits.loading.library_code import Code
from audits.loading.one_module import Given
from audits.loading.reached_code import Function
from audits.subject import Library, Subject
from spectheory.pairs.drafts import WithoutReplacement

UTILS = Given(
    "specdec.utils: a logger; its own writes all logs to the standard output",
    lambda: {"get_logger": logging.getLogger, "kv_cache_mask_apply": None},
)
COMMIT = "c7f24b32638dcbb0ef2d1176719980631730c4e8"


def specinfer(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "sampler"."""

    def children(
        target: torch.Tensor, proposals: ChildProposals, *_: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        draft = torch.zeros_like(target[0]).scatter(0, proposals.token_ids[0], proposals.probs[0])
        places = torch.arange(proposals.tokens.shape[1])
        place, token = code.function._inference_step(target[0], draft, places, proposals.tokens[0])
        return token.reshape(1), torch.tensor([-1 if place is None else int(place)])

    return of_children(children)


SUBJECTS = {
    "specexec-specinfer": Subject(
        Library("specexec", "specdec", COMMIT, {"specdec.utils": UTILS}, "yandex-research/specexec"),
        Function("SpecInfer", ("specdec.spec_SI",)),
        specinfer,
        {"92630c12659fa6f83dba33673b3114f0e6bc1598c6fe4d4f595605dbd1641024": COMMIT},
        "sampler",
        mistake=("                q[candidate_token_id] = 0\n", ""),
        settings={"num_drafts": (1,), "trees": (WithoutReplacement((2,)),)},
    )
}
