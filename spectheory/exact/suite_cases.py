"""Build suites: pairs and draft processes that distinguish wrong verifiers from lossless ones.

The standard suite has every small shape, and random pairs are drawn from a stated law.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from spectheory import instances
from spectheory.exact.certifying import drafts_in_words
from spectheory.foundation.validation import check_count, unknown_name
from spectheory.pairs.drafts import (
    ConfidenceTree,
    DraftProcess,
    HubTree,
    Iid,
    PerPath,
    PrefixTree,
    ShapedTree,
    TopTree,
    WithoutReplacement,
)
from spectheory.pairs.drafts.process import ALL_PROCESSES
from spectheory.pairs.pair import ModelPair
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier

_NAMED: Mapping[str, tuple[int, ...]] = {
    "two_token": (1, 2),
    "three_token_reversed": (1, 2),
    "bernoulli_quarter_half": (2,),
    "bernoulli_quarter_one": (2,),
    "bernoulli_one_half": (1,),
    "uniform_4_2": (2,),
    "uniform_equal": (1,),
    "equal_models": (2,),
    "disjoint_supports": (2,),
    "partial_overlap": (2,),
    "sticky_chain": (2,),
    "two_residual_tokens": (1, 2),
}
"""Named instances and their draft lengths."""
_RANDOM: tuple[tuple[int, int, int], ...] = ((6, 3, 2), (5, 2, 1), (3, 3, 1), (4, 2, 2), (6, 3, 1))
"""(seed, V, L) of random pairs that distinguish defects which the named pairs do not."""


def standard_pairs() -> dict[str, ModelPair]:
    """Build the smallest pairs of the suite: short named instances and a few random pairs, all exact.

    Labels end with the draft length, as ``"two_token-L2"``.  Labels of random pairs also have seed and
    vocabulary size.  At least one pair shows each defect, and no two pairs show the same set of defects.
    """
    named = [(name, length) for name, lengths in _NAMED.items() for length in lengths]
    pairs = {f"{name}-L{length}": instances.NAMED[name](length) for name, length in named}
    pairs |= {
        f"random_seed{seed}_V{vocab_size}-L{length}": instances.random_rational(seed, vocab_size, length)
        for seed, vocab_size, length in _RANDOM
    }
    return pairs


@dataclass(frozen=True)
class SuiteCase:
    """One pair of a suite, with a draft process."""

    name: str
    pair: ModelPair
    process: DraftProcess

    def __str__(self) -> str:
        return f"{self.name}, {drafts_in_words(self.process)}"


MAX_TUPLES = 700
"""Largest number of tuples of drafted paths, except for some cases of ``MAX_SHAPE``."""
MAX_SHAPE = 6_561
"""V^(LK) of the largest shapes.  Each has one or two pairs."""
SHAPES = tuple(
    (vocab_size, length, num_drafts)
    for vocab_size, length, num_drafts in product(range(2, 7), range(1, 5), range(1, 5))
    if vocab_size ** (length * num_drafts) <= MAX_SHAPE
)
"""All (V, L, K) of the standard suite: up to 6 tokens, draft length 4 and 4 drafts."""
MAX_RERUN = 729
"""Largest number of tuples of a case that is certified again in floats."""
QUICK_TUPLES = 16


def suite_for(verifier: Verifier, quick: bool = False) -> tuple[SuiteCase, ...]:
    """Build the standard suite of the draft processes and draft lengths that a verifier accepts.

    A user's object without ``draft_processes`` is certified on i.i.d. drafts.
    """
    cases = standard_suite(_processes(verifier), quick)
    limit = verifier.max_draft_length
    return tuple(case for case in cases if limit is None or case.pair.draft_length <= limit)


def _processes(verifier: Verifier) -> Collection[str]:
    silent = isinstance(verifier, UserVerifier) and not hasattr(verifier.user_object, "draft_processes")
    return ("iid",) if silent else verifier.draft_processes


def standard_suite(processes: Collection[str] = ("iid",), quick: bool = False) -> tuple[SuiteCase, ...]:
    """Build the standard suite: exact pairs of every shape of ``SHAPES``.

    The pairs have zeros, ties, equal models, disjoint supports, tiny probabilities and several residual
    tokens.

    Args:
        processes: names of the draft processes; by default paths are drafted i.i.d.
        quick: whether to build only the small cases of the smallest pairs.

    Returns:
        The cases, by ascending number of tuples of drafted paths.
    """
    if isinstance(processes, str):
        processes = (processes,)
    for name in processes:
        if name not in ALL_PROCESSES:
            raise unknown_name("draft process", name, sorted(ALL_PROCESSES))
    return _suite_of(frozenset(processes), quick)


@cache
def _suite_of(processes: frozenset[str], quick: bool) -> tuple[SuiteCase, ...]:
    """Build the cases.  They are cached, so that verifiers share the computations on a pair."""
    cases = [
        (count, SuiteCase(name, pair, process))
        for number, (name, pair) in enumerate((_quick_pairs() if quick else _suite_pairs()).items())
        for process in _drafted(pair, processes, number)
        for count in [process.count_tuples(pair)]
        if count <= (QUICK_TUPLES if quick else _most_tuples(name, process))
    ]
    return tuple(case for _, case in sorted(cases, key=lambda entry: entry[0]))


def _most_tuples(name: str, process: DraftProcess) -> int:
    return MAX_SHAPE if process.name == "iid" and name.startswith(("shape_", "full_")) else MAX_TUPLES


@cache
def _corners() -> dict[str, ModelPair]:
    """List pairs that each have one extreme property."""
    point = ["0", "1", "0"]
    return {
        **{f"rarely_drafted-L{length}": instances.rarely_drafted(length) for length in (1, 2)},
        **{f"point_masses-L{length}": instances.point_masses(length) for length in (1, 3)},
        "coinciding_drafts-L2": ModelPair.context_free_pair(["1/2", "1/3", "1/6"], point, 2),
        "certain_target-L2": ModelPair.context_free_pair(point, ["1/2", "1/3", "1/6"], 2),
        "four_target_tokens-L1": ModelPair.context_free_pair(
            ["1/10", "2/10", "3/10", "4/10"], ["4/10", "1/10", "2/10", "3/10"], 1
        ),
    }


@cache
def _alike() -> dict[str, ModelPair]:
    """List a pair and nearly equal pairs, to detect cached answers.

    Each of these pairs differs from the first in the rows of one depth of one model, so little that the
    rounded rows are equal.  Every residual has two tokens: a residual with one token would be the same point
    mass for all pairs.
    """
    first = _without_zeros(487, 3, 2)
    found = {"alike-L2": first}
    for model in ("target", "draft"):
        levels = getattr(first, model)
        for depth, rows in enumerate(levels):
            changed = (*levels[:depth], (999 * rows + np.roll(rows, 1, axis=-1)) / 1000, *levels[depth + 1 :])
            both = {"target": first.target, "draft": first.draft} | {model: changed}
            found[f"alike_but_{model}_{depth}-L2"] = ModelPair(**both, vocab=first.vocab)
    return found


def _without_zeros(seed: int, vocab_size: int, length: int) -> ModelPair:
    """Draw a random pair on which every token can be drafted, accepted and rejected."""
    return instances.random_rational(seed, vocab_size, length, zero_probability=0, equal_row_probability=0)


@cache
def _quick_pairs() -> dict[str, ModelPair]:
    # Without these, pairs with L = 3 would have two deterministic models.  Pairs with V = L = 2 would have
    # deterministic rows, or equal rows after every token.
    full = {f"random_seed{n}_V2-L{length}": _without_zeros(n, 2, length) for n, length in ((6, 2), (4, 3))}
    return standard_pairs() | _corners() | _alike() | full


RANDOM_NAMES = ("random_", "shape_", "full_", "tiny_", "alike")
"""Beginnings of the names of random pairs, the only pairs that test all contexts of a shape."""


@cache
def _suite_pairs() -> dict[str, ModelPair]:
    pairs = standard_pairs() | _corners() | _alike()
    for number, shape in enumerate(dict.fromkeys((size, length) for size, length, _ in SHAPES)):
        label = f"V{shape[0]}-L{shape[1]}"
        pairs[f"tiny_seed{200 + number}_{label}"] = instances.tiny_probabilities(200 + number, *shape)
        # Equal rows would never reject.  Without zeros, three drafts can differ after every prefix.
        for kind, seed, zeros in (("shape", 100 + number, 0.2), ("full", 300 + number, 0.0)):
            if kind == "shape" or shape in FULL:
                pairs[f"{kind}_seed{seed}_{label}"] = instances.random_rational(
                    seed, *shape, zero_probability=zeros, equal_row_probability=0
                )
    return pairs


FULL = ((3, 1), (4, 1), (2, 2), (3, 2), (4, 2), (3, 3))
"""(V, L) of the pairs without zeros."""
RANDOM_SHAPES = tuple(shape for shape in SHAPES if shape[0] ** (shape[1] * shape[2]) <= MAX_RERUN)
RANDOM_LAW = (
    f"the uniform law over its shapes with V^(LK) at most {MAX_RERUN}, and over rows of whole weights up to "
    "6 with zeros, without zeros, and with weights of 10^-9 and 10^-3, i.i.d. drafts where it takes them"
)


def random_cases(verifier: Verifier, number: int, seed: int = 0) -> tuple[SuiteCase, ...]:
    """Draw random pairs from ``RANDOM_LAW``.

    The drafts are i.i.d.  If the verifier does not accept these, we draw a process of the suite.
    """
    number, seed = check_count("cases", number), check_count("seed", seed, at_least=0)
    limit = verifier.max_draft_length
    shapes = [shape for shape in RANDOM_SHAPES if limit is None or shape[1] <= limit]
    return tuple(_random_case(_processes(verifier), shapes, seed, n) for n in range(number))


def _random_case(
    processes: Collection[str], shapes: list[tuple[int, int, int]], seed: int, number: int
) -> SuiteCase:
    rng = np.random.default_rng((seed, number))
    vocab_size, length, num_drafts = shapes[rng.integers(len(shapes))]
    rows, kind = rng.spawn(1)[0].bit_generator.seed_seq, rng.integers(3)
    assert isinstance(rows, np.random.SeedSequence)
    if kind == 2:
        pair = instances.tiny_probabilities(rows, vocab_size, length)
    else:
        pair = instances.random_rational(rows, vocab_size, length, zero_probability=(0.2, 0)[kind])
    process: DraftProcess = Iid(num_drafts)
    if "iid" not in processes:
        known = [
            found for found in _drafted(pair, processes, number) if found.count_tuples(pair) <= MAX_SHAPE
        ]
        process = known[rng.integers(len(known))]
    return SuiteCase(f"random_seed{seed}_case{number}_V{vocab_size}-L{length}", pair, process)


def _drafted(pair: ModelPair, processes: Collection[str], number: int) -> Iterator[DraftProcess]:
    """Yield the draft processes of the given kinds that fit the pair.

    Some trees draft one fixed tuple of paths.  Of these trees a pair gets only every ``DEALT``-th.  The case
    number decides with which tree we start.
    """
    length = pair.draft_length
    if "iid" in processes:
        yield from (Iid(num_drafts) for num_drafts in (1, 2, 3, 4))
    widths = _all_widths(length)
    for tree in (PrefixTree, WithoutReplacement):
        if tree.name in processes:
            yield from _fitting(map(tree, widths), pair)
    if HubTree.name in processes:
        yield from _fitting((HubTree(found) for found in widths if max(found) == 2), pair)
    dealt: dict[Any, Iterable[Any]] = {
        TopTree: widths,
        ShapedTree: _all_shapes(length),
        ConfidenceTree: range(1, MAX_NODES + 2),
    }
    for kind, settings in dealt.items():
        if kind.name in processes:
            known = list(_fitting(map(kind, settings), pair))
            yield from known[number % DEALT :: DEALT]
    if "per_path" in processes:
        # The draft model of the other path is the pair's draft, mixed with the uniform row.
        levels = tuple((level + Fraction(1, pair.vocab_size)) / 2 for level in pair.draft)
        other = ModelPair(pair.target, levels, pair.vocab)
        yield from (PerPath((pair, other)), PerPath((other, pair)))


def _fitting(found: Iterable[DraftProcess], pair: ModelPair) -> Iterator[DraftProcess]:
    return (process for process in found if process.fits(pair))


MAX_PATHS = 4
"""Largest number of paths of a tree with a width per depth."""
MAX_NODES = 5
"""Largest number of nodes of a tree of any shape."""
DEALT = 5
"""Each pair is certified with every ``DEALT``-th of the trees that have a single tuple of paths."""


@cache
def _all_widths(length: int) -> tuple[tuple[int, ...], ...]:
    """List the widths per depth of all trees with 2 to ``MAX_PATHS`` paths, and of the binary tree."""
    every = product(range(1, MAX_PATHS + 1), repeat=length)
    few = [widths for widths in every if 1 < math.prod(widths) <= MAX_PATHS]
    return tuple(dict.fromkeys((*few, (2,) * length)))


@cache
def _all_shapes(length: int) -> tuple[tuple[int, ...], ...]:
    """List the numbers of children of all ordered trees with 1 to ``MAX_NODES`` nodes and depth at most L."""
    found: dict[tuple[int, ...], None] = {}

    def grow(children: tuple[int, ...]) -> None:
        """Choose the number of children of the next node, in breadth-first order from the root."""
        num_nodes = sum(children)
        if len(children) == num_nodes + 1:  # every node has its children
            while children and children[-1] == 0:
                children = children[:-1]
            if children and ShapedTree(children).depth <= length:
                found[children] = None
            return
        for more in range(MAX_NODES - num_nodes + 1):
            grow((*children, more))

    grow(())
    return tuple(found)
