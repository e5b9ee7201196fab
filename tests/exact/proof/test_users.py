"""Users' loops and samplers on formal numbers."""

from collections.abc import Callable
from typing import Any

import pytest

from spectheory import from_loop, from_sampler
from spectheory.exact.proof import coins, search
from spectheory.exact.proof.search import prove
from spectheory.foundation.errors import InvalidOutcomeError


def loop(paths: Any, target_rows: Any, draft_rows: Any) -> Any:
    """leviathan2023 for one path, in plain Python."""
    stops, rows = 0 * target_rows[..., 0], 0 * target_rows
    reach = 1
    for depth, token in enumerate(paths[0]):
        target, draft = target_rows[0, depth], draft_rows[0, depth]
        accepted = min(1, target[token] / draft[token])
        residual = [max(p - q, 0) for p, q in zip(target, draft, strict=True)]
        total = sum(residual)
        stops[0, depth] = reach * (1 - accepted)
        rows[0, depth] = [entry / total for entry in residual] if total > 0 else target
        reach = reach * accepted
    stops[0, -1], rows[0, -1] = reach, target_rows[0, -1]
    return stops, rows


def target_correction(paths: Any, target_rows: Any, draft_rows: Any) -> Any:
    stops, rows = loop(paths, target_rows, draft_rows)
    rows[0, 0] = target_rows[0, 0]
    return stops, rows


@pytest.mark.parametrize(("vocab_size", "draft_length"), [(2, 1), (2, 2), (3, 1)])
def test_a_loop_is_proved(vocab_size: int, draft_length: int) -> None:
    assert prove(from_loop(loop), vocab_size, draft_length).verdict == "proved"
    assert prove(from_loop(target_correction), vocab_size, draft_length).verdict == "refuted"


def _residual(target: Any, draft: Any) -> list[Any]:
    weights = [max(p - q, 0 * p) for p, q in zip(target, draft, strict=True)]
    total = sum(weights)
    return list(target) if total == 0 else [weight / total for weight in weights]


def token_sampler(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[Any]:
    """leviathan2023, as a decoding loop has it."""
    tokens: list[Any] = []
    for token, target, draft in zip(paths[0], target_rows[0], draft_rows[0], strict=False):
        if generator.random() >= target[token] / draft[token]:
            return [*tokens, generator.choice(len(target), p=_residual(target, draft))]
        tokens.append(token)
    return [*tokens, generator.choice(len(target_rows[0, -1]), p=target_rows[0, -1])]


def sorted_the_other_way(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[Any]:
    """The same, the number on the left: the comparison is left to the random number."""
    token, target, draft = paths[0, 0], target_rows[0, 0], draft_rows[0, 0]
    if target[token] / draft[token] > generator.random():
        return [token, generator.choice(len(target), p=target_rows[0, 1])]
    return [generator.choice(len(target), p=_residual(target, draft))]


def one_uniform(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[Any]:
    """The uniform of the acceptance test is used again for the correction: wrong."""
    target, draft, token, uniform = target_rows[0, 0], draft_rows[0, 0], paths[0, 0], generator.random()
    if uniform < target[token] / draft[token]:
        return [token, generator.choice(len(target), p=target_rows[0, 1])]
    total = 0 * target[0]
    for other, weight in enumerate(_residual(target, draft)):
        total = total + weight
        if uniform < total:
            return [other]
    return [len(target) - 1]


def two_drafts(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[Any]:
    """Recursive rejection of two drafts of one token."""
    left = list(target_rows[0, 0])
    for path, rows in zip(paths, target_rows, strict=True):
        token = path[0]
        if generator.random() < left[token] / draft_rows[0, 0, token]:
            return [token, generator.choice(len(left), p=rows[1])]
        left = _residual(left, draft_rows[0, 0])
    return [generator.choice(len(left), p=left)]


@pytest.mark.parametrize(
    ("sampler", "shape", "verdict"),
    [
        (token_sampler, (2, 1, 1), "proved"),
        (token_sampler, (2, 2, 1), "proved"),
        (sorted_the_other_way, (3, 1, 1), "proved"),
        (two_drafts, (2, 1, 2), "proved"),
        (one_uniform, (3, 1, 1), "refuted"),
    ],
)
@pytest.mark.parametrize("pairs", [search.SIMPLE_PAIRS, 0])
def test_samplers_are_decided(
    sampler: Callable[..., Any],
    shape: tuple[int, int, int],
    verdict: str,
    pairs: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With simple pairs, and by the walk alone."""
    monkeypatch.setattr(search, "SIMPLE_PAIRS", pairs)
    assert prove(from_sampler(sampler), *shape).verdict == verdict


def unguarded(target: Any, draft: Any) -> list[Any]:
    weights = [max(p - q, 0 * p) for p, q in zip(target, draft, strict=True)]
    return [weight / sum(weights) for weight in weights]


def unguarded_loop(paths: Any, target_rows: Any, draft_rows: Any) -> Any:
    stops, rows = loop(paths, target_rows, draft_rows)
    rows[0, 0] = unguarded(target_rows[0, 0], draft_rows[0, 0])
    return stops, rows


def unguarded_sampler(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[Any]:
    token, target, draft = paths[0, 0], target_rows[0, 0], draft_rows[0, 0]
    if generator.random() < target[token] / draft[token]:
        return [token, generator.choice(len(target), p=target_rows[0, 1])]
    return [generator.choice(len(target), p=unguarded(target, draft))]


@pytest.mark.parametrize("pairs", [search.SIMPLE_PAIRS, 0])
def test_a_division_by_zero_counts_where_the_code_makes_it(
    pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At p = q the loop divides 0 by 0, at a stop of probability 0; the sampler never gets there."""
    monkeypatch.setattr(search, "SIMPLE_PAIRS", pairs)
    assert prove(from_sampler(unguarded_sampler), 2, 1).verdict == "proved"
    with pytest.raises(InvalidOutcomeError, match="ZeroDivisionError"):
        prove(from_loop(unguarded_loop), 2, 1)


def halved(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[Any]:
    return [0] if generator.random() * 2 < target_rows[0, 0, 0] else [1]


def shuffled(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[Any]:
    return [generator.permutation(2)[0]]


@pytest.mark.parametrize(
    ("sampler", "said"), [(halved, "arithmetic with a random number"), (shuffled, "permutation")]
)
def test_what_is_not_followed_of_a_sampler_is_refused_with_its_line(
    sampler: Callable[..., Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SIMPLE_PAIRS", 0)
    with pytest.raises(InvalidOutcomeError, match=f"{said}.*test_users.py, line"):
        prove(from_sampler(sampler), 2, 1)


def test_too_many_cases_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coins, "MOST_RUNS", 3)
    with pytest.raises(InvalidOutcomeError, match="more than 3 cases of its random numbers"):
        prove(from_sampler(token_sampler), 3, 1)
