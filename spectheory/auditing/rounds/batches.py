"""Batches of two requests: each must have the law that it has alone, and the two must be independent.

Serving engines verify many requests at once, in one tensor.  A row off by one, a random number shared by all
requests, or a branch taken for the whole batch shows only where the requests differ.  Requests that are taken
for each other show where their tokens, their rows or both are equal.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import torch

from spectheory.auditing.rounds.joint_laws import dependence, marginal, total_variation
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import Request, Row
from spectheory.foundation.errors import InvalidInputError

AnyRequest = TypeVar("AnyRequest", Row, Request)
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
TWO_PATHS = Request(
    torch.tensor([[0, 1], [2, 0]]),
    torch.tensor([[[1 / 4, 1 / 2, 1 / 4], [3 / 8, 3 / 8, 1 / 4], [1 / 4, 1 / 2, 1 / 4]]] * 2),
    torch.tensor([[[3 / 4, 1 / 8, 1 / 8], [1 / 4, 1 / 2, 1 / 4]]] * 2),
)
BESIDE_TWO_PATHS = Request(
    torch.tensor([[2], [2]]),
    torch.tensor([[[1 / 2, 1 / 4, 1 / 4], [1 / 8, 1 / 4, 5 / 8]]] * 2),
    torch.tensor([[[1 / 8, 1 / 8, 3 / 4]]] * 2),
)
"""Two paths each, of two tokens and of one, with three tokens, so that every rejection leaves another row."""


def batches_of(sampler: Shipped) -> list[tuple[str, tuple[Any, Any]]]:
    """The batches that a sampler is asked about, each with its kind; none of other signatures."""
    if sampler.signature_name == "path_batch":
        return list(_path_batches(sampler.mixes))
    return list(_batches(sampler.mixes)) if sampler.signature_name == "batch" else []


def audit_batches(sampler: Shipped) -> tuple[str, ...]:
    """Compare the exact laws of requests in batches and alone; findings go to the sampler's journal.

    Returns:
        The kinds of batches.
    """
    seen: dict[str, None] = {}
    findings, laws = sampler.journal.findings, dict[int, Any]()
    for words, rows in batches_of(sampler):
        seen[words] = None
        together, undecided = sampler.batch_law(rows)
        for place, row in enumerate(rows):
            alone: Any = row._replace(padding=0) if isinstance(row, Row) else row
            if id(row) not in laws:
                laws[id(row)] = sampler.batch_law([alone])
            law, undecided_alone = laws[id(row)]
            undecided += undecided_alone
            distance = total_variation(marginal(together, place), marginal(law, 0))
            if distance - undecided > TOLERANCE:
                text = f"beside another request ({words}) the tokens of a request have another law than alone"
                findings.add(("batch", f"{text}, total variation {float(distance):.3g}"))
        distance = dependence(together)
        if distance - undecided > TOLERANCE:
            text = f"the tokens of two requests ({words}) are not independent"
            findings.add(("batch", f"{text}, total variation {float(distance):.3g}"))
    return tuple(seen)


def _batches(mixes: Sequence[str]) -> Iterator[tuple[str, tuple[Row, Row]]]:
    short = Row(FIRST.draft_tokens[:1], FIRST.target_probs[:2], FIRST.draft_probs[:1])
    other = {
        "ragged": short,
        "greedy": FIRST._replace(is_greedy=True),
        "padded": short._replace(padding=1),
    }
    yield from _in_both_orders({EQUAL: FIRST, **other}, mixes, SECOND)
    yield EQUAL, (FIRST, SECOND._replace(draft_tokens=FIRST.draft_tokens))
    yield EQUAL, (FIRST, FIRST._replace(draft_tokens=SECOND.draft_tokens))
    yield EQUAL, (FIRST, FIRST)


def _path_batches(mixes: Sequence[str]) -> Iterator[tuple[str, tuple[Request, Request]]]:
    """As ``_batches``, of requests with several paths; they mix lengths and numbers of paths."""
    long = TWO_PATHS
    short = Request(long.paths[:, :1], long.target_rows[:, :2], long.draft_rows[:, :1])
    one = Request(*(tensor[:1] for tensor in short))
    kinds = {EQUAL: short, "ragged": long, "num_drafts": one}
    yield from _in_both_orders(kinds, mixes, BESIDE_TWO_PATHS)
    yield EQUAL, (short, short._replace(target_rows=short.target_rows.flip(-1)))
    yield EQUAL, (short, short)


def _in_both_orders(
    kinds: Mapping[str, AnyRequest], mixes: Sequence[str], beside: AnyRequest
) -> Iterator[tuple[str, tuple[AnyRequest, AnyRequest]]]:
    unknown = [name for name in mixes if name not in kinds or name == EQUAL]
    if unknown:
        known = ", ".join(name for name in kinds if name != EQUAL)
        raise InvalidInputError(f"batches can mix {known}, got {unknown[0]!r}")
    for words in (EQUAL, *mixes):
        yield words, (kinds[words], beside)
        yield words, (beside, kinds[words])
