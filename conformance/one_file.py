"""Writes the one file to copy, test_draft_verification.py: its template with the core cases."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import audits.specimens.batch_index_mistakes  # noqa: F401  adds to MISTAKES
from audits.specimens.batch_mistakes import BELOW_RESOLUTION, MISTAKES, PROFILES
from conformance.case_forms import Case
from conformance.judge import VERSION

DATE = "2026-11-28"
"""Of the version; change both together."""


def one_file(cases: Sequence[Case]) -> str:
    """The text of the test file."""
    core = [own for own in cases if own["kind"] == "fixed" and own["profile"] == "core"]
    wanted = [name for name in MISTAKES if PROFILES[name] == "core" and name not in BELOW_RESOLUTION]
    text = Path(__file__).with_name("one_file_template.py").read_text(encoding="utf-8")
    lines = "\n".join(["CASES = [", *(textwrap.indent(_case(own), "    ") for own in core), "]"])
    text = text.replace("CASES = []  # @CASES@", lines)
    return text.replace("@VERSION@", VERSION).replace("@DATE@", DATE).replace("@MISTAKES@", str(len(wanted)))


def _case(own: Case) -> str:
    """A case as a tuple; requests that are equal are written once."""
    head = [own["id"], own["vocab"], own["draws"], own.get("pairs", []), own.get("lags", [])]
    groups = own.get("alike", [])
    parts = [repr(each) for each in head] + [f"[{', '.join(_span(group) for group in groups)}]"]
    texts = [_request(request) for request in own["requests"]]
    if groups:
        requests = " + ".join(f"[{texts[group[0]]!r}] * {len(group)}" for group in groups)
        return f"({', '.join(parts)},\n    {requests}),"
    if own["id"] == "sixty-four":  # 64 requests that differ in their tokens only
        formula = _formula(texts)
        return f"({', '.join(parts)},\n    [{formula} for b in range({len(texts)})]),"
    rows = "".join(f"    {text!r},\n" for text in texts)
    return f"({', '.join(parts)}, [\n{rows}]),"


def _span(group: Sequence[int]) -> str:
    return f"list(range({group[0]}, {group[-1] + 1}))"


def _formula(texts: Sequence[str]) -> str:
    """The requests of "sixty-four" as an expression in b.

    Raises:
        ValueError: the case has other requests than the expression.
    """
    first = "{b % 4} / {b % 4}:1/1048576 {4 + b % 8}:1048575/1048576; 4:1 / {b % 4}:1"
    found = [first.replace("{b % 4}", str(b % 4)).replace("{4 + b % 8}", str(4 + b % 8)) for b in range(64)]
    if found != list(texts):
        raise ValueError(f"write the requests of this case anew: {texts[0]}")
    return f'f"{first}"'


def _request(request: Any) -> str:
    rows = ("; ".join(map(_row, request[name])) for name in ("target", "draft"))
    return " / ".join([" ".join(map(str, request["drafts"])), *rows])


def _row(row: Sequence[Sequence[Any]]) -> str:
    """Tokens with their masses; three or more in succession of one mass are a range."""
    items: list[str] = []
    start = 0
    while start < len(row):
        end = start
        while end + 1 < len(row) and row[end + 1] == [row[end][0] + 1, row[start][1]]:
            end += 1
        token, mass = row[start]
        if end > start + 1:
            items.append(f"{token}-{row[end][0]}:{mass}")
        else:
            items += [f"{each}:{own}" for each, own in row[start : end + 1]]
        start = end + 1
    return " ".join(items)
