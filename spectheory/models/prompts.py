"""Prompts: the bundled ones, or a user's file."""

from __future__ import annotations

import json
import re
from pathlib import Path

from spectheory.errors import InvalidInputError
from spectheory.models.loading import BUNDLED_FOLDER


def bundled_prompts() -> list[str]:
    """The prompts shipped with the bundled pair: pieces of text neither model was trained on.

    Raises:
        InvalidInputError: the bundled pair is not installed.
    """
    return read_prompts(BUNDLED_FOLDER / "prompts.jsonl")


def read_prompts(path: str | Path) -> list[str]:
    """Prompts of a file: ``.jsonl`` with a ``"text"`` per line, otherwise text in blocks.

    In a text file every block of lines is one prompt; blank lines separate prompts.

    Raises:
        InvalidInputError: the file cannot be read, has no prompts, or a line is not as expected.
    """
    path = Path(path)
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"cannot read the prompts {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInputError(f"cannot read the prompts {path}: expected text in UTF-8") from None
    if path.suffix == ".jsonl":
        numbered = enumerate(content.split("\n"), start=1)
        prompts = [_prompt_of_line(path, number, line) for number, line in numbered if line.strip()]
    else:
        blocks = re.split(r"\n(?:[ \t]*\n)+", content.replace("\r\n", "\n"))
        prompts = [block.strip("\n") for block in blocks if block.strip()]
    if not prompts:
        raise InvalidInputError(
            f"{path} has no prompts; expected one per line in a .jsonl file, "
            "or blocks of text separated by blank lines"
        )
    return prompts


def _prompt_of_line(path: Path, number: int, line: str) -> str:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise InvalidInputError(f"{path} line {number} is not JSON: {error.msg}") from None
    text = record.get("text") if isinstance(record, dict) else None
    if not isinstance(text, str) or not text:
        raise InvalidInputError(
            f'{path} line {number} has no prompt; expected an object such as {{"text": "def main"}}'
        )
    return text
