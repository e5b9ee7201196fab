"""The drafts to blame for a wrong law, and what a verifier does given them."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from spectheory import ModelPair, certify, output_law
from spectheory.exact.cause import starts_with
from spectheory.foundation.exact_numbers import fractions_if_exact
from spectheory.pairs.contexts import numbered_context
from spectheory.pairs.drafts import Iid
from spectheory.pairs.instances import random_rational, sticky_chain
from spectheory.verification.defective import defects
from spectheory.verification.evaluator import Evaluator
from spectheory.verification.resolve import Problem
from user_verifiers import UserToken

PAIRS = [sticky_chain(2), random_rational(4, 2, 2), random_rational(5, 2, 2)]


class NoMassAfterTheFirst(UserToken):
    """The residual of the first position at the second one too: no mass where it excludes every token."""

    def correction(self, target: list[Any], draft: list[Any]) -> list[Any]:
        row = super().correction(target, draft)
        return [entry * 0 for entry in row] if target[0] > draft[0] else row


@pytest.mark.parametrize("pair", PAIRS, ids=["sticky", "random", "another"])
def test_blame_adds_up_where_output_is_undefined(pair: ModelPair) -> None:
    """E[P(output starts with a | drafts)] is the law of a, although a stop without a row gives no output."""
    law = output_law(NoMassAfterTheFirst(), pair)
    assert law.undefined > 0
    tables = Evaluator.of(Problem(law.verifier, pair, Iid(1)), Iid(1))
    tuples = next(Iid(1).tuples(pair, 100))
    for depth in (1, 2, 3):
        for number in range(2**depth):
            given = fractions_if_exact(starts_with(tables, tuples.leaves, numbered_context(number, depth, 2)))
            assert (tuples.probs * given).sum() == law.prefix_law(depth)[number]


@pytest.mark.parametrize("num_drafts", [1, 2])
def test_the_stops_given_the_drafts_make_the_probability(num_drafts: int) -> None:
    """Of every stop the mass that goes on along the prefix, by hand; the rows are those of the models."""
    pair, size, length = sticky_chain(2), 2, 2
    name = "stale_correction_row" if num_drafts == 1 else "longest_accepted"
    found = certify(defects[name], pair, num_drafts, with_optimum=False).counterexample
    assert found is not None
    tokens = [pair.vocab.index(name) for name in found.path]
    total = Fraction(0)
    for stop in found.stops:
        context = [pair.vocab.index(name) for name in found.drafts[stop.path][: stop.length]]
        number = int("0" + "".join(map(str, context)), size)
        assert stop.target == tuple(pair.target[stop.length][number])
        assert stop.draft == (tuple(pair.draft[stop.length][number]) if stop.length < length else ())
        shared = min(stop.length, len(tokens))
        if context[:shared] != tokens[:shared]:
            continue
        mass = stop.probability
        for depth in range(stop.length, len(tokens)):
            before = int("0" + "".join(map(str, tokens[:depth])), size)
            row = stop.correction if depth == stop.length else pair.target[depth][before]
            mass *= row[tokens[depth]]
        total += mass
    assert sum(stop.probability for stop in found.stops) == 1
    assert total == found.given_drafts
    assert total != found.target
    assert np.all([sum(stop.correction) == 1 for stop in found.stops])


def test_a_screen_shows_the_row_that_is_stale() -> None:
    found = certify(defects["stale_correction_row"], sticky_chain(2)).counterexample
    assert found is not None
    first, second, last = found.stops_in_words().splitlines()
    assert first == "0 tokens accepted with probability 1/4: next (0, 1), target (1/2, 1/2), draft (2/3, 1/3)"
    assert second == "1 token accepted with probability 3/8: next (0, 1), target (3/4, 1/4), draft (1/2, 1/2)"
    assert last == "2 tokens accepted with probability 3/8: next (1/4, 3/4), target (1/4, 3/4)"
