"""Rules that end a text: an end-of-sequence token, a stop string, the length, or a user's criterion."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

END_OF_SEQUENCE, STOP_STRING, LENGTH, CRITERION = "end of sequence", "stop string", "length", "criterion"


@dataclass(frozen=True)
class Stopping:
    """Rules that end a text.  The token that ends it is kept.

    Attributes:
        max_new_tokens: largest number of tokens, without the prompt.
        end_of_sequence: token ids that end a text.
        stop_strings: strings that end a text wherever they occur in it.
        decode: function from token ids to text; needed for stop strings.
        criterion: function (index of the text in the batch, its new token ids) that is True at its end.

    Example:
        >>> stopping = Stopping(max_new_tokens=4, end_of_sequence={0})
        >>> stopping.extend(0, [5], [6, 0, 7])
        ([5, 6, 0], 'end of sequence')
        >>> stopping.extend(0, [5], [6, 8])
        ([5, 6, 8], None)
    """

    max_new_tokens: int
    end_of_sequence: Collection[int] = frozenset()
    stop_strings: Sequence[str] = ()
    decode: Callable[[list[int]], str] | None = None
    criterion: Callable[[int, list[int]], bool] | None = None

    def extend(self, number: int, text: list[int], tokens: Sequence[int]) -> tuple[list[int], str | None]:
        """Append tokens until the text ends.  Return the text and the reason of its end, or None."""
        text = list(text)
        for token in tokens:
            text.append(token)
            reason = self._reason(number, text)
            if reason is not None:
                return text, reason
        return text, None

    def _reason(self, number: int, text: list[int]) -> str | None:
        if text[-1] in self.end_of_sequence:
            return END_OF_SEQUENCE
        if self.stop_strings and self.decode is not None:
            decoded: Any = self.decode(text)
            if any(string in decoded for string in self.stop_strings):
                return STOP_STRING
        if self.criterion is not None and self.criterion(number, text):
            return CRITERION
        return LENGTH if len(text) >= self.max_new_tokens else None
