"""The children of a node are distinct, in the order of the paths; candidates are out of order."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from audits.forms.children import of_children
from spectheory.auditing.following.intercept import Journal, intercepted
from spectheory.auditing.tape.decisions import Tape
from spectheory.auditing.tape.races import UndefinedDrawError

PATHS = np.array([[1, 0], [1, 2], [2, 1], [1, 0]])
TARGET = np.array(
    [[[1, 2, 5], [3, 1, 4], [6, 1, 1]], [[1, 2, 5], [3, 1, 4], [0, 1, 7]], [[1, 2, 5], [4, 1, 3], [0, 0, 8]]]
)[[0, 1, 2, 0]] / 8  # fmt: skip
DRAFT = np.array([[[4, 3, 1], [1, 5, 2]], [[4, 3, 1], [1, 5, 2]], [[4, 3, 1], [3, 2, 3]]])[[0, 1, 2, 0]] / 8
"""Of three paths two begin alike, and the first one is drafted again."""


def children_of(*answers: tuple[int, int]) -> tuple[list[int], list[dict[str, Any]]]:
    """What is made of a function's answers, (token, position) by depth, and what it was given."""
    given: list[dict[str, Any]] = []

    def function(target: Any, proposals: Any, *coins: Any) -> Any:
        given.append({"target": target, **proposals._asdict(), "coins": [coin.shape for coin in coins]})
        token, place = answers[len(given) - 1]
        return torch.tensor([token]), torch.tensor([place]), "another"

    with intercepted(Tape(()), Journal()):
        rows = [torch.tensor(each.astype(np.float32)) for each in (TARGET, DRAFT)]
        return of_children(function)(torch.tensor(PATHS), *rows, None), given


def tensors(*rows: Any, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(np.array([rows]), dtype=dtype)


@pytest.mark.parametrize(("path", "below", "last"), [(1, [0, 2], 1), (2, [1], 2)])
def test_the_children_of_each_node(path: int, below: list[int], last: int) -> None:
    """The last row is that of the path that is left."""
    child = below[-1]
    tokens, given = children_of((path, path - 1), (child, len(below) - 1))
    assert tokens == [path, child, last]
    order = tensors(2, 1, 0, dtype=torch.int64)
    number = path
    for found, children, depth in zip(given, ([1, 2], below), (0, 1), strict=True):
        draft = DRAFT[number, depth][::-1]
        assert_close(
            found,
            {
                "target": tensors(*TARGET[number, depth]),
                "probs": tensors(*draft),
                "token_ids": order,
                "positions": tensors(*(2 - child for child in children), dtype=torch.int64),
                "tokens": tensors(*children, dtype=torch.int64),
                "scores": tensors(*sorted(draft)[::-1][: len(children)]),
                "coins": [(1, len(children)), (1,)],
            },
        )


def test_a_node_without_an_accepted_child_ends() -> None:
    """A position must be that of the token."""
    assert children_of((0, -1))[0] == [0]
    assert children_of((1, 0), (1, -1))[0] == [1, 1]
    for answers in ((0, 0), (1, 2)):
        with pytest.raises(UndefinedDrawError, match="is not that of its token"):
            children_of(answers)
