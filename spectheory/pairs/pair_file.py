"""Read and write pair files, JSON in the format ``spectheory-pair/1``, as mappings.

    {"format": "spectheory-pair/1", "vocab": ["A", "B"], "draft_length": 1,
     "target": {"": ["1/3", "2/3"], "0": ["1/2", "1/2"], "1": ["1", "0"]}, "draft": {"": ["2/3", "1/3"]}}

Keys are contexts: token ids separated by one space, ``""`` at the root.  With ``"context_free": true``
target and draft are one row each.  Strings such as ``"1/3"`` are exact, JSON numbers are float64.
``ModelPair`` checks the rows.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.documents import parse_json, read_file, replace_file
from spectheory.foundation.errors import InvalidInputError, InvalidPairError
from spectheory.pairs.contexts import Context, context_text, numbered_context
from spectheory.pairs.rows import to_float64

FORMAT = "spectheory-pair/1"
REQUIRED_FIELDS = ("format", "vocab", "draft_length", "target", "draft")
OPTIONAL_FIELDS = ("context_free",)


class PairFields(NamedTuple):
    """The fields of a pair file.  If the pair is context-free, target and draft are one row each."""

    target: Mapping[Context, Sequence[Any]] | Sequence[Any]
    draft: Mapping[Context, Sequence[Any]] | Sequence[Any]
    draft_length: int
    vocab: Sequence[str]
    context_free: bool = False


def read_document(path: str | Path) -> Any:
    """Read and parse the JSON of a pair file; ``-`` is stdin."""
    if str(path) == "-" and sys.stdin is None:
        raise InvalidPairError("stdin is closed; there is no pair to read")
    try:
        text = sys.stdin.read() if str(path) == "-" else read_file(Path(path)).decode()
        return parse_json(text)
    except InvalidInputError:  # the file is too long
        raise
    except OSError as error:
        raise InvalidPairError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidPairError(f"{path} is not text in UTF-8; expected a pair file in JSON") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidPairError(f"{path} is not JSON: {error}") from error
    except ValueError as error:
        raise InvalidPairError(f"{path}: {error}") from error


def write_document(path: str | Path, document: Mapping[str, Any]) -> None:
    replace_file(Path(path), json.dumps(document, indent=1) + "\n")


def parse_document(document: Any) -> PairFields:
    """Extract and check the fields of a pair file from its parsed JSON.

    Example:
        >>> parse_document({
        ...     "format": "spectheory-pair/1", "vocab": ["A", "B"], "draft_length": 1,
        ...     "target": {"": [0.5, 0.5], "0": [1, 0], "1": [0, 1]}, "draft": {"": [0.5, 0.5]},
        ... }).target
        {(): [0.5, 0.5], (0,): [1.0, 0.0], (1,): [0.0, 1.0]}
    """
    _check_names(document)
    vocab, context_free = document["vocab"], document.get("context_free", False)
    if not isinstance(vocab, list) or not all(isinstance(name, str) for name in vocab):
        raise InvalidPairError(f"vocab must be a list of strings, got {vocab!r}")
    if any("\ud800" <= character <= "\udfff" for name in vocab for character in name):
        raise InvalidPairError("a name in vocab has half of a surrogate pair, which is no character")
    if not isinstance(context_free, bool):
        raise InvalidPairError(f"context_free must be true or false, got {context_free!r}")
    read = _one_row if context_free else _rows_by_context
    target, draft = (read(side, document[side]) for side in ("target", "draft"))
    return PairFields(target, draft, document["draft_length"], vocab, context_free)


def written_row(row: Iterable[Any]) -> list[Any]:
    """Convert a row for JSON: Fractions become strings, and floats become numbers.

    Example:
        >>> written_row([Fraction(1, 3), 0.5])
        ['1/3', 0.5]
    """
    return [str(value) if isinstance(value, Fraction) else float(value) for value in row]


def written_rows(levels: Sequence[np.ndarray], context_free: bool) -> Any:
    """Convert the rows of a model, [V^i, V] per depth i, for JSON: by context, or one row if context-free."""
    if context_free:
        return written_row(levels[0][0])
    return {
        context_text(numbered_context(number, depth, level.shape[1])): written_row(row)
        for depth, level in enumerate(levels)
        for number, row in enumerate(level)
    }


def parse_context(key: str) -> Context:
    """Parse a key of a pair file into a context."""
    try:
        context = tuple(int(token) for token in key.split())
    except ValueError as error:
        raise InvalidPairError(f"context {key!r} is not a list of token ids separated by spaces") from error
    if context_text(context) != key:
        raise InvalidPairError(
            f"context {key!r} must be written {context_text(context)!r}: plain token ids with one space "
            "between them, so that no context has two spellings"
        )
    return context


def _check_names(document: Any) -> None:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else type(document).__name__
        raise InvalidPairError(f'not a pair file: expected "format": "{FORMAT}", got {found!r}')
    missing = set(REQUIRED_FIELDS) - document.keys()
    if missing:
        raise InvalidPairError(f"missing fields: {', '.join(sorted(missing))}")
    unknown = document.keys() - {*REQUIRED_FIELDS, *OPTIONAL_FIELDS}
    if unknown:
        raise InvalidPairError(
            f"unknown fields: {', '.join(sorted(unknown))}; a pair file has {', '.join(REQUIRED_FIELDS)}, "
            f"and may have {', '.join(OPTIONAL_FIELDS)}"
        )


def _one_row(side: str, row: Any) -> list[Any]:
    if not isinstance(row, list):
        raise InvalidPairError(f"a context-free {side} is one list of probabilities, got {row!r}")
    return _numbers_as_float(row)


def _rows_by_context(side: str, rows: Any) -> dict[Context, Any]:
    if not isinstance(rows, dict):
        raise InvalidPairError(
            f"{side} must map contexts to rows, got {type(rows).__name__}; "
            'one row each goes with "context_free": true'
        )
    return {
        parse_context(key): _numbers_as_float(row) if isinstance(row, list) else row
        for key, row in rows.items()
    }


def _numbers_as_float(row: list[Any]) -> list[Any]:
    """Convert JSON integers to float64, because JSON numbers are floats.  Strings stay (exact)."""
    return [to_float64(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in row]
