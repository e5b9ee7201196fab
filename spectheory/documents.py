"""Results as JSON documents and as texts for people.

In a document rationals become texts such as ``"20/9"`` and everything else is what it is.  In a text for
people a rational has its decimal beside it, and a long one is cut: the document has all of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

LONGEST_RATIONAL = 40
"""Characters of a rational beyond which a text for people cuts it."""
SHOWN_OF_LONGER = 20


def plain(value: Any) -> Any:
    """A result as JSON holds it: rationals as texts, numpy's numbers as Python's, dataclasses as objects.

    Example:
        >>> plain(Fraction(20, 9)), plain(0.5), plain(("block", None))
        ('20/9', 0.5, ['block', None])
    """
    if isinstance(value, Fraction):
        return str(value)
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(entry) for entry in value]
    return value.item() if hasattr(value, "item") else value


def json_sha256(value: Any, prefix: str = "") -> str:
    """The sha256 of a value as JSON with sorted keys, behind a prefix; other objects count by their text.

    Example:
        >>> json_sha256({"a": 1, "b": 2}) == json_sha256({"b": 2, "a": 1}) != json_sha256({"a": 1})
        True
    """
    return sha256((prefix + json.dumps(value, sort_keys=True, default=str)).encode()).hexdigest()


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file so that whoever reads it, or interrupts this, finds the old or the new content whole."""
    path, data = path.resolve(), content.encode("utf-8") if isinstance(content, str) else content
    if path.exists() and not path.is_file():  # a device or a pipe is written to, not replaced
        path.write_bytes(data)
        return
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def exact_text(value: Any) -> str | None:
    """A rational as text, and ``None`` for a float, which has no exact text.

    Example:
        >>> exact_text(Fraction(1, 3)), exact_text(0.5)
        ('1/3', None)
    """
    return str(value) if isinstance(value, Fraction) else None


def both(name: str, value: Any) -> dict[str, Any]:
    """The two fields of a number: ``name`` exact or null, ``name_float`` always.

    Example:
        >>> both("optimal", Fraction(1, 2))
        {'optimal': '1/2', 'optimal_float': 0.5}
    """
    return {name: exact_text(value), f"{name}_float": float(value)}


def decimal_text(value: Any) -> str:
    """Six decimals without trailing zeros, or six significant digits of small and large numbers.

    A number that only rounds to a whole one keeps its zeros: ``1.000000`` is not 1.

    Example:
        >>> decimal_text(Fraction(20, 9)), decimal_text(0.5), decimal_text(1 - 1e-9), decimal_text(1e-9)
        ('2.222222', '0.5', '1.000000', '1e-09')
    """
    number = float(value)
    if number != 0 and not 1e-3 <= abs(number) < 1e9:
        return f"{number:.6g}"
    text = f"{number + 0.0:.6f}"  # -0.0 + 0.0 is 0.0
    stripped = text.rstrip("0").rstrip(".")
    return stripped if "." in stripped or value == int(stripped) else text


def number_text(value: Any, *, decimal: bool = True) -> str:
    """A number for people: a rational with its decimal, a float as a decimal, ``-`` for none.

    Args:
        value: a Fraction, a float or ``None``.
        decimal: whether a short rational gets its decimal; a whole number never needs one.

    Example:
        >>> number_text(Fraction(20, 9)), number_text(Fraction(2)), number_text(0.5), number_text(None)
        ('20/9 = 2.222222', '2', '0.5', '-')
        >>> number_text(Fraction(31, 120), decimal=False)
        '31/120'
        >>> number_text(Fraction(10**30 + 1, 3 * 10**30))
        '10000000000000000000... = 0.333333'
    """
    if value is None:
        return "-"
    if not isinstance(value, Fraction):
        return decimal_text(value)
    text = str(value)
    if len(text) > LONGEST_RATIONAL:
        return f"{text[:SHOWN_OF_LONGER]}... = {decimal_text(value)}"
    return f"{text} = {decimal_text(value)}" if decimal and value.denominator != 1 else text
