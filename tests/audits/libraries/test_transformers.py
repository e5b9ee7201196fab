"""transformers' own generation as a round: whole texts, with the library's caches inside."""

from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from audited import DRAFT, PATHS, TARGET, recorded
from audits.libraries import eagle, transformers, transformers_round
from audits.registry import load_subject
from later import Later
from spectheory import certify
from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.foundation.errors import InvalidInputError

library = Later("transformers")
library_outputs = Later("transformers.modeling_outputs")
library_utils = Later("transformers.generation.utils")


@pytest.mark.deep
@pytest.mark.parametrize("keeps_rejected", [False, True])
def test_texts_of_assisted_generation(keeps_rejected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have the law of the target; not where rejected tokens stay in the caches."""
    if keeps_rejected:
        monkeypatch.setattr(library.DynamicCache, "crop", lambda *_: None)
    sampler = load_subject("transformers-round")
    asked, pair = sampler.prepared(random_dyadic(1, 2, 2))
    found = certify(asked, pair, with_optimum=False)
    assert (found.total_variation < 1e-6) is not keeps_rejected
    contract = "drafts do not have the law of the rows that are reported for them"
    assert (("contract", contract) in sampler.journal.findings) is keeps_rejected


def test_only_the_installed_release_generates(tmp_path: Path) -> None:
    file = tmp_path / "transformers" / "generation" / "utils.py"
    file.parent.mkdir(parents=True)
    parameters = "candidate_input_ids, candidate_logits, candidate_length, new_logits, is_done_candidate"
    file.write_text(f"def _speculative_sampling({parameters}):\n    return None\n")
    with pytest.raises(InvalidInputError, match="is not that of the installed release"):
        load_subject("transformers-round", checkout=tmp_path)


def test_what_functions_are_given() -> None:
    """No candidate is done, and no stopping criterion holds."""
    given, code = recorded((PATHS, torch.tensor(2), "another"))
    assert transformers.assisted(code)(PATHS, DRAFT, 3, TARGET) == (PATHS, 2)
    assert given.pop("stop")(PATHS, None, last=True) is False
    drafted = {"candidate_input_ids": PATHS, "candidate_logits": DRAFT, "candidate_length": 3}
    assert_close(given, drafted | {"new_logits": TARGET, "is_done_candidate": torch.tensor([False])})
    given, code = recorded("posterior")
    assert eagle.evaluate_posterior(code)(TARGET, PATHS, recorded) == "posterior"
    assert given.pop("logits_processor") is recorded
    assert_close(given, {"logits": TARGET, "candidates": PATHS})


def row(text: Any) -> torch.Tensor:
    """It depends on every token of a text and its place."""
    weights = [1, 1 + sum(place * token for place, token in enumerate(text, 1)), 1 + len(text)]
    return torch.tensor(weights) / sum(weights)


def test_a_model_looks_up_its_logits_behind_its_cache() -> None:
    """The first token belongs to no text; without a cache a call sees its own tokens."""
    model = transformers_round._looked_up()(row, 3)
    (name,) = {"cache", "past_key_values"} & set(library_outputs.CausalLMOutputWithPast.__dataclass_fields__)
    cache = library.DynamicCache()
    rows = [row(text).log() for text in ([], [2], [2, 1], [2, 1, 1])]
    for ids, wanted in (([0, 2, 1], rows[:3]), ([1], rows[3:])):
        found = model(input_ids=torch.tensor([ids]), **{name: cache})
        assert_close(found.logits, torch.stack(wanted)[None])
        assert found[name] is cache
    assert cache.get_seq_length() == 4
    for without in ({}, {name: None}):
        assert_close(model(input_ids=torch.tensor([[0, 2]]), **without).logits, torch.stack(rows[:2])[None])
    assert (model.config.vocab_size, model.config.hidden_size, model.training) == (3, 1, False)
    assert (model.config.num_hidden_layers, model.config.num_attention_heads) == (1, 1)
    assert model.device.type == "cpu"


def test_what_generate_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text behind a first token, drafted two tokens at a time, however sure the assistant is."""
    given, code = recorded(torch.tensor([[0, 1, 0, 2, 1, 0]]))
    made: list[Any] = []

    def make(model: Any, size: int) -> Any:
        made.append(SimpleNamespace(row=model, size=size, generation_config=library.GenerationConfig()))
        made[-1].generate = lambda prompt, **values: code.call(prompt=prompt, **values)
        return made[-1]

    monkeypatch.setattr(transformers_round, "_looked_up", lambda: make)
    content = Path(library_utils.__file__).read_bytes()
    installed: Any = SimpleNamespace(sha256=sha256(content).hexdigest())
    drafts = lambda text: row(text).flip(0)  # noqa: E731
    found = transformers_round.assisted_generation(installed)([1, 0], row, drafts, 2, None)
    assert_close(found, ([2, 1], torch.stack([row([1, 0]), row([1, 0, 2])]), [2, 1, 0]))
    model, assistant = made
    assert (model.row, model.size, assistant.row, assistant.size) == (row, 3, drafts, 3)
    assert given.pop("assistant_model") is assistant
    prompt = torch.tensor([[0, 1, 0]])
    settings = {"do_sample": True, "top_k": 0, "max_new_tokens": 3, "pad_token_id": 3}
    assert_close(given, {"prompt": prompt, "attention_mask": torch.ones_like(prompt)} | settings)
    config = assistant.generation_config
    assert (config.num_assistant_tokens, config.num_assistant_tokens_schedule) == (2, "constant")
    assert config.assistant_confidence_threshold == 0
