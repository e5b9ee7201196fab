"""Negative controls: verifiers that are wrong in a known way.  Each must be caught.

The subtly wrong ones return perfectly good conditional laws and are not lossless; the malformed
ones return something that is not a conditional law.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spectheory.verification.outcome import Outcome
from user_verifiers import LoopVerifier, Rows, UserBlock, UserToken, normalised_or, positive_difference

# ------------------------------------------------------------ not lossless


class IndependentAcceptance(LoopVerifier):
    """spectr2023 section 4: token verification's acceptance phase, applied to each draft in turn.

    At a context, the surviving drafts are accepted one after the other with min(1, p/q); if none
    is, Y comes from token verification's residual and ends the round.
    """

    name = "independent_acceptance"

    def law_given_drafts(
        self, paths: list[list[int]], target_rows: list[Rows], draft_rows: list[Rows]
    ) -> tuple[list[list[Any]], list[list[list[Any]]]]:
        length = len(paths[0])
        zero = target_rows[0][0][0] * 0
        stops = [[zero] * (length + 1) for _ in paths]
        rows = [[list(row) for row in path_rows] for path_rows in target_rows]

        def visit(context: list[int], survivors: list[int], reach: Any) -> None:
            first, depth = survivors[0], len(context)
            if depth == length:
                stops[first][length] = stops[first][length] + reach
                return
            target, draft = target_rows[first][depth], draft_rows[first][depth]
            chosen: dict[int, Any] = {}
            undecided = reach
            for k in survivors:
                token = paths[k][depth]
                accept = min(1, target[token] / draft[token])
                chosen[token] = chosen.get(token, zero) + undecided * accept
                undecided = undecided * (1 - accept)
            stops[first][depth] = stops[first][depth] + undecided
            rows[first][depth] = normalised_or(positive_difference(target, draft), target)
            for token, mass in chosen.items():
                visit([*context, token], [k for k in survivors if paths[k][depth] == token], mass)

        visit([], list(range(len(paths))), zero + 1)
        return stops, rows


class BlockWithoutWeight(UserBlock):
    """greedy2026 Eq. 4 as misprinted: max(p - q, 0) without w in front of p."""

    name = "block_without_weight"

    def residual(self, weight: Any, target: list[Any], draft: list[Any]) -> list[Any]:
        return positive_difference(target, draft)


class TokenTargetResidual(UserToken):
    """Token verification that draws the correction from the target row itself."""

    name = "token_target_residual"

    def correction(self, target: list[Any], draft: list[Any]) -> list[Any]:
        return target


class BlockShiftedCorrection(UserBlock):
    """Block verification whose correction rows are off by one: the row of the prefix one token shorter."""

    name = "block_shifted_correction"

    def on_path(
        self, path: list[int], target_rows: Rows, draft_rows: Rows
    ) -> tuple[list[Any], list[list[Any]]]:
        stops, rows = super().on_path(path, target_rows, draft_rows)
        return stops, [rows[0], *rows[:-1]]


NOT_LOSSLESS = (
    IndependentAcceptance(),
    BlockWithoutWeight(),
    TokenTargetResidual(),
    BlockShiftedCorrection(),
)

# ------------------------------------------------------ not conditional laws


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


def _negative_entry(array: np.ndarray) -> np.ndarray:
    """-1 in one entry and the surplus in another, so that the sum stays 1."""
    altered = array.copy()
    altered[..., 0] = altered[..., 0] - 1
    altered[..., 1] = altered[..., 1] + 1
    return altered


MALFORMED: dict[str, tuple[Altered, str]] = {
    # what is wrong: (verifier, what the error must say)
    "stops sum to 1/2": (Altered("half", stop_probs=lambda array: array / 2), "they sum to 1/2"),
    "stops sum to 2": (Altered("double", stop_probs=lambda array: array * 2), "they sum to 2"),
    "a negative stop": (Altered("negative", stop_probs=_negative_entry), "the smallest is -"),
    "stops without the last length": (
        Altered("short", stop_probs=lambda array: array[..., :-1]),
        "returned stop_probs of shape",
    ),
    "stops without the path axis": (
        Altered("flat", stop_probs=lambda array: array[..., 0, :]),
        "returned stop_probs of shape",
    ),
    "rows sum to 1/2": (Altered("half_rows", rows=lambda array: array / 2), "sum off by"),
    "a negative row entry": (Altered("negative_rows", rows=_negative_entry), "smallest mass -"),
    "rows of one half": (Altered("other_half_rows", rows=lambda array: array * 0 + array / 2), "sum off by"),
    "float stops": (
        Altered("float_stops", stop_probs=lambda array: array.astype(float)),
        "left exact arithmetic on an exact pair",
    ),
    "float rows": (
        Altered("float_rows", rows=lambda array: array.astype(float)),
        "left exact arithmetic on an exact pair",
    ),
}
