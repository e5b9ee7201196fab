"""A small simulation on language models, its settings changed one at a time."""

from pathlib import Path
from typing import Any

from spectheory.models import LanguageModelPair
from spectheory.simulation import Simulation, simulate

NAMES = ["token", "block", "spectr", "multi_round", "greedy_multipath", "mixed_multipath"]
PROMPTS = ["def main(", "import", "for index in range"]


def run(models: LanguageModelPair, checkpoint: Path | None = None, **changes: Any) -> Simulation:
    """Token and block on three prompts, one prompt per batch, three draws each."""
    settings: dict[str, Any] = {"drafts": 2, "draft_length": 3, "samples": 3, "batch_size": 1, "seed": 4}
    return simulate(models, PROMPTS, ["token", "block"], checkpoint=checkpoint, **(settings | changes))
