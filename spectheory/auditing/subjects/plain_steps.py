"""The plain step of an engine as a processor: its law on a raw row is the row that a sampler must have.

So sampling parameters need no model of ours.  A speculative step and a plain step of one engine get the same
raw rows, and must have the same law.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from spectheory.auditing.handing.handing import handing
from spectheory.auditing.probing.claim import probe
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import Context
from spectheory.pairs.processors import Processor

WITHIN, RISK, CALLS = 5e-3, 1e-9, 20_000
"""The error of a learned law of a step, the probability that it is larger, and the most calls to learn it.

There are tens of rows, so their risks sum to less than the risk of an audit.  A learned law is right up to
rounding unless a region of the numbers of this size was missed.
"""
PARTS = 1 << 40
"""Learned probabilities are rounded to so many parts, the accuracy of their cuts."""


def plain_step(function: Callable[..., Any]) -> Processor:
    """Build a processor from a plain step.

    Args:
        function: (row, text, generator) -> a token.  The row [V] is raw, in float32; the text is a list.

    Example:
        >>> import torch
        >>> def squared(row, text, generator):
        ...     return torch.multinomial(row**2, 1, generator=generator)
        >>> print(plain_step(squared)((), np.array([Fraction(1, 4), Fraction(3, 4)])))
        [Fraction(1, 10) Fraction(9, 10)]
    """
    texts: list[Context] = [()]
    known: dict[tuple[Context, tuple[Any, ...]], np.ndarray] = {}

    def one(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
        return [int(function(target_rows[0, 0], list(texts[0]), generator))]

    name = str(getattr(function, "__name__", "plain step"))
    step = Shipped(one, "sampler", name, num_drafts=[1])
    nothing = np.empty((1, 0), dtype=np.int64)
    no_token: Context = ()

    def weights(text: Context, row: np.ndarray) -> np.ndarray:
        if (text, tuple(row)) not in known:
            texts[0] = text
            call = step.on_drafts(nothing, row[None, None], np.empty((1, 0, len(row))))
            try:
                law, _ = step.follow(call, no_token)
            except NotEnumerableError:
                law = _learned(step.by_seed(call, no_token))
            if law.get((), 0):
                raise InvalidInputError(f"the plain step {name!r} makes no token: {min(step.reasons)}")
            known[text, tuple(row)] = np.array(
                [law.get((token,), Fraction(0)) for token in range(len(row))], dtype=object
            )
        return known[text, tuple(row)]

    return Processor(f"the plain step {name!r}", weights)


def _learned(answers: Callable[[int], Any]) -> dict[Any, Any]:
    with handing():
        law = probe([(1.0, answers)], WITHIN, RISK, CALLS).laws[0]
    return {answer: Fraction(mass).limit_denominator(PARTS) for answer, mass in law.items()}
