"""A sampler that somebody ships, as a verifier: its exact law, computed from the code that exists."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from itertools import count, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from spectheory.adapt import BlackBox
from spectheory.arrays import like_rows
from spectheory.audit.battery import with_point_mass_drafts
from spectheory.audit.derandomise import UndefinedDrawError
from spectheory.audit.intercept import GLOBAL_SEED, Journal, intercepted
from spectheory.audit.laws import given, marginal, total_variation
from spectheory.audit.relaxations import Relaxation
from spectheory.audit.replay import (
    MAX_RUNS,
    Branch,
    CoinGenerator,
    HiddenRandomnessError,
    NotEnumerableError,
    Tape,
    all_runs,
)
from spectheory.audit.signatures import SEED, Call, Row, signature_called, verified_batch
from spectheory.contexts import prefix_numbers, rows_along
from spectheory.errors import InvalidOutcomeError
from spectheory.exact_numbers import fractions_if_exact
from spectheory.pair import ModelPair
from spectheory.verifier import Verifier, users_code

T = TypeVar("T")
Tokens = tuple[int, ...]
MAX_RUNS_OF_TWO_CALLS = 40
"""The most runs of two calls in a row that are followed for one tuple of drafts."""
SEEDS = (f"torch's global generator: {GLOBAL_SEED}", f"the generator that is handed over: {SEED}")
HIDDEN = "the sampler is random beyond the numbers that are answered here, or keeps something between calls"
REPEATED = 8
"""The first of so many runs is made twice."""


@dataclass(frozen=True)
class Provenance:
    """Which code was audited.

    Attributes:
        package, version: as installed; empty for code that no installed package holds.
        file: relative to where packages are installed, or to the current directory.
        sha256: of the file's bytes.
        line: where the function starts.
    """

    package: str
    version: str
    file: str
    sha256: str
    line: int = 1

    @staticmethod
    def of(function: Any) -> Provenance:
        """The provenance of a function or a class; of one without a file, its name only."""
        try:
            path = Path(inspect.getfile(inspect.unwrap(function))).resolve()
            content = path.read_bytes()
        except (TypeError, OSError):
            return Provenance("", "", getattr(function, "__qualname__", repr(function)), "")
        top = function.__module__.partition(".")[0]
        try:
            package = _distributions(tuple(sys.path)).get(top, [top])[0]
            number = version(package)
        except PackageNotFoundError:
            package = number = ""
        roots = [Path(entry).resolve() for entry in (*sys.path, ".") if Path(entry).is_dir()]
        inside = [str(path.relative_to(root)) for root in roots if path.is_relative_to(root)]
        name = min(inside, key=len, default=path.name)
        code = getattr(inspect.unwrap(function), "__code__", None)
        line = 1 if code is None else code.co_firstlineno
        return Provenance(package, number, name, hashlib.sha256(content).hexdigest(), line)


@cache
def _distributions(path: tuple[str, ...]) -> Mapping[str, list[str]]:
    """Which distributions on the path hold a package; to read the lists of all their files takes long."""
    return packages_distributions()


class Shipped(BlackBox, Verifier):
    """A shipped sampler with its random numbers replaced.

    Args:
        function: the sampler, unmodified.
        signature: how it is called, a name of ``SIGNATURES``.
        name: of the verifier; by default the function's.
        relaxation: the law it states, where that is not the target's; it is then asked about the pairs
            ``relaxation.stated``.
        provenance: of the code, where the function does not know it.
        mixes: what its batches may mix, names of ``MIXES``; for the signature "batch".
        box_bits: how finely products of random numbers are enclosed (``Tape``).
        max_runs: follow no more runs for one tuple of drafts.
        stand_ins: what of the sampler's surroundings is not the shipped code, in words.
        seeds: of its random numbers where these have more than a generator's, in words.

    Attributes:
        journal: what was seen in the runs so far.
        note: what a reader of the certificate has to know.
        reported: the draft rows by depth that the sampler is told, where these are not those of the drafts.
        undecided: the largest probability, given any drafts, of runs that took the answer of a box: the law
            is off by no more, in total variation.

    Example:
        >>> import torch
        >>> from spectheory import certify, instances
        >>> def accept(draft_tokens, target_probs, draft_probs, coins, final_coin):
        ...     '''One drafted token, accepted if the coin is below p / q; the residual of two tokens.'''
        ...     token = int(draft_tokens[0])
        ...     if coins[0] >= target_probs[0, token] / draft_probs[0, token]:
        ...         return [1 - token]
        ...     return [token, int(final_coin >= target_probs[1, 0])]
        >>> certificate = certify(Shipped(accept, "coins"), instances.bernoulli("1/2", "1/4"))
        >>> print(certificate.is_valid, certificate.block_efficiency)
        True 7/4
    """

    def __init__(
        self,
        function: Callable[..., Any],
        signature: str,
        name: str | None = None,
        *,
        relaxation: Relaxation | None = None,
        provenance: Provenance | None = None,
        mixes: Sequence[str] = (),
        box_bits: int = Tape.box_bits,
        max_runs: int = MAX_RUNS,
        stand_ins: Sequence[str] = (),
        seeds: Sequence[str] = (),
    ) -> None:
        super().__init__(function, name or str(getattr(function, "__name__", "sampler")), max_runs)
        self.signature_name, self.signature = signature, signature_called(signature)
        self.provenance = provenance or Provenance.of(function)
        self.source = f"{self.provenance.package} {self.provenance.version}".strip() or self.provenance.file  # type: ignore[misc]
        self.single_path = signature != "sampler"  # type: ignore[misc]
        self.relaxation, self.mixes, self.box_bits = relaxation, tuple(mixes), box_bits
        self.stand_ins, self.seeds = tuple(stand_ins), (*SEEDS, *seeds)
        self.journal = Journal()
        self.undecided = Fraction(0)
        self.note = ""
        self.reported: tuple[np.ndarray, ...] | None = None
        self._laws: dict[Any, tuple[Any, Any, Fraction]] = {}

    def prepared(self, pair: ModelPair) -> tuple[Shipped, ModelPair]:
        """The sampler and the pair that is asked about where ``pair`` is meant.

        The drafts are those that the signature takes; the target is the law that the sampler states.
        """
        pair = with_point_mass_drafts(pair) if self.signature.point_mass_drafts else pair
        return self, (pair if self.relaxation is None else self.relaxation.stated(pair))

    def output_masses(
        self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray
    ) -> tuple[dict[tuple[int, ...], Any], Fraction]:
        """The probability of every output, () for a run without one, and of runs that took a box's answer."""

        def once(tape: Tape) -> Tokens:
            try:
                (tokens,) = self._calls(Call(paths, target_rows, draft_rows, tape, self.journal))
            except UndefinedDrawError as error:
                self.journal.undefined.add(str(error))
                return ()
            return tokens

        return self._law_of_runs(once)

    def _law_of_runs(self, once: Callable[[Tape], T]) -> tuple[dict[T, Fraction], Fraction]:
        """The probability of every result, and of runs that took a box's answer.

        Raises:
            HiddenRandomnessError: a run that was repeated had another result.
        """
        number = count()

        def run(generator: CoinGenerator) -> tuple[T, bool]:
            tape = generator.tape
            tape.box_bits = self.box_bits
            result = once(tape)
            self.journal.runs += 1
            if next(number) % REPEATED == 0:
                self._must_repeat(once, result, tape)
            return result, tape.is_approximate

        law: dict[T, Fraction] = defaultdict(Fraction)
        undecided = Fraction(0)
        for probability, (result, is_approximate) in all_runs(run, self.max_runs):
            law[result] += probability
            undecided += probability * is_approximate
        return law, undecided

    def forget(self) -> None:
        """Follow all runs anew when a law is asked for again."""
        self._laws.clear()

    def _must_repeat(self, once: Callable[[Tape], T], result: T, tape: Tape) -> None:
        """The same numbers lead to the same result."""
        again = Tape(tape.made, box_bits=self.box_bits)
        other = once(again)
        self.journal.repeated += 1
        if (other, again.made) != (result, tape.made):
            raise HiddenRandomnessError(
                f"{HIDDEN}: it gave {_text(result)} and {_text(other)} for the same numbers"
            )

    def _calls(self, call: Call, times: int = 1) -> tuple[Tokens, ...]:
        """The tokens of so many calls, one after the other, in one run."""
        returned = []
        with intercepted(call.tape, self.journal), users_code(f"sampler {self.name!r}", self.sampler):
            for call.tape.call in range(times):
                returned.append(self.signature.call(self.sampler, call))
        return tuple(map(self._tokens, returned))

    def _law(self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray) -> tuple[Any, Any]:
        """As for a black box; a run without an output is a stop whose correction row has no mass."""
        target, draft = self._told(paths, target_rows, draft_rows)
        asked = (paths.tobytes(), tuple(target.ravel()), tuple(draft.ravel()))
        if asked not in self._laws:
            self._laws[asked] = self._enumerated(paths, target, draft)
        stops, rows, undecided = self._laws[asked]
        self.undecided = max(self.undecided, undecided)
        return like_rows(stops, target_rows), like_rows(rows, target_rows)

    def _told(
        self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The rows of both models that the sampler is given where it is asked about these."""
        target, draft = fractions_if_exact(target_rows), fractions_if_exact(draft_rows)
        if self.relaxation is not None:
            target = self.relaxation.target_rows(target, draft)
        if self.reported is not None:
            draft = rows_along(self.reported, prefix_numbers(paths, target.shape[-1]))
        return target, draft

    def _enumerated(
        self, paths: np.ndarray, target: np.ndarray, draft: np.ndarray
    ) -> tuple[Any, Any, Fraction]:
        masses, undecided = self.output_masses(paths, target, draft)
        undefined = masses.pop((), 0)
        stops, rows = self._stops_and_rows(masses, paths, target)
        if undefined:
            free = np.argwhere(stops == 0)
            if not len(free):
                raise InvalidOutcomeError(
                    f"sampler {self.name!r} ends without an output: {min(self.journal.undefined)}"
                )
            stops[tuple(free[0])] += undefined
        return stops, rows, undecided

    def batch_law(self, rows: Sequence[Row]) -> tuple[dict[tuple[tuple[int, ...], ...], Fraction], Fraction]:
        """The probability of every output of a batch, and of runs that took a box's answer.

        Args:
            rows: of the signature "batch".
        """
        nothing = np.empty((0, 0))

        def once(tape: Tape) -> tuple[Tokens, ...]:
            call = Call(nothing, nothing, nothing, tape, self.journal)
            try:
                with intercepted(tape, self.journal), users_code(f"sampler {self.name!r}", self.sampler):
                    outputs = verified_batch(self.sampler, call, rows)
            except UndefinedDrawError as error:
                self.journal.undefined.add(str(error))
                outputs = [[] for _ in rows]
            return tuple(map(tuple, outputs))

        return self._law_of_runs(once)

    def two_calls(
        self,
        paths: np.ndarray,
        target_rows: np.ndarray,
        draft_rows: np.ndarray,
        max_runs: int = MAX_RUNS_OF_TWO_CALLS,
    ) -> int:
        """Follow two calls in a row; what the second one takes from the first is written to the journal.

        Every branch of the first call is followed by one branch of the second, then by another one, and so
        on, until all were followed or there are too many.  Where all were, the second call must have the law
        of the first, whatever the tokens of the first.

        Args:
            paths, target_rows, draft_rows: of both calls.
            max_runs: follow no more runs of two calls.

        Returns:
            How many runs were followed.

        Raises:
            HiddenRandomnessError: followed twice, they have two laws.
        """
        rows = self._told(paths, target_rows, draft_rows)
        law, followed = self._law_of_two_calls(paths, rows, max_runs)
        self.journal.pairs_of_calls += followed
        once = {} if law is None else marginal(law, 0)
        distances = {
            tokens: total_variation(later, once)
            for tokens, later in given(law or {}).items()
            if later != once
        }
        if distances:
            if self._law_of_two_calls(paths, rows, max_runs)[0] != law:
                raise HiddenRandomnessError(f"{HIDDEN}: followed twice, two calls in a row have two laws")
            worst = max(distances, key=lambda tokens: distances[tokens])
            text = f"after the tokens {list(worst)} the next call has another law, total variation"
            self.journal.findings.add(("randomness", f"{text} {float(distances[worst]):.3g}"))
        return followed

    def _law_of_two_calls(
        self, paths: np.ndarray, rows: tuple[np.ndarray, np.ndarray], max_runs: int
    ) -> tuple[dict[tuple[Tokens, ...], Fraction] | None, int]:
        """The law of the tokens of both, ``None`` where not all is known; how many runs were followed."""
        is_known = True

        def calls(times: int, generator: CoinGenerator) -> tuple[list[Branch], tuple[Tokens, ...]]:
            nonlocal is_known
            outputs: tuple[Tokens, ...] = ()
            try:
                outputs = self._calls(Call(paths, *rows, generator.tape, self.journal), times)
            except (UndefinedDrawError, NotEnumerableError):  # which the law of one call will say
                is_known = False
            is_known &= not generator.tape.is_approximate
            return list(generator.tape.made), outputs

        first_calls = [made for _, (made, _) in islice(all_runs(partial(calls, 1)), max_runs)]
        turns = deque(all_runs(partial(calls, 2), given=made) for made in first_calls)
        law: dict[tuple[Tokens, ...], Fraction] = defaultdict(Fraction)
        followed = 0
        while turns and followed < max_runs:
            run = next(turns[0], None)
            if run is None:
                turns.popleft()
                continue
            turns.rotate(-1)
            followed += 1
            law[run.result[1]] += run.probability
        return law if is_known and not turns else None, followed


def _text(tokens: Any) -> str:
    """Tokens, or those of every row of a batch, as they are returned."""
    return f"[{', '.join(map(_text, tokens))}]" if isinstance(tokens, tuple) else str(tokens)
