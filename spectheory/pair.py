"""ModelPair: a target and a draft model, enumerated on every context of the V-ary tree.

Notation (theory.md §1): p is the target, q the draft, V the vocabulary size, L the draft
length.  The target has a row at every context of depth 0..L, the draft at depth 0..L-1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.contexts import Context, numbered_context
from spectheory.errors import EnumerationTooLargeError, InvalidPairError

FORMAT = "spectheory-pair/1"
MAX_DIGITS = 4_000
"""The longest string read as a rational."""
MAX_ENTRIES = 50_000_000
"""The largest number of probabilities a pair may hold; a tree of depth L grows as V^(L+1)."""
Row = Sequence[Any]


@dataclass(frozen=True, eq=False)
class ModelPair:
    """Target and draft conditionals on all contexts of a small vocabulary.

    All entries are exact (``fractions.Fraction``) or all are float64; nothing mixes.
    A context of depth i is numbered in base V: ``(a_1, .., a_i)`` is row
    ``a_1 V^(i-1) + .. + a_i`` of depth i.

    Attributes:
        target: ``target[i]`` holds the rows p(. | a_{1:i}), shape [V^i, V], for i = 0..L.
        draft: ``draft[i]`` holds the rows q(. | a_{1:i}), shape [V^i, V], for i = 0..L-1.
        vocab: the V token names.
        context_free: whether every context has the same two rows (kept for saving).

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=2)
        >>> pair.vocab_size, pair.draft_length, pair.arithmetic
        (2, 2, 'exact')
        >>> print(pair.draft_path_probs(2)[0])
        4/9
    """

    target: tuple[np.ndarray, ...]
    draft: tuple[np.ndarray, ...]
    vocab: tuple[str, ...]
    context_free: bool = False
    row_sum_tolerance: float = 1e-9

    def __post_init__(self) -> None:
        _validate(self)

    # ------------------------------------------------------------------ shape

    @property
    def vocab_size(self) -> int:
        """V, the number of tokens."""
        return len(self.vocab)

    @property
    def draft_length(self) -> int:
        """L, the number of tokens on a drafted path."""
        return len(self.draft)

    @property
    def is_exact(self) -> bool:
        """Whether the entries are exact rationals."""
        return self.target[0].dtype == object

    @property
    def arithmetic(self) -> str:
        """``"exact"`` or ``"float64"``."""
        return "exact" if self.is_exact else "float64"

    def target_path_probs(self, depth: int) -> np.ndarray:
        """p(a_{1:depth}) of every path of that depth (0..L+1), shape [V^depth]."""
        return _path_probs(self.target, depth)

    def draft_path_probs(self, depth: int) -> np.ndarray:
        """q(a_{1:depth}) of every path of that depth (0..L), shape [V^depth]."""
        return _path_probs(self.draft, depth)

    def context(self, depth: int, index: int) -> Context:
        """The token ids of the context with this number at this depth.

        Example:
            >>> ModelPair.context_free_pair(["1/2", "1/2"], ["1/2", "1/2"], 3).context(3, 5)
            (1, 0, 1)
        """
        return numbered_context(index, depth, self.vocab_size)

    # ----------------------------------------------------------- construction

    @staticmethod
    def context_free_pair(
        target_probs: Row, draft_probs: Row, draft_length: int, vocab: Sequence[str] | None = None
    ) -> ModelPair:
        """The pair in which every context has the same two rows (strings and Fractions are exact).

        Example:
            >>> ModelPair.context_free_pair([0.5, 0.5], [0.25, 0.75], draft_length=1).arithmetic
            'float64'
        """
        target_row, draft_row = _parse_rows({"target": target_probs, "draft": draft_probs}).values()
        size = len(target_row)
        _validate_width("draft", "", draft_row, size)
        _validate_size(size, draft_length)
        return ModelPair(
            target=tuple(np.tile(target_row, (size**i, 1)) for i in range(draft_length + 1)),
            draft=tuple(np.tile(draft_row, (size**i, 1)) for i in range(draft_length)),
            vocab=_vocab(vocab, size),
            context_free=True,
        )

    @staticmethod
    def from_contexts(
        target: Mapping[tuple[int, ...], Row],
        draft: Mapping[tuple[int, ...], Row],
        draft_length: int,
        vocab: Sequence[str] | None = None,
    ) -> ModelPair:
        """A pair from mappings context -> row; target at depths 0..L, draft at depths 0..L-1.

        Example:
            >>> pair = ModelPair.from_contexts(
            ...     {(): ["1/3", "2/3"], (0,): [0, 1], (1,): ["1/2", "1/2"]},
            ...     {(): ["2/3", "1/3"]},
            ...     draft_length=1,
            ... )
            >>> print(pair.target_path_probs(2))
            [Fraction(0, 1) Fraction(1, 3) Fraction(1, 3) Fraction(1, 3)]
        """
        keyed = {("target", key): row for key, row in target.items()}
        keyed |= {("draft", key): row for key, row in draft.items()}
        rows = _parse_rows(keyed)
        if ("target", ()) not in rows:
            raise InvalidPairError("the target has no row at the root context ''; add one")
        size = len(rows["target", ()])
        for (side, context), row in rows.items():
            _validate_width(side, _key(context), row, size)
        _validate_size(size, draft_length)
        tables = {}
        for side, depths in (("target", draft_length + 1), ("draft", draft_length)):
            levels = []
            for depth in range(depths):
                contexts = list(product(range(size), repeat=depth))
                for context in contexts:
                    if (side, context) not in rows:
                        raise InvalidPairError(
                            f"the {side} has no row at context '{_key(context)}'; every context "
                            f"of depth 0..{depths - 1} over {size} tokens needs one"
                        )
                levels.append(np.stack([rows[side, context] for context in contexts]))
            tables[side] = tuple(levels)
            for _, context in (key for key in rows if key[0] == side):
                if len(context) >= depths or any(not 0 <= t < size for t in context):
                    raise InvalidPairError(
                        f"the {side} has a row at context '{_key(context)}', which is not a "
                        f"context of depth 0..{depths - 1} over tokens 0..{size - 1}; remove it"
                    )
        return ModelPair(tables["target"], tables["draft"], _vocab(vocab, size))

    def to_float(self) -> ModelPair:
        """The same pair in float64 (itself when it is float64 already)."""
        if not self.is_exact:
            return self
        return self._replace([t.astype(float) for t in self.target], [d.astype(float) for d in self.draft])

    def truncate(self, draft_length: int) -> ModelPair:
        """The same models with a shorter draft length."""
        if not 1 <= draft_length <= self.draft_length:
            raise InvalidPairError(
                f"cannot truncate to draft length {draft_length}; "
                f"expected 1..{self.draft_length}, the length of this pair"
            )
        return self._replace(self.target[: draft_length + 1], self.draft[:draft_length])

    def restrict(self, tokens: Sequence[int]) -> ModelPair:
        """Both models conditioned, at every context, on the next token being one of ``tokens``.

        Raises:
            InvalidPairError: a token is unknown or repeated, or a row has no mass on ``tokens``.
        """
        kept = list(tokens)
        if not kept or len(set(kept)) != len(kept) or any(not 0 <= t < self.vocab_size for t in kept):
            raise InvalidPairError(
                f"cannot restrict to tokens {kept}; expected distinct ids in 0..{self.vocab_size - 1}"
            )

        def keep(levels: tuple[np.ndarray, ...], side: str) -> list[np.ndarray]:
            contexts = np.zeros(1, dtype=np.int64)
            result = []
            for depth, level in enumerate(levels):
                rows = level[contexts][:, kept]
                mass = rows.sum(axis=1)
                for number in np.flatnonzero(mass == 0):
                    context = _key(self.context(depth, int(contexts[number])))
                    raise InvalidPairError(
                        f"the {side} gives tokens {kept} no mass at context '{context}'; "
                        "restrict to tokens that have some"
                    )
                result.append(rows / mass[:, None])
                contexts = (contexts[:, None] * self.vocab_size + np.asarray(kept)).ravel()
            return result

        return ModelPair(
            tuple(keep(self.target, "target")),
            tuple(keep(self.draft, "draft")),
            tuple(self.vocab[t] for t in kept),
            self.context_free,
        )

    def _replace(self, target: Sequence[np.ndarray], draft: Sequence[np.ndarray]) -> ModelPair:
        return ModelPair(tuple(target), tuple(draft), self.vocab, self.context_free)

    # ------------------------------------------------------------------- file

    @staticmethod
    def load(path: str | Path) -> ModelPair:
        """Read a pair file (JSON, format ``spectheory-pair/1``)."""
        try:
            text = Path(path).read_text(encoding="utf-8")
            document = json.loads(text, object_pairs_hook=_without_repeats)
        except OSError as error:
            raise InvalidPairError(f"cannot read {path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise InvalidPairError(f"{path} is not text in UTF-8; expected a pair file in JSON") from error
        except (json.JSONDecodeError, RecursionError) as error:
            raise InvalidPairError(f"{path} is not JSON: {error}") from error
        try:
            return ModelPair.from_document(document)
        except InvalidPairError as error:
            raise InvalidPairError(f"{path}: {error}") from error

    @staticmethod
    def from_document(document: Any) -> ModelPair:
        """A pair from the parsed JSON of a pair file.

        Example:
            >>> ModelPair.from_document({
            ...     "format": "spectheory-pair/1", "vocab": ["A", "B"], "draft_length": 2,
            ...     "context_free": True, "target": ["1/3", "2/3"], "draft": ["2/3", "1/3"],
            ... }).vocab
            ('A', 'B')
        """
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            found = document.get("format") if isinstance(document, dict) else type(document).__name__
            raise InvalidPairError(f'not a pair file: expected "format": "{FORMAT}", got {found!r}')
        missing = {"vocab", "draft_length", "target", "draft"} - document.keys()
        if missing:
            raise InvalidPairError(f"missing fields: {', '.join(sorted(missing))}")
        vocab, length = document["vocab"], document["draft_length"]
        if not isinstance(vocab, list) or not all(isinstance(name, str) for name in vocab):
            raise InvalidPairError(f"vocab must be a list of strings, got {vocab!r}")
        target, draft = document["target"], document["draft"]
        context_free = document.get("context_free", False)
        if not isinstance(context_free, bool):
            raise InvalidPairError(f"context_free must be true or false, got {context_free!r}")
        if context_free:
            for side, row in (("target", target), ("draft", draft)):
                if not isinstance(row, list):
                    raise InvalidPairError(f"a context-free {side} is one list of probabilities, got {row!r}")
            return ModelPair.context_free_pair(_from_json(target), _from_json(draft), length, vocab)
        for side, rows in (("target", target), ("draft", draft)):
            if not isinstance(rows, dict):
                raise InvalidPairError(
                    f"{side} must map contexts to rows, got {type(rows).__name__}; "
                    'one row each goes with "context_free": true'
                )
        target_rows, draft_rows = (
            {_parse_key(key): _from_json(row) for key, row in rows.items()} for rows in (target, draft)
        )
        return ModelPair.from_contexts(target_rows, draft_rows, length, vocab)

    def to_document(self) -> dict[str, Any]:
        """The JSON document of the pair file."""

        def entries(row: np.ndarray) -> list[Any]:
            return [str(value) for value in row] if self.is_exact else [float(value) for value in row]

        def table(levels: tuple[np.ndarray, ...]) -> Any:
            if self.context_free:
                return entries(levels[0][0])
            return {
                _key(self.context(depth, index)): entries(row)
                for depth, level in enumerate(levels)
                for index, row in enumerate(level)
            }

        document: dict[str, Any] = {
            "format": FORMAT,
            "vocab": list(self.vocab),
            "draft_length": self.draft_length,
        }
        if self.context_free:
            document["context_free"] = True
        return document | {"target": table(self.target), "draft": table(self.draft)}

    def save(self, path: str | Path) -> None:
        """Write the pair file; ``ModelPair.load`` reads back the same numbers."""
        Path(path).write_text(json.dumps(self.to_document(), indent=1) + "\n", encoding="utf-8")


def parse_probs(values: Row) -> np.ndarray:
    """One row of probabilities, all exact (strings, Fractions) or all float; integers go with both.

    Example:
        >>> parse_probs(["1/3", "2/3"])
        array([Fraction(1, 3), Fraction(2, 3)], dtype=object)
        >>> parse_probs([0.25, 0.75])
        array([0.25, 0.75])
    """
    return _parse_rows({"row": values})["row"]


def _parse_rows(rows: Mapping[Any, Row]) -> dict[Any, np.ndarray]:
    """Parse all rows of one pair, with one kind of arithmetic for all of them."""
    kinds: dict[str, Any] = {}
    parsed = {}
    for key, row in rows.items():
        if isinstance(row, (str, bytes)) or not isinstance(row, (Sequence, np.ndarray)):
            raise InvalidPairError(f"a row must be a list of probabilities, got {row!r}")
        values = [_parse_entry(value) for value in row]
        for value, original in zip(values, row, strict=True):
            if not isinstance(original, (int, np.integer)):  # integers go with either kind
                kinds.setdefault("float64" if isinstance(value, float) else "exact", original)
        if len(kinds) > 1:
            raise InvalidPairError(
                f"exact and float entries are mixed ({kinds['exact']!r} and {kinds['float64']!r}); "
                "write all entries as strings or all as numbers"
            )
        array = np.empty(len(values), dtype=object)
        array[:] = values
        parsed[key] = array
    if "float64" in kinds:
        return {key: array.astype(float) for key, array in parsed.items()}
    return parsed


def _parse_entry(value: Any) -> Fraction | float:
    if isinstance(value, Fraction):
        return value
    if isinstance(value, (bool, np.bool_)):
        raise InvalidPairError(f"a probability cannot be {value!r}")
    if isinstance(value, str):
        exponent = re.search(r"[eE][+-]?0*(\d+)\s*$", value)
        if len(value) > MAX_DIGITS or (exponent and len(exponent[1]) > 4):
            raise InvalidPairError(
                f"{value[:40]!r} has too many digits; a rational may have {MAX_DIGITS}, its exponent four"
            )
        try:
            return Fraction(value)
        except (ValueError, ZeroDivisionError) as error:
            raise InvalidPairError(f"{value!r} is not a rational such as '1/3' or '0.25'") from error
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, (int, np.integer)):
        return Fraction(int(value))
    raise InvalidPairError(f"a probability must be a string or a number, got {value!r}")


def _without_repeats(items: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys are distinct; plain JSON would keep the last of two."""
    found = dict(items)
    if len(found) < len(items):
        keys = [key for key, _ in items]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise InvalidPairError(f"the key {repeated!r} stands twice in one object; keep one of them")
    return found


def _from_json(row: Any) -> Any:
    """JSON numbers are float64, whole ones too; strings stay strings (exact)."""
    if not isinstance(row, list):
        return row
    try:
        return [float(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in row]
    except OverflowError as error:
        raise InvalidPairError(
            "a probability is too large for a float64; expected numbers in [0, 1]"
        ) from error


def _parse_key(key: str) -> tuple[int, ...]:
    try:
        return tuple(int(token) for token in key.split())
    except ValueError as error:
        raise InvalidPairError(f"context {key!r} is not a list of token ids separated by spaces") from error


def _key(context: Sequence[int]) -> str:
    return " ".join(str(token) for token in context)


def _vocab(vocab: Sequence[str] | None, size: int) -> tuple[str, ...]:
    return tuple(str(i) for i in range(size)) if vocab is None else tuple(vocab)


def _validate_length(draft_length: Any) -> None:
    if isinstance(draft_length, bool) or not isinstance(draft_length, int) or draft_length < 1:
        raise InvalidPairError(f"draft_length must be a whole number of at least 1, got {draft_length!r}")


def _validate_width(side: str, key: str, row: np.ndarray, size: int) -> None:
    if size == 0:
        raise InvalidPairError("the target row at the root is empty; name at least one token")
    if len(row) != size:
        raise InvalidPairError(
            f"the {side} row at context '{key}' has {len(row)} entries; expected {size}, one per token "
            "as at the target's root"
        )


def _validate_size(vocab_size: int, draft_length: Any) -> None:
    """Refuse a tree that cannot be held, before anything is allocated."""
    _validate_length(draft_length)
    entries, depth = vocab_size, 0
    while depth < draft_length and entries <= MAX_ENTRIES and vocab_size > 1:
        entries, depth = entries * vocab_size, depth + 1
    if entries > MAX_ENTRIES:
        raise EnumerationTooLargeError(
            f"a pair of {vocab_size} tokens and draft length {draft_length} has more than {MAX_ENTRIES} "
            "probabilities; use a shorter draft length or fewer tokens"
        )


def _path_probs(levels: tuple[np.ndarray, ...], depth: int) -> np.ndarray:
    probs = levels[0][0][:1] * 0 + 1
    for level in levels[:depth]:
        probs = (probs[:, None] * level).ravel()
    return probs


def _validate(pair: ModelPair) -> None:
    size = pair.vocab_size
    if size < 1:
        raise InvalidPairError("the vocabulary is empty; name at least one token")
    if len(set(pair.vocab)) != size:
        raise InvalidPairError(f"vocab has repeated names: {list(pair.vocab)}")
    _validate_length(pair.draft_length)
    if len(pair.target) != pair.draft_length + 1:
        raise InvalidPairError(
            f"the target has depths 0..{len(pair.target) - 1} and the draft 0..{pair.draft_length - 1}; "
            "the target needs exactly one depth more than the draft"
        )
    dtype = pair.target[0].dtype
    for side, levels in (("target", pair.target), ("draft", pair.draft)):
        for depth, level in enumerate(levels):
            if level.dtype != dtype:
                raise InvalidPairError("exact and float rows are mixed; use one kind for the whole pair")
            if level.shape != (size**depth, size):
                raise InvalidPairError(
                    f"the {side} rows at depth {depth} have shape {level.shape}; "
                    f"expected {(size**depth, size)} for {size} tokens"
                )
            _validate_rows(pair, side, depth, level)
    if pair.context_free and any((level != level[0]).any() for level in (*pair.target, *pair.draft)):
        raise InvalidPairError("context_free is set, but rows depend on the context; leave it out")


def _validate_rows(pair: ModelPair, side: str, depth: int, level: np.ndarray) -> None:
    if level.dtype != object and level.dtype != np.float64:
        raise InvalidPairError(f"rows must hold Fractions or float64, got {level.dtype}; convert them first")
    if pair.is_exact and not all(isinstance(value, Fraction) for value in level.flat):
        raise InvalidPairError("exact rows must hold fractions.Fraction only; build them with parse_probs")

    def where(index: Any) -> str:
        return f"the {side} row at context '{_key(pair.context(depth, int(index)))}'"

    if not pair.is_exact and not np.isfinite(level).all():
        index = np.flatnonzero(~np.isfinite(level).all(axis=1))[0]
        raise InvalidPairError(f"{where(index)} has an entry that is not finite: {level[index].tolist()}")
    negative = np.flatnonzero((level < 0).any(axis=1))
    if negative.size:
        entries = ", ".join(str(value) for value in level[negative[0]])
        raise InvalidPairError(f"{where(negative[0])} has a negative entry: [{entries}]")
    sums = level.sum(axis=1)
    wrong = sums != 1 if pair.is_exact else np.abs(sums - 1) > pair.row_sum_tolerance
    if wrong.any():
        index = np.flatnonzero(wrong)[0]
        raise InvalidPairError(f"{where(index)} sums to {sums[index]}, not 1")
