"""Honest code as readers write it: one line of a loop changed, wrong or right."""

from typing import Any

import pytest

from deep import first_is_quick
from honest_verifiers import RIGHT, WRONG
from spectheory import from_loop
from spectheory.exact.proof import search
from spectheory.exact.proof.search import prove
from spectheory.foundation.errors import InvalidOutcomeError

LOOP = """
def loop(paths, target_rows, draft_rows):
    stops, rows = 0 * target_rows[..., 0], 0 * target_rows
    reach = 1
    for depth, token in enumerate(paths[0]):
        target, draft = target_rows[0, depth], draft_rows[0, depth]
        accepted = min(1, target[token] / draft[token])
        residual = [max(p - q, 0) for p, q in zip(target, draft)]
        total = sum(residual)
        stops[0, depth] = reach * (1 - accepted)
        rows[0, depth] = [entry / total for entry in residual] if total > 0 else target
        reach = reach * accepted
    stops[0, -1], rows[0, -1] = reach, target_rows[0, -1]
    return stops, rows
"""
"""leviathan2023 for one path."""
WRONG_LINES = [
    ("target, draft = target_rows[0, depth]", "target, draft = target_rows[0, 0]"),
    ("draft_rows[0, depth]", "draft_rows[0, 0]"),
    ("min(1, target[token] / draft[token])", "target[token] / draft[token]"),
    ("min(1, target[token] / draft[token])", "min(1, target[token])"),
    ("min(1, target[token] / draft[token])", "min(1, target[0] / draft[token])"),
    ("min(1, target[token] / draft[token])", "(target[token] >= draft[token]) * 1"),
    ("max(p - q, 0)", "max(q - p, 0)"),
    ("max(p - q, 0)", "abs(p - q)"),
    ("max(p - q, 0)", "p"),
    ("max(p - q, 0)", "(p <= q) * 1"),
    ("sum(residual)", "sum(residual[1:])"),
    ("sum(residual)", "1 - sum(residual)"),
    ("reach * (1 - accepted)", "1 - accepted"),
    ("reach = reach * accepted", "reach = accepted"),
    ("reach = reach * accepted", "reach = reach"),
    ("entry / total for", "entry for"),
    ("if total > 0 else", "if 3 * total > 1 else"),
    ("reach, target_rows[0, -1]", "reach, target_rows[0, -2]"),
    ("reach, target_rows[0, -1]", "1 - stops[0, 0], target_rows[0, -1]"),
]
RIGHT_LINES = [
    ("min(1, target[token] / draft[token])", "1 - max(0, 1 - target[token] / draft[token])"),
    ("min(1, target[token] / draft[token])", "min(target[token], draft[token]) / draft[token]"),
    ("min(1, target[token] / draft[token])", "min(target[token] / draft[token], 1)"),
    ("max(p - q, 0)", "p - min(p, q)"),
    ("max(p - q, 0)", "(abs(p - q) + p - q) / 2"),
    ("max(p - q, 0)", "p - q if p > q else 0 * p"),
    ("sum(residual)", "1 - sum(map(min, target, draft))"),
    ("if total > 0 else target", "if total else target"),
    ("else target", "else draft"),
    ("else target", "else draft * 0"),
    ("reach * (1 - accepted)", "reach - reach * accepted"),
    ("reach, target_rows[0, -1]", "1 - sum(stops[0, :-1]), target_rows[0, -1]"),
]  # fmt: skip


def changed(line: str, other: str) -> Any:
    assert LOOP.count(line) == 1
    names: dict[str, Any] = {}
    exec(LOOP.replace(line, other), names)
    return from_loop(names["loop"])


def is_refuted_or_refused(verifier: Any, *shape: int) -> bool:
    """One that returns no law is refused."""
    try:
        verdict = prove(verifier, *shape).verdict
    except InvalidOutcomeError as error:
        verdict = str(error)
    return verdict == "refuted" or "law" in verdict or "by zero" in verdict


@first_is_quick(("line", "other"), WRONG_LINES, quick=6)
@pytest.mark.parametrize("pairs", [search.SIMPLE_PAIRS, 0])
def test_a_wrong_line_is_refuted_or_refused(
    line: str, other: str, pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With simple pairs, and by the walk alone."""
    monkeypatch.setattr(search, "SIMPLE_PAIRS", pairs)
    assert is_refuted_or_refused(changed(line, other), 2, 2)


@first_is_quick("name", WRONG, quick=6)
@pytest.mark.parametrize("pairs", [search.SIMPLE_PAIRS, 0])
def test_wrong_verifiers_of_readers_are_refuted_or_refused(
    name: str, pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SIMPLE_PAIRS", pairs)
    verifier, shape = WRONG[name]
    assert is_refuted_or_refused(verifier, *shape)


@first_is_quick("name", RIGHT)
def test_right_verifiers_of_readers_are_proved(name: str) -> None:
    verifier, shape = RIGHT[name]
    assert prove(verifier, *shape).verdict == "proved"


def test_readers_wrote_enough() -> None:
    assert len(WRONG) + len(WRONG_LINES) >= 30
    assert len(RIGHT) + len(RIGHT_LINES) >= 20


@first_is_quick(("line", "other"), RIGHT_LINES, quick=3)
def test_a_right_line_is_proved(line: str, other: str) -> None:
    assert prove(changed(line, other), 2, 2).verdict == "proved"
