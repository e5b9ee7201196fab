"""Plays engines on cases many times at once, and computes the judge's e-values for all runs together."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from audits.specimens.batch_engine import NOTHING, BatchEngine
from audits.specimens.batch_mistakes import OF_A_RUN
from audits.specimens.drafting_mistakes import DraftingEngine, TwoCallEngine
from conformance import judge
from conformance.case_forms import Case, batch_of

Array = NDArray[Any]
Play = Callable[[Case, int, np.random.Generator], Array]
"""(case, calls, generator) -> flat answers [calls, B, longest], with ``NOTHING`` after the last token."""
MOST_NUMBERS = 4_000_000
"""A simulation is cut into pieces of so many answers, which bounds its memory to a few hundred megabytes."""


def plays(engine: type[Any]) -> Play:
    """How an engine answers a case of its kind."""

    def batch(case: Case, calls: int, rng: np.random.Generator) -> Array:
        if calls > case["draws"] and engine.__name__ in OF_A_RUN:
            runs = range(calls // case["draws"])
            return np.concatenate([batch(case, case["draws"], rng) for _ in runs])
        return engine(case["vocab"], batch_of(case["requests"], case["vocab"])).run(calls, rng)

    def drafted(case: Case, calls: int, rng: np.random.Generator) -> Array:
        batch = batch_of(case["requests"], case["vocab"])
        found = [engine().run(each.target, each.draft, calls, rng) for each in batch]
        return _stacked(found)

    def two_calls(case: Case, calls: int, rng: np.random.Generator) -> Array:
        found = []
        for request in case["requests"]:
            first, *then = batch_of([request, *request["then"]], case["vocab"])
            found.append(engine().run(first, then, calls, rng))
        return _stacked(found)

    kinds = {BatchEngine: batch, DraftingEngine: drafted, TwoCallEngine: two_calls}
    return next(play for kind, play in kinds.items() if issubclass(engine, kind))


def _stacked(found: Sequence[Array]) -> Array:
    width = max(each.shape[1] for each in found)
    return np.stack(
        [np.pad(each, ((0, 0), (0, width - each.shape[1])), constant_values=NOTHING) for each in found], 1
    )


def laws_of(case: Case, claims: str = "token") -> list[judge.Law | None]:
    return [judge.Law(r["law"][claims]) if claims in r["law"] else None for r in case["requests"]]


_KEPT: dict[tuple[int, str], tuple[Case, list[judge.Law | None], list[judge.Part]]] = {}
"""Laws and parts of cases that were played; the case is kept with them, so that its id stays its own."""


def laws_and_parts(case: Case, claims: str) -> tuple[list[judge.Law | None], list[judge.Part]]:
    """The judge's laws and parts of a case, read once."""
    key = id(case), claims
    if key not in _KEPT:
        laws = laws_of(case, claims)
        _KEPT[key] = case, laws, judge.parts_of(case, laws)
    return _KEPT[key][1:]


def cells_of(laws: Sequence[judge.Law | None], answers: Array) -> list[Array]:
    """For every request the cell of every answer; the last cell is any other block.

    A block is one integer in base ``base``, so that it is found among the law's by a search.
    """
    width, base = answers.shape[2], int(answers.max()) + 3
    powers = np.array([base**i for i in range(width)], dtype=object)
    powers = powers.astype(np.int64 if base**width < 2**62 else object)
    found = []
    for r, law in enumerate(laws):
        blocks = [] if law is None else [(*b, *[NOTHING] * (width - len(b))) for b in law.blocks]
        fitting = [k for k, block in enumerate(blocks) if len(block) == width and max(block) < base - 2]
        codes = np.array([sum((t + 2) * p for t, p in zip(blocks[k], powers, strict=True)) for k in fitting])
        own = ((answers[:, r] + 2) * powers).sum(1)
        cells = np.full(len(own), len(blocks))
        if len(codes):
            order = np.argsort(codes)
            place = np.minimum(np.searchsorted(codes[order], own), len(codes) - 1)
            is_known = codes[order][place] == own
            cells[is_known] = np.array(fitting)[order][place[is_known]]
        found.append(cells)
    return found


def has_wrong_form(
    case: Case, answers: Array, laws: Sequence[judge.Law | None], cells: Sequence[Array]
) -> Array:
    """Calls with an answer that is no block of the request, for fixed drafts; blocks of the law are."""
    bad = np.zeros(len(answers), dtype=bool)
    if case["kind"] not in ("fixed", "logprobs"):
        return bad
    for r, request in enumerate(case["requests"]):
        law = laws[r]
        at = np.flatnonzero(cells[r] == (len(law.blocks) if law else 0))
        own, drafts = answers[at, r], len(request["draft"])
        is_token = own != NOTHING
        lengths = is_token.sum(1)
        outside = is_token & ((own < 0) | (own >= case["vocab"]))
        bad[at] |= (lengths == 0) | (lengths > drafts + 1) | outside.any(1)
    return bad


def log_mixture(counts: Array) -> Array:
    cells, totals = counts.shape[-1], counts.sum(-1)
    table = gammaln(np.arange(counts.max() + 1) + 0.5) - gammaln(0.5)
    seen = table[counts].sum(-1)
    return gammaln(cells / 2) - gammaln(totals + cells / 2) + seen


def counted(part: judge.Part, columns: Sequence[Array]) -> Array:
    """Counts [runs, cells] of a part; ``columns`` are [runs, calls] for every request."""
    runs, cells = columns[0].shape[0], len(part.null)
    counts = np.zeros((runs, cells), dtype=np.int64)
    base = np.arange(runs)[:, None] * cells
    for first, second, lag, table in part.streams:
        found = columns[first]
        if second is not None:
            starts = judge.pair_starts(found.shape[1], lag)
            later = [start + lag for start in starts]
            found = found[:, starts] * table[-1] + columns[second][:, later]
        placed = np.asarray(table)[found] + base
        counts += np.bincount(placed.ravel(), minlength=runs * cells).reshape(runs, cells)
    return counts


def case_log_e(case: Case, answers: Array, runs: int, claims: str = "token") -> Array:
    """log e-value of a case for every run; infinite after an answer of a wrong form."""
    laws, parts = laws_and_parts(case, claims)
    cells = cells_of(laws, answers)
    columns = [own.reshape(runs, -1) for own in cells]
    values = []
    for part in parts:
        counts = counted(part, columns)
        value = log_mixture(counts) - (counts * np.log(part.null)).sum(-1)
        values.append(value)
    judged = sum(law is not None for law in laws)
    if judged > 1:
        values.append(np.sum(values[:judged], axis=0))
    found = np.logaddexp.reduce(values, axis=0) - log(len(values))
    found[has_wrong_form(case, answers, laws, cells).reshape(runs, -1).any(1)] = np.inf
    return found


def simulated(play: Play, case: Case, runs: int, seed: int, claims: str = "token") -> Array:
    """log e-values of a case in many runs."""
    size = case["draws"] * len(case["requests"])
    step = max(1, MOST_NUMBERS // size)
    found = []
    for first in range(0, runs, step):
        rng = np.random.default_rng([seed, first])
        some = min(step, runs - first)
        found.append(case_log_e(case, play(case, case["draws"] * some, rng), some, claims))
    return np.concatenate(found)


def exact_play(laws: Sequence[dict[tuple[int, ...], Fraction]]) -> Play:
    """Answers drawn from laws that are known, one for each request of a case."""

    def play(case: Case, calls: int, rng: np.random.Generator) -> Array:
        width = max(len(block) for law in laws for block in law)
        out = np.full((calls, len(laws), width), NOTHING, dtype=np.int64)
        for r, law in enumerate(laws):
            masses = np.array([float(mass) for mass in law.values()])
            blocks = np.array([(*block, *[NOTHING] * (width - len(block))) for block in law])
            out[:, r] = blocks[rng.choice(len(masses), size=calls, p=masses / masses.sum())]
        return out

    return play
