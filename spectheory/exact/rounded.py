"""Certify a verifier in float64, float32 and torch, as ``simulate`` and ``decode`` run it.

``certify`` computes the law of an exact pair in rationals, with the verifier bound to the pair.  A rerun
binds the same verifier without the pair and gives it arrays of floats.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from spectheory.exact.certificate import Certificate
from spectheory.exact.certifying import certificate_of, failed_certificate
from spectheory.exact.law import law_of
from spectheory.foundation.arrays import Array
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError, NotJudgedError
from spectheory.foundation.extras import installed
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.pair import ModelPair
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import Problem
from spectheory.verification.user import OtherArithmeticError, UserVerifier
from spectheory.verification.user_checks import check_answers, sampled_drafts
from spectheory.verification.verifier import Verifier


class Arithmetic(NamedTuple):
    """A float arithmetic: a precision and an array library.

    Attributes:
        dtype: numpy dtype of the precision.
        in_torch: whether arrays are torch tensors; otherwise numpy arrays.
        tolerance: largest error relative to the probability of a path.
        device: device of torch.
    """

    dtype: type[np.floating[Any]]
    in_torch: bool
    tolerance: float
    device: str = "cpu"

    @property
    def epsilon(self) -> float:
        """Distance from 1 to the next number."""
        return float(np.finfo(self.dtype).eps)

    def array(self, array: np.ndarray) -> Array:
        """Convert a numpy array to this arithmetic.  Integers stay integers."""
        rounded = np.array(array, dtype=self.dtype if array.dtype == float else array.dtype)
        if not self.in_torch:
            return rounded
        with installed():
            import torch

        return torch.from_numpy(rounded).to(self.device)

    def read(self, array: Array) -> np.ndarray:
        """Convert an array of this arithmetic to float64 in numpy."""
        return np.asarray(array.cpu() if hasattr(array, "cpu") else array, dtype=float)


ARITHMETICS: Mapping[str, Arithmetic] = {
    "float64": Arithmetic(np.float64, False, 1e-9),
    "float32": Arithmetic(np.float32, False, 1e-5),
    "torch float64": Arithmetic(np.float64, True, 1e-9),
    "torch float32": Arithmetic(np.float32, True, 1e-5),
}
"""Map from name to arithmetic.  The tolerance of float32 is larger, as errors of long sums add up."""


class DoesNotRunError(InvalidInputError):
    """A verifier cannot be bound to the process without an enumerated pair, or fails in an arithmetic."""


class RaisesError(DoesNotRunError):
    """The code of a verifier raises an error on drafts in an arithmetic."""


class _InArithmetic(Verifier):
    """Runs a verifier in an arithmetic: converts its inputs, and converts its answers to float64."""

    exact = False

    def __init__(self, verifier: Verifier, arithmetic: Arithmetic) -> None:
        self.name, self.source = verifier.name, verifier.source  # type: ignore[misc]
        self.verifier, self.arithmetic = verifier, arithmetic

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        outcome = self._run(self.verifier.outcome, paths, target_rows, draft_rows)

        def correction(*stop: Array) -> Array:
            return self.arithmetic.read(self._run(outcome.correction, *stop))

        return Outcome(self.arithmetic.read(outcome.stop_probs), correction)

    def _run(self, function: Callable[..., Any], *arrays: np.ndarray) -> Any:
        with _refusals():
            return function(*map(self.arithmetic.array, arrays))


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except InvalidInputError as error:
        is_fault = isinstance(error, InvalidOutcomeError) and error.__cause__ is None
        if is_fault and not isinstance(error, OtherArithmeticError):
            raise
        is_raised = isinstance(error, InvalidOutcomeError) and not isinstance(error, NotJudgedError)
        raise (RaisesError if is_raised else DoesNotRunError)(str(error)) from error


def certify_rounded(
    verifier: Verifier, pair: ModelPair, process: DraftProcess, arithmetic: str, device: str = "cpu"
) -> Certificate:
    """Certify a verifier that is bound to the draft process only and computes in floats.

    A user's verifier is not lossless if its answers are not laws within the tolerance of the arithmetic, or
    not a function of its inputs.

    Args:
        verifier: the verifier before ``bind``.
        pair: the models.
        process: the draft process.
        arithmetic: one of ``ARITHMETICS``.
        device: device of torch, ``"cpu"`` or ``"cuda"``.

    Raises:
        DoesNotRunError: the verifier needs the pair, or cannot compute with these arrays.
    """
    numbers = ARITHMETICS[arithmetic]._replace(device=device)
    pair, process = pair.to_float(), process.to_float()
    with _refusals():
        bound = verifier.bind(process)
    problem = Problem(_InArithmetic(bound, numbers), pair, process)
    try:
        law = law_of(problem, tolerance=numbers.tolerance, epsilon=numbers.epsilon)
        if isinstance(bound, UserVerifier):
            drafted = tuple(map(numbers.array, sampled_drafts(problem)))
            check_answers(bound, drafted, numbers.tolerance, of_pair=True)
    except InvalidOutcomeError as error:
        if not isinstance(verifier, UserVerifier) or isinstance(error, NotJudgedError):
            raise
        return failed_rounded(verifier, pair, process, arithmetic, error)
    return certificate_of(law, numbers.tolerance, numbers.epsilon, arithmetic)


def failed_rounded(
    verifier: UserVerifier, pair: ModelPair, process: DraftProcess, arithmetic: str, error: InvalidInputError
) -> Certificate:
    """Build the certificate for a user's verifier that raised ``error`` when run in ``arithmetic``.

    Arguments as in ``certify_rounded``.
    """
    numbers, pair, process = ARITHMETICS[arithmetic], pair.to_float(), process.to_float()
    problem = Problem(verifier.bind(process), pair, process)
    drafted = tuple(map(numbers.array, sampled_drafts(problem)))
    return failed_certificate(problem, error, arithmetic, drafted, numbers.tolerance)
