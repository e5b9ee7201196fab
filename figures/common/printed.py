"""Numbers that the papers print, as data; nothing here was measured again.

Block efficiencies of spectr2023, block2024 and spectrgbv2026, data set by data set, are in ``printed.csv``.
Verifiers have this package's names: SD is ``token``, SpecInfer ``multi_round``, and spectrgbv2026's GBV
``greedy_block``.  Block efficiencies and times of greedy2026 by number of drafts are in
``printed_times.csv``, latencies of spectr2023 in ``printed_latencies.csv``.
"""

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_type_hints


class Printed(NamedTuple):
    """One printed number.

    Attributes:
        table: where it is printed: "block2024 Table 1".
        temperature: ``None`` where the paper does not print it.
        verifier: its name in this package.
        block_efficiency: tokens per target call.
        printed_gain: in percent over token verification, where the table prints it beside the number.
    """

    table: str
    target: str
    draft: str
    dataset: str
    temperature: float | None
    num_drafts: int
    draft_length: int
    verifier: str
    block_efficiency: float
    printed_gain: float | None


@cache
def printed_rows() -> tuple[Printed, ...]:
    """All of them."""
    return _read(Printed, "printed.csv")


class PrintedTime(NamedTuple):
    """The rows of greedy multi-path in greedy2026, Tables 1 and 2; with one draft it is ``block``.

    Attributes:
        block_efficiency: tokens per target call, Table 1.
        ms_per_token: wall time in milliseconds, Table 2.
    """

    target: str
    draft: str
    dataset: str
    num_drafts: int
    block_efficiency: float
    ms_per_token: float

    @property
    def ms_per_call(self) -> float:
        """Of a call of the target with all that belongs to it."""
        return self.ms_per_token * self.block_efficiency


@cache
def printed_times() -> tuple[PrintedTime, ...]:
    """All of them, K = 1 to 4 of a data set one after the other."""
    return _read(PrintedTime, "printed_times.csv")


class Latency(NamedTuple):
    """One call of one model.

    Attributes:
        where: the printed table, or the machine of the bundled models.
        model: ``"target"`` or ``"draft"``.
        batch, length: how many texts are read at once, and how many tokens of each.
        relative, deviation: mean and standard deviation, relative to the target's call at batch 1, length 4.
        milliseconds: the mean; None where it is not printed.
    """

    where: str
    model: str
    parameters: int
    batch: int
    length: int
    relative: float
    deviation: float
    milliseconds: float | None


@cache
def printed_latencies() -> tuple[Latency, ...]:
    """spectr2023 Tables 2 and 3, of models with 97 and 6 million parameters on a GPU."""
    return _read(Latency, "printed_latencies.csv")


class RecomputedGain(NamedTuple):
    """A printed block efficiency against that of token verification beside it.

    Attributes:
        row: the number, with the gain that is printed beside it, if any.
        percent: 100 (block efficiency / token verification's - 1), of the rounded numbers; so it differs
            from the printed gain.
    """

    row: Printed
    percent: float


def gains_over_token(rows: Sequence[Printed] | None = None) -> list[RecomputedGain]:
    """Every number whose table has token verification on the same models, data set and draft length."""
    groups: dict[tuple[object, ...], list[Printed]] = defaultdict(list)
    for row in printed_rows() if rows is None else rows:
        groups[row.table, row.target, row.draft, row.dataset, row.draft_length].append(row)
    return [
        RecomputedGain(row, 100 * (row.block_efficiency / token.block_efficiency - 1))
        for group in groups.values()
        for token in group
        if token.verifier == "token"
        for row in group
        if row.verifier != "token"
    ]


ORDERS = {
    "block2024 Table 4": ("block", "greedy_block", "token"),
    "block2024 Table 5": ("spectr", "multi_round", "block", "token"),
    "spectrgbv2026 Table 1": ("spectr_gbv", "spectr", "greedy_block", "token"),
    "spectrgbv2026 Table 4": ("spectr_gbv", "spectr", "greedy_block", "token"),
}
"""How a paper ranks the verifiers of a table, best first; equal numbers are allowed."""


def gains_by_setting(gains: Sequence[RecomputedGain]) -> dict[Printed, list[RecomputedGain]]:
    """The gains over all data sets of a table, by the rest of their rows."""
    found: dict[Printed, list[RecomputedGain]] = defaultdict(list)
    for gain in gains:
        found[gain.row._replace(dataset="", block_efficiency=0.0, printed_gain=None)].append(gain)
    return found


def rankings(rows: Sequence[Printed]) -> Iterator[tuple[tuple[str, str, str], Mapping[str, float], bool]]:
    """For each data set of these tables: where, what the verifiers earn, whether that is in the order."""
    tables: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row.table in ORDERS:
            tables[row.table, row.target, row.dataset][row.verifier] = row.block_efficiency
    for where, values in tables.items():
        order = [values[name] for name in ORDERS[where[0]]]
        yield where, values, order == sorted(order, reverse=True)


Row = TypeVar("Row", Printed, PrintedTime, Latency)


def _read(kind: type[Row], name: str) -> tuple[Row, ...]:
    """A file whose columns are the fields of ``kind``; an empty cell is ``None``."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    kinds = {name: hint if hint in (str, int) else float for name, hint in get_type_hints(kind).items()}
    entries: Iterator[dict[str, Any]] = (
        {name: kinds[name](cell) if cell else None for name, cell in row.items()}
        for row in csv.DictReader(text.splitlines())
    )
    return tuple(kind(**entry) for entry in entries)
