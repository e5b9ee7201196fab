"""Outcome: the conditional law of a verifier's output given the drafted paths.

From outcomes we compute the exact output law on an enumerated pair, the Rao-Blackwell estimate of the block
efficiency, and the samples of a decoding loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import (
    Array,
    namespace,
    normalise,
    on_host,
    ones_like,
    positive_part,
    take_path,
    take_row,
    take_token,
    zero_where,
)
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.foundation.kernels import choice
from spectheory.foundation.row_draws import draw


@dataclass(frozen=True)
class Outcome:
    """The law of (X_{1:tau}, Y) given K drafted paths, batched over leading axes.

    Attributes:
        stop_probs: [..., K, L+1]; entry (k, i) is the probability that the accepted prefix is the
            first i tokens of path k.  A prefix that several paths share is credited to the first
            of these paths.  The entries sum to 1 over the last two axes.
        correction: a function (path_index [...], length [...]) -> [..., V], the law of the
            correction token Y given a stop at that prefix, one row per batch element.  Rows are
            computed on request.  If the stop has probability zero, the row may be anything.
        weights: the same function without the division by the row's sum, for ``sample``.  If it is None,
            ``sample`` uses ``correction``.

    Example:
        >>> import numpy as np
        >>> half = np.full((1, 2), 0.5)
        >>> outcome = Outcome(np.array([[[0.25, 0.75]]]), lambda path_index, length: half)
        >>> outcome.expected_tokens()
        array([1.75])
    """

    stop_probs: Array
    correction: Callable[[Array, Array], Array]
    weights: Callable[[Array, Array], Array] | None = None

    @staticmethod
    def from_weights(stop_probs: Array, weights: Callable[[Array, Array], Array]) -> Outcome:
        """Make an outcome with correction rows = weights divided by their sums; rows of zeros stay zeros."""
        return Outcome(stop_probs, _Normalised(weights), weights)

    @staticmethod
    def from_rows(stop_probs: Array, correction_rows: Array) -> Outcome:
        """Make an outcome from an array of all correction rows, ``correction_rows`` [..., K, L+1, V]."""
        return Outcome(
            stop_probs,
            lambda path_index, length: take_row(take_path(correction_rows, path_index), length),
        )

    def length_probs(self) -> Array:
        """Compute P(tau = i | drafts) for i = 0..L, [..., L+1]."""
        return namespace(self.stop_probs).sum(self.stop_probs, axis=-2)

    def expected_tokens(self) -> Array:
        """Compute E[tau + 1 | drafts], tokens per target call given these drafts, [...].

        Averaged over drafts this is the Rao-Blackwell estimate of the block efficiency.
        """
        length_probs = self.length_probs()
        tokens = namespace(length_probs).arange(1, length_probs.shape[-1] + 1, device=length_probs.device)
        return namespace(length_probs).sum(length_probs * tokens, axis=-1)

    def sample(self, generator: Any) -> Sample:
        """Draw (path, length, correction token), one triple per batch element.

        Args:
            generator: a ``numpy.random.Generator`` for numpy outcomes, or a ``torch.Generator`` on
                the same device for torch outcomes.  See ``uniform_numbers`` for lists and functions.

        Raises:
            InvalidOutcomeError: a stop was drawn whose correction row has no mass.
        """
        if isinstance(self.weights, WeightsOnHost):
            return self._sample_on_host(self.weights, generator)
        path_index, length, number, stop_mass = self._drawn_stop(generator)
        rows = (self.weights or self.correction)(path_index, length)
        token, mass = draw(rows, uniform_numbers(generator, rows))
        _refuse_rows_without_mass(namespace(mass).minimum(stop_mass, mass))
        # Computed again from the number, because a user's correction may write into its arguments.
        lengths = self.stop_probs.shape[-1]
        return Sample(number // lengths, number % lengths, token, rows)

    def _sample_on_host(self, weights: WeightsOnHost, generator: Any) -> Sample:
        import torch

        def drawn(rows: Array) -> tuple[Array, Array, tuple[Array, Array]]:
            return choice.row_kernels().draws(
                rows, uniform_numbers(generator, rows).numpy()[..., 0], choice.BLOCK
            )

        stops = self._flat_stop_probs
        number, stop_mass, _ = drawn(stops.float() if stops.itemsize == 2 else stops)
        path_index, length = np.divmod(number, self.stop_probs.shape[-1])
        rows = weights.of_numbers(path_index, length)
        token, mass, sums_and_lowest = drawn(rows)
        _refuse_rows_without_mass(np.minimum(stop_mass, mass))
        path, stop, drawn_token = map(torch.from_numpy, (path_index, length, token))
        return Sample(path, stop, drawn_token, rows, sums_and_lowest)

    def sample_stop(self, generator: Any) -> Stop:
        """Draw where each batch element stops, without a correction token.  ``sample`` draws the same stop.

        A stop without mass raises no error, because a check would wait for the device.  If ``mass`` is not
        positive, the stop is undefined.
        """
        path_index, length, number, mass = self._drawn_stop(generator)
        return Stop(path_index, length, take_token(self._flat_stop_probs, number), mass)

    def stop_of(self, drawn: Sample) -> Stop:
        """Return the stop of a sample.  Its ``mass`` is set to the probability of this stop."""
        number = drawn.path_index * self.stop_probs.shape[-1] + drawn.length
        prob = take_token(self._flat_stop_probs, number)
        return Stop(drawn.path_index, drawn.length, prob, prob)

    @property
    def rows_are_weights(self) -> bool:
        """True if the outcome was built so that correction rows are ``weights`` divided by their sums."""
        return isinstance(self.correction, _Normalised) and self.correction.weights is self.weights

    def checkable_rows(self, stop: Stop, drawn: Sample | None = None) -> Array:
        """Return the correction rows at a stop, or their weights if ``rows_are_weights``.

        If ``drawn`` holds the rows from which the token was drawn, these are returned, not computed again.
        """
        if (
            drawn is not None
            and drawn.weights is not None
            and (self.weights is None or self.rows_are_weights)
        ):
            return drawn.weights
        find = self.weights if self.rows_are_weights else self.correction
        return find(stop.path_index, stop.length)  # type: ignore[misc]

    def _drawn_stop(self, generator: Any) -> tuple[Array, Array, Array, Array]:
        """Draw a stop: (path index, length, index in the flattened stops, sum of all stop probabilities)."""
        lengths = self.stop_probs.shape[-1]
        stops = self._flat_stop_probs
        number, mass = draw(stops, uniform_numbers(generator, stops))
        return number // lengths, number % lengths, number, mass

    @property
    def _flat_stop_probs(self) -> Array:
        return self.stop_probs.reshape((*self.stop_probs.shape[:-2], -1))


@dataclass(frozen=True)
class _Normalised:
    """A function that computes correction rows: weights divided by their sums."""

    weights: Callable[[Array, Array], Array]

    def __call__(self, path_index: Array, length: Array) -> Array:
        return normalise(self.weights(path_index, length))


@dataclass(frozen=True)
class WeightsOnHost:
    """Weights of correction rows, computed from stops in numpy.  Calls take the stops as torch tensors.

    Attributes:
        of_numbers: (path_index [...], length [...]) in numpy -> rows in torch, [..., V].
        dtype: the dtype of the rows that a call returns.
    """

    of_numbers: Callable[[np.ndarray, np.ndarray], Array]
    dtype: Any

    def __call__(self, path_index: Array, length: Array) -> Array:
        return self.of_numbers(path_index.numpy(), length.numpy()).to(self.dtype)


def on_numbers_of_host(outcome: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """Decorate ``outcome`` so that it computes per-path numbers in numpy if the rows are torch on the host.

    For an operation on a few numbers torch takes several times as long as numpy, and a round has a hundred
    such operations.  So the method gets numpy paths together with torch rows.  It must read rows only through
    operators that accept this mix: ``take_token``, ``take_along``, the residual masses and
    ``CorrectionRows.residual``.  If the compiled loops do not accept the rows (``choice.rows_for_loops``),
    the method gets torch paths.  The same holds if the class does not itself set ``numbers_of_host``, because
    a subclass may read rows in any way.
    """

    @wraps(outcome)
    def method(self: Any, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        fits = vars(type(self)).get("numbers_of_host", False) and paths.ndim > 2
        if not fits or not choice.rows_for_loops(target_rows, draft_rows):
            return outcome(self, paths, target_rows, draft_rows)
        import torch

        with choice.quiet_floats():
            found = outcome(self, paths.numpy(), target_rows, draft_rows)
        stop_probs = torch.from_numpy(found.stop_probs).to(target_rows.dtype)
        weights = found.weights or found.correction
        return Outcome.from_weights(stop_probs, WeightsOnHost(weights, target_rows.dtype))

    return method


@dataclass(frozen=True)
class Sample:
    """One draw from an ``Outcome`` per batch element.

    Attributes:
        path_index, length, token: the accepted prefix and the correction token, [...] each.
        weights: the row from which the token was drawn, [..., V], or None.
        sums_and_lowest: ``sums_and_lowest(weights)`` if the draw computed it, otherwise None.
    """

    path_index: Array
    length: Array
    token: Array
    weights: Array | None = field(default=None, repr=False, compare=False)
    sums_and_lowest: tuple[Array, Array] | None = field(default=None, repr=False, compare=False)


class Stop(NamedTuple):
    """One accepted prefix per batch element; all fields have shape [...].

    Attributes:
        path_index, length: the path, and the number of its accepted tokens.
        prob: the probability of this stop.
        mass: the sum of the stop probabilities from which the stop was drawn.
    """

    path_index: Array
    length: Array
    prob: Array
    mass: Array


def sample_rows(rows: Array, generator: Any) -> Array:
    """Draw one index per row, with probability proportional to the entries.  [..., N] -> [...]

    We invert the cumulative sum in float64.  The index drawn is the first entry with mass whose cumulative
    share exceeds u in [0, 1).  The largest share is exactly 1, and an entry of zero is never drawn.

    Raises:
        InvalidOutcomeError: a row has no mass.
    """
    number, mass = draw(rows, uniform_numbers(generator, rows))
    _refuse_rows_without_mass(mass)
    return number


def _refuse_rows_without_mass(mass: Array) -> None:
    if on_host(mass):
        if not bool((mass > 0).all()):
            raise InvalidOutcomeError(NO_MASS)
        return
    import torch

    # On an accelerator the device raises the error later, so that the host does not wait.
    torch._assert_async(torch.all(mass > 0), NO_MASS)


NO_MASS = "cannot sample from a row without mass"


def uniform_numbers(generator: Any, like: Array, out: Array | None = None) -> Array:
    """Draw one uniform number in [0, 1) per row of ``like``, [..., 1], in its array library and device.

    If ``generator`` is a list, take its next array.  If it is a function, call it with the shape.  If ``out``
    is given, write the numbers into this tensor.
    """
    shape, drawn = (*like.shape[:-1], 1), None
    if isinstance(generator, list):
        drawn = generator.pop(0)
    elif callable(generator):
        drawn = generator(shape)
    elif isinstance(like, np.ndarray):
        drawn = generator.random(shape)
    if drawn is not None:
        return drawn if out is None else out.copy_(drawn)
    import torch

    if out is not None:
        return torch.rand(shape, generator=generator, out=out)
    return torch.rand(shape, generator=generator, device=like.device, dtype=torch.float64)


class Deviation(NamedTuple):
    """Distances of arrays from a probability law, one entry per batch element.

    Attributes:
        lowest: the smallest entry, or the sum of the negative entries.  If no entry is negative, it may be 0.
        sum_error: |sum - 1|.
    """

    lowest: Array
    sum_error: Array

    @property
    def error(self) -> Array:
        """The larger of -lowest and sum_error; NaN if either is NaN."""
        return namespace(self.lowest).maximum(-self.lowest, self.sum_error)

    def within(self, tolerance: Any) -> Array:
        """True if the error is at most the tolerance.  False for NaN, which fails every comparison."""
        return self.error <= tolerance


def stop_deviation(stop_probs: Array) -> Deviation:
    """Compute how far stop probabilities are from a law.  [..., K, L+1] -> [...]

    Example:
        >>> stop_deviation(np.array([[[0.75, 0.5]], [[-0.5, 1.5]]]))
        Deviation(lowest=array([ 0. , -0.5]), sum_error=array([0.25, 0.  ]))
    """
    xp = namespace(stop_probs)
    flat = stop_probs.reshape((*stop_probs.shape[:-2], -1))
    return Deviation(0 - xp.sum(positive_part(-flat), axis=-1), abs(xp.sum(flat, axis=-1) - 1))


def correction_deviation(
    rows: Array, probs: Array, are_weights: bool = False, found: tuple[Array, Array] | None = None
) -> tuple[Deviation, Array]:
    """Compute how far correction rows are from laws, weighted with the probabilities of their stops.

    A row of zeros has no error here.  Its output is undefined, and callers count it as undefined.

    Args:
        rows: [..., V].
        probs: probabilities of the stops, [...].
        are_weights: True if the laws are the rows divided by their sums.
        found: ``sums_and_lowest(rows)`` if it is known.

    Returns:
        The deviation, and a mask of the rows in which all entries are zero, [...].
    """
    total, lowest = sums_and_lowest(rows) if found is None else found
    if choice.numbers_beside(total, probs):
        total, lowest = total.numpy(), lowest.numpy()
    xp = namespace(probs)
    total, lowest = xp.asarray(total), xp.asarray(lowest)
    empty = (lowest == 0) & (total == 0)
    if are_weights:
        whole = abs(xp.where(total == 0, ones_like(total), total))
        lowest, total = lowest / whole, abs(total) / whole
    return Deviation(lowest * probs, zero_where(empty, abs((total - 1) * probs))), empty


def sums_and_lowest(rows: Array) -> tuple[Array, Array]:
    """Compute the sum and the smallest entry of each row.  [..., V] -> [...], [...]

    If the smallest entry is positive, the function may return 0 instead.
    """
    if choice.rows_for_loops(rows) and rows.itemsize > 2:
        return tuple(choice.row_kernels().sums_and_lowest(rows))
    return rows.sum(-1), namespace(rows).min(rows, axis=-1)
