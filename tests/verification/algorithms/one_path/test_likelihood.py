"""P(tau >= l) on a path, of token, block and greedy_block: as the enumerated law has it, and in order."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from reference import draft_prob, draft_row, leaves, target_row
from spectheory import output_law
from spectheory.foundation.arrays import at_most_one, prefix_products
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.one_path.block import Block
from spectheory.verification.algorithms.one_path.first_path import first_path_ratios
from spectheory.verification.algorithms.one_path.greedy_block import GreedyBlock
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.verifier import Verifier
from table import small_cases


def all_paths(pair: ModelPair) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every path that can be drafted as a batch of one draft: paths, target_rows, draft_rows."""
    possible = [path for path in leaves(pair) if draft_prob(pair, path) > 0]
    contexts = [[path[:i] for i in range(pair.draft_length + 1)] for path in possible]
    target = np.array([[target_row(pair, c) for c in along] for along in contexts], dtype=object)
    draft = np.array([[draft_row(pair, c) for c in along[:-1]] for along in contexts], dtype=object)
    return np.array(possible)[:, None], target[:, None], draft[:, None]


LIKELIHOODS: dict[str, tuple[Verifier, Callable[..., Any]]] = {
    "token": (Token(), lambda *drafted: prefix_products(at_most_one(Token().ratios(*drafted)))),
    "block": (Block(), lambda *drafted: Block().weights(first_path_ratios(*drafted))),
    "greedy_block": (
        GreedyBlock(),
        lambda *drafted: at_most_one(prefix_products(first_path_ratios(*drafted))),
    ),
}
"""P(tau >= i | X_{1:i}) for i = 0..L from the verifiers' own steps, [..., L+1] (theory.md Statement 4.3)."""


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_likelihoods_are_those_of_the_enumerated_law(name: str) -> None:
    """P(τ >= i, X_{1:i} = a) = likelihood(a) q(a) at every node; the other two likelihoods fail."""
    others_fail = dict.fromkeys(LIKELIHOODS, 0)
    for case in small_cases():
        pair = case.pair
        accepted = output_law(LIKELIHOODS[name][0], pair).accepted_masses
        paths, target, draft = all_paths(pair)
        for other, (_, likelihood) in LIKELIHOODS.items():
            kept = likelihood(paths, target, draft)
            assert kept.shape == (len(paths), pair.draft_length + 1)
            equal = True
            for path, along in zip(paths[:, 0].tolist(), kept, strict=True):
                for depth in range(pair.draft_length + 1):
                    number = sum(
                        token * pair.vocab_size ** (depth - 1 - i) for i, token in enumerate(path[:depth])
                    )
                    node = tuple(path[:depth])
                    equal &= accepted[depth][number] == along[depth] * draft_prob(pair, node)
            if other == name:
                assert equal, case
            others_fail[other] += not equal
    assert all(others_fail[other] > 0 for other in LIKELIHOODS if other != name)


def test_likelihoods_are_ordered() -> None:
    """token <= block <= greedy_block along every path, each strictly somewhere."""
    strict = [0, 0]
    for case in small_cases():
        token, block, greedy = (f(*all_paths(case.pair)) for _, f in LIKELIHOODS.values())
        assert (token <= block).all()
        assert (block <= greedy).all()
        strict = [strict[0] + (token < block).sum(), strict[1] + (block < greedy).sum()]
    assert min(strict) > 0
