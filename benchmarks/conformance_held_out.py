"""Mistakes that were written without a look at the cases: are they found?

    PYTHONPATH=. python benchmarks/conformance_held_out.py [NAME ...] [--seeds 3] [--set FILE] [--out FILE]

``held_out_mistakes.toml`` has the mistakes, as edits of the numpy harness; ``--set`` takes another file of
this form, ``held_out_mistakes_second.toml``.  Each is played on the cases of the profiles that it names, and
counts as found if the judge finds it with every seed.  A mistake that is not found is played on batches of
the pool that are not cases: the largest total variation from a request's right law is stored with it, beside
that of the harness without an edit, which is the noise.
"""

import argparse
import json
import sys
import time
import tomllib
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from timing import machine

from conformance import judge
from conformance.case_forms import Case
from conformance.pool import ragged_pool
from conformance.suite import suite

MISTAKES = Path(__file__).with_name("held_out_mistakes.toml")
RESULT = Path("benchmarks/results/conformance_held_out-xeon-2core.json")
HARNESS = Path("conformance/harness/harness_numpy.py")
OTHER_BATCHES = (3, 5)
"""Numbers of ragged batches of the pool that are not cases."""
CALLS = 20_000
"""Calls that show a law on these batches: the noise of a total variation is then about 0.01."""


@cache
def all_cases() -> tuple[Case, ...]:
    return tuple(suite())


def edited(edits: Sequence[tuple[str, str]], seed: int) -> dict[str, Any]:
    """The numpy harness's namespace after the edits.

    Raises:
        ValueError: a text does not occur once.
    """
    source = HARNESS.read_text(encoding="utf-8")
    arguments = (
        ("len(sys.argv) > 2", "False"),
        ("int(sys.argv[3]) if len(sys.argv) > 3 else None", str(seed)),
    )
    for old, new in (*arguments, *edits):
        if source.count(old) != 1:
            raise ValueError(f"{old!r} occurs {source.count(old)} times in {HARNESS}")
        source = source.replace(old, new)
    namespace: dict[str, Any] = {"__name__": "edited"}
    exec(compile(source, str(HARNESS), "exec"), namespace)
    return namespace


def verdict_on(namespace: Mapping[str, Any], profiles: Sequence[str]) -> dict[str, Any]:
    """The judge's verdict, small cases first; an exception on the rows of a case counts as found."""
    cases = [
        case for case in all_cases() if judge.applies(case, "token", profiles) and case["kind"] != "pooled"
    ]
    results: dict[str, Any] = {}
    known: dict[str, Any] = {}
    report: dict[str, Any] = {}
    for case in sorted(cases, key=lambda case: case["draws"] * len(case["requests"])):
        try:
            results[case["id"]] = list(namespace["play"](case))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            return {"verdict": "does not conform", "by": case["id"], "raised": repr(error)[:100]}
        report = judge.judge(cases, results, profiles=profiles, known=known)
        if report["verdict"] == "does not conform":  # the e-value is valid at any stop
            break
    worst = max(report["cases"], key=lambda row: (bool(row["faults"]), row["log10_e"]))
    return {"verdict": report["verdict"], "by": worst["case"], "log10_e": round(report["log10_e"], 1)}


def total_variation(namespace: Mapping[str, Any]) -> float:
    """The largest distance of a request's law, seen in CALLS calls of batches that are not cases."""
    pool = dict(enumerate(ragged_pool(1 + max(OTHER_BATCHES))))
    largest = 0.0
    for number in OTHER_BATCHES:
        case: Case = {**pool[number], "draws": CALLS}
        answers = list(namespace["play"](case))
        for r, request in enumerate(case["requests"]):
            law = judge.Law(request["law"]["token"])
            masses = dict(zip(law.blocks, map(float, law.masses), strict=True))
            seen = Counter(tuple(call[r]) for call in answers)
            gaps = (abs(seen[block] / CALLS - masses.get(block, 0)) for block in {*seen, *masses})
            largest = max(largest, sum(gaps) / 2)
    return largest


def row_of(mistake: Mapping[str, Any], seeds: int) -> dict[str, Any]:
    """Whether a mistake is found with every seed, and what finds it."""
    profiles = mistake.get("profiles", ["core"])
    verdicts = [verdict_on(edited(mistake["edits"], seed), profiles) for seed in range(seeds)]
    found = sum(each["verdict"] == "does not conform" for each in verdicts)
    row: dict[str, Any] = {"profiles": profiles, "found": f"{found} of {seeds}", **verdicts[0]}
    if found < seeds:
        row["total_variation"] = round(total_variation(edited(mistake["edits"], seeds)), 4)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="only mistakes whose name has one of these texts")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", type=Path, default=MISTAKES, help="the file of the mistakes")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # mistakes divide by zero
    start = time.process_time()
    mistakes = tomllib.loads(options.set.read_text(encoding="utf-8"))["mistake"]
    if options.names:
        mistakes = [each for each in mistakes if any(name in each["name"] for name in options.names)]
    every_profile = sorted({profile for each in mistakes for profile in each.get("profiles", ["core"])})
    rows, harmless = {}, {}
    for mistake in mistakes:
        where = harmless if mistake.get("keeps_the_law") else rows
        where[mistake["name"]] = row_of(mistake, options.seeds)
        print(mistake["name"], where[mistake["name"]], flush=True)
    right = [verdict_on(edited([], seed), every_profile) for seed in range(options.seeds)]
    missed = [name for name, row in rows.items() if row["found"] != f"{options.seeds} of {options.seeds}"]
    report = {
        "machine": machine(),
        "command": " ".join(["PYTHONPATH=. python", *sys.argv]),
        "mistakes": len(rows),
        "found": len(rows) - len(missed),
        "missed": missed,
        "without_an_edit": {"verdicts": right, "total_variation": round(total_variation(edited([], 0)), 4)},
        "keep_the_law": harmless,
        "rows": rows,
        "cpu_seconds": round(time.process_time() - start),
    }
    options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(f"{report['found']} of {report['mistakes']} are found; missed: {missed}")


if __name__ == "__main__":
    main()
