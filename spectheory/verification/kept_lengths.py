"""Call a verifier of whole paths on drafts that end early: with paths of n tokens, as if L were n."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar, Self

from spectheory.foundation.arrays import Array, namespace
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import DraftProcess, PerPath
from spectheory.pairs.pair import ModelPair
from spectheory.verification.outcome import Outcome
from spectheory.verification.verifier import Verifier


class AtKeptLengths(Verifier):
    """A verifier on drafts of any common length.

    After the end of a path the tokens are -1.  Tuples of n tokens are handed to the verifier of length n
    with the rows up to there.  Without a drafted token the output is drawn from the target's row.

    Args:
        base: the verifier, for the name and the claims.
        of_length: n -> the verifier of paths of n tokens; by default ``base``.
        words: what is added to the name.

    Attributes:
        rows: total number of verified tokens of one path in all calls so far.
        calls: number of calls so far, one per text.
    """

    draft_processes: ClassVar[Any] = frozenset({"iid", "per_path"})

    def __init__(
        self, base: Verifier, of_length: Callable[[int], Verifier] | None = None, words: str = ""
    ) -> None:
        self.base, self.of_length = base, of_length or (lambda length: base)
        for name in ("name", "source", "single_path", "exact", "lossless"):
            setattr(self, name, getattr(base, name))
        self.name += words  # type: ignore[misc]
        self._setup: tuple[DraftProcess, ModelPair | None] | None = None
        self._bound: dict[int, Verifier] = {}
        self._counted = [0, 0]  # the copies that ``bind`` returns count together

    @property
    def rows(self) -> int:
        return self._counted[0]

    @property
    def calls(self) -> int:
        return self._counted[1]

    def _count(self, rows: Any, calls: int) -> None:
        self._counted[:] = self.rows + int(rows), self.calls + calls

    def bind(self, process: DraftProcess, pair: ModelPair | None = None) -> Self:
        """Set the verifier of every length up for whole paths of this length, and that of 1 now."""
        super().bind(process, pair)
        configured = copy(self)
        configured._setup, configured._bound = (process, pair), {}
        configured._of(1)  # refuse the process now, and not at the first tuple
        return configured

    def _of(self, length: int) -> Verifier:
        if length not in self._bound:
            process, pair = self._setup or (None, None)
            if pair is not None:
                pair = pair.truncate(length)
                if isinstance(process, PerPath):
                    process = PerPath(tuple(model.truncate(length) for model in process.models))
            verifier = self.of_length(length)
            self._bound[length] = verifier if process is None else verifier.bind(process, pair)
        return self._bound[length]

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        xp = namespace(paths)
        lengths = (paths >= 0).sum(-1)
        if bool((lengths != lengths[..., :1]).any()):
            raise InvalidInputError(
                f"verifier {self.name!r} was handed paths of different lengths; pad them with a token of "
                "target probability 0 (pairs.drafts.repairs, theory.md Statement 8.13)"
            )
        self._count(lengths[:, 0].sum(), len(paths))
        stop_probs = xp.zeros_like(target_rows[..., 0])
        answers = []
        for length in sorted({int(number) for number in lengths[..., 0].tolist()}):
            (rows,) = xp.nonzero(lengths[..., 0] == length)
            targets, drafts = target_rows[rows][..., : length + 1, :], draft_rows[rows][..., :length, :]
            given = paths[rows][..., :length], targets, drafts
            outcome = self._of(length).outcome(*given) if length else _of_the_target(targets)
            stop_probs[rows, :, : length + 1] = outcome.stop_probs
            answers.append((rows, length, outcome))

        def correction(path_index: Array, length: Array) -> Array:
            found = xp.zeros_like(target_rows[:, 0, 0])
            for rows, longest, outcome in answers:
                stops = xp.where(length[rows] > longest, longest, length[rows])
                found[rows] = outcome.correction(path_index[rows], stops)
            return found

        return Outcome(stop_probs, correction)


def _of_the_target(target_rows: Array) -> Outcome:
    """Draw the token after the text from the target's row, [N, K, 1, V]."""
    stop_probs = target_rows[..., 0] * 0
    stop_probs[:, 0] = stop_probs[:, 0] + 1
    return Outcome(stop_probs, lambda path_index, length: target_rows[:, 0, 0])
