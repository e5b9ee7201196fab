"""Common random numbers of texts: what they depend on, and that all of them are different."""

import numpy as np
import pytest
import torch

from later import Later
from spectheory.simulation.texts import CommonRandomNumbers

stats = Later("scipy.stats")

SHAPE = {"texts": 3, "max_new_tokens": 5, "draws": 4}


def drawn(
    numbers: CommonRandomNumbers, texts: list[int], lengths: list[int], num_drafts: int
) -> torch.Tensor:
    """All numbers of one call: two of every path, one of the stop and one of the token.  [b, 2 K + 2]"""
    draw = numbers(texts, lengths)
    batch = len(texts)
    parts = [draw((batch, num_drafts, 1))[..., 0] for _ in range(2)] + [draw((batch, 1)) for _ in range(2)]
    return torch.cat(parts, dim=1)


def test_a_call_is_known_by_its_text_and_its_length() -> None:
    """In whatever company and whenever; another text, length, batch or seed has other numbers."""
    numbers = CommonRandomNumbers((0, 1), **SHAPE, num_drafts=2)
    both = drawn(numbers, [2, 0], [4, 1], 2)
    assert torch.equal(drawn(numbers, [0], [1], 2)[0], both[1])
    others = [
        drawn(numbers, [1], [1], 2),
        drawn(numbers, [0], [2], 2),
        drawn(CommonRandomNumbers((0, 2), **SHAPE, num_drafts=2), [0], [1], 2),
        drawn(CommonRandomNumbers((1, 1), **SHAPE, num_drafts=2), [0], [1], 2),
    ]
    for other in others:
        assert not (other[0] == both[1]).any()


def test_the_numbers_are_uniform_and_none_stands_twice() -> None:
    """All numbers of a batch: a Kolmogorov-Smirnov test at a fixed seed, and no two equal."""
    numbers = CommonRandomNumbers((3, 0), texts=20, max_new_tokens=20, draws=4, num_drafts=3)
    calls = [drawn(numbers, list(range(20)), [length] * 20, 3) for length in range(20)]
    flat = torch.cat(calls).flatten().numpy()
    assert len(np.unique(flat)) == len(flat) == 20 * 20 * 8
    assert stats.kstest(flat, "uniform").pvalue > 0.01
    assert stats.kstest(flat**1.2, "uniform").pvalue < 1e-6  # the partner


def test_fewer_paths_are_the_first_ones() -> None:
    few, many = (CommonRandomNumbers((5, 0), **SHAPE, num_drafts=count) for count in (2, 4))
    assert torch.equal(few([1], [3])((1, 2, 1)), many([1], [3])((1, 4, 1))[:, :2])


def test_no_call_draws_more_than_it_has() -> None:
    draw = CommonRandomNumbers((0, 0), texts=1, max_new_tokens=1, draws=3, num_drafts=1)([0], [0])
    for _ in range(3):
        draw((1, 1))
    with pytest.raises(StopIteration):
        draw((1, 1))
