"""Call a verifier of whole paths on drafts that end early: with paths of n tokens, as if L were n."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spectheory.foundation.arrays import Array, namespace
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import DraftProcess, PerPath
from spectheory.pairs.drafts.kept import AdaptiveDrafts
from spectheory.pairs.drafts.process import ANY_PROCESS
from spectheory.pairs.pair import ModelPair
from spectheory.verification.outcome import Outcome
from spectheory.verification.verifier import Verifier

Answer = tuple[Any, Outcome | None]
"""The numbers of tuples of one length, and the outcome on them.  Without a drafted token it is ``None``."""


class AtKeptLengths(Verifier):
    """A verifier on drafts of any common length.

    After the end of a path the tokens are -1.  Tuples of n tokens are handed to the verifier of length n
    with the rows up to there.  Without a drafted token the output is drawn from the target's row.

    Args:
        base: the verifier, for the name and the claims.
        of_length: n -> the verifier that is set up for paths of n tokens.
    """

    def __init__(self, base: Verifier, of_length: Callable[[int], Verifier]) -> None:
        self.base, self.of_length = base, of_length
        for name in ("name", "source", "single_path", "exact", "lossless"):
            setattr(self, name, getattr(base, name))
        self._bound: dict[int, Verifier] = {}

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        xp = namespace(paths)
        lengths = (paths >= 0).sum(-1)
        if bool((lengths != lengths[..., :1]).any()):
            raise InvalidInputError(
                f"verifier {self.name!r} was handed paths of different lengths; pad them with a token of "
                "target probability 0 (pairs.drafts.repairs, theory.md Statement 8.13)"
            )
        stop_probs = xp.zeros_like(target_rows[..., 0])
        answers: list[Answer] = []
        for length in sorted({int(number) for number in lengths[..., 0].tolist()}):
            (rows,) = xp.nonzero(lengths[..., 0] == length)
            if length == 0:
                stop_probs[rows, 0, 0] = stop_probs[rows, 0, 0] + 1
                answers.append((rows, None))
                continue
            outcome = self._of(length).outcome(
                paths[rows][..., :length],
                target_rows[rows][..., : length + 1, :],
                draft_rows[rows][..., :length, :],
            )
            stop_probs[rows, :, : length + 1] = outcome.stop_probs
            answers.append((rows, outcome))

        def correction(path_index: Array, length: Array) -> Array:
            found = xp.zeros_like(target_rows[:, 0, 0])
            for rows, outcome in answers:
                if outcome is None:
                    found[rows] = target_rows[rows, 0, 0]
                else:
                    longest = outcome.stop_probs.shape[-1] - 1
                    stops = xp.where(length[rows] > longest, longest, length[rows])
                    found[rows] = outcome.correction(path_index[rows], stops)
            return found

        return Outcome(stop_probs, correction)

    def _of(self, length: int) -> Verifier:
        if length not in self._bound:
            self._bound[length] = self.of_length(length)
        return self._bound[length]


def bound_at_kept_lengths(verifier: Verifier, process: AdaptiveDrafts, pair: ModelPair) -> Verifier:
    """Set a verifier up for drafts that may end early.

    Raises:
        InvalidInputError: the verifier does not take the process of whole paths.
    """
    if verifier.draft_processes is ANY_PROCESS:
        return verifier.bind(process, pair)
    handed = process.drafter(pair, 0)

    def of_length(length: int) -> Verifier:
        base = _truncated(process.base(), length)
        return verifier.bind(base, handed.truncate(length))

    of_length(1)  # refuse the process now, and not at the first tuple
    return AtKeptLengths(verifier, of_length)


def _truncated(process: DraftProcess, length: int) -> DraftProcess:
    if isinstance(process, PerPath):
        return PerPath(tuple(model.truncate(length) for model in process.models))
    return process
