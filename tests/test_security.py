"""docs/security.md: what runs code and what never does; every statement has a partner with the danger."""

import json
import pickle
import re
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

import spectheory
from cli_support import run_error, run_json, write_pair
from models_support import save_pair
from spectheory.auditing.following import intercept
from spectheory.command_line.main import main

ROOT = Path(__file__).parent.parent
PACKAGE = Path(spectheory.__file__).parent
READS_CODE = re.compile(
    r"pickle\.load\b|Unpickler|joblib\.load|torch\.load|np\.load\b|allow_pickle|yaml\.(unsafe_)?load|marshal\."
    r"|shelve|trust_remote_code|\beval\(|\bexec\(|shell=True|os\.system\("
)


class Trap:
    """Pickled, it makes a file where it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_no_file_is_read_with_pickle_and_no_text_is_run() -> None:
    """By the source; words in backquotes are of people, and so are the events that an audit refuses."""
    for path in PACKAGE.rglob("*.py"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            code = re.sub(r"`[^`]*`|#.*|\.eval\(|its eval\(", "", line)
            assert not READS_CODE.search(code), f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
    for danger in ("pickle.load(file)", "torch.load(path)", "kind(trust_remote_code=True)", "exec(text)"):
        assert READS_CODE.search(danger)


def test_weights_beside_a_model_do_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, draft = save_pair(tmp_path, "llama")
    sprung = tmp_path / "sprung"
    weights = {"weight": torch.zeros(1), "trap": Trap(sprung)}
    (target / "model.safetensors").unlink()
    torch.save(weights, target / "pytorch_model.bin")
    capsys.readouterr()
    asked = [
        str(target),
        str(draft),
        "--prompt",
        "import os",
    ]
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
        main(
            [
                "restrict",
                str(target),
                str(draft),
                "--prompt",
                "import os",
                "--device",
                "cpu",
            ]
        )
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
        with intercept._ONE_AT_A_TIME:
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
    assert run_json(capsys, *asked)["verdict"] == "lossless up to arithmetic"


def test_the_action_and_its_examples_have_no_rights() -> None:
    for path in (ROOT / "action.yml", ROOT / "docs" / "auditing.md"):
        text = path.read_text(encoding="utf-8")
        assert "on: pull_request_target" not in text
        assert not re.search(r"secrets\.[A-Z]|contents: write", text)
    blocks = re.findall(
        r"```yaml\n(.*?)```", (ROOT / "docs" / "auditing.md").read_text(encoding="utf-8"), re.DOTALL
    )
    workflows = [block for block in blocks if "on: pull_request" in block]
    assert workflows
    assert all("contents: read" in block for block in workflows)
