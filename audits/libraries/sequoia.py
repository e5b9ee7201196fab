"""Sequoia: trees of distinct children, drafted and verified for a whole text."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch

from audits.loading.library_code import Code
from audits.loading.one_module import Given
from audits.loading.reached_code import Function
from audits.subject import Library, Subject
from spectheory.auditing.subjects.signatures import GENERATE
from spectheory.foundation.results import NOT_LOSSLESS

ENDS = 3
"""The tokens 0 and 2 end a text, so those of the models follow these."""
ROOM = 16
"""The longest text with its tree."""
LOWEST = torch.finfo(torch.float32).min


def _residual(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    rest = (p - q).relu()
    return rest / rest.sum()


def _utils() -> Mapping[str, Any]:
    return {
        "_make_causal_mask": lambda shape, **_: torch.full((shape[1], shape[1]), LOWEST).triu(1),
        "get_sampling_logits": lambda logits, **_: logits,
        "ChildrenAccept": SimpleNamespace,
        "get_residual": _residual,
    }


def _children(logits: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """Two distinct children of the root, each drawn with one of its numbers."""
    row, children = logits[0].softmax(-1), list[int]()
    for number in numbers[0, :2]:
        children.append(int((number >= row.cumsum(-1) / row.sum()).sum()))
        row = row.index_fill(0, torch.tensor(children), 0)
    return torch.tensor(children)


class _Engine:
    """A model that sees the tokens of its cache that the mask shows."""

    def __init__(self, model: Any) -> None:
        self.model, self.cache, self.dtype = model, dict[int, int](), torch.float32
        kv_cache = SimpleNamespace(gather_kv_incremental=self._gather)
        self.engine = SimpleNamespace(max_length=ROOM, kv_cache=kv_cache)
        self.graph_inference = self.inference

    def inference(self, input_ids: Any, storage_ids: Any, attn_mask: Any, **_: Any) -> torch.Tensor:
        self.cache.update(zip(storage_ids.tolist(), input_ids.flatten().tolist(), strict=True))
        rows = []
        for mask in attn_mask[0, 0]:
            text = [self.cache[place] - ENDS for place in (mask == 0).nonzero().flatten().tolist()]
            rows.append(self.model(torch.tensor([text])).logits[0, -1])
        return torch.nn.functional.pad(torch.stack(rows), (ENDS, 0), value=-torch.inf)[None]

    def _gather(self, kept: list[int], start: int) -> None:
        moved = {start + number: self.cache[place] for number, place in enumerate(kept)}
        self.cache = {place: token for place, token in self.cache.items() if place < start} | moved


def sequoia(code: Code) -> Callable[..., Any]:
    """A function that returns a text, with a tree of a root and two children."""
    base = code.function.__mro__[1]
    base.__init__.__defaults__ = (*base.__init__.__defaults__[:-1], torch.float32)
    mask, depth = torch.tensor([[1.0, 0, 0], [1, 1, 0], [1, 0, 1]]), torch.tensor([0, 1, 1])
    tree = {"roots": [[0], [1, 2]], "branches": [[2]], "Successors": [[1, 2], [], []], "size": 3}
    drawn = {"sampling_callables": [_children], "sample_gather_indices": [torch.arange(2)]}
    fixed = drawn | {"max_length": ROOM, "max_target_seq": ROOM, "temperature": 1.0, "top_p": 1.0}

    def generate(input_ids: torch.Tensor, target_model: Any, draft_model: Any, max_new_tokens: int) -> Any:
        text = prompt = input_ids[0] + ENDS
        grown = code.call(
            draft_model_engine=_Engine(draft_model),
            target_model_engine=_Engine(target_model),
            prefix=prompt,
            vocab_size=target_model.vocab_size + ENDS,
            grow_map=tree | {"mask": mask, "depth": depth},
            attn_mask=torch.full((ROOM, ROOM), LOWEST),
            position_ids=torch.zeros(ROOM, dtype=torch.long),
            residual_graph=_residual,
            **fixed,
        )
        while len(text) < len(prompt) + max_new_tokens:
            grown.construct_grow_map()
            text = grown.verify()[0]
        return text - ENDS

    return generate


LAST, KEPT = "self.tokens[accept_length] = ", "self.tokens[:accept_length] = self.tokens[accept_list]\n"
DRAWN = "residual.multinomial(num_samples=1, replacement=True)\n\n        "
GROWN, FOR = "def construct_grow_map(self, benchmark = False):", "for i in range(self.draft_step - 1):"
MENDS = (
    (LAST + DRAWN + KEPT, f"last = {DRAWN}{KEPT}        if not terminal:\n            {LAST}last\n"),
    (GROWN, f"{GROWN}\n        self.r = torch.rand_like(self.r)"),
    (FOR, f"self.rand = torch.rand_like(self.rand)\n        {FOR}"),
)
"""The last token is written after the tree has moved; new numbers for every tree, of both kinds."""
UTILS = {"utils": Given("utils: masks, the residual (p - q)+ / Σ (p - q)+, no cut", _utils)}
COMMIT = "0ff3ff71475ca148f2dfb7545e0de5caf5c67b39"
SUBJECTS = {
    "sequoia": Subject(
        Library("sequoia", "Tree", COMMIT, UTILS, "Infini-AI-Lab/Sequoia"),
        Function("SpecTree", ("Tree.SpecTree",)),
        sequoia,
        {"ff7318d88785bed478e8f21b1415ebcd25399df3c66aa499343fca2854342174": COMMIT},
        GENERATE,
        verdict=NOT_LOSSLESS,
        mend=MENDS,
        settings={"stand_ins": ("float32 for float16", "the two children, with two numbers of their node")},
    )
}
