"""Read prompts, bundled or from a file, and check them before weights are loaded."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from spectheory.foundation.documents import parse_json
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import nearest_name
from spectheory.models.loading import BUNDLED_FOLDER

Prompt = str | Sequence[int]
"""A text, or its token ids."""
SHOWN_CHARACTERS = 24
"""Number of characters of a prompt that an error quotes."""


def bundled_prompts() -> list[Prompt]:
    """Read the prompts of the bundled pair: pieces of text that neither model was trained on.

    Raises:
        InvalidInputError: the bundled pair is not installed.
    """
    return read_prompts(BUNDLED_FOLDER / "prompts.jsonl")


def read_prompts(path: str | Path) -> list[Prompt]:
    """Read prompts from a UTF-8 file.  Its first character that is not white space determines the format.

    - ``{``, ``[`` or a quotation mark: JSON, either one array of prompts or one prompt per line (JSON Lines).
      A prompt is a string, an object with a ``"text"``, or a list of token ids.
    - Anything else: text with one prompt per line; blank lines are skipped.

    Write a prompt with line breaks, or one that begins like JSON, as a JSON string.

    Raises:
        InvalidInputError: the file cannot be read, has no prompts, or a prompt is empty or malformed.
    """
    path = Path(path)
    try:
        content = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInputError(f"cannot read the prompts {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInputError(f"cannot read the prompts {path}: expected text in UTF-8") from None
    lines = [(f"{path} line {number}", line) for number, line in enumerate(content.split("\n"), start=1)]
    entries: list[tuple[str, Any]] = [
        (where, line.removesuffix("\r")) for where, line in lines if line.strip()
    ]
    if content.lstrip().startswith(("{", "[", '"')):
        entries = _json_entries(path, content, entries)
    prompts = [_prompt(where, entry) for where, entry in entries]
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


@contextmanager
def naming(number: int, prompt: Any) -> Iterator[None]:
    """Put the number and the beginning of a prompt in front of an InvalidInputError."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(f"{prompt_name(number, prompt)}: {error}") from None


def prompt_name(number: int, prompt: Any) -> str:
    """Name a prompt in a message by its number and beginning.

    Example:
        >>> prompt_name(3, "def main(argument):\\n    return argument")
        "prompt 3 ('def main(argument):\\\\n    '...)"
    """
    beginning = prompt[:SHOWN_CHARACTERS] if hasattr(prompt, "__getitem__") else prompt
    more = "..." if hasattr(prompt, "__len__") and len(prompt) > SHOWN_CHARACTERS else ""
    return f"prompt {number} ({beginning!a}{more})"


def check_text(prompt: Prompt) -> None:
    """Refuse a text with a NUL or half a surrogate pair.  The message gives the position."""
    for place, character in enumerate(prompt if isinstance(prompt, str) else ""):
        if character == "\0" or "\ud800" <= character <= "\udfff":
            kind = "NUL" if character == "\0" else f"half of a surrogate pair, U+{ord(character):04X}"
            raise InvalidInputError(f"character {place} is {kind}, which is not text; take it out")


def _json_entries(path: Path, content: str, lines: list[tuple[str, str]]) -> list[tuple[str, Any]]:
    """Parse the entries of a JSON array or of JSON Lines.  An array of integers is one prompt."""
    with suppress(ValueError, RecursionError):  # not one JSON value, so try JSON Lines
        whole = parse_json(content)
        if isinstance(whole, list) and not _are_token_ids(whole):
            return [(f"{path} entry {number}", entry) for number, entry in enumerate(whole, start=1)]
    try:
        return [(where, parse_json(line)) for where, line in lines]
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"{path} begins as JSON, and is neither JSON Lines nor one array ({error}); write a text that "
            "begins with {, [ or a quotation mark as a JSON string"
        ) from None


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
