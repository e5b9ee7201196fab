"""Answers as tokens: whatever an adapter drops or cuts is what the engine drops or cuts, and no more."""

import pytest
import torch

from audits.forms.answers import counted
from spectheory.auditing.subjects.flattened_batch import without_padding
from spectheory.auditing.tape.races import UndefinedDrawError


def test_only_placeholders_at_the_end_are_dropped() -> None:
    answers = {(): [], (-1, -1): [], (1, 0, -1): [1, 0], (1, -1, 0, -1): [1, -1, 0], (-1, 2): [-1, 2]}
    for tokens, expected in answers.items():
        assert without_padding(tokens) == expected


def test_counts_are_those_of_the_path() -> None:
    """Also as numbers of torch; a slice would take others as a number of tokens."""
    assert [counted([2, 1], count, 0) for count in (0, 1, torch.tensor(2))] == [[0], [2, 0], [2, 1, 0]]
    for count in (-1, 3):
        with pytest.raises(
            UndefinedDrawError, match=f"it says that {count} of 2 drafted tokens are accepted"
        ):
            counted([2, 1], count, 0)
