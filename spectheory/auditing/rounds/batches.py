"""Batches of two requests: each must have the law that it has alone, and the two must be independent.

Serving engines verify many requests at once, in one tensor.  A row off by one, a random number shared by all
requests, or a branch taken for the whole batch shows only where the requests differ.  Requests that are taken
for each other show where their tokens, their rows or both are equal.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import torch

from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.auditing.rounds.joint_laws import dependence, marginal, total_variation
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import Request, Row
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import prefix_numbers, rows_along

AnyRequest = TypeVar("AnyRequest", Row, Request)
TOLERANCE = Fraction(1, 10**6)
"""A total variation that rounding can cause: tensors of other shapes are summed in another order."""
EQUAL = "equal lengths"
SHAPES = {"batch": "V = 3, L = 1 to 3", "path_batch": "V = 3, (L, K) = (1, 2), (1, 3) and (2, 2)"}
"""Signature -> the shapes of the requests."""


def _sixteenths(*rows: tuple[int, ...]) -> torch.Tensor:
    return torch.tensor(rows) / 16


FIRST = Row(
    torch.tensor([0, 1]),
    _sixteenths((7, 5, 4), (6, 5, 5), (8, 6, 2)),
    _sixteenths((14, 1, 1), (2, 10, 4)),
)
SECOND = Row(
    torch.tensor([2, 0]),
    _sixteenths((7, 3, 6), (4, 9, 3), (8, 3, 5)),
    _sixteenths((2, 2, 12), (8, 7, 1)),
)
"""Every drafted token is accepted with a probability between 0 and 1, and a rejection leaves two others."""
LONG = Row(
    torch.tensor([1, 1, 2]),
    _sixteenths((4, 10, 2), (3, 9, 4), (8, 6, 2), (4, 11, 1)),
    _sixteenths((6, 8, 2), (5, 8, 3), (4, 4, 8)),
)
BESIDE_LONG = Row(
    torch.tensor([0, 2, 1]),
    _sixteenths((9, 4, 3), (2, 3, 11), (8, 3, 5), (2, 4, 10)),
    _sixteenths((8, 5, 3), (3, 5, 8), (7, 6, 3)),
)
"""Three drafts, of which only the last can be rejected, so that runs are few."""
THREE = Row(
    torch.tensor([2, 0, 1]),
    _sixteenths((7, 6, 3), (4, 7, 5), (7, 4, 5), (3, 9, 4)),
    _sixteenths((3, 2, 11), (9, 4, 3), (3, 10, 3)),
)
BESIDE_THREE = Row(
    torch.tensor([0, 2, 1]),
    _sixteenths((5, 5, 6), (6, 6, 4), (5, 3, 8), (2, 5, 9)),
    _sixteenths((10, 2, 4), (2, 4, 10), (1, 12, 3)),
)
"""Every one of the three drafts can be rejected."""
SMALL = Row(
    torch.tensor([0]),
    torch.tensor([[0.02, 0.04, 0.94], [0.02, 0, 0.98]]),
    torch.tensor([[0.94, 0.02, 0.04]]),
)
BESIDE_SMALL = Row(
    torch.tensor([0]),
    torch.tensor([[1, 0, 2], [0.02, 2.98, 0]]) / 3,
    torch.tensor([[3, 1, 3]]) / 7,
)
"""Small probabilities, zeros, thirds and sevenths, which half precision rounds."""


def _of_paths(seed: int, *paths: tuple[int, ...]) -> Request:
    """Paths of a pair whose rows depend on the context."""
    pair, numbers = random_dyadic(seed, 3, len(paths[0])), np.array(paths)
    prefixes = prefix_numbers(numbers, 3)
    target, draft = (
        torch.from_numpy(rows_along(levels, prefixes).astype(np.float32))
        for levels in (pair.target, pair.draft)
    )
    return Request(torch.from_numpy(numbers), target, draft)


def batches_of(sampler: Shipped) -> list[tuple[str, tuple[Any, Any]]]:
    """The batches that a sampler is asked about, each with its kind; none of other signatures."""
    if sampler.signature_name == "path_batch":
        return list(_path_batches(sampler.mixes))
    return list(_batches(sampler.mixes)) if sampler.signature_name == "batch" else []


def audit_batches(sampler: Shipped, *, stop_at_first: bool = False) -> tuple[str, ...]:
    """Compare the exact laws of requests in batches and alone; findings go to the sampler's journal.

    Behind one outcome of the first batch the same batch is asked again, and must have the same law.  A
    greedy request must get the likeliest tokens, unless the sampler states another law.

    Args:
        sampler: of a signature that has batches.
        stop_at_first: whether to stop at the first batch that shows a defect.

    Returns:
        The kinds of batches.

    Raises:
        NotEnumerableError: no difference is found, and none could be, because random numbers are combined.
    """
    seen: dict[str, None] = {}
    findings, laws = sampler.journal.findings, dict[int, Any]()
    unknown = Fraction(0)

    def judge(distance: Fraction, undecided: Fraction, text: str) -> None:
        nonlocal unknown
        if distance - undecided > TOLERANCE:
            findings.add(("batch", f"{text}, total variation {float(distance):.3g}"))
        elif distance + undecided > TOLERANCE:
            unknown = max(unknown, undecided)

    for number, (words, rows) in enumerate(batches_of(sampler)):
        if findings and stop_at_first:
            break
        seen[words] = None
        together, undecided = sampler.batch_law(rows)
        for place, row in enumerate(rows):
            alone: Any = row._replace(padding=0) if isinstance(row, Row) else row
            if id(row) not in laws:
                laws[id(row)] = row, sampler.batch_law([alone])  # the row, so that its number stays its own
            law, undecided_alone = laws[id(row)][1]
            distance = total_variation(marginal(together, place), marginal(law, 0))
            text = f"beside another request ({words}) the tokens of a request have another law than alone"
            judge(distance, undecided + undecided_alone, text)
            if isinstance(row, Row) and row.is_greedy and sampler.relaxation is None:
                distance = total_variation(marginal(law, 0), {_likeliest_tokens(row): Fraction(1)})
                judge(distance, undecided_alone, "a greedy request does not get the likeliest tokens")
        text = f"the tokens of two requests ({words}) are not independent"
        judge(dependence(together), 3 * undecided, text)  # of the law and of both its marginals
        if not number and together.keys() - {((), ())}:
            later, undecided_later = sampler.batch_law(rows, behind=sampler.first_decisions(rows))
            text = "behind a batch the tokens of the next one have another law than in a first one"
            judge(total_variation(later, together), undecided + undecided_later, text)
    if unknown:
        raise NotEnumerableError(
            "random numbers are combined, and the laws of requests in batches are known to "
            f"{float(unknown):.3g} only"
        )
    return tuple(seen)


def _likeliest_tokens(row: Row) -> tuple[int, ...]:
    """What greedy decoding gives: drafted tokens as long as they are the likeliest, and one more."""
    likeliest = row.target_probs.argmax(-1).tolist()
    wrong = [place for place, token in enumerate(row.draft_tokens.tolist()) if token != likeliest[place]]
    return tuple(likeliest[: min(wrong, default=len(likeliest) - 1) + 1])


def _cut(row: Row, length: int) -> Row:
    return row._replace(
        draft_tokens=row.draft_tokens[:length],
        target_probs=row.target_probs[: length + 1],
        draft_probs=row.draft_probs[:length],
    )


def _batches(mixes: Sequence[str]) -> Iterator[tuple[str, tuple[Row, Row]]]:
    short, beside = _cut(FIRST, 1), _cut(SECOND, 1)
    two, other_two = _behind_the_first(BESIDE_LONG), _behind_the_first(LONG)
    other_two = other_two._replace(draft_probs=two.draft_probs)
    kinds = {
        "ragged": [
            (short, SECOND),
            (two, short),
            (THREE, SECOND),
            (two, THREE),
            (short, LONG),
            (LONG, short),
        ],
        "greedy": _greedy_batches(mixes),
        "padded": [(short._replace(padding=1), SECOND), (LONG, short._replace(padding=2))],
    }
    for batch in ((short, beside), (SECOND, FIRST), (THREE, BESIDE_THREE)):
        yield EQUAL, batch
    yield EQUAL, (SMALL, BESIDE_SMALL)
    for one, other in ((short, beside), (FIRST, SECOND)):
        yield EQUAL, (one, one._replace(draft_probs=other.draft_probs))
    yield from _of_kinds(kinds, mixes)
    for one, other in ((short, beside), (two, other_two), (BESIDE_LONG, LONG)):
        for batch in _alike(one, other):
            yield EQUAL, batch


def _behind_the_first(row: Row) -> Row:
    return Row(row.draft_tokens[1:], row.target_probs[1:], row.draft_probs[1:])


def _alike(one: Row, other: Row) -> Iterator[tuple[Row, Row]]:
    """Two requests with equal drafted tokens, with equal rows, and with both."""
    yield one, other._replace(draft_tokens=one.draft_tokens)
    yield one, one._replace(draft_tokens=other.draft_tokens)
    yield one, one


def _greedy_batches(mixes: Sequence[str]) -> list[tuple[Row, Row]]:
    """A greedy request beside a sampled one, and two greedy ones; in the other kinds of batches too."""
    rejected, accepted = FIRST._replace(is_greedy=True), _accepted_greedily(FIRST)
    at_once = SECOND._replace(is_greedy=True)  # its first draft is not the likeliest token
    pairs = [(rejected, SECOND), (accepted, SECOND), (rejected, accepted), (at_once, FIRST)]
    pairs += [(_cut(at_once, 1), _cut(FIRST, 1)), (_accepted_greedily(THREE), BESIDE_THREE)]
    if "ragged" in mixes:
        two, long = _behind_the_first(BESIDE_LONG), LONG._replace(is_greedy=True)
        pairs += [(long, two), (_cut(accepted, 1), LONG), (long, rejected)]
    if "padded" in mixes:
        one, filled = _cut(FIRST, 1)._replace(padding=1), _cut(accepted, 1)._replace(padding=1)
        pairs += [(filled._replace(padding=2), LONG), (rejected, one), (rejected, filled)]
    return [batch for one, other in pairs for batch in ((one, other), (other, one))]


def _accepted_greedily(row: Row) -> Row:
    """A greedy request whose drafts are the likeliest tokens."""
    return row._replace(draft_tokens=row.target_probs[:-1].argmax(-1), is_greedy=True)


def _twice(row: Row) -> Request:
    """Two paths, which coincide."""
    return Request(*(tensor[None].expand(2, *tensor.shape).contiguous() for tensor in row[:3]))


def _one_token(request: Request) -> Request:
    return Request(request.paths[:, :1], request.target_rows[:, :2], request.draft_rows[:, :1])


def _path_batches(mixes: Sequence[str]) -> Iterator[tuple[str, tuple[Request, Request]]]:
    """As ``_batches``, of requests with several paths; they mix lengths and numbers of paths."""
    long, beside_long = _of_paths(18, (0, 1), (2, 0)), _of_paths(204, (1, 0), (1, 2))
    short, beside = _one_token(long), _one_token(beside_long)
    three, equal = (_one_token(_of_paths(18, (0, 1), (0, 2), last)) for last in ((2, 0), (0, 0)))
    one = Request(*(tensor[:1] for tensor in short))
    # Of both requests the last draft, the second or the third, is accepted with a probability inside (0, 1).
    second_coins = (_of_paths(2, (2, 0), (0, 0)), _of_paths(18, (0, 1), (1, 1)))
    third_coins = (_of_paths(33, (2, 0), (2, 0), (1, 0)), _of_paths(40, (1, 0), (1, 0), (2, 0)))
    is_mixed = "ragged" in mixes
    kinds = {
        "ragged": [(long, beside), (beside, long)],
        "num_drafts": [(one, beside), (beside, one), *([(one, long), (long, one)] if is_mixed else [])],
    }
    for batch in ((short, beside), (beside, short), (three, equal), (long, beside_long)):
        yield EQUAL, batch
    yield EQUAL, second_coins
    yield EQUAL, (_twice(SMALL), _twice(BESIDE_SMALL))
    for batch in (second_coins, third_coins):
        yield EQUAL, (_one_token(batch[0]), _one_token(batch[1]))
    yield from _of_kinds(kinds, mixes)
    yield EQUAL, (short, short._replace(target_rows=short.target_rows.flip(-1)))
    for request in (short, equal, beside_long):
        yield EQUAL, (request, request)


def _of_kinds(
    kinds: Mapping[str, Sequence[tuple[AnyRequest, AnyRequest]]], mixes: Sequence[str]
) -> Iterator[tuple[str, tuple[AnyRequest, AnyRequest]]]:
    unknown = [name for name in mixes if name not in kinds]
    if unknown:
        raise InvalidInputError(f"batches can mix {', '.join(kinds)}, got {unknown[0]!r}")
    for words in mixes:
        for batch in kinds[words]:
            yield words, batch
