"""Explain a wrong output law: the drafts that contribute most to it, and the verifier's stops on them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.exact_numbers import plain_number
from spectheory.pairs.contexts import Context, context_number
from spectheory.verification.evaluator import Evaluator


@dataclass(frozen=True)
class Stop:
    """A stop of a verifier on given drafts, with the rows at this stop.

    Attributes:
        path: index of the drafted path, from 0.
        length: number of accepted tokens of this path.
        probability: probability of the stop, given the drafts.
        correction, target, draft: [V], the verifier's row of the next token, and the rows of the models after
            the accepted tokens.  ``draft`` is empty if all L tokens are accepted.
    """

    path: int
    length: int
    probability: Any
    correction: tuple[Any, ...]
    target: tuple[Any, ...]
    draft: tuple[Any, ...]


class Cause(NamedTuple):
    """The drafts that contribute most to the wrong probability of a prefix.

    Attributes:
        drafts: K paths.
        given: probability that the completed output starts with the prefix, given these drafts.
        stops: the verifier's stops on these drafts.
    """

    drafts: tuple[Context, ...]
    given: Any
    stops: tuple[Stop, ...]


def starts_with(evaluator: Evaluator, leaves: np.ndarray, prefix: Context) -> np.ndarray:
    """Compute P(the completed output starts with the prefix | drafts) for every tuple of drafts, [N]."""
    tuples = evaluator.tuples(leaves)
    outcome = evaluator.verifier.outcome(*tuples[1:])
    size, length = evaluator.target[0].shape[-1], len(evaluator.target) - 1
    total = np.full(len(leaves), evaluator.zero)
    for stop_length in range(length + 1):
        shared = min(stop_length, len(prefix))
        rest = evaluator.zero + 1
        for depth in range(stop_length + 1, len(prefix)):
            rest = rest * evaluator.target[depth][context_number(prefix[:depth], size), prefix[depth]]
        for path_index in range(leaves.shape[1]):
            on_it = tuples.prefixes[:, path_index, shared] == context_number(prefix[:shared], size)
            stop = np.where(on_it, outcome.stop_probs[:, path_index, stop_length], evaluator.zero)
            made = np.flatnonzero(stop != 0)
            if made.size:  # the row at a stop of probability 0 is arbitrary
                rows = outcome.correction(np.full(len(leaves), path_index), np.full(len(leaves), stop_length))
                is_output = rows[made].sum(axis=-1) != 0  # a stop whose row has no mass gives no output
                drawn = rows[made, prefix[stop_length]] * rest if stop_length < len(prefix) else is_output
                stop[made] = stop[made] * drawn
            total = total + stop
    return total


def stops_given(evaluator: Evaluator, leaves: np.ndarray) -> Iterator[Stop]:
    """Yield the stops of positive probability on the drafts with the K leaf numbers ``leaves``."""
    tuples = evaluator.tuples(leaves[None])
    outcome = evaluator.verifier.outcome(*tuples[1:])
    for path, probs in enumerate(outcome.stop_probs[0]):
        for length, prob in enumerate(probs):
            if prob != 0:
                row = outcome.correction(np.array([path]), np.array([length]))[0]
                drafts = tuples.draft_rows[0, path, length : length + 1]
                yield Stop(
                    path,
                    length,
                    plain_number(prob),
                    tuple(map(plain_number, row)),
                    tuple(map(plain_number, tuples.target_rows[0, path, length])),
                    tuple(map(plain_number, drafts.ravel())),
                )
