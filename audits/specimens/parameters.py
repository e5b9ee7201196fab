"""Samplers that apply a sampling parameter to raw rows, each with a mistake and its mended partner.

The audit declares the parameter (``spectheory.pairs.processors``), or has the plain step of the engine.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

Rule = Callable[[Tensor, Sequence[int]], Tensor]
"""(raw row, text) -> weights."""


def tempered(row: Tensor, text: Sequence[int]) -> Tensor:
    """Temperature 1/2."""
    return row**2


def filtered(row: Tensor, text: Sequence[int]) -> Tensor:
    """Min-p of 3/10."""
    return torch.where(row >= 0.3 * row.max(), row, torch.zeros_like(row))


def penalised(row: Tensor, text: Sequence[int]) -> Tensor:
    """A presence penalty that halves weights."""
    weights = row.clone()
    for token in set(text):
        weights[token] /= 2
    return weights


def _raw(row: Tensor, text: Sequence[int]) -> Tensor:
    return row


def _without_last(rule: Rule) -> Rule:
    return lambda row, text: rule(row, text[:-1])


def verify(
    paths: Tensor,
    target_rows: Tensor,
    draft_rows: Tensor,
    generator: Any,
    *,
    rule: Rule,
    of_bonus: Rule | None = None,
    of_residual: Rule | None = None,
) -> list[int]:
    """Token verification of the first path on processed rows.

    Args:
        paths, target_rows, draft_rows, generator: as of all samplers.
        rule: the processing of target rows.
        of_bonus, of_residual: a mistake: other processing of the last row, or of rows of corrections.
    """
    path, q = paths[0].tolist(), draft_rows[0]

    def p(place: int, of: Rule) -> Tensor:
        weights = of(target_rows[0, place], path[:place])
        return weights / weights.sum()

    for place, token in enumerate(path):
        if torch.rand((), generator=generator) * q[place, token] < p(place, rule)[token]:
            continue
        row = p(place, of_residual or rule)
        rest = (row - q[place]).clamp(min=0)
        weights = rest if rest.sum() > 0 else row
        return [*path[:place], int(torch.multinomial(weights, 1, generator=generator))]
    return [*path, int(torch.multinomial(p(len(path), of_bonus or rule), 1, generator=generator))]


def plain(rule: Rule) -> Callable[[Tensor, Sequence[int], Any], int]:
    """The plain step of an engine with these parameters."""

    def step(row: Tensor, text: Sequence[int], generator: Any) -> int:
        return int(torch.multinomial(rule(row, text), 1, generator=generator))

    return step


PARAMETER_SPECIMENS: Mapping[str, tuple[str, Rule, Callable[..., Any], Callable[..., Any]]] = {
    "temperature_dropped": (
        "temperature=1/2",
        tempered,
        partial(verify, rule=_raw),
        partial(verify, rule=tempered),
    ),
    "filter_on_bonus_only": (
        "min_p=3/10",
        filtered,
        partial(verify, rule=_raw, of_bonus=filtered),
        partial(verify, rule=filtered),
    ),
    "raw_residual": (
        "min_p=3/10",
        filtered,
        partial(verify, rule=filtered, of_residual=_raw),
        partial(verify, rule=filtered),
    ),
    "penalty_one_late": (
        "presence_penalty=1/2",
        penalised,
        partial(verify, rule=_without_last(penalised)),
        partial(verify, rule=penalised),
    ),
}
"""Name -> (the parameter, the rule of a plain step with it, the wrong sampler, its mended partner)."""
