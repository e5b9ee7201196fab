"""Batches of two requests: each must have the law that it has alone, and the two must be independent.

Serving engines verify many requests at once, in one tensor.  A row off by one, a random number shared by all
requests, or a branch taken for the whole batch shows only where the requests differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import torch

from spectheory.auditing.rounds.joint_laws import marginal, total_variation
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import Row
from spectheory.errors import InvalidInputError

TOLERANCE = Fraction(1, 10**6)
"""A total variation that rounding can cause: tensors of other shapes are summed in another order."""
EQUAL = "equal lengths"
FIRST = Row(
    torch.tensor([0, 1]),
    torch.tensor([[9 / 16, 7 / 16], [5 / 8, 3 / 8], [1 / 4, 3 / 4]]),
    torch.tensor([[3 / 4, 1 / 4], [1 / 8, 7 / 8]]),
)
SECOND = Row(
    torch.tensor([1, 0]),
    torch.tensor([[5 / 8, 3 / 8], [1 / 4, 3 / 4], [7 / 8, 1 / 8]]),
    torch.tensor([[1 / 4, 3 / 4], [5 / 8, 3 / 8]]),
)
"""Every drafted token is accepted with a probability between 0 and 1, and no two rows are equal."""


def audit_batches(sampler: Shipped) -> tuple[str, ...]:
    """Compare the exact laws of requests in batches and alone; findings go to the sampler's journal.

    Args:
        sampler: of the signature "batch".

    Returns:
        The kinds of batches.

    Raises:
        NotEnumerableError: the sampler cannot be followed.
        InvalidInputError: the sampler names an unknown kind of batch.
    """
    seen: dict[str, None] = {}
    findings = sampler.journal.findings
    for words, rows in _batches(sampler.mixes):
        seen[words] = None
        together, undecided = sampler.batch_law(rows)
        for place, row in enumerate(rows):
            law, undecided_alone = sampler.batch_law([row._replace(padding=0)])
            undecided += undecided_alone
            distance = total_variation(marginal(together, place), marginal(law, 0))
            if distance - undecided > TOLERANCE:
                text = f"beside another request ({words}) the tokens of a request have another law than alone"
                findings.add(("batch", f"{text}, total variation {float(distance):.3g}"))
        product = {
            (first, second): mass * other
            for first, mass in marginal(together, 0).items()
            for second, other in marginal(together, 1).items()
        }
        distance = total_variation(together, product)
        if distance - undecided > TOLERANCE:
            text = f"the tokens of two requests ({words}) are not independent"
            findings.add(("batch", f"{text}, total variation {float(distance):.3g}"))
    return tuple(seen)


def _batches(mixes: Sequence[str]) -> Iterator[tuple[str, tuple[Row, Row]]]:
    """The kind of a batch, and its rows, in both orders."""
    short = Row(FIRST.draft_tokens[:1], FIRST.target_probs[:2], FIRST.draft_probs[:1])
    other = {
        "ragged": short,
        "greedy": FIRST._replace(is_greedy=True),
        "padded": short._replace(padding=1),
    }
    unknown = [name for name in mixes if name not in other]
    if unknown:
        raise InvalidInputError(f"batches can mix {', '.join(other)}, got {unknown[0]!r}")
    for words, row in {EQUAL: FIRST, **{name: other[name] for name in mixes}}.items():
        yield words, (row, SECOND)
        yield words, (SECOND, row)
