"""Rules that end a text: an end-of-sequence token, the length, or a user's criterion."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

END_OF_SEQUENCE, LENGTH, CRITERION = "end of sequence", "length", "criterion"


@dataclass(frozen=True)
class Stopping:
    """Rules that end a text.  The token that ends it is kept.

    Attributes:
        max_new_tokens: largest number of tokens, without the prompt.
        end_of_sequence: token ids that end a text.
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
        if self.criterion is not None and self.criterion(number, text):
            return CRITERION
        return LENGTH if len(text) >= self.max_new_tokens else None
