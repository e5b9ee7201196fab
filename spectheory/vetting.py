"""Vetting a user's verifier: is its law a function of its inputs, and is it what it says of itself.

Nothing else is asked of a verifier than conditional laws, and nothing is deduced from them unless the same
question always gets the same answer.  Each check asks about a sample of drafted tuples, and names the
fault in one line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spectheory.contexts import numbered_context
from spectheory.drafts import DraftProcess
from spectheory.errors import InvalidOutcomeError
from spectheory.pair import ModelPair
from spectheory.questions import RowTables, Tuples, check_correction_rows, check_stop_probs
from spectheory.resolve import Resolved

SAMPLED_TUPLES = 512
TupleLaw = dict[tuple[int, int, int], Any]
"""(depth, number of the prefix, correction token) -> probability, given one tuple of drafts."""


def check_function_of_inputs(asked: Resolved, leaves: np.ndarray, tolerance: float) -> None:
    """Refuse a verifier whose answer depends on anything but the drafted paths and the rows on them.

    The same tuples are asked about four times, in this order:

    1. as they are: the arrays must be left as they were given;
    2. as they are, once more: state and random numbers of the verifier's own show;
    3. in another order, in fresh arrays and in two batches: a look at other tuples of the batch shows;
    4. in that order, written into the arrays of the first time: answers remembered by object show.

    Args:
        asked: the question.
        leaves: [N, K], leaf numbers of tuples that can be drafted.
        tolerance: in float64, the difference of two probabilities that still counts as none.

    Raises:
        InvalidOutcomeError: the text names the fault and the drafts on which it shows.
    """
    tables = RowTables.of(asked, asked.process)
    tuples = tables.tuples(leaves)
    given = [array.copy() for array in tuples[1:]]
    first = _ask(tables, tuples, tolerance)
    for name, array, before in zip(Tuples._fields[1:], tuples[1:], given, strict=True):
        if (array != before).any():
            raise InvalidOutcomeError(
                f"verifier {asked.verifier.name!r} writes into its input {name}; let it work on a copy"
            )
    order = np.random.default_rng(1).permutation(len(leaves))

    def check(answers: list[TupleLaw], fault: str) -> None:
        number = _first_difference(asked, first, answers, tolerance)
        if number is not None:
            raise InvalidOutcomeError(
                f"verifier {asked.verifier.name!r} is no function of its inputs: {fault} (drafts "
                f"{_paths(asked.pair, leaves[number])}); compute the law from the arrays of the call alone"
            )

    again = _ask(tables, tuples, tolerance)
    check(again, "asked twice it answers differently, from state or random numbers of its own")
    answers: list[TupleLaw] = [{} for _ in leaves]
    for batch in np.array_split(order, min(2, len(order))):
        part = tables.tuples(leaves[batch])
        for number, law in zip(batch, _ask(tables, part, tolerance), strict=True):
            answers[number] = law
    check(answers, "its answer for one tuple of drafts depends on the other tuples of the batch")
    for array in tuples:
        array[...] = array[order]
    by_object = _ask(tables, tuples, tolerance)
    for place, number in enumerate(order):
        answers[number] = by_object[place]
    check(answers, "given other contents in the same array objects it repeats an old answer")


def check_same_law(
    asked: Resolved, masses: Sequence[np.ndarray], again: Sequence[np.ndarray], tolerance: float
) -> None:
    """Refuse a verifier whose output law R is another when all tuples are asked about once more.

    Args:
        asked: the question.
        masses, again: R by depth, from two enumerations in different orders, batches and arrays.
        tolerance: in float64, the difference of two probabilities that still counts as none.

    Raises:
        InvalidOutcomeError: they differ.
    """
    slack = 0 if asked.pair.is_exact else tolerance
    if not all((abs(one - other) <= slack).all() for one, other in zip(masses, again, strict=True)):
        raise InvalidOutcomeError(
            f"verifier {asked.verifier.name!r} is no function of its inputs: its law is another when the "
            "same drafts are asked about in another order and in other batches; compute it from the arrays "
            "of the call alone"
        )


def check_declarations(asked: Resolved, leaves: np.ndarray, tolerance: float) -> None:
    """Refuse a verifier whose ``single_path`` or ``exchangeable`` a sample of tuples contradicts.

    Args:
        asked: the question, with i.i.d. drafts.
        leaves: [N, K], leaf numbers of tuples that can be drafted.
        tolerance: in float64, the difference of two probabilities that still counts as none.

    Raises:
        InvalidOutcomeError: the text names the declaration and the drafts that contradict it.
    """
    verifier, pair, process = asked

    def ask(process: DraftProcess, leaves: np.ndarray) -> list[TupleLaw]:
        tables = RowTables.of(asked, process)
        return _ask(tables, tables.tuples(leaves), tolerance)

    whole = ask(process, leaves)

    def check(declared: str, others: list[TupleLaw], found: Callable[[int], str]) -> None:
        number = _first_difference(asked, whole, others, tolerance)
        if number is not None:
            raise InvalidOutcomeError(
                f"verifier {verifier.name!r} declares {declared} = True, but its law for the drafts "
                f"{_paths(pair, leaves[number])} {found(number)}; leave the declaration out"
            )

    if verifier.single_path:
        alone = ask(process.first_path(), leaves[:, :1])
        check("single_path", alone, lambda number: "is not its law for the first of them alone")
    if verifier.exchangeable:
        rng = np.random.default_rng(2)
        orders = rng.permuted(np.tile(np.arange(process.num_drafts), (len(leaves), 1)), axis=1)
        permuted = ask(process, np.take_along_axis(leaves, orders, axis=1))
        check(
            "exchangeable",
            permuted,
            lambda number: f"changes when they come in the order {orders[number].tolist()}",
        )


def sampled_leaves(asked: Resolved, samples: int = SAMPLED_TUPLES) -> np.ndarray:
    """Leaf numbers of tuples that can be drafted, [N, K]: all of them, if they are not more than ``samples``.

    Of more i.i.d. drafts half of the tuples draw their paths from two leaves, so that paths meet: most faults
    show where prefixes are shared.  Of other processes they are the first of its list.
    """
    _, pair, process = asked
    if process.name != "iid" or process.count_tuples(pair) <= samples:
        return next(process.tuples(pair, samples)).leaves
    rng = np.random.default_rng(0)
    support = np.flatnonzero(pair.draft_path_probs(pair.draft_length) > 0)
    free = rng.choice(support, (samples - samples // 2, process.num_drafts))
    handful = rng.choice(support, (samples // 2, 2))
    picked = rng.integers(0, 2, (samples // 2, process.num_drafts))
    return np.concatenate([free, np.take_along_axis(handful, picked, axis=1)])


def _ask(tables: RowTables, tuples: Tuples, tolerance: float) -> list[TupleLaw]:
    """The law of the output given each tuple of drafts."""
    verifier, (count, num_drafts, depths) = tables.verifier, tuples.prefixes.shape
    outcome = verifier.outcome(*tuples[1:])
    check_stop_probs(verifier, outcome, tuples.tokens, tolerance)
    laws: list[TupleLaw] = [defaultdict(lambda: tables.zero) for _ in range(count)]
    for path_index in range(num_drafts):
        for depth in range(depths):
            stop = outcome.stop_probs[:, path_index, depth]
            made = np.flatnonzero(stop != 0)
            if not made.size:
                continue
            rows = outcome.correction(np.full(count, path_index), np.full(count, depth))[made]
            check_correction_rows(verifier, rows, stop[made], rows.shape[-1], tolerance)
            for number, row in zip(made, rows, strict=True):
                prefix = int(tuples.prefixes[number, path_index, depth])
                for token, prob in enumerate(row):
                    laws[number][depth, prefix, token] += stop[number] * prob
    return laws


def _first_difference(
    asked: Resolved, laws: list[TupleLaw], others: list[TupleLaw], tolerance: float
) -> int | None:
    slack = 0 if asked.pair.is_exact else tolerance
    for number, (law, other) in enumerate(zip(laws, others, strict=True)):
        # Written so that NaN, which fails every comparison, counts as a difference.
        if not all(abs(law[key] - other[key]) <= slack for key in (*law, *other)):
            return number
    return None


def _paths(pair: ModelPair, leaves: np.ndarray) -> list[tuple[int, ...]]:
    return [numbered_context(int(leaf), pair.draft_length, pair.vocab_size) for leaf in leaves]
