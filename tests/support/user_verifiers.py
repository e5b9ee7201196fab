"""Verifiers as a user would write them: plain objects, plain Python, one tuple of drafts at a time."""

from typing import Any

import numpy as np

from spectheory.verification.outcome import Outcome

Rows = list[list[Any]]


class LoopVerifier:
    """Adapts ``law_given_drafts`` to the contract ``outcome(paths, target_rows, draft_rows)``.

    Subclasses are not ``spectheory.Verifier``s; what they compute with are the entries they are
    given, Fractions on an exact pair.
    """

    def law_given_drafts(
        self, paths: list[list[int]], target_rows: list[Rows], draft_rows: list[Rows]
    ) -> tuple[list[list[Any]], list[list[list[Any]]]]:
        """Stop probabilities [K][L+1] and correction rows [K][L+1][V] for one tuple of drafts."""
        raise NotImplementedError

    def outcome(self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray) -> Outcome:
        laws = [
            self.law_given_drafts(*(array[n].tolist() for array in (paths, target_rows, draft_rows)))
            for n in range(len(paths))
        ]
        dtype = target_rows.dtype
        stop_probs = np.array([stops for stops, _ in laws], dtype=dtype)
        return Outcome.from_rows(stop_probs, np.array([rows for _, rows in laws], dtype=dtype))


def positive_difference(target: list[Any], draft: list[Any]) -> list[Any]:
    return [max(p - q, p - p) for p, q in zip(target, draft, strict=True)]


def normalised_or(row: list[Any], otherwise: list[Any]) -> list[Any]:
    """The row divided by its sum, or ``otherwise`` if it has no mass."""
    total = sum(row)
    return [value / total for value in row] if total > 0 else otherwise


class OnePath(LoopVerifier):
    """The first drafted path is looked at, the others get zeros."""

    def on_path(
        self, path: list[int], target_rows: Rows, draft_rows: Rows
    ) -> tuple[list[Any], list[list[Any]]]:
        """Stop probabilities [L+1] and correction rows [L+1][V] on one path."""
        raise NotImplementedError

    def law_given_drafts(
        self, paths: list[list[int]], target_rows: list[Rows], draft_rows: list[Rows]
    ) -> tuple[list[list[Any]], list[list[list[Any]]]]:
        stops, rows = self.on_path(paths[0], target_rows[0], draft_rows[0])
        idle = [value - value for value in stops]
        return [stops] + [idle] * (len(paths) - 1), [rows] * len(paths)


class UserToken(OnePath):
    """block2024 Algorithm 1, written down once more."""

    name = "user_token"

    def correction(self, target: list[Any], draft: list[Any]) -> list[Any]:
        """The law of the correction token after a rejection (Eq. 3)."""
        return normalised_or(positive_difference(target, draft), target)

    def on_path(
        self, path: list[int], target_rows: Rows, draft_rows: Rows
    ) -> tuple[list[Any], list[list[Any]]]:
        stops, rows, reach = [], [], sum(target_rows[0])
        for token, target, draft in zip(path, target_rows, draft_rows, strict=False):
            accept = min(1, target[token] / draft[token])
            stops.append(reach * (1 - accept))
            rows.append(self.correction(target, draft))
            reach = reach * accept
        return [*stops, reach], [*rows, target_rows[-1]]


class UserBlock(OnePath):
    """block2024 Algorithm 2, written down once more."""

    name = "user_block"

    def residual(self, weight: Any, target: list[Any], draft: list[Any]) -> list[Any]:
        """The numerators of Eq. 4: max(w p - q, 0)."""
        return positive_difference([weight * p for p in target], draft)

    def on_path(
        self, path: list[int], target_rows: Rows, draft_rows: Rows
    ) -> tuple[list[Any], list[list[Any]]]:
        weights = [sum(target_rows[0])]
        for token, target, draft in zip(path, target_rows, draft_rows, strict=False):
            weights.append(min(weights[0], weights[-1] * target[token] / draft[token]))
        residuals = [
            self.residual(w, target, draft)
            for w, target, draft in zip(weights, target_rows, draft_rows, strict=False)
        ]
        accept = [weights[0]]
        for weight, residual in zip(weights[1:], residuals[1:], strict=False):
            denominator = 1 - weight + sum(residual)
            accept.append(sum(residual) / denominator if denominator else weight - weight)
        accept.append(weights[-1])
        stops, undecided = [], weights[0]
        for h in reversed(accept):
            stops.append(undecided * h)
            undecided = undecided * (1 - h)
        rows = [normalised_or(row, target) for row, target in zip(residuals, target_rows, strict=False)]
        return stops[::-1], [*rows, target_rows[-1]]
