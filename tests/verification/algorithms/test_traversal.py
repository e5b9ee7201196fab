"""traversal against leaf-to-root verification acted out on the tree; theory.md Statement 5.21."""

from collections import defaultdict
from fractions import Fraction
from typing import Any, Self

import pytest

from reference import draft_row, law_of, target_row, without_zeros
from spectheory import ModelPair, Outcome, instances, output_law
from spectheory.foundation.arrays import normalise
from spectheory.pairs.contexts import numbered_context
from spectheory.pairs.drafts import DraftProcess, Iid, PrefixTree
from spectheory.pairs.instances import random_rational
from spectheory.verification.algorithms.traversal import Traversal
from spectheory.verification.correction_rows import CorrectionRows

ZERO, ONE = Fraction(0), Fraction(1)
Context = tuple[int, ...]
SHAPES = ((2, 2, 2), (3, 1, 3), (2, 2, 3), (3, 2, 2), (2, 3, 2), (2, 1, 4), (3, 1, 2), (2, 2, 1))


Drawn = tuple[Context, tuple[bool, ...]]
"""A path, and which of its tokens it draws itself."""


def acted_out(
    pair: ModelPair, context: Context, paths: list[Drawn], weight: Fraction
) -> tuple[dict[Context, Fraction], Fraction]:
    """({output: probability}, P(the context and all below it are rejected)), given that it is entered."""
    outputs, reach = defaultdict[Context, Fraction](Fraction), ONE
    target = target_row(pair, context)
    if len(context) < pair.draft_length:
        draft, tested = draft_row(pair, context), set[int]()
        for path, draws in paths:
            token = path[len(context)]
            if not draws[len(context)]:
                continue
            if token not in tested:
                tested.add(token)
                enters = min(ONE, weight * target[token] / draft[token])
                below = [other for other in paths if other[0][len(context)] == token]
                found, rejected = acted_out(pair, (*context, token), below, enters)
                for output, prob in found.items():
                    outputs[output] += reach * prob
                reach *= rejected
            residual = [max(weight * p - q, ZERO) for p, q in zip(target, draft, strict=True)]
            left = sum(residual, ZERO)
            weight = left / (1 - weight + left) if left else ZERO
            target = [mass / left if left else ZERO for mass in residual]
    for token, prob in enumerate(target):
        outputs[(*context, token)] += reach * weight * prob
    return outputs, reach * (1 - weight)


def law_of_acts(pair: ModelPair, process: DraftProcess) -> dict[Context, Fraction]:
    size, length = pair.vocab_size, pair.draft_length
    draws = [tuple(row) for row in process.draws(length).tolist()]
    law: dict[Context, Fraction] = defaultdict(Fraction)
    for chunk in process.tuples(pair, 1000):
        for leaves, prob in zip(chunk.leaves.tolist(), chunk.probs, strict=True):
            paths = [numbered_context(leaf, length, size) for leaf in leaves]
            for output, share in acted_out(pair, (), list(zip(paths, draws, strict=True)), ONE)[0].items():
                law[output] += prob * share
    return without_zeros(law)


@pytest.mark.parametrize("number", range(8))
def test_the_law_is_that_of_the_traversal(number: int) -> None:
    size, length, drafts = SHAPES[number]
    pair = random_rational([431, number], size, length, zero_probability=number % 3 / 6)
    assert law_of(output_law(Traversal(), pair, drafts)) == law_of_acts(pair, Iid(drafts))


TREES = ((2, (1, 2)), (2, (2, 1)), (2, (2, 2)), (3, (2, 1)), (2, (1, 2, 1)), (3, (1, 2)), (2, (2, 1, 2)))


@pytest.mark.parametrize(("size", "widths"), TREES)
def test_on_a_tree_it_is_the_traversal_and_lossless(size: int, widths: tuple[int, ...]) -> None:
    """Statement 5.21 on prefix trees, whose nodes may meet at one context."""
    process = PrefixTree(widths)
    for seed in range(3):
        pair = random_rational([433, seed], size, len(widths), zero_probability=seed % 2 / 5)
        law = output_law(Traversal(), pair, drafts=process)
        assert law.total_variation == 0
        assert law_of(law) == law_of_acts(pair, process)


class Unbound(Traversal):
    """The mistake of taking paths that repeat an earlier path's draw for draws."""

    name = "unbound"

    def bind(self, process: DraftProcess, pair: ModelPair | None = None) -> Self:
        return self


def test_partner_repeated_draws_are_no_drafts() -> None:
    law = output_law(Unbound(), instances.two_residual_tokens(2), drafts=PrefixTree((1, 2)))
    assert law.total_variation > 0


class OwnRows(Traversal):
    """The mistake of drawing the correction from the first residual, whatever was rejected since."""

    name = "own_rows"

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        proper = super().outcome(paths, target_rows, draft_rows)

        def correction(path_index: Any, length: Any) -> Any:
            return normalise(CorrectionRows(target_rows, draft_rows, path_index, length).residual())

        return Outcome(proper.stop_probs, correction)


def test_partner_the_residual_of_one_draft_is_not_enough() -> None:
    assert output_law(OwnRows(), instances.two_residual_tokens(1), 2).total_variation > 0
