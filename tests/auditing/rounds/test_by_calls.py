"""Samplers of numpy's legacy functions are probed: one path, rounds and batches, right and wrong ones."""

# ruff: noqa: NPY002

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spectheory import audit, instances
from spectheory.auditing.handing.handing import handing
from spectheory.auditing.rounds import batches
from spectheory.auditing.rounds.batch_battery import FIRST
from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.auditing.rounds.by_calls import learn_requests, most_calls
from spectheory.auditing.rounds.joint_laws import dependence
from spectheory.auditing.verdicts.audit_certificate import AuditCertificate
from spectheory.pairs.pair import ModelPair

PAIRS = {"dyadic": random_dyadic(3, 3, 1)}
KEPT = np.random.default_rng(5)


def coin() -> float:
    return float(np.random.random())


def verified(path: list[int], p: Any, q: Any, coin: Callable[[], float], wrong: bool) -> list[int]:
    """Token verification; the wrong form leaves the draft in the residual."""

    def drawn(weights: Any) -> int:
        return int(np.searchsorted(np.cumsum(weights / weights.sum()), coin(), side="right"))

    for place, token in enumerate(path):
        if coin() >= p[place][token] / q[place][token]:
            return [*path[:place], drawn(p[place] if wrong else np.maximum(p[place] - q[place], 0))]
    return [*path, drawn(p[-1])]


def sampler(coin: Callable[[], float], wrong: bool = False) -> Any:
    def verify(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
        rows = (each[0].double().numpy() for each in (target, draft))
        return verified(paths[0].tolist(), *rows, coin, wrong)

    return verify


def judged(sampler: Any, within: float = 0.02, **options: Any) -> AuditCertificate:
    return audit(sampler, options.pop("pairs", PAIRS), within=within, **options)


def test_a_right_sampler_is_lossless_within_what_was_asked() -> None:
    found = judged(sampler(coin), drafts=1)
    assert (found.verdict, found.basis, bool(found), found.reasons) == ("lossless", "probed", True, ())
    assert found.judgement()[0] == "lossless (probed, within 0.02 at confidence 1-1e-06)"
    assert "faults on less than 0.02 of the random numbers" in found.scope.refused
    assert found.ways[0].startswith("not followed: the sampler draws from numpy.random.random, which")
    assert found.to_document()["within"] == pytest.approx(0.02, rel=1e-2)


def test_a_wrong_one_has_a_counterexample() -> None:
    found = judged(sampler(coin, wrong=True), drafts=1)
    assert (found.verdict, found.basis) == ("not lossless", "probed")
    assert "learned to within 0.02" in found.reasons[0]
    assert found.counterexample is not None


def test_a_kept_generator_is_drawn() -> None:
    """It was made before the call; draws find the wrong form, and never call the right one lossless."""
    right = judged(sampler(KEPT.random), drafts=1)
    assert (right.verdict, right.basis, bool(right)) == ("undecided", "drawn", False)
    assert "called twice with the same random numbers" in right.ways[1]
    assert "a total variation of 0." in right.judgement()[0]
    pairs = {"skewed": ModelPair.context_free_pair(["1/2", "1/4", "1/4"], ["1/8", "1/4", "5/8"], 1)}
    wrong = judged(sampler(KEPT.random, wrong=True), drafts=1, pairs=pairs, within=0.005)
    assert (wrong.verdict, wrong.basis, wrong.counterexample) == ("not lossless", "drawn", None)
    assert "a bet grew beyond 10^" in wrong.reasons[0]


def test_a_fault_within_the_bound_is_undecided_and_found_with_a_smaller_one() -> None:
    """A coin of 101 values: the total variation is a few thousandths."""

    def coarse() -> float:
        return int(np.random.random() * 101) / 101

    def verify(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
        token, p, q = int(paths[0, 0]), *(rows[0].double().numpy() for rows in (target, draft))
        return verified([token], p, q, iter([coarse(), np.random.random()]).__next__, False)

    found = judged(verify, drafts=1)
    assert (found.verdict, found.basis) == ("undecided", "probed")
    assert "a smaller within decides" in found.reasons[-1]
    assert judged(verify, drafts=1, within=0.002).verdict == "not lossless"


def test_a_branch_that_raises_has_its_probability() -> None:
    def raises_on_zero(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
        token = int(np.random.choice(3, p=[0.25, 0.5, 0.25]))
        if not token:
            raise ValueError("token 0")
        return [token]

    found = judged(raises_on_zero, drafts=1)
    assert found.verdict == "not lossless"
    assert "no valid output with probability 1/4 = 0.25 on dyadic" in found.reasons[0]


def a_round(wrong: bool) -> Any:
    def play(text: Any, target: Any, draft: Any, draft_length: int, generator: Any) -> Any:
        q = draft(text).double().numpy()
        token = int(np.searchsorted(np.cumsum(q), np.random.random(), side="right"))
        p = np.stack([target(text).double().numpy(), target([*text, token]).double().numpy()])
        return [token], draft(text)[None], verified([token], p, q[None], coin, wrong)

    return play


def test_a_round_is_probed() -> None:
    """Its drafts, too: the draft model is learned and compared with what is reported."""
    assert (judged(a_round(False), signature="round").verdict) == "lossless"
    assert judged(a_round(True), signature="round").verdict == "not lossless"


def a_batch(shares: bool) -> Any:
    def verify(rows: Any, generator: Any) -> list[list[int]]:
        numbers = np.random.random(16)
        found = []
        for number, row in enumerate(rows):
            mine = iter(numbers[0 if shares else 4 * number :])
            rows_of = (each.double().numpy() for each in (row.target_probs, row.draft_probs))
            found.append(verified(row.draft_tokens.tolist(), *rows_of, mine.__next__, False))
        return found

    return verify


def test_requests_of_a_batch_are_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrong partner gives all requests the same numbers, and every request the right law."""
    first = next(iter(batches.batches_of(audit_subject())))  # two random requests
    monkeypatch.setattr(batches, "batches_of", lambda sampler: [first])
    right, wrong = (judged(a_batch(shares), signature="batch", within=0.05) for shares in (False, True))
    assert (right.verdict, right.basis, right.reasons) == ("lossless", "probed", ())
    assert wrong.verdict == "not lossless"
    assert "are not independent" in wrong.reasons[0]


def test_requests_are_learned_one_after_the_other() -> None:
    """The calls of four requests add up.  The wrong partner gives the first two requests one coin."""
    calls: list[int] = []

    def learned(number: int, shares: bool = False) -> dict[Any, Any]:
        def play(seed: int) -> tuple[bool, ...]:
            calls.append(seed)
            coins = [random.random() for _ in range(number)]
            coins[1:2] = coins[:1] if shares else coins[1:2]
            return tuple(coin < 0.25 for coin in coins)

        calls.clear()
        with handing():
            return learn_requests(0.05, 1e-3)(play, [FIRST] * number)[0]

    learned(1)
    alone = len(calls)
    four = learned(4)
    assert len(calls) < 4 * alone
    assert float(four[(True,) * 4]) == pytest.approx(0.25**4, abs=1e-9)
    assert dependence(four) == 0
    assert float(dependence(learned(2, shares=True))) == pytest.approx(2 * 0.25 * 0.75, abs=1e-9)


def audit_subject() -> Any:
    from spectheory.auditing.subjects.shipped import Shipped

    return Shipped(a_batch(False), "batch")


def test_several_paths_are_left_out_where_they_fail() -> None:
    found = judged(sampler(coin), pairs={"thirds": instances.two_token(1)}, within=0.05)
    assert found.verdict == "lossless"
    assert {case.num_drafts for case in found.cases} == {1, 2, 3}

    def takes_one(paths: Any, *given: Any) -> list[int]:
        (_,) = paths
        return sampler(coin)(paths, *given)

    found = judged(takes_one, pairs={"thirds": instances.two_token(1)}, within=0.05)
    assert found.verdict == "lossless"
    assert {case.num_drafts for case in found.cases} == {1}
    assert any("too many values to unpack" in words for words in found.scope.refused)


def test_calls_that_learn_are_limited_by_those_that_test() -> None:
    assert most_calls(0.5, 1e-6) == 5_000
    assert most_calls(0.002, 1e-6) == 5 * 6_901
