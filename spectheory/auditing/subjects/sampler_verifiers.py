"""Build verifiers from a function of one tuple of drafts, or from a sampler.

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
>>> certificate = certify(from_sampler(accept_or_resample), instances.two_token(2))
>>> print(certificate.verdict, certificate.block_efficiency)
lossless 19/9
"""

import operator
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from spectheory.auditing.tape.coins import CoinGenerator
from spectheory.auditing.tape.decisions import MAX_RUNS, NotEnumerableError, Tape, all_runs, unswallowed
from spectheory.foundation.arrays import Array, like_rows
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.foundation.exact_numbers import is_exact
from spectheory.foundation.validation import check_count
from spectheory.verification.outcome import Outcome
from spectheory.verification.sampler_runs import RunsOnTuples, SamplerRun, numpy_copy
from spectheory.verification.user import OtherArithmeticError, defined_at

OneTuple = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[Any, Any]]
"""(paths [K, L], target_rows [K, L+1, V], draft_rows [K, L, V]) -> stop_probs [K, L+1], rows [K, L+1, V]."""
Sampler = Callable[[np.ndarray, np.ndarray, np.ndarray, Any], Sequence[int]]
"""(paths [K, L], target_rows [K, L+1, V], draft_rows [K, L, V], generator) -> tokens, the correction last."""


class TupleVerifier:
    """A verifier from a function of one tuple of drafts; see ``from_loop``.

    Attributes:
        function: the user's function.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function, self.name = function, name

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        copies = map(numpy_copy, (paths, target_rows, draft_rows))
        answers = [self._answer(*drafted) for drafted in zip(*copies, strict=True)]
        stops, rows = (np.stack(part) for part in zip(*answers, strict=True))
        if is_exact(target_rows):
            return Outcome.from_rows(stops, rows)
        return Outcome.from_rows(like_rows(stops, target_rows), like_rows(rows, target_rows))

    def _answer(self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray) -> list[np.ndarray]:
        returned = self._law(paths, target_rows, draft_rows)
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

    def _law(self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray) -> tuple[Any, Any]:
        """The stop probabilities and correction rows of one tuple."""
        return self.function(paths, target_rows, draft_rows)


def from_loop(function: OneTuple, name: str | None = None) -> TupleVerifier:
    """Build a verifier from a function of one tuple of drafts, in numpy or plain Python.

    Args:
        function: takes paths [K, L], target_rows [K, L+1, V] and draft_rows [K, L, V] and returns the stop
            probabilities [K, L+1] and the correction rows [K, L+1, V]; the row of a stop of probability 0 may
            be zeros.
        name: the verifier's name; by default the function's.

    Raises (in ``outcome``):
        InvalidOutcomeError: the function returns other shapes.

    Example:
        >>> def always_reject(paths, target_rows, draft_rows):
        ...     stops = 0 * target_rows[..., 0]
        ...     stops[0, 0] += 1
        ...     return stops, target_rows
        >>> from spectheory import certify, instances
        >>> certificate = certify(from_loop(always_reject), instances.two_token(2))
        >>> print(certificate.verifier, certificate.verdict, certificate.block_efficiency)
        always_reject lossless 1
    """
    return TupleVerifier(function, name or str(getattr(function, "__name__", "from_loop")))


class SamplerVerifier(TupleVerifier, RunsOnTuples):
    """A verifier from a sampler, of which we follow every run; see ``from_sampler``."""

    def __init__(self, sampler: Sampler, name: str, max_runs: int, exact: bool = True) -> None:
        super().__init__(sampler, name)
        self.max_runs, self.exact = max_runs, exact

    @property
    def sampler(self) -> Sampler:
        """The sampler function."""
        return self.function

    def run_on_tuple(
        self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray, generator: Any
    ) -> SamplerRun:
        """Run the sampler once.  ``simulate`` and ``decode`` call this if the law has too many cases."""
        tokens = self.tokens(self._run(paths, target_rows, draft_rows, generator))
        path_index = self.credited_path(paths, tokens, target_rows.shape[-1])
        return SamplerRun(path_index, len(tokens) - 1, tokens[-1])

    def _run(self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray, generator: Any) -> Any:
        """Call the sampler with new copies of its arguments, so that no run sees changes of another run."""
        return self.sampler(paths.copy(), target_rows.copy(), draft_rows.copy(), generator)

    def _law(self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray) -> tuple[Any, Any]:
        """Follow all runs on one tuple of drafts, and return the law of the sampler's output."""

        def run(tape: Tape) -> tuple[int, ...]:
            with unswallowed():
                returned = self._run(paths, target_rows, draft_rows, CoinGenerator(tape))
                tokens = self.tokens(returned)
            if tape.rounded is not None and is_exact(target_rows):
                raise OtherArithmeticError(
                    f"sampler {self.name!r} computes with floats, such as {tape.rounded!r}, on exact rows: "
                    "rounding would count as its defect; use from_sampler(sampler, exact=False), or compute "
                    f"with the entries it is given{defined_at(self.sampler)}"
                )
            return tokens

        masses: dict[tuple[int, ...], Any] = defaultdict(int)
        try:
            for probability, tokens in all_runs(run, self.max_runs):
                masses[tokens] += probability
        except NotEnumerableError as error:
            raise type(error)(
                f"{error}; judge the sampler by `spectheory.audit(sampler, signature='numpy')`"
            ) from error
        return self._stops_and_rows(masses, paths, target_rows)

    def _stops_and_rows(
        self, masses: dict[tuple[int, ...], Any], paths: np.ndarray, target_rows: np.ndarray
    ) -> tuple[Any, Any]:
        exact = is_exact(target_rows)
        stops = np.full(target_rows.shape[:-1], Fraction(0), dtype=object)
        rows = np.full(target_rows.shape, Fraction(0), dtype=object)
        for tokens, mass in masses.items():
            path = self.credited_path(paths, tokens, target_rows.shape[-1])
            stops[path, len(tokens) - 1] += mass
            rows[path, len(tokens) - 1, tokens[-1]] += mass
        laws = rows / np.where(stops == 0, 1, stops)[..., None]
        return (stops, laws) if exact else (stops.astype(float), laws.astype(float))

    def tokens(self, returned: Any) -> tuple[int, ...]:
        """Check that the returned tokens are integers, and return them as a tuple."""
        try:
            return tuple(operator.index(token) for token in returned)
        except TypeError:
            raise InvalidOutcomeError(
                f"sampler {self.name!r} returned {returned!r}; expected token ids, an accepted prefix and a "
                "correction token"
            ) from None

    def credited_path(self, paths: np.ndarray, tokens: tuple[int, ...], vocab_size: int) -> int:
        """Index of the first drafted path that starts with all tokens except the last."""
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


def from_sampler(
    sampler: Sampler, name: str | None = None, max_runs: int = MAX_RUNS, exact: bool = True
) -> SamplerVerifier:
    """Build a verifier from a sampler.  Its exact law comes from following all cases of its random numbers.

    Args:
        sampler: takes paths [K, L], target_rows [K, L+1, V], draft_rows [K, L, V] and a generator, and
            returns the accepted tokens followed by the correction token.  It must draw all its random numbers
            from the generator, which has the methods of ``numpy.random.Generator`` that ``CoinGenerator``
            lists.
        name: the verifier's name; by default the function's.
        max_runs: the largest number of runs for one tuple of drafts.
        exact: whether the sampler computes with rationals.  We refuse a sampler that converts them to floats.
            With ``exact=False`` we give it float64 rows, and judge it within their tolerance.

    Raises (in ``outcome``):
        NotEnumerableError: the sampler uses a random number in a way that has no finite cases; use
            ``audit(sampler, signature="numpy")``.
        InvalidOutcomeError: it returns something other than an accepted prefix and a correction token, or
            uses rounded floats on exact rows.
    """
    name = name or str(getattr(sampler, "__name__", "from_sampler"))
    return SamplerVerifier(sampler, name, check_count("max_runs", max_runs), exact)
