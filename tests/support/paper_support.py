"""Every result of the reproduction in a small version, and CSV files as dictionaries."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spectheory.paper import (
    Findings,
    Setting,
    acceptance_length,
    full_vocabulary,
    otm_bernoulli,
    real_pair,
    two_token_table,
)


def small_real_pair(**changes: Any) -> Findings:
    settings: dict[str, Any] = {"prompts": (0,), "settings": (Setting(2, 2, 2),), "samples": 400}
    return real_pair(**(settings | changes))


SMALL: dict[str, Callable[[], Findings]] = {
    "two_token_table": lambda: two_token_table((1, 2)),
    "acceptance_length": lambda: acceptance_length(draft_length=3, samples=400),
    "otm_bernoulli": lambda: otm_bernoulli(max_drafts=3),
    "real_pair": small_real_pair,
    "full_vocabulary": lambda: full_vocabulary((1, 2), draft_length=3, num_prompts=4, samples=3),
}


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
