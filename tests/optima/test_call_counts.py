"""Several calls: one linear program over all calls at once, theory.md Statements 4.8 to 4.10."""

from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from later import Later
from spectheory import ModelPair, output_law
from spectheory.optima import fewest_calls, most_decoded_tokens
from spectheory.pairs.extension import ExtendedPair
from spectheory.pairs.instances import (
    early_stop,
    forced_start,
    random_rational,
)

optimize = Later("scipy.optimize")
sparse = Later("scipy.sparse")

ONE = Fraction(1)
Context = tuple[int, ...]


class Unrolled:
    """All calls in one linear program, the second route: no recursion over starts.

    Variables: y_j(s) = P(call j starts behind s), u_j(s, a) = P(it does and keeps a).  The output (a, t) has
    p(t|sa) u_j(s, a) - u_j(s, at); what flows into a start flows out of it.
    """

    def __init__(self, pair: ModelPair, draft_length: int, calls: int, num_tokens: int | None = None) -> None:
        self.pair, self.models = pair, ExtendedPair(pair)
        self.entries: dict[str, list[tuple[int, int, float]]] = {"<=": [], "==": []}
        self.columns: dict[Any, int] = {}
        self.gain: dict[int, float] = defaultdict(float)
        self.counts = {"<=": 0, "==": 0}
        starts: set[Context] = {()}
        for call in range(calls):
            flow: dict[Context, list[tuple[int, float]]] = defaultdict(list)
            for start in sorted(starts):
                if num_tokens is not None:
                    self.gain[self.column(call, start, ())] -= 1
                length = draft_length if num_tokens is None else num_tokens - len(start) - 1
                self.state_call(call, start, min(draft_length, length), flow)
            ended = {s for s in flow if num_tokens is not None and len(s) >= num_tokens}
            for after in set(flow) - ended if call + 1 < calls else ():
                self.add("==", [(self.column(call + 1, after, ()), -1.0), *flow[after]])
            if num_tokens is None:  # the last call's ends are what is decoded
                for after in flow if call + 1 == calls else ():
                    for column, value in flow[after]:
                        self.gain[column] += len(after) * value
            starts = set(flow) - ended

    def column(self, call: int, start: Context, node: Context) -> int:
        return self.columns.setdefault((call, start, node), len(self.columns))

    def add(self, sense: str, terms: list[tuple[int, float]]) -> None:
        self.entries[sense] += [(self.counts[sense], column, value) for column, value in terms]
        self.counts[sense] += 1

    def state_call(self, call: int, start: Context, length: int, flow: Any) -> None:
        nodes: list[tuple[Context, float]] = [((), 1.0)]
        for node, draft_prob in nodes:
            mine = self.column(call, start, node)
            if node:
                self.add("<=", [(mine, 1.0), (self.column(call, start, ()), -draft_prob)])
            rows = self.models.row(self.pair.target, start + node).astype(float)
            for token, p in enumerate(rows):
                if p > 0:
                    longer = (*node, token)
                    flow[start + longer].append((mine, p))
                    if len(node) < length:
                        q = float(self.models.row(self.pair.draft, start + node)[token])
                        child = self.column(call, start, longer)
                        self.add("<=", [(child, 1.0), (mine, -p)])
                        flow[start + longer].append((child, -1.0))
                        nodes.append((longer, draft_prob * q))

    def value(self) -> float:
        total = len(self.columns)
        matrices = {}
        for sense, entries in self.entries.items():
            row, column, value = np.array(entries or [(0, 0, 0.0)]).T
            shape = max(1, self.counts[sense]), total
            matrices[sense] = sparse.coo_array(
                (value, (row.astype(int), column.astype(int))), shape=shape
            ).tocsr()
        costs = [-self.gain[column] for column in range(total)]
        bounds = [(1, 1) if key == (0, (), ()) else (0, None) for key in self.columns]
        limits = {sense: np.zeros(matrix.shape[0]) for sense, matrix in matrices.items()}
        found = optimize.linprog(costs, matrices["<="], limits["<="], matrices["=="], limits["=="], bounds)
        assert found.status == 0, found.message
        return -float(found.fun)


def chain(seed: int, depth: int) -> ModelPair:
    """Random rows along 000..., rough and often certain; everywhere else the draft is always wrong.

    Of every second one the first half is forced.  What follows is drafted too often, then too rarely.
    """
    rng = np.random.default_rng([413, seed])
    values = [Fraction(n, 4) for n in (0, 1, 2, 3, 3, 4, 4, 4)]
    picked = [[values[n] for n in rng.integers(8, size=2)] for _ in range(depth + 1)]
    if seed % 2:
        half = depth // 2
        picked[:half] = [[ONE, ONE]] * half
        rare, often = (Fraction(int(n), 16) for n in rng.integers(9, 16, size=2))
        picked[half:] = [[rare, ONE], [ONE, often], [ONE, ONE]] + [[ONE, ONE - ONE]] * depth
    return on_zeros(picked[: depth + 1])


def on_zeros(rows: list[list[Fraction]]) -> ModelPair:
    """(p, q) of token 0 behind 000..; everywhere else the draft is always wrong."""
    depth = len(rows) - 1
    target, draft = {}, {}
    for below in range(depth + 1):
        for number in range(2**below):
            context = tuple(number >> shift & 1 for shift in reversed(range(below)))
            p, q = rows[below] if number == 0 else (ONE, Fraction(0))
            target[context], draft[context] = [p, 1 - p], [q, 1 - q]
    return ModelPair.from_contexts(target, {c: row for c, row in draft.items() if len(c) < depth}, depth)


@pytest.mark.parametrize("number", range(6))
def test_the_recursion_is_one_linear_program(number: int) -> None:
    """Statement 4.8: E[N(2)] and the calls for n tokens, against all calls in one program."""
    size, length, tokens = [(2, 1, 4), (2, 2, 4), (3, 1, 3)][number % 3]
    pair = random_rational([414, number], size, 2 * length + 1, zero_probability=number % 2 / 4)
    most = most_decoded_tokens(pair, 2, draft_length=length)
    assert abs(Unrolled(pair, length, 2).value() - float(most.value)) < 1e-7
    fewest = fewest_calls(pair, tokens, draft_length=length)
    assert abs(Unrolled(pair, length, tokens, tokens).value() + float(fewest.value)) < 1e-7
    floats = most_decoded_tokens(pair.to_float(), 2, draft_length=length)
    assert isinstance(floats.value, float)
    assert abs(floats.value - most.value) < 1e-12


def test_the_first_call_is_a_lossless_verifier_that_earns_the_optimum() -> None:
    """R(a,t) = p(t|a) x(a) - x(a,t) ≥ 0 and x ≤ q; with block verification in the second call it earns it."""
    for pair, length in ((early_stop(3), 3), (forced_start(), 4), *((chain(s, 7), 3) for s in range(4))):
        most = most_decoded_tokens(pair, 2, draft_length=length)
        models, total = ExtendedPair(pair), Fraction(0)
        for depth, masses in enumerate(most.first_call):
            assert (masses <= pair.draft_path_probs(depth)).all()
            below = most.first_call[depth + 1] if depth < length else np.zeros(2 ** (depth + 1), dtype=int)
            law = (masses[:, None] * pair.target[depth]).ravel() - below
            assert (law >= 0).all()
            for number in np.flatnonzero(law):
                start = pair.context(depth + 1, int(number))
                second = ModelPair(
                    tuple(models.levels_below(pair.target, start, length + 1)),
                    tuple(models.levels_below(pair.draft, start, length)),
                    pair.vocab,
                )
                total += law[number] * (depth + 1 + output_law("block", second).block_efficiency)
        assert total == most.value


def test_no_verifier_needs_fewer_calls_than_block() -> None:
    """Statement 4.9, on rough chains where two calls can decode more, and on random pairs."""
    ahead = 0
    for seed in range(16):
        pair = chain(seed, 7)
        for tokens in (3, 5, 8):
            fewest = fewest_calls(pair, tokens, draft_length=3)
            assert fewest.value == fewest.block
        most = most_decoded_tokens(pair, 2, draft_length=3)
        ahead += most.value > most.block
    assert ahead >= 1  # partner: for tokens in two calls the two differ on the same pairs
    for number in range(12):
        pair = random_rational([417, number], 2 + number % 2, 4, zero_probability=number % 3 / 6)
        fewest = fewest_calls(pair, 5, draft_length=1 + number % 3)
        assert fewest.value == fewest.block


def test_a_token_for_free_never_costs_block_a_call() -> None:
    """The inequality behind Statement 4.9: Σ_t p(t|∅) C(t) ≤ C(∅), n tokens of the text in both."""
    for seed in range(30):
        pair = chain(seed, 6)
        here = fewest_calls(pair, 7, draft_length=3).block
        models = ExtendedPair(pair)
        later = Fraction(0)
        for token, prob in enumerate(pair.target[0][0]):
            below = ModelPair(
                tuple(models.levels_below(pair.target, (token,), 6)),
                tuple(models.levels_below(pair.draft, (token,), 5)),
                pair.vocab,
            )
            later += prob * fewest_calls(below, 6, draft_length=3).block
        assert later <= here


def test_the_largest_loss_of_two_calls() -> None:
    """Statement 4.10: at most (L-2)²/(4(L-1)) tokens, attained; none for L ≤ 2."""
    for length, loss in ((3, Fraction(1, 8)), (4, Fraction(1, 3))):
        most = most_decoded_tokens(early_stop(length), 2, draft_length=length)
        assert most.value - most.block == loss == Fraction((length - 2) ** 2, 4 * (length - 1))
    losses = []
    for seed in range(60):
        length = 1 + seed % 3
        most = most_decoded_tokens(chain(seed, 2 * length + 1), 2, draft_length=length)
        losses.append((length, most.value - most.block))
    assert {loss for length, loss in losses if length < 3} == {0}
    assert 0 < max(loss for _, loss in losses) <= Fraction(1, 8)
