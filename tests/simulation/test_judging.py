"""What a verifier answers in a simulation must be laws, and a function of what it was given."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from deep import first_is_quick
from montecarlo_support import PROMPTS, run
from spectheory import instances
from spectheory.decoding import decode
from spectheory.foundation.arrays import namespace
from spectheory.foundation.errors import InsufficientMemoryError, InvalidInputError, InvalidOutcomeError
from spectheory.models import LanguageModelPair
from spectheory.pairs.drafts import ConfidenceTree
from spectheory.simulation import simulate
from spectheory.verification.law_errors import FAULTS
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import find_verifier


class Changed:
    """Block verification, its answer changed by a function (outcome, paths) -> outcome."""

    name = "changed"

    def __init__(self, change: Callable[[Outcome, Any], Outcome]) -> None:
        self.change = change

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        return self.change(find_verifier("block").outcome(paths, target_rows, draft_rows), paths)


def with_stops(change: Callable[[Any], Any]) -> Callable[[Outcome, Any], Outcome]:
    return lambda outcome, _: Outcome(change(outcome.stop_probs), outcome.correction)


def with_rows(change: Callable[[Any], Any]) -> Callable[[Outcome, Any], Outcome]:
    return lambda outcome, _: Outcome(
        outcome.stop_probs, lambda path_index, length: change(outcome.correction(path_index, length))
    )


def more_at_the_end(stop_probs: Any) -> Any:
    """Sums of 1, with a negative entry; a mean of these exceeds L + 1."""
    changed = namespace(stop_probs).asarray(stop_probs, copy=True)
    changed[..., 0, 0] -= 0.9
    changed[..., 0, -1] += 0.9
    return changed


VETTED = 8
"""The answers that a user's own verifier is checked on."""
NOT_LAWS = [
    (with_stops(more_at_the_end), FAULTS[0]),
    (with_stops(lambda stops: stops / 2), FAULTS[0]),
    (with_stops(lambda stops: stops * 2), FAULTS[0]),
    (with_stops(lambda stops: stops * float("nan")), FAULTS[0]),
    (with_stops(lambda stops: stops * 0), FAULTS[0]),
    (with_rows(lambda rows: rows / 2), FAULTS[2]),
    (with_rows(lambda rows: rows * float("nan")), FAULTS[2]),
    (with_rows(lambda rows: rows * 2 - 1 / rows.shape[-1]), FAULTS[2]),
    (with_rows(lambda rows: rows * 0), FAULTS[3]),
]


@pytest.mark.parametrize("number", range(len(NOT_LAWS)))
def test_what_is_no_law_is_refused_on_an_enumerated_pair(number: int) -> None:
    """A single wrong answer in all of a batch is enough; block itself passes."""
    change, fault = NOT_LAWS[number]
    calls = itertools.count()

    def later(outcome: Outcome, paths: Any) -> Outcome:
        # The first answers are right: those that a user's own verifier is checked on.
        return outcome if next(calls) < VETTED else change(outcome, paths)

    pair = instances.sticky_chain(2)
    with pytest.raises(InvalidOutcomeError, match=f"verifier 'changed' returned {fault}, on the enumerated"):
        simulate(pair, verifiers=["token", Changed(later)], samples=8_000)
    same = simulate(pair, verifiers=["block", Changed(lambda outcome, _: outcome)], samples=8_000)
    assert same.estimates[0].block_efficiency == same.estimates[1].block_efficiency


@first_is_quick("number", range(len(NOT_LAWS)))
def test_what_is_no_law_is_refused_on_language_models(models: LanguageModelPair, number: int) -> None:
    """At the second prompt of a batch of two, which is named."""
    change, fault = NOT_LAWS[number]

    def at_the_second(outcome: Outcome, paths: Any) -> Outcome:
        changed = change(outcome, paths)
        if len(paths) != 2:  # asked about other tuples when it is vetted
            return outcome
        first = torch.arange(2)[:, None] == 0

        def correction(path_index: Any, length: Any) -> Any:
            rows = (changed.correction(path_index, length), outcome.correction(path_index, length))
            return torch.where(first, rows[1], rows[0])

        stops = torch.where(first[..., None], outcome.stop_probs, changed.stop_probs)
        return Outcome(stops, correction)

    settings: dict[str, Any] = {"drafts": 1, "draft_length": 3, "samples": 40, "batch_size": 2, "seed": 4}
    calls = itertools.count()

    def after_vetting(outcome: Outcome, paths: Any) -> Outcome:
        return outcome if next(calls) < VETTED else at_the_second(outcome, paths)

    with pytest.raises(
        InvalidOutcomeError, match=rf"'changed' returned {fault}, after prompt 2 \('import'\)"
    ):
        simulate(models, PROMPTS[:2], [Changed(after_vetting)], **settings)


def test_the_tolerance_is_an_argument(models: LanguageModelPair) -> None:
    off = Changed(with_stops(lambda stops: stops * (1 + 1e-6)))
    calls = itertools.count()
    later = Changed(lambda outcome, _: outcome if next(calls) < VETTED else off.change(outcome, _))
    with pytest.raises(InvalidOutcomeError, match="off by 1e-06, more than the tolerance 1e-09"):
        simulate(instances.two_token(2), verifiers=[later], samples=8_000, tolerance=None)
    with pytest.raises(InvalidOutcomeError, match=r"they sum to 1\.00000"):
        simulate(instances.two_token(2), verifiers=[off], samples=2_000, tolerance=None)
    simulate(instances.two_token(2), verifiers=[off], samples=2_000, tolerance=1e-5)
    simulate(models, PROMPTS, [off], samples=2, draft_length=1, tolerance=1e-5)
    for tolerance in (0, -1.0, float("nan"), "1"):
        with pytest.raises(InvalidInputError, match="tolerance must be a positive number"):
            simulate(instances.two_token(2), verifiers=["token"], tolerance=tolerance)


def by_state() -> Changed:
    numbers = itertools.count()
    return Changed(
        lambda outcome, _: outcome if next(numbers) % 2 else with_stops(lambda s: s.flip(-1))(outcome, None)
    )


def by_the_batch() -> Changed:
    def first_differs(outcome: Outcome, paths: Any) -> Outcome:
        stops = outcome.stop_probs.clone()
        stops[0] = stops[0].flip(-1)
        return Outcome(stops, outcome.correction)

    return Changed(first_differs)


def writes_into_its_input() -> Changed:
    def write(outcome: Outcome, paths: Any) -> Outcome:
        paths[0, 0, 0] = (paths[0, 0, 0] + 1) % 280
        return outcome

    return Changed(write)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (by_state, "the same call gives different outcomes"),
        (by_the_batch, "depends on the size, the order or the stops of its batch"),
        (writes_into_its_input, "writes into its input paths"),
    ],
)
@pytest.mark.parametrize("prompts", [1, 3])
def test_no_function_of_its_inputs(
    models: LanguageModelPair, build: Callable[[], Changed], words: str, prompts: int
) -> None:
    """Refused before anything is drawn for the estimates, with one prompt too."""
    with pytest.raises(InvalidOutcomeError, match=words) as caught:
        simulate(models, PROMPTS[:prompts], [build()], drafts=2, draft_length=3, samples=2)
    assert "\n" not in str(caught.value)


def test_lossless_is_what_the_package_says_or_a_user_denies() -> None:
    class Denies(Changed):
        name = "denies"
        lossless = False

    def same(outcome: Outcome, _: Any) -> Outcome:
        return outcome

    simulation = simulate(
        instances.two_token(2), verifiers=["block", "greedy_block", Changed(same), Denies(same)], samples=100
    )
    assert [estimate.lossless for estimate in simulation.estimates] == [True, False, None, False]


@pytest.mark.parametrize(
    ("error", "is_memory"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes"), True),
        (RuntimeError("something else"), False),
    ],
)
def test_out_of_memory_names_the_batch_size_to_try(
    models: LanguageModelPair, monkeypatch: pytest.MonkeyPatch, error: Exception, is_memory: bool
) -> None:
    def fail(*arguments: Any) -> None:
        raise error

    monkeypatch.setattr("spectheory.models.drafting._score", fail)
    if not is_memory:
        with pytest.raises(RuntimeError, match="something else"):
            run(models, batch_size=3)
        return
    with pytest.raises(InsufficientMemoryError, match="drafting for 3 prompts at a time; try batch_size 1 "):
        run(models, batch_size=3)
    with pytest.raises(InsufficientMemoryError, match="use fewer drafts"):
        run(models, batch_size=1)


class FollowsTheLast(Changed):
    """Declares that it looks at one path, and accepts the last one."""

    name, single_path = "follows_the_last", True

    def __init__(self) -> None:
        super().__init__(lambda outcome, paths: Outcome(self.stops(outcome), outcome.correction))

    def stops(self, outcome: Outcome) -> Any:
        stops = outcome.stop_probs * 0
        stops[..., -1, min(stops.shape[-2], stops.shape[-1] - 1)] += 1
        return stops


def test_a_verifier_of_one_path_gets_one(models: LanguageModelPair) -> None:
    """On one path it stops after one token, whatever others are drafted beside it."""
    asked: dict[str, Any] = {"drafts": 2, "draft_length": 2, "max_new_tokens": 1, "common_texts": True}
    (found,) = simulate(models, PROMPTS[:2], [FollowsTheLast()], **asked).estimates
    assert found.block_efficiency == pytest.approx(2.0)


def test_estimates_are_told_apart_by_their_names(models: LanguageModelPair) -> None:
    given = Changed(lambda outcome, _: outcome)
    given.name = "block"
    asked: dict[str, Any] = {"draft_length": 2, "samples": 2}
    found = simulate(models, PROMPTS[:1], ["block", given], drafts=1, **asked)
    assert [estimate.verifier for estimate in found.estimates] == ["block", "block (user-defined)"]
    given.name, given.single_path = "spectr K=2", True  # type: ignore[attr-defined]
    with pytest.raises(InvalidInputError, match=r"two verifiers have estimates called 'spectr K=2'"):
        simulate(models, PROMPTS[:1], ["spectr", given], drafts=(1, 2), **asked)


def everything(outcome: Outcome) -> Outcome:
    stops = outcome.stop_probs * 0
    stops[..., 0, -1] += 1
    return Outcome(stops, outcome.correction)


class AcceptsTheNodeBehindTheEnd(Changed):
    """Accepts L tokens of paths that end before."""

    name, draft_processes = "accepts_the_node_behind_the_end", frozenset({"confidence_tree"})

    def __init__(self) -> None:
        super().__init__(lambda outcome, paths: everything(outcome))

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        return everything(find_verifier("naive_sampling").outcome(paths, target_rows, draft_rows))


def test_one_wrong_answer_among_right_ones_is_refused() -> None:
    """In the first of five rounds of one batch, after those that a user's own verifier is checked on."""
    counted = itertools.count()
    vetted = Changed(lambda outcome, _: (next(counted), outcome)[1])
    pair = instances.sticky_chain(2)
    simulate(pair, verifiers=[vetted], samples=10_000)
    first = next(counted) - 5
    calls = itertools.count()
    once = Changed(
        lambda outcome, _: (
            Outcome(outcome.stop_probs / 2, outcome.correction) if next(calls) == first else outcome
        )
    )
    with pytest.raises(InvalidOutcomeError, match="stop probabilities that are not a law"):
        simulate(pair, verifiers=[once], samples=10_000)
    assert next(calls) == first + 5  # the four others were asked for, and did not hide it


def test_wrong_shapes_are_refused(models: LanguageModelPair) -> None:
    for change, words in (
        (with_stops(lambda stops: stops[..., :-1]), "stop_probs of shape"),
        (with_rows(lambda rows: rows[..., :-1]), "correction rows of shape"),
    ):
        with pytest.raises(InvalidOutcomeError, match=words):
            simulate(models, PROMPTS, [Changed(change)], samples=2, draft_length=2)
        calls = itertools.count()
        later = Changed(
            lambda outcome, paths, change=change, calls=calls: (
                change(outcome, paths) if next(calls) >= VETTED else outcome
            )
        )
        with pytest.raises(InvalidOutcomeError, match=f"{words} .* expected"):
            simulate(instances.two_token(2), verifiers=[later], samples=8_000)


def test_vetting_moves_no_number(models: LanguageModelPair) -> None:
    alone = run(models)
    mixed = simulate(
        models,
        PROMPTS,
        ["token", Changed(lambda outcome, _: outcome), "block"],
        drafts=2,
        draft_length=3,
        samples=3,
        batch_size=1,
        seed=4,
    )
    assert [mixed.estimates[0], mixed.estimates[2]] == alone.estimates
    assert mixed.estimates[1].block_efficiency == alone.estimates[1].block_efficiency


def test_out_of_memory_in_a_verifier(models: LanguageModelPair) -> None:
    def fail(outcome: Outcome, paths: Any) -> Outcome:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(InsufficientMemoryError, match="try batch_size 1"):
        simulate(models, PROMPTS[:2], [Changed(fail)], samples=2, draft_length=1)


def test_numbers_in_float32_are_within_their_tolerance(models: LanguageModelPair) -> None:
    single = replace(models, probs_dtype=torch.float32)
    for estimate, wide in zip(run(single).estimates, run(models).estimates, strict=True):
        np.testing.assert_allclose(estimate.block_efficiency, wide.block_efficiency, atol=0.5)


def test_small_negative_numbers_add_up() -> None:
    """Each is within the tolerance, and their sum is not."""

    def negative(outcome: Outcome, _: Any) -> Outcome:
        stops = outcome.stop_probs * 0 - 9e-6
        stops[..., 0, -1] = 1 + 9e-6 * (stops.shape[-1] * stops.shape[-2] - 1)
        return Outcome(stops, outcome.correction)

    with pytest.raises(InvalidOutcomeError, match="not a law"):
        simulate(
            instances.sticky_chain(2), verifiers=[Changed(negative)], drafts=2, samples=100, tolerance=1e-5
        )


@pytest.mark.parametrize("nodes", [1, 2])
def test_one_path_may_end_too(models: LanguageModelPair, nodes: int) -> None:
    """A tree of one node has one path, which is shorter than L."""
    asked: dict[str, Any] = {"drafts": ConfidenceTree(nodes), "draft_length": 2, "max_new_tokens": 4}
    with pytest.raises(InvalidOutcomeError, match=r"behind the end of a path|which ends before"):
        decode(models, PROMPTS[:2], AcceptsTheNodeBehindTheEnd(), **asked)
