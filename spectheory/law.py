"""The exact output law of a verifier on an enumerated pair.

All K-tuples of drafted paths are enumerated, vectorised in chunks; tuples of probability zero are
left out.  The conditional laws the verifier gives are summed to the output law
R(a_{1:i+1}) = P(X_{1:tau} = a_{1:i}, Y = a_{i+1}), and everything else is a function of R
(THEORY, section 1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, islice
from math import comb, factorial, prod
from typing import Any

import numpy as np

from spectheory.algorithms import find_verifier
from spectheory.arrays import to_flint, to_fractions
from spectheory.errors import EnumerationTooLargeError, InvalidInputError, InvalidOutcomeError
from spectheory.outcome import Outcome, Verifier, as_verifier, is_users_own
from spectheory.pair import ModelPair

DEFAULT_MAX_TUPLES = 2_000_000


@dataclass(frozen=True, eq=False)
class OutputLaw:
    """R and what follows from it.

    Attributes:
        pair: the pair in the arithmetic the law was computed in.
        num_drafts: K.
        masses: ``masses[i]`` = R(a_{1:i+1}) over all paths of length i+1, shape [V^(i+1)], i = 0..L.
    """

    pair: ModelPair
    num_drafts: int
    masses: tuple[np.ndarray, ...]

    @property
    def block_efficiency(self) -> Any:
        """E[tau + 1] = sum_a |a| R(a): tokens per target call, the correction token included."""
        return sum(mass.sum() * length for length, mass in enumerate(self.masses, start=1))

    @cached_property
    def length_probs(self) -> list[Any]:
        """P(tau = i) for i = 0..L."""
        return [mass.sum() for mass in self.masses]

    @cached_property
    def accepted_masses(self) -> tuple[np.ndarray, ...]:
        """P(X_{1:tau} starts with a) for every node a of depth 0..L, arrays of shape [V^depth]."""
        levels: list[np.ndarray] = []
        for mass in reversed(self.masses):
            level = mass.reshape(-1, self.pair.vocab_size).sum(axis=1)
            if levels:
                level = level + levels[-1].reshape(-1, self.pair.vocab_size).sum(axis=1)
            levels.append(level)
        return tuple(reversed(levels))

    @cached_property
    def completed_law(self) -> np.ndarray:
        """The law of the output completed to L+1 tokens with the target, shape [V^(L+1)]."""
        law = self.masses[0]
        for depth in range(1, len(self.masses)):
            law = (law[:, None] * self.pair.target[depth]).ravel() + self.masses[depth]
        return law

    def prefix_law(self, depth: int) -> np.ndarray:
        """The law of the first ``depth`` tokens of the completed output, shape [V^depth]."""
        return self.completed_law.reshape(self.pair.vocab_size**depth, -1).sum(axis=1)

    @cached_property
    def node_budgets(self) -> tuple[np.ndarray, ...]:
        """D(a_{1:i}) = 1 - sum_{j <= i} R(a_{1:j}) / p(a_{1:j}) for depths 0..L+1.

        Where p(a) = 0 the budget is undefined; there the parent's is carried on, so that a path
        without target mass never looks like a violation on its own.
        """
        size = self.pair.vocab_size
        budgets = [self.pair.target_path_probs(0)]
        for depth, mass in enumerate(self.masses, start=1):
            path_probs = self.pair.target_path_probs(depth)
            spent = np.where(path_probs == 0, mass - mass, mass / np.where(path_probs == 0, 1, path_probs))
            budgets.append(np.repeat(budgets[-1], size) - spent)
        return tuple(budgets)

    @cached_property
    def deviation(self) -> np.ndarray:
        """Completed law minus target law p_{L+1}, shape [V^(L+1)]; zero for a lossless verifier."""
        return self.completed_law - self.pair.target_path_probs(self.pair.draft_length + 1)

    @property
    def total_variation(self) -> Any:
        """Half the sum of |completed law - p_{L+1}|: the defect of the verifier."""
        return np.abs(self.deviation).sum() / 2


def output_law(
    verifier: str | Any,
    pair: ModelPair,
    num_drafts: int = 1,
    *,
    max_tuples: int = DEFAULT_MAX_TUPLES,
    chunk_entries: int = 4_000_000,
    tolerance: float = 1e-9,
) -> OutputLaw:
    """The law of the verifier's output when K paths are drafted i.i.d. from the pair's draft model.

    Rational for an exact pair and an exact verifier, float64 otherwise.

    Args:
        verifier: a name or any object with ``outcome(paths, target_rows, draft_rows)``.
        pair: the enumerated models.
        num_drafts: K.  A verifier that looks at one path only is given the first.
        max_tuples: the largest number of tuples of drafted paths that is enumerated.
        chunk_entries: how many row entries are held at a time.
        tolerance: how far a conditional law in float64 may be from non-negative and sum 1.

    Raises:
        EnumerationTooLargeError: more tuples than ``max_tuples``.
        InvalidOutcomeError: the verifier returned something that is not a conditional law.

    Example:
        >>> from spectheory import instances
        >>> law = output_law("token", instances.two_token(1))
        >>> print(law.masses[0])
        [Fraction(0, 1) Fraction(1, 3)]
    """
    checked = find_verifier(verifier) if isinstance(verifier, str) else as_verifier(verifier)
    validate_num_drafts(num_drafts)
    if not checked.exact:
        pair = pair.to_float()
    drafts = _DraftTuples(pair, 1 if checked.single_path else num_drafts, checked.exchangeable)
    if drafts.count > max_tuples:
        raise EnumerationTooLargeError(
            f"{drafts.count} tuples of {drafts.num_drafts} drafted paths (vocabulary {pair.vocab_size}, "
            f"draft length {pair.draft_length}) exceed max_tuples = {max_tuples}; use fewer drafts, a "
            "shorter draft length, restrict() to fewer tokens, or `spectheory simulate`"
        )
    # python-flint's rationals are several times faster; a user's own code may hold Fractions.
    convert = to_flint if pair.is_exact and not is_users_own(checked) else np.asarray
    summed = _sum_outcomes(checked, pair, drafts, convert, chunk_entries, tolerance)
    return OutputLaw(pair, num_drafts, summed)


def validate_num_drafts(num_drafts: Any) -> None:
    """Refuse anything but a whole number K >= 1."""
    if isinstance(num_drafts, bool) or not isinstance(num_drafts, (int, np.integer)) or num_drafts < 1:
        raise InvalidInputError(f"num_drafts must be a whole number of at least 1, got {num_drafts!r}")


class _DraftTuples:
    """All K-tuples (or multisets, with their multiplicities) of paths the draft can propose."""

    def __init__(self, pair: ModelPair, num_drafts: int, as_multisets: bool) -> None:
        self.pair, self.num_drafts, self.as_multisets = pair, num_drafts, as_multisets
        self.path_probs = pair.draft_path_probs(pair.draft_length)
        self.support = np.flatnonzero(self.path_probs > 0)
        leaves = len(self.support)
        self.count = comb(leaves + num_drafts - 1, num_drafts) if as_multisets else leaves**num_drafts

    def chunks(self, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(positions in ``support`` [N, K], multiplicities [N]), N <= size."""
        leaves = len(self.support)
        if not self.as_multisets:
            for start in range(0, self.count, size):
                numbers = np.arange(start, min(start + size, self.count))
                digits = [numbers // leaves**k % leaves for k in range(self.num_drafts)]
                yield np.stack(digits, axis=1), np.ones(len(numbers), dtype=np.int64)
            return
        multisets = combinations_with_replacement(range(leaves), self.num_drafts)
        while batch := list(islice(multisets, size)):
            yield np.array(batch), np.array([_multiplicity(multiset) for multiset in batch])


def _multiplicity(multiset: tuple[int, ...]) -> int:
    """In how many orders a sorted tuple can be drafted."""
    counts = [multiset.count(value) for value in set(multiset)]
    return factorial(len(multiset)) // prod(factorial(count) for count in counts)


def _sum_outcomes(
    verifier: Verifier,
    pair: ModelPair,
    drafts: _DraftTuples,
    convert: Any,
    chunk_entries: int,
    tolerance: float,
) -> tuple[np.ndarray, ...]:
    size, length = pair.vocab_size, pair.draft_length
    # For every leaf of the support: its tokens, its prefixes' numbers and the rows along it.
    prefixes = [drafts.support // size ** (length - depth) for depth in range(length + 1)]
    tokens = np.stack([prefixes[depth + 1] % size for depth in range(length)], axis=1)
    target_rows = np.stack([convert(pair.target[i])[prefixes[i]] for i in range(length + 1)], axis=1)
    draft_rows = np.stack([convert(pair.draft[i])[prefixes[i]] for i in range(length)], axis=1)
    leaf_probs = convert(drafts.path_probs)[drafts.support]
    zero = leaf_probs[0] - leaf_probs[0]
    masses = [np.full((size**depth, size), zero, dtype=leaf_probs.dtype) for depth in range(length + 1)]

    chunk = max(1, chunk_entries // (drafts.num_drafts * (length + 1) * size))
    for positions, multiplicities in drafts.chunks(chunk):
        outcome = verifier.outcome(tokens[positions], target_rows[positions], draft_rows[positions])
        weights = leaf_probs[positions].prod(axis=1) * multiplicities
        _check_stop_probs(verifier, outcome, tokens[positions], tolerance)
        for depth in range(length + 1):
            for path_index, probs in _stops_at(outcome.stop_probs[:, :, depth]):
                rows = outcome.correction(path_index, np.full(len(positions), depth))
                stops = np.flatnonzero(probs != 0)
                _check_rows(verifier, rows[stops], probs[stops], tolerance)
                leaf = positions[stops, path_index[stops]]
                mass = (weights[stops] * probs[stops])[:, None] * rows[stops]
                np.add.at(masses[depth], prefixes[depth][leaf], mass)
    result = tuple(mass.ravel() for mass in masses)
    if pair.is_exact:
        return tuple(_as_fractions(verifier, mass) for mass in result)
    return result


def _stops_at(stop_probs: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The non-zero entries of [N, K], as few (path_index [N], probs [N]) as hold them all.

    The r-th round takes from every tuple its r-th path with a non-zero probability, so that a
    verifier that stops on one path only is asked for one correction row per tuple and depth.
    """
    nonzero = stop_probs != 0
    order = np.argsort(~nonzero, axis=1, kind="stable")
    for rank in range(int(nonzero.sum(axis=1).max())):
        path_index = order[:, rank]
        probs = np.take_along_axis(stop_probs, path_index[:, None], axis=1)[:, 0]
        yield path_index, probs


def _as_fractions(verifier: Verifier, mass: np.ndarray) -> np.ndarray:
    try:
        return to_fractions(mass)
    except TypeError as error:
        raise InvalidOutcomeError(
            f"verifier {verifier.name!r} left exact arithmetic on an exact pair ({error}); compute with "
            "the entries it is given, or set its attribute exact = False"
        ) from error


def _check_stop_probs(verifier: Verifier, outcome: Outcome, tokens: np.ndarray, tolerance: float) -> None:
    stop_probs = outcome.stop_probs
    num_tuples, num_drafts, length = tokens.shape
    expected = (num_tuples, num_drafts, length + 1)
    if stop_probs.shape != expected:
        raise InvalidOutcomeError(
            f"verifier {verifier.name!r} returned stop_probs of shape {stop_probs.shape}; "
            f"expected [..., K, L+1] = {expected}"
        )
    slack = 0 if stop_probs.dtype == object else tolerance
    totals = stop_probs.sum(axis=(1, 2))
    wrong = (stop_probs < -slack).any(axis=(1, 2)) | (abs(totals - 1) > slack)
    if wrong.any():
        number = int(np.flatnonzero(wrong)[0])
        raise InvalidOutcomeError(
            f"verifier {verifier.name!r} returned stop probabilities that are not a law for the drafts "
            f"{tokens[number].tolist()}: they sum to {totals[number]}, "
            f"the smallest is {stop_probs[number].min()}"
        )


def _check_rows(verifier: Verifier, rows: np.ndarray, probs: np.ndarray, tolerance: float) -> None:
    slack = 0 if rows.dtype == object else tolerance
    lowest = (rows * probs[:, None]).min()
    error = abs((rows.sum(axis=1) - 1) * probs).max()
    if lowest < -slack or error > slack:
        raise InvalidOutcomeError(
            f"verifier {verifier.name!r} returned correction rows that are not laws: "
            f"smallest mass {lowest}, sum off by {error} at a stop it makes"
        )
