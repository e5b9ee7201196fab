"""Checks of arguments: the checks themselves, and one table of every argument that goes through them."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models_support import save_pair
from montecarlo_support import run
from spectheory import instances
from spectheory.foundation.errors import InvalidInputError, InvalidPairError
from spectheory.foundation.validation import (
    check_confidence,
    check_count,
    check_positive,
    check_tolerance,
    is_number,
)
from spectheory.models import LanguageModelPair, Restriction, SamplingOptions, restrict
from spectheory.models.drafting import draft_and_score, prefill
from spectheory.optima import optimal_acceptance
from spectheory.pairs.pair import ModelPair
from spectheory.simulation import simulate

FAIR = ["1/2", "1/2"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> LanguageModelPair:
    target, draft = save_pair(tmp_path_factory.mktemp("validate"), "llama")
    return LanguageModelPair.load(target, draft, device="cpu")


Call = Callable[[LanguageModelPair, Any], Any]
"""(language models, value of one argument) -> what comes of it."""


def enumerated(**settings: Any) -> Any:
    return simulate(instances.two_token(1), verifiers=["token"], **{"samples": 4, **settings})


def simulated(models: LanguageModelPair, **settings: Any) -> Any:
    return run(models, **{"samples": 2, "draft_length": 1, "drafts": 1, "batch_size": 3, **settings})


def drafted(models: LanguageModelPair, drafts: Any = 1, draft_length: Any = 1) -> Any:
    return draft_and_score(prefill(models, ["x"]), drafts, draft_length, models.generator(0))


def two_rows(draft_length: Any) -> ModelPair:
    contexts = {(): FAIR, (0,): FAIR, (1,): FAIR, (0, 0): FAIR, (0, 1): FAIR, (1, 0): FAIR, (1, 1): FAIR}
    return ModelPair.from_contexts(contexts, {key: FAIR for key in contexts if len(key) < 2}, draft_length)


# argument -> a call with it; all accept 2, and none accepts 0
COUNTS: dict[str, Call] = {
    "context_free_pair draft_length": lambda _, value: ModelPair.context_free_pair(FAIR, FAIR, value),
    "from_contexts draft_length": lambda _, value: two_rows(value),
    "truncate draft_length": lambda _, value: instances.two_token(3).truncate(value),
    "draft_and_score drafts": lambda models, value: drafted(models, drafts=value),
    "draft_and_score draft_length": lambda models, value: drafted(models, draft_length=value),
    "restrict num_tokens": lambda models, value: restrict(models, "x", value, 1),
    "restrict draft_length": lambda models, value: restrict(models, "x", 2, value),
    "SamplingOptions top_k": lambda _, value: SamplingOptions(top_k=value),
    "simulate drafts": lambda models, value: simulated(models, drafts=value),
    "simulate draft_length": lambda models, value: simulated(models, draft_length=value),
    "simulate samples": lambda models, value: simulated(models, samples=value),
    "simulate batch_size": lambda models, value: simulated(models, batch_size=value),
    "simulate on a pair: drafts": lambda _, value: enumerated(drafts=value),
    "simulate on a pair: samples": lambda _, value: enumerated(samples=value),
}
CONFIDENCES: dict[str, Call] = {
    "simulate confidence": lambda models, value: simulated(models, confidence=value),
    "simulate on a pair: confidence": lambda _, value: enumerated(confidence=value),
}


@pytest.mark.parametrize("argument", COUNTS)
def test_whole_numbers(models: LanguageModelPair, argument: str) -> None:
    """Numpy's are taken as Python's; truth values, other numbers, texts and 0 are refused by name."""
    call, name = COUNTS[argument], argument.split()[-1]
    call(models, 2)
    call(models, np.int64(2))
    call(models, np.uint8(2))
    for value in (True, np.True_, 1.5, 2.0, np.float64(2), "2", None, 0, -1, np.int64(0)):
        if value is None and name in ("top_k", "samples"):  # a default
            continue
        with pytest.raises(InvalidInputError, match=f"{name} must be a whole number of at least"):
            call(models, value)


@pytest.mark.parametrize("argument", CONFIDENCES)
def test_confidences(models: LanguageModelPair, argument: str) -> None:
    call = CONFIDENCES[argument]
    for value in (0.5, np.float64(0.5), np.float32(0.5)):
        call(models, value)
    for value in (0, 1, -0.5, 1.5, float("nan"), True, "0.5", None):
        with pytest.raises(InvalidInputError, match="confidence must lie between 0 and 1, got"):
            call(models, value)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1", None])
def test_seeds(seed: Any) -> None:
    with pytest.raises(InvalidInputError, match="seed must be a whole number of at least 0, got"):
        enumerated(seed=seed)
    assert enumerated(seed=np.int64(0)).settings["seed"] == 0


@pytest.mark.parametrize(
    "value", [None, "1", True, False, np.True_, float("nan"), np.inf, 10**400, Fraction(1, 2), 1j]
)
def test_what_is_no_number(value: Any) -> None:
    assert not is_number(value)
    with pytest.raises(InvalidInputError, match="tolerance must be a number from 0"):
        check_tolerance("tolerance", value)
    assert all(is_number(number) for number in (1, np.int64(1), 0.5, np.float32(0.5)))


@pytest.mark.parametrize("wrong", [10**400, 2**63, 10**6 + 1])
def test_more_drafts_than_a_power_can_hold_are_refused(wrong: int) -> None:
    """Of a rational a million; floats have no limit but that of whole numbers."""
    with pytest.raises(InvalidInputError, match="num_drafts must be at most"):
        optimal_acceptance(["1/2", "1/2"], ["1/3", "2/3"], wrong)
    floats = [0.5, 0.5], [0.25, 0.75]
    if wrong < 2**63:
        assert optimal_acceptance(*floats, wrong).value == pytest.approx(1)
    else:
        with pytest.raises(InvalidInputError, match="num_drafts must be at most 9223372036854775807"):
            optimal_acceptance(*floats, wrong)
    with pytest.raises(InvalidInputError, match="seed must be at most"):
        check_count("seed", 2**63)
    assert check_count("seed", 2**63 - 1) == 2**63 - 1


AT_LEAST_0: dict[str, Call] = {
    "SamplingOptions temperature": lambda _, value: SamplingOptions(temperature=value),
}


@pytest.mark.parametrize("argument", AT_LEAST_0)
def test_numbers_of_at_least_0(models: LanguageModelPair, argument: str) -> None:
    call, name = AT_LEAST_0[argument], argument.split()[-1]
    for value in (0, 0.5, 2, np.float32(0.5), np.int64(2)):
        call(models, value)
    for value in (-1.0, float("inf"), float("nan"), True, "1", None, 10**400):
        with pytest.raises(InvalidInputError, match=f"{name} must be a number of at least 0, got"):
            call(models, value)


def test_numbers_become_python_s(models: LanguageModelPair) -> None:
    """What goes into settings and files is an int or a float, whatever it came as."""
    options = SamplingOptions(temperature=np.float32(0.5), top_k=np.int64(3), top_p=np.float32(0.5))
    kept = (
        options.temperature,
        options.top_k,
        options.top_p,
        Restriction(np.array([2])).token_ids[0],
    )
    assert [type(value) for value in kept] == [float, int, float, int]
    settings = simulated(models, drafts=np.int64(1), samples=np.int64(2), confidence=np.float32(0.5)).settings
    assert {type(settings[name]) for name in ("num_drafts", "samples_per_prompt", "batch_size")} == {int}
    assert type(settings["confidence"]) is float


def test_errors_say_what_to_do() -> None:
    with pytest.raises(InvalidPairError, match=r"^depth must be a whole number of at least 0, got -1$"):
        check_count("depth", -1, at_least=0, error=InvalidPairError)
    with pytest.raises(InvalidInputError, match=r"top_k must be .* got 0; None keeps all tokens"):
        SamplingOptions(top_k=0)
    assert check_count("depth", np.int8(3)) == check_positive("gap", 3) == 3
    assert check_confidence(np.float64(0.5)) == 0.5


def test_a_checkpoint_keeps_numpy_s_numbers(models: LanguageModelPair, tmp_path: Path) -> None:
    """JSON knows no numbers of numpy: the file is written all the same, and read back."""
    restriction = Restriction(np.array([5, 90, 200]))
    state = tmp_path / "state.json"
    first = run(models, state, samples=np.int64(2), restriction=restriction)
    assert run(models, state, samples=2, restriction=restriction) == first
