"""What the suite finds: power on every designed mistake, alarms on right engines, known-wrong verifiers.

    PYTHONPATH=. python benchmarks/conformance_power.py [--runs 3000] [--right-runs 15000] [--out FILE]

The result is benchmarks/results/conformance_power-epyc-2core.json; the tests repeat 20 runs of each.
"""

import argparse
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from math import log
from pathlib import Path
from typing import Any

import numpy as np

import audits.specimens.batch_index_mistakes
import audits.specimens.batch_settings_mistakes  # noqa: F401  both add to MISTAKES
from audits.specimens.batch_engine import RIGHT_PICKS, RIGHT_TESTS, BatchEngine, right_engine
from audits.specimens.batch_mistakes import HARMLESS, MISTAKES, PROFILES
from audits.specimens.drafting_mistakes import DRAFTING_MISTAKES, TWO_CALL_MISTAKES
from conformance import judge
from conformance.case_forms import Case, row_of
from conformance.laws import conditional_law, product_law
from conformance.simulation import Array, Play, exact_play, plays, simulated
from conformance.suite import suite
from spectheory import defects

RESULT = Path("benchmarks/results/conformance_power-epyc-2core.json")
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
    runs: int, known: Mapping[str, str] | None = None
) -> Iterator[tuple[str, str, float, str]]:
    """(mistake, profile, share found, case) for every designed mistake; ``known`` is {mistake: case}."""
    for name, (engine, profile) in mistakes().items():
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


def alarms(runs: int) -> dict[str, Any]:
    """Alarms of right engines in so many runs, shared out among them; and the largest e-value."""
    engines = right_engines()
    each = -(-runs // len(engines))
    values = []
    for number, (name, engine) in enumerate(engines.items()):
        # Half precision changes the laws of the profile "precision": there it is a mistake.
        profiles = {"core", "many", "placeholders"} | (set() if "float16" in name else {"precision"})
        profiles = (
            {"core", "placeholders", "settings", "masks", "many"} if name in HARMLESS else {"core", "many"}
        )
        values.append(largest_e_values(engine, each, profiles, number))
    found = np.concatenate(values)
    return {
        "engines": len(engines),
        "runs": len(found),
        "alarms": int((found >= 6).sum()),
        "largest_log10_e": round(float(found.max()), 2),
        "mean_e": round(float((10**found).mean()), 3),
    }


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


def power_of_verifiers(runs: int) -> Iterator[tuple[str, str, float, str]]:
    """(known-wrong verifier, claim, share found, case), by exact conditional laws."""
    for number, (name, verifier) in enumerate(defects.items()):
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--right-runs", type=int, default=15000)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    start = time.process_time()
    report: dict[str, Any] = {"machine": "2 cores of an AMD EPYC, one thread", "runs": options.runs}
    report["right"] = alarms(options.right_runs)
    print(report["right"], flush=True)
    for name, pairs in {
        "mistakes": power_of_mistakes(options.runs),
        "verifiers": power_of_verifiers(options.runs),
    }.items():
        report[name] = {}
        for own, kind, share, by in pairs:
            report[name][own] = {"of": kind, "found": round(share, 4), "by": by}
            print(f"{own:40s} {kind:14s} {share:.4f} by {by}", flush=True)
    report["cpu_seconds"] = round(time.process_time() - start)
    options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
