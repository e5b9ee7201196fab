"""Answers of samplers as tokens: an answer that contradicts itself is judged, and not repaired."""

from collections.abc import Sequence
from operator import index
from typing import Any

from spectheory.auditing.tape.races import UndefinedDrawError


def counted(path: Sequence[int], count: Any, token: int) -> list[int]:
    """So many tokens of a drafted path, and the token after them.

    Raises:
        UndefinedDrawError: there are not so many, as a slice does not say.

    Example:
        >>> counted([2, 1], 1, 0)
        [2, 0]
    """
    if not 0 <= index(count) <= len(path):
        raise UndefinedDrawError(f"it says that {index(count)} of {len(path)} drafted tokens are accepted")
    return [*path[: index(count)], token]
