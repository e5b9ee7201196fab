"""Verifiers out of what people have: a function of one tuple of drafts, or a sampler.

>>> from spectheory import certify, instances
>>> def accept_or_resample(paths, target_rows, draft_rows, generator):
...     '''Speculative sampling of one path, as one would write it for a decoding loop.'''
...     tokens = []
...     for token, target, draft in zip(paths[0], target_rows[0], draft_rows[0]):
...         if generator.random() >= target[token] / draft[token]:
...             residual = [max(p - q, 0) for p, q in zip(target, draft)]
...             return [*tokens, generator.choice(len(residual), p=[r / sum(residual) for r in residual])]
...         tokens.append(token)
...     return [*tokens, generator.choice(len(target_rows[0][-1]), p=target_rows[0][-1])]
>>> certificate = certify(black_box(accept_or_resample), instances.two_token(2))
>>> print(certificate.is_valid, certificate.block_efficiency)
True 19/9
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from spectheory.arrays import Array, normalise
from spectheory.audit.replay import MAX_RUNS, CoinGenerator, all_runs
from spectheory.contexts import context_number, prefix_numbers, rows_along
from spectheory.drafts import DraftProcess, draft_process
from spectheory.errors import EnumerationTooLargeError, InvalidInputError, InvalidOutcomeError
from spectheory.exact_numbers import is_exact
from spectheory.outcome import Outcome
from spectheory.pair import ModelPair, check_pair
from spectheory.validate import check_confidence, check_count
from spectheory.verifier import defined_at, users_code

OneTuple = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[Any, Any]]
"""(paths [K, L], target_rows [K, L+1, V], draft_rows [K, L, V]) -> stop_probs [K, L+1], rows [K, L+1, V]."""
Sampler = Callable[[np.ndarray, np.ndarray, np.ndarray, Any], Sequence[int]]
"""(paths [K, L], target_rows [K, L+1, V], draft_rows [K, L, V], generator) -> tokens, the correction last."""


class PerSample:
    """A verifier out of a function of one tuple of drafts; see ``per_sample``."""

    def __init__(self, function: OneTuple, name: str) -> None:
        self.function, self.name = function, name

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        """The function's answers, tuple after tuple."""
        answers = [self._answer(*drafted) for drafted in zip(paths, target_rows, draft_rows, strict=True)]
        stops, rows = (np.stack(part) for part in zip(*answers, strict=True))
        return Outcome.from_rows(stops, rows)

    def _answer(self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray) -> list[np.ndarray]:
        """Of one tuple of drafts: stop probabilities [K, L+1] and correction rows [K, L+1, V]."""
        returned = self.function(paths, target_rows, draft_rows)
        dtype = object if is_exact(target_rows) else float
        try:
            stops, rows = (np.array(part, dtype=dtype) for part in returned)
            fits = stops.shape == target_rows.shape[:-1] and rows.shape == target_rows.shape
        except (TypeError, ValueError):
            fits = False
        if not fits:
            raise InvalidOutcomeError(
                f"{self.name} returned {type(returned).__name__}; expected stop probabilities of shape "
                f"{target_rows.shape[:-1]} and correction rows of shape {target_rows.shape} for the drafts "
                f"{paths.tolist()}{defined_at(self.function)}"
            )
        return [stops, rows]


def per_sample(function: OneTuple, name: str | None = None) -> PerSample:
    """A verifier out of a function that looks at one tuple of drafts, in numpy or plain Python.

    Args:
        function: takes paths [K, L], target_rows [K, L+1, V] and draft_rows [K, L, V] and returns the stop
            probabilities [K, L+1] and the correction rows [K, L+1, V]; rows at stops it never makes may be
            zeros.
        name: of the verifier; by default the function's.

    Example:
        >>> def always_reject(paths, target_rows, draft_rows):
        ...     stops = 0 * target_rows[..., 0]
        ...     stops[0, 0] += 1
        ...     return stops, target_rows
        >>> from spectheory import certify, instances
        >>> certificate = certify(per_sample(always_reject), instances.two_token(2))
        >>> print(certificate.verifier, certificate.is_valid, certificate.block_efficiency)
        always_reject True 1
    """
    return PerSample(function, name or str(getattr(function, "__name__", "per_sample")))


class BlackBox(PerSample):
    """A verifier out of a sampler whose every run is followed; see ``black_box``."""

    def __init__(self, sampler: Sampler, name: str, max_runs: int, exact: bool = True) -> None:
        super().__init__(self._law, name)
        self.sampler, self.max_runs, self.exact = sampler, max_runs, exact

    def _law(self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray) -> tuple[Any, Any]:
        """The law of the sampler's output given one tuple of drafts, by all its runs."""
        return self._stops_and_rows(self._masses(paths, target_rows, draft_rows), paths, target_rows)

    def _masses(
        self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray
    ) -> dict[tuple[int, ...], Any]:
        """The probability of every output."""

        def run(generator: CoinGenerator) -> tuple[int, ...]:
            return self._tokens(self.sampler(paths, target_rows, draft_rows, generator))

        masses: dict[tuple[int, ...], Any] = defaultdict(int)
        for probability, tokens in all_runs(run, self.max_runs):
            masses[tokens] += probability
        return masses

    def _stops_and_rows(
        self, masses: dict[tuple[int, ...], Any], paths: np.ndarray, target_rows: np.ndarray
    ) -> tuple[Any, Any]:
        """The outputs as stop probabilities and correction rows."""
        exact = is_exact(target_rows)
        stops = np.full(target_rows.shape[:-1], Fraction(0), dtype=object)
        rows = np.full(target_rows.shape, Fraction(0), dtype=object)
        for tokens, mass in masses.items():
            path = self._credited_path(paths, tokens, target_rows.shape[-1])
            stops[path, len(tokens) - 1] += mass
            rows[path, len(tokens) - 1, tokens[-1]] += mass
        laws = rows / np.where(stops == 0, 1, stops)[..., None]
        return (stops, laws) if exact else (stops.astype(float), laws.astype(float))

    def _tokens(self, returned: Any) -> tuple[int, ...]:
        """What the sampler returned, as token ids."""
        try:
            return tuple(operator.index(token) for token in returned)
        except TypeError:
            raise InvalidOutcomeError(
                f"sampler {self.name!r} returned {returned!r}; expected token ids, an accepted prefix and a "
                "correction token"
            ) from None

    def _credited_path(self, paths: np.ndarray, tokens: tuple[int, ...], vocab_size: int) -> int:
        """The first drafted path that starts with all tokens but the last."""
        if not 1 <= len(tokens) <= paths.shape[-1] + 1 or not 0 <= tokens[-1] < vocab_size:
            raise InvalidOutcomeError(
                f"sampler {self.name!r} returned the tokens {list(tokens)}; expected 1 "
                f"to {paths.shape[-1] + 1} of them in 0..{vocab_size - 1}, an accepted prefix and a "
                "correction token"
            )
        for number, path in enumerate(paths):
            if tuple(path[: len(tokens) - 1].tolist()) == tokens[:-1]:
                return number
        raise InvalidOutcomeError(
            f"sampler {self.name!r} returned the tokens {list(tokens)}; all but the last must be the "
            f"start of a drafted path, and the drafts are {paths.tolist()}"
        )


def black_box(
    sampler: Sampler, name: str | None = None, max_runs: int = MAX_RUNS, exact: bool = True
) -> BlackBox:
    """A verifier out of a sampler, exactly: every way its random numbers can fall is followed.

    Args:
        sampler: takes paths [K, L], target_rows [K, L+1, V], draft_rows [K, L, V] and a generator, and
            returns the accepted tokens followed by the correction token.  It draws all its random numbers
            from the generator, which has those methods of ``numpy.random.Generator`` that ``CoinGenerator``
            lists.
        name: of the verifier; by default the function's.
        max_runs: follow no more runs for one tuple of drafts.
        exact: whether the sampler computes with the rationals it is given.  One that turns them into floats
            is off by rounding on an exact pair, and rightly found not lossless there; with ``exact=False`` it
            is given float64 rows, and judged within the tolerance of float64.

    Raises (when it is asked about drafts):
        NotEnumerableError: it uses a random number in a way that has no finite cases (``sampled_verdict``).
    """
    name = name or str(getattr(sampler, "__name__", "black_box"))
    return BlackBox(sampler, name, check_count("max_runs", max_runs), exact)


@dataclass(frozen=True)
class SampledVerdict:
    """What a χ² test says of a sampler that cannot be enumerated.

    Attributes:
        p_value: of the observed first L+1 tokens under the target's law.
        is_rejected: whether it is below the significance: the sampler is not lossless.
        statistic, degrees_of_freedom: of the test.
        detectable: a total variation that this test would find with the probability ``power``, whatever its
            shape; a smaller defect may go unnoticed.
        samples, significance, power: the setting.
    """

    p_value: float
    is_rejected: bool
    statistic: float
    degrees_of_freedom: int
    detectable: float
    samples: int
    significance: float
    power: float


def sampled_verdict(
    sampler: Sampler,
    pair: ModelPair,
    drafts: int | DraftProcess = 1,
    *,
    samples: int = 100_000,
    seed: int = 0,
    significance: float = 1e-3,
    power: float = 0.99,
) -> SampledVerdict:
    """A χ² test of a sampler's output, completed with the target, against the target's law, with its power.

    For samplers whose randomness cannot be enumerated.  It is no certificate: it can reject, and if it does
    not, it says how large a defect it would have seen.

    Args:
        sampler: as in ``black_box``; it is handed a ``numpy.random.Generator``.
        pair: the models; its float64 rows are used.
        drafts: K, for paths drafted i.i.d., or another draft process.
        samples: how many outputs are drawn.
        seed: of the drafts, the completions and the generator.
        significance: of the test.
        power: with which ``detectable`` is found.

    Raises:
        InvalidInputError: fewer than 5 samples are expected for every path of the target.
        InvalidOutcomeError: the sampler returned something that is no output.

    Example:
        >>> from spectheory import instances
        >>> def first_draft(paths, target_rows, draft_rows, generator):
        ...     return [*paths[0], 0]
        >>> sampled_verdict(first_draft, instances.two_token(1), samples=1_000).is_rejected
        True
    """
    from scipy.stats import chi2

    samples, significance, power = (
        check_count("samples", samples),
        check_confidence(significance, "significance"),
        check_confidence(power, "power"),
    )
    seed = check_count("seed", seed, at_least=0)
    if power <= significance:
        raise InvalidInputError(f"power must be above the significance {significance}, got {power}")
    pair, process = check_pair(pair).to_float(), draft_process(drafts)
    process.check(pair)
    if process.count_tuples(pair) > 1_000_000:
        raise EnumerationTooLargeError(
            "more than 10^6 tuples of drafts; use fewer tokens, drafts or a shorter path"
        )
    rng = np.random.default_rng(seed)
    tuples = next(process.tuples(pair, 1_000_000))
    drawn = rng.choice(len(tuples.leaves), samples, p=normalise(tuples.probs))
    box = BlackBox(sampler, getattr(sampler, "__name__", "sampler"), 1)
    size, length = pair.vocab_size, pair.draft_length
    counts = np.zeros(size ** (length + 1))
    for leaves in tuples.leaves[drawn]:
        paths = np.array([pair.context(length, int(leaf)) for leaf in leaves])
        prefixes = prefix_numbers(paths, size)
        target, draft = rows_along(pair.target, prefixes), rows_along(pair.draft, prefixes)
        with users_code(f"sampler {box.name!r}"):
            returned = sampler(paths, target, draft, rng)
        tokens = box._tokens(returned)
        box._credited_path(paths, tokens, size)
        while len(tokens) <= length:
            tokens = (
                *tokens,
                int(rng.choice(size, p=pair.target[len(tokens)][context_number(tokens, size)])),
            )
        counts[context_number(tokens, size)] += 1
    probs = pair.target_path_probs(length + 1)
    possible = probs > 0
    if samples * probs[possible].min() < 5:
        raise InvalidInputError(
            f"{samples} samples are too few for a χ² test: the rarest of {possible.sum()} outcomes has "
            f"probability {probs[possible].min():.3g}; draw at least {int(5 / probs[possible].min()) + 1}"
        )
    expected = samples * probs[possible]
    freedom = int(possible.sum()) - 1
    impossible = counts[~possible].sum() > 0
    statistic = float("inf") if impossible else float(((counts[possible] - expected) ** 2 / expected).sum())
    p_value = 0.0 if impossible else float(chi2.sf(statistic, freedom)) if freedom else 1.0
    # A defect of total variation d has a noncentrality of at least 4 samples d², Σ (Δ_i)²/p_i >= (Σ |Δ_i|)².
    needed = noncentrality(freedom, significance, power)
    return SampledVerdict(
        p_value,
        p_value < significance,
        statistic,
        freedom,
        sqrt(needed / (4 * samples)),
        samples,
        significance,
        power,
    )


def noncentrality(freedom: int, significance: float, power: float) -> float:
    """The noncentrality that a χ² test of a significance finds with a power.

    Example:
        >>> print(f"{noncentrality(1, 0.01, 0.99):.2f}")
        24.03
    """
    from scipy.special import chdtri, chndtr

    freedom = max(freedom, 1)
    threshold, low, high = chdtri(freedom, significance), 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if 1 - chndtr(threshold, freedom, middle) >= power else (middle, high)
    return high
