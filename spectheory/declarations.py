"""Whether a user's verifier is what it says of itself, on a sample of drafted tuples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from spectheory.contexts import numbered_context
from spectheory.drafts import DraftProcess
from spectheory.errors import InvalidOutcomeError
from spectheory.pair import ModelPair
from spectheory.questions import RowTables
from spectheory.resolve import Resolved

SAMPLED_TUPLES = 512
TupleLaw = dict[tuple[int, int, int], Any]
"""(depth, number of the prefix, correction token) -> probability, given one tuple of drafts."""


def check_declarations(asked: Resolved, tolerance: float, samples: int = SAMPLED_TUPLES) -> None:
    """Refuse a verifier whose ``single_path`` or ``exchangeable`` a sample of tuples contradicts.

    Half of the sampled tuples draw their paths from two leaves, so that paths meet: most wrong
    declarations show where prefixes are shared.

    Args:
        asked: the question, with i.i.d. drafts.
        tolerance: in float64, the difference of two probabilities that still counts as none.
        samples: how many tuples.

    Raises:
        InvalidOutcomeError: the text names the declaration and the drafts that contradict it.
    """
    verifier, pair, process = asked
    rng = np.random.default_rng(0)
    leaves = _sampled_leaves(pair, process.num_drafts, samples, rng)
    whole = _tuple_laws(asked, process, leaves, tolerance)

    def check(declared: str, others: list[TupleLaw], found: Callable[[int], str]) -> None:
        slack = 0 if pair.is_exact else tolerance
        for number, (law, other) in enumerate(zip(whole, others, strict=True)):
            if any(abs(law[key] - other[key]) > slack for key in law.keys() | other.keys()):
                paths = [
                    numbered_context(int(leaf), pair.draft_length, pair.vocab_size) for leaf in leaves[number]
                ]
                raise InvalidOutcomeError(
                    f"verifier {verifier.name!r} declares {declared} = True, but its law for the drafts "
                    f"{paths} {found(number)}; leave the declaration out"
                )

    if verifier.single_path:
        alone = _tuple_laws(asked, process.first_path(), leaves[:, :1], tolerance)
        check("single_path", alone, lambda number: "is not its law for the first of them alone")
    if verifier.exchangeable:
        orders = rng.permuted(np.tile(np.arange(process.num_drafts), (samples, 1)), axis=1)
        permuted = np.take_along_axis(leaves, orders, axis=1)
        laws = _tuple_laws(asked, process, permuted, tolerance)
        check(
            "exchangeable",
            laws,
            lambda number: f"changes when they come in the order {orders[number].tolist()}",
        )


def _sampled_leaves(pair: ModelPair, num_drafts: int, samples: int, rng: np.random.Generator) -> np.ndarray:
    """Leaf numbers of paths that can be drafted, [samples, K]."""
    support = np.flatnonzero(pair.draft_path_probs(pair.draft_length) > 0)
    free = rng.choice(support, (samples - samples // 2, num_drafts))
    handful = rng.choice(support, (samples // 2, 2))
    shared = np.take_along_axis(handful, rng.integers(0, 2, (samples // 2, num_drafts)), axis=1)
    return np.concatenate([free, shared])


def _tuple_laws(
    asked: Resolved, process: DraftProcess, leaves: np.ndarray, tolerance: float
) -> list[TupleLaw]:
    """The law of the output given each tuple of drafts."""
    tables = RowTables.of(asked, process)
    outcome, tuples = tables.ask(leaves, tolerance)
    laws: list[TupleLaw] = [defaultdict(lambda: tables.zero) for _ in leaves]
    for path_index in range(leaves.shape[1]):
        for depth in range(asked.pair.draft_length + 1):
            stop = outcome.stop_probs[:, path_index, depth]
            index = np.full(len(leaves), path_index)
            rows = outcome.correction(index, np.full(len(leaves), depth))
            for number in np.flatnonzero(stop != 0):
                prefix = int(tuples.prefixes[number, path_index, depth])
                for token, prob in enumerate(rows[number]):
                    laws[number][depth, prefix, token] += stop[number] * prob
    return laws
