"""The draft defect: how far the drafts are from the law of the rows that are handed over with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectheory.foundation.documents import decimal_text, number_text
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.foundation.exact_numbers import SUM_TOLERANCE, Number, float_tolerance, plain_number
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS
from spectheory.pairs.contexts import all_contexts, context_node, context_text, count_nodes, split_by_depth
from spectheory.pairs.drafts.iid import Iid, draft_process
from spectheory.pairs.drafts.kept import AdaptiveDrafts, DisclosedDrafts, Paths
from spectheory.pairs.drafts.per_path import PerPath
from spectheory.pairs.drafts.process import DraftProcess
from spectheory.pairs.pair import ModelPair

MAX_TUPLES_OF_NODES = 1_000_000
"""The most K-tuples of nodes of which a completed law is computed: some seconds in rationals."""


@dataclass(frozen=True)
class DraftDefect:
    """The draft defect δ of a process on a pair (theory.md Statement 8.1), without any verifier.

    Attributes:
        total_variation: δ, the total variation between the completed draft and the law of the handed rows.
        path: token names of the smallest counterexample: K prefixes of the completed draft whose probability
            is wrong.  Empty if δ = 0.
        probability: probability that the completed draft starts with ``path``.  It is also the probability
            that the output of token verification does, if the target's rows are those handed over.
        expected: the probability by the handed rows.
        basis: ``"rationals"`` or ``"float64"``.
    """

    total_variation: Number
    path: tuple[tuple[str, ...], ...]
    probability: Number | None
    expected: Number | None
    basis: str

    @property
    def verdict(self) -> str:
        """``"lossless"`` if every coherent verifier is lossless on these drafts for every target."""
        return NOT_LOSSLESS if self.path else LOSSLESS

    def __bool__(self) -> bool:
        return self.verdict == LOSSLESS

    def in_words(self) -> str:
        """Write the result as a sentence."""
        if not self.path:
            return "rows handed over are the law of the drafts"
        assert self.probability is not None
        assert self.expected is not None
        words = " and ".join(f"({' '.join(map(repr, path))})" for path in self.path)
        return (
            "rows handed over are not the law of the drafts "
            f"(δ = {number_text(self.total_variation, decimal=False)}): other targets are lossy; completed "
            f"drafts start with {words} with probability {decimal_text(self.probability)}, the rows give "
            f"{decimal_text(self.expected)}"
        )


def draft_defect(process: int | DraftProcess, pair: ModelPair) -> DraftDefect:
    """Compute how far drafts are from the law of the rows handed over with them (theory.md Statement 8.1).

    The kept tokens are completed to L tokens by the rows.  δ is the total variation to the law of the rows.
    If δ = 0, every coherent verifier is lossless for every target.  Otherwise token and block verification
    are lossy on every pair with a positive target, and their defect is δ if the target equals the rows.

    Args:
        process: ``Shortened``, ``KeptDrafts``, ``DisclosedDrafts`` or another process of independent paths.
        pair: the models.  The target is not read.

    Raises:
        InvalidInputError: one text has two rows, a row that is reached has a sum above 1, or the paths are
            not independent.
        EnumerationTooLargeError: there are too many K-tuples of paths.

    Example:
        >>> from spectheory import ModelPair
        >>> from spectheory.pairs.drafts import Shortened
        >>> pair = ModelPair.context_free_pair(["9/10", "1/10"], ["9/10", "1/10"], 1)
        >>> found = draft_defect(Shortened(1, lambda tokens, rows: int(tokens[0] == 0)), pair)
        >>> print(found.total_variation, found.path, found.probability)
        9/100 (('0',),) 99/100
    """
    drafts = draft_process(process)
    drafts.check(pair)
    basis = "rationals" if pair.is_exact else "float64"
    if isinstance(drafts, DisclosedDrafts):
        drafts = drafts.as_kept(pair)
    if not isinstance(drafts, AdaptiveDrafts):
        if type(drafts) not in (Iid, PerPath):
            raise InvalidInputError(f"draft_defect takes independent paths, not {drafts.name}")
        return DraftDefect(plain_number(pair.numbers.draft[0][0, 0] * 0), (), None, None, basis)
    nodes = count_nodes(pair.vocab_size, pair.draft_length)
    if nodes**drafts.num_drafts > MAX_TUPLES_OF_NODES:
        raise EnumerationTooLargeError(
            f"{nodes}^{drafts.num_drafts} tuples of kept paths exceed {MAX_TUPLES_OF_NODES}; use a shorter "
            "draft length, fewer paths or fewer tokens"
        )
    kept, models = drafts.kept_law(pair), [drafts.drafter(pair, k) for k in range(drafts.num_drafts)]
    slack = float_tolerance(pair, SUM_TOLERANCE)
    completed, handed = completed_laws(kept, models, pair.draft_length)
    delta, *_ = variations(completed - handed)
    if delta <= slack:
        return DraftDefect(delta, (), None, None, basis)
    for depth in range(1, pair.draft_length + 1):
        completed, handed = completed_laws(kept, models, depth)
        excess = completed - handed
        worst = max(np.ndindex(excess.shape), key=lambda at: (abs(excess[at]), completed[at] > 0))
        if abs(excess[worst]) > slack:
            break
    texts = all_contexts(pair.vocab_size, depth)
    named = tuple(
        (*(pair.vocab[token] for token in texts[node]), *"⊥" * (depth - len(texts[node]))) for node in worst
    )
    return DraftDefect(delta, named, plain_number(completed[worst]), plain_number(handed[worst]), basis)


def completed_laws(kept: Mapping[Paths, Any], models: Sequence[ModelPair], depth: int) -> np.ndarray:
    """Compute the joint laws of the first ``depth`` tokens of K drafts: of completed drafts, and of the rows.

    Returns:
        [2, nodes, .., nodes], one axis per path, nodes in the order of ``contexts.all_contexts``.  Where a
        row sums to less than 1, the missing probability stays at the node.
    """
    size, one = models[0].vocab_size, models[0].numbers.draft_path_probs[0][0]
    nodes = count_nodes(size, depth)
    laws = np.full((nodes,) * len(models) + (2,), one - one)
    laws[(0,) * len(models) + (1,)] = one
    for paths, prob in kept.items():
        laws[(*(context_node(path[:depth], size) for path in paths), 0)] += prob
    for model in models:  # complete the path of the first axis, and make it the last
        levels = split_by_depth(laws.reshape(nodes, -1), size, depth)
        steps = zip(levels[:-1], model.numbers.draft, levels[1:], strict=False)
        for length, (here, rows, below) in enumerate(steps):
            missing = 1 - rows.sum(axis=1, keepdims=True)
            if missing.min() < -float_tolerance(model, SUM_TOLERANCE):
                text = context_text(model.context(length, int(missing.argmin())))
                total = 1 - missing.min()
                raise InvalidInputError(f"the row handed over at '{text}' sums to {total}: it is no law")
            below += (rows[:, :, None] * here[:, None]).reshape(below.shape)
            here *= missing
        laws = np.ascontiguousarray(np.moveaxis(laws, 0, -1))
    return laws


def variations(difference: np.ndarray) -> list[Number]:
    """Compute the total variation of two joint laws from their difference, and of the laws on each axis."""
    axes = range(difference.ndim)
    alone = [difference.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes]
    return [plain_number(abs(law).sum() / 2) for law in (difference, *alone)]
