"""The batches of one to four requests on which we judge a sampler.

In most batches one request is random, and we follow all its branches.  Its neighbours are *quiet*: their
target allows only one text, so they certainly accept all drafts, or certainly none.  So a batch has as many
runs as one request.  Batches with several random requests test whether requests are independent.  Two of
these have four requests.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import Request, Row
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import prefix_numbers, rows_along

EQUAL, RAGGED, GREEDY = "equal lengths", "ragged", "greedy"
KINDS: Mapping[str, tuple[str, ...]] = {
    "batch": ("no drafts", RAGGED, "padded", GREEDY),
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
    batches = _of_kinds(sampler.signature_name, kinds)
    return _first_of_each(batches) if sampler.quick else batches


def _first_of_each(batches: Sequence[tuple[str, tuple[Any, ...]]]) -> list[tuple[str, tuple[Any, ...]]]:
    """The first batch of every kind, with at most two requests if there is such a batch."""
    found: dict[str, tuple[Any, ...]] = {}
    for kind, rows in sorted(batches, key=lambda batch: len(batch[1]) > 2):
        found.setdefault(kind, rows)
    return list(found.items())


def _of_kinds(signature: str, kinds: Sequence[str]) -> list[tuple[str, tuple[Any, ...]]]:
    if signature == "path_batch":
        return list(_path_batches(kinds))
    return [*_several_random(kinds), *_one_random(kinds)]


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


def _cut(row: Row, length: int) -> Row:
    return row._replace(
        draft_tokens=row.draft_tokens[:length],
        target_probs=row.target_probs[: length + 1],
        draft_probs=row.draft_probs[:length],
    )


def _behind_the_first(row: Row) -> Row:
    return Row(row.draft_tokens[1:], row.target_probs[1:], row.draft_probs[1:])


def _likeliest_last(row: Row) -> Row:
    """Make the last token of a request, after all drafts, certain, so that runs are few."""
    return row._replace(target_probs=torch.cat([row.target_probs[:-1], _certain(row.target_probs[-1:])]))


def _certain(rows: torch.Tensor) -> torch.Tensor:
    """Rows with all mass on the likeliest token."""
    return torch.nn.functional.one_hot(rows.argmax(-1), rows.shape[-1]).float()


def _quiet(row: Row, accepts: bool) -> Row:
    """A request of the same shape whose output is certain: all drafts or no draft, and one more token."""
    if row.is_greedy:
        return row
    target = _certain(row.target_probs)
    length = len(row.draft_tokens) if accepts else min(1, len(row.draft_tokens))
    for place, token in enumerate(row.draft_tokens[:length].tolist()):
        target[place] = torch.eye(3)[token if accepts else (token + 1) % 3]
    return row._replace(target_probs=target)


def _quiet_paths(request: Request, accepts: bool) -> Request:
    """As ``_quiet``, for several paths: accept the first path, or reject as many paths as possible."""
    text = request.paths[0].tolist()
    if not accepts and text:
        text[0] = int(torch.bincount(request.paths[:, 0], minlength=3).argmin())
    rows = torch.eye(3)[[*text, 0]]
    return request._replace(target_rows=rows.expand_as(request.target_rows).contiguous())


def _each_random(rows: Sequence[Any], quiet: Callable[[Any, bool], Any]) -> Iterator[tuple[Any, ...]]:
    """Yield batches in which each request in turn is random.

    First all others accept; then one of the others rejects.  Only one rejects, because a sampler that
    compares ``coin <= 0`` has one more branch for each request that rejects.
    """
    accepting = [quiet(row, True) for row in rows]
    for place, row in enumerate(rows):
        yield (*accepting[:place], row, *accepting[place + 1 :])
    for place, row in enumerate(rows):
        beside = [*accepting]
        beside[place - 1] = quiet(rows[place - 1], False)
        beside[place] = _likeliest_last(row) if isinstance(row, Row) and len(row.draft_tokens) else row
        yield tuple(beside)


def _several_random(kinds: Sequence[str]) -> Iterator[tuple[str, tuple[Row, ...]]]:
    """Yield batches with several random requests, whose joint law we follow."""
    short, beside = _cut(FIRST, 1), _cut(SECOND, 1)
    two, other_two = _behind_the_first(BESIDE_LONG), _behind_the_first(LONG)
    other_two = other_two._replace(draft_probs=two.draft_probs)
    ends = [
        tuple(map(_likeliest_last, rows))
        for rows in ((THREE, BESIDE_THREE), (short, beside), (FIRST, SECOND))
    ]
    for batch in ((short, beside), (SECOND, FIRST), ends[0], (SMALL, BESIDE_SMALL)):
        yield EQUAL, batch
    for one, other in ends[1:]:
        yield EQUAL, (one, one._replace(draft_probs=other.draft_probs))
    for one, other in ((short, beside), (two, other_two), (BESIDE_LONG, LONG)):
        for batch in _alike(_likeliest_last(one), _likeliest_last(other)):
            yield EQUAL, batch
    (one, other), (longer, _) = ends[1:]
    if "no drafts" in kinds:
        yield "no drafts", (NOTHING, OTHER_NOTHING)
        yield "no drafts", (OTHER_NOTHING, NOTHING, NOTHING)
    if RAGGED in kinds:
        yield RAGGED, (other, longer, NOTHING, one)
    else:
        yield EQUAL, (one, other, other, one)


def _one_random(kinds: Sequence[str]) -> Iterator[tuple[str, tuple[Row, ...]]]:
    """Yield batches with one random request, in different sizes, lengths and positions."""
    short, beside, long = _cut(FIRST, 1), _cut(SECOND, 1), _likeliest_last(THREE)
    filled, nothing = short._replace(padding=1), NOTHING._replace(padding=1)
    companies: dict[str, list[tuple[Row, ...]]] = {
        EQUAL: [(FIRST, SECOND, FIRST), (short, beside, short, beside)],
        RAGGED: [
            (short, SECOND, long),
            (SECOND, NOTHING, beside),
            (_likeliest_last(BESIDE_THREE), short, NOTHING, FIRST),
            (NOTHING, FIRST, SECOND, short),
        ],
        "padded": [
            (filled, SECOND),
            (LONG, filled._replace(padding=2)),
            (nothing, beside),
            (SECOND, nothing._replace(padding=2), long, filled),
        ],
    }
    for kind, batches in companies.items():
        if kind == EQUAL or kind in kinds:
            for rows in batches:
                for batch in _each_random(rows, _quiet):
                    yield kind, batch
    if GREEDY in kinds:
        for batch in _greedy_batches(kinds):
            yield GREEDY, batch


def _alike(one: Row, other: Row) -> Iterator[tuple[Row, Row]]:
    """Yield two requests with equal drafted tokens, with equal rows, and with both equal."""
    yield one, other._replace(draft_tokens=one.draft_tokens)
    yield one, one._replace(draft_tokens=other.draft_tokens)
    yield one, one


def _greedy_batches(kinds: Sequence[str]) -> Iterator[tuple[Row, ...]]:
    """Yield batches of greedy requests beside sampled requests and beside each other, also in other kinds."""
    rejected, accepted = FIRST._replace(is_greedy=True), _accepted_greedily(FIRST)
    at_once = SECOND._replace(is_greedy=True)  # its first draft is not the likeliest token
    first, second, short = map(_likeliest_last, (FIRST, SECOND, _cut(FIRST, 1)))
    pairs = [(rejected, second), (accepted, second), (rejected, accepted), (at_once, first)]
    pairs += [(_cut(at_once, 1), short), (_accepted_greedily(THREE), _likeliest_last(BESIDE_THREE))]
    companies = [(rejected, second, accepted), (second, at_once, first, rejected)]
    if RAGGED in kinds:
        two, long = _behind_the_first(BESIDE_LONG), LONG._replace(is_greedy=True)
        pairs += [(long, two), (_cut(accepted, 1), LONG), (long, rejected)]
        greedy_nothing = NOTHING._replace(is_greedy=True)
        companies += [(at_once, short, greedy_nothing), (NOTHING, long, first, greedy_nothing)]
    if "padded" in kinds:
        one, filled = short._replace(padding=1), _cut(accepted, 1)._replace(padding=1)
        pairs += [(filled._replace(padding=2), LONG), (rejected, one), (rejected, filled)]
        companies += [(filled, second, NOTHING._replace(padding=1))]
    yield from (batch for one, other in pairs for batch in ((one, other), (other, one)))
    for rows in companies:
        yield from _each_random(rows, _quiet)


def _accepted_greedily(row: Row) -> Row:
    """A greedy request whose drafts are the most likely tokens."""
    return row._replace(draft_tokens=row.target_probs[:-1].argmax(-1), is_greedy=True)


def _twice(row: Row) -> Request:
    """A request with two equal paths."""
    return Request(*(tensor[None].expand(2, *tensor.shape).contiguous() for tensor in row[:3]))


def _one_token(request: Request) -> Request:
    return Request(request.paths[:, :1], request.target_rows[:, :2], request.draft_rows[:, :1])


def _likely_end(request: Request) -> Request:
    """As ``_likeliest_last``, for several paths."""
    last = _certain(request.target_rows[:, -1:])
    return request._replace(target_rows=torch.cat([request.target_rows[:, :-1], last], dim=1))


def _path_batches(kinds: Sequence[str]) -> Iterator[tuple[str, tuple[Request, ...]]]:
    """Yield batches of requests with several paths, which mix lengths and numbers of paths."""
    long, beside_long = _of_paths(18, (0, 1), (2, 0)), _of_paths(204, (1, 0), (1, 2))
    short, beside = _one_token(long), _one_token(beside_long)
    three, equal = (_one_token(_of_paths(18, (0, 1), (0, 2), last)) for last in ((2, 0), (0, 0)))
    one = Request(*(tensor[:1] for tensor in short))
    nothing = Request(*(tensor[None] for tensor in NOTHING[:3]))
    # Of both requests the last draft, the second or the third, is accepted with a probability inside (0, 1).
    second_coins = (_of_paths(2, (2, 0), (0, 0)), _of_paths(18, (0, 1), (1, 1)))
    third_coins = (_of_paths(33, (2, 0), (2, 0), (1, 0)), _of_paths(40, (1, 0), (1, 0), (2, 0)))
    for batch in ((short, beside), (beside, short), (three, equal), (long, beside_long)):
        yield EQUAL, batch
    yield EQUAL, second_coins
    yield EQUAL, (_twice(SMALL), _twice(BESIDE_SMALL))
    for batch in (second_coins, third_coins):
        yield EQUAL, (_one_token(batch[0]), _one_token(batch[1]))
    yield EQUAL, (short, short._replace(target_rows=short.target_rows.flip(-1)))
    for request in (short, equal, beside_long):
        yield EQUAL, (request, request)
    ends = [_likely_end(request) for request in (short, beside, one)]
    yield EQUAL, (ends[0], ends[1], ends[0])
    if "num_drafts" in kinds:
        yield "num_drafts", (ends[0], ends[2], ends[1], ends[2])
    companies: dict[str, list[tuple[Request, ...]]] = {
        RAGGED: [(long, beside), (short, beside_long, nothing), (nothing, long, beside, short)],
        "num_drafts": [(one, beside), (three, short, one)],
    }
    if {RAGGED, "num_drafts"} <= set(kinds):
        companies["num_drafts"] += [(one, long), (long, three, nothing, one)]
    for kind, several in companies.items():
        for rows in several if kind in kinds else ():
            for path_batch in _each_random(rows, _quiet_paths):
                yield kind, path_batch
