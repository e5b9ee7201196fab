"""Verifiers that reach for what judges them: each ends in a clear error or in NOT lossless.

The limit: code in one process can also patch this package, numpy or the interpreter, and can wait for the
call after the last check.  docs/your_own_verifier.md says so.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from hostile_verifiers import (
    PAIR,
    RIGHT,
    STATE,
    WRITING,
    WRONG,
    Made,
    check_hostile,
    copied_draft,
    in_floats,
)
from spectheory import Outcome, black_box, certify, per_sample
from spectheory.auditing.subjects.shipped import Provenance
from spectheory.pairs.pair import ModelPair
from spectheory.verification.verifier import copies_of
from user_samplers import token_sampler

# ------------------------------------------------------------------------- the pair and the drafts


def over_its_pair(change: Callable[[ModelPair], Any]) -> tuple[Any, ModelPair]:
    """Holds the pair that it is judged on, and changes it before it answers."""
    pair = copies_of(PAIR)

    def outcome(*given: Any) -> Outcome:
        change(pair)
        return WRONG(*given)

    return Made(outcome), pair


PAIRS = {
    "rows": copied_draft,
    "levels": lambda pair: object.__setattr__(pair, "target", (*pair.draft, pair.target[-1])),
    "numbers": lambda pair: [setattr(x, "_numerator", 1) for level in pair.target for x in level.flat],
    "path probabilities": lambda pair: [x.__init__(1) for x in pair.numbers.target_path_probs[3]],
}


@pytest.mark.parametrize("change", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("num_drafts", [1, 2])
def test_the_pair_of_the_caller_is_not_what_is_judged(change: Any, num_drafts: int) -> None:
    verifier, pair = over_its_pair(change)
    found, expected = certify(verifier, pair, num_drafts), certify(Made(), PAIR, num_drafts)
    assert found.total_variation == expected.total_variation > 0
    assert (found.block_efficiency, found.optimum) == (expected.block_efficiency, expected.optimum)


# ------------------------------------------------------------------------------- kinds of numbers


class Thirds(Fraction):
    """Equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = Fraction.__hash__


class Whole(int):
    """An integer that adds as it likes."""

    def __add__(self, other: Any) -> Any:
        return Whole(1)

    __radd__ = __add__


class AsArray:
    """Converts itself when it is asked to."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.array


class Sub(np.ndarray):
    """An array that may compute as it likes."""


def stops_as(convert: Callable[[Any], Any]) -> Made:
    return Made(lambda *given: replace(RIGHT(*given), stop_probs=convert(RIGHT(*given).stop_probs)))


def rows_as(convert: Callable[[Any], Any]) -> Made:
    def outcome(*given: Any) -> Outcome:
        right = RIGHT(*given)
        return Outcome(right.stop_probs, lambda *stop: convert(right.correction(*stop)))

    return Made(outcome)


def each(kind: Any) -> Callable[[Any], Any]:
    return np.frompyfunc(
        lambda x: kind(int(x.numerator)) / int(x.denominator) if kind is Decimal else kind(x), 1, 1
    )


KINDS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "longdouble": (lambda a: a.astype(np.longdouble), "left exact arithmetic"),
    "longdouble entries": (lambda a: a.astype(np.longdouble).astype(object), "left exact arithmetic"),
    "float64 entries": (lambda a: each(np.float64)(a.astype(float)), "left exact arithmetic"),
    "a Fraction's subclass": (each(Thirds), "entries of type .*Thirds"),
    "an int's subclass": (lambda a: each(Whole)(a * 0), "entries of type .*Whole"),
    "decimals": (each(Decimal), "entries of type .*Decimal"),
    "an array's subclass": (lambda a: a.view(Sub), "as Sub; expected ndarray"),
    "a matrix": (lambda a: np.asmatrix(a[..., 0].reshape(len(a), -1)), "as matrix; expected ndarray"),
    "something with __array__": (AsArray, "as AsArray; expected ndarray"),
    "a memoryview": (lambda a: memoryview(a.astype(float)), "as memoryview"),
    "a tensor": (lambda a: torch.tensor(a.astype(float)), "as Tensor"),
    "a generator": (lambda a: (row for row in a), "as generator"),
    "NaN": (lambda a: a * 0 + float("nan"), "left exact arithmetic"),
    "no numbers": (lambda a: np.full(a.shape, None), "entries of type NoneType"),
    "a number without value": (
        lambda a: np.full(a.shape, object.__new__(Fraction)),
        "failed: AttributeError",
    ),
}
NUMBERS = {
    f"{where}: {name}": (make(convert), says)
    for name, (convert, says) in KINDS.items()
    for where, make in (("stops", stops_as), ("rows", rows_as))
}

# ------------------------------------------------------------------------- samplers and loops


def loop(paths: Any, target_rows: Any, draft_rows: Any) -> Any:
    right = WRONG(*(array[None] for array in (paths, target_rows, draft_rows)))
    target_rows[...] = target_rows[..., ::-1].copy()
    return right.stop_probs[0], target_rows


ADAPTED: dict[str, tuple[Any, str]] = {
    "a sampler in floats": (black_box(in_floats), "computes with floats, such as .* exact=False"),
    "a coin of a float": (
        black_box(lambda p, t, d, g: [*p[0], 0] if g.random() < 0.3 else [0]),
        "such as 0.3",
    ),
    "weights in floats": (
        black_box(lambda p, t, d, g: [g.choice(2, p=t[0, 0].astype(float))]),
        "computes with floats",
    ),
    "hidden coins": (black_box(lambda p, t, d, g: [random.randrange(2)]), ""),
    "a loop that writes": (per_sample(loop), ""),
}
HOSTILE = {**WRITING, **STATE, **NUMBERS, **ADAPTED}


@pytest.mark.parametrize(("verifier", "says"), HOSTILE.values(), ids=HOSTILE)
def test_no_hostile_verifier_is_lossless(verifier: Any, says: str) -> None:
    check_hostile(verifier, says)


def test_a_sample_is_where_it_was_drawn() -> None:
    """A correction that writes into its arguments does not move what ``sample`` returns."""
    stops, rows = np.array([[[0.0, 0.0], [0.0, 1.0]]]), np.array([[0.0, 1.0]])
    outcome = Outcome(stops, lambda k, i: (k.fill(0), i.fill(0), rows)[-1])
    drawn = outcome.sample(np.random.default_rng(0))
    assert (drawn.path_index, drawn.length, drawn.token) == (1, 1, 1)


def test_an_audited_function_may_have_no_module() -> None:
    def sampler(*given: Any) -> Any:
        return token_sampler(*given)

    sampler.__module__ = None  # type: ignore[assignment]
    assert Provenance.of(sampler).package == ""
