"""Outcome: the conditional law of a verifier's output given the drafted paths.

The exact output law on an enumerated pair, the Rao-Blackwell estimate of the block efficiency and the samples
of a decoding loop all follow from it.
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
            of them.  Sums to 1 over the last two axes.
        correction: a function (path_index [...], length [...]) -> [..., V], the law of the
            correction token Y given a stop at that prefix, one row per batch element.  Rows are
            computed on request.  Where the stop has probability zero the row may be anything.
        weights: the same function without the division by the row's sum, for ``sample``; by default
            ``correction``.

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
        """An outcome whose correction rows are weights divided by their sums; zeros without mass."""
        return Outcome(stop_probs, _Normalised(weights), weights)

    @staticmethod
    def from_rows(stop_probs: Array, correction_rows: Array) -> Outcome:
        """An outcome whose correction rows are all at hand, ``correction_rows`` [..., K, L+1, V]."""
        return Outcome(
            stop_probs,
            lambda path_index, length: take_row(take_path(correction_rows, path_index), length),
        )

    def length_probs(self) -> Array:
        """P(tau = i | drafts) for i = 0..L, [..., L+1]."""
        return namespace(self.stop_probs).sum(self.stop_probs, axis=-2)

    def expected_tokens(self) -> Array:
        """E[tau + 1 | drafts], tokens per target call given these drafts, [...].

        Averaged over drafts this is the Rao-Blackwell estimate of the block efficiency.
        """
        length_probs = self.length_probs()
        tokens = namespace(length_probs).arange(1, length_probs.shape[-1] + 1, device=length_probs.device)
        return namespace(length_probs).sum(length_probs * tokens, axis=-1)

    def sample(self, generator: Any) -> Sample:
        """Draw (path, length, correction token), one per batch element.

        Args:
            generator: a ``numpy.random.Generator`` for numpy outcomes, a ``torch.Generator`` on
                the same device for torch outcomes, or a function from a shape to uniform numbers in [0, 1).

        Raises:
            InvalidOutcomeError: a stop was drawn whose correction row has no mass.
        """
        if isinstance(self.weights, WeightsOnHost):
            return self._sample_on_host(self.weights, generator)
        path_index, length, number, stop_mass = self._drawn_stop(generator)
        rows = (self.weights or self.correction)(path_index, length)
        token, mass = draw(rows, uniform_numbers(generator, rows))
        _refuse_rows_without_mass(namespace(mass).minimum(stop_mass, mass))
        # From the number, since the correction may be a user's and write into its arguments.
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
        """Draw where each batch element stops, without a token: the first draw of ``sample``.

        Nothing is refused, so that nothing waits for a device; where ``mass`` is not positive the stop is
        undefined.
        """
        path_index, length, number, mass = self._drawn_stop(generator)
        return Stop(path_index, length, take_token(self._flat_stop_probs, number), mass)

    def stop_of(self, drawn: Sample) -> Stop:
        """The stop that a sample made, of the mass of its probability alone."""
        number = drawn.path_index * self.stop_probs.shape[-1] + drawn.length
        prob = take_token(self._flat_stop_probs, number)
        return Stop(drawn.path_index, drawn.length, prob, prob)

    @property
    def rows_are_weights(self) -> bool:
        """Whether correction rows are ``weights`` divided by their sums, by construction."""
        return isinstance(self.correction, _Normalised) and self.correction.weights is self.weights

    def checkable_rows(self, stop: Stop, drawn: Sample | None = None) -> Array:
        """The correction rows at a stop, weights where ``rows_are_weights``; those drawn from, if at hand."""
        if (
            drawn is not None
            and drawn.weights is not None
            and (self.weights is None or self.rows_are_weights)
        ):
            return drawn.weights
        find = self.weights if self.rows_are_weights else self.correction
        return find(stop.path_index, stop.length)  # type: ignore[misc]

    def _drawn_stop(self, generator: Any) -> tuple[Array, Array, Array, Array]:
        """(path, length, number among all stops, mass of all stops)."""
        lengths = self.stop_probs.shape[-1]
        stops = self._flat_stop_probs
        number, mass = draw(stops, uniform_numbers(generator, stops))
        return number // lengths, number % lengths, number, mass

    @property
    def _flat_stop_probs(self) -> Array:
        return self.stop_probs.reshape((*self.stop_probs.shape[:-2], -1))


@dataclass(frozen=True)
class _Normalised:
    """Correction rows that are weights divided by their sums."""

    weights: Callable[[Array, Array], Array]

    def __call__(self, path_index: Array, length: Array) -> Array:
        return normalise(self.weights(path_index, length))


@dataclass(frozen=True)
class WeightsOnHost:
    """Weights of correction rows, computed from stops that numpy has; asked by torch as well.

    Attributes:
        of_numbers: (path_index [...], length [...]) of numpy -> rows of torch, [..., V].
        dtype: of the rows that torch is given.
    """

    of_numbers: Callable[[np.ndarray, np.ndarray], Array]
    dtype: Any

    def __call__(self, path_index: Array, length: Array) -> Array:
        return self.of_numbers(path_index.numpy(), length.numpy()).to(self.dtype)


def on_numbers_of_host(outcome: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """A method ``outcome`` whose numbers are numpy's where rows are torch's in the memory of the host.

    torch takes several times as long as numpy for an operation on a few numbers, and a round has a hundred.
    So the method is given paths of numpy beside rows of torch.  It must read rows only through the operators
    that take both: ``take_token``, ``take_along``, the residual masses and ``CorrectionRows.residual``.  Rows
    that these loops do not take (``choice.rows_for_loops``) reach it with paths of torch.  So do the rows of
    a class that does not say ``numbers_of_host`` itself: a subclass in another module may read them as it
    likes.
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
    """One draw from an ``Outcome`` per batch element; all fields have shape [...], but for the last.

    Attributes:
        path_index, length, token: the accepted prefix and the correction token.
        weights: that the token was drawn from, [..., V], where they are at hand.
        sums_and_lowest: of the weights, where the draw has found them, see ``sums_and_lowest``.
    """

    path_index: Array
    length: Array
    token: Array
    weights: Array | None = field(default=None, repr=False, compare=False)
    sums_and_lowest: tuple[Array, Array] | None = field(default=None, repr=False, compare=False)


class Stop(NamedTuple):
    """One accepted prefix per batch element; all fields have shape [...].

    Attributes:
        path_index, length: which path, and how many of its tokens.
        prob: of this stop.
        mass: the total it was drawn from, the sum of the stop probabilities.
    """

    path_index: Array
    length: Array
    prob: Array
    mass: Array


def sample_rows(rows: Array, generator: Any) -> Array:
    """One index per row, drawn with probability proportional to the entries.  [..., N] -> [...]

    By inversion of the cumulative sum in float64.  An entry of zero is never drawn: the search runs
    over entries with mass only, for the first whose share of the total exceeds u in [0, 1); the
    largest share is exactly 1.

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

    # On an accelerator the device refuses, when it comes to it: nothing waits for the answer.
    torch._assert_async(torch.all(mass > 0), NO_MASS)


NO_MASS = "cannot sample from a row without mass"


def uniform_numbers(generator: Any, like: Array, out: Array | None = None) -> Array:
    """Uniform numbers in [0, 1), [..., 1], of the kind and device of ``like``; from a list its next ones.

    They are written into a tensor ``out``, if there is one.
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
    """How far numbers are from a law, one entry per batch element.

    Attributes:
        lowest: the smallest entry, or the sum of those below 0; 0 may stand for one above.
        sum_error: |sum - 1|.
    """

    lowest: Array
    sum_error: Array

    @property
    def error(self) -> Array:
        """The larger of the two faults, NaN if either is."""
        return namespace(self.lowest).maximum(-self.lowest, self.sum_error)

    def within(self, tolerance: Any) -> Array:
        """Whether the error is at most the tolerance; NaN, which fails every comparison, is not."""
        return self.error <= tolerance


def stop_deviation(stop_probs: Array) -> Deviation:
    """How far stop probabilities are from a law.  [..., K, L+1] -> [...]

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
    """How far correction rows are from laws, weighted with the probabilities of their stops.

    A row of zeros has no error here: the output is undefined there, and is counted as such.

    Args:
        rows: [..., V].
        probs: of the stops, [...].
        are_weights: the laws are the rows divided by their sums.
        found: ``sums_and_lowest(rows)``, if at hand.

    Returns:
        The deviation, and whether all entries of a row are zero, bool [...].
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
    """The sum of every row, and its smallest entry; 0 may stand for one above.  [..., V] -> [...], [...]"""
    if choice.rows_for_loops(rows) and rows.itemsize > 2:
        return tuple(choice.row_kernels().sums_and_lowest(rows))
    return rows.sum(-1), namespace(rows).min(rows, axis=-1)
