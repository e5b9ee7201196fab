"""Rounds with one mistake in what they keep, or in whose it is, and their right forms (``bad=False``)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

Text = Sequence[int]
Found = tuple[list[int], torch.Tensor, list[int]]


def _draw(row: torch.Tensor, generator: Any) -> int:
    return int(torch.multinomial(row, 1, generator=generator))


def drafted(text: Text, draft: Any, length: int, generator: Any, first: Any = None) -> Any:
    """A path and its rows; the first row may be given."""
    path: list[int] = []
    rows = []
    for place in range(length):
        rows.append(draft([*text, *path]) if place or first is None else first)
        path.append(_draw(rows[-1], generator))
    return path, torch.stack(rows)


def verified(
    text: Text, path: list[int], q: torch.Tensor, target: Any, generator: Any, coins: Any = None
) -> Found:
    """Token by token."""
    for place, token in enumerate(path):
        p = target([*text, *path[:place]])
        coin = torch.rand((), generator=generator) if coins is None else coins[place]
        if not coin * q[place, token] < p[token]:
            rest = (p - q[place]).clamp(min=0)
            return path, q, [*path[:place], _draw(rest if rest.sum() > 0 else p, generator)]
    return path, q, [*path, _draw(target([*text, *path]), generator)]


def played(known: Text, seen: Text, target: Any, draft: Any, length: int, generator: Any) -> Found:
    """Both halves: the target reads one text, the draft another."""
    path, rows = drafted(seen, draft, length, generator)
    return verified(known, path, rows, target, generator)


class OneRequest:
    """A round that keeps something of its text."""

    def __init__(self, mistake: str = "") -> None:
        self.mistake = mistake
        self.kept: list[int] = []
        self.row: Any = None

    def __call__(self, text: Text, target: Any, draft: Any, length: int, generator: Any) -> Found:
        if not text:
            self.kept, self.row = [], draft(text)
        known, seen, first = list(text), list(text), None
        if self.mistake == "the cache doubles the prefix":
            self.kept += text
            known = list(self.kept)
        elif self.mistake == "the cache is a window":
            known = known[-3:]
        elif self.mistake == "rolled back one too far":
            self.kept += text[-1:]
            known = list(self.kept)
        elif self.mistake == "rejected tokens stay in the state":
            known = [*self.kept, *text[-1:]]
        elif self.mistake == "the draft lacks a token":
            seen = seen[:-2] + seen[-1:]
        elif self.mistake == "rows of the first round":
            first = self.row
        elif self.mistake == "the draft reads a cache of rejected tokens, and says so":
            self.kept += text[-1:]
            seen = list(self.kept)
        path, rows = drafted(seen, draft, length, generator, first)
        told = rows
        if self.mistake in ("the draft lacks a token", "rows of the first round"):
            told = torch.stack([draft([*text, *path[:place]]) for place in range(length)])
        found = verified(known, path, told, target, generator)
        if self.mistake == "rolled back one too far":
            self.kept += found[2][: -1 if len(found[2]) > length else -2]
        elif self.mistake == "the draft reads a cache of rejected tokens, and says so":
            self.kept += path
        elif self.mistake == "rejected tokens stay in the state":
            self.kept = [*known, *path]
        return found


def of_a_reduced_vocabulary(
    text: Text, target: Any, draft: Any, length: int, generator: Any, bad: bool
) -> Found:
    """The draft knows the tokens 0 and 2; a mistake takes an offset for the token."""
    kept, path, rows = [0, 2], list[int](), []
    for _ in range(length):
        small = draft([*text, *path])[kept]
        small = small / small.sum() if small.sum() > 0 else torch.full((2,), 0.5)
        rows.append(torch.zeros(3).index_put((torch.tensor(kept),), small))
        number = _draw(small, generator)
        path.append(kept[number] - number * bad)
    return verified(text, path, torch.stack(rows), target, generator)


def certain_drafts(text: Text, target: Any, draft: Any, length: int, generator: Any, bad: bool) -> Found:
    """A mistake drafts the likeliest token, and reports the row."""
    path, rows = list[int](), []
    for _ in range(length):
        rows.append(draft([*text, *path]))
        path.append(int(rows[-1].argmax()) if bad else _draw(rows[-1], generator))
    return verified(text, path, torch.stack(rows), target, generator)


Batch = Callable[..., list[Found]]


def draft_of_a_neighbour(texts: Any, target: Any, draft: Any, length: int, generator: Any, bad: bool) -> Any:
    found = []
    for place, text in enumerate(texts):
        path, _ = drafted(texts[place - 1] if bad else text, draft, length, generator)
        rows = torch.stack([draft([*text, *path[:depth]]) for depth in range(length)])
        found.append(verified(text, path, rows, target, generator))
    return found


def rows_in_order_of_length(
    texts: Any, target: Any, draft: Any, length: int, generator: Any, bad: bool
) -> Any:
    """Requests are drafted in the order of their lengths; a mistake leaves their rows in it."""
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    halves = [drafted(texts[place], draft, length, generator) for place in order]
    found = []
    for place, text in enumerate(texts):
        path, rows = halves[order.index(place)]
        found.append(verified(text, path, halves[place][1] if bad else rows, target, generator))
    return found


def positions_of_the_first(texts: Any, *others: Any, bad: bool) -> Any:
    return [played(text[: len(texts[0])] if bad else text, text, *others) for text in texts]


def text_of_the_longest(texts: Any, *others: Any, bad: bool) -> Any:
    longest = max(texts, key=len)
    return [played(longest if bad else text, text, *others) for text in texts]


def target_of_the_first_from_the_third_on(texts: Any, *others: Any, bad: bool) -> Any:
    return [
        played(texts[0] if bad and place == 2 else text, text, *others) for place, text in enumerate(texts)
    ]


def caches_of_a_place(texts: Any, *others: Any, bad: bool) -> Any:
    """A mistake keeps the cache of a request that has ended beside one that goes on."""
    if not any(texts):
        _KEPT.clear()
    for place, text in enumerate(texts):
        kept = _KEPT.setdefault(place, [])
        if not text and not bad:
            kept.clear()
        kept += text[len(kept) :]
    return [played(list(_KEPT[place]), text, *others) for place, text in enumerate(texts)]


_KEPT: dict[int, list[int]] = {}


def coins_of_the_second_round(
    texts: Any, target: Any, draft: Any, length: int, generator: Any, bad: bool
) -> Any:
    """A mistake: after the first round, the coins of one request verify all."""
    coins = torch.rand(len(texts), length, generator=generator)
    found = []
    for place, text in enumerate(texts):
        its = coins[0 if bad and any(texts) else place]
        path, rows = drafted(text, draft, length, generator)
        found.append(verified(text, path, rows, target, generator, its))
    return found


BATCHES: Mapping[str, Batch] = {
    each.__name__: each
    for each in (
        draft_of_a_neighbour,
        rows_in_order_of_length,
        positions_of_the_first,
        text_of_the_longest,
        target_of_the_first_from_the_third_on,
        caches_of_a_place,
        coins_of_the_second_round,
    )
}
