"""Ten honest bugs over rounds, and the right engines that each differs from in one step.

The first seven have the signature ``round``, the others ``round_batch``.  An engine keeps a cache per model:
a list of the tokens that the model has read, which stands for the keys and values of a real one.  Every round
drafts as many tokens as it is asked for.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

Text = list[int]
Texts = Sequence[Text]
Model = Callable[[Text], Tensor]
Played = tuple[Text, Tensor, Text]
Rounds = list[Played]


class Cache:
    """The tokens that a model has read, and its rows: before the first token and after each."""

    def __init__(self) -> None:
        self.read: Text = []
        self.rows: list[Tensor] = []

    def feed(self, model: Model, tokens: Sequence[int]) -> None:
        """The model reads tokens behind those that it has read."""
        if not self.rows:
            self.rows.append(model([]))
        for token in tokens:
            self.read.append(token)
            self.rows.append(model(list(self.read)))

    def roll_back(self, length: int) -> None:
        """The cache keeps this many tokens, or all if it has fewer."""
        del self.read[length:], self.rows[length + 1 :]


class Request:
    """What an engine keeps of a request between rounds."""

    def __init__(self) -> None:
        self.target = Cache()
        self.draft = Cache()
        self.corrections = 0
        self.coins = 0
        self.has_rejected = False
        self.next_row: Tensor | None = None
        self.prefixes: dict[Hashable, Tensor] = {}


def _drawn(weights: Tensor, generator: Any) -> int:
    return int(torch.multinomial(weights, 1, generator=generator))


def _as_it_is(row: Tensor) -> Tensor:
    return row


def _squared(row: Tensor) -> Tensor:
    return row**2 / (row**2).sum()


def _drafted(
    request: Request,
    text: Text,
    draft: Model,
    count: int,
    generator: Any,
    sampled: Callable[[Tensor], Tensor] = _as_it_is,
    reported: Callable[[Tensor], Tensor] = _as_it_is,
) -> tuple[list[int], Tensor]:
    """Drafted tokens and the rows that are reported for them; the draft model never reads the last one."""
    cache, path, rows = request.draft, [], []
    cache.feed(draft, text[len(cache.read) :])
    for _ in range(count):
        cache.feed(draft, path[-1:])
        rows.append(reported(cache.rows[-1]))
        path.append(_drawn(sampled(cache.rows[-1]), generator))
    return path, torch.stack(rows)


def _scored(request: Request, text: Text, target: Model, path: list[int]) -> list[Tensor]:
    """The target's rows on a path; of the text it reads the last token, as it has read the others."""
    cache = request.target
    cache.feed(target, text[-1:] if cache.read else text)
    cache.feed(target, path)
    return cache.rows[-len(path) - 1 :]


def _verified(
    path: list[int], p: Sequence[Tensor], q: Tensor, generator: Any, coin: Callable[[int], Any]
) -> list[int]:
    for place, token in enumerate(path):
        if not coin(place) * q[place, token] < p[place][token]:
            residual = (p[place] - q[place]).clamp(min=0)
            return [*path[:place], _drawn(residual if residual.sum() > 0 else p[place], generator)]
    return [*path, _drawn(p[-1], generator)]


def _kept(before: int, accepted: int, drafted: int) -> int:
    return before + accepted


def _rows_of_the_path(request: Request, rows: list[Tensor]) -> list[Tensor]:
    return rows


def _prefix(read: list[int]) -> Hashable:
    return tuple(read)


_ONE = [Request()]


def _play(
    text: Text,
    target: Model,
    draft: Model,
    draft_length: int,
    generator: Any,
    *,
    kept: Callable[[int, int, int], int] = _kept,
    rows: Callable[[Request, list[Tensor]], list[Tensor]] = _rows_of_the_path,
    prefix: Callable[[list[int]], Hashable] = _prefix,
    coin: Callable[[Request, int, Any], Any] = lambda request, place, generator: torch.rand(
        (), generator=generator
    ),
    sampled: Callable[[Request], Callable[[Tensor], Tensor]] = lambda request: _as_it_is,
    reported: Callable[[Request], Callable[[Tensor], Tensor]] = lambda request: _as_it_is,
) -> Played:
    """One round of one request, whose caches are rolled back to the accepted tokens."""
    if not text:
        _ONE[0] = Request()
    request = _ONE[0]

    def looked_up(read: list[int]) -> Tensor:
        key = prefix(read)
        if key not in request.prefixes:
            request.prefixes[key] = target(read)
        return request.prefixes[key]

    path, q = _drafted(request, text, draft, draft_length, generator, sampled(request), reported(request))
    p = rows(request, _scored(request, text, looked_up, path))
    tokens = _verified(path, p, q, generator, lambda place: coin(request, place, generator))
    accepted = len(tokens) - 1
    request.target.roll_back(kept(len(request.target.read) - len(path), accepted, len(path)))
    request.draft.roll_back(len(text) + accepted)
    request.corrections += 1
    request.coins += accepted
    request.has_rejected |= accepted < len(path)
    request.next_row = p[accepted]
    return path, q, tokens


def with_caches(text: Text, target: Model, draft: Model, draft_length: int, generator: Any) -> Played:
    """A round with a cache of both models and of the target's rows behind prefixes; lossless."""
    return _play(text, target, draft, draft_length, generator)


def rejected_kept(text: Text, target: Model, draft: Model, draft_length: int, generator: Any) -> Played:
    """The target's cache is never rolled back: wrong after a rejection."""
    return _play(
        text, target, draft, draft_length, generator, kept=lambda before, accepted, drafted: before + drafted
    )


def rolled_back_too_far(text: Text, target: Model, draft: Model, draft_length: int, generator: Any) -> Played:
    """The target's cache lacks the last draft, as the draft model's does: wrong if all were accepted."""

    def kept(before: int, accepted: int, drafted: int) -> int:
        return before + min(accepted, drafted - 1)

    return _play(text, target, draft, draft_length, generator, kept=kept)


def bonus_row_reused(text: Text, target: Model, draft: Model, draft_length: int, generator: Any) -> Played:
    """The row of the last token verifies the next draft too: wrong from the second round on."""

    def rows(request: Request, found: list[Tensor]) -> list[Tensor]:
        return found if request.next_row is None else [request.next_row, *found[1:]]

    return _play(text, target, draft, draft_length, generator, rows=rows)


def stale_position(text: Text, target: Model, draft: Model, draft_length: int, generator: Any) -> Played:
    """Rows are taken from a position that counts correction tokens only: wrong after an accepted draft."""

    def rows(request: Request, found: list[Tensor]) -> list[Tensor]:
        return request.target.rows[request.corrections :][: len(found)]

    return _play(text, target, draft, draft_length, generator, rows=rows)


def last_token_as_key(text: Text, target: Model, draft: Model, draft_length: int, generator: Any) -> Played:
    """Rows are kept by length and last token: wrong where that was read behind a draft rejected since."""
    return _play(
        text, target, draft, draft_length, generator, prefix=lambda read: (len(read), tuple(read[-1:]))
    )


def _cooled(request: Request) -> Callable[[Tensor], Tensor]:
    return _squared if request.has_rejected else _as_it_is


def cooler_drafts(text: Text, target: Model, draft: Model, draft_length: int, generator: Any) -> Played:
    """A request that has rejected a draft is drafted at temperature 1/2; lossless."""
    return _play(text, target, draft, draft_length, generator, sampled=_cooled, reported=_cooled)


def unreported_cooling(text: Text, target: Model, draft: Model, draft_length: int, generator: Any) -> Played:
    """Drafts are cooled after a rejection and their rows are not: wrong in the rounds after it."""
    return _play(text, target, draft, draft_length, generator, sampled=_cooled)


_COINS = 10**6  # the seed itself would make the numbers that the drafts are drawn with


def _coin_at(position: int, generator: Any) -> Tensor:
    own = torch.Generator().manual_seed(generator.initial_seed() + _COINS + position)
    return torch.rand((), generator=own)


def coins_of_positions(text: Text, target: Model, draft: Model, draft_length: int, generator: Any) -> Played:
    """A coin's seed is that of the request plus the position of its token in the text; lossless."""

    def coin(_: Request, place: int, own: Any) -> Tensor:
        return _coin_at(len(text) + place, own)

    return _play(text, target, draft, draft_length, generator, coin=coin)


def coins_of_accepted(text: Text, target: Model, draft: Model, draft_length: int, generator: Any) -> Played:
    """A coin's seed counts accepted tokens: the coin of a rejection is the first one of the next round."""

    def coin(request: Request, place: int, own: Any) -> Tensor:
        return _coin_at(request.coins + place, own)

    return _play(text, target, draft, draft_length, generator, coin=coin)


_PLACES: dict[int, Request] = {}
"""Place in the list of texts -> its request, in the order of admission."""


def _readmitted(texts: Texts) -> None:
    for place, text in enumerate(texts):
        if not text or place not in _PLACES:
            _PLACES.pop(place, None)
            _PLACES[place] = Request()


def _play_batch(
    texts: Texts,
    target: Model,
    draft: Model,
    draft_length: int,
    generator: Any,
    *,
    admitted: Callable[[Texts], None] = _readmitted,
    draft_rows: Callable[[list[int], int], int] = lambda order, place: order.index(place),
    accepted_by: Callable[[list[int], int], int] = lambda accepted, place: accepted[place],
) -> Rounds:
    """A round of several requests, which are drafted in the order of their admission."""
    if not any(texts):
        _PLACES.clear()
    admitted(texts)
    order = [place for place in _PLACES if place < len(texts)]
    drafts = [_drafted(_PLACES[place], texts[place], draft, draft_length, generator) for place in order]
    played = []
    for place, text in enumerate(texts):
        path, q = drafts[order.index(place)][0], drafts[draft_rows(order, place)][1]
        p = _scored(_PLACES[place], text, target, path)
        tokens = _verified(path, p, q, generator, lambda _: torch.rand((), generator=generator))
        played.append((path, q, tokens))
    accepted = [len(tokens) - 1 for _, _, tokens in played]
    for place, text in enumerate(texts):
        request = _PLACES[place]
        request.target.roll_back(len(request.target.read) - draft_length + accepted_by(accepted, place))
        request.draft.roll_back(len(text) + accepted[place])
    return played


def batch(texts: Texts, target: Model, draft: Model, draft_length: int, generator: Any) -> Rounds:
    """A batch whose requests have caches, and end and start beside each other; lossless."""
    return _play_batch(texts, target, draft, draft_length, generator)


def rows_by_admission(texts: Texts, target: Model, draft: Model, draft_length: int, generator: Any) -> Rounds:
    """Draft rows stay in the order of admission: wrong after a request ended and one behind it went on."""
    return _play_batch(texts, target, draft, draft_length, generator, draft_rows=lambda order, place: place)


def accepted_by_last(texts: Texts, target: Model, draft: Model, draft_length: int, generator: Any) -> Rounds:
    """Caches are rolled back by what the last request accepted: wrong for one that accepted otherwise."""
    return _play_batch(
        texts, target, draft, draft_length, generator, accepted_by=lambda accepted, place: accepted[-1]
    )


def cache_not_cleared(texts: Texts, target: Model, draft: Model, draft_length: int, generator: Any) -> Rounds:
    """Caches are cleared with the whole batch only: wrong for a request that starts beside others."""

    def admitted(texts: Texts) -> None:
        for place in range(len(texts)):
            _PLACES.setdefault(place, Request())

    return _play_batch(texts, target, draft, draft_length, generator, admitted=admitted)


_OVER_ROUNDS = (
    rejected_kept,
    rolled_back_too_far,
    bonus_row_reused,
    stale_position,
    last_token_as_key,
    unreported_cooling,
    coins_of_accepted,
)
_OVER_BATCHES = (rows_by_admission, accepted_by_last, cache_not_cleared)

RIGHT: dict[str, Callable[..., Any]] = {
    form.__name__: form for form in (with_caches, cooler_drafts, coins_of_positions, batch)
}
"""Name -> engine; all are lossless.  ``batch`` has the signature "round_batch", the others "round"."""

FAULTS: dict[str, Callable[..., Any]] = {fault.__name__: fault for fault in (*_OVER_ROUNDS, *_OVER_BATCHES)}
"""Name -> engine; each is wrong where it says.  The last three have the signature "round_batch"."""
