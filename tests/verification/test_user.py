"""Users' objects as verifiers: what is judged, and what is said of their faults."""

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
import pytest

from spectheory import Outcome, certify, defects, from_loop, from_sampler, instances, output_law, verifiers
from spectheory.exact.rounded import DoesNotRunError, certify_rounded
from spectheory.exact.suite import certify_suite
from spectheory.exact.suite_cases import suite_for
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import Iid
from spectheory.verification.sampler_runs import runs_a_sampler
from spectheory.verification.user import as_verifier
from user_samplers import token_sampler
from user_verifiers import UserToken

PAIR = instances.two_token(2)
RIGHT = verifiers["token"].outcome
WRONG = defects["target_correction"].outcome


class Made:
    """An object with an attribute ``outcome``."""

    name = "made"

    def __init__(self, outcome: Callable[..., Any] = RIGHT) -> None:
        self.outcome = outcome


class BindsItself(Made):
    """What ``bind`` returns has another law."""

    def __init__(self, outcome: Callable[..., Any], bound: Callable[..., Any]) -> None:
        super().__init__(outcome)
        self.bound = bound

    def bind(self, process: Any, pair: Any = None) -> Any:
        return Made(self.bound)


@pytest.mark.parametrize(("outcome", "bound", "is_valid"), [(RIGHT, WRONG, False), (WRONG, RIGHT, True)])
def test_what_bind_returned_is_judged(outcome: Any, bound: Any, is_valid: bool) -> None:
    assert bool(certify(BindsItself(outcome, bound), PAIR, with_optimum=False)) is is_valid


def test_the_suite_names_what_bind_returned() -> None:
    class Bound(UserToken):
        def bind(self, process: Any, pair: Any = None) -> Any:
            return verifiers["token"]

    few = suite_for(as_verifier(UserToken()), quick=True)[:2]
    assert certify_suite(Bound(), few).headline().startswith("user_token (bound to token): lossless")
    assert certify_suite(UserToken(), few).headline().startswith("user_token: lossless")


# --------------------------------------------------------------------------------------- samplers


def catches(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> Any:
    coin = generator.random()
    try:
        float(coin)
    except Exception:
        return token_sampler(paths, target_rows, draft_rows, generator)
    return [0]


@pytest.mark.parametrize("exact", [True, False])
def test_a_refusal_stands_even_if_it_is_caught(exact: bool) -> None:
    with pytest.raises(InvalidInputError, match="turned into a float before it is compared"):
        certify(from_sampler(catches, exact=exact), PAIR)


# ---------------------------------------------------------------------------------------- floats


class InFloats(UserToken):
    """Does something else where its rows are floats."""

    def __init__(self, change: Callable[..., Outcome]) -> None:
        self.change = change

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        if target_rows.dtype == object:
            return RIGHT(paths, target_rows, draft_rows)
        return self.change(paths, target_rows, draft_rows)


def writes(paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
    target_rows[...] = 0
    return RIGHT(paths, target_rows, draft_rows)


def of_another_shape(*given: Any) -> Outcome:
    right = RIGHT(*given)
    return Outcome(right.stop_probs[..., 0], right.correction)


def fails(*given: Any) -> Outcome:
    raise TypeError("no floats, please")


def in_double(*given: Any) -> Outcome:
    right = RIGHT(*given)
    return Outcome(right.stop_probs.astype(np.float64), right.correction)


@pytest.mark.parametrize("change", [writes, of_another_shape, lambda *given: None])
def test_a_fault_in_floats_is_a_fault(change: Any) -> None:
    found = certify_rounded(as_verifier(InFloats(change)), PAIR, Iid(1), "float32")
    assert not found
    assert found.failure is not None


@pytest.mark.parametrize("change", [fails, in_double])
def test_partner_what_does_not_run_is_left_out(change: Any) -> None:
    with pytest.raises(DoesNotRunError):
        certify_rounded(as_verifier(InFloats(change)), PAIR, Iid(1), "float32")


def one_tuple(paths: Any, target_rows: Any, draft_rows: Any) -> Any:
    right = RIGHT(paths[None], target_rows[None], draft_rows[None])
    rows = [right.correction(np.array([0]), np.array([depth]))[0] for depth in range(target_rows.shape[1])]
    return right.stop_probs[0], np.array([rows])


@pytest.mark.parametrize("arithmetic", ["float64", "float32", "torch float32"])
def test_functions_of_one_tuple_run_in_floats(arithmetic: str) -> None:
    verifier = as_verifier(from_loop(one_tuple))
    assert certify_rounded(verifier, PAIR, Iid(1), arithmetic)


# -------------------------------------------------------------------------------- habits and texts


class Locks(UserToken):
    """Holds a lock, and locks its input against writing."""

    def __init__(self) -> None:
        self.lock = Lock()

    def outcome(self, *given: Any) -> Outcome:
        for array in given:
            array.setflags(write=False)
        return RIGHT(*given)


class OwnError(InvalidInputError):
    def __init__(self, number: int, where: str) -> None:
        super().__init__(f"{number}\nat {where}")


def test_only_from_sampler_runs_a_sampler() -> None:
    assert runs_a_sampler(as_verifier(from_sampler(token_sampler)))
    assert not runs_a_sampler(as_verifier(from_loop(one_tuple)))
    assert not runs_a_sampler(verifiers["token"])


def test_arrays_may_be_locked() -> None:
    assert certify(Locks(), instances.two_token(1))


def test_errors_of_users_are_one_line() -> None:
    def outcome(*given: Any) -> Outcome:
        raise OwnError(3, "x")

    with pytest.raises(InvalidInputError, match="failed: 3 at x"):
        output_law(Made(outcome), PAIR)
