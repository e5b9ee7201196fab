"""The pairs of an audit have what they are there for."""

from fractions import Fraction
from functools import partial
from typing import Any

import pytest
import torch

from audits.specimens.samplers import recursive_rejection, rejection_without_replacement
from spectheory import certify, instances
from spectheory.auditing import audit
from spectheory.auditing.rounds.battery import (
    audit_pairs,
    pairs_of_shapes,
    pairs_of_trees,
    random_dyadic,
    shape_of,
    tells_texts_apart,
)
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import with_point_mass_drafts
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS
from spectheory.pairs.drafts import WithoutReplacement
from spectheory.verification.defective import defects

ONE_PATH = ["target_correction", "stale_correction_row", "next_correction_row", "block_uncapped_weight"]


@pytest.mark.parametrize("name", ONE_PATH)
def test_every_mechanism_shows_on_a_pair(name: str) -> None:
    shown = [
        label
        for label, pair in audit_pairs().items()
        if certify(defects[name], pair, with_optimum=False).total_variation > Fraction(1, 1000)
    ]
    assert shown


def test_a_row_off_by_one_needs_rows_that_depend_on_the_context() -> None:
    """The partner of the random pairs: context-free pairs do not show it."""
    pairs = audit_pairs()
    stale = defects["stale_correction_row"]
    assert certify(stale, pairs["dyadic, 3 drafted"], with_optimum=False)
    assert not certify(stale, pairs["random dyadic, 3 drafted"], with_optimum=False)


def test_dyadic_rows() -> None:
    pair = random_dyadic(5, 3, 2)
    assert all(value.denominator in (1, 2, 4, 8, 16) for level in pair.target for value in level.flat)
    assert all((level > 0).all() for level in (*pair.target, *pair.draft))
    assert len({tuple(row) for row in pair.draft[1]}) > 1
    assert pair == random_dyadic(5, 3, 2) != random_dyadic(6, 3, 2)


def test_point_masses_keep_the_target() -> None:
    pair = with_point_mass_drafts(instances.sticky_chain(2))
    assert {value for level in pair.draft for value in level.flat} == {0, 1}
    assert all((level.sum(axis=1) == 1).all() for level in pair.draft)
    assert (pair.target[2] == instances.sticky_chain(2).target[2]).all()


def test_pairs_are_chosen_by_both_numbers() -> None:
    chosen = pairs_of_shapes([2], [1])
    assert chosen
    assert {(pair.vocab_size, pair.draft_length) for pair in chosen.values()} == {(2, 1)}
    assert {
        name: pair for name, pair in audit_pairs().items() if (pair.vocab_size, pair.draft_length) == (2, 1)
    } == ({name: pair for name, pair in chosen.items() if name in audit_pairs()})
    assert [(pair.vocab_size, pair.draft_length) for pair in pairs_of_shapes([5], [2]).values()] == [(5, 2)]


def test_every_shape_tells_texts_apart() -> None:
    """Where a random pair does; with two drafts or more the first one is certain."""
    for size, length in ((2, 1), (3, 1), (2, 3), (4, 2), (5, 1)):
        chosen = pairs_of_shapes([size], [length])
        assert any(map(tells_texts_apart, chosen.values()))
        assert {shape_of(pair) for pair in chosen.values()} == {(size, length)}
    assert not any(map(tells_texts_apart, pairs_of_shapes([3], [3]).values()))


def second_draft_row(paths: Any, target: Any, draft: Any, generator: Any, most: int) -> list[int]:
    """Different first tokens; the draft's row loses only so many of the rejected ones."""
    row, q = target[0, 0], draft[0, 0]
    for number, path in enumerate(paths):
        token = int(path[0])
        if torch.rand((), generator=generator) * q[token] < row[token]:
            return [token, int(torch.multinomial(target[number, 1], 1, generator=generator))]
        left = (row - q).clamp(min=0)
        row = left / left.sum() if left.sum() > 0 else row
        if number < most:
            q = q.index_fill(0, torch.tensor(token), 0.0)
            q = q / q.sum()
    return [int(torch.multinomial(row, 1, generator=generator))]


@pytest.mark.deep
def test_trees_have_their_pairs_in_every_shape() -> None:
    """A third child that is tested against the row of the second shows; one path has no more pairs."""
    for shape in ((4, 1), (3, 1), (5, 2)):
        chosen = pairs_of_shapes(*([number] for number in shape))
        assert chosen.of_trees.keys().isdisjoint(chosen)
        assert {shape_of(pair) for pair in chosen.of_trees.values()} == {shape}
    asked = pairs_of_shapes([4], [1])
    for most, verdict in ((1, NOT_LOSSLESS), (3, LOSSLESS)):
        sampler = partial(second_draft_row, most=most)
        found = audit(Shipped(sampler, "sampler", "tree", trees=[WithoutReplacement((3,))]), asked)
        assert (found.verdict, found.scope.shapes) == (verdict, ((4, 1, 3),))


@pytest.mark.deep
@pytest.mark.parametrize(
    "widths", [(2,), *(pytest.param(each, marks=pytest.mark.deep) for each in ((2, 1), (2, 1, 1), (1, 2, 1)))]
)
def test_trees_leave_two_tokens_to_the_correction(widths: tuple[int, ...]) -> None:
    """Rejection as of independent drafts is wrong on every tree of these pairs, and the right one is not."""
    pairs = {name: pair for name, pair in pairs_of_trees().items() if name.startswith("two tokens left")}
    tree = WithoutReplacement(widths)
    fitting = {name: pair for name, pair in pairs.items() if tree.fits(pair)}
    assert audit(recursive_rejection, fitting, drafts=[tree]).verdict == NOT_LOSSLESS
    if widths[0] > 1:  # of drafts that differ at every context
        assert audit(rejection_without_replacement, fitting, drafts=[tree]).verdict == LOSSLESS
