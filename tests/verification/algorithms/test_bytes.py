"""What a round of every verifier moves: the limits of ``benchmarks/bytes.py``, and its meter."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from scripts import load
from spectheory.foundation.kernels import row_kernels
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.outcome import Outcome

rounds = load("benchmarks", "verifiers")
benchmark = load("benchmarks", "bytes")

SHAPE = rounds.Shape(vocab_size=32_000, draft_length=8, num_drafts=1, batch=5)


@pytest.fixture(scope="module")
def entries() -> list[dict[str, Any]]:
    """Every verifier with one draft and with four, V = 32 000."""
    return benchmark.measure(SHAPE, "float32", seed=3)


def test_no_round_moves_more_than_its_limit(entries: list[dict[str, Any]]) -> None:
    """Bytes over one reading of all rows; every verifier of i.i.d. drafts has a limit and a line."""
    assert {entry["verifier"] for entry in entries} == set(benchmark.LIMITS)
    assert benchmark.over_limit(entries) == []
    # The limits are no wishes: every round moves more than half of them.
    assert all(entry["moved_over_rows"] > entry["limit"] / 2 for entry in entries)


@pytest.mark.deep
def test_operators_alone(entries: list[dict[str, Any]]) -> None:
    """As on an accelerator, where every operator writes what the next one reads: limits of their own.

    They are more than what the loops on the host are allowed.
    """
    names = {name for name, limit in benchmark.LIMITS_OF_OPERATORS.items() if limit != benchmark.LIMITS[name]}
    alone = benchmark.measure(SHAPE, "float32", seed=3, operators=True, names=names)
    assert {entry["verifier"] for entry in alone} == names
    assert benchmark.over_limit(alone) == []
    assert all(entry["moved_over_rows"] > entry["limit"] / 2 for entry in alone)
    places = {1: 0, 4: 1}
    held = [
        entry | {"limit": benchmark.LIMITS[entry["verifier"]][places[entry["num_drafts"]]]} for entry in alone
    ]
    lower = [entry for entry, own in zip(held, alone, strict=True) if entry["limit"] < own["limit"]]
    assert len(lower) >= len(names)
    assert len(benchmark.over_limit(lower)) == len(lower)


def test_kernels_are_few(entries: list[dict[str, Any]]) -> None:
    """Not one kernel per token, root or interval; scored selection cuts token by token.  One more is said."""
    assert benchmark.LAUNCHES["spectr"] == 500
    most = max(entries, key=lambda entry: entry["launches"])
    assert benchmark.over_limit([most | {"launch_limit": most["launches"] - 1}]) == [
        f"{most['verifier']} with {most['num_drafts']} drafts starts {most['launches']} kernels, more than "
        f"{most['launches'] - 1}"
    ]


def test_limits_partner_a_wasteful_verifier_passes_them(entries: list[dict[str, Any]]) -> None:
    """Token verification that copies all rows first, in the place of token verification."""

    class Copies(Token):
        def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
            return super().outcome(paths, target_rows.clone(), draft_rows.clone())

    given = rounds.drafted(SHAPE, "float32", 3).on("cpu")
    traffic = benchmark.counted(lambda: rounds.one_round(Copies(), given, 3))
    own = next(entry for entry in entries if (entry["verifier"], entry["num_drafts"]) == ("token", 1))
    wasteful = own | {"moved_over_rows": traffic.moved / given.row_bytes}
    assert wasteful["moved_over_rows"] == pytest.approx(own["moved_over_rows"] + 2, abs=0.01)
    assert benchmark.over_limit([own, wasteful]) == [
        f"token with 1 drafts moves {wasteful['moved_over_rows']:.2f} times the rows, more than 0.4"
    ]


ROWS = torch.ones((10, 100))
INDEX = torch.zeros((2, 100), dtype=torch.int64)
UNIFORM = torch.full((10,), 0.5, dtype=torch.float64)
TARGET, DRAFT, STOPS = torch.ones((2, 4, 2, 100)), torch.ones((2, 4, 1, 100)), torch.tensor([0, 1])
CASES: list[tuple[str, Callable[[], Any], int]] = [
    ("a copy reads and writes", lambda: ROWS.clone(), 8_000),
    ("a view costs nothing", lambda: ROWS[2:4].reshape(-1).expand(7, 200), 0),
    ("what is expanded is read once", lambda: ROWS[:1].expand(10, 100) + 1, 400 + 4_000),
    ("a gather reads what it returns", lambda: ROWS[torch.tensor([3, 5])], 2 * 800 + 16),
    ("a sum writes a number per row", lambda: ROWS.sum(-1), 4_000 + 40),
    ("a sort writes its order too", lambda: ROWS.sort(-1), 4_000 + 4_000 + 8_000),
    ("in place reads and writes", lambda: ROWS.clone().clamp_(0), 8_000 + 8_000),
    ("nothing is read for zeros", lambda: torch.zeros_like(ROWS), 4_000),
    ("a square reads once", lambda: ROWS * ROWS, 4_000 + 4_000),
    ("a mass reads two rows", lambda: row_kernels.residual_mass(ROWS, ROWS + 0, None, None), 8_000 + 8_040),
    (
        "a residual at a stop reads two rows",
        lambda: row_kernels.residual_at_stops(TARGET, DRAFT, STOPS, STOPS, None, None),
        2 * (2 + 1) * 400 + 16,
    ),
    ("a draw reads a row", lambda: row_kernels.draw(ROWS, UNIFORM, 256), 4_000 + 3 * 80),
    ("a scatter writes what it is given", lambda: ROWS.new_empty(9, 100).scatter_(0, INDEX, ROWS[:2]), 3_200),
]


@pytest.mark.parametrize(("run", "moved"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_meter_on_operators_whose_traffic_is_known(run: Callable[[], Any], moved: int) -> None:
    assert benchmark.counted(run).moved == moved
