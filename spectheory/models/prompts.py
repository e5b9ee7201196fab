"""Prompts: the bundled ones, a user's file, and their token ids, checked before weights are loaded."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from spectheory.foundation.documents import parse_json
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import nearest_name
from spectheory.models.loading import BUNDLED_FOLDER

Prompt = str | Sequence[int]
"""A text, or the token ids of one."""
SHOWN_CHARACTERS = 24
"""How much of a prompt an error quotes."""


def bundled_prompts() -> list[Prompt]:
    """The prompts shipped with the bundled pair: pieces of text neither model was trained on.

    Raises:
        InvalidInputError: the bundled pair is not installed.
    """
    return read_prompts(BUNDLED_FOLDER / "prompts.jsonl")


def read_prompts(path: str | Path) -> list[Prompt]:
    """Prompts of a file in UTF-8; its first character other than a space decides how it is read.

    - ``{``, ``[`` or a quotation mark: JSON, either one array of prompts or one prompt per line (JSON Lines).
      A prompt is a string, an object with a ``"text"``, or a list of token ids.
    - Anything else: text with one prompt per line; lines of spaces alone are left out.

    A text with line breaks in it, or one that begins like JSON, is written as a JSON string.

    Raises:
        InvalidInputError: the file cannot be read, has no prompts, or a prompt is not as expected.
    """
    prompts = [_prompt(where, entry) for where, entry in read_entries(path)]
    if not prompts:
        raise InvalidInputError(
            f"{path} has no prompts; expected one per line, or JSON Lines, or a JSON array"
        )
    for number, prompt in enumerate(prompts, start=1):
        with naming(number, prompt):
            if not prompt:
                raise InvalidInputError("it is empty; give at least one character to continue from")
            check_text(prompt)
    return prompts


def read_entries(path: str | Path) -> list[tuple[str, Any]]:
    """The lines or JSON values of a file of prompts, and where each stands; as yet they may be anything.

    Raises:
        InvalidInputError: the file cannot be read, or begins as JSON and is none.
    """
    path = Path(path)
    try:
        content = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInputError(f"cannot read the prompts {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInputError(f"cannot read the prompts {path}: expected text in UTF-8") from None
    start = content.lstrip()[:1]
    if start and start in '{["':
        return _json_entries(path, content)
    lines = enumerate(content.split("\n"), start=1)
    return [(f"{path} line {number}", line.removesuffix("\r")) for number, line in lines if line.strip()]


@contextmanager
def naming(number: int, prompt: Any) -> Iterator[None]:
    """An error about a prompt gets its name in front."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(f"{prompt_name(number, prompt)}: {error}") from None


def prompt_name(number: int, prompt: Any) -> str:
    """A prompt in a message: its number and how it begins.

    Example:
        >>> prompt_name(3, "def main(argument):\\n    return argument")
        "prompt 3 ('def main(argument):\\\\n    '...)"
    """
    beginning = prompt[:SHOWN_CHARACTERS] if hasattr(prompt, "__getitem__") else prompt
    more = "..." if hasattr(prompt, "__len__") and len(prompt) > SHOWN_CHARACTERS else ""
    return f"prompt {number} ({beginning!a}{more})"


def check_text(prompt: Prompt) -> None:
    """Refuse a text with a NUL or half of a surrogate pair in it; the error says where."""
    for place, character in enumerate(prompt if isinstance(prompt, str) else ""):
        if character == "\0" or "\ud800" <= character <= "\udfff":
            kind = "NUL" if character == "\0" else f"half of a surrogate pair, U+{ord(character):04X}"
            raise InvalidInputError(f"character {place} is {kind}, which is not text; take it out")


def _json_entries(path: Path, content: str) -> list[tuple[str, Any]]:
    """Those of a JSON array, or of JSON Lines; an array of numbers is one prompt's token ids."""
    try:
        whole = parse_json(content)
    except RecursionError:
        raise InvalidInputError(f"{path} is nested too deeply to be a list of prompts") from None
    except JSONDecodeError:
        whole = None
    except ValueError as error:
        raise InvalidInputError(f"{path}: {error}") from None
    if isinstance(whole, list) and not _are_token_ids(whole):
        return [(f"{path} entry {number}", entry) for number, entry in enumerate(whole, start=1)]
    entries = []
    for number, line in enumerate(content.split("\n"), start=1):
        if line.strip():
            try:
                entry = parse_json(line)
            except (JSONDecodeError, RecursionError) as error:
                raise InvalidInputError(
                    f"{path} begins as JSON, but line {number} is not JSON ({error}); expected JSON Lines or "
                    "one array, and a text that begins with {, [ or a quotation mark written as a JSON string"
                ) from None
            except ValueError as error:
                raise InvalidInputError(f"{path} line {number}: {error}") from None
            entries.append((f"{path} line {number}", entry))
    return entries


def _prompt(where: str, entry: Any) -> Prompt:
    text: Any = entry.get("text") if isinstance(entry, dict) else entry
    if isinstance(text, str) or _are_token_ids(text):
        return text
    keys = entry if isinstance(entry, dict) else ()
    hint = next((f" Of {key!r}:{near}" for key in keys if (near := nearest_name(key, ["text"]))), "")
    raise InvalidInputError(
        f'{where} has no prompt; expected a string, an object such as {{"text": "def main"}}, or token '
        f"ids.{hint}"
    )


def _are_token_ids(entry: Any) -> bool:
    return isinstance(entry, list) and bool(entry) and all(type(value) is int for value in entry)
