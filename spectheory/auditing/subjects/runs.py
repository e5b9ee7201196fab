"""Follow all runs of a sampler, and make some of them again with ordinary random numbers."""

import re
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import nullcontext
from fractions import Fraction
from itertools import count
from typing import Any, TypeVar

import torch

from spectheory.auditing.following.intercept import GLOBAL_SEED, Journal, intercepted
from spectheory.auditing.subjects.asked import Numbers
from spectheory.auditing.subjects.programs import Program
from spectheory.auditing.subjects.signatures import SEED, Call
from spectheory.auditing.tape.decisions import (
    MAX_RUNS,
    HiddenRandomnessError,
    NotEnumerableError,
    Tape,
    all_runs,
)
from spectheory.auditing.tape.ordinary import OrdinaryRun, ordinary_numbers
from spectheory.auditing.tape.races import UndefinedDrawError
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.verification.user import users_code

T = TypeVar("T")
OTHER_SEED = 1_000_003
SEEDS = (
    f"torch's global generator: {GLOBAL_SEED}, and multiples of {OTHER_SEED} more where a run is repeated",
    f"the generator that is handed over: {SEED}, and multiples of {OTHER_SEED} more where a run is repeated",
)
HIDDEN = "the sampler uses randomness that is not replaced, or keeps state between calls"
STAND_INS = re.compile(r"\b(LookUpModel|TableModel|TableTokenizer|Cropped|Row|Request)\b")
"""Our classes of objects that a sampler gets, as Python's error texts name them."""
QUICK_RUNS = 600
"""A run of a loop takes up to 8 ms.  The published loops of docs/auditing_loops.md have up to 576 runs."""
REPEATED = 8
"""We make the first of every 8 runs again."""
WITHOUT_DECISION = 8
"""We make a run without a decision that often again: all that it draws may be hidden, as fair coins are that
agree with probability 2^-8."""


class TimeIsUpError(NotEnumerableError):
    """An audit has reached its time limit.  We report the findings so far."""


class Runs:
    """The runs of a sampler.

    Attributes:
        sampler: the function, as its user wrote it.
        words: the sampler, for error texts.
        journal: the observations in all runs so far.
        reasons: why runs had no valid output, since the last ``reasons.clear()``.
        box_bits: how finely we enclose products of random numbers (``Tape``).
        max_runs: the largest number of runs of a call.
        quick: whether we use only a small part of the battery, and at most ``QUICK_RUNS`` runs of a call.
        seed: a number that we add to the seeds of generators, and that must not change the law.
        deadline: the reading of ``time.monotonic`` after which we start no run.
    """

    sampler: Any
    words: Any
    journal: Journal
    reasons: set[str]
    box_bits, max_runs, quick, seed = Tape.box_bits, MAX_RUNS, False, 0
    deadline: float | None = None

    def in_a_row(self, numbers: Numbers, times: int, once: Callable[[Call], T]) -> list[T]:
        """Call the sampler ``times`` times with these random numbers, and check its arguments afterwards."""
        call, returned = Call(numbers, self.journal), list[T]()
        is_followed = not isinstance(numbers, OrdinaryRun)
        if is_followed and isinstance(self.sampler, Program):
            raise NotEnumerableError("the sampler is another program, which cannot be followed")
        with (
            intercepted(numbers, self.journal) if is_followed else nullcontext(),  # type: ignore[arg-type]
            users_code(self.words, self.sampler, may_refuse=True),
        ):
            for numbers.call in range(times):
                returned.append(once(call))
            call.check_inputs()
        return returned

    def by_seed(self, call: Callable[[Numbers], T], nothing: T) -> Callable[[int], T]:
        """A call with ordinary random numbers: (seed) -> its label; ``nothing`` if it is not valid."""
        return lambda seed: self.valid(call, OrdinaryRun(seed), nothing)

    def follow(self, once: Callable[[Any], T], nothing: T) -> tuple[dict[T, Fraction], Fraction]:
        """Follow all runs of a call.

        Return the probability of every label, and the probability of runs that took the answer of a box.
        ``nothing`` is the label of runs that are not valid.
        """

        number = count()

        def run(tape: Tape) -> tuple[T, bool]:
            tape.box_bits, tape.seed = self.box_bits, self.seed
            tape.is_watched = next(number) % REPEATED == 0
            result, error = self._outcome(once, tape, nothing)
            self.journal.runs += 1
            if tape.is_watched or error is not None:
                self.journal.repeated += 1
                for attempt in range(1 if tape.made else WITHOUT_DECISION):
                    again = self.journal.repeated + attempt
                    self._must_repeat(once, tape, (nothing, result), error, again)
            return result, tape.is_approximate

        law: dict[T, Fraction] = defaultdict(Fraction)
        undecided = Fraction(0)
        most = min(self.max_runs, QUICK_RUNS) if self.quick else self.max_runs
        for probability, (result, is_approximate) in all_runs(run, most):
            law[result] += probability
            undecided += probability * is_approximate
        return law, undecided

    def check_time(self) -> None:
        """Raise ``TimeIsUpError`` if the deadline is over."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise TimeIsUpError("the time is up; the cases that were finished are in the scope")

    def valid(self, once: Callable[[Any], T], tape: Tape | OrdinaryRun, nothing: T) -> T:
        """Return the result of one run.  If it is not valid, note the reason and return ``nothing``.

        Raises:
            NotEnumerableError: the run fails because a stand-in or the system lacks something.
            TimeIsUpError: the deadline is over.
        """
        return self._outcome(once, tape, nothing)[0]

    def _outcome(
        self, once: Callable[[Any], T], tape: Tape | OrdinaryRun, nothing: T
    ) -> tuple[T, Exception | None]:
        """As ``valid``, with the error."""
        self.check_time()
        try:
            return once(tape), None
        except (UndefinedDrawError, InvalidOutcomeError) as error:
            if isinstance(error, InvalidOutcomeError):
                check_stand_ins(error)
                if error.__cause__ is not None:
                    self.journal.raised.add(str(error))
            self.reasons.add(str(error))
            self.journal.undefined.add(str(error))
            return nothing, error

    def _must_repeat(
        self,
        once: Callable[[Any], T],
        tape: Tape,
        results: tuple[T, T],
        error: Exception | None,
        number: int,
    ) -> None:
        """Make a run again with ordinary numbers and another seed, and check that it has the same result.

        This finds random numbers that we do not follow, and numbers that the code reads where we do not see
        it.  If the run has no ordinary numbers, we follow it again.

        Args:
            once: makes the run.
            tape: the tape of the run.
            results: the result of a run that fails, and the result of this run.
            error: the error, if this run failed.
            number: of the seed.

        Raises:
            NotEnumerableError: the run fails, but not, or not for sure, with ordinary numbers.
            HiddenRandomnessError: the result differs.
        """
        nothing, result = results
        seed = self.seed + number * OTHER_SEED
        fails = isinstance(error, InvalidOutcomeError)
        try:
            again = Tape((), again=ordinary_numbers(tape, seed), seed=seed, is_watched=False)
            other, failure = self._outcome(once, again, nothing)
            causes = [None if each is None else type(each.__cause__) for each in (error, failure)]
            is_alike = (other, type(failure)) == (result, type(error)) and causes[0] == causes[1]
        except NotEnumerableError:  # there are no other numbers, or with them the run branches in another way
            again = Tape(tape.made, box_bits=self.box_bits, seed=seed)
            other = result if fails else self.valid(once, again, nothing)
            is_alike = not fails and (other, again.made) == (result, tape.made)
        if fails and not is_alike:
            raise NotEnumerableError(
                f"{error}; the same run with ordinary numbers does not fail like this, so the failure may be "
                "due to how random numbers are followed"
            )
        if not is_alike:
            gave = f"it gave {_text(result)} and {_text(other)}" if other != result else "it asked for others"
            raise HiddenRandomnessError(f"{HIDDEN}: {gave} for the same numbers")


def check_stand_ins(error: InvalidOutcomeError) -> None:
    """Refuse a run that asks a stand-in, such as a model, or the system for something that it lacks.

    Raises:
        NotEnumerableError: the stand-in lacks something, or a file, a network or a process failed.
    """
    cause = error.__cause__
    owner = getattr(cause, "obj", None) if isinstance(cause, AttributeError) else None
    lacks = type(owner).__module__.startswith("spectheory.") and not isinstance(owner, torch.Tensor)
    if lacks or (isinstance(cause, TypeError) and STAND_INS.search(str(cause))):
        raise NotEnumerableError(
            f"{error}; models, tokenizers and requests are stand-ins that have only what the page says"
        )
    if isinstance(cause, OSError):
        raise NotEnumerableError(f"{error}; files, networks and processes are not the sampler's") from error


def _text(tokens: Any) -> str:
    return f"[{', '.join(map(_text, tokens))}]" if isinstance(tokens, tuple) else str(tokens)
