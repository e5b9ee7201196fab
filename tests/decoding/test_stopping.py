"""Where a text ends."""

import pytest

from spectheory.decoding import Stopping
from spectheory.decoding.stopping import CRITERION, END_OF_SEQUENCE, LENGTH


@pytest.mark.parametrize(
    ("stopping", "text", "tokens", "expected"),
    [
        (Stopping(9), [0], [1, 2], ([0, 1, 2], None)),
        (Stopping(3), [0], [1, 2, 0], ([0, 1, 2], LENGTH)),
        (Stopping(3, {2}), [0], [1, 2, 0], ([0, 1, 2], END_OF_SEQUENCE)),
        (Stopping(9, {2}), [2], [1, 1], ([2, 1, 1], None)),  # only what is new is looked at
        (Stopping(9, criterion=lambda row, ids: row == 4 and len(ids) > 1), [0], [1, 1], ([0, 1], CRITERION)),
    ],
)  # fmt: skip
def test_a_text_takes_tokens_up_to_its_end(
    stopping: Stopping, text: list[int], tokens: list[int], expected: tuple[list[int], str | None]
) -> None:
    before = list(text)
    assert stopping.extend(4, text, tokens) == expected
    assert text == before
