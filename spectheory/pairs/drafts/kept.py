"""Drafts of any length and any joint law, with the rows that are handed over beside them (theory.md §8)."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import SUM_TOLERANCE, float_tolerance, to_flint
from spectheory.pairs.contexts import Context, context_number, context_text, path_number
from spectheory.pairs.drafts.iid import Iid
from spectheory.pairs.drafts.process import DraftProcess, DraftTuples, ListedProcess
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.rows import Row, parse_entry, parse_rows

Paths = tuple[Context, ...]
"""K drafted paths, each of at most L tokens."""
HandedRowsOf = Mapping[Context, Row]
"""The draft rows that are handed over: context -> row [V].  Other contexts keep the pair's draft row."""


class HandedRows(ModelPair):
    """A pair whose draft rows are those handed over.  They are not negative, and need not sum to 1."""

    def __post_init__(self) -> None:
        if not all((level >= 0).all() for level in self.draft):
            raise InvalidInputError("a row that is handed over has a negative entry")


class AdaptiveDrafts(ListedProcess):
    """K paths of which some may end early, and the rows that the verifier is handed with them.

    ``certify`` calls the verifier with the kept tokens only: with paths of n tokens, as if L were n.
    """

    rows: HandedRowsOf | None = None
    num_drafts: int = 1

    @abstractmethod
    def kept_law(self, pair: ModelPair) -> dict[Paths, Any]:
        """Compute the law of the kept tokens, in the numbers of ``pair.numbers``: K paths -> probability."""

    def base(self) -> DraftProcess:
        """Return the process of whole paths for which the verifier is set up."""
        return Iid(self.num_drafts)

    def check(self, pair: ModelPair) -> None:
        self.kept_law(pair)
        self.drafter(pair, 0)

    def drafter(self, pair: ModelPair, path_index: int) -> ModelPair:
        model = self.base().drafter(pair, path_index)
        return model if self.rows is None else with_rows(model, self.rows)

    def listed(self, pair: ModelPair) -> DraftTuples:
        law, shape = self.kept_law(pair), (pair.draft_length, pair.vocab_size)
        leaves = np.array([[path_number(path, *shape) for path in paths] for paths in law])
        return DraftTuples(leaves, np.array(list(law.values()), dtype=pair.target[0].dtype))


@dataclass(frozen=True, eq=False)
class KeptDrafts(AdaptiveDrafts):
    """Kept tokens of any joint law.  The verifier is handed ``rows`` with them.

    Attributes:
        law: the kept tokens -> their probability.  A key is a context, or K contexts of one length.
        rows: context -> the draft row handed over there.  Other contexts have the pair's draft row.  A row
            need not sum to 1: an engine may hand over a row that it has cut.

    Raises:
        InvalidInputError: a key is no path of the pair, or the probabilities do not sum to 1.

    Example:
        >>> from spectheory import certify, instances
        >>> likelier_of_two = KeptDrafts({(0,): "8/9", (1,): "1/9"})  # of two drafts from (2/3, 1/3)
        >>> print(certify("token", instances.bernoulli("1/3", "2/3"), likelier_of_two).total_variation)
        1/9
    """

    law: Mapping[Any, Any]
    rows: HandedRowsOf | None = None
    name: ClassVar[str] = "kept"

    def __post_init__(self) -> None:
        if not self.law:
            raise InvalidInputError("kept drafts need a law, got none")
        object.__setattr__(self, "law", {_as_paths(key): value for key, value in self.law.items()})
        object.__setattr__(self, "num_drafts", len(next(iter(self.law))))

    def kept_law(self, pair: ModelPair) -> dict[Paths, Any]:
        probs = parse_rows({"law": list(self.law.values())})["law"]
        probs = to_flint(probs) if pair.is_exact else probs.astype(float)
        law = {paths: prob for paths, prob in zip(self.law, probs, strict=True) if prob > 0}
        if abs(sum(law.values()) - 1) > float_tolerance(pair, SUM_TOLERANCE):
            raise InvalidInputError(f"the law of kept drafts sums to {sum(law.values())}, not 1")
        for path in chain.from_iterable(self.law):
            if len(path) > pair.draft_length or any(not 0 <= t < pair.vocab_size for t in path):
                raise InvalidInputError(
                    f"'{context_text(path)}' is no draft of the pair: at most {pair.draft_length} tokens "
                    f"out of {pair.vocab_size}"
                )
        return law


@dataclass(frozen=True, eq=False)
class DisclosedDrafts(AdaptiveDrafts):
    """Drafts whose rows depend on more than the text: a latent, the draft's own tokens (Statement 8.15).

    Attributes:
        events: (probability, kept tokens, one draft row per kept token).

    Example:
        >>> from spectheory import ModelPair, certify
        >>> fair = ["1/2", "1/2"]
        >>> pair = ModelPair.context_free_pair(fair, fair, 2)
        >>> rows = {0: ["1", "0"], 1: ["0", "1"]}
        >>> latent = DisclosedDrafts([("1/2", (t, t), [rows[t], rows[t]]) for t in (0, 1)])
        >>> print(certify("block", pair, latent).verdict)
        lossless
    """

    events: Sequence[tuple[Any, Context, Sequence[Row]]]
    name: ClassVar[str] = "disclosed"

    def parts(self) -> Iterator[tuple[Any, KeptDrafts]]:
        """Yield (probability, drafts with these rows), one part per event."""
        for prob, tokens, rows in self.events:
            if len(rows) > len(tokens) + 1:
                raise InvalidInputError(f"{len(rows)} rows are handed over with the tokens {tokens}")
            given = {tokens[:depth]: row for depth, row in enumerate(rows)}
            yield parse_entry(prob), KeptDrafts({tokens: 1}, given)

    def kept_law(self, pair: ModelPair) -> dict[Paths, Any]:
        law = Counter[Context]()
        for prob, tokens, _ in self.events:
            law[tokens] += parse_entry(prob)  # type: ignore[assignment]
        return KeptDrafts(law).kept_law(pair)

    def as_kept(self, pair: ModelPair) -> KeptDrafts:
        """Return the same drafts with one row per text.

        Raises:
            InvalidInputError: one text has two rows.  The message names the text and both rows.
        """
        rows: dict[Context, Row] = {}
        for _, part in self.parts():
            for text, row in (part.rows or {}).items():
                one, other = (", ".join(map(str, each)) for each in (rows.setdefault(text, row), row))
                if one != other:
                    raise InvalidInputError(
                        f"the text '{context_text(text)}' has two rows, ({one}) and ({other}): rows must be "
                        "a function of the text before the token"
                    )
        return KeptDrafts(self.kept_law(pair), rows)


def with_rows(pair: ModelPair, rows: HandedRowsOf) -> ModelPair:
    """Return the pair with these draft rows at these contexts.

    Raises:
        InvalidInputError: a row has a wrong length or arithmetic, or its context is too long.
    """
    levels = [level.copy() for level in pair.draft]
    for context, row in parse_rows(dict(rows)).items():
        if len(context) >= pair.draft_length or len(row) != pair.vocab_size:
            raise InvalidInputError(
                f"a row of {len(row)} tokens is handed over at '{context_text(context)}'; the pair has "
                f"{pair.vocab_size} tokens, and draft rows after at most {pair.draft_length - 1}"
            )
        number = context_number(context, pair.vocab_size)
        levels[len(context)][number] = row if pair.is_exact else row.astype(float)
    return HandedRows(pair.target, tuple(levels), pair.vocab)


def _as_paths(key: Any) -> Paths:
    return tuple(map(tuple, key)) if key and not isinstance(key[0], int) else (tuple(key),)
