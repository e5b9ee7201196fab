"""Engines with one mistake each in the settings of requests, in masks and at placeholders."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from audits.specimens.batch_engine import Array, BatchEngine
from audits.specimens.batch_mistakes import mistake

Settings = Mapping[str, Any]

# Placeholders
mistake(
    "placeholder_is_last_token",
    "-1 is used as an index.",
    "placeholders",
    acceptance=lambda e, p, q, x, b, i: e.ratio(p[x], q[x]),
)
mistake(
    "placeholder_accepted",
    "-1 is accepted.",
    "placeholders",
    acceptance=lambda e, p, q, x, b, i: 1.0 if x < 0 else e.ratio(p[x], q[x]),
)
mistake(
    "placeholder_is_0",
    "-1 is verified as token 0.",
    "placeholders",
    drafted=lambda e, b, i: max(e.requests[b].drafts[i], 0),
)
mistake(
    "placeholder_residual",
    "At a placeholder a residual with its draft row is drawn from.",
    "placeholders",
    correction=lambda e, b, i, v: e.pick(
        e.residual(e.target[e.target_index(b, i)], e.draft_rows[e.draft_index(b, i)], 0), v
    ),
)
mistake(
    "placeholder_bonus_row",
    "At a placeholder the row after all placeholders is drawn from.",
    "placeholders",
    correction=lambda e, b, i, v: (
        e.pick(e.bonus_row(b), v) if e.drafted(b, i) < 0 else BatchEngine.correction(e, b, i, v)
    ),
)

# Temperature
mistake(
    "temperature_dropped",
    "The temperature does not reach the verifier.",
    "settings",
    temperature=lambda e, s, b, i: 1.0 if s.get("temperature", 1) else 0,
)
mistake(
    "temperature_not_on_bonus",
    "The bonus row has temperature 1.",
    "settings",
    temperature=lambda e, s, b, i: (
        1.0 if i == e.lengths[b] and s.get("temperature", 1) else s.get("temperature", 1)
    ),
)
mistake(
    "temperature_on_bonus_only",
    "Only the bonus row has the temperature.",
    "settings",
    temperature=lambda e, s, b, i: (
        s.get("temperature", 1) if i == e.lengths[b] or s.get("temperature", 1) == 0 else 1.0
    ),
)
mistake(
    "temperature_twice",
    "The temperature is applied twice.",
    "settings",
    temperature=lambda e, s, b, i: s.get("temperature", 1) ** 2,
)
mistake(
    "temperature_multiplies",
    "Logits are multiplied by the temperature.",
    "settings",
    temperature=lambda e, s, b, i: 1 / s["temperature"] if s.get("temperature") else 0,
)
mistake(
    "mixed_all_greedy",
    "One greedy request makes all greedy.",
    "settings",
    temperature=lambda e, s, b, i: (
        0
        if any((r.parameters or {}).get("temperature", 1) == 0 for r in e.requests)
        else s.get("temperature", 1)
    ),
)
mistake(
    "mixed_all_random",
    "Greedy requests of a mixed batch are sampled.",
    "settings",
    temperature=lambda e, s, b, i: s.get("temperature", 1) or 1.0,
)
mistake(
    "greedy_bonus_random",
    "A greedy request's bonus token is sampled.",
    "settings",
    temperature=lambda e, s, b, i: (
        1.0 if i == e.lengths[b] and s.get("temperature", 1) == 0 else s.get("temperature", 1)
    ),
)


# Whose settings
def _of(which: Any) -> Any:
    return lambda engine, b, i: engine.requests[which(engine, b, i)].parameters or {}


mistake(
    "settings_by_row",
    "Settings are indexed by row, not by request.",
    "settings",
    parameters_of=_of(lambda e, b, i: min(sum(e.lengths[:b]) + i, e.batch - 1)),
)
mistake(
    "settings_of_neighbour",
    "Settings of the next request.",
    "settings",
    parameters_of=_of(lambda e, b, i: (b + 1) % e.batch),
)
mistake(
    "settings_of_first", "Settings of the first request.", "settings", parameters_of=_of(lambda e, b, i: 0)
)


# Cuts
def _kept(settings: Settings, *names: str) -> Settings:
    return {name: value for name, value in settings.items() if name not in names}


def _cut_where(what: str, applies: Any) -> Any:
    def cut(engine: BatchEngine, row: Array, settings: Settings, b: int, i: int) -> Array:
        return BatchEngine.cut(
            engine, row, settings if applies(engine, b, i) else _kept(settings, what), b, i
        )

    return cut


for _what in ("top_k", "top_p", "min_p"):
    mistake(
        f"{_what}_ignored", f"{_what} is ignored.", "settings", cut=_cut_where(_what, lambda e, b, i: False)
    )
    mistake(
        f"{_what}_on_bonus_only",
        f"{_what} on the bonus row only.",
        "settings",
        cut=_cut_where(_what, lambda e, b, i: i == e.lengths[b]),
    )
    mistake(
        f"{_what}_not_on_bonus",
        f"{_what} everywhere but on the bonus row.",
        "settings",
        cut=_cut_where(_what, lambda e, b, i: i < e.lengths[b]),
    )


def _top_p_short(engine: BatchEngine, row: Array, settings: Settings, b: int, i: int) -> Array:
    if "top_p" not in settings:
        return BatchEngine.cut(engine, row, settings, b, i)
    order = np.argsort(-row, kind="stable")
    dropped = np.cumsum(row[order]) > settings["top_p"]
    dropped[0] = False
    return np.where(np.isin(np.arange(len(row)), order[dropped]), 0, row)


def _top_p_first(
    engine: BatchEngine, weights: Array, settings: Settings, before: Sequence[int], b: int, i: int
) -> Array:
    if "top_p" in settings:
        plain = BatchEngine.cut(engine, weights / weights.sum(), {"top_p": settings["top_p"]}, b, i)
        weights = np.where(plain > 0, weights, 0)
    return BatchEngine.processed(engine, weights, _kept(settings, "top_p"), before, b, i)


def _not_normalised(engine: BatchEngine, row: Array, settings: Settings, b: int, i: int) -> Array:
    return np.where(BatchEngine.cut(engine, row, settings, b, i) > 0, row, 0)


mistake("top_p_drops_the_crossing", "The token that crosses top-p is dropped.", "settings", cut=_top_p_short)
mistake(
    "top_p_before_temperature", "top-p on the row before its temperature.", "settings", processed=_top_p_first
)
mistake("cut_not_normalised", "Rows are not normalised after the cut.", "settings", cut=_not_normalised)


# Penalties
def _penalty(counted: Any) -> Any:
    def penalised(
        engine: BatchEngine, weights: Array, settings: Settings, before: Sequence[int], b: int, i: int
    ) -> Array:
        past, drafts = counted(engine, list(settings.get("past", [])), list(before), b, i)
        return BatchEngine.penalised(engine, weights, {**settings, "past": past}, drafts, b, i)

    return penalised


mistake(
    "penalty_ignores_drafts",
    "Penalties count the past only.",
    "settings",
    penalised=_penalty(lambda e, past, before, b, i: (past, [])),
)
mistake(
    "penalty_ignores_past",
    "Penalties count the drafts only.",
    "settings",
    penalised=_penalty(lambda e, past, before, b, i: ([], before)),
)
mistake(
    "penalty_counts_last_twice",
    "The past's last token counts twice within the window.",
    "settings",
    penalised=_penalty(lambda e, past, before, b, i: (past + past[-1:] * bool(before), before)),
)
mistake(
    "penalty_counts_all_drafts",
    "Penalties at every position count all drafts.",
    "settings",
    penalised=_penalty(lambda e, past, before, b, i: (past, e.requests[b].drafts)),
)
mistake(
    "penalty_not_on_bonus",
    "There is no penalty on the bonus row.",
    "settings",
    penalised=_penalty(lambda e, past, before, b, i: ([], []) if i == e.lengths[b] else (past, before)),
)


# Grammar masks
def _mask_at(position: Any) -> Any:
    """Position -> the mask that is applied there; ``None`` for none."""

    def masked(engine: BatchEngine, weights: Array, settings: Settings, b: int, i: int) -> Array:
        place = position(engine, b, i)
        if place is None or "allowed" not in settings:
            return weights
        return BatchEngine.masked(engine, weights, settings, b, place)

    return masked


mistake("mask_ignored", "The grammar's mask is ignored.", "masks", masked=_mask_at(lambda e, b, i: None))
mistake(
    "mask_of_first_position",
    "Every position has the first mask.",
    "masks",
    masked=_mask_at(lambda e, b, i: 0),
)
mistake(
    "mask_of_position_before",
    "Masks are one position late.",
    "masks",
    masked=_mask_at(lambda e, b, i: max(i - 1, 0)),
)
mistake(
    "mask_not_on_bonus",
    "The bonus row has no mask.",
    "masks",
    masked=_mask_at(lambda e, b, i: None if i == e.lengths[b] else i),
)
mistake(
    "mask_on_bonus_only",
    "Only the bonus row has a mask.",
    "masks",
    masked=_mask_at(lambda e, b, i: i if i == e.lengths[b] else None),
)
mistake(
    "mask_of_neighbour",
    "Masks of the next request.",
    "masks",
    parameters_of=_of(lambda e, b, i: (b + 1) % e.batch),
)
