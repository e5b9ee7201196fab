"""Prompt files, and the bundled pair with its prompts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from spectheory.errors import (
    InvalidInputError,
)
from spectheory.models import (
    LanguageModelPair,
    bundled_prompts,
    read_prompts,
)
from spectheory.montecarlo import simulate


def test_read_prompts(tmp_path: Path) -> None:
    lines = tmp_path / "prompts.jsonl"
    lines.write_text('{"source": "a", "text": "one\\n\\ntwo"}\n\n{"text": "three"}\n')
    assert read_prompts(lines) == ["one\n\ntwo", "three"]
    blocks = tmp_path / "prompts.txt"
    blocks.write_text("\n\ndef f():\n    return 1\n\n \n  indented\n")
    assert read_prompts(blocks) == ["def f():\n    return 1", "  indented"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing.txt", None, "cannot read"),
        ("empty.txt", b" \n\n", "no prompts"),
        ("empty.jsonl", b"", "no prompts"),
        ("bad.jsonl", b'{"text": "a"}\n{oops', "line 2 is not JSON"),
        ("bad.jsonl", b'{"source": "a"}', "line 1 has no prompt"),
        ("bad.jsonl", b'["text"]', "line 1 has no prompt"),
        ("bad.txt", b"\xff\xfe\xff", "UTF-8"),
    ],
)
def test_bad_prompt_files_are_refused(tmp_path: Path, name: str, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInputError, match=words):
        read_prompts(tmp_path / name)


def test_the_bundled_pair(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The shipped pair loads, shares its tokenizer and predicts its own prompts better than chance."""
    monkeypatch.setattr("spectheory.models.loading.BUNDLED_FOLDER", tmp_path)
    with pytest.raises(InvalidInputError, match="bundled target model is not installed"):
        LanguageModelPair.load("bundled", "bundled")
    monkeypatch.undo()
    pair = LanguageModelPair.load("bundled", "bundled", device="cpu")
    ids = torch.tensor([pair.encode(bundled_prompts()[0])])
    losses = {
        side: float(model(ids, labels=ids).loss)
        for side, model in (("draft", pair.draft_model), ("target", pair.target_model))
    }
    assert losses["target"] < losses["draft"] < np.log(pair.vocab_size) - 1


def test_the_bundled_pair_makes_verifiers_differ() -> None:
    """Draft length 8, temperature 1, held-out prompts: token earns between 2 and 5, block more."""
    pair = LanguageModelPair.load("bundled", "bundled", device="cpu")
    simulation = simulate(pair, bundled_prompts()[:16], ["token", "block"], samples=8, batch_size=16)
    token, block = simulation.estimates
    assert 2 < token.interval[0] < token.interval[1] < 5
    assert block.block_efficiency > token.block_efficiency
