"""Peak memory of one round at a large vocabulary: below twice the input rows for one-pass verifiers.

The meter and the inputs are those of ``benchmarks/verifiers.py``, which checks the same claim at
V = 32 000.  Here V = 4 000, on numpy arrays under tracemalloc; the meters are held against functions
whose allocations are known.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest

from scripts import load
from spectheory.verification.algorithms import verifiers
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.outcome import Outcome

benchmark = load("benchmarks", "verifiers")

SHAPE = benchmark.Shape(vocab_size=4_000, draft_length=4, num_drafts=4, batch=4)
VERIFIERS = benchmark.runnable(SHAPE)


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


def test_every_published_verifier_is_measured_or_says_why_not() -> None:
    """A verifier that is added to the package gets a line here, or a reason."""
    excused = {name for names in benchmark.NOT_RUN for name in names.split(", ")}
    assert set(verifiers) <= set(VERIFIERS) | excused
    assert not set(VERIFIERS) & excused
