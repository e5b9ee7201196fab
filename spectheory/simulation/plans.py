"""The result of ``plan``: the recommended drafts and verifier, the other candidates, and their tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from spectheory.foundation.documents import both, count_text
from spectheory.foundation.exact_numbers import Number
from spectheory.foundation.results import Result, Table, Templates, no_verdict
from spectheory.simulation.choosing import Interval
from spectheory.simulation.measuring import CallSeconds

SHOWN = 10
"""Number of candidates in the table, so that it fits on a screen."""


class Planned(NamedTuple):
    """A candidate of a plan and its predicted speed.

    Attributes:
        verifier: name of the verifier; None for plain decoding.
        drafts: the draft process as text, such as ``iid:2``; ``none`` for plain decoding.
        num_drafts, draft_length: K and L.
        target_rows: number of drafted tokens that a call of the target scores.
        block_efficiency: tokens per target call.
        cost: cost of a call with its drafts, in calls of the target that score no drafts.
        speed_up: predicted speed in multiples of plain decoding: ``block_efficiency`` over ``cost``.
        tied: True if it is not shown to be slower than the fastest candidate.
        interval, cost_interval, speed_up_interval: intervals of the three estimates; None for exact values.
    """

    verifier: str | None
    drafts: str
    num_drafts: int
    draft_length: int
    target_rows: int
    block_efficiency: Number
    cost: float
    speed_up: float
    tied: bool
    interval: Interval | None = None
    cost_interval: Interval | None = None
    speed_up_interval: Interval | None = None

    def __bool__(self) -> bool:
        raise no_verdict(self, ".speed_up")


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Result):
    """The recommendation, and the other candidates.

    Attributes:
        choices: the recommendation, then the other candidates in descending order of speed.
        target_rows, draft_length: largest number of target rows and largest L, as requested.
        costs: origin of the costs: ``measured``, ``given`` or ``assumed``.
        tried: number of candidates compared, including plain decoding.
        num_tied: number of candidates tied with the fastest, the fastest included.
        skipped: number of candidates that were too large to enumerate.
        optimum: the largest block efficiency of any valid verifier on the drafts of the recommendation; None
            if unknown.
        confidence: confidence level of all intervals together; None for exact values.
        left_out: names of verifiers whose single call is not lossless on the pair; we do not choose them.
        unknown: names of users' verifiers, and of verifiers declared not lossless.  On language models we
            cannot compute whether they are lossless.
        calls: measured seconds of calls by number of target rows; empty if costs were not measured.
        device: device on which costs were measured, or None.
        tree: a drawing of the recommended drafts, a line per path; empty if they depend on the text.
    """

    choices: Sequence[Planned]
    target_rows: int
    draft_length: int
    costs: str
    tried: int
    num_tied: int
    skipped: int = 0
    optimum: Number | None = None
    confidence: float | None = None
    left_out: Sequence[str] = ()
    unknown: Sequence[str] = ()
    calls: Sequence[CallSeconds] = ()
    device: str | None = None
    tree: Sequence[str] = ()

    columns: ClassVar[Templates] = {
        "verifier": "{verifier}",
        "drafts": "{drafts}",
        "L": "{draft_length}",
        "rows": "{target_rows}",
        "tokens per call": "{tokens}",
        "cost of a call": "{cost_text}",
        "times plain decoding": "{speed_text}",
        "tied": "{tied}",
    }

    def __bool__(self) -> bool:
        raise no_verdict(self, ".best")

    @property
    def best(self) -> Planned:
        """The recommended candidate, ``choices[0]``."""
        return self.choices[0]

    @property
    def tokens_per_second(self) -> float | None:
        """Predicted tokens per second of the recommendation; None if costs were not measured."""
        return self.best.speed_up / self.calls[0].target if self.calls else None

    def headline(self) -> str:
        best = self.best
        if best.verifier is None:
            said = "decode without drafts: none are shown to be faster"
        else:
            said = f"take {best.verifier} with {best.drafts}, L = {best.draft_length}"
            said += f": {_estimated(best.speed_up, best.speed_up_interval, 2)} times plain decoding"
        if self.tokens_per_second is not None:
            said += f", {self.tokens_per_second:.3g} tokens per second"
        if self.num_tied > 1:
            said += f"; {self.num_tied - 1} tied, of no fewer rows"
        return said + (" (not known to be lossless)" if best.verifier in self.unknown else "")

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object of ``spectheory plan --json``."""
        limit: dict[str, Any] = {"optimum": None, "optimum_float": None}
        return {
            "recommendation": self.headline(),
            "choices": self.rows(),
            "tokens_per_second": self.tokens_per_second,
            "confidence": self.confidence,
            "target_rows": self.target_rows,
            "draft_length": self.draft_length,
            "tried": self.tried,
            "num_tied": self.num_tied,
            "skipped": self.skipped,
            "left_out": list(self.left_out),
            "unknown": list(self.unknown),
            "costs": self.costs,
            "device": self.device,
            "calls": [entry._asdict() for entry in self.calls],
            "tree": list(self.tree),
            **(limit if self.optimum is None else both("optimum", self.optimum)),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return the table rows: one flat dictionary per candidate of the plan."""
        return [entry._asdict() | both("block_efficiency", entry.block_efficiency) for entry in self.choices]

    def tables(self) -> list[Table]:
        shown = [
            entry._asdict()
            | {
                "verifier": entry.verifier or "none",
                "tokens": _estimated(entry.block_efficiency, entry.interval),
                "cost_text": _estimated(entry.cost, entry.cost_interval, 2),
                "speed_text": _estimated(entry.speed_up, entry.speed_up_interval, 2),
                "tied": "yes" if entry.tied else "",
            }
            for entry in self.choices[:SHOWN]
        ]
        title = f"at most {count_text(self.target_rows, 'drafted token')} per call, costs {self.costs}"
        drawn = ["the drafts of the first line:", *self.tree] if self.tree else []
        found = [Table(title, shown, self.columns, "\n".join([*drawn, "; ".join(self._notes())]))]
        if self.calls:
            columns = {
                "rows": "{target_rows}",
                "a call of the target": "{target}",
                "a drafted token": "{draft}",
            }
            rows = [
                {
                    "target_rows": entry.target_rows,
                    "target": _milliseconds(entry.target, entry.target_range),
                    "draft": "" if entry.draft is None else _milliseconds(entry.draft, entry.draft_range),
                }
                for entry in self.calls
            ]
            note = "medians, and the middle 90 % of the rounds; one text at a time"
            found.append(Table(f"milliseconds on {self.device}", rows, columns, note))
        return found

    def _notes(self) -> Iterator[str]:
        if len(self.choices) > SHOWN:
            yield f"the {SHOWN} fastest of {len(self.choices)}; JSON and CSV have all"
        yield f"{count_text(self.tried, 'candidate')} compared, {self.num_tied} tied with the fastest"
        if self.skipped:
            yield f"{self.skipped} too large to enumerate"
        if self.left_out:
            yield f"left out, because one call is not lossless on this pair: {', '.join(self.left_out)}"
        if self.unknown:
            yield f"not known to be lossless: {', '.join(self.unknown)}"
        if self.confidence is not None:
            yield f"all intervals together hold with {100 * self.confidence:g} % confidence"
        if self.optimum is not None:
            limit = f"{float(self.optimum):.6f} tokens per call"
            yield f"on the drafts of the first line no verifier earns more than {limit}"
        yield "verification is not counted"


def _estimated(value: Number, interval: Interval | None, digits: int = 3) -> Any:
    """Format a number with its interval.  Exact rationals are returned unchanged."""
    if interval is None or interval[0] == interval[1]:
        return f"{value:.{digits}f}" if isinstance(value, float) else value
    low, high = interval
    return f"{float(value):.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _milliseconds(seconds: float, middle: Interval | None) -> str:
    return _estimated(1e3 * seconds, None if middle is None else (1e3 * middle[0], 1e3 * middle[1]), 2)
