"""Prompt files, and the bundled pair with its prompts."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spectheory.foundation.errors import InvalidInputError
from spectheory.models import LanguageModelPair, bundled_prompts, read_prompts
from spectheory.models.language_model import encode_prompts
from spectheory.models.loading import ModelSource
from spectheory.models.prompts import prompt_name
from spectheory.simulation import simulate


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"source": "a", "text": "one\\n\\ntwo"}\n\n{"text": "three"}\n', ["one\n\ntwo", "three"]),
        ('\n["one", {"text": "two"}, [3, 4]]', ["one", "two", [3, 4]]),
        ('[\n  "one",\n  "two"\n]', ["one", "two"]),
        ('"one\\ntwo"\n[3, 4]\n', ["one\ntwo", [3, 4]]),
        ("[3, 4]", [[3, 4]]),
        ('"{braces}"', ["{braces}"]),
        ("\n\ndef f():\n    return 1\n\n \n  indented\r\n", ["def f():", "    return 1", "  indented"]),
        ("\ufeffone\u2028still one\x0cand here", ["one\u2028still one\x0cand here"]),
    ],
)
@pytest.mark.parametrize("name", ["prompts.txt", "prompts.jsonl", "prompts"])
def test_read_prompts(tmp_path: Path, name: str, content: str, expected: list[object]) -> None:
    (tmp_path / name).write_bytes(content.encode())
    assert read_prompts(tmp_path / name) == expected


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot read the prompts .*: No such file"),
        (b"", "no prompts"),
        (b" \n\n", "no prompts"),
        (b"[]", "no prompts"),
        (b'{"text": "a"}\n{oops', "is neither JSON Lines nor one array"),
        (b"[import this", "is neither JSON Lines nor one array"),
        (b'{"text": "a"}\n{"text": "a", "text": "b"}', "the key 'text' stands twice"),
        (b'[{"text": "a", "text": "b"}]', "the key 'text' stands twice"),
        (b'{"source": "a"}', r"line 1 has no prompt.*token ids\.$"),
        (b'{"texts": "a"}', r"line 1 has no prompt.*\. Of 'texts': did you mean 'text'\?"),
        (b'["a", 1.5]', "entry 2 has no prompt"),
        (b'["a", [1, true]]', "entry 2 has no prompt"),
        (b'["a", ""]', r"prompt 2 \(''\): it is empty"),
        (b"\xff\xfe\xff", "expected text in UTF-8"),
        (b"good\nnot \x00 good", r"prompt 2 \('not \\x00 good'\): character 4 is NUL"),
        (rb'["good", "half \ud800"]', r"prompt 2 .*: character 5 is half of a surrogate pair, U\+D800"),
        (b"[" * 10**5, "is neither JSON Lines nor one array"),
    ],
)
def test_bad_prompt_files_are_refused(tmp_path: Path, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / "prompts").write_bytes(content)
    with pytest.raises(InvalidInputError, match=words) as caught:
        read_prompts(tmp_path / "prompts")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("", None),  # the beginning-of-text token
        ([], "a prompt is empty"),
        ([1, 280], "token id 280; expected ids in 0..279"),
        ([-1], "token id must be a whole number of at least 0, got -1"),
        ([1.5], "token id must be a whole number"),
        ([True], "token id must be a whole number"),
        ("x" * 5_000, "exceed the models' 64 positions"),
        ("half \udc80", "half of a surrogate pair"),
        ("nul \0", "is NUL"),
    ],
)
def test_bad_prompts_are_named_before_weights_are_loaded(
    folders: dict[str, tuple[Path, Path]],
    monkeypatch: pytest.MonkeyPatch,
    prompt: Any,
    words: str | None,
) -> None:
    monkeypatch.setattr(ModelSource, "model", lambda *_: pytest.fail("weights are loaded"))
    unloaded = LanguageModelPair.load(*folders["llama"], device="cpu", weights_now=False)
    prompts = ["import", prompt]
    if words is None:
        with pytest.raises(pytest.fail.Exception, match="weights are loaded"):
            simulate(unloaded, prompts, ["token"], samples=2)
        return
    with pytest.raises(InvalidInputError, match=rf"^prompt 2 \(.*\): .*{words}"):
        simulate(unloaded, prompts, ["token"], samples=2)


def test_long_prompts_can_be_cut(pair: LanguageModelPair) -> None:
    ids = pair.encode("import argparse" * 40)
    assert len(ids) > 64
    encoded = encode_prompts(pair, ["import argparse" * 40, "x"], 4, 60)
    assert encoded == [ids[-60:], pair.encode("x")]
    with pytest.raises(InvalidInputError, match=r"prompt 1 .* with max_prompt_tokens"):
        encode_prompts(pair, ["import argparse" * 40], 4, 61)
    with pytest.raises(InvalidInputError, match="expected a list"):
        encode_prompts(pair, "text", 4)
    with pytest.raises(InvalidInputError, match="max_prompt_tokens must be a whole number of at least 1"):
        encode_prompts(pair, ["x"], 4, 0)


def test_the_bundled_pair(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("spectheory.models.loading.BUNDLED_FOLDER", tmp_path)
    with pytest.raises(InvalidInputError, match="the target 'bundled' does not exist"):
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


@pytest.mark.parametrize(("prompt", "shown"), [(5, "5"), ("é" * 99, r"'(\\xe9)+'\.\.\.")])
def test_what_is_not_a_prompt_is_named_too(prompt: Any, shown: str) -> None:
    assert re.fullmatch(rf"prompt 2 \({shown}\)", prompt_name(2, prompt))
