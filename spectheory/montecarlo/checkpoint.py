"""Checkpoint: the finished batches of a run, and the file that keeps them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.errors import InvalidInputError
from spectheory.montecarlo.estimates import Tally


@dataclass
class Checkpoint:
    """Finished batches, read from the file where there is one.

    Attributes:
        path: the file; ``None`` keeps nothing.
        settings: everything that determines the numbers; a file of other settings is refused.
        tallies: batch -> name of a verifier -> its sums.

    Raises:
        InvalidInputError: the file is no checkpoint, belongs to other settings, or has no folder to lie in.
    """

    path: str | Path | None
    settings: dict[str, Any]
    tallies: dict[int, dict[str, Tally]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path is None:
            return
        if not Path(self.path).parent.is_dir():  # better now than after the first batch
            raise InvalidInputError(
                f"the checkpoint {self.path} lies in a folder that does not exist; make it"
            )
        if Path(self.path).exists():
            self._read(Path(self.path))

    def add(self, batch: int, tallies: dict[str, Tally]) -> None:
        """Keep a finished batch; the file is replaced in one step, so a kill leaves it whole."""
        self.tallies[batch] = tallies
        if self.path is None:
            return
        batches = {
            str(number): {
                name: {key: value.tolist() for key, value in vars(tally).items()}
                for name, tally in by_verifier.items()
            }
            for number, by_verifier in self.tallies.items()
        }
        part = Path(self.path).with_name(Path(self.path).name + ".part")
        part.write_text(json.dumps({"settings": self.settings, "batches": batches}), encoding="utf-8")
        part.replace(self.path)

    def _read(self, path: Path) -> None:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            settings = {**document["settings"]}
            tallies = {
                int(batch): {
                    name: Tally(**{key: np.array(value) for key, value in sums.items()})
                    for name, sums in by_verifier.items()
                }
                for batch, by_verifier in document["batches"].items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidInputError(f"{path} is not a checkpoint of a simulation: {error!r}") from error
        mine = json.loads(json.dumps(self.settings))
        if settings != mine:
            different = sorted(
                key for key in mine.keys() | settings.keys() if settings.get(key) != mine.get(key)
            )
            raise InvalidInputError(
                f"{path} belongs to a run with other settings ({', '.join(different)}); "
                "name another checkpoint file, or remove this one"
            )
        self.tallies = tallies
