"""Write values into JSON documents and into text for people.

In a document a rational is a string such as ``"20/9"``, with all its digits.  In text for people its decimal
follows it, and a long rational is cut.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from hashlib import sha256
from math import isinf
from pathlib import Path
from typing import Any

from flint import fmpq

from spectheory.foundation.errors import InvalidInputError

LONGEST_RATIONAL = 40
"""The most characters of a rational that text for people shows uncut."""
SHOWN_OF_LONGER = 20
MAX_BYTES = 500_000_000
"""The longest file, in bytes, that is read as a pair or a result."""


def to_json(value: Any) -> Any:
    """Convert a value for JSON: rationals to strings, numpy numbers to numbers, dataclasses to objects."""
    if isinstance(value, Fraction):
        return exact_text(value)
    if is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_json(entry) for key, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_json(entry) for entry in value]
    return value.item() if hasattr(value, "item") else value


def read_file(path: Path) -> bytes:
    """Read the bytes of a file that should hold a pair or a result.

    Raises:
        InvalidInputError: it has more than ``MAX_BYTES`` bytes, such as an endless device.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        found = file.read(MAX_BYTES + 1)
    if len(found) > MAX_BYTES:
        raise InvalidInputError(f"{path} has more than {MAX_BYTES} bytes; name a pair or a result")
    return found


def parse_json(text: str | bytes) -> Any:
    """Parse JSON that others wrote, and refuse repeated keys and numbers outside the range of float64.

    Raises:
        ValueError: it is not JSON, an object has a key twice, or a number is outside the range of float64.

    Example:
        >>> parse_json('{"a": 1e-400}')
        Traceback (most recent call last):
        ...
        ValueError: 1e-400 is beyond float64; write it as a text such as '1/3'
    """
    return json.loads(text, object_pairs_hook=_without_repeats, parse_float=_held)


def _without_repeats(items: list[tuple[str, Any]]) -> dict[str, Any]:
    # Plain JSON would keep the last of two equal keys.
    found = dict(items)
    if len(found) < len(items):
        keys = [key for key, _ in items]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {repeated!r} stands twice in one object; keep one of them")
    return found


def _held(text: str) -> float:
    number = float(text)
    if isinf(number) or (number == 0 and set(text.lower().partition("e")[0]) & set("123456789")):
        raise ValueError(f"{text} is beyond float64; write it as a text such as '1/3'")
    return number


def json_sha256(value: Any) -> str:
    """Compute the sha256 of a value as JSON with sorted keys.  Objects unknown to JSON enter as ``str``.

    Example:
        >>> json_sha256({"a": 1, "b": 2}) == json_sha256({"b": 2, "a": 1}) != json_sha256({"a": 1})
        True
    """
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file atomically: a reader finds the old or the new content, even after an interruption."""
    path, data = path.resolve(), content.encode("utf-8") if isinstance(content, str) else content
    if path.exists() and not path.is_file():  # a device or a pipe is written to, not replaced
        path.write_bytes(data)
        return
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    except OSError as error:  # the errors of a full disk and of a file that is too large have no file name
        error.filename = str(path)
        raise
    finally:
        unfinished.unlink(missing_ok=True)


def exact_text(value: Any) -> str | None:
    """Write a rational as text.  For a float return ``None``, because it has no exact text."""
    # Python's str of an integer has at most 4300 digits.
    return str(fmpq(value.numerator, value.denominator)) if isinstance(value, Fraction) else None


def both(name: str, value: Any) -> dict[str, Any]:
    """Write a number as fields ``name`` (null unless exact) and ``name_float``; both are null for None.

    Example:
        >>> both("optimal", Fraction(1, 2))
        {'optimal': '1/2', 'optimal_float': 0.5}
    """
    return {name: exact_text(value), f"{name}_float": None if value is None else float(value)}


def decimal_text(value: Any) -> str:
    """Write a number with six decimals, without trailing zeros.

    Small and large numbers get six significant digits.  A number that rounds to an integer but differs from
    it keeps its zeros: ``1.000000`` is not 1.
    """
    number = float(value)
    if number != 0 and not 1e-3 <= abs(number) < 1e9:
        return f"{number:.6g}"
    text = f"{number + 0.0:.6f}"  # -0.0 + 0.0 is 0.0
    stripped = text.rstrip("0").rstrip(".")
    return stripped if "." in stripped or value == int(stripped) else text


def number_text(value: Any, *, decimal: bool = True) -> str:
    """Write a number for people: a rational with its decimal, a float as a decimal, ``-`` for None.

    Args:
        value: a Fraction, a float or ``None``.
        decimal: True to add the decimal to a short rational that is not an integer.
    """
    if value is None:
        return "-"
    text = exact_text(value)
    if text is None:
        return decimal_text(value)
    if len(text) > LONGEST_RATIONAL:
        return f"{text[:SHOWN_OF_LONGER]}... = {decimal_text(value)}"
    return f"{text} = {decimal_text(value)}" if decimal and value.denominator != 1 else text


def value_text(value: Any, *, decimal: bool = True) -> str:
    """Write any value for people: booleans as yes or NO, lists line by line, mappings as name and number."""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, Mapping):
        return ", ".join(f"{name!r} {value_text(entry, decimal=False)}" for name, entry in value.items())
    if isinstance(value, (tuple, list)):
        return "\n".join(map(str, value))
    if isinstance(value, int):
        return str(value)
    return value if isinstance(value, str) else number_text(value, decimal=decimal)


def count_text(number: int, noun: str) -> str:
    """Write a number with its noun, in the singular or plural.

    Example:
        >>> count_text(1, "draft"), count_text(2, "draft")
        ('1 draft', '2 drafts')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"
