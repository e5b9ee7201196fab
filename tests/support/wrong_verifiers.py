"""Wrong verifiers of a user: one is not lossless, the others do not return a conditional law."""

from typing import Any

import numpy as np

from spectheory.verification.outcome import Outcome
from user_verifiers import UserBlock, UserToken, positive_difference


class BlockWithoutWeight(UserBlock):
    """Not lossless.  greedy2026 Eq. 4 as misprinted: max(p - q, 0) without w in front of p."""

    name = "block_without_weight"

    def residual(self, weight: Any, target: list[Any], draft: list[Any]) -> list[Any]:
        return positive_difference(target, draft)


class Altered:
    """Token verification with its stop probabilities or correction rows altered afterwards."""

    def __init__(self, name: str, stop_probs: Any = None, rows: Any = None) -> None:
        self.name = name
        self._stop_probs = stop_probs or (lambda array: array)
        self._rows = rows or (lambda array: array)

    def outcome(self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray) -> Outcome:
        proper = UserToken().outcome(paths, target_rows, draft_rows)
        return Outcome(
            self._stop_probs(proper.stop_probs),
            lambda path_index, length: self._rows(proper.correction(path_index, length)),
        )


class RaisesOnLast(UserToken):
    """Has no row for drafts with the last token."""

    name = "raises_on_last"

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        if (paths == target_rows.shape[-1] - 1).any():
            raise KeyError("row")
        return super().outcome(paths, target_rows, draft_rows)
