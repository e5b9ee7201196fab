"""A sampler that fails on its drafts is not lossless; a failure on stand-ins alone says nothing."""

import random
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import count
from typing import Any

import numpy as np
import pytest
import torch

from audits.specimens.rounds import speculative_round
from deep import first_is_quick
from spectheory import ModelPair, audit
from spectheory.auditing.subjects import runs
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, UNDECIDED

PAIR = ModelPair.context_free_pair(["1/2", "1/4", "1/4"], ["1/4", "1/4", "1/2"], 1)
"""The token 2 is rejected with probability 1/2, and then the token 0 is certain."""


def by_multinomial(weights: torch.Tensor, generator: Any) -> int:
    return int(torch.multinomial(weights, 1, generator=generator))


def by_race(weights: torch.Tensor, generator: Any) -> int:
    return int((weights / torch.empty_like(weights).exponential_(generator=generator)).argmax())


def by_logarithms(weights: torch.Tensor, generator: Any) -> int:
    uniform = torch.rand(weights.shape, generator=generator)
    return int((weights.log() - torch.log(-torch.log(uniform))).argmax())


def by_inversion(weights: torch.Tensor, generator: Any) -> int:
    total = weights.double().cumsum(0)
    number = torch.rand((), dtype=torch.float64, generator=generator) * total[-1]
    return int((total <= number).sum())


def of_python(weights: torch.Tensor, generator: Any) -> int:
    return random.choices(range(len(weights)), weights.tolist())[0]


def of_numpy(weights: torch.Tensor, generator: Any) -> int:
    probs = weights.double().numpy()
    return int(np.random.default_rng().choice(len(weights), p=probs / probs.sum()))


DRAWS: list[Callable[..., int]] = [
    by_multinomial, by_race, by_logarithms, by_inversion, of_python, of_numpy,
]  # fmt: skip


def token_verification(draw: Callable[..., int], refused: int | None) -> Callable[..., list[int]]:
    """Token verification whose draws of one token raise."""

    def drawn(weights: torch.Tensor, generator: Any) -> int:
        token = draw(weights, generator)
        if token == refused:
            raise RuntimeError(f"no embedding of {token}")
        return token

    def verify(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
        token, p, q = int(paths[0, 0]), target_rows[0, 0], draft_rows[0, 0]
        if torch.rand((), generator=generator) * q[token] < p[token]:
            return [token, drawn(target_rows[0, 1], generator)]
        return [drawn((p - q).clamp(min=0), generator)]

    return verify


@first_is_quick("draw", DRAWS, quick=6)
def test_a_token_on_which_the_sampler_raises(draw: Callable[..., int]) -> None:
    """The bonus token is 1 with probability 3/4 · 1/4; the partner refuses a token that is never drawn."""
    found = audit(token_verification(draw, 1), {"pair": PAIR}, drafts=1)
    assert found.verdict == NOT_LOSSLESS
    assert abs(found.cases[0].undefined - Fraction(3, 16)) < Fraction(1, 10**6)
    assert "no valid output with probability" in found.reasons[0]
    assert "RuntimeError: no embedding of 1 (" in found.reasons[0]
    assert audit(token_verification(draw, 7), {"pair": PAIR}, drafts=1).is_lossless


@first_is_quick(
    ("answer", "says"),
    [
        (
            lambda tokens: [*tokens, 0, 0],
            "must be the start of a drafted path|expected 1 to 2",
        ),
        (lambda tokens: [*tokens[:-1], 3], "it returns the token 3, which is not in 0..2"),
        (lambda tokens: [*tokens[:-1], -1], "it returns the token -1, which is not in 0..2"),
        (lambda tokens: [], "returned the tokens"),
        (lambda tokens: None, "TypeError"),
        (lambda tokens: [str(token) for token in tokens], "expected token ids"),
        (lambda tokens: [float(token) for token in tokens], "expected token ids"),
    ],
    quick=7,
)
def test_answers_that_are_no_output(answer: Callable[[list[int]], Any], says: str) -> None:
    verify = token_verification(by_multinomial, None)
    found = audit(lambda *given: answer(verify(*given)), {"pair": PAIR}, drafts=1)
    assert found.verdict == NOT_LOSSLESS
    assert found.cases[0].undefined == 1
    assert re.search(says, found.reasons[0])


def only_tensors(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    """Lossless; it refuses a coin of another class, as no sampler is handed by torch."""
    token, coin = int(paths[0, 0]), torch.rand((), generator=generator)
    if type(coin) is not torch.Tensor:
        raise TypeError("expected a tensor")
    p, q = target_rows[0, 0], draft_rows[0, 0]
    if coin * q[token] < p[token]:
        return [token, by_multinomial(target_rows[0, 1], generator)]
    return [by_multinomial((p - q).clamp(min=0), generator)]


def asks(what: Callable[[Any], Any]) -> Callable[..., Any]:
    """A round that asks its model for more than the page says, or an object of its own."""

    def play(text: Any, target: Any, draft: Any, draft_length: int, generator: Any) -> Any:
        what(target)
        return speculative_round(text, target, draft, draft_length, generator)

    return play


class Settings:
    """Of the engine, without a temperature."""


@pytest.mark.parametrize(
    ("what", "says", "verdict"),
    [
        (lambda model: model.config, "has no attribute 'config'", UNDECIDED),
        (lambda model: model.generate([0]), "has no attribute 'generate'", UNDECIDED),
        (len, "object of type 'LookUpModel' has no len()", UNDECIDED),
        (lambda model: Settings().temperature, "has no attribute 'temperature'", NOT_LOSSLESS),
    ],
)
def test_what_a_stand_in_lacks_decides_nothing(what: Callable[[Any], Any], says: str, verdict: str) -> None:
    """The partner lacks an attribute of an object of its own."""
    found = audit(asks(what), {"pair": PAIR}, signature="round")
    assert found.verdict == verdict
    assert says in found.reasons[0]


def test_a_failure_on_stand_ins_alone_decides_nothing() -> None:
    found = audit(only_tensors, {"pair": PAIR}, drafts=1)
    assert (found.verdict, found.basis) == (LOSSLESS, "probed")
    assert "the same run with ordinary numbers does not fail like this" in found.ways[0]


def test_a_run_without_a_decision_is_made_again_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers otherwise from its fourth, seventh or tenth call on.  Made again once, it seems lossless."""
    pair = {"certain": ModelPair.context_free_pair(["1", "0"], ["1", "0"], 1)}

    def changing(alike: int) -> Callable[..., list[int]]:
        calls = count()
        return lambda *_: [0, 0] if next(calls) < alike else [1]

    for alike in (3, 6, 9):
        found = audit(changing(alike), pair, drafts=1)
        assert (found.verdict, found.basis) == ("not lossless", "probed")
    monkeypatch.setattr(runs, "WITHOUT_DECISION", 1)
    assert [audit(changing(alike), pair, drafts=1).verdict for alike in (3, 6, 9)] == ["lossless"] * 3
