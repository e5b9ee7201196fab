"""Assertions and quantities that several tests of output laws share."""

from itertools import product

import numpy as np

from spectheory.exact.law import OutputLaw, law_of
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.drafts.iid import draft_process
from spectheory.pairs.pair import ModelPair
from spectheory.verification.resolve import Problem, in_arithmetic_of
from spectheory.verification.verifier import Verifier


def trusted_law(verifier: Verifier, pair: ModelPair, drafts: int | DraftProcess = 1) -> OutputLaw:
    """``output_law`` of a test's own verifier, not asked again as those of users are."""
    pair, process = in_arithmetic_of(verifier, pair, draft_process(drafts))
    return law_of(Problem(verifier.bind(process, pair), pair, process))


def budget_masses(law: OutputLaw) -> list[np.ndarray]:
    """D(a) p(a) for depths 0..L."""
    depths = range(law.pair.draft_length + 1)
    return [law.node_budgets[depth] * law.pair.target_path_probs(depth) for depth in depths]


def assert_same_law(one: OutputLaw, other: OutputLaw, tolerance: float = 0.0) -> None:
    assert len(one.masses) == len(other.masses)
    for mass, expected in zip(one.masses, other.masses, strict=True):
        assert mass.shape == expected.shape
        assert np.abs(mass - expected).max() <= tolerance


def all_antichains(vocab_size: int, depth: int, node: tuple[int, ...] = ()) -> list[list[tuple[int, ...]]]:
    """Every antichain at or below a node, the empty one included."""
    if depth == 0:
        return [[], [node]]
    below = [all_antichains(vocab_size, depth - 1, (*node, token)) for token in range(vocab_size)]
    return [[node], *([n for part in parts for n in part] for parts in product(*below))]
