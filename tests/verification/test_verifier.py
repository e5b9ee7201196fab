"""The contract: what a user's object may say of itself is forwarded or refused, never dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep import first_is_quick
from spectheory import certify, instances, output_law
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import DraftProcess, PrefixTree, WithoutReplacement
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms import verifiers
from spectheory.verification.defective import defects
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import find_verifier, resolve
from spectheory.verification.user import UserVerifier, as_verifier
from spectheory.verification.verifier import Registry, Verifier
from table import Case, random_cases
from user_verifiers import OnePath, UserToken


def of_one_path(chosen: int, paths: Any, target_rows: Any, draft_rows: Any) -> Any:
    """Token verification of one of the drafted paths: (stop probabilities, correction rows)."""
    stops, rows = UserToken().on_path(paths[chosen], target_rows[chosen], draft_rows[chosen])
    credited = [[stop * 0 for stop in stops] for _ in paths]
    for length, stop in enumerate(stops):
        holder = next(k for k, path in enumerate(paths) if path[:length] == paths[chosen][:length])
        credited[holder][length] = stop
    return credited, [rows] * len(paths)


@pytest.mark.parametrize("name", ["block", next(iter(defects))])
def test_names_of_the_package_are_its_own(name: str) -> None:
    given = type("Another", (UserToken,), {"name": name})()
    assert certify(given, instances.two_token(1)).verifier == f"{name} (user-defined)"
    assert certify(name if name in verifiers else defects[name], instances.two_token(1)).verifier == name


def test_what_an_object_does_not_say_takes_the_default() -> None:
    """A plain object with ``outcome`` alone: nothing is assumed in its favour."""
    adapted = as_verifier(UserToken())
    assert (adapted.name, adapted.source) == ("user_token", "user-defined")
    assert (adapted.exact, adapted.single_path, adapted.exchangeable) == (True, False, False)
    assert adapted.max_draft_length is None
    assert adapted.modified_target_rows is None
    assert isinstance(adapted, UserVerifier)
    assert as_verifier(adapted).user_object is adapted.user_object


def test_what_an_object_says_is_forwarded() -> None:
    said = {
        "source": "a paper",
        "single_path": True,
        "exact": False,
        "exchangeable": True,
        "lossless": False,
        "max_draft_length": np.int64(2),
        "draft_processes": {"iid", "prefix_tree"},
    }
    adapted = as_verifier(type("Says", (UserToken,), said)())
    assert {key: getattr(adapted, key) for key in said} == said


def test_the_longest_draft_is_respected() -> None:
    """``max_draft_length`` of a plain object: refused on a longer pair, taken on a shorter one."""
    one_token = type("OneToken", (UserToken,), {"max_draft_length": 1})()
    assert certify(one_token, instances.two_token(1))
    with pytest.raises(InvalidInputError, match="at most 1 token, got draft_length 2"):
        certify(one_token, instances.two_token(2))
    with pytest.raises(InvalidInputError, match="at most 1 token, got draft_length 3"):
        as_verifier(one_token).outcome(
            np.zeros((1, 1, 3), dtype=int), np.ones((1, 1, 4, 1)), np.ones((1, 1, 3, 1))
        )


@pytest.mark.parametrize(
    ("attribute", "value", "says"),
    [
        ("single_path", 1, "single_path of verifier 'user_token' must be True or False, got 1"),
        (
            "max_draft_length",
            0,
            "max_draft_length of verifier 'user_token' must be a whole",
        ),
        (
            "draft_processes",
            "iid",
            "draft_processes of verifier 'user_token' must be a set of names",
        ),
        ("draft_processes", {"beam"}, "draft_processes"),
        ("name", 7, "name of verifier"),
        ("bind", 3, "bind of verifier 'user_token' must be a method"),
    ],
)
def test_what_cannot_be_is_refused(attribute: str, value: Any, says: str) -> None:
    """A declaration of the wrong kind is one clear line."""
    with pytest.raises(InvalidInputError, match=says):
        as_verifier(type("Says", (UserToken,), {attribute: value})())


class PathOfTheTree(UserToken):
    """Token verification of the last path of a tree: it must be told how many there are."""

    name = "path_of_the_tree"
    chosen = 0

    def bind(self, process: DraftProcess, pair: ModelPair | None = None) -> PathOfTheTree:
        bound = PathOfTheTree()
        bound.chosen = process.num_drafts - 1
        return bound

    def law_given_drafts(self, paths: Any, target_rows: Any, draft_rows: Any) -> Any:
        return of_one_path(self.chosen, paths, target_rows, draft_rows)


def test_bind_of_a_plain_object_is_called() -> None:
    """The law is that of the last path; unbound it is that of the first, and a tree is what tells."""
    pair = instances.sticky_chain(2)
    bound = resolve(PathOfTheTree(), pair, drafts=PrefixTree((2, 2))).verifier
    assert isinstance(bound, UserVerifier)
    assert bound.user_object.chosen == 3
    assert certify(PathOfTheTree(), pair, drafts=PrefixTree((2, 2)))


def test_bind_that_returns_no_verifier_is_refused() -> None:
    """A hook that forgets to return."""
    forgets = type("Forgets", (UserToken,), {"bind": lambda self, process, pair=None: None})()
    with pytest.raises(InvalidInputError, match="bind of verifier 'user_token' returned None"):
        certify(forgets, instances.two_token(1))


def test_a_registry_has_no_other_names() -> None:
    """As a mapping: unknown names are KeyErrors, its length is the number of names."""
    with pytest.raises(KeyError, match=r"^no verifier is called 'blok'; did you mean 'block'\?"):
        verifiers["blok"]
    assert "nonsense" not in verifiers
    assert len(verifiers) == len(list(verifiers)) >= 12
    assert find_verifier("block") is verifiers["block"]


class SaysOnePath(OnePath):
    """Known to be wrong: it looks at all paths and says that it looks at one."""

    name = "says_one_path"
    single_path = True

    def law_given_drafts(self, paths: Any, target_rows: Any, draft_rows: Any) -> Any:
        likeliest = max(
            range(len(paths)), key=lambda k: [draft_rows[k][i][t] for i, t in enumerate(paths[k])]
        )
        return of_one_path(likeliest, paths, target_rows, draft_rows)


class SaysExchangeable(SaysOnePath):
    """Known to be wrong: the last of two drafts with equal first tokens, else the first; not symmetric."""

    name = "says_exchangeable"
    single_path = False
    exchangeable = True

    def law_given_drafts(self, paths: Any, target_rows: Any, draft_rows: Any) -> Any:
        if paths[0][0] >= paths[-1][0]:
            return UserToken().law_given_drafts(paths, target_rows, draft_rows)
        return super().law_given_drafts(paths, target_rows, draft_rows)


@first_is_quick("verifier", [SaysOnePath(), SaysExchangeable()], ids=lambda v: v.name)
def test_a_wrong_declaration_does_not_make_a_verifier_lossless(verifier: Any) -> None:
    """Where all tuples can be enumerated the verdict is that of the twin that declares nothing."""
    kind = type(verifier)
    honest = type("Honest", (kind,), {"single_path": False, "exchangeable": False})()
    for case in random_cases(2, 2, 2, 6):
        found, true = (output_law(v, case.pair, case.num_drafts) for v in (verifier, honest))
        assert found.total_variation == true.total_variation
    assert not all(certify(verifier, case.pair, 2) for case in random_cases(2, 2, 2, 6))


def test_a_subclass_of_the_users_is_checked() -> None:
    """A subclass of an algorithm of the package that says what is not so."""

    class LastPath(type(verifiers["block"])):  # type: ignore[misc]
        """Says that it looks at the first path only and looks at the last."""

        name = "last_path"

        def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
            return super().outcome(
                paths[..., ::-1, :], target_rows[..., ::-1, :, :], draft_rows[..., ::-1, :, :]
            )

    assert isinstance(as_verifier(LastPath()), UserVerifier)
    pair = instances.sticky_chain(2)
    # The stop is credited to the first path though it is the last one's: an honest look shows it.
    assert output_law(LastPath(), pair, 2).total_variation > 0


@pytest.mark.parametrize("registry", [verifiers, defects], ids=["verifiers", "defects"])
def test_names_in_a_registry_are_the_verifiers_own(registry: Registry) -> None:
    assert [verifier.name for verifier in registry.values()] == list(registry)
    assert all(isinstance(verifier, Verifier) for verifier in registry.values())
    assert not any(isinstance(as_verifier(verifier), UserVerifier) for verifier in registry.values())
    assert registry["token" if "token" in registry else "target_correction"] is next(iter(registry.values()))


def test_trees_are_enumerated_whatever_is_declared() -> None:
    """On other processes than i.i.d. drafts no declaration of the user's is used."""
    case = Case("tree", instances.three_token_reversed(1), 2, has_optimum=True)
    law = output_law(SaysOnePath(), case.pair, drafts=WithoutReplacement((2,)))
    assert law.total_variation > 0
