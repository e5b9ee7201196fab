"""Every result of the reproduction in a small version, and CSV files as dictionaries."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from spectheory.paper import (
    Findings,
    Setting,
    acceptance_bounds,
    acceptance_length,
    division_factor,
    draft_length_gain,
    frontier,
    full_information,
    full_vocabulary,
    greedy_falls,
    interval_gap,
    iterations,
    kseq_ratio,
    latency,
    lossy_front,
    monotone_ratios,
    one_path_optimum,
    otm_bernoulli,
    otm_uniform,
    prefix_trees,
    printed_gains,
    ranking_search,
    real_gaps,
    real_pair,
    several_calls,
    several_paths,
    skewed_drafts,
    spectr_gbv_bound,
    spectr_gbv_defect,
    temperature,
    token_tree,
    two_token_table,
    whole_texts,
    winners,
)


def small_real_pair(**changes: Any) -> Findings:
    settings: dict[str, Any] = {"prompts": (0,), "settings": (Setting(2, 2, 2),), "samples": 400}
    return real_pair(**(settings | changes))


SMALL: dict[str, Callable[[], Findings]] = {
    "otm_bernoulli": lambda: otm_bernoulli(max_drafts=3),
    "otm_uniform": lambda: otm_uniform(120, (60, 40), max_drafts=4),
    "acceptance_bounds": lambda: acceptance_bounds(max_drafts=3),
    "division_factor": lambda: division_factor(steps=8),
    "kseq_ratio": lambda: kseq_ratio((2, 3), (2,), starts=10, steps=20),
    "prefix_trees": lambda: prefix_trees(("two_token",), (1, 2)),
    "two_token_table": lambda: two_token_table((1, 2)),
    "full_information": lambda: full_information((1, 2, 3)),
    "acceptance_length": lambda: acceptance_length(draft_length=3, samples=400),
    "draft_length_gain": lambda: draft_length_gain(max_length=5, num_random=3),
    "iterations": lambda: iterations(num_iterations=4, checked_tokens=3),
    "several_calls": lambda: several_calls(max_tokens=4, draft_lengths=(3,), steps=4),
    "one_path_optimum": lambda: one_path_optimum(((2, 2),), num_pairs=5),
    "several_paths": lambda: several_paths(("two_token",), (1, 2, 3), (1, 2)),
    "token_tree": lambda: token_tree(draft_length=2),
    "interval_gap": lambda: interval_gap(((3, 2), (4, 2)), relative_gap=1e-4),
    "skewed_drafts": skewed_drafts,
    "monotone_ratios": lambda: monotone_ratios(num_pairs=12),
    "ranking_search": lambda: ranking_search(num_pairs=2, num_drafts=(3,)),
    "greedy_falls": lambda: greedy_falls(("two_token", "uniform_equal"), (1, 2, 4, 16)),
    "winners": lambda: winners((0.0, 0.8), (1, 2), (2,), num_pairs=3),
    "frontier": lambda: frontier((0.3, 0.6), (3,), (2,), num_pairs=3),
    "lossy_front": lambda: lossy_front(1, (1, 2), steps=4),
    "spectr_gbv_bound": lambda: spectr_gbv_bound(max_drafts=3),
    "spectr_gbv_defect": lambda: spectr_gbv_defect(num_pairs=3),
    "real_pair": small_real_pair,
    "real_gaps": lambda: real_gaps(2, (Setting(3, 1, 2), Setting(2, 3, 2))),
    "full_vocabulary": lambda: full_vocabulary((1, 2), (2, 3), num_prompts=4, samples=2),
    "temperature": lambda: temperature((0.5, 1.0), 2, 3, num_prompts=4, samples=2),
    "printed_gains": lambda: printed_gains(num_prompts=2, samples=2),
    "whole_texts": lambda: whole_texts((2,), 2, tokens=4, num_prompts=3),
    "latency": latency,
}


@cache
def small(name: str) -> Findings:
    """Its small version, computed once per test process."""
    return SMALL[name]()


Lie = Callable[[Any], Any]
"""From what an exhibit calls to what it is made to call instead."""


class Changed:
    """An object of which some attributes are told otherwise."""

    def __init__(self, found: Any, **changes: Callable[[Any], Any]) -> None:
        self._found, self._changes = found, changes

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._found, name)
        return self._changes[name](value) if name in self._changes else value


def told(**changes: Callable[[Any], Any]) -> Lie:
    """The lie of a function whose result has changed attributes."""
    return lambda original: lambda *arguments, **options: Changed(original(*arguments, **options), **changes)


def told_of(wanted: Callable[..., bool], **changes: Callable[[Any], Any]) -> Lie:
    """The same, for some arguments only."""
    return lambda original: (
        lambda *arguments, **options: Changed(
            original(*arguments, **options), **(changes if wanted(*arguments, **options) else {})
        )
    )


def assert_seen(
    patch: pytest.MonkeyPatch, name: str, called: str, lie: Lie, claims: Sequence[str], **parameters: Any
) -> None:
    """The checks that start with these words fail when what the exhibit calls is replaced by a lie."""
    module = import_module(f"spectheory.paper.figures.{name}")
    patch.setattr(module, called, lie(getattr(module, called)))
    shown = getattr(module, name)
    findings = shown(**parameters) if parameters else SMALL[name]()
    for claim in claims:
        about = [check for check in findings.checks if check.claim.startswith(claim)]
        assert len(about) == 1, (claim, [check.claim for check in findings.checks])
        assert not about[0].passed, claim


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
