"""Runs with ordinary random numbers: runs that we repeat without stand-ins, or that we do not follow."""

import math
import random
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from spectheory.auditing.tape.atoms import Number, Source
from spectheory.auditing.tape.coins import UniformDraw
from spectheory.auditing.tape.decisions import NotEnumerableError, OrdinaryNumbers, Tape
from spectheory.auditing.tape.races import Exponential, ExponentialDraw, Race


@dataclass
class OrdinaryRun:
    """Takes the place of a tape in a run whose random numbers are handed to the sampler, or drawn.

    Attributes:
        seed: a number added to the seeds of generators, different in every run.
        call: the number of earlier calls of the sampler in this run.
    """

    seed: int
    call: int = 0

    @property
    def is_watched(self) -> bool:
        """Whether we check that arguments are unchanged.  This is slow, so we do it in one run of 16."""
        return self.seed % 16 == 0


RAREST = Fraction(1, 2**20)
"""A winner that is less likely may not exist in float32, whose uniform numbers are multiples of 2^-24."""


def ordinary_numbers(tape: Tape, seed: int) -> OrdinaryNumbers:
    """Draw ordinary values that lead to the decisions of a run that has ended.

    Raises:
        NotEnumerableError: there may be no such values.  A number has decided two races, or a race with a
            rare winner, or a box of cases has got one answer.
    """
    races = [race for race in map(_race_of, tape.numbers) if race is not None]
    if tape.is_approximate or not all(race.is_last and _is_likely(race) for race in races):
        raise NotEnumerableError("the decisions of the run may have no ordinary numbers")
    rng = random.Random(seed)
    return OrdinaryNumbers([_value(number, rng) for number in tape.numbers], list(tape.cases))


def _race_of(number: Any) -> Race | None:
    if isinstance(number, Number):
        number = number.sources[0].logarithm
    elif isinstance(number, ExponentialDraw):
        number = number.source
    return number.race if isinstance(number, Exponential) else None


def _is_likely(race: Race) -> bool:
    rates = race.rates()
    total = sum(rates.values())
    return race.found is None or not total or rates[race.clocks[race.found].source] > RAREST * total


def _value(number: Any, rng: random.Random) -> float:
    if isinstance(number, UniformDraw):
        return number.ordinary(rng.random())
    if isinstance(number, Number):
        return float(number.at([_atom(number.sources[0], rng)]))
    return _exponential(number.source, rng) / float(number.rate)


def _atom(source: Source, rng: random.Random) -> int:
    """Draw one of the atoms that are still possible."""
    if source.logarithm is not None and source.logarithm.race is not None:
        share = math.exp(-_exponential(source.logarithm, rng))
        atom = int((1 - share if source.of_complement else share) * source.grid.atoms)
        return min(max(atom, source.low), source.high - 1)
    return rng.randrange(source.low, source.high)


def _exponential(source: Exponential, rng: random.Random) -> float:
    """Draw an exponential number, in a race of rates of sum 1: less than half its rate if it won it."""
    race = source.race
    if race is None or race.found is None:
        return rng.expovariate(1)
    rates = race.rates()
    share = float(rates.get(source, 0) / (sum(rates.values()) or 1))
    if race.clocks[race.found].source is source:
        return share * rng.uniform(0.25, 0.5) or 1.0
    return share * rng.uniform(2, 4) or 1.0
