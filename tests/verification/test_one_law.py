"""An object has one law: what is judged is what ``bind`` returned, and what draws."""

from collections.abc import Callable
from copy import copy
from threading import Lock
from typing import Any

import numpy as np
import pytest

from hostile_verifiers import PAIR, RIGHT, WRONG, Made, verdicts
from spectheory import Outcome, black_box, certify, instances, per_sample, verifiers
from spectheory.exact.proof import prove
from spectheory.exact.rounded import DoesNotRunError, certify_rounded
from spectheory.exact.suite import certify_suite, suite_for
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import Iid
from spectheory.verification.sampler_runs import RunsOnTuples, SamplerRun, runs_a_sampler
from spectheory.verification.verifier import UserVerifier, as_verifier, copies_of
from user_samplers import token_sampler
from user_verifiers import UserToken


class BindsItself:
    """Holds another verifier under a name that the package uses for its own objects."""

    name = "binds_itself"

    def __init__(self, law: Callable[..., Outcome], held: Any) -> None:
        self.law, self.user_object = law, held

    def outcome(self, *given: Any) -> Outcome:
        return self.law(*given)

    def bind(self, process: Any, pair: Any = None) -> Any:
        return copy(self)


@pytest.mark.parametrize(("law", "held", "is_valid"), [(WRONG, "token", False), (RIGHT, Made(), True)])
def test_what_bind_returned_is_judged(law: Any, held: Any, is_valid: bool) -> None:
    held = verifiers[held] if isinstance(held, str) else held
    assert certify(BindsItself(law, held), PAIR, with_optimum=False).is_valid is is_valid


def test_the_suite_names_what_bind_returned() -> None:
    class Bound(UserToken):
        def bind(self, process: Any, pair: Any = None) -> Any:
            return verifiers["token"]

    few = suite_for(as_verifier(UserToken()), quick=True)[:2]
    assert certify_suite(Bound(), few).headline().startswith("user_token (bound to token): lossless")
    assert certify_suite(UserToken(), few).headline().startswith("user_token: lossless")


# --------------------------------------------------------------------------------------- samplers


class TwoLaws(RunsOnTuples):
    def outcome(self, *given: Any) -> Outcome:
        return RIGHT(*given)

    def run_on_tuple(self, *given: Any) -> SamplerRun:
        return SamplerRun(0, 0, 0)


def with_another_method() -> Any:
    made = black_box(token_sampler)
    made.run_on_tuple = TwoLaws().run_on_tuple  # type: ignore[method-assign]
    return made


def test_a_sampler_is_the_packages_own() -> None:
    assert runs_a_sampler(as_verifier(black_box(token_sampler)))
    registered = type("Registered", (UserToken,), {})
    RunsOnTuples.register(registered)
    for other in (TwoLaws(), with_another_method(), registered()):
        assert not runs_a_sampler(as_verifier(other))


def test_a_black_box_has_the_function_that_it_runs() -> None:
    made = black_box(token_sampler)
    made.function = lambda *given: [0]
    assert not any(verdicts(made))
    assert made.run_on_tuple(np.zeros((1, 2), int), np.ones((1, 3, 2)), np.ones((1, 2, 2)), None).token == 0


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
        certify(black_box(catches, exact=exact), PAIR)


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
    with pytest.raises(InvalidInputError) as caught:
        certify_rounded(as_verifier(InFloats(change)), PAIR, Iid(1), "float32")
    assert not isinstance(caught.value, DoesNotRunError)


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
    verifier = as_verifier(per_sample(one_tuple))
    assert certify_rounded(verifier, PAIR, Iid(1), arithmetic).is_valid


# -------------------------------------------------------------------------------- habits and texts


class Locks(UserToken):
    """Holds a lock, and locks its input against writing."""

    def __init__(self) -> None:
        self.lock = Lock()

    def outcome(self, *given: Any) -> Outcome:
        for array in given:
            array.setflags(write=False)
        return RIGHT(*given)


def test_arrays_may_be_locked() -> None:
    assert certify(Locks(), instances.two_token(1)).is_valid


def test_what_cannot_be_copied_is_said() -> None:
    with pytest.raises(InvalidInputError, match="copying Locks failed: TypeError: cannot pickle"):
        prove(Locks(), vocab_size=2, draft_length=1)
    with pytest.raises(InvalidInputError, match="copying ExitsError failed: SystemExit"):
        copies_of(ExitsError())


class ExitsError(Exception):
    def __str__(self) -> str:
        raise SystemExit(0)

    def __reduce__(self) -> Any:
        raise SystemExit(0)


class OwnError(InvalidInputError):
    def __init__(self, number: int, where: str) -> None:
        super().__init__(f"{number}\nat {where}")


@pytest.mark.parametrize(
    ("error", "says"), [(ExitsError(), "failed: ExitsError"), (OwnError(3, "x"), "failed: 3 at x")]
)
def test_errors_of_users_are_one_line(error: Exception, says: str) -> None:
    def outcome(*given: Any) -> Outcome:
        raise error

    with pytest.raises(InvalidInputError, match=says):
        certify(Made(outcome), PAIR)


def test_a_function_whose_wrapper_ends_the_process_has_no_place() -> None:
    class Wrapped:
        @property
        def __wrapped__(self) -> Any:
            raise SystemExit(0)

        def __call__(self, *given: Any) -> int:
            return 3

    with pytest.raises(InvalidInputError, match="returned int, expected an Outcome"):
        certify(Made(Wrapped()), PAIR)


def test_a_shape_is_looked_at_before_it_is_copied() -> None:
    huge = np.broadcast_to(np.float64(1), (10**15,))
    with pytest.raises(InvalidInputError, match=r"of shape \(1000000000000000,\)"):
        certify(Made(lambda *given: Outcome(huge, lambda k, i: None)), PAIR)


@pytest.mark.parametrize("name", ["block: lossless", "block： lossless", "block∶", " ", "a\nb", "x" * 300])
def test_a_given_name_is_no_verdict(name: str) -> None:
    with pytest.raises(InvalidInputError, match="without a colon, a space at an end and"):
        UserVerifier(UserToken(), name)
    assert UserVerifier(UserToken(), "mine").name == "mine"
