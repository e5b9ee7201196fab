"""Chooses cases and their numbers of calls: pool, exact laws, calls that a mistake needs, cheapest cover.

    python -m conformance.choosing [--pool 300]

It prints the table that ``suite`` has.  The number of calls that a mistake needs on a case follows from the
part of the e-value that sees it best: with f its law on the part's cells and g the largest probabilities of
the null, log E after n answers is about n KL(f, g) less the price of the mixture.
"""

import argparse
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

import audits.specimens.batch_index_mistakes
import audits.specimens.batch_settings_mistakes  # noqa: F401  both add to MISTAKES
from audits.specimens.batch_mistakes import BELOW_RESOLUTION, MISTAKES, PROFILES
from conformance import judge
from conformance.case_forms import Case
from conformance.core_cases import core_cases, many_cases, placeholder_cases, precision_cases, wide_cases
from conformance.more_cases import mask_cases, settings_cases
from conformance.pool import ragged_pool, settings_pool
from conformance.simulation import Array, cells_of, counted, has_wrong_form, laws_of, plays

DEVIATIONS = 3.2
"""A normal variable is below so many deviations with probability 0.9993: the power that is wanted."""
SEEN = 1500
"""Calls that are simulated to see a mistake's law on a case."""
MOST_CALLS = 700
"""A case that needs more calls for a mistake is not its case."""
BATCH_COST = 3
"""What a call costs besides its requests, in requests: engines have a price per call."""


class Need(NamedTuple):
    calls: float
    where: str


def calls_needed(case: Case, answers: Array, cases: int = 30) -> Need:
    """Calls after which a case alone rejects the sampler whose answers these are.

    Args:
        case: with laws for "token".
        answers: [calls, B, W] of a simulation.
        cases: their number in the suite, which shares the e-value.
    """
    laws = laws_of(case)
    cells = cells_of(laws, answers)
    bad = has_wrong_form(case, answers, laws, cells).mean()
    best = Need(6.91 / bad if 0 < bad < 1 else 1.0, "form") if bad else Need(math.inf, "")
    columns = [own[None] for own in cells]
    parts = judge.parts_of(case, laws)
    for part in parts:
        counts = counted(part, columns)[0]
        per_call = counts.sum() / len(answers)
        extra = math.log(cases * len(parts))
        best = min(best, Need(_answers_needed(counts, np.array(part.null), extra) / per_call, part.about))
    return best


def _answers_needed(counts: Array, null: Array, extra: float) -> float:
    law = counts / counts.sum()
    seen = law > 0
    gains = np.log(law[seen] / null[seen])
    mean = float((law[seen] * gains).sum())
    deviation = math.sqrt(max(float((law[seen] * gains**2).sum()) - mean**2, 0.0))
    mean -= (seen.sum() - 1) / (2 * counts.sum())  # a law that was seen fits its own counts too well
    if mean <= 1e-4:
        return math.inf
    cells, needed = len(null), 2.0
    for _ in range(60):
        price = (cells - 1) / 2 * math.log(needed / (2 * math.pi) + 1)
        price += cells * math.lgamma(0.5) - math.lgamma(cells / 2)
        goal = judge.LIMIT + extra + max(price, 0.0)
        root = DEVIATIONS * deviation + math.sqrt((DEVIATIONS * deviation) ** 2 + 4 * mean * goal)
        needed = (root / (2 * mean)) ** 2
    return needed


def needs(cases: Iterable[Case], mistakes: Mapping[str, type[Any]]) -> dict[tuple[str, str], Need]:
    """(case, mistake) -> the calls needed, where a case of the mistake's profile can find it."""
    found = {}
    for case in cases:
        calls = SEEN if len(case["requests"]) < 50 and case["vocab"] < 1000 else SEEN // 8
        for name, engine in mistakes.items():
            if PROFILES[name] == case["profile"]:
                answers = plays(engine)(case, calls, np.random.default_rng(5))
                need = calls_needed(case, answers)
                if need.calls <= MOST_CALLS:
                    found[case["id"], name] = need
    return found


def cheapest_cover(cases: Mapping[str, Case], found: Mapping[tuple[str, str], Need]) -> dict[str, int]:
    """Case -> calls, so that every mistake is found and engines have least to do."""
    names = sorted({name for _, name in found})
    options = sorted({(case_id, math.ceil(need.calls)) for (case_id, _), need in found.items()})
    covers = np.zeros((len(names), len(options)))
    costs = np.zeros(len(options))
    for column, (case_id, calls) in enumerate(options):
        requests = len(cases[case_id]["requests"])
        costs[column] = calls * (requests + BATCH_COST if requests < 60 else 2 * BATCH_COST) + BATCH_COST
        for row, name in enumerate(names):
            need = found.get((case_id, name))
            covers[row, column] = need is not None and need.calls <= calls
    answer = milp(
        costs,
        constraints=LinearConstraint(covers, 1, np.inf),
        integrality=np.ones(len(options)),
        bounds=Bounds(0, 1),
        options={"time_limit": 60, "mip_rel_gap": 0.02},
    )
    return {case_id: calls for (case_id, calls), x in zip(options, answer.x, strict=True) if x > 0.5}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pool", type=int, default=300)
    size = parser.parse_args().pool
    hand = [*core_cases(), *wide_cases(), *many_cases(), *precision_cases(), *placeholder_cases()]
    pool = [*hand, *settings_cases(), *mask_cases(), *ragged_pool(size), *settings_pool(size // 4)]
    wanted = {name: engine for name, engine in MISTAKES.items() if name not in BELOW_RESOLUTION}
    found = needs(pool, wanted)
    chosen = cheapest_cover({case["id"]: case for case in pool}, found)
    for case_id, calls in chosen.items():
        own = sorted(name for (of, name), need in found.items() if of == case_id and need.calls <= calls)
        print(f"{case_id:22s} {calls:5d} calls find {len(own)}: {', '.join(own[:6])} ...")
    for name in wanted:
        best = sorted((need, case_id) for (case_id, own), need in found.items() if own == name)[:2]
        texts = [f"{case_id} {need.calls:.0f} ({need.where})" for need, case_id in best]
        print(f"{name:36s}", *texts or ["NOT FOUND"])


if __name__ == "__main__":
    main()
