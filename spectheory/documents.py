"""Results as JSON documents: rationals become texts such as ``"20/9"``, everything else is what it is."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any


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
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(entry) for entry in value]
    return value.item() if hasattr(value, "item") else value


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


def short(value: Any) -> str:
    """A number for people: a rational as it is, a float with six significant digits.

    A rational of more than 40 characters is cut, and its decimal stands beside it.

    Example:
        >>> short(Fraction(31, 120)), short(0.25), short(Fraction(1, 10**50 + 1))
        ('31/120', '0.25', '1/1000000000000000000...0000000000000001 = 1e-50')
    """
    if not isinstance(value, Fraction):
        return f"{float(value):.6g}"
    text = str(value)
    return text if len(text) <= 40 else f"{text[:21]}...{text[-16:]} = {float(value):.6g}"
