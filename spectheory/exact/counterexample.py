"""The smallest counterexample of an output law, and the failure of a verifier that has none, in words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spectheory.exact.cause import Cause, Stop
from spectheory.exact.law import OutputLaw
from spectheory.foundation.documents import count_text, decimal_text, number_text
from spectheory.pairs.contexts import Context
from spectheory.pairs.pair import ModelPair


@dataclass(frozen=True)
class Counterexample:
    """The shortest prefix with a wrong probability, and the drafts that contribute most to the error.

    Attributes:
        path: token names of the prefix.
        probability, target: probability that the completed output starts with the prefix, and that its target
            gives it.
        drafts: token names of the K drafted paths that contribute most to the error (``OutputLaw.cause``).
            Empty if there are too many tuples of drafts to find them.
        given_drafts: probability that the completed output starts with the prefix, given these drafts.
        stops: the verifier's stops on these drafts, with the rows there.
    """

    path: tuple[str, ...]
    probability: Any
    target: Any
    drafts: tuple[tuple[str, ...], ...]
    given_drafts: Any
    stops: tuple[Stop, ...] = ()

    def in_words(self) -> str:
        """Describe the prefix, both probabilities, and the drafts that contribute most."""
        numbers = (self.probability, self.target, self.given_drafts)
        found, target, given = ("" if number is None else _short(number) for number in numbers)
        blamed = (
            f". Most to blame are the drafts {_drafts_in_words(self.drafts)}: given them the probability is "
            f"{given}"
        )
        return (
            f"the completed output starts with {_words(self.path)} with probability {found}; the target "
            f"gives {target}{blamed if self.drafts else ''}"
        )

    def stops_in_words(self) -> str:
        """Describe each stop on a line: its accepted tokens, its probability and the rows there."""
        return "\n".join(map(self._stop_in_words, self.stops))

    def _stop_in_words(self, stop: Stop) -> str:
        path = f"path {stop.path + 1}, " if len(self.drafts) > 1 else ""
        draft = f", draft {_row_in_words(stop.draft)}" if stop.draft else ""
        return (
            f"{path}{count_text(stop.length, 'token')} accepted with probability "
            f"{_short(stop.probability)}: next {_row_in_words(stop.correction)}, "
            f"target {_row_in_words(stop.target)}{draft}"
        )


@dataclass(frozen=True)
class Failure:
    """An error that a verifier raised on drafts, or a fault of its answer.  Such a verifier is not lossless.

    Attributes:
        error: the message, with the line of the user's code.
        drafts: token names of K drafted paths on which the verifier fails.  ``None`` if it fails only if it
            gets several tuples at once.
    """

    error: str
    drafts: tuple[tuple[str, ...], ...] | None

    def in_words(self) -> str:
        """Describe the drafts and the error."""
        drafts = "" if self.drafts is None else f"on the drafts {_drafts_in_words(self.drafts)}: "
        return f"{drafts}{self.error}"


def smallest_counterexample(
    law: OutputLaw, worst: Callable[[int], tuple[Context, Any, Any] | None]
) -> Counterexample | None:
    """Find the counterexample of a law.

    Args:
        law: the output law.
        worst: maps a depth to (prefix, its probability, its target probability), or to None if the law has
            the target's prefixes there.
    """
    for found in map(worst, range(1, law.pair.draft_length + 2)):
        if found:
            cause = law.cause(found[0]) or Cause((), None, ())
            named = tuple(names_of(law.pair, path) for path in cause.drafts)
            return Counterexample(names_of(law.pair, found[0]), *found[1:], named, cause.given, cause.stops)
    return None


def _short(number: Any) -> str:
    """Format a rational with few digits as a fraction, such as 20/9, and other numbers as decimals."""
    text = number_text(number, decimal=False)
    return text if len(text) <= LONGEST_READ else decimal_text(number)


LONGEST_READ = 20
"""Characters: two numbers of nine digits and the stroke between."""


def _row_in_words(row: Sequence[Any]) -> str:
    return f"({', '.join(map(_short, row))})"


def _words(names: tuple[str, ...]) -> str:
    return " ".join(repr(name) for name in names)


def names_of(pair: ModelPair, path: Sequence[int]) -> tuple[str, ...]:
    """Names of the tokens of a path.  A path that ends early is padded with -1."""
    return tuple(pair.vocab[token] for token in path if token >= 0)


def _drafts_in_words(drafts: Sequence[tuple[str, ...]]) -> str:
    return " and ".join(f"({_words(path)})" for path in drafts)
