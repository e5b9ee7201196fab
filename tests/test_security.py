"""docs/security.md: what runs code and what never does; every statement has a partner with the danger.

That the package reads no pickle and runs no text is checked by the linter.
"""

import json
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

import spectheory
from cli_support import run_error, run_json, write_pair
from models_support import save_pair
from spectheory.auditing.following import replacements
from spectheory.command_line.main import main

ROOT = Path(__file__).parent.parent
PACKAGE = Path(spectheory.__file__).parent


class Trap:
    """Pickled, it makes a file where it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_weights_beside_a_model_do_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, draft = save_pair(tmp_path, "llama")
    sprung = tmp_path / "sprung"
    weights = {"weight": torch.zeros(1), "trap": Trap(sprung)}
    (target / "model.safetensors").unlink()
    torch.save(weights, target / "pytorch_model.bin")
    capsys.readouterr()
    asked = [str(target), str(draft), "--prompt", "import os"]
    assert "could not be loaded" in run_error(capsys, "restrict", *asked)
    assert not sprung.exists()
    torch.load(target / "pytorch_model.bin", weights_only=False)
    assert sprung.exists()


def test_code_beside_a_model_does_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, draft = save_pair(tmp_path, "llama")
    sprung = tmp_path / "sprung"
    (target / "modeling_trap.py").write_text(f"open({str(sprung)!r}, 'w')\n", encoding="utf-8")
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    auto = {"AutoConfig": "modeling_trap.Trap", "AutoModelForCausalLM": "modeling_trap.Trap"}
    for kind in (config["model_type"], "unknown_to_transformers"):
        changed = json.dumps(config | {"auto_map": auto, "model_type": kind})
        (target / "config.json").write_text(changed, encoding="utf-8")
        capsys.readouterr()
        asked = [str(target), str(draft), "--prompt", "import os"]
        main(["restrict", *asked])
        assert not sprung.exists()
    exec((target / "modeling_trap.py").read_text(encoding="utf-8"))
    assert sprung.exists()


@pytest.mark.parametrize(
    "command", ["certify FILE --verifier block", "prove --check FILE", "optimum FILE",
                "audit transformers --pair FILE"],
)  # fmt: skip
def test_a_pickle_in_place_of_a_file_is_refused(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, sprung = tmp_path / "FILE", tmp_path / "sprung"
    file.write_bytes(pickle.dumps(Trap(sprung)))
    words = [str(tmp_path / word) if word.isupper() else word for word in command.split()]
    run_error(capsys, *words)
    assert not sprung.exists()
    pickle.loads(file.read_bytes())
    assert sprung.exists()


def test_a_second_audit_in_the_process_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["audit", "transformers", "--pair", write_pair(tmp_path, draft_length=1)]
    held, goes_on = threading.Event(), threading.Event()

    def holds() -> None:
        with replacements._ONE_AT_A_TIME:
            held.set()
            goes_on.wait(60)

    other = threading.Thread(target=holds)
    other.start()
    assert held.wait(60)
    try:
        assert "another thread of this process audits a sampler" in run_error(capsys, *asked)
    finally:
        goes_on.set()
        other.join()
    assert run_json(capsys, *asked)["verdict"] == "lossless"
