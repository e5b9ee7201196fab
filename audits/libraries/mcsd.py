"""MCSD: trees of candidates, with replacement, without, or met by one draw of the target."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from audits.loading.library_code import Code
from audits.loading.one_module import Given
from audits.loading.reached_code import Function
from audits.subject import Library, Subject
from spectheory.auditing.subjects.signatures import GENERATE

OUTPUTS = Given(
    "transformers' outputs: plain classes",
    lambda: dict.fromkeys(("ModelOutput", "BaseModelOutputWithPast", "CausalLMOutputWithPast"), object),
)
COMMIT = "8aadd6501a9e987ba5fca6cc8f9ad5949e480ec7"
CHILDREN = {False: (2, 2), True: (2, 1)}
"""Of every node of a depth, up to the draft length; runs with replacement are many."""


class _Model:
    """A model whose hidden states are its logits, and whose cache has the tokens of a tree."""

    def __init__(self, table: Any) -> None:
        self.table, self.model = table, self
        weight = SimpleNamespace(device=torch.device("cpu"))
        self.get_input_embeddings = lambda: SimpleNamespace(weight=weight)

    def lm_head(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden

    def __call__(
        self, input_ids: torch.Tensor, past_key_values: Any, tree_attn_mask: Any = None, **_: Any
    ) -> Any:
        """The keys and values have the shape [1, 1, T, 1]; without a mask a token sees those before it."""
        tokens = input_ids[0]
        if past_key_values is not None:
            tokens = torch.cat([past_key_values[0][0].flatten(), tokens])
        new, size = input_ids.shape[1], len(tokens)
        seen = torch.ones(size, size).tril()[-new:] if tree_attn_mask is None else tree_attn_mask
        rows = [self.table(tokens[mask.bool()][None]).logits[0, -1] for mask in seen]
        cache = [(tokens.view(1, 1, -1, 1),) * 2]
        return SimpleNamespace(last_hidden_state=torch.stack(rows)[None], past_key_values=cache)


def mcsd(code: Code) -> Callable[..., Any]:
    """A function that returns a text."""
    children = CHILDREN["replacement" in code.options]

    def generate(
        input_ids: torch.Tensor, target_model: Any, draft_model: Any, max_new_tokens: int, gamma: int
    ) -> torch.Tensor:
        engine = code.call(
            draft_model=_Model(draft_model),
            target_model=_Model(target_model),
            eos_token_id=-1,
            k_config=children[:gamma],
            max_new_tokens=max_new_tokens,
        )
        text: torch.Tensor = engine.generate(input_ids).sequences
        return text

    return generate


_MCSD = Subject(
    Library("mcsd", "MCSD", COMMIT, {"transformers.modeling_outputs": OUTPUTS}, "NJUNLP/MCSD"),
    Function("SpeculativeGenerator", ("MCSD.inference.generate",)),
    mcsd,
    {"513e412b9f24ef8539bd3c5a31aeae59da5868c6923a71e3266cd0035d51e9fc": COMMIT},
    GENERATE,
    mistake=("            cand_probs = cand_probs / cand_probs.sum()\n", ""),
)
SUBJECTS = {
    "mcsd": _MCSD,
    "mcsd-replacement": _MCSD._replace(
        mistake=(
            "            ground_probs /= ground_probs.sum()\n    return None\n\n\nclass",
            "    return None\n\n\nclass",
        ),
        options={"replacement": True},
    ),
    "mcsd-naive": _MCSD._replace(
        mistake=("    ground_probs[:] = 0\n    ground_probs[ground_token] = 1\n", ""),
        options={"speculative_sampling": False},
    ),
}
