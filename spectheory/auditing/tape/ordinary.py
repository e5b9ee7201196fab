"""Runs with ordinary random numbers: runs that we repeat without stand-ins, or that we do not follow."""

import math
from dataclasses import dataclass
from itertools import chain
from typing import Any

from spectheory.auditing.tape.atoms import Number, Source
from spectheory.auditing.tape.coins import UniformDraw
from spectheory.auditing.tape.decisions import OrdinaryNumbers, Tape
from spectheory.auditing.tape.races import Exponential


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


def ordinary_numbers(tape: Tape) -> OrdinaryNumbers:
    """Values that lead to the decisions of a run that has ended.  An undecided number gets any value.

    If a number was in two races, the values are sure to give only the winner of the second race.
    """
    return OrdinaryNumbers(list(map(_value, tape.numbers)), list(tape.cases))


def _value(number: Any) -> float:
    if isinstance(number, UniformDraw):
        return number.ordinary()
    if isinstance(number, Number):
        return float(number.at([_atom(number.sources[0])]))
    return _exponential(number.source) / float(number.rate)


def _atom(source: Source) -> int:
    """One of the atoms that are still possible."""
    if source.logarithm is not None and source.logarithm.race is not None:
        share = math.exp(-_exponential(source.logarithm))
        atom = int((1 - share if source.of_complement else share) * source.grid.atoms)
        return min(max(atom, source.low), source.high - 1)
    middle = (source.low + source.high) // 2
    return next(
        (
            atom
            for atom in chain(range(middle, source.high), range(source.low, middle))
            if all(source.grid.value(atom) % by == rest for by, rest in source.remainders.items())
        ),
        middle,
    )


def _exponential(source: Exponential) -> float:
    """An exponential number: half its rate if it won its last race, twice its rate if it lost."""
    race = source.race
    if race is None or race.found is None:
        return 1.0
    is_winner = race.clocks[race.found].source is source
    return float(race.rates().get(source, 0)) * (0.5 if is_winner else 2.0) or 1.0
