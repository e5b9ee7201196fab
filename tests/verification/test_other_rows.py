"""A batch may hold texts of many contexts: no answer depends on the rows, or the call, of another tuple."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from deep import first_is_quick
from spectheory import Outcome, certify, instances, output_law
from spectheory.exact.suite import certify_suite
from spectheory.exact.suite_cases import suite_for
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.verification.user import as_verifier
from user_verifiers import UserToken

PAIR = instances.random_rational(6, 3, 2, zero_probability=0)
Change = Callable[[Any, Any, Any], tuple[Any, Any, Any]]


class Changed(UserToken):
    """Token verification on arguments that are changed first."""

    def __init__(self, change: Change) -> None:
        self.change = change

    def outcome(self, *given: Any) -> Outcome:
        return super().outcome(*self.change(*(np.array(array) for array in given)))


def root_of_first(paths: Any, target_rows: Any, draft_rows: Any) -> Any:
    target_rows[:, :, 0], draft_rows[:, :, 0] = target_rows[:1, :, 0], draft_rows[:1, :, 0]
    return paths, target_rows, draft_rows


def rolled(paths: Any, target_rows: Any, draft_rows: Any) -> Any:
    """The draft's first row is that of the request before."""
    draft_rows[:, :, 0] = np.roll(draft_rows[:, :, 0], 1, axis=0)
    return paths, target_rows, draft_rows


def equal_drafts_once(paths: Any, target_rows: Any, draft_rows: Any) -> Any:
    first, inverse = np.unique(paths.reshape(len(paths), -1), axis=0, return_index=True, return_inverse=True)[
        1:
    ]
    same = first[inverse.ravel()]
    return paths, target_rows[same], draft_rows[same]


def bonus_of_first(paths: Any, target_rows: Any, draft_rows: Any) -> Any:
    """Behind equal first tokens the last rows of the first request."""
    for number, path in enumerate(paths):
        same = np.flatnonzero((paths[:, :, 0] == path[:, 0]).all(-1))[0]
        if (paths[same] == path).all():
            target_rows[number, :, -1] = target_rows[same, :, -1]
    return paths, target_rows, draft_rows


@pytest.mark.parametrize("change", [root_of_first, rolled, equal_drafts_once, bonus_of_first])
def test_rows_of_other_requests_are_none_of_its_own(change: Change) -> None:
    with pytest.raises(InvalidOutcomeError, match="depends on the rows of the other tuples of the batch, or"):
        output_law(Changed(change), PAIR)


def test_partner_other_rows_change_nothing() -> None:
    assert certify(Changed(lambda *given: given), PAIR, with_optimum=False)


class Remembers(UserToken):
    """Answers drafts that it has seen with these rows, of all that it is given, as it did then."""

    def __init__(self, what: str) -> None:
        self.what, self.seen = what, {}

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        target_rows, draft_rows = target_rows.copy(), draft_rows.copy()
        for path, target, draft in zip(paths, target_rows, draft_rows, strict=True):
            looked_at = {"root": (target[:, 0], draft[:, 0]), "target": target, "draft": draft}[self.what]
            key = str((path.tolist(), target.dtype, target.shape, np.array(looked_at).tolist()))
            target[...], draft[...] = self.seen.setdefault(key, (target.copy(), draft.copy()))
        return super().outcome(paths, target_rows, draft_rows)


@first_is_quick("what", ["root", "target", "draft"])
def test_answers_that_are_kept_for_other_rows(what: str) -> None:
    """One tuple at a time, so that no other of the batch shows it."""
    cases = [case for case in suite_for(as_verifier(UserToken()), quick=True) if "alike" in case.name]
    found = certify_suite(Remembers(what), cases)
    assert not found
    assert certify_suite(UserToken(), cases)


def test_partner_bind_may_keep_what_it_was_given() -> None:
    class Keeps(UserToken):
        def bind(self, process: Any, pair: Any = None) -> Any:
            self.process, self.pair = process, pair
            return self

    assert certify(Keeps(), PAIR, with_optimum=False)
    assert certify_suite(Keeps(), suite_for(as_verifier(UserToken()), quick=True)[:4])


def test_an_output_that_is_never_made_is_a_defect_however_rare() -> None:
    """0/0 with a probability of 10^-10 in floats; with one of 10^-17 it is rounding."""

    class Undefined(UserToken):
        def __init__(self, prob: float) -> None:
            self.prob = prob

        def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
            rows, stops = target_rows.copy(), 0 * target_rows[..., 0]
            stops[:, 0, 0], stops[:, 0, 1], rows[:, 0, 0] = self.prob, 1 - self.prob, 0
            return Outcome.from_rows(stops, rows)

    for prob, is_valid in ((1e-10, False), (1e-17, True)):
        found = certify(Undefined(prob), instances.equal_models(1).to_float(), with_optimum=False)
        assert found.undefined == pytest.approx(prob)
        assert bool(found) is is_valid


class KeepsByTokens(UserToken):
    """What ``bind`` returns keeps its answers by the drafted tokens."""

    def bind(self, process: Any, pair: Any = None) -> Any:
        bound = KeepsByTokens()
        bound.kept = {}  # type: ignore[attr-defined]
        return bound

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        target_rows, draft_rows = target_rows.copy(), draft_rows.copy()
        for path, *rows in zip(paths, target_rows, draft_rows, strict=True):
            kept = self.kept.setdefault(path.tobytes(), [row.copy() for row in rows])  # type: ignore[attr-defined]
            for row, before in zip(rows, kept, strict=True):
                row[...] = before
        return super().outcome(paths, target_rows, draft_rows)


class BindsAndLooksAside(Changed):
    """With a ``bind``, and the first request's root for all; without a pair only, if it is told so."""

    def __init__(self, is_for_models: bool) -> None:
        super().__init__(root_of_first)
        self.is_for_models = is_for_models

    def bind(self, process: Any, pair: Any = None) -> Any:
        return UserToken() if self.is_for_models and pair is not None else self


@pytest.mark.parametrize(
    ("verifier", "said"),
    [
        (KeepsByTokens(), "or of a call before"),
        (BindsAndLooksAside(False), "of the other tuples of the batch"),
    ],
)
def test_what_bind_returns_is_looked_at(verifier: Any, said: str) -> None:
    with pytest.raises(InvalidOutcomeError, match=said):
        output_law(verifier, PAIR)


class Raises(UserToken):
    def __init__(self, error: Exception) -> None:
        self.error = error

    def outcome(self, *given: Any) -> Outcome:
        raise self.error


def test_a_verifier_that_knows_the_rows_of_its_pair_only() -> None:
    """It may refuse others."""
    rows = {str(row) for level in PAIR.target for row in level.tolist()}

    class Knows(UserToken):
        def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
            if {str(row) for row in target_rows.reshape(-1, 3).tolist()} - rows:
                raise InvalidInputError("rows of another pair")
            return super().outcome(paths, target_rows, draft_rows)

    assert certify(Knows(), PAIR, with_optimum=False)


def test_errors_of_the_package_that_user_code_raises() -> None:
    with pytest.raises(InvalidInputError, match="outcome of verifier 'user_token' failed: too heavy"):
        certify(Raises(InvalidInputError("too heavy")), PAIR, with_optimum=False)


def test_what_bind_returns_for_language_models_is_looked_at() -> None:
    """By the suite, which judges again what ``bind`` returns without a pair."""
    cases = suite_for(as_verifier(UserToken()), quick=True)
    found = certify_suite(BindsAndLooksAside(True), cases, stop_at_first=True)
    assert found.counterexample is not None
    assert "of the other tuples of the batch" in found.counterexample.in_words()
