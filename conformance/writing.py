"""Writes the files of the suite: cases.jsonl, cases.txt, and the test to copy.

python -m conformance.writing [FOLDER]
"""

import json
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from conformance.case_forms import Case
from conformance.judge import FORMAT, VERSION
from conformance.one_file import one_file
from conformance.suite import suite

HERE = Path(__file__).parent
ORDER = ["allowed", "frequency_penalty", "temperature", "min_p", "top_k", "top_p"]
"""Settings in the order in which they are applied."""
NOT_IN_TEXT = ("settings", "masks", "logprobs", "calls", "paths", "drafted")
"""Profiles that cases.txt leaves out: its readers are harnesses of one function with rows."""


def as_json(cases: Sequence[Case]) -> str:
    """cases.jsonl: a head, then one case a line."""
    head = {"format": FORMAT, "version": VERSION, "cases": len(cases), "order": ORDER}
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in (head, *cases))


def as_text(cases: Sequence[Case]) -> str:
    """cases.txt: the same numbers without JSON, each with the digits that float64 needs.

    A case is "case ID PROFILE KIND VOCAB GROUPS POINTS"; a group is "calls DRAWS REQUESTS"; a request is its
    number of drafts and the drafts, then n+1 target rows and n draft rows, each a count and token-mass pairs.
    """
    lines = [f"{FORMAT} {VERSION}"]
    for own in cases:
        if own["profile"] in NOT_IN_TEXT:
            continue
        groups = [(own.get("draws", 0), own.get("requests"))]
        if own["kind"] == "pooled":
            groups = [(call["times"], [{**own, "drafts": call["drafts"]}]) for call in own["calls"]]
        head = (own["id"], own["profile"], own["kind"], own["vocab"], len(groups), own.get("points", 0))
        lines.append(" ".join(map(str, ("case", *head))))
        for draws, requests in groups:
            lines.append(f"calls {draws} {len(requests)}")
            for request in requests:
                lines.append(" ".join(map(str, [len(request["drafts"]), *request["drafts"]])))
                rows = [*request["target"], *request["draft"]]
                lines += [_row(row, own["vocab"]) for row in rows]
    return "\n".join([*lines, "end"]) + "\n"


def _row(row: Sequence[Any], vocab: int) -> str:
    if row and row[0][0] == "*":
        row = [[token, row[0][1]] for token in range(vocab)]
    pairs = (f"{token} {mass if mass == 'nan' else repr(float(Fraction(mass)))}" for token, mass in row)
    return " ".join([str(len(row)), *pairs])


def files() -> dict[str, str]:
    """Name -> text of every generated file."""
    cases = suite()
    texts = {"cases.jsonl": as_json(cases), "cases.txt": as_text(cases)}
    return {**texts, "test_draft_verification.py": one_file(cases)}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8")
        print(f"{name}: {len(text)} bytes")


if __name__ == "__main__":
    main()
