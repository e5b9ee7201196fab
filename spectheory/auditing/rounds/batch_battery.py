"""The batches of one to four requests on which we judge a sampler.

Some batches test with several random requests whether requests are independent.  All others are *companies*,
which mix requests of several kinds.  If we learn laws from calls, all requests of a company are random.  If
we follow, one request is random, and its neighbours are *quiet*: their target allows only one text, so they
certainly accept all drafts, or certainly reject the first.  So a batch has as many runs as one request.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import Request, Row
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import prefix_numbers, rows_along

EQUAL, RAGGED, GREEDY, SEEDED = "equal lengths", "ragged", "greedy", "seeds"
KINDS: Mapping[str, tuple[str, ...]] = {
    "batch": ("no drafts", RAGGED, "padded", GREEDY, SEEDED),
    "path_batch": (RAGGED, "num_drafts"),
}
"""Signature -> the kinds of batches, beside those of equal lengths."""
JOINT_LAWS = "joint laws of some batches of two requests, and of a few of three or four"


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
TIED = Row(
    torch.tensor([2, 2]),
    _sixteenths((2, 7, 7), (6, 4, 6), (6, 6, 4)),
    _sixteenths((4, 4, 8), (4, 4, 8)),
    is_greedy=True,
)
"""A greedy request whose drafts are among equally likely tokens, but not the first of them."""
NOTHING = Row(torch.empty(0, dtype=torch.long), _sixteenths((5, 2, 9)), torch.empty(0, 3))
OTHER_NOTHING = Row(torch.empty(0, dtype=torch.long), _sixteenths((2, 10, 4)), torch.empty(0, 3))
"""Requests without drafts, as engines batch them after a prefill or when the drafter proposes nothing."""


def _of_paths(seed: int, *paths: tuple[int, ...]) -> Request:
    """Build a request from drafted paths and a random pair whose rows depend on the context."""
    pair, numbers = random_dyadic(seed, 3, len(paths[0])), np.array(paths)
    prefixes = prefix_numbers(numbers, 3)
    target, draft = (
        torch.from_numpy(rows_along(levels, prefixes).astype(np.float32))
        for levels in (pair.target, pair.draft)
    )
    return Request(torch.from_numpy(numbers), target, draft)


def batches_of(sampler: Shipped) -> list[tuple[str, tuple[Any, ...]]]:
    """The batches on which we judge a sampler, each with its kind.  Signatures without batches have none."""
    known = KINDS.get(sampler.signature_name)
    if known is None:
        return []
    kinds = known if sampler.mixes is None else sampler.mixes
    unknown = [name for name in kinds if name not in known]
    if unknown:
        raise InvalidInputError(f"batches can mix {', '.join(known)}, got {unknown[0]!r}")
    batches = _of_kinds(sampler.signature_name, kinds, are_quiet=sampler.learns is None)
    return _first_of_each(batches) if sampler.quick else batches


def _first_of_each(batches: Sequence[tuple[str, tuple[Any, ...]]]) -> list[tuple[str, tuple[Any, ...]]]:
    """The first batch of every kind, with at most two requests if there is such a batch."""
    found: dict[str, tuple[Any, ...]] = {}
    for kind, rows in sorted(batches, key=lambda batch: len(batch[1]) > 2):
        found.setdefault(kind, rows)
    return list(found.items())


def _of_kinds(
    signature: str, kinds: Sequence[str], are_quiet: bool = True
) -> list[tuple[str, tuple[Any, ...]]]:
    """The batches of some kinds.  If ``are_quiet``, the neighbours of a random request in a company are."""
    together, companies = (
        (_paths_together(), _companies_of_paths())
        if signature == "path_batch"
        else (_rows_together(kinds), _companies())
    )
    batches = [
        *together,
        *(batch for rows in companies for batch in (_each_random(rows) if are_quiet else [rows])),
    ]
    order = (EQUAL, *KINDS[signature])
    asked = [(_kinds_of(rows), rows) for rows in batches]
    named = [(max(found, key=order.index), rows) for found, rows in asked if found <= {EQUAL, *kinds}]
    return sorted(named, key=lambda batch: order.index(batch[0]))


def _kinds_of(rows: Sequence[Any]) -> set[str]:
    """The kinds of a batch.  The last one in the order of ``KINDS`` names it."""
    if isinstance(rows[0], Request):
        lengths = {request.paths.shape[1] for request in rows}
        paths = {len(request.paths) for request in rows if request.paths.shape[1]}
        found = {RAGGED: len(lengths) > 1, "num_drafts": len(paths) > 1}
    else:
        lengths = {len(row.draft_tokens) + row.padding for row in rows}
        found = {
            "no drafts": lengths == {0},
            RAGGED: len(lengths) > 1,
            "padded": any(row.padding for row in rows),
            GREEDY: any(row.is_greedy for row in rows),
            SEEDED: any(row.seed is not None for row in rows),
        }
    return {EQUAL, *(kind for kind, is_so in found.items() if is_so)}


def shapes_of_batches(signature: str, kinds: Sequence[str]) -> str:
    """The sizes of the batches of these kinds, and the shapes of their requests, in words.

    Example:
        >>> print(shapes_of_batches("batch", ["equal lengths", "ragged"]))
        up to 4 requests, V = 3, L = 0 to 3
    """
    batches = [rows for kind, rows in _of_kinds(signature, [*kinds]) if kind in kinds]
    shapes = {tuple(row[0].shape) for rows in batches for row in rows}
    if signature == "path_batch":
        asked = f"(L, K) = {', '.join(f'({length}, {paths})' for paths, length in sorted(shapes))}"
    else:
        asked = f"L = {min(shapes)[0]} to {max(shapes)[0]}"
    return f"up to {max(map(len, batches))} requests, V = 3, {asked}"


def _drafts(request: Any, start: int, end: int | None = None) -> Any:
    """The request of some of the drafted tokens."""
    tokens, target, draft = request[:3]
    after = None if end is None else end + 1
    parts = tokens[..., start:end], target[..., start:after, :], draft[..., start:end, :]
    return request._replace(**dict(zip(request._fields, parts, strict=False)))


def _with_target(request: Any, target: torch.Tensor) -> Any:
    return request._replace(**{request._fields[1]: target})


def _likeliest_last(request: Any) -> Any:
    """Make the last token of a request, after all drafts, certain, so that runs are few."""
    target = request[1].clone()
    target[..., -1, :] = _certain(target[..., -1, :])
    return _with_target(request, target)


def _certain(rows: torch.Tensor) -> torch.Tensor:
    """Rows with all mass on the likeliest token."""
    return torch.nn.functional.one_hot(rows.argmax(-1), rows.shape[-1]).float()


def _quiet(request: Any, accepts: bool) -> Any:
    """A request of the same shape whose output is certain: the first path or no draft, and one more token."""
    paths = torch.atleast_2d(request[0])
    if isinstance(request, Row) and request.is_greedy:
        return request
    text = paths[0].tolist()
    if text and not accepts:  # a token that is drafted least often, at best never
        text = [int(torch.bincount(paths[:, 0], minlength=3).argmin())]
    target = _certain(request[1])
    target[..., : len(text), :] = torch.eye(3)[text]
    return _with_target(request, target)


def _first_open(request: Row) -> Row:
    """Accept all drafts after the first, and make the last token certain."""
    return _likeliest_last(
        _with_target(request, torch.cat([request.target_probs[:1], _quiet(request, True).target_probs[1:]]))
    )


def _each_random(requests: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield batches in which each request in turn is random.

    The others accept, except one that rejects.  A second rejecting one would have one more branch in a
    sampler that compares ``coin <= 0``.  The only neighbour of a request accepts, and rejects once more.
    """
    for accepts in (True, False) if len(requests) == 2 else (False,):
        for place, request in enumerate(requests):
            batch = [_quiet(each, True) for each in requests]
            batch[place - 1] = _quiet(requests[place - 1], accepts)
            batch[place] = request
            yield tuple(batch)


def _alike(one: Row, other: Row) -> Iterator[tuple[Row, Row]]:
    """Yield two requests with equal drafted tokens, with equal rows, and with both equal."""
    yield one, other._replace(draft_tokens=one.draft_tokens)
    yield one, one._replace(draft_tokens=other.draft_tokens)
    yield one, one


def _rows_together(kinds: Sequence[str]) -> Iterator[tuple[Row, ...]]:
    """Yield batches with several random requests, whose joint law we want."""
    short, beside = _drafts(FIRST, 0, 1), _drafts(SECOND, 0, 1)
    two, other_two = _drafts(BESIDE_LONG, 1), _drafts(LONG, 1)
    other_two = other_two._replace(draft_probs=two.draft_probs)
    ends = [
        tuple(map(_likeliest_last, rows))
        for rows in ((THREE, BESIDE_THREE), (short, beside), (FIRST, SECOND))
    ]
    yield from ((short, beside), (ends[2][1], ends[2][0]), ends[0], (SMALL, BESIDE_SMALL))
    for one, other in ends[1:]:
        yield one, one._replace(draft_probs=other.draft_probs)
    for one, other in ((short, beside), (two, other_two), (BESIDE_LONG, LONG)):
        yield from _alike(_likeliest_last(one), _likeliest_last(other))
    one, other = ends[1]
    yield from ((NOTHING, OTHER_NOTHING), (OTHER_NOTHING, NOTHING, NOTHING))
    yield (other, _first_open(FIRST), NOTHING, one) if RAGGED in kinds else (one, other, other, one)


def _companies() -> Iterator[tuple[Row, ...]]:
    """Yield requests of several lengths and kinds."""
    short, beside, long = _drafts(FIRST, 0, 1), _drafts(SECOND, 0, 1), _likeliest_last(THREE)
    yield from ((FIRST, SECOND, FIRST), (short, beside, short, beside))
    yield from ((short, SECOND, long), (SECOND, NOTHING, beside), (NOTHING, FIRST, SECOND, short))
    yield _likeliest_last(BESIDE_THREE), short, NOTHING, FIRST
    filled, nothing = short._replace(padding=1), NOTHING._replace(padding=1)
    two_filled, two_nothing = filled._replace(padding=2), nothing._replace(padding=2)
    yield from ((filled, SECOND), (LONG, two_filled), (nothing, beside), (SECOND, two_nothing, FIRST, filled))
    yield SECOND, two_nothing, long, filled
    # Of greedy requests the first drafts are the likeliest tokens, or not even the first one.
    rejected, accepted, at_once = _greedy(FIRST), _accepted_greedily(FIRST), _greedy(SECOND)
    first, second = map(_likeliest_last, (FIRST, SECOND))
    yield from ((second, rejected), (rejected, accepted, at_once), (second, at_once, first, rejected))
    yield _accepted_greedily(THREE), _likeliest_last(BESIDE_THREE)
    yield from ((_greedy(LONG), rejected), (at_once, _likeliest_last(short), _greedy(NOTHING)))
    yield NOTHING, _greedy(LONG), first, _greedy(NOTHING)
    greedy_filled = _drafts(accepted, 0, 1)._replace(padding=1)
    yield from ((rejected, filled), (greedy_filled, second, two_nothing))
    yield from ((TIED, second), (_drafts(TIED, 1), _accepted_greedily(TIED), first))
    seeded, other = FIRST._replace(seed=1_000), SECOND._replace(seed=2_000)
    yield from ((seeded, SECOND), (short, _drafts(other, 0, 1), beside), (seeded, NOTHING, other, rejected))


def _greedy(row: Row) -> Row:
    return row._replace(is_greedy=True)


def _accepted_greedily(row: Row) -> Row:
    """A greedy request whose drafts are the most likely tokens."""
    return row._replace(draft_tokens=row.target_probs[:-1].argmax(-1), is_greedy=True)


LONG_PATHS, BESIDE_LONG_PATHS = _of_paths(18, (0, 1), (2, 0)), _of_paths(204, (1, 0), (1, 2))
THREE_PATHS, EQUAL_PATHS = (_drafts(_of_paths(18, (0, 1), (0, 2), last), 0, 1) for last in ((2, 0), (0, 0)))
ONE_PATH = Request(*(tensor[:1] for tensor in _drafts(LONG_PATHS, 0, 1)))
NO_PATH = Request(*(tensor[None] for tensor in NOTHING[:3]))


def _twice(row: Row) -> Request:
    """A request with two equal paths."""
    return Request(*(tensor[None].expand(2, *tensor.shape).contiguous() for tensor in row[:3]))


def _paths_together() -> Iterator[tuple[Request, ...]]:
    """Yield batches with several random requests, whose joint law we want."""
    short, beside = _drafts(LONG_PATHS, 0, 1), _drafts(BESIDE_LONG_PATHS, 0, 1)
    # Of both requests the last draft, the second or the third, is accepted with a probability inside (0, 1).
    second_coins = (_of_paths(2, (2, 0), (0, 0)), _of_paths(18, (0, 1), (1, 1)))
    third_coins = (_of_paths(33, (2, 0), (2, 0), (1, 0)), _of_paths(40, (1, 0), (1, 0), (2, 0)))
    yield from (
        (short, beside),
        (beside, short),
        (THREE_PATHS, EQUAL_PATHS),
        (LONG_PATHS, BESIDE_LONG_PATHS),
        second_coins,
        (_twice(SMALL), _twice(BESIDE_SMALL)),
        *((_drafts(one, 0, 1), _drafts(other, 0, 1)) for one, other in (second_coins, third_coins)),
        (short, short._replace(target_rows=short.target_rows.flip(-1))),
        *((request, request) for request in (short, EQUAL_PATHS, BESIDE_LONG_PATHS)),
    )
    one, other, only = (_likeliest_last(request) for request in (short, beside, ONE_PATH))
    yield from ((one, other, one), (one, only, other, only))


def _companies_of_paths() -> Iterator[tuple[Request, ...]]:
    """Yield requests of several lengths and numbers of paths."""
    short, beside = _drafts(LONG_PATHS, 0, 1), _drafts(BESIDE_LONG_PATHS, 0, 1)
    yield from ((LONG_PATHS, beside), (short, BESIDE_LONG_PATHS, NO_PATH))
    yield NO_PATH, LONG_PATHS, beside, short
    yield from ((ONE_PATH, beside), (THREE_PATHS, short, ONE_PATH), (ONE_PATH, LONG_PATHS))
    yield LONG_PATHS, THREE_PATHS, NO_PATH, ONE_PATH
