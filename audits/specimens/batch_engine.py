"""Token verification of a flattened, ragged batch as serving engines run it, vectorised over calls.

It is the right partner of ``batch_mistakes``: every mistake there overrides one step of it.  Engines lay a
batch out so: drafts and rows one request after the other, one bonus row for each request.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
NOTHING = -2
"""In an answer: no token here.  A draft of -1 is a placeholder, so that -1 is taken."""


class BatchRequest(NamedTuple):
    """One request of a batch.

    Attributes:
        drafts: n drafted tokens; -1 is a placeholder.
        target: n+1 rows of V probabilities; with ``parameters``, of V weights (exponentials of logits).
        draft: n rows of V probabilities.
        parameters: settings of the request, or ``None``: rows are probabilities and nothing is applied.
    """

    drafts: Sequence[int]
    target: Sequence[Array]
    draft: Sequence[Array]
    parameters: Mapping[str, Any] | None = None


class BatchEngine:
    """Verifies a batch many times: the number of calls is the first axis of everything that is random."""

    float_type: Any = np.float64

    def __init__(self, vocabulary: int, requests: Sequence[BatchRequest]) -> None:
        self.vocabulary, self.requests = vocabulary, requests
        self.lengths = [len(request.drafts) for request in requests]
        self.batch, self.longest = len(requests), max(self.lengths)
        self.true_starts = [sum(self.lengths[:b]) for b in range(self.batch)]
        self.start = self.starts()
        rows = [self.target_rows(b) for b in range(self.batch)]
        self.target = [self.rounded(row) for own in rows for row in own[:-1]]
        self.bonus_rows = [self.rounded(own[-1]) for own in rows]
        self.draft_rows = [self.rounded(row) for request in requests for row in request.draft]

    # Rows
    def rounded(self, row: Array) -> Array:
        return np.asarray(row, dtype=self.float_type).astype(np.float64)

    def target_rows(self, b: int) -> list[Array]:
        request = self.requests[b]
        if request.parameters is None:
            return list(request.target)
        return [
            self.processed(row, self.parameters_of(b, i), request.drafts[:i], b, i)
            for i, row in enumerate(request.target)
        ]

    def parameters_of(self, b: int, i: int) -> Mapping[str, Any]:
        return self.requests[b].parameters or {}

    def processed(
        self, weights: Array, settings: Mapping[str, Any], before: Sequence[int], b: int, i: int
    ) -> Array:
        """Mask, penalties, temperature, min-p, top-k, top-p, in this order, on exponentials of logits."""
        weights = self.masked(np.array(weights), settings, b, i)
        weights = self.penalised(weights, settings, before, b, i)
        if not weights.sum() > 0:
            return weights
        temperature = self.temperature(settings, b, i)
        if temperature == 0:
            return np.eye(self.vocabulary)[int(np.argmax(weights))]
        sharpened = weights ** (1 / temperature)
        return self.cut(sharpened / sharpened.sum(), settings, b, i)

    def masked(self, weights: Array, settings: Mapping[str, Any], b: int, i: int) -> Array:
        if "allowed" not in settings:
            return weights
        allowed = _at(settings["allowed"], i)
        kept = np.zeros_like(weights)
        kept[allowed] = weights[allowed]
        return kept

    def penalised(
        self, weights: Array, settings: Mapping[str, Any], before: Sequence[int], b: int, i: int
    ) -> Array:
        for token in [*settings.get("past", []), *before]:
            if token >= 0:
                weights[token] *= math.exp(-settings.get("frequency_penalty", 0.0))
        return weights

    def temperature(self, settings: Mapping[str, Any], b: int, i: int) -> float:
        return float(settings.get("temperature", 1.0))

    def cut(self, row: Array, settings: Mapping[str, Any], b: int, i: int) -> Array:
        if "min_p" in settings:
            row = np.where(row >= settings["min_p"] * row.max(), row, 0)
        if "top_k" in settings:
            row = _without(row, np.argsort(-row, kind="stable")[settings["top_k"] :])
        if "top_p" in settings:
            order = np.argsort(-row, kind="stable")
            before = np.cumsum(row[order]) - row[order]
            row = _without(row, order[before >= settings["top_p"] * row.sum()])
        return row / row.sum()

    # Where rows are
    def starts(self) -> list[int]:
        return list(self.true_starts)

    def target_index(self, b: int, i: int) -> int:
        return self.start[b] + i

    def draft_index(self, b: int, i: int) -> int:
        return self.start[b] + i

    def accepting_target_index(self, b: int, i: int) -> int:
        return self.target_index(b, i)

    def accepting_draft_index(self, b: int, i: int) -> int:
        return self.draft_index(b, i)

    def residual_indices(self, b: int, i: int) -> tuple[int, int]:
        return self.target_index(b, i), self.draft_index(b, i)

    def bonus_row(self, b: int) -> Array:
        return self.bonus_rows[b]

    def drafted(self, b: int, i: int) -> int:
        return int(self.requests[b].drafts[i])

    # Rules
    def ratio(self, p: float, q: float) -> float:
        return float(p > 0) if q <= 0 else min(1.0, p / q)

    def acceptance(self, target: Array, draft: Array, token: int, b: int, i: int) -> float:
        return 0.0 if token < 0 else self.ratio(target[token], draft[token])

    def residual(self, target: Array, draft: Array, token: int) -> Array:
        left = np.maximum(target - draft, 0)
        return left if left.sum() > 0 else target

    def correction(self, b: int, i: int, coins: Array) -> Array:
        token = self.drafted(b, i)
        target_index, draft_index = self.residual_indices(b, i)
        target = _at(self.target, target_index)
        weights = target if token < 0 else self.residual(target, _at(self.draft_rows, draft_index), token)
        return self.pick(weights, coins)

    def bonus_weights(self, b: int) -> Array:
        return self.bonus_row(b)

    def pick(self, weights: Array, coins: Array) -> Array:
        """One token for each coin, by inversion of the cumulative sums."""
        total = weights.sum()
        if not total > 0:
            return np.zeros(len(coins), dtype=np.int64)
        sums = np.cumsum(weights) / total
        return np.minimum(np.searchsorted(sums, coins, side="right"), self.vocabulary - 1)

    def accepts(self, coins: Array, chance: float) -> Array:
        return coins < chance

    # Random numbers
    def coins(self, rng: np.random.Generator, calls: int) -> tuple[Array, Array, Array]:
        """Coins that accept [calls, N], that correct [calls, N], and of the bonus tokens [calls, B]."""
        places = max(sum(self.lengths), 1)
        return rng.random((calls, places)), rng.random((calls, places)), rng.random((calls, self.batch))

    def run(self, calls: int, rng: np.random.Generator) -> Array:
        """Tokens [calls, B, longest + 2]; ``NOTHING`` follows the last."""
        accepting, correcting, bonus = self.coins(rng, calls)
        out = np.full((calls, self.batch, self.longest + 2), NOTHING, dtype=np.int64)
        for b in range(self.batch):
            self.request(b, out[:, b], accepting, correcting, bonus)
        return out

    def request(self, b: int, out: Array, accepting: Array, correcting: Array, bonus: Array) -> None:
        """Fill the answers of one request."""
        alive = np.ones(len(out), dtype=bool)
        for i in range(self.lengths[b]):
            place = self.true_starts[b] + i
            accepted = alive & self.accepts(accepting[:, place], self.chance(b, i))
            rejected = alive & ~accepted
            out[accepted, i] = self.drafted(b, i)
            if rejected.any():
                out[rejected, i] = self.correction(b, i, correcting[rejected, place])
            alive = accepted
        out[alive, self.lengths[b]] = self.pick(self.bonus_weights(b), bonus[alive, b])

    def chance(self, b: int, i: int) -> float:
        """The probability that draft i of request b is accepted."""
        target = _at(self.target, self.accepting_target_index(b, i))
        draft = _at(self.draft_rows, self.accepting_draft_index(b, i))
        return self.acceptance(target, draft, self.drafted(b, i), b, i)


def _at(rows: Sequence[Any], index: int) -> Any:
    """A row; an index that is out of range reads the last or first, as memory has something there."""
    return rows[min(max(index, -len(rows)), len(rows) - 1)]


def _without(row: Array, tokens: Any) -> Array:
    row = row.copy()
    row[tokens] = 0
    return row


RIGHT_PICKS = ("inversion", "inversion from the end", "Gumbel race", "exponential race", "sorted inversion")
RIGHT_TESTS = ("u < p/q", "u q < p", "log u < log p - log q")


def right_engine(pick: str, test: str, float_type: Any) -> type[BatchEngine]:
    """A right engine in another style: how it draws, how it accepts, and the precision of its rows.

    Args:
        pick: of ``RIGHT_PICKS``.
        test: of ``RIGHT_TESTS``.
        float_type: of rows; arithmetic is float64.
    """

    def choose(self: BatchEngine, weights: Array, coins: Array) -> Array:
        support = np.flatnonzero(weights > 0)
        if not len(support) or pick == "inversion":
            return BatchEngine.pick(self, weights, coins)
        masses = weights[support] / weights[support].sum()
        if pick == "inversion from the end":
            return support[::-1][_inverted(masses[::-1], coins)]
        if pick == "sorted inversion":
            order = np.argsort(-masses, kind="stable")
            return support[order][_inverted(masses[order], coins)]
        # A race needs a number for each token: they follow from a generator that the coins seed.
        rng = np.random.default_rng((coins[:4] * 2**53).astype(np.uint64))
        noise = rng.exponential(size=(len(coins), len(support)))
        if pick == "exponential race":
            return support[(masses / noise).argmax(1)]
        return support[(np.log(masses) - np.log(noise)).argmax(1)]

    def accepts(self: BatchEngine, coins: Array, chance: float) -> Array:
        if test == "u < p/q":
            return coins < chance
        with np.errstate(divide="ignore"):
            return np.log(coins) < np.log(chance) if test.startswith("log") else ~(coins >= chance)

    name = f"{pick}, {test}, {np.dtype(float_type).name}"
    return type(name, (BatchEngine,), {"pick": choose, "accepts": accepts, "float_type": float_type})


def _inverted(masses: Array, coins: Array) -> Array:
    return np.minimum(np.searchsorted(np.cumsum(masses), coins, side="right"), len(masses) - 1)
