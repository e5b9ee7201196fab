"""Engines with one mistake each: the laws they draw from, the rows they read, the numbers they share.

Every mistake overrides one step of ``BatchEngine``.  ``MISTAKES`` is the list that cases of the conformance
suite are chosen for; ``batch_index_mistakes`` adds mistakes of rows and random numbers, and
``batch_settings_mistakes`` mistakes of settings, masks and placeholders.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from audits.specimens.batch_engine import Array, BatchEngine

MISTAKES: dict[str, type[BatchEngine]] = {}
"""Name -> engine; all are wrong."""
HARMLESS: dict[str, type[BatchEngine]] = {}
"""Name -> engine that looks wrong and keeps the law."""
PROFILES: dict[str, str] = {}
"""Name of a mistake -> the profile of cases that must find it."""
OF_A_RUN = ("seed_replayed", "seed_every_second", "seed_cycle_of_8", "seeds_by_request")
"""Mistakes whose random numbers depend on the calls before: a simulation of many runs starts each anew."""
BELOW_RESOLUTION = ("coin_of_8_bits",)
"""Mistakes that the suite need not find: their laws differ by less than it resolves."""


def mistake(
    name: str, about: str, profile: str = "core", is_wrong: bool = True, **steps: Callable[..., Any]
) -> None:
    """Add an engine whose steps are replaced.

    Args:
        name: of the mistake.
        about: one sentence.
        profile: of the cases that must find it.
        is_wrong: false for an engine that keeps the law.
        steps: method -> its replacement.
    """
    engine = type(name, (BatchEngine,), {**steps, "__doc__": about})
    (MISTAKES if is_wrong else HARMLESS)[name] = engine
    PROFILES[name] = profile


def _one_hot(row: Array) -> Array:
    return np.eye(len(row))[int(np.argmax(row))]


def _positive(row: Array) -> Array:
    return np.maximum(row, 0)


# What a correction token is drawn from
def _residual(name: str, about: str, rule: Callable[[Array, Array, int], Array], **more: Any) -> None:
    mistake(name, about, residual=lambda engine, p, q, token: rule(p, q, token), **more)


def _masked(p: Array, q: Array, token: int) -> Array:
    kept = np.where(np.arange(len(p)) == token, 0, p)
    return kept if kept.sum() > 0 else p


_residual("correction_from_target", "A correction is drawn from the target's row.", lambda p, q, x: p)
_residual("correction_from_draft", "A correction is drawn from the draft's row.", lambda p, q, x: q)
_residual("absolute_residual", "|p - q| instead of max(p - q, 0).", lambda p, q, x: np.abs(p - q))
_residual("residual_swapped", "max(q - p, 0).", lambda p, q, x: _positive(q - p))
_residual(
    "residual_unclipped", "p - q sums to 0, so that token 0 is taken.", lambda p, q, x: np.zeros_like(p)
)
_residual("rejected_token_masked", "The target's row without the rejected token.", _masked)
_residual(
    "target_where_larger", "The target's row where it exceeds the draft's.", lambda p, q, x: p * (p > q)
)
_residual("residual_smoothed_3", "1e-3 is added to the residual.", lambda p, q, x: _positive(p - q) + 1e-3)
_residual("residual_smoothed_5", "1e-5 is added to the residual.", lambda p, q, x: _positive(p - q) + 1e-5)
_residual(
    "small_residual_is_target",
    "A residual below 1e-3 is replaced by the target's row.",
    lambda p, q, x: p if _positive(p - q).sum() < 1e-3 else _positive(p - q),
)
_residual(
    "residual_argmax", "The residual's largest entry is taken.", lambda p, q, x: _one_hot(_positive(p - q))
)
_residual("residual_of_squares", "The residual is sharpened.", lambda p, q, x: _positive(p - q) ** 2)
_residual("residual_of_roots", "The residual is flattened.", lambda p, q, x: _positive(p - q) ** 0.5)
_residual(
    "residual_uniform", "A uniform token of the residual's support.", lambda p, q, x: (p > q).astype(float)
)
_residual(
    "last_token_lost", "The last token is never a correction.", lambda p, q, x: _positive(p - q) * _not(p, -1)
)
_residual("token_0_lost", "Token 0 is never a correction.", lambda p, q, x: _positive(p - q) * _not(p, 0))
_residual(
    "residual_cut_1_percent", "Residuals below 1 % are dropped.", lambda p, q, x: (p - q) * (p - q > 0.01)
)
for _k in (1024, 8192, 32768):
    _residual(
        f"tile_{_k}",
        f"Tokens from {_k} on are lost in the residual.",
        lambda p, q, x, k=_k: _positive(p - q) * (np.arange(len(p)) < k),
        profile="wide",
    )


def _not(row: Array, token: int) -> Array:
    kept = np.ones(len(row))
    kept[token] = 0
    return kept


def _unnormalised(engine: BatchEngine, b: int, i: int, coins: Array) -> Array:
    left = _positive(engine.target[engine.target_index(b, i)] - engine.draft_rows[engine.draft_index(b, i)])
    return np.minimum(np.searchsorted(np.cumsum(left), coins, side="right"), engine.vocabulary - 1)


mistake("residual_not_normalised", "The residual's sums are searched as they are.", correction=_unnormalised)


# When a draft is accepted
def _acceptance(name: str, about: str, rule: Callable[[Array, Array, int], float], **more: Any) -> None:
    def acceptance(engine: BatchEngine, p: Array, q: Array, token: int, b: int, i: int) -> float:
        return 0.0 if token < 0 else float(rule(p, q, token))

    mistake(name, about, acceptance=acceptance, **more)


def _ratio(p: float, q: float) -> float:
    return float(p > 0) if q <= 0 else min(1.0, p / q)


def tempered(row: Array, power: float) -> Array:
    return row**power / (row**power).sum()


_acceptance("accepts_q_over_p", "min(1, q/p).", lambda p, q, x: _ratio(q[x], p[x]))
_acceptance("accepts_p", "The coin is compared with p.", lambda p, q, x: p[x])
_acceptance(
    "accepts_1_minus", "The coin is compared the wrong way round.", lambda p, q, x: 1 - _ratio(p[x], q[x])
)
_acceptance("ratio_smoothed_3", "p / (q + 1e-3).", lambda p, q, x: min(1.0, p[x] / (q[x] + 1e-3)))
_acceptance("ratio_smoothed_6", "p / (q + 1e-6).", lambda p, q, x: min(1.0, p[x] / (q[x] + 1e-6)))
_acceptance("ratio_floor_5", "q is at least 1e-5.", lambda p, q, x: min(1.0, p[x] / max(q[x], 1e-5)))
_acceptance("lenient", "min(1, 2 p/q).", lambda p, q, x: min(1.0, 2 * _ratio(p[x], q[x])))
_acceptance("square_root_ratio", "The root of p/q.", lambda p, q, x: _ratio(p[x], q[x]) ** 0.5)
_acceptance("ratio_in_log2", "2^(ln p - ln q).", lambda p, q, x: _ratio(p[x], q[x]) ** 0.6931471805599453)
_acceptance(
    "one_percent_mercy",
    "One percent of the rejections are accepted.",
    lambda p, q, x: 0.01 + 0.99 * _ratio(p[x], q[x]),
)
_acceptance("typical", "Accepted if p is at least 3/10.", lambda p, q, x: p[x] >= 0.3)
_acceptance("argmax_accepts", "Accepted if it is the target's argmax.", lambda p, q, x: x == np.argmax(p))
_acceptance(
    "ratio_rounded",
    "The ratio is rounded to sixteenths.",
    lambda p, q, x: round(16 * _ratio(p[x], q[x])) / 16,
)
_acceptance(
    "drafttempered",
    "q is reported at temperature 1.1.",
    lambda p, q, x: _ratio(p[x], tempered(q, 1 / 1.1)[x]),
)
_acceptance(
    "targettempered", "p is read at temperature 0.9.", lambda p, q, x: _ratio(tempered(p, 1 / 0.9)[x], q[x])
)
_acceptance(
    "token_0_accepted", "Token 0 counts as nothing to verify.", lambda p, q, x: x == 0 or _ratio(p[x], q[x])
)
_acceptance("accepts_where_larger", "Accepted if p is at least q.", lambda p, q, x: p[x] >= q[x])
_acceptance(
    "rejects_where_larger", "p/q above 1 is a rejection.", lambda p, q, x: p[x] / q[x] if p[x] <= q[x] else 0
)
mistake("accepts_at_equality", "u <= a for u < a.", is_wrong=False, accepts=lambda engine, u, a: u <= a)
mistake(
    "p_over_0_rejects",
    "p/0 is a rejection.",
    is_wrong=False,
    ratio=lambda engine, p, q: 0.0 if q <= 0 else min(1.0, p / q),
)


def _unseen(which: Callable[[BatchEngine, int], int]) -> Callable[..., float]:
    def acceptance(engine: BatchEngine, p: Array, q: Array, token: int, b: int, i: int) -> float:
        return 0.0 if token < 0 else 1.0 if i == which(engine, b) else _ratio(p[token], q[token])

    return acceptance


mistake("first_draft_unseen", "The first draft is kept unseen.", acceptance=_unseen(lambda engine, b: 0))
mistake(
    "last_draft_unseen",
    "The last draft is kept unseen.",
    acceptance=_unseen(lambda engine, b: engine.lengths[b] - 1),
)


# What the bonus token is drawn from
def _last(engine: BatchEngine, rows: str, b: int) -> Array:
    """The row of the last draft; the bonus row itself if the request has no draft."""
    own = engine.true_starts[b] + engine.lengths[b] - 1
    return getattr(engine, rows)[own] if engine.lengths[b] else engine.bonus_rows[b]


mistake(
    "bonus_squared", "The bonus token has temperature 1/2.", bonus_weights=lambda e, b: e.bonus_row(b) ** 2
)
mistake("bonus_argmax", "The bonus token is the argmax.", bonus_weights=lambda e, b: _one_hot(e.bonus_row(b)))
mistake(
    "bonus_from_draft_row",
    "The bonus row is the last draft row.",
    bonus_weights=lambda e, b: _last(e, "draft_rows", b),
)
mistake(
    "bonus_from_last_row",
    "The bonus row is the last draft's target row.",
    bonus_weights=lambda e, b: _last(e, "target", b),
)
mistake(
    "bonus_residual",
    "The bonus row is a residual with the last draft row.",
    bonus_weights=lambda e, b: (
        e.residual(e.bonus_row(b), _last(e, "draft_rows", b), 0) if e.lengths[b] else e.bonus_row(b)
    ),
)
