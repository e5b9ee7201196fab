"""The shared table of pairs: named instances of the papers and random exact pairs, with a number of drafts.

Every verifier and every program is crossed with this one table.  Random pairs are fixed by the
seed in their name; their small weights make zeros and ties in target/draft frequent.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import chain

import pytest

from spectheory import instances
from spectheory.exact.law import OutputLaw, output_law
from spectheory.optima import optimum
from spectheory.pairs.drafts import DraftProcess, Iid
from spectheory.pairs.drafts.process import ANY_PROCESS
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms import verifiers

SOLVES_A_PROGRAM = ("otm", "optimal_multipath")
"""These grow with V^K or V^L in one call and get pairs of their own."""

GENERAL_VERIFIERS = {
    name: verifier
    for name, verifier in verifiers.items()
    if verifier.lossless and "iid" in verifier.draft_processes and verifier.max_draft_length is None
    if name not in SOLVES_A_PROGRAM
}
"""Lossless verifiers of i.i.d. drafts of any length that need nothing but the rows on the paths."""

GENERAL = tuple(GENERAL_VERIFIERS)
READ_DRAFT_ROWS = tuple(name for name in GENERAL if verifiers[name].draft_processes is not ANY_PROCESS)


@dataclass(frozen=True)
class Case:
    """One pair and a number of drafts K.

    Attributes:
        name: where the pair comes from, with its size or its seed.
        pair: the models.
        num_drafts: K.
        has_optimum: whether the multi-path program is small enough to be solved in every test.
    """

    name: str
    pair: ModelPair
    num_drafts: int
    has_optimum: bool

    def __str__(self) -> str:
        return self.name


RANDOM_SIZES: tuple[tuple[int, int, int, int, int], ...] = (
    # V, L, K, how many, and how many more in the deep tests
    (2, 1, 2, 10, 20),
    (2, 1, 3, 6, 14),
    (2, 2, 2, 22, 24),
    (2, 2, 3, 10, 20),
    (2, 3, 2, 8, 16),
    (2, 3, 3, 5, 9),
    (3, 1, 2, 10, 20),
    (3, 1, 3, 6, 14),
    (3, 2, 2, 14, 16),
    (3, 2, 3, 4, 10),
    (3, 3, 2, 4, 4),
    (3, 3, 3, 1, 0),
    (4, 1, 2, 8, 16),
    (4, 1, 3, 4, 8),
    (4, 2, 2, 3, 3),
    (4, 2, 3, 1, 1),
    (4, 3, 2, 1, 1),
)
"""313 random pairs, 117 of them in every run; their multi-path programs are solved up to 730 antichains."""

NAMED_LENGTHS = {"two_token": 3, "sticky_chain": 3, "point_masses": 3, "bernoulli_quarter_half": 3}
"""Draft lengths 1..3 of these, 1..2 of the other named instances."""


def _solvable(pair: ModelPair) -> bool:
    """At most a thousand antichains: N_0 = 2, N_L = 1 + N_{L-1}^V (theory.md Statement 5.1)."""
    count = 2
    for _ in range(pair.draft_length):
        count = 1 + count**pair.vocab_size
    return count <= 1000


@cache
def named_cases() -> tuple[Case, ...]:
    cases = []
    for name, build in instances.NAMED.items():
        for length in range(1, NAMED_LENGTHS.get(name, 2) + 1):
            pair = build(length)
            cases += [Case(f"{name}-L{length}-K{k}", pair, k, _solvable(pair)) for k in (1, 2, 3)]
    return tuple(cases)


@cache
def random_cases(vocab_size: int, draft_length: int, num_drafts: int, how_many: int) -> tuple[Case, ...]:
    """Random exact pairs of one size; the seed is made of the size and the pair's number."""
    cases = []
    for number in range(how_many):
        seed = ((vocab_size * 10 + draft_length) * 10 + num_drafts) * 100 + number
        pair = instances.random_rational(seed, vocab_size, draft_length)
        cases.append(Case(f"random-seed{seed}", pair, num_drafts, _solvable(pair)))
    return tuple(cases)


@cache
def groups() -> dict[str, tuple[Case, ...]]:
    """The table in groups of one named instance or one random size, for parametrised tests."""
    table: dict[str, tuple[Case, ...]] = {}
    for case in named_cases():
        key = case.name.split("-")[0]
        table[key] = (*table.get(key, ()), case)
    for V, L, K, how_many, _ in RANDOM_SIZES:
        table[f"random-V{V}-L{L}-K{K}"] = random_cases(V, L, K, how_many)
    return table


@cache
def deep_groups() -> dict[str, tuple[Case, ...]]:
    """The rest of the table: more random pairs of most sizes."""
    return {
        f"more-V{V}-L{L}-K{K}": random_cases(V, L, K, how_many + more)[how_many:]
        for V, L, K, how_many, more in RANDOM_SIZES
        if more
    }


@cache
def every_group() -> dict[str, tuple[Case, ...]]:
    return groups() | deep_groups()


ONE_POSITION = [key for key, cases in groups().items() if cases[0].pair.draft_length == 1]
"""Groups that begin with a pair of one drafted token."""


def every_pair() -> Iterator[ModelPair]:
    cases = chain.from_iterable(every_group().values())
    yield from {id(case.pair): case.pair for case in cases}.values()


def law_of(name: str, pair: ModelPair, process: DraftProcess) -> OutputLaw:
    """The law of a verifier on a pair, computed once per test process; pairs are compared by identity."""
    key = name, id(pair), process
    if key not in _LAWS:
        _LAWS[key] = pair, output_law(name, pair, drafts=process)  # a pair that is kept keeps its id
    return _LAWS[key][1]


_LAWS: dict[tuple[str, int, DraftProcess], tuple[ModelPair, OutputLaw]] = {}


def law_of_case(name: str, case: Case) -> OutputLaw:
    return law_of(name, case.pair, Iid(case.num_drafts))


def law_on_one_path(name: str, pair: ModelPair) -> OutputLaw:
    """With one draft; the pairs of the table come with several numbers of drafts."""
    return law_of(name, pair, Iid(1))


@cache
def best_of(pair: ModelPair, process: DraftProcess) -> Fraction:
    """The optimum, computed once for all verifiers of these drafts."""
    return optimum(pair, drafts=process).value


def parametrized_by_group(*, has_optimum: bool = False) -> pytest.MarkDecorator:
    """One test per group of the table; every third is quick.

    Args:
        has_optimum: only groups with a case whose multi-path program is small enough.
    """
    quick = groups().keys() - {"uniform_4_2"}
    chosen = [
        key if number % 3 == 0 and key in quick else pytest.param(key, marks=pytest.mark.deep)
        for number, (key, cases) in enumerate(every_group().items())
        if not has_optimum or any(case.has_optimum for case in cases)
    ]
    return pytest.mark.parametrize("group", chosen)


def small_cases() -> tuple[Case, ...]:
    chosen = [case for case in named_cases() if case.pair.draft_length <= 2 and case.num_drafts <= 2]
    for V, L, K in ((2, 2, 2), (2, 2, 3), (2, 3, 2), (3, 2, 2), (3, 1, 3), (4, 1, 2)):
        chosen += random_cases(V, L, K, 6)
    return tuple(chosen)
