"""The modified target behind an accepted prefix, against the exact iterations on enumerated pairs."""

import dataclasses

import pytest
import torch

from spectheory import instances
from spectheory.decoding.modified_targets import Modifications
from spectheory.exact.iteration import modified_pair
from spectheory.models.drafting import DraftedBatch
from spectheory.pairs.contexts import context_number
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.one_path.greedy_block import GreedyBlock

DEPTH, LENGTH = 6, 3


def drafted_at(pair: ModelPair, context: tuple[int, ...], path: tuple[int, ...]) -> DraftedBatch:
    """One path behind a context of an enumerated pair, as language models would have drafted it."""
    target, draft = (
        [
            torch.tensor(levels[len(context) + i][context_number(context + path[:i], pair.vocab_size)])
            for i in range(LENGTH + (levels is pair.target))
        ]
        for levels in (pair.target, pair.draft)
    )
    paths = torch.tensor(path)[None, None]
    return DraftedBatch(paths, torch.stack(target)[None, None], torch.stack(draft)[None, None], paths)


def below(pair: ModelPair, context: tuple[int, ...]) -> ModelPair:
    size, number = pair.vocab_size, context_number(context, pair.vocab_size)
    levels = [
        [
            level[number * size**i : (number + 1) * size**i]
            for i, level in enumerate(side[len(context) :][: LENGTH + (side is pair.target)])
        ]
        for side in (pair.target, pair.draft)
    ]
    return ModelPair(tuple(levels[0]), tuple(levels[1]), pair.vocab)


def with_rows(pair: ModelPair, context: tuple[int, ...], changed: ModelPair) -> ModelPair:
    """The pair, with the target rows of ``changed`` at depths 0..L-1 below a context."""
    target = [level.copy() for level in pair.target]
    for depth in range(LENGTH):
        first = context_number(context, pair.vocab_size) * pair.vocab_size**depth
        target[len(context) + depth][first : first + pair.vocab_size**depth] = changed.target[depth]
    return dataclasses.replace(pair, target=tuple(target))


@pytest.mark.parametrize("accepted", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_two_modifications_lie_over_one_another(seed: int, accepted: int) -> None:
    """Two iterations that stop early, and a third: it meets what ``modified_pair`` says, step by step."""
    pair = instances.random_float([2, seed], 2, DEPTH)
    verifier, text, exact, changed = GreedyBlock(), (), pair, 0.0
    state = Modifications.none(verifier.modified_target_rows, 1, LENGTH, torch.zeros(1))
    zero = torch.zeros(1, dtype=torch.int64)
    for length, token, path in ((accepted, 0, (1, 1, 0)), (0, 1, (0, 1, 1)), (0, 1, (1, 0, 0))):
        met = state.apply(drafted_at(pair, text, path))
        wanted = drafted_at(exact, text, path).target_rows
        torch.testing.assert_close(met.target_rows, wanted, atol=1e-12, rtol=0)
        state = state.after(met, zero, zero + length, torch.tensor([token]))
        exact = with_rows(exact, text, modified_pair(verifier, below(exact, text)))
        text = (*text, *path[:length], token)
        changed = max(changed, float((met.target_rows - met.drafted.target_rows).abs().max()))
    assert changed > 1e-3  # the partner


def test_nothing_is_left_after_a_whole_path() -> None:
    pair, verifier = instances.random_float([2, 0], 2, DEPTH), GreedyBlock()
    state = Modifications.none(verifier.modified_target_rows, 1, LENGTH, torch.zeros(1))
    one = torch.ones(1, dtype=torch.int64)
    after = {
        length: state.after(state.apply(drafted_at(pair, (), (0, 1, 1))), 0 * one, length * one, one)
        for length in range(LENGTH + 1)
    }
    assert [int(found.remaining.max()) for found in after.values()] == [2, 1, 0, -1]
