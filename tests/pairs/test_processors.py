"""Processors beside those of transformers, exact values by hand, and laws of misplaced processors."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from spectheory import output_law
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs import ModelPair, processors
from spectheory.pairs.processors import Processor, chain, processed

TEXT, ROW = (3, 1, 3), np.array([0.31, 0.07, 0.02, 0.4, 0.2])

TRANSFORMERS: list[tuple[Processor, Any]] = [
    (processors.temperature(0.7), TemperatureLogitsWarper(0.7)),
    (processors.top_k(2), TopKLogitsWarper(2)),
    (processors.top_p(0.72), TopPLogitsWarper(0.72)),
    (processors.min_p(0.3), MinPLogitsWarper(0.3)),
    (processors.repetition_penalty(2), RepetitionPenaltyLogitsProcessor(2.0)),
]


@pytest.mark.parametrize(("ours", "theirs"), TRANSFORMERS, ids=[each[0].name for each in TRANSFORMERS])
def test_a_float_row_is_processed_as_transformers_does(ours: Processor, theirs: Any) -> None:
    logits = theirs(torch.tensor([TEXT]), torch.tensor(np.log(ROW))[None])
    wanted = torch.softmax(logits, dim=-1)[0].numpy()
    np.testing.assert_allclose(ours(TEXT, ROW), wanted, rtol=1e-12)
    assert not np.allclose(ours(TEXT, ROW), ROW)  # so a processor without effect fails above


EXACT: dict[str, Processor] = {
    "temperature=1/2": processors.temperature("1/2"),
    "temperature=1": processors.temperature(1),
    "temperature=0": processors.temperature(0),
    "top_k=2": processors.top_k(2),
    "top_p=3/5": processors.top_p("3/5"),
    "min_p=2/5": processors.min_p("2/5"),
    "presence_penalty=1/2": processors.presence_penalty("1/2"),
    "frequency_penalty=1/3": processors.frequency_penalty("1/3"),
    "repetition_penalty=2": processors.repetition_penalty(2),
    "temperature=1/3,top_k=2,presence_penalty=1/2": chain(
        processors.temperature("1/3"), processors.top_k(2), processors.presence_penalty("1/2")
    ),
}


@pytest.mark.parametrize("text", EXACT)
def test_an_exact_row_stays_exact_and_agrees_with_floats(text: str) -> None:
    row = np.array([Fraction(n, 16) for n in (5, 1, 7, 3)])
    found = EXACT[text]((1, 2, 1), row)
    assert found.sum() == 1
    assert {type(value) for value in found} == {Fraction}
    np.testing.assert_allclose(found.astype(float), EXACT[text]((1, 2, 1), row.astype(float)), rtol=1e-12)
    assert (processors.parse_processors(text)((1, 2, 1), row) == found).all()


def test_roots_are_rational_or_refused() -> None:
    squares = np.array([Fraction(n, 14) for n in (1, 4, 9)])
    assert processors.temperature(2)((), squares).tolist() == [Fraction(n, 6) for n in (1, 2, 3)]
    with pytest.raises(InvalidInputError, match="not rational"):
        processors.temperature(2)((), np.array([Fraction(1, 3), Fraction(2, 3)]))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: processors.temperature(-1), r"temperature must be a number in \[0, inf\), got -1"),
        (lambda: processors.top_k(0), "top_k must be"),
        (lambda: processors.top_p("3/2"), "top_p must be"),
        (lambda: processors.parse_processors("top_q=1"), "processor"),
        (lambda: processors.parse_processors("top_k=x"), "must be an integer"),
        (lambda: processors.min_p(0.5)((), np.array([Fraction(1, 2)] * 2)), "exact parameter"),
        (lambda: processors.bias({0: 0})((), np.array([1.0, 0.0])), "leaves no token"),
        (lambda: processors.grammar({}, "start")((), np.array([0.5, 0.5])), "leaves no token"),
    ],
)
def test_what_no_processor_can_be_is_refused(call: Any, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        call()


def _law_with(rows: ModelPair, wanted: ModelPair) -> Any:
    """Total variation of token verification on wrong target rows from the wanted target."""
    return replace(output_law("token", rows), pair=wanted).total_variation


HALVED = processors.presence_penalty("1/2")
WORDS = processors.grammar({"any": {0: "zero", 1: "any"}, "zero": {1: "any"}}, "any")
CUT = ModelPair.context_free_pair(["1/2", "1/3", "1/6"], ["1/3"] * 3, 1)
FAIR = ModelPair.context_free_pair(["1/2"] * 2, ["2/3", "1/3"], 1)


@pytest.mark.parametrize(
    ("pair", "processor", "distance"),
    [
        (FAIR, HALVED, Fraction(5, 36)),
        (FAIR, WORDS, Fraction(1, 4)),
        (CUT, processors.top_k(2), Fraction(1, 9)),
    ],
    ids=["penalty", "grammar", "top-k"],
)
def test_an_unprocessed_bonus_row_costs_the_distance_by_hand(
    pair: ModelPair, processor: Processor, distance: Fraction
) -> None:
    """The wrong rows differ at the last depth only, so the distance is the accepted mass times theirs."""
    wanted = processed(pair, target=processor)
    assert _law_with(wanted, wanted) == 0
    bonus_raw = ModelPair((wanted.target[0], pair.target[1]), pair.draft, pair.vocab)
    assert _law_with(bonus_raw, wanted) == distance
    assert _law_with(processed(pair, target=processor, draft=processors.top_k(1)), wanted) == 0


def test_additive_penalties_are_those_of_logits() -> None:
    logits, counts = np.log(ROW), np.array([0, 1, 0, 2, 0])
    for ours, changed in (
        (processors.presence_penalty(np.exp(-0.3)), logits - 0.3 * (counts > 0)),
        (processors.frequency_penalty(np.exp(-0.3)), logits - 0.3 * counts),
        (processors.bias({2: np.exp(1.5), 3: np.exp(-1.0)}), logits + np.array([0, 0, 1.5, -1.0, 0])),
    ):
        np.testing.assert_allclose(ours(TEXT, ROW), np.exp(changed) / np.exp(changed).sum(), rtol=1e-12)


def test_a_prompt_counts_for_penalties() -> None:
    with_prompt = processed(FAIR, target=HALVED, prompt=(0,))
    assert with_prompt.target[0][0].tolist() == [Fraction(1, 3), Fraction(2, 3)]
    assert processed(FAIR, target=HALVED).target[0][0].tolist() == [Fraction(1, 2)] * 2
