"""LayerSkip: the first layers of a model draft for all of them."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch

from audits.loading.library_code import Code
from audits.loading.reached_code import Function
from audits.subject import Library, Subject
from spectheory.auditing.subjects.signatures import GENERATE

LIBRARY = Library(
    "layerskip",
    "self_speculation",
    "f42c66965545747d42e27d4beab86b5c17956566",
    repository="facebookresearch/LayerSkip",
)
FUNCTION = Function("SelfSpeculativeGenerationStrategy", ("self_speculation.self_speculation_generator",))
PASSES = (
    "the passes through the first layers, and through all: rows of tables, with a cache of tokens for each"
)
EARLY, ALL = 0, 1


def _pass(models: Any, layers: int, ids: torch.Tensor, caches: Any) -> tuple[torch.Tensor, list[Any]]:
    """The logits after every token, and the caches (keys, values) of both, [1, 1, T, 1]."""
    caches = list(caches or [(torch.zeros(1, 1, 0, 1),) * 2] * 2)
    before = caches[layers][0].flatten().long()
    text = torch.cat([before, ids[0].long()])
    caches[layers] = (text.view(1, 1, -1, 1),) * 2
    return models.of_layers[layers](text[None]).logits[:, len(before) :], caches


def _early(models: Any, ids: torch.Tensor, caches: Any, _: int, queries: Any) -> Any:
    logits, caches = _pass(models, EARLY, ids, caches)
    queries = ids if queries is None else torch.cat([queries, ids], dim=1)
    return SimpleNamespace(logits=logits, past_key_values=caches, exit_query_cache=queries)


def _remainder(models: Any, ids: torch.Tensor, caches: Any, _: int, queries: Any) -> Any:
    """The last token goes through the first layers; all others did, and left their queries."""
    last = ids[:, -1:]
    _logits, caches = _pass(models, EARLY, last, caches)
    new = last if queries is None else torch.cat([queries.to(last), last], dim=1)
    logits, caches = _pass(models, ALL, new, caches)
    return SimpleNamespace(logits=logits, past_key_values=caches)


def layerskip(code: Code) -> Callable[..., Any]:
    """A function that returns a text."""
    code.replace(["forward_early", "forward_remainder"], lambda *_: (_early, _remainder), PASSES)

    def generate(
        input_ids: torch.Tensor, target_model: Any, draft_model: Any, max_new_tokens: int, gamma: int
    ) -> Sequence[int]:
        found = code.call().generate_token_ids(
            SimpleNamespace(device="cpu", of_layers=(draft_model, target_model)),
            input_ids[0].tolist(),
            [],
            SimpleNamespace(
                max_steps=max_new_tokens,
                num_speculations=gamma,
                exit_layer=1,
                sample=True,
                temperature=1.0,
                top_k=0,
                top_p=1.0,
            ),
        )
        tokens: Sequence[int] = found.predicted_tokens
        return tokens

    return generate


SUBJECTS = {
    "layerskip": Subject(
        LIBRARY,
        FUNCTION,
        layerskip,
        {"76683547ff739c2ab5bce5cacb2a68aaa21ae6f5b1501f400859720aaaa346bd": LIBRARY.tested},
        GENERATE,
        mistake=("(verified_probabilities[i, :] - draft_probabilities[i])", "verified_probabilities[[i], :]"),
    )
}
