"""The exact output law of a verifier on an enumerated pair.

All K-tuples of drafted paths are enumerated, vectorised in chunks; tuples of probability zero are
left out.  The conditional laws the verifier gives are summed to the output law
R(a_{1:i+1}) = P(X_{1:tau} = a_{1:i}, Y = a_{i+1}), and everything else is a function of R
(THEORY, section 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spectheory.algorithms import find_verifier
from spectheory.arrays import to_flint, to_fraction, to_fractions
from spectheory.drafts import DraftProcess, DraftTuples, Iid, draft_process
from spectheory.errors import EnumerationTooLargeError, InvalidOutcomeError
from spectheory.outcome import Outcome, Verifier, as_verifier, is_users_own
from spectheory.pair import ModelPair

DEFAULT_MAX_TUPLES = 2_000_000


@dataclass(frozen=True, eq=False)
class OutputLaw:
    """R and what follows from it.

    Attributes:
        pair: the pair in the arithmetic the law was computed in.
        drafts: the draft process.
        masses: ``masses[i]`` = R(a_{1:i+1}) over all paths of length i+1, shape [V^(i+1)], i = 0..L.
        undefined: the probability of a stop whose correction row has no mass: the algorithm divides 0
            by 0 and outputs nothing that is defined.  It is missing from ``masses`` and from the
            block efficiency, and counts towards the total variation.  Zero for a lossless verifier.
    """

    pair: ModelPair
    drafts: DraftProcess
    masses: tuple[np.ndarray, ...]
    undefined: Any = 0

    @property
    def num_drafts(self) -> int:
        """K."""
        return self.drafts.num_drafts

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
        """Half the sum of |completed law - p_{L+1}|: the defect of the verifier.

        An undefined output is one more outcome, which the target never makes.
        """
        return (np.abs(self.deviation).sum() + self.undefined) / 2


def output_law(
    verifier: str | Any,
    pair: ModelPair,
    num_drafts: int | None = None,
    *,
    drafts: DraftProcess | None = None,
    max_tuples: int = DEFAULT_MAX_TUPLES,
    chunk_entries: int = 4_000_000,
    tolerance: float = 1e-9,
) -> OutputLaw:
    """The law of the verifier's output on an enumerated pair.

    Rational for an exact pair and an exact verifier, float64 otherwise.

    Args:
        verifier: a name or any object with ``outcome(paths, target_rows, draft_rows)``.
        pair: the enumerated models.
        num_drafts: K paths drafted i.i.d.; 1 if neither it nor ``drafts`` is given.
        drafts: another draft process, instead of ``num_drafts``.
        max_tuples: the largest number of tuples of drafted paths that is enumerated.
        chunk_entries: how many row entries are held at a time.
        tolerance: how far a conditional law in float64 may be from non-negative and sum 1.

    Raises:
        InvalidInputError: the verifier is not valid for the draft process.
        EnumerationTooLargeError: more tuples than ``max_tuples``.
        InvalidOutcomeError: the verifier returned something that is not a conditional law.

    Example:
        >>> from spectheory import instances
        >>> law = output_law("token", instances.two_token(1))
        >>> print(law.masses[0])
        [Fraction(0, 1) Fraction(1, 3)]
    """
    checked = find_verifier(verifier) if isinstance(verifier, str) else as_verifier(verifier)
    process = draft_process(num_drafts, drafts)
    if not checked.exact:
        pair, process = pair.to_float(), process.to_float()
    process.check(pair)
    checked = checked.for_pair(pair, process)
    # A verifier of one path sees the first; the others have no influence and need no enumeration.
    seen = process.first_path() if checked.single_path else process
    as_multisets = checked.exchangeable and isinstance(seen, Iid)
    count = seen.count_tuples(pair, as_multisets)
    if count > max_tuples:
        raise EnumerationTooLargeError(
            f"{count} tuples of {seen.num_drafts} drafted paths (vocabulary {pair.vocab_size}, "
            f"draft length {pair.draft_length}) exceed max_tuples = {max_tuples}; use fewer drafts, a "
            "shorter draft length, restrict() to fewer tokens, or `spectheory simulate`"
        )
    entries = seen.num_drafts * (pair.draft_length + 1) * pair.vocab_size
    chunks = seen.tuples(pair, max(1, chunk_entries // entries), as_multisets)
    summed, undefined = _sum_outcomes(checked, pair, seen, chunks, tolerance)
    return OutputLaw(pair, process, summed, undefined)


def _sum_outcomes(
    verifier: Verifier,
    pair: ModelPair,
    process: DraftProcess,
    chunks: Iterable[DraftTuples],
    tolerance: float,
) -> tuple[tuple[np.ndarray, ...], Any]:
    """(R by depth, the probability of an undefined output)."""
    size, length = pair.vocab_size, pair.draft_length
    # python-flint's rationals are several times faster; a user's own code may hold Fractions.
    convert = to_flint if pair.is_exact and not is_users_own(verifier) else np.asarray
    target = [convert(level) for level in pair.target]
    draft = [[convert(level) for level in process.draft_levels(pair, k)] for k in range(process.num_drafts)]
    zero = target[0][0, 0] - target[0][0, 0]
    masses = [np.full((size**depth, size), zero, dtype=pair.target[0].dtype) for depth in range(length + 1)]
    undefined = zero
    for leaves, probs in chunks:
        # The number of every prefix, [N, K, L+1], and with it tokens and rows along the paths.
        prefixes = np.stack([leaves // size ** (length - depth) for depth in range(length + 1)], axis=-1)
        tokens = prefixes[..., 1:] % size
        target_rows = np.stack([target[i][prefixes[..., i]] for i in range(length + 1)], axis=-2)
        draft_rows = np.stack(
            [
                np.stack([draft[k][i][prefixes[:, k, i]] for i in range(length)], axis=-2)
                for k in range(process.num_drafts)
            ],
            axis=1,
        )
        outcome = verifier.outcome(tokens, target_rows, draft_rows)
        _check_stop_probs(verifier, outcome, tokens, tolerance)
        weights = convert(probs)
        for depth in range(length + 1):
            for path_index, stop in _stops_at(outcome.stop_probs[:, :, depth]):
                rows = outcome.correction(path_index, np.full(len(leaves), depth))
                made = np.flatnonzero(stop != 0)
                _check_rows(verifier, rows[made], stop[made], size, tolerance)
                empty = (rows[made] == 0).all(axis=1)
                undefined = undefined + (weights[made] * stop[made])[empty].sum()
                mass = (weights[made] * stop[made])[:, None] * rows[made]
                np.add.at(masses[depth], prefixes[made, path_index[made], depth], mass)
    flat = tuple(mass.ravel() for mass in masses)
    if not pair.is_exact:
        return flat, float(undefined)
    return tuple(_as_fractions(verifier, mass) for mass in flat), to_fraction(undefined)


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
    # Written so that NaN, which fails every comparison, counts as wrong.
    wrong = ~((stop_probs >= -slack).all(axis=(1, 2)) & (abs(totals - 1) <= slack))
    if wrong.any():
        number = int(np.flatnonzero(wrong)[0])
        raise InvalidOutcomeError(
            f"verifier {verifier.name!r} returned stop probabilities that are not a law for the drafts "
            f"{tokens[number].tolist()}: they sum to {totals[number]}, "
            f"the smallest is {stop_probs[number].min()}"
        )


def _check_rows(
    verifier: Verifier, rows: np.ndarray, probs: np.ndarray, vocab_size: int, tolerance: float
) -> None:
    if rows.shape != (len(probs), vocab_size):
        raise InvalidOutcomeError(
            f"verifier {verifier.name!r} returned correction rows of shape {rows.shape}; "
            f"expected [..., V] = {(len(probs), vocab_size)}"
        )
    slack = 0 if rows.dtype == object else tolerance
    lowest = (rows * probs[:, None]).min()
    sums = rows.sum(axis=1)
    # A row of zeros is no law but says so: the output is undefined there, and counted as such.
    error = abs(np.where((rows == 0).all(axis=1), sums - sums, (sums - 1) * probs)).max()
    if not (lowest >= -slack and error <= slack):
        raise InvalidOutcomeError(
            f"verifier {verifier.name!r} returned correction rows that are not laws: "
            f"smallest mass {lowest}, sum off by {error} at a stop it makes"
        )
