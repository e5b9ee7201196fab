"""What the suite finds: power on every designed mistake, alarms on right engines, known-wrong verifiers, and
laws of the file that are changed by 1/64.

    PYTHONPATH=. python benchmarks/conformance_power.py [--runs 3000] [--right-runs 15000] [--out FILE]

The result is benchmarks/results/conformance_power-xeon-2core.json; the tests repeat 20 runs of each.  It is
written after every row: the same command continues a file of the same numbers of runs that is not complete.
"""

import argparse
import hashlib
import json
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from math import ceil, log
from pathlib import Path
from typing import Any

import numpy as np
from timing import machine

import audits.specimens.batch_index_mistakes
import audits.specimens.batch_settings_mistakes  # noqa: F401  both add to MISTAKES
from audits.specimens.batch_engine import RIGHT_PICKS, RIGHT_TESTS, BatchEngine, right_engine
from audits.specimens.batch_mistakes import HARMLESS, MISTAKES, PROFILES
from audits.specimens.drafting_mistakes import DRAFTING_MISTAKES, TWO_CALL_MISTAKES
from conformance import judge
from conformance.case_forms import Case, row_of
from conformance.choosing import answers_needed
from conformance.laws import conditional_law, product_law
from conformance.simulation import Array, Play, exact_play, log_mixture, plays, simulated
from conformance.suite import suite
from spectheory import defects

RESULT = Path("benchmarks/results/conformance_power-xeon-2core.json")
FIRST_LOOK = 12
"""Runs by which the case that finds a mistake best is chosen."""
SINGLE_PATH = 24
"""So many of the library's known-wrong verifiers take one path; the others are wrong for several only."""
PARTNERS = {"greedy_multipath_ties": "greedy_multipath", "greedy_multipath_unskewed": "greedy_multipath"}
"""Known-wrong verifier of several paths -> the claim that it would make; the others claim "multi_round"."""


@cache
def all_cases() -> tuple[Case, ...]:
    return tuple(suite())


def cases_with_laws(profiles: Iterable[str], claims: str = "token") -> list[Case]:
    wanted = set(profiles)
    return [
        own for own in all_cases() if own["kind"] not in judge.JUDGES and judge.applies(own, claims, wanted)
    ]


def mistakes() -> dict[str, tuple[type[Any], str]]:
    """Name -> (engine, profile of the cases that must find it)."""
    found: dict[str, tuple[type[Any], str]] = {
        name: (each, PROFILES[name]) for name, each in MISTAKES.items()
    }
    found |= {f"drafted: {name}": (each, "drafted") for name, each in DRAFTING_MISTAKES.items()}
    return found | {f"calls: {name}": (each, "calls") for name, each in TWO_CALL_MISTAKES.items()}


def found_in(
    play: Play, cases: Sequence[Case], runs: int, first: str = "", claims: str = "token"
) -> tuple[float, str]:
    """(share of runs in which the sampler is found, the case that finds it best).

    A run is found if one case is enough: its e-value divided by the number of all cases is above the limit.

    Args:
        play: the sampler.
        cases: that may find it.
        runs: their number.
        first: the case that found it before, which is tried first.
        claims: of the laws.
    """
    share = log(len(all_cases()))
    order = {own["id"]: own for own in cases}
    if first in order:
        ids = [first, *(each for each in order if each != first)]
    else:
        looks = {each: simulated(play, own, FIRST_LOOK, 3, claims).min() for each, own in order.items()}
        # A clear case is enough, and a small one is quick.
        clear = min(3 * judge.LIMIT, max(looks.values()))
        ids = sorted(order, key=lambda each: (looks[each] < clear, _size(order[each]), -looks[each]))
    found = np.zeros(runs, dtype=bool)
    for each in ids[:3]:
        found |= simulated(play, order[each], runs, 17, claims) - share >= judge.LIMIT
        if found.all():
            break
    return float(found.mean()), ids[0]


def _size(own: Case) -> int:
    return own["draws"] * len(own["requests"])


def power_of_mistakes(
    runs: int, known: Mapping[str, str] | None = None, done: Container[str] = ()
) -> Iterator[tuple[str, str, float, str]]:
    """(mistake, profile, share found, case) for every designed mistake that is not done.

    Args:
        runs: of each.
        known: {mistake: the case that found it before}.
        done: mistakes to leave out.
    """
    for name, (engine, profile) in mistakes().items():
        if name in done:
            continue
        share, by = found_in(plays(engine), cases_with_laws([profile]), runs, (known or {}).get(name, ""))
        yield name, profile, share, by


def right_engines() -> dict[str, type[BatchEngine]]:
    """Right engines: five ways to draw, three to accept, three precisions of rows; and harmless variants."""
    types = (np.float16, np.float32, np.float64)
    found = [right_engine(pick, test, kind) for pick in RIGHT_PICKS for test in RIGHT_TESTS for kind in types]
    return {**{each.__name__: each for each in found}, **HARMLESS}


def largest_e_values(engine: type[BatchEngine], runs: int, profiles: Iterable[str], seed: int) -> Array:
    """log10 of the run's e-value, which is the mean over cases, in every run of a right engine."""
    logs = [simulated(plays(engine), own, runs, seed) for own in cases_with_laws(profiles)]
    return (np.logaddexp.reduce(logs, axis=0) - log(len(logs))) / log(10)


def alarms(runs: int, done: Container[str] = ()) -> Iterator[tuple[str, dict[str, float]]]:
    """(right engine, its runs, alarms, largest and mean e-value); the runs are shared out among engines."""
    engines = right_engines()
    each = -(-runs // len(engines))
    for number, (name, engine) in enumerate(engines.items()):
        if name in done:
            continue
        profiles = {"core", "many", "placeholders"}
        if name in HARMLESS:
            profiles |= {"settings", "masks"}
        if "float16" not in name:  # half precision is a mistake for "precision" and "wide"
            profiles |= {"precision", "wide"}
        values = largest_e_values(engine, each, profiles, number)
        yield (
            name,
            {
                "runs": each,
                "alarms": int((values >= 6).sum()),
                "largest_log10_e": round(float(values.max()), 2),
                "mean_e": round(float((10**values).mean()), 3),
            },
        )


def conditional_laws(verifier: Any, own: Case, claims: str) -> list[dict[tuple[int, ...], Fraction]]:
    """The laws of a verifier on the requests of a case that have a law for the claim."""
    found = []
    for request in own["requests"]:
        target, draft = ([row_of(row) for row in request[name]] for name in ("target", "draft"))
        paths = request.get("paths") or [request["drafts"]]
        paths = [tuple(path) for path in paths]
        is_here = claims in request["law"] and all(token >= 0 for path in paths for token in path)
        law = (
            conditional_law(verifier, paths, [target] * len(paths), [draft] * len(paths)) if is_here else None
        )
        found.append(law if law is not None else {(0,): Fraction(1)})
    return found


def power_of_verifiers(runs: int, done: Container[str] = ()) -> Iterator[tuple[str, str, float, str]]:
    """(known-wrong verifier, claim, share found, case), by exact conditional laws."""
    for number, (name, verifier) in enumerate(defects.items()):
        if name in done:
            continue
        several = number >= SINGLE_PATH
        claims = (
            PARTNERS.get(name, "multi_round") if several else "block" if name.startswith("block") else "token"
        )
        cases = cases_with_laws(["paths"] if several else ["core", "block"], claims)
        best = (0.0, "")
        for own in cases:
            play = exact_play(conditional_laws(verifier, own, claims))
            best = max(best, found_in(play, [own], runs, own["id"], claims))
            if best[0] == 1:
                break
        yield name, claims, *best


def completed_law(verifier: Any, own: Case) -> dict[tuple[int, ...], Fraction]:
    """The law of completed blocks over a pooled case: the target's for every lossless verifier."""
    target, draft = ([row_of(row) for row in own[name]] for name in ("target", "draft"))
    calls = sum(call["times"] for call in own["calls"])
    law: dict[tuple[int, ...], Fraction] = {}
    for call in own["calls"]:
        paths = [tuple(path) for path in call.get("paths", [call.get("drafts")])]
        given = conditional_law(verifier, paths, [target] * len(paths), [draft] * len(paths))
        for block, mass in given.items():
            for rest, p in product_law(target[len(block) :]).items():
                whole = (*block, *rest)
                law[whole] = law.get(whole, Fraction(0)) + Fraction(call["times"], calls) * mass * p
    return law


CHANGE = Fraction(1, 64)
"""How much of a law of the file is moved from its likeliest block to the next."""
MARGIN = 1.2
"""The number of answers is an approximation, which is short where a law has one block only."""


def changed_laws(runs: int) -> dict[str, dict[str, float]]:
    """For every kind of law: the answers after which a right sampler fails a law changed by CHANGE.

    Every law of the file is changed by itself, in the cells that are largest: there a change is seen worst.
    The judge's e-value of the request is computed on answers of the right law, and divided by the numbers of
    parts and of cases.  Completed blocks of a pooled case vary less than the answers that are drawn here.
    """
    found: dict[str, list[tuple[int, float, float]]] = {}
    rng = np.random.default_rng(23)
    for own in all_cases():
        for claims, law, parts in laws_in(own):
            right, changed = np.array([*map(float, law.masses), 0.0]), list(law.masses)
            order = sorted(range(len(changed)), key=lambda k: -changed[k])
            changed[order[0]] -= CHANGE
            if len(order) > 1:
                changed[order[1]] += CHANGE
            null = np.array([judge.loosened(mass) for mass in changed] + [judge.ABSOLUTE])
            null[-1] += 0 if len(order) > 1 else float(CHANGE)
            extra = log(len(all_cases()) * parts)
            needed = ceil(MARGIN * answers_needed(right * 1e12, null, extra))
            counts = rng.multinomial(needed, right, size=runs)
            values = log_mixture(counts) - (counts * np.log(null)).sum(1) - extra
            share = float((values >= judge.LIMIT).mean())
            name = f"{own['kind']}, {own['profile']}, {claims}"
            found.setdefault(name, []).append((needed, needed / judge.expected_calls(own, 1), share))
    return {
        name: {
            "laws": len(rows),
            "fewest_answers": min(row[0] for row in rows),
            "most_answers": max(row[0] for row in rows),
            "least_times": ceil(min(row[1] for row in rows)),
            "most_times": ceil(max(row[1] for row in rows)),
            "least_power": min(row[2] for row in rows),
        }
        for name, rows in found.items()
    }


def changed_table(stored: Mapping[str, Mapping[str, float]]) -> str:
    """The table of ``changed_laws`` on the page of the format, a row for each kind and claim."""
    rows: dict[str, list[Mapping[str, float]]] = {}
    for name, row in stored.items():
        kind, _, claims = name.split(", ")
        rows.setdefault(f"`{kind}`, `{claims}`", []).append(row)
    lines = ["| kind, claim | laws | answers of the request | times a run |", "|---|---|---|---|"]
    for name, own in rows.items():
        laws = sum(int(row["laws"]) for row in own)
        spans = [
            f"{min(row[least] for row in own):,} to {max(row[most] for row in own):,}".replace(",", " ")
            for least, most in (("fewest_answers", "most_answers"), ("least_times", "most_times"))
        ]
        lines.append(f"| {name} | {laws} | {spans[0]} | {spans[1]} |")
    return "\n".join(lines)


def laws_in(own: Case) -> Iterator[tuple[str, judge.Law, int]]:
    """(claim, law, number of parts of its case) for every law of a case, equal ones once."""
    if own["kind"] == "pooled":
        yield "lossless", judge.Law(own["law"]), len(own["target"])
    if own["kind"] in judge.JUDGES:
        return
    for claims in judge.CLAIMS:
        laws = [judge.Law(r["law"][claims]) if claims in r["law"] else None for r in own["requests"]]
        if any(laws):
            parts = len(judge.parts_of(own, laws)) + 1
            distinct = {tuple(sorted(law.masses)): law for law in laws if law}
            yield from ((claims, law, parts) for law in distinct.values())


def so_far(path: Path, head: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of a file with this head that is not complete, or none."""
    report: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    is_same = all(report.get(name) == value for name, value in head.items())
    return report if is_same and "cpu_seconds" not in report else {**head, "parts_cpu_seconds": 0}


def main() -> None:
    parser = argparse.ArgumentParser(description="What the conformance suite finds.")
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--right-runs", type=int, default=15000)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    digest = hashlib.sha256(Path("conformance/cases.jsonl").read_bytes()).hexdigest()[:16]
    head = {"machine": machine(), "runs": options.runs, "cases_sha256": digest}
    report = so_far(options.out, {**head, "right_runs": options.right_runs})
    start = time.process_time() - report["parts_cpu_seconds"]

    def stored(section: str, name: str, row: Mapping[str, Any]) -> None:
        report.setdefault(section, {})[name] = row
        report["parts_cpu_seconds"] = round(time.process_time() - start)
        options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        print(f"{section:10s} {name:40s}", *row.values(), flush=True)

    for name, row in alarms(options.right_runs, report.get("engines", {})):
        stored("engines", name, row)
    for section, power in (("mistakes", power_of_mistakes), ("verifiers", power_of_verifiers)):
        for name, kind, share, by in power(options.runs, done=report.get(section, {})):
            stored(section, name, {"of": kind, "found": round(share, 4), "by": by})
    for name, changed in changed_laws(options.runs).items():
        stored("changed_laws", name, changed)
    engines = report["engines"].values()
    report["right"] = {
        "engines": len(engines),
        "runs": sum(row["runs"] for row in engines),
        "alarms": sum(row["alarms"] for row in engines),
        "largest_log10_e": max(row["largest_log10_e"] for row in engines),
    }
    report["cpu_seconds"] = report.pop("parts_cpu_seconds")
    options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
