"""Engines that draft, that are called twice, and that report log probabilities, with one mistake each.

Fixed drafts cannot show these mistakes: drafts have another law than their rows, the verifier reads numbers
that the drafter or the call before has used, or what is reported beside the tokens is wrong.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from audits.specimens.batch_engine import NOTHING, Array, BatchEngine, BatchRequest

SEPARATOR = -1
"""Between drafts and block, or between two blocks, in an answer."""


class DraftingEngine:
    """Draws the drafts of one request by a Gumbel race, verifies them, and corrects by another race."""

    about = "Right."

    def drawn_from(self, row: Array, rows: Sequence[Array], i: int) -> Array:
        """The law that draft i is drawn from."""
        return row

    def coins(self, noise: Array, drafted: Array, rng: np.random.Generator) -> Array:
        """Acceptance numbers; ``noise`` [calls, V] has drawn ``drafted`` [calls]."""
        return rng.random(len(noise))

    def correcting(self, noise: Array, rng: np.random.Generator) -> Array:
        """The noise of the correction's race."""
        return rng.gumbel(size=noise.shape)

    def run(
        self, target: Sequence[Array], draft: Sequence[Array], calls: int, rng: np.random.Generator
    ) -> Array:
        """Flat answers [calls, 2n + 2]: drafts, ``SEPARATOR``, block, ``NOTHING``."""
        length = len(draft)
        out = np.full((calls, 2 * length + 2), NOTHING, dtype=np.int64)
        out[:, length] = SEPARATOR
        alive = np.ones(calls, dtype=bool)
        for i, row in enumerate(draft):
            noise = rng.gumbel(size=(calls, len(row)))
            drafted = _raced(self.drawn_from(row, draft, i), noise)
            out[:, i] = drafted
            ratio = target[i][drafted] / np.maximum(row[drafted], 1e-300)
            accepted = alive & (self.coins(noise, drafted, rng) < ratio)
            rejected = alive & ~accepted
            correction = _raced(np.maximum(target[i] - row, 0), self.correcting(noise, rng))
            out[accepted, length + 1 + i] = drafted[accepted]
            out[rejected, length + 1 + i] = correction[rejected]
            alive = accepted
        last = _raced(target[-1], rng.gumbel(size=(calls, len(target[-1]))))
        out[alive, 2 * length + 1] = last[alive]
        return out


def _raced(weights: Array, noise: Array) -> Array:
    with np.errstate(divide="ignore"):
        return (np.log(weights) + noise).argmax(1)


DRAFTING_MISTAKES: dict[str, type[DraftingEngine]] = {}
"""Name -> engine; all are wrong."""


def _drafting(name: str, about: str, **steps: Callable[..., Any]) -> None:
    DRAFTING_MISTAKES[name] = type(name, (DraftingEngine,), {**steps, "about": about})


def _tempered(row: Array, power: float) -> Array:
    return row**power / (row**power).sum()


def _used_coin(engine: Any, noise: Array, drafted: Array, rng: Any) -> Array:
    return np.exp(-np.exp(-noise[np.arange(len(noise)), drafted]))


_drafting(
    "permuted_rows", "The reported rows are permuted.", drawn_from=lambda e, row, rows, i: np.roll(row, 1)
)
_drafting(
    "argmax_drafts",
    "Drafts are the argmax.",
    drawn_from=lambda e, row, rows, i: np.eye(len(row))[row.argmax()],
)
_drafting(
    "least_likely_cut",
    "Drafts never are the least likely token.",
    drawn_from=lambda e, row, rows, i: row * (row > row.min()),
)
_drafting(
    "drafts_tempered", "Drafts have temperature 0.8.", drawn_from=lambda e, row, rows, i: _tempered(row, 1.25)
)
_drafting(
    "drafts_flattened",
    "Drafts have temperature 1.25.",
    drawn_from=lambda e, row, rows, i: _tempered(row, 0.8),
)
_drafting(
    "drafts_of_row_before",
    "Drafts are drawn from the row before.",
    drawn_from=lambda e, row, rows, i: rows[max(i - 1, 0)],
)
_drafting(
    "uniform_drafts", "Drafts are uniform.", drawn_from=lambda e, row, rows, i: np.ones(len(row)) / len(row)
)
_drafting("draft_noise_accepts", "The number that drew the draft accepts it.", coins=_used_coin)
_drafting("shared_noise", "Draft and correction share their noise.", correcting=lambda e, noise, rng: noise)


class Verified(NamedTuple):
    """Random numbers of one verification: of every draft, and of the token after each accepted run."""

    accepting: Array
    last: Array


class TwoCallEngine:
    """Verifies a request, and then the request that follows from the number of emitted tokens."""

    about = "Right."

    def first_numbers(self, stream: Array, drafts: int) -> Verified:
        return Verified(stream[:, :drafts], np.repeat(stream[:, drafts : drafts + 1], drafts + 1, 1))

    def second_numbers(self, stream: Array, emitted: int, first: int, drafts: int) -> Verified:
        """Numbers after the first call has emitted so many tokens of ``first`` drafts."""
        return self.first_numbers(stream[:, first + 1 :], drafts)

    def second_request(self, first: BatchRequest, then: Sequence[BatchRequest], emitted: int) -> BatchRequest:
        return then[emitted - 1]

    def run(
        self, first: BatchRequest, then: Sequence[BatchRequest], calls: int, rng: np.random.Generator
    ) -> Array:
        """Flat answers: block, ``SEPARATOR``, block, ``NOTHING``."""
        longest = max(len(each.drafts) for each in then)
        n = len(first.drafts)
        stream = rng.random((calls, n + longest + 4))
        out = np.full((calls, n + longest + 3), NOTHING, dtype=np.int64)
        blocks = verified(first, self.first_numbers(stream, n))
        lengths = (blocks != NOTHING).sum(1)
        for emitted in np.unique(lengths):
            at = np.flatnonzero(lengths == emitted)
            request = self.second_request(first, then, int(emitted))
            drafts = len(request.drafts)
            numbers = self.second_numbers(stream[at], int(emitted), n, drafts)
            out[at, :emitted] = blocks[at, :emitted]
            out[at, emitted] = SEPARATOR
            out[at, emitted + 1 : emitted + 2 + drafts] = verified(request, numbers)[:, : drafts + 1]
        return out


def verified(request: BatchRequest, numbers: Verified) -> Array:
    """Blocks of one request, with the numbers that are given."""
    engine = BatchEngine(len(request.target[0]), [request])
    out = np.full((len(numbers.accepting), engine.longest + 2), NOTHING, dtype=np.int64)
    drafts = len(request.drafts)
    last = numbers.last
    engine.request(0, out, numbers.accepting, last[:, :drafts], last[:, drafts:])
    return out


TWO_CALL_MISTAKES: dict[str, type[TwoCallEngine]] = {}
"""Name -> engine; all are wrong in the second call only."""


def _two_calls(name: str, about: str, **steps: Callable[..., Any]) -> None:
    TWO_CALL_MISTAKES[name] = type(name, (TwoCallEngine,), {**steps, "about": about})


def _by_position(engine: TwoCallEngine, stream: Array, drafts: int) -> Verified:
    """The coin of the position after the last draft that was tested draws the token there."""
    return Verified(stream[:, :drafts], stream[:, 1 : drafts + 2])


def _behind(stream: Array, place: int, drafts: int) -> Verified:
    return TwoCallEngine().first_numbers(stream[:, place:], drafts)


_two_calls(
    "coins_of_positions",
    "A coin belongs to a position: after a rejection the next call uses it again.",
    first_numbers=_by_position,
    second_numbers=lambda e, stream, emitted, first, drafts: _by_position(e, stream[:, emitted:], drafts),
)
_two_calls(
    "second_call_replays",
    "The second call starts from the seed of the first.",
    second_numbers=lambda e, stream, emitted, first, drafts: _behind(stream, 0, drafts),
)
_two_calls(
    "last_number_again",
    "The number that drew the last token accepts the next draft.",
    second_numbers=lambda e, stream, emitted, first, drafts: _behind(stream, first, drafts),
)
_two_calls(
    "rows_of_the_first_call",
    "The second call reads the target rows of the first.",
    second_request=lambda e, first, then, emitted: then[emitted - 1]._replace(
        target=[*first.target, *first.target][: len(then[emitted - 1].target)]
    ),
)
_two_calls(
    "cache_one_token_short",
    "The second call has the rows of a text that is one token shorter.",
    second_request=lambda e, first, then, emitted: then[emitted - 1]._replace(
        target=[then[max(emitted - 2, 0)].target[0], *then[emitted - 1].target[1:]]
    ),
)


LOGPROB_MISTAKES: dict[str, Callable[[Sequence[Array], Sequence[Array], int, int], float]] = {
    "of_the_draft": lambda target, draft, i, token: _log((draft[i] if i < len(draft) else target[i])[token]),
    "of_the_next_row": lambda target, draft, i, token: _log(target[min(i + 1, len(target) - 1)][token]),
    "of_the_residual": lambda target, draft, i, token: _log(_left(target, draft, i)[token]),
    "probabilities": lambda target, draft, i, token: float(target[i][token]),
    "in_base_2": lambda target, draft, i, token: _log(target[i][token]) / float(np.log(2)),
    "of_the_first_row": lambda target, draft, i, token: _log(target[0][token]),
}
"""Name -> what is reported for a token: (target rows, draft rows, position, token) -> number."""


def _log(mass: float) -> float:
    return float(np.log(mass)) if mass > 0 else -1e9


def _left(target: Sequence[Array], draft: Sequence[Array], i: int) -> Array:
    left = np.maximum(target[i] - draft[i], 0) if i < len(draft) else target[i]
    return left / left.sum() if left.sum() > 0 else target[i]
