"""Hostile verifiers, wrong in one arithmetic, shape or corner: caught by the suite or excluded by words."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from corner_verifiers import EXCLUDED, WRONG_SOMEWHERE, Corner, OnlyOnPairs, Truncated, WrongWhere, small
from deep import first_is_quick
from spectheory import ModelPair, Outcome, certify, instances, verifiers
from spectheory.exact.rounded import ARITHMETICS, DoesNotRunError, certify_rounded
from spectheory.exact.suite import certify_suite
from spectheory.exact.suite_cases import SuiteCase, standard_suite
from spectheory.exact.suite_certificate import SuiteCertificate
from spectheory.pairs.drafts import Iid, WithoutReplacement
from spectheory.verification.user import as_verifier
from user_verifiers import UserToken


def is_caught(verifier: Any, cases: list[SuiteCase]) -> bool:
    """Whether the verdict is NOT lossless, with its worst pair or a case where it fails."""
    assert cases
    found = certify_suite(verifier, cases, stop_at_first=True)
    assert bool(found) == ("NOT lossless, " not in found.headline())
    return not found


@first_is_quick(
    "name",
    [
        pytest.param(name, marks=pytest.mark.deep) if name.startswith("(V, L, K)") else name
        for name in WRONG_SOMEWHERE
    ],
    quick=4,
)
def test_verifiers_that_are_wrong_somewhere_are_caught(name: str) -> None:
    """On the cases of their shape; the partner that is wrong nowhere passes on the smallest."""
    where, chosen = WRONG_SOMEWHERE[name]
    cases = [case for case in standard_suite() if chosen(case)]
    assert is_caught(WrongWhere(name, where), cases)
    smallest = min(cases, key=lambda case: case.process.count_tuples(case.pair))
    assert not is_caught(WrongWhere("honest", lambda corner: False), [smallest])


@first_is_quick("name", EXCLUDED)
def test_what_was_not_asked_is_excluded_by_words(name: str) -> None:
    where, words = EXCLUDED[name]
    found = certify_suite(WrongWhere(name, where), quick=True)
    assert found
    assert words in found.headline()


class OfTheBatch(UserToken):
    """In floats wrong for a batch that ``looks`` like this; right in rationals."""

    name = "of_the_batch"

    def __init__(self, looks: Callable[[Any], bool]) -> None:
        self.looks = looks

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        right = super().outcome(paths, target_rows, draft_rows)
        if target_rows.dtype == object or not self.looks(paths):
            return right
        return Outcome(right.stop_probs, lambda *stop: target_rows[:, 0, 0])


@pytest.mark.parametrize("arithmetic", ["float64", "float32"])
@pytest.mark.parametrize(
    "looks",
    [lambda paths: len(paths) == 1, lambda paths: len(paths) > 1 and bool((paths[0] == paths[1]).all())],
    ids=["alone", "twice"],
)
def test_other_requests_of_a_batch_change_nothing_in_floats(looks: Any, arithmetic: str) -> None:
    """The partner looks at nothing."""
    pair = instances.two_token(2)
    assert certify(OfTheBatch(looks), pair)
    found = certify_rounded(as_verifier(OfTheBatch(looks)), pair, Iid(1), arithmetic)
    assert not found
    assert "is not a function of its inputs" in found.in_words()
    right = as_verifier(OfTheBatch(lambda paths: False))
    assert certify_rounded(right, pair, Iid(1), arithmetic)


def rare(q: float = 1e-9, p: float = 0.0) -> ModelPair:
    """Two tokens, the second with these probabilities in the draft and the target."""
    return ModelPair.context_free_pair([1 - p, p], [1 - q, q], 1)


def test_torch_is_asked_without_gradients() -> None:
    """As texts are decoded; a verifier cannot be right with them alone."""
    verifier = WrongWhere("decoding", lambda c: c.library == "torch" and not torch.is_grad_enabled())
    case = SuiteCase("two", instances.two_token(1), Iid(1))
    assert is_caught(verifier, [case])
    assert not is_caught(WrongWhere("honest", lambda c: torch.is_grad_enabled()), [case])


@pytest.mark.parametrize(
    ("verifier", "pair"),
    [
        (WrongWhere("forbidden", lambda corner: corner.some(corner.draft < 1e-8)), rare(5e-10)),
        (Truncated("never", kept=1), rare(0.5, 1e-10)),
        (
            WrongWhere("ten times too often", lambda corner: corner.some(corner.draft < 1e-8)),
            rare(1e-9, 1e-10),
        ),
    ],
)
def test_float_laws_are_judged_path_by_path(verifier: Any, pair: ModelPair) -> None:
    """Total variations of at most 9e-10, within the tolerance of 1e-9."""
    found = certify(verifier, pair)
    assert 0 < found.total_variation < 1e-9
    assert not found
    assert found.counterexample is not None
    assert certify("token", pair)


@pytest.mark.parametrize("kept", [3, pytest.param(4, marks=pytest.mark.deep)])
def test_truncations_are_caught(kept: int) -> None:
    more = [case for case in standard_suite() if small(case) and case.pair.vocab_size > kept]
    assert is_caught(Truncated("top", kept), more)


def test_what_bind_returns_for_language_models_is_judged() -> None:
    verifier = OnlyOnPairs("two faces", lambda corner: True)
    assert is_caught(verifier, [case for case in standard_suite() if small(case)][:20])


def certified(verifier: Any, **options: Any) -> SuiteCertificate:
    return certify_suite(verifier, [SuiteCase("mine", instances.two_token(1), Iid(1))], **options)


def test_what_does_not_run_is_named() -> None:
    """A verifier for numpy alone, and one that needs the pair."""
    found = certified(UserToken())
    assert found
    assert "refused or left out: torch float" in found.headline()
    with pytest.raises(DoesNotRunError, match="needs both models"):
        certify_rounded(verifiers["optimal_multipath"], instances.two_token(1), Iid(2), "float64")
    assert certified("optimal_multipath").reruns == ()


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_a_law_of_rare_drafts_is_judged_by_its_weight(arithmetic: str) -> None:
    """Given drafts of probability 1e-9 multi_round loses its law in float32, and the output 1e-9; without
    replacement the probabilities of drafts lose no digits."""
    for case in standard_suite(("per_path", "without_replacement")):
        if case.name.startswith("rarely_drafted-L1"):
            name = "multi_round" if case.process.name == "per_path" else "multi_round_without_replacement"
            assert certify_rounded(verifiers[name], case.pair, case.process, arithmetic)
    pair = instances.tiny_probabilities(201, 3, 1)
    assert certify_rounded(verifiers["token"], pair, WithoutReplacement((2,)), arithmetic)


@pytest.mark.deep
def test_random_pairs_state_their_law_and_depend_on_their_seed_alone() -> None:
    found = [certified("token", cases=8, seed=seed) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    random = found[0].random
    assert random is not None
    assert random["cases"] == 8
    assert dict(found[0].tables()[0].texts())["random pairs"].endswith(
        "with 99 % confidence it fails on at most 0.58 of it"
    )
    assert random["largest_share"] >= 1 - 0.01 ** (1 / 8)
    failed = certified(WrongWhere("wrong", lambda corner: True), cases=8)
    assert failed.random is None
    assert not failed
    in_floats = certify_suite(WrongWhere("float32", WRONG_SOMEWHERE["float32"][0]), [], cases=2, seed=1)
    assert all(verdict.is_lossless for verdict in in_floats.verdicts)
    assert not in_floats
    assert in_floats.random is None


def test_small_batches_are_asked_in_floats() -> None:
    """Wrong for few requests, right for all tuples at once."""

    def few(corner: Corner) -> Any:
        return len(corner.paths) < 18 and corner.shape == (3, 2, 2) and corner.precision != "object"

    case = SuiteCase("full", instances.random_rational(1, 3, 2, zero_probability=0), Iid(2))
    found = certify_suite(WrongWhere("few", few), [case]).counterexample
    assert found is not None
    assert "is not a function of its inputs" in found.in_words()


@pytest.mark.parametrize("exact", [pytest.param(True, marks=pytest.mark.deep), False])
def test_rare_drafts_are_caught_whatever_is_declared(exact: bool) -> None:
    where, chosen = WRONG_SOMEWHERE["q below 1e-9"]
    cases = [case for case in standard_suite() if chosen(case)]
    assert is_caught(WrongWhere("rare", where, exact), cases)
    assert not is_caught(WrongWhere("honest", lambda corner: False, exact), cases[:9])
