"""Another model, prompt, verifier or setting is another run, whatever it is called."""

import importlib
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from decoding_support import tiny_pair
from deep import first_is_quick
from gguf_files import write_gguf
from models_support import save_model, save_pair, save_tokenizer
from montecarlo_support import PROMPTS, run
from spectheory import from_loop
from spectheory.foundation.errors import InvalidInputError
from spectheory.models import LanguageModelPair, Restriction, SamplingOptions
from spectheory.simulation import simulate
from spectheory.simulation.first_line import first_line
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.resolve import find_verifier
from spectheory.verification.user import as_verifier
from spectheory.verification.verifier import Verifier

OWN = """
from spectheory.verification.algorithms.one_path.token import Token

class Mine(Token):
    name = "mine"
    def __init__(self, strength=1.0):
        self.strength = strength
"""


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return save_pair(tmp_path / "pair", "llama")


def load(folders: tuple[Path, Path], **arguments: Any) -> LanguageModelPair:
    return LanguageModelPair.load(*folders, device="cpu", **arguments)


def line_of(pair: Any, verifiers: Sequence[Verifier] = ()) -> dict[str, Any]:
    return first_line(pair, [[1, 2]], verifiers, {"seed": 0})


def retrained(folder: Path) -> None:
    """Other weights under the same name, configuration and shapes."""
    save_model(folder, "llama", seed=9, layers=2)


def one_layer_more(folder: Path) -> None:
    save_model(folder, "llama", seed=1, layers=3)


@first_is_quick(
    ("change", "words"), [(retrained, "target weights"), (one_layer_more, "target configuration")]
)
def test_another_model_in_the_same_folder(
    folders: tuple[Path, Path], tmp_path: Path, change: Callable[[Path], None], words: str
) -> None:
    state = tmp_path / "state.jsonl"
    first = run(load(folders), state)
    change(folders[0])
    with pytest.raises(InvalidInputError, match=f"belongs to another run, different in .*{words}"):
        run(load(folders), state)
    assert run(load(folders)) != first  # the old estimates would have been wrong


@first_is_quick(
    ("changes", "words"),
    [
        ({"seed": 5}, r"seed \(4 there, 5 here\)"),
        ({"options": SamplingOptions(temperature=0.5)}, "temperature"),
        ({"samples": 4}, "samples_per_prompt"),
        ({"drafts": 3}, "num_drafts"),
        ({"draft_length": 2}, "draft_length"),
        ({"batch_size": 2}, "batch_size"),
        ({"confidence": 0.5}, "confidence"),
        ({"tolerance": 1e-6}, "tolerance"),
        ({"options": SamplingOptions(top_k=7)}, "top_k"),
        ({"restriction": Restriction([1, 2, 3])}, "restriction"),
        ({"max_prompt_tokens": 1}, "max_prompt_tokens"),
        ({"threads": 2}, r"threads \(None there, 2 here\)"),
    ],
    quick=4,
)
def test_other_settings(
    models: LanguageModelPair, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    state = tmp_path / "state.jsonl"
    run(models, state)
    with pytest.raises(InvalidInputError, match=f"belongs to another run, different in .*{words}"):
        run(models, state, **changes)


def test_other_prompts_of_equal_count(models: LanguageModelPair, tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    arguments: dict[str, Any] = {"samples": 2, "draft_length": 1, "checkpoint": state}
    simulate(models, PROMPTS, ["token"], **arguments)
    with pytest.raises(InvalidInputError, match="different in prompts;"):
        simulate(models, [*PROMPTS[:2], "for index in rango"], ["token"], **arguments)
    as_ids = [models.encode(prompt) for prompt in PROMPTS]
    simulate(models, as_ids, ["token"], **arguments)  # the same texts in another form are the same run


def test_other_verifiers(models: LanguageModelPair, tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    arguments: dict[str, Any] = {"samples": 2, "draft_length": 1, "checkpoint": state}
    simulate(models, PROMPTS, ["token", "block"], **arguments)
    for names in (["token", "spectr"], ["block", "token"], ["token"]):
        with pytest.raises(InvalidInputError, match=r"different in .*verifiers"):
            simulate(models, PROMPTS, names, **arguments)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """A user's module, written anew and imported under the same name."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def imported(code: str) -> Any:
        (tmp_path / "users_module.py").write_text(code)
        monkeypatch.delitem(sys.modules, "users_module", raising=False)
        return find_verifier("users_module:Mine")

    return imported


def test_an_edited_verifier_is_another_one(
    models: LanguageModelPair, tmp_path: Path, own: Callable[[str], Any]
) -> None:
    state = tmp_path / "state.jsonl"
    arguments: dict[str, Any] = {"samples": 2, "draft_length": 1, "checkpoint": state}
    before = line_of(models, [own(OWN)])
    simulate(models, PROMPTS, [own(OWN).user_object], **arguments)
    simulate(models, PROMPTS, [own(OWN).user_object], **arguments)  # the partner: not edited
    edited = own(OWN + "\n# edited\n")
    assert [key for key, entry in line_of(models, [edited]).items() if entry != before[key]] == ["code"]
    with pytest.raises(InvalidInputError, match="different in code mine sources;"):
        simulate(models, PROMPTS, [edited.user_object], **arguments)


def test_parameters_of_a_verifier_count(models: LanguageModelPair, own: Callable[[str], Any]) -> None:
    """Its attributes that are numbers or texts; what else it holds is not looked at."""
    kind = type(own(OWN).user_object)
    lines = [line_of(models, [as_verifier(kind(strength))]) for strength in (1.0, 0.5, 1.0, [1], [2])]
    assert lines[0] == lines[2] != lines[1]
    assert lines[3] == lines[4] != lines[0]


def test_functions_that_a_verifier_holds_count(
    models: LanguageModelPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a loop or a sampler; a verifier of the package has no source of a user."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    lines = []
    for text in ("", "", "# edited"):
        (tmp_path / "users_loop.py").write_text(f"def loop(*given):\n    return given {text}\n")
        monkeypatch.delitem(sys.modules, "users_loop", raising=False)
        loop = importlib.import_module("users_loop").loop
        lines.append(line_of(models, [as_verifier(from_loop(loop))]))
    assert lines[0] == lines[1] != lines[2]
    assert len(lines[0]["code"]["loop"]["sources"]) == 1
    assert line_of(models, [find_verifier("token")])["code"]["token"]["sources"] == []


@pytest.mark.parametrize("draft", ["target:1-layers", "target:last-4", "prompt:lookup-3", "GGUF"])
def test_a_pair_is_the_same_before_and_after_loading(folders: tuple[Path, Path], draft: str) -> None:
    """Of whatever its draft is made; the partner has the draft of the folder."""
    file = folders[0].parent / "GGUF" / "draft.gguf"
    file.parent.mkdir()
    write_gguf(file, load(folders).target_model, folders[0] / "tokenizer.json")
    unloaded = LanguageModelPair.load(
        folders[0], file if draft == "GGUF" else draft, device="cpu", weights_now=False
    )
    before = line_of(unloaded)
    assert len(unloaded.models) == 2
    assert line_of(unloaded) == before
    assert line_of(unloaded)["draft"] != line_of(load(folders))["draft"]


def test_a_model_in_memory_has_no_versions(tmp_path: Path) -> None:
    """It runs, but no checkpoint could tell it from another one."""
    pair = tiny_pair()
    simulate(pair, [[1, 2]], ["token"], samples=2, draft_length=1)
    with pytest.raises(InvalidInputError, match="the model 'llama' is in memory only"):
        simulate(pair, [[1, 2]], ["token"], samples=2, draft_length=1, checkpoint=tmp_path / "state.jsonl")


def test_a_verifier_without_a_source(models: LanguageModelPair, tmp_path: Path) -> None:
    """Typed into an interpreter: it runs, but no checkpoint could tell its next version apart."""
    space: dict[str, Any] = {"__name__": "typed_in", "Token": Token}
    exec("class Typed(Token):\n    name = 'typed'\n", space)
    typed = space["Typed"]()
    simulate(models, PROMPTS, [typed], samples=2, draft_length=1)
    with pytest.raises(InvalidInputError, match="'typed' has no source file"):
        simulate(models, PROMPTS, [typed], samples=2, draft_length=1, checkpoint=tmp_path / "state.jsonl")


def test_another_run_is_refused_before_weights_are_loaded(
    folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state.jsonl"
    run(load(folders), state)
    monkeypatch.setattr(LanguageModelPair, "models", property(lambda self: pytest.fail("weights are loaded")))
    unloaded = LanguageModelPair.load(*folders, device="cpu", weights_now=False)
    with pytest.raises(InvalidInputError, match="seed"):
        run(unloaded, state, seed=5)
    with pytest.raises(pytest.fail.Exception, match="weights are loaded"):  # the partner
        run(unloaded, state)


def test_another_tokenizer(folders: tuple[Path, Path], tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    arguments: dict[str, Any] = {"samples": 2, "draft_length": 1, "checkpoint": state}
    prompts = [[1, 2], [3]]
    simulate(load(folders), prompts, ["token"], **arguments)
    for folder in folders:
        save_tokenizer(folder, texts=["zzzz yyyy zzzz"], vocab_size=270)
    with pytest.raises(InvalidInputError, match="tokenizer"):
        simulate(load(folders), prompts, ["token"], **arguments)


def test_the_end_of_sequence_counts(folders: tuple[Path, Path]) -> None:
    """It lies in a file of its own beside the configuration."""
    before = line_of(load(folders))
    assert (
        before
        == line_of(load(folders))
        == line_of(LanguageModelPair.load(*folders, device="cpu", weights_now=False))
    )
    (folders[0] / "generation_config.json").write_text('{"eos_token_id": [3, 5]}', encoding="utf-8")
    after = line_of(load(folders))
    assert after["target"].pop("configuration") != before["target"].pop("configuration")
    assert after == before


def test_a_copy_of_the_folder_is_told_by_its_name(folders: tuple[Path, Path], tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    run(load(folders), state)
    copied = tmp_path / "copy"
    shutil.copytree(folders[1], copied)
    with pytest.raises(InvalidInputError, match="different in draft name;"):
        run(load((folders[0], copied)), state)
    run(load(folders), state)  # the partner


def test_other_number_types(folders: tuple[Path, Path], tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    run(load(folders), state)
    with pytest.raises(InvalidInputError, match="probabilities"):
        run(load(folders, probs_dtype=torch.float32), state)
    with pytest.raises(InvalidInputError, match=r"weights \(float32 there, float64 here\)"):
        run(load(folders, dtype="float64"), state)


def test_a_model_of_the_hub_is_told_by_its_revision() -> None:
    lines = []
    for revision in ("a", "a", "b"):
        pair = tiny_pair()
        for config in pair.configs:
            config._name_or_path, config._commit_hash = "somebody/model", revision
        lines.append(line_of(pair))
    assert lines[0] == lines[1] != lines[2]
