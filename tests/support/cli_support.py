"""A pair file, a user's verifier, and commands run in this process with all they print."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import spectheory
from spectheory.command_line.main import main

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
TWO_TOKEN = {
    "format": "spectheory-pair/1",
    "vocab": ["A", "B"],
    "draft_length": 2,
    "context_free": True,
    "target": ["1/3", "2/3"],
    "draft": ["2/3", "1/3"],
}
OWN_VERIFIER = '''
from spectheory.foundation.arrays import divide_or_zero, namespace, normalise
from spectheory.foundation.arrays import positive_part, take_row, take_token
from spectheory.verification.outcome import Outcome


class FirstToken:
    """Verifies the first drafted token and ignores the others."""

    name = "first_token"

    def residual(self, target, draft):
        return normalise(positive_part(target - draft))

    def outcome(self, paths, target_rows, draft_rows):
        target, draft, token = target_rows[..., 0, 0, :], draft_rows[..., 0, 0, :], paths[..., 0, 0]
        reject = positive_part(1 - divide_or_zero(take_token(target, token), take_token(draft, token)))
        stop_probs = 0 * target_rows[..., 0]
        stop_probs[..., 0, 0], stop_probs[..., 0, 1] = reject, 1 - reject
        rows = namespace(target).stack([self.residual(target, draft), target_rows[..., 0, 1, :]], axis=-2)
        return Outcome(stop_probs, lambda path_index, length: take_row(rows, length))


class ForgotTheResidual(FirstToken):
    """After a rejection it draws from the target, as if nothing had been rejected."""

    name = "forgot_the_residual"

    def residual(self, target, draft):
        return target
'''


def write_pair(folder: Path, **changes: Any) -> str:
    path = folder / "pair.json"
    path.write_text(json.dumps(TWO_TOKEN | changes), encoding="utf-8")
    return str(path)


def run_json(
    capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0, whole: bool = False
) -> dict[str, Any]:
    """The one JSON object a command prints; stderr must be empty and the exit code as expected.

    Without its format and the version, unless ``whole``.
    """
    assert main([*arguments, "--json"]) == code
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.count("\n") == 1
    document = json.loads(captured.out)
    assert isinstance(document, dict)
    check_schema(document)
    if not whole and document["format"] != TWO_TOKEN["format"]:
        assert document.pop("format").startswith("spectheory-")
        assert document.pop("spectheory") == spectheory.__version__
    return document


def check_schema(document: dict[str, Any]) -> None:
    """Refuse a document that the stored schema of its format does not describe (docs/schemas)."""
    name = document["format"].removeprefix("spectheory-").removesuffix("/1")
    if document["format"] != TWO_TOKEN["format"]:
        jsonschema.validate(document, json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8")))


def run_error(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    """The one line on stderr of a command that fails; stdout must be empty."""
    assert main(list(arguments)) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err


def one_call(tiny_models: list[str], *more: str) -> list[str]:
    """A command that looks at one call after each prompt, two draws of paths of two tokens."""
    few = ("-l", "2", "--samples", "2")
    return ["simulate", *tiny_models, "-n", "0", "--jobs", "1", *few, *more]
