"""Peak memory of one round at a large vocabulary: below twice the input rows for one-pass verifiers.

The meter and the inputs are those of ``benchmarks/verifiers.py``, which checks the same claim at
V = 32 000.  Here V = 4 000, on numpy arrays under tracemalloc; the meters are held against functions
whose allocations are known.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from scripts import load
from spectheory.verification.algorithms import verifiers
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.outcome import Outcome

benchmark = load("benchmarks", "verifiers")

SHAPE = benchmark.Shape(vocab_size=4_000, draft_length=4, num_drafts=4, batch=4)
VERIFIERS = benchmark.runnable(SHAPE)
MEGABYTE = 1_000_000


@cache
def rows(dtype: str) -> Any:
    """Drafted paths and their rows, 2.3 MB in float32."""
    return benchmark.drafted(SHAPE, dtype, seed=3)


def multiple_of_input(verifier: Any, dtype: str) -> float:
    """Peak memory of outcome() and one sample per batch element, over the bytes of the rows."""
    given = rows(dtype)
    return benchmark.numpy_peak_bytes(lambda: benchmark.one_round(verifier, given, seed=7)) / given.row_bytes


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", benchmark.ONE_PASS)
def test_one_pass_verifiers_stay_below_twice_the_input(name: str, dtype: str) -> None:
    """Outcome and one correction row per batch element, sampled: less than twice the rows beyond them."""
    multiple = multiple_of_input(VERIFIERS[name], dtype)
    assert 0.05 < multiple < benchmark.LIMIT


class CopiesRowsThrice(Token):
    """``token``, with three copies of all rows that live as long as the outcome does."""

    def outcome(self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray) -> Outcome:
        copies = [(target_rows.copy(), draft_rows.copy()) for _ in range(3)]
        proper = super().outcome(paths, *copies[-1])
        return Outcome(proper.stop_probs, lambda *stop: (copies, proper.correction(*stop))[1])


class WastefulCorrection(Token):
    """``token``, with four copies of the target's rows, made only when a correction row is asked for."""

    def outcome(self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray) -> Outcome:
        proper = super().outcome(paths, target_rows, draft_rows)

        def correction(path_index: np.ndarray, length: np.ndarray) -> np.ndarray:
            everything = np.stack([target_rows] * 4)
            assert everything.ndim == target_rows.ndim + 1
            return proper.correction(path_index, length)

        return Outcome(proper.stop_probs, correction)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("wasteful", [CopiesRowsThrice(), WastefulCorrection()])
def test_peak_partner_a_wasteful_verifier_fails(wasteful: Token, dtype: str) -> None:
    """Copies that stay in the outcome and temporaries of the correction are both seen."""
    assert multiple_of_input(wasteful, dtype) >= benchmark.LIMIT


def test_copies_are_counted_exactly() -> None:
    """Three copies of the rows add 3 to the multiple of ``token``: no more, no less."""
    copies = multiple_of_input(CopiesRowsThrice(), "float64") - multiple_of_input(Token(), "float64")
    assert copies == pytest.approx(3, abs=0.01)


def test_every_published_verifier_is_measured_or_says_why_not() -> None:
    """A verifier that is added to the package gets a line here, or a reason."""
    excused = {name for names in benchmark.NOT_RUN for name in names.split(", ")}
    assert set(verifiers) <= set(VERIFIERS) | excused
    assert not set(VERIFIERS) & excused


def numpy_bytes(size: int) -> np.ndarray:
    return np.ones(size, dtype=np.uint8)


def torch_bytes(size: int) -> torch.Tensor:
    return torch.ones(size, dtype=torch.uint8)


def torch_cpu_peak_bytes(run: Callable[[], Any]) -> int:
    return benchmark.torch_peak_bytes(run, "cpu")


def in_turn(allocate: Callable[[int], Any]) -> None:
    for _ in range(10):
        allocate(MEGABYTE)


def together_and_then_two(allocate: Callable[[int], Any]) -> None:
    together = [allocate(MEGABYTE) for _ in range(4)]
    together.clear()
    together.extend(allocate(MEGABYTE) for _ in range(2))


@pytest.mark.parametrize(
    ("meter", "allocate"),
    [
        pytest.param(benchmark.numpy_peak_bytes, numpy_bytes, id="numpy"),
        pytest.param(torch_cpu_peak_bytes, torch_bytes, id="torch"),
    ],
)
def test_meters(meter: Any, allocate: Any) -> None:
    """Arrays that are kept count, temporaries at their peak, those of one after the other once; room that an
    older array leaves is not taken for an allocation less."""
    older = [allocate(8 * MEGABYTE) for _ in range(2)]  # one for each time a meter runs the function
    for run, megabytes in (
        (lambda: [allocate(MEGABYTE) for _ in range(5)], 5),
        (lambda: together_and_then_two(allocate), 4),
        (lambda: in_turn(allocate), 1),
        (lambda: (older.pop(), allocate(3 * MEGABYTE))[1], 3),
    ):
        assert meter(run) == pytest.approx(megabytes * MEGABYTE, rel=0.01)
