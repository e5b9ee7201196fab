"""Errors of a batch of outcomes: distances of the sampled arrays from probability distributions (laws).

Errors stay on the device until they are read, so that computing them does not wait for the device.
"""

from collections.abc import Callable

from spectheory.foundation.arrays import Array, namespace, zero_where
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.foundation.kernels import choice
from spectheory.verification.outcome import Outcome, Sample, Stop, correction_deviation, stop_deviation
from spectheory.verification.verifier import Verifier

LAW_TOLERANCE = {"float64": 1e-9, "float32": 1e-5}
"""dtype of the probabilities -> the largest allowed distance from a law, in probability."""
FAULTS = (
    "stop probabilities that are not a law",
    "a stop behind the end of a path",
    "correction rows that are not laws",
    "a row of zeros as the correction at a stop that was drawn",
)
NO_LAW = "; its correction is 0/0 there, which certify counts as undefined output; leave it out"
"""Text added to the message of the last fault, because published rules can have this fault."""


def law_errors(outcome: Outcome, stop: Stop, paths: Array, drawn: Sample | None = None) -> Array:
    """Measure each fault in ``FAULTS`` for each tuple of drafts, as an amount of probability.  [4, N]

    Args:
        outcome: the outcome on N tuples of drafted paths.
        stop: a stop sampled from the outcome.  We check only the correction row at this stop, and weight its
            error with the stop's probability, as in a certificate.
        paths: the drafted tokens, [N, K, L]; -1 after the end of a path.
        drawn: the sample that ``outcome.sample`` drew at this stop, if available.  We reuse its rows.
    """
    rows, prob, stop_probs = outcome.checkable_rows(stop, drawn), stop.prob, outcome.stop_probs
    found = None if drawn is None or rows is not drawn.weights else drawn.sums_and_lowest
    if choice.plain_on_host(rows, prob, stop_probs):  # few numbers: numpy takes half the time of torch
        prob, stop_probs, paths = prob.numpy(), stop_probs.numpy(), paths.numpy()
    with choice.quiet_floats():
        corrections, empty = correction_deviation(rows, prob, outcome.rows_are_weights, found)
        stops = stop_deviation(stop_probs)
        behind = abs(zero_where(paths >= 0, stop_probs[..., 1:])).sum((-2, -1))
        errors = [stops.error, behind, corrections.error, zero_where(~empty, prob)]
        return namespace(rows).asarray(namespace(prob).stack(errors))


def refuse_errors(verifier: Verifier, errors: Array, tolerance: float, place: Callable[[int], str]) -> None:
    """Raise ``InvalidOutcomeError`` if one of the ``law_errors`` [4, N] exceeds the tolerance.

    ``place`` maps an index in 0..N-1 to a description of its drafts, for the message.
    """
    # NaN fails every comparison, so with the negation it counts as wrong.
    wrong = ~(errors <= tolerance)
    if bool(wrong.any()):
        fault, stratum = (int(numbers[0]) for numbers in namespace(wrong).nonzero(wrong))
        raise InvalidOutcomeError(
            f"verifier {verifier.name!r} returned {FAULTS[fault]}, {place(stratum)}: off by "
            f"{float(errors[fault, stratum]):.3g}, more than the tolerance {tolerance:g}"
            f"{NO_LAW if fault == len(FAULTS) - 1 else ''}"
        )


def tolerance_of(rows: Array, tolerance: float | None) -> float:
    """Return ``tolerance``, or the default tolerance for the dtype of ``rows`` if it is None."""
    return LAW_TOLERANCE[str(rows.dtype).removeprefix("torch.")] if tolerance is None else tolerance
