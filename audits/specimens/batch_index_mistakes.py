"""Engines with one mistake each in the rows they read, the random numbers they share, and what they emit."""

from collections.abc import Callable
from typing import Any

import numpy as np

from audits.specimens.batch_engine import NOTHING, Array, BatchEngine
from audits.specimens.batch_mistakes import mistake, tempered

# Which rows are read
mistake(
    "stale_correction",
    "The residual of the position before.",
    residual_indices=lambda e, b, i: (e.target_index(b, max(i - 1, 0)), e.draft_index(b, max(i - 1, 0))),
)
mistake(
    "next_correction",
    "The residual of the position after.",
    residual_indices=lambda e, b, i: (e.target_index(b, i + 1), e.draft_index(b, i + 1)),
)
mistake(
    "next_target_in_residual",
    "The target's next row, the draft's row.",
    residual_indices=lambda e, b, i: (e.target_index(b, i + 1), e.draft_index(b, i)),
)
mistake(
    "stale_draft_in_residual",
    "The draft's row of the position before.",
    residual_indices=lambda e, b, i: (e.target_index(b, i), e.draft_index(b, max(i - 1, 0))),
)
mistake(
    "first_correction",
    "The residual of the request's first position.",
    residual_indices=lambda e, b, i: (e.target_index(b, 0), e.draft_index(b, 0)),
)
mistake(
    "correction_without_offset", "The residual of the first request.", residual_indices=lambda e, b, i: (i, i)
)
mistake(
    "draft_row_without_offset",
    "Acceptance reads draft rows of the first request.",
    accepting_draft_index=lambda e, b, i: i,
)
mistake(
    "target_row_without_offset",
    "Acceptance reads target rows of the first request.",
    accepting_target_index=lambda e, b, i: i,
)
mistake(
    "starts_from_previous_length",
    "A start is the length before: right for two requests.",
    starts=lambda e: [e.lengths[b - 1] if b else 0 for b in range(e.batch)],
)
mistake(
    "starts_for_equal_lengths",
    "b times the first length.",
    starts=lambda e: [b * e.lengths[0] for b in range(e.batch)],
)
mistake(
    "starts_for_longest",
    "b times the longest length.",
    starts=lambda e: [b * e.longest for b in range(e.batch)],
)
mistake(
    "starts_with_bonus",
    "Cumulative lengths count bonus rows.",
    starts=lambda e: [start + b for b, start in enumerate(e.true_starts)],
)
mistake(
    "starts_inclusive",
    "Cumulative sums without the leading 0.",
    starts=lambda e: [sum(e.lengths[: b + 1]) for b in range(e.batch)],
)
mistake(
    "starts_skip_empty",
    "After a request without drafts, starts are one too far.",
    starts=lambda e: [start + e.lengths[:b].count(0) for b, start in enumerate(e.true_starts)],
)
mistake(
    "third_request_as_first",
    "From the third request on, draft rows of the first.",
    draft_index=lambda e, b, i: i if b >= 2 else e.start[b] + i,
)
mistake(
    "fifth_request_as_first",
    "From the fifth request on, draft rows of the first.",
    draft_index=lambda e, b, i: i if b >= 4 else e.start[b] + i,
)
mistake(
    "third_position_as_first",
    "From the third draft on, target rows of the first.",
    target_index=lambda e, b, i: e.start[b] + (0 if i >= 2 else i),
)
mistake(
    "fourth_position_as_third",
    "From the fourth draft on, target rows of the third.",
    target_index=lambda e, b, i: e.start[b] + min(i, 2),
)
mistake(
    "neighbour_target_row",
    "The last request's acceptance reads the request before.",
    accepting_target_index=lambda e, b, i: e.start[b - 1] + i if b and b == e.batch - 1 else e.start[b] + i,
)
mistake(
    "reversed_draft_rows",
    "A request's draft rows are read backwards.",
    draft_index=lambda e, b, i: e.start[b] + e.lengths[b] - 1 - i,
)
mistake("bonus_of_first", "Every bonus row is the first request's.", bonus_row=lambda e, b: e.bonus_rows[0])
mistake(
    "bonus_of_neighbour",
    "Bonus rows are one request off.",
    bonus_row=lambda e, b: e.bonus_rows[(b + 1) % e.batch],
)
mistake(
    "empty_gets_neighbour",
    "A request without drafts gets the next bonus row.",
    bonus_row=lambda e, b: e.bonus_rows[(b + (e.lengths[b] == 0)) % e.batch],
)
mistake(
    "bonus_counts_requests_with_drafts",
    "Bonus rows are numbered among requests with drafts.",
    bonus_row=lambda e, b: e.bonus_rows[sum(n > 0 for n in e.lengths[:b])],
)
mistake(
    "bonus_reversed", "Bonus rows in reversed order.", bonus_row=lambda e, b: e.bonus_rows[e.batch - 1 - b]
)
mistake(
    "offset_of_16_bits",
    "An offset in elements overflows 16 bits.",
    "wide",
    draft_index=lambda e, b, i: (e.start[b] + i) * e.vocabulary % 65536 // e.vocabulary,
)
mistake(
    "requests_modulo_64",
    "Only the first 64 requests have rows of their own.",
    "many",
    target_index=lambda e, b, i: e.start[b % 64] + i,
)


# Random numbers
Coins = tuple[Array, Array, Array]


def _coins(
    name: str, about: str, change: Callable[[BatchEngine, Array, Array, Array], Coins], **more: Any
) -> None:
    def coins(engine: BatchEngine, rng: np.random.Generator, calls: int) -> Coins:
        return change(engine, *BatchEngine.coins(engine, rng, calls))

    mistake(name, about, coins=coins, **more)


def _per_request(engine: BatchEngine, coins: Array) -> Array:
    places = [start for start, n in zip(engine.true_starts, engine.lengths, strict=True) for _ in range(n)]
    return coins[:, places or [0]]


def _per_position(engine: BatchEngine, coins: Array) -> Array:
    places = [i for n in engine.lengths for i in range(n)]
    return coins[:, places or [0]]


def _first_coins(engine: BatchEngine, coins: Array, bonus: Array) -> Array:
    own = [
        coins[:, s] if n else bonus[:, b]
        for b, (s, n) in enumerate(zip(engine.true_starts, engine.lengths, strict=True))
    ]
    return np.stack(own, 1)


def _repeated(column: Array, like: Array) -> Array:
    return np.repeat(column, like.shape[1], 1)


def _calls(index: Callable[[Array], Array]) -> Callable[..., Coins]:
    return lambda engine, *coins: tuple(each[index(np.arange(len(each)))] for each in coins)


_coins("coin_rejects_and_corrects", "One number rejects and corrects.", lambda e, u, v, w: (u, u, w))
_coins("mirrored_coin_corrects", "1 - u corrects.", lambda e, u, v, w: (u, 1 - u, w))
_coins(
    "one_coin_per_batch",
    "One acceptance number for the batch.",
    lambda e, u, v, w: (_repeated(u[:, :1], u), v, w),
)
_coins(
    "one_coin_per_request",
    "One acceptance number for a request.",
    lambda e, u, v, w: (_per_request(e, u), v, w),
)
_coins(
    "one_coin_per_position",
    "Requests share the numbers of positions.",
    lambda e, u, v, w: (_per_position(e, u), v, w),
)
_coins(
    "one_noise_per_batch",
    "One correction number for the batch.",
    lambda e, u, v, w: (u, _repeated(v[:, :1], v), w),
)
_coins(
    "one_bonus_noise", "One bonus number for the batch.", lambda e, u, v, w: (u, v, _repeated(w[:, :1], w))
)
_coins(
    "bonus_noise_is_first_coin",
    "The bonus token uses the first acceptance number again.",
    lambda e, u, v, w: (u, v, _first_coins(e, u, w)),
)
_coins(
    "noise_per_request",
    "One correction number for a request: only one is used.",
    lambda e, u, v, w: (u, _per_request(e, v), w),
    is_wrong=False,
)
_coins("seed_replayed", "Every call starts from the same seed.", _calls(lambda t: t * 0))
_coins("seed_every_second", "Every second call repeats the one before.", _calls(lambda t: t // 2 * 2))
_coins("seed_cycle_of_8", "The generator is reset every eight calls.", _calls(lambda t: t % 8))
_coins(
    "coin_of_8_bits", "Acceptance numbers have 8 bits.", lambda e, u, v, w: (np.floor(u * 256) / 256, v, w)
)
_coins(
    "coin_above_1_percent", "Acceptance numbers lie in [0.01, 1).", lambda e, u, v, w: (0.01 + 0.99 * u, v, w)
)
_coins(
    "seeds_by_request",
    "All requests but the first have the same numbers in every call.",
    lambda e, *coins: tuple(np.concatenate([x[:, :1], np.repeat(x[:1, 1:], len(x), 0)], 1) for x in coins),
)


# What is emitted
def _ends(out: Array) -> Array:
    return (out != NOTHING).sum(1)


def _bonus_always(engine: BatchEngine, b: int, out: Array, u: Array, v: Array, w: Array) -> None:
    BatchEngine.request(engine, b, out, u, v, w)
    early = np.flatnonzero(_ends(out) <= engine.lengths[b])
    out[early, _ends(out)[early]] = engine.pick(engine.bonus_row(b), w[early, b])


def _bonus_missing(engine: BatchEngine, b: int, out: Array, u: Array, v: Array, w: Array) -> None:
    BatchEngine.request(engine, b, out, u, v, w)
    if engine.lengths[b]:
        out[:, engine.lengths[b]] = NOTHING


def _no_break(engine: BatchEngine, b: int, out: Array, u: Array, v: Array, w: Array) -> None:
    for i in range(engine.lengths[b]):
        place = engine.true_starts[b] + i
        accepted = u[:, place] < engine.chance(b, i)
        out[:, i] = np.where(accepted, engine.drafted(b, i), engine.correction(b, i, v[:, place]))
    out[:, engine.lengths[b]] = engine.pick(engine.bonus_row(b), w[:, b])


def _last_rejection(engine: BatchEngine, b: int, out: Array, u: Array, v: Array, w: Array) -> None:
    n, start = engine.lengths[b], engine.true_starts[b]
    out[:, n] = engine.pick(engine.bonus_row(b), w[:, b])
    stopped = np.zeros(len(out), dtype=bool)
    for i in reversed(range(n)):
        rejected = ~stopped & ~(u[:, start + i] < engine.chance(b, i))
        out[:, i] = np.where(rejected, engine.correction(b, i, v[:, start + i]), engine.drafted(b, i))
        out[rejected, i + 1 :] = NOTHING
        stopped |= rejected


def _rejected_and_correction(engine: BatchEngine, b: int, out: Array, u: Array, v: Array, w: Array) -> None:
    BatchEngine.request(engine, b, out, u, v, w)
    length = _ends(out)
    early = np.flatnonzero(length <= engine.lengths[b])
    ends = length[early]
    out[early, ends] = out[early, ends - 1]
    out[early, ends - 1] = [engine.drafted(b, end - 1) for end in ends]


def _correction_lost(engine: BatchEngine, b: int, out: Array, u: Array, v: Array, w: Array) -> None:
    BatchEngine.request(engine, b, out, u, v, w)
    early = np.flatnonzero((_ends(out) <= engine.lengths[b]) & (_ends(out) > 1))
    out[early, _ends(out)[early] - 1] = NOTHING


mistake("bonus_always", "The bonus token is appended after a rejection, too.", request=_bonus_always)
mistake("bonus_missing", "There is no bonus token.", request=_bonus_missing)
mistake("no_break", "The loop goes on after a rejection.", request=_no_break)
mistake("last_rejection", "The accepted run ends at the last rejection.", request=_last_rejection)
mistake(
    "rejected_and_correction",
    "The rejected token is emitted, then the correction.",
    request=_rejected_and_correction,
)
mistake("correction_lost", "After an accepted draft, a correction is not emitted.", request=_correction_lost)
mistake(
    "rejected_token_emitted",
    "The rejected token is emitted as the correction.",
    correction=lambda e, b, i, v: np.full(len(v), max(e.drafted(b, i), 0)),
)


# How rows are stored
def _least_dropped(row: Array) -> Array:
    kept = row.copy()
    kept[int(np.argmin(row))] = 0
    return kept / kept.sum()


def _rows(
    name: str, about: str, change: Callable[[Array], Array], *which: str, profile: str = "core"
) -> None:
    def changed(engine: BatchEngine, *args: Any) -> None:
        BatchEngine.__init__(engine, *args)
        for rows in which:
            setattr(engine, rows, [change(row) for row in getattr(engine, rows)])

    mistake(name, about, profile, __init__=changed)


def _bfloat16(row: Array) -> Array:
    bits = np.asarray(row, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32).astype(np.float64)


_ALL_ROWS = ("target", "bonus_rows", "draft_rows")
_rows("draft_truncated", "Reported draft rows lack the least likely token.", _least_dropped, "draft_rows")
_rows(
    "target_truncated",
    "The verifier cuts the target's least likely token.",
    _least_dropped,
    "target",
    "bonus_rows",
)
_rows(
    "target_rowtempered",
    "Target rows have temperature 1/2.",
    lambda row: tempered(row, 2.0),
    "target",
    "bonus_rows",
)
_rows(
    "rows_float16",
    "Rows in float16.",
    lambda row: row.astype(np.float16).astype(float),
    *_ALL_ROWS,
    profile="precision",
)
_rows("rows_bfloat16", "Rows in bfloat16.", _bfloat16, *_ALL_ROWS, profile="precision")
