"""TriForce: a small model drafts for a middle one, whose tokens the target verifies."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch

from audits.loading.library_code import Code
from audits.loading.reached_code import Function
from audits.subject import Library, Subject
from spectheory.auditing.subjects.signatures import GENERATE
from spectheory.foundation.results import NOT_LOSSLESS

LIBRARY = Library(
    "triforce",
    "utils",
    "164c8c0131cf49951eefdea89a3fbcccb8ca326b",
    repository="Infini-AI-Lab/TriForce",
)
FUNCTION = Function(
    "TriForce",
    ("utils.decoding",),
    frozenset(
        {"tokenizer", "graph_engine", "input_ids", "gamma", "max_len", "top_k", "top_p", "temperature"}
    ),
)
STAND_INS = (
    "the small model: the rows of the draft, each moved to the next token",
    "the engine of the models",
)
FILLER = 100
"""The token at places that are not drafted yet."""


class _Cache(SimpleNamespace):
    seq_len = start_size = recent_size = 0

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


class _Engine:
    """Three models after one text, of which the target's cache has a part."""

    def __init__(self, target: Any, middle: Any) -> None:
        self.target, self.middle = target, middle
        self.text: list[int] = []
        model = SimpleNamespace(device=torch.device("cpu"))
        self.engine = SimpleNamespace(
            model=model, kv_cache=_Cache(), graph_cache=_Cache(), draft_cache=_Cache()
        )
        self.graph_draft_prefill = self.update_graph_cache = lambda **_: None

    def _logits(self, model: Any, ids: torch.Tensor) -> torch.Tensor:
        """The logits after each token that is not a filler, [T, V]; those of the last one for the others."""
        before = self.text[: self.engine.kv_cache.seq_len]
        tokens = ids.flatten().tolist()
        known = tokens[: (*tokens, FILLER).index(FILLER)]
        found: torch.Tensor = model(torch.tensor([before + known])).logits[0, len(before) :]
        return torch.cat([found, found[-1:].expand(len(tokens) - len(known), -1)])

    def inference(self, input_ids: torch.Tensor) -> torch.Tensor:
        found, cache = self._logits(self.target, input_ids), self.engine.kv_cache
        self.text[cache.seq_len :] = input_ids.flatten().tolist()
        cache.seq_len = len(self.text)
        return found[None]

    def graph_verify(self, input_ids: torch.Tensor, **_: Any) -> torch.Tensor:
        return self._logits(self.middle, input_ids).softmax(-1)

    def graph_draft_inference(self, input_ids: torch.Tensor, **_: Any) -> torch.Tensor:
        return self.graph_verify(input_ids)[-1].roll(1)


def triforce(code: Code) -> Callable[..., Any]:
    """A function that returns a text; the draft is the middle model."""
    shown: list[int] = []
    code.replace(["spec_stream"], lambda _: [lambda token, *_: shown.append(int(token))], "the text")

    def generate(
        input_ids: torch.Tensor, target_model: Any, draft_model: Any, max_new_tokens: int, gamma: int
    ) -> Sequence[int]:
        shown.clear()
        code.call(
            tokenizer=SimpleNamespace(eos_token_id=-1),
            graph_engine=_Engine(target_model, draft_model),
            input_ids=input_ids,
            gamma=gamma,
            max_len=max_new_tokens - 1,  # besides the first token
            top_k=-1,
            top_p=0.0,  # no cut
            temperature=1.0,
            verbose=True,
        )
        return shown

    return generate


SUBJECTS = {
    "triforce": Subject(
        LIBRARY,
        FUNCTION,
        triforce,
        {"981f924d5a61d45adb0f3b55dad8d414f129465053748a8974b0e54b857ca073": LIBRARY.tested},
        GENERATE,
        verdict=NOT_LOSSLESS,
        mend=(
            (
                "else:\n            pred_token_idx = sample(verify_prob[n])",
                "else:\n            pred_token_idx = sample(max_fn(verify_prob[n] - speculation_prob))",
            ),
        ),
        settings={"stand_ins": STAND_INS},
    )
}
