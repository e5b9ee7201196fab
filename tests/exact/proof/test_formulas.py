"""Formulas by regions are the block efficiency of the exact law on every pair."""

from fractions import Fraction
from random import Random
from typing import Any

import pytest

from later import Later
from spectheory import defects, output_law, prove
from spectheory.exact.proof.domain import FormalPair, Shape
from spectheory.exact.proof.points import random_point
from spectheory.exact.proof.rational_functions import RationalFunctions
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.pair import ModelPair

sympy = Later("sympy")


def pairs_at(
    vocab_size: int, draft_length: int, positive: bool
) -> list[tuple[ModelPair, dict[str, Fraction]]]:
    """Random pairs of every face, with the probabilities by their names."""
    shape, random, found = Shape(vocab_size, draft_length, positive), Random(0), []
    field = RationalFunctions(shape.names())
    for face in shape.faces():
        formal = FormalPair(shape, field, face)
        for _ in range(3):
            pair = formal.pair_at(random_point(formal, random).values)
            rows = {**pair.to_document()["target"]}, {**pair.to_document()["draft"]}
            values = {
                "_".join((letter, *context.split(), str(token))): Fraction(value)
                for letter, levels in zip("pq", rows, strict=True)
                for context, row in levels.items()
                for token, value in enumerate(row)
            }
            found.append((pair, values))
    return found


@pytest.mark.parametrize(
    ("name", "shape", "drafts", "positive"),
    [
        ("greedy_block", (2, 1), 1, False),
        ("multi_round", (2, 1), 2, False),
        pytest.param("token", (3, 1), 1, False, marks=pytest.mark.deep),
        pytest.param("block", (2, 2), 1, True, marks=pytest.mark.deep),
    ],
)
def test_formulas_are_the_block_efficiency(
    name: str, shape: tuple[int, int], drafts: Any, positive: bool
) -> None:
    found = prove(name, *shape, drafts, statement="law", positive=positive, show=True)
    formula = found.block_efficiency
    for pair, values in pairs_at(*shape, positive):
        law = output_law(name, pair, drafts)
        value = formula.subs(values)
        assert Fraction(int(value.p), int(value.q)) == law.block_efficiency
        assert any(one.where.subs(values) == sympy.true for one in found.formulas)
    for one in found.formulas:
        assert len(one.acceptance) == shape[1]
        accepted = sum(map(sympy.sympify, one.to_document()["acceptance"]))
        assert sympy.expand(1 + accepted - one.expression) == 0


def test_partner_another_verifier_has_another_formula() -> None:
    formulas = [
        prove(one, 2, 1, statement="law", positive=True, show=True).block_efficiency
        for one in ("token", defects["swapped_models"])
    ]
    values = {"p_0": Fraction(1, 3), "q_0": Fraction(2, 3)}
    assert formulas[0].subs(values) == sympy.Rational(5, 3) != formulas[1].subs(values)


def test_formulas_are_written_where_they_are_asked_for() -> None:
    with pytest.raises(InvalidInputError, match="show=True"):
        _ = prove("token", 2, 1).block_efficiency
    found = prove("token", 2, 1, positive=True, show=True)
    document = found.to_document()["formulas"]
    assert [one["where"] for one in document] == ["p_0 - q_0 >= 0", "p_0 - q_0 < 0"]
    assert document[0]["latex"] == "- p_{0} + q_{0} + 2"
    assert "block efficiency" in found.tables()[1].to_latex()
