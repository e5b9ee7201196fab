"""Verifiers of users by routes, and verifiers whose bare route would be wrong."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spectheory import certify, defects, instances, output_law, verifiers
from spectheory.exact.law import OutputLaw
from spectheory.exact.laws import route
from spectheory.exact.laws.by_position import law_by_positions
from spectheory.exact.laws.by_prefix import law_by_prefixes
from spectheory.exact.laws.by_trial import law_by_trials
from spectheory.exact.laws.outputs import Masses
from spectheory.foundation.arrays import at_most_one
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.pairs.drafts import Iid
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.one_path.block import Block
from spectheory.verification.algorithms.one_path.prefix_tests import PrefixTests, first_rejected
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.algorithms.path_selection.greedy_multipath import GreedyMultipath
from spectheory.verification.algorithms.path_selection.selection import PathSelection, SelectedPaths
from spectheory.verification.algorithms.position_by_position.multi_round import MultiRound
from spectheory.verification.algorithms.position_by_position.positions import (
    Position,
    PositionByPosition,
    Selection,
    acceptance_ratio,
    first_accepted,
)
from spectheory.verification.algorithms.traversal import Traversal
from spectheory.verification.resolve import Problem, resolve


class Lenient(PrefixTests):
    """An author's verifier: four steps."""

    name, source, lossless, order = "lenient", "here", False, staticmethod(first_rejected)

    def longer(self, weight: Any, ratio: Any) -> Any:
        return at_most_one(3 * ratio / 2)

    def acceptance(self, weight: Any, residual_mass: Any) -> Any:
        return weight

    def residual(self, weight: Any, rows: Any) -> Any:
        return rows.residual()


class EachInTurn(PositionByPosition):
    """An author's rule: every draft is tested with p/2q, and the target's row is left."""

    name, source, lossless = "each_in_turn", "here", False

    def select(self, position: Position) -> Selection:
        rows = position.target_rows / 2, position.draft_rows
        accept = acceptance_ratio(*map(position.on_tokens, rows), position.is_draft)
        return first_accepted(accept, position.target_rows)


class HalfOfTheRule(MultiRound):
    """A rule of which one of two ways to the residual is overridden."""

    name, lossless = "half_of_the_rule", False

    def residual(self, target_rows: Any, draft_rows: Any, note: Any) -> Any:
        return target_rows


class LastDraftOnly(PositionByPosition):
    """A rule that looks at the place of a draft among the K: only the last path is accepted."""

    name, source, lossless = "last_draft_only", "here", False

    def select(self, position: Position) -> Selection:
        accept = position.is_draft * position.target_rows[..., :1] ** 0
        accept[..., :-1] = 0 * accept[..., :-1]
        return Selection(accept, 1 - accept.sum(axis=-1), position.target_rows)


class Says:
    """Any object with an outcome that says ``by_position``."""

    by_position = True

    def __init__(self, verifier: Any) -> None:
        self.outcome = verifier.outcome


def same(one: OutputLaw, other: OutputLaw) -> bool:
    return all((mine == theirs).all() for mine, theirs in zip(one.numbers, other.numbers, strict=True)) and (
        one.undefined == other.undefined
    )


def listed(verifier: Any, pair: ModelPair, drafts: int, monkeypatch: pytest.MonkeyPatch) -> OutputLaw:
    with monkeypatch.context() as off:
        off.setattr(route, "_taken", False)
        return output_law(verifier, pair, drafts)


@pytest.mark.parametrize(
    ("verifier", "shape"),
    [
        (Lenient(), (2, 4, 1)),
        (EachInTurn(), (2, 3, 2)),
        (EachInTurn(), (3, 2, 2)),
        (Says(verifiers["multi_round"]), (2, 3, 2)),
        (Says(defects["independent_acceptance"]), (2, 2, 2)),
    ],
    ids=["prefix tests", "rule", "rule of three tokens", "says it", "says it, wrong"],
)
def test_an_authors_verifier_has_the_law_of_the_list(
    verifier: Any, shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond so many tuples as are listed; the scope says so."""
    size, length, drafts = shape
    for seed in range(2):
        pair = instances.random_rational([6, seed], size, length)
        expected = listed(verifier, pair, drafts, monkeypatch)
        monkeypatch.setattr(route, "LISTED_OF_USERS", 1)
        monkeypatch.setattr(route, "_worth", {True: 0, False: 0})
        assert route.route_of(resolve(verifier, pair, drafts)) is not None
        assert same(output_law(verifier, pair, drafts), expected)
        found = certify(verifier, pair, drafts, with_optimum=False)
        assert "most tuples of drafts" in found.scope.in_words()
        monkeypatch.setattr(route, "LISTED_OF_USERS", 50_000)
        assert "most tuples" not in certify(verifier, pair, drafts, with_optimum=False).scope.in_words()


@pytest.mark.parametrize(
    "verifier", [Says(Block()), Says(verifiers["traversal"]), LastDraftOnly(), HalfOfTheRule()]
)
def test_a_user_who_is_mistaken_has_the_law_of_the_list(
    verifier: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = instances.random_rational(8, 3, 3, zero_probability=0)
    expected = listed(verifier, pair, 2, monkeypatch)
    monkeypatch.setattr(route, "LISTED_OF_USERS", 1)
    monkeypatch.setattr(route, "_worth", {True: 0, False: 0})
    found = output_law(verifier, pair, 2)
    assert same(found, expected)
    assert found.refused is None
    # partner: believed, it has another law
    monkeypatch.setattr("spectheory.exact.law.follows_steps", lambda *of: True)
    assert not same(output_law(verifier, pair, 2), expected)


def by_prefix(verifier: Any, pair: ModelPair, drafts: int) -> Masses:
    numbers = pair.numbers
    return law_by_prefixes(verifier, numbers.target, numbers.draft, list(numbers.draft_path_probs))


def by_position(verifier: Any, pair: ModelPair, drafts: int) -> Masses:
    return law_by_positions(verifier, pair, Iid(drafts))


def by_trial(verifier: Any, pair: ModelPair, drafts: int) -> Masses:
    return law_by_trials(pair, drafts)


class AllAreDraws(MultiRound):
    """Says of paths that repeat a draw that they draw anew, but not the last."""

    name = "all_are_draws"

    def draws(self, paths: Any) -> Any:
        every = super().draws(paths)
        return every & (np.arange(paths.shape[-2])[:, None] == 0)


class FewerDraws(Traversal):
    """Traversal that leaves the second path out."""

    name = "fewer_draws"

    def draws(self, paths: Any) -> Any:
        return super().draws(paths) & (np.arange(paths.shape[-2])[:, None] == 0)


ROWS_ELSEWHERE = ("stale_correction_row", "next_correction_row", "shared_uniform")
WRONG: list[tuple[Callable[..., Masses], Any]] = [
    *((by_prefix, defects[name]) for name in ROWS_ELSEWHERE),
    *((by_prefix, defects[name]) for name in ("threshold_acceptance", "block_uncapped_last_weight")),
    *((by_position, verifier) for verifier in (AllAreDraws(), LastDraftOnly())),
    (by_trial, FewerDraws()),
]


@pytest.mark.parametrize(("bare", "verifier"), WRONG, ids=[verifier.name for _, verifier in WRONG])
def test_a_verifier_whose_bare_route_is_wrong_has_its_own_law(
    bare: Callable[..., Masses], verifier: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = instances.random_rational(3, 3, 3, zero_probability=0)
    drafts = 1 if bare is by_prefix else 2
    expected = listed(verifier, pair, drafts, monkeypatch)
    monkeypatch.setattr(route, "_worth", {True: 0, False: 0})
    assert same(output_law(verifier, pair, drafts), expected)
    try:
        masses = bare(verifier, pair, drafts)
    except InvalidOutcomeError:
        return
    assert any((one != other).any() for one, other in zip(masses.by_depth, expected.numbers, strict=True))


class OfTwoSiblings(PathSelection):
    """The first path, unless a later one has another first token: no order of the paths."""

    name, source, lossless = "of_two_siblings", "here", False

    def select(self, paths: Any, target_rows: Any, draft_rows: Any) -> SelectedPaths:
        chosen = (paths[..., 0] != paths[..., :1, 0]).argmax(axis=-1)[..., None]
        rows = (part[np.arange(len(paths))[:, None], chosen] for part in (target_rows, draft_rows))
        return SelectedPaths(chosen, 0 * target_rows[..., :1, 0, 0] + 1, *rows)


class LooksAhead(GreedyMultipath):
    """Rows that depend on the tokens behind them."""

    name = "looks_ahead"

    def select(self, paths: Any, target_rows: Any, draft_rows: Any) -> SelectedPaths:
        found = super().select(paths, target_rows, draft_rows)
        moved = found.skewed_rows.copy()
        moved[:, :, 0] = (moved[:, :, 0] + found.skewed_rows[:, :, 1]) / 2
        return found._replace(skewed_rows=moved)


@pytest.mark.parametrize("verifier", [defects["likeliest_draft"], OfTwoSiblings(), LooksAhead()])
def test_a_selection_that_is_no_order_has_no_route(verifier: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if it were of this package."""
    monkeypatch.setattr(route, "_worth", {True: 0, False: 0})
    without = 0
    for seed in range(4):
        pair = instances.random_rational([5, seed], 3, 2, zero_probability=0)
        found = route._by_selection(verifier, Problem(verifier, pair, Iid(2)))
        assert found is not None
        without += found.law() is None
    assert without >= 3


class MoreThanOne(Token):
    """Known to be wrong: accepts with 3/2."""

    def acceptance(self, weight: Any, residual_mass: Any) -> Any:
        return 0 * weight + 3 * (weight + 1) / (2 * (weight + 1))


class Negative(Token):
    """Known to be wrong: draws from p - q."""

    def residual(self, weight: Any, rows: Any) -> Any:
        return rows.target_row - rows.draft_row


@pytest.mark.parametrize("verifier", [MoreThanOne(), Negative()])
def test_what_is_no_law_at_a_context_is_refused(verifier: Token) -> None:
    with pytest.raises(InvalidOutcomeError, match="at a context is negative"):
        by_prefix(verifier, instances.two_token(2), 1)


class TwiceSelected(LastDraftOnly):
    """Known to be wrong: P(no draft) is counted twice."""

    def select(self, position: Position) -> Selection:
        found = super().select(position)
        return found._replace(none=found.none + 1)


def test_the_next_token_has_a_law_at_every_context() -> None:
    with pytest.raises(InvalidOutcomeError, match="do not sum to 1 at a context"):
        by_position(TwiceSelected(), instances.two_token(2), 2)
    by_position(MultiRound(), instances.two_token(2), 2)  # partner
