"""What a rule could earn at the positions met: reached by optimal rules and by no others."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from decoding_support import tiny_pair
from spectheory import instances
from spectheory.foundation.errors import InvalidInputError
from spectheory.models import LanguageModelPair
from spectheory.pairs.drafts import Iid
from spectheory.simulation import simulate
from spectheory.simulation.ceilings import ceilings
from spectheory.verification.resolve import find_verifier

PAIR = instances.random_float([81, 2], 3, 2, agreement=0.3)
MANY = [list(prompt) for prompt in product(range(3), repeat=3)]


def earned_and_ceiling(verifier: str, num_drafts: int) -> tuple[float, float]:
    """E[tau + 1] and the mean ceiling on ``PAIR``, over all tuples of paths and all stops."""
    (tuples,) = Iid(num_drafts).tuples(PAIR, 10**6)
    first, paths = tuples.leaves // 3, np.stack([tuples.leaves // 3, tuples.leaves % 3], axis=-1)
    levels = [np.zeros_like(first), first, tuples.leaves]
    target = np.stack([PAIR.target[depth][levels[depth]] for depth in range(3)], axis=-2)
    draft = np.stack([PAIR.draft[depth][levels[depth]] for depth in range(2)], axis=-2)
    outcome = find_verifier(verifier).bind(Iid(num_drafts)).outcome(paths, target, draft)
    total = 0.0
    for path, length in product(range(num_drafts), range(3)):
        stop = np.full(len(paths), path), np.full(len(paths), length)
        most = ceilings(paths, target, draft, *stop)
        total += float((tuples.probs * outcome.stop_probs[:, path, length] * most).sum())
    return float((tuples.probs * outcome.expected_tokens()).sum()), total


@pytest.mark.parametrize("num_drafts", [1, 2, pytest.param(3, marks=pytest.mark.deep)])
def test_optimal_rules_reach_the_ceiling_and_others_do_not(num_drafts: int) -> None:
    """By enumeration: the optimum at every position, and two rules that are below it from two paths on."""
    for optimal in ("otm", "token") if num_drafts == 1 else ("otm",):
        earned, ceiling = earned_and_ceiling(optimal, num_drafts)
        assert earned == pytest.approx(ceiling, abs=1e-9)
    for rule in ("multi_round", "spectr"):
        earned, ceiling = earned_and_ceiling(rule, num_drafts)
        assert earned <= ceiling + 1e-12
        assert (earned < ceiling - 1e-3) == (num_drafts > 1)
    earned, ceiling = earned_and_ceiling("block", 1)
    assert earned > ceiling + 1e-3  # the partner: it looks at the whole path


@pytest.fixture(scope="module")
def pair() -> LanguageModelPair:
    torch.set_num_threads(1)
    return tiny_pair()


@pytest.mark.deep
def test_ceilings_along_texts(pair: LanguageModelPair) -> None:
    """Of ``token`` it is what it earns, within four joint errors; no other number of the run is changed."""
    names = ["token", "spectr", "block"]
    settings: dict[str, Any] = {"drafts": 3, "draft_length": 2, "max_new_tokens": 12, "batch_size": 27}
    found = simulate(pair, MANY, names, with_ceilings=True, **settings)
    token, spectr, block = found.estimates
    assert token.ceiling_interval is not None
    low, high = token.ceiling_interval
    assert token.ceiling == pytest.approx(token.block_efficiency, abs=high - low + 4 * token.standard_error)
    assert high - low < 0.5
    assert spectr.ceiling is not None
    assert spectr.ceiling > token.ceiling
    assert block.ceiling is None
    assert [row["ceiling"] for row in found.rows()] == [entry.ceiling for entry in found.estimates]
    without = simulate(pair, MANY, names, **settings)
    assert [entry.ceiling for entry in without.estimates] == [None] * 3
    assert without.estimates[1].counted_length_probs == spectr.counted_length_probs


def test_ceilings_need_texts_and_one_draft_model(pair: LanguageModelPair) -> None:
    with pytest.raises(InvalidInputError, match="with_ceilings was asked for without whole texts"):
        simulate(pair, MANY, ["token"], with_ceilings=True)
    several = LanguageModelPair.of(pair.target_model, [pair.draft_model, pair.target_model])
    with pytest.raises(InvalidInputError, match="got 'per_path' drafts"):
        simulate(several, MANY, ["token"], max_new_tokens=4, with_ceilings=True)
