"""The suite: which cases, with how many calls.  ``choosing`` prints what the tables of numbers should be."""

import random
from collections.abc import Iterator, Mapping

from conformance.case_forms import Case, case, request
from conformance.core_cases import (
    broken_cases,
    core_cases,
    many_cases,
    placeholder_cases,
    precision_cases,
    wide_cases,
)
from conformance.more_cases import (
    call_cases,
    coin_cases,
    drafted_cases,
    logprob_cases,
    lossless_cases,
    mask_cases,
    path_cases,
    settings_cases,
)
from conformance.pool import ragged_pool, random_rows, settings_pool

RAGGED: Mapping[int, int] = {71: 16, 88: 24, 95: 8, 69: 16, 16: 8, 39: 8}
"""Number in the pool -> calls: rows, offsets, neighbours, the fifth request, the fourth position."""
SETTINGS: Mapping[int, int] = {14: 112, 8: 16}
"""Number in the pool of settings -> calls."""
BLOCK = (7, 22, 121, 383)
"""Numbers of random requests; wrong relatives of block verification need at most 241 calls on them."""


def numbered(pool: Iterator[Case], calls: Mapping[int, int], name: str) -> Iterator[Case]:
    """The chosen cases of a pool, numbered from 1."""
    found = {number: own for number, own in enumerate(pool) if number in calls}
    for place, (number, draws) in enumerate(calls.items()):
        yield {**found[number], "id": f"{name}-{place + 1}", "draws": draws}


def block_cases() -> list[Case]:
    """Requests on which block verification differs most from its wrong relatives."""
    rng, requests = random.Random(4), []
    for number in range(1 + max(BLOCK)):
        rows = random_rows(rng, 3, rng.choice([2, 2, 3]), 3, 16)
        if number in BLOCK:
            own = request(*rows, "block")
            requests.append({**own, "law": {"block": own["law"]["block"]}})
    return [
        case("block-weights", 3, requests, 320, "block verification: prefixes of weights below 1", "block")
    ]


def suite() -> list[Case]:
    """All cases, in the order of the file."""
    return [
        *core_cases(),
        *numbered(ragged_pool(1 + max(RAGGED)), RAGGED, "ragged"),
        *settings_cases(),
        *numbered(settings_pool(1 + max(SETTINGS, default=0)), SETTINGS, "settings"),
        *mask_cases(),
        *placeholder_cases(),
        *wide_cases(),
        *many_cases(),
        *precision_cases(),
        *logprob_cases(),
        *drafted_cases(),
        *call_cases(),
        *block_cases(),
        *path_cases(),
        *lossless_cases(),
        *coin_cases(),
        *broken_cases(),
    ]
