"""The best length rules at a price per verified row (theory.md Statements 8.11 and 8.12)."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from draft_values import FAIR, NINE, accepted, before_unlikely, dropped_by, rows_pair
from spectheory import ModelPair, instances, optimum, output_law
from spectheory.optima import solve_exact
from spectheory.optima.price_per_row import (
    best_stopping_rule,
    dropping_program,
    gain_of_dropping,
    price_bound,
)
from spectheory.pairs.contexts import Context, all_contexts
from spectheory.pairs.drafts import KeptDrafts, Shortened
from spectheory.pairs.drafts.repairs import kept_weights, with_cemetery, with_conditioned_rows
from spectheory.pairs.instances import random_rational
from spectheory.verification.verifier import Verifier

F = Fraction
PAIRS = [instances.two_token(2), *(random_rational([12, seed], 2, 2) for seed in range(5))]


def stop_trees(context: Context, size: int, length: int) -> Iterator[set[Context]]:
    """All sets of contexts at which a predictable rule goes on."""
    yield set()
    if len(context) < length:
        below = [list(stop_trees((*context, token), size, length)) for token in range(size)]
        for parts in product(*below):
            yield {context}.union(*parts)


@pytest.mark.parametrize("price", ["0", "1/5", "1/2", "9/10", "1"])
def test_stopping_rule_is_the_best_of_all_stop_trees(price: str) -> None:
    """V = 2, L = 2, block verification; the rule found earns what it promises."""
    for pair in PAIRS:

        def value(goes_on: set[Context], pair: ModelPair = pair) -> Fraction:
            def rule(tokens: Context, rows: Any) -> int:
                return next((d for d in range(2) if tokens[:d] not in goes_on), 2)

            process = Shortened(1, rule)
            verified = sum(len(path) * prob for (path,), prob in process.kept_law(pair).items())
            law = output_law("block", pair, process)
            assert law.total_variation == 0
            return law.block_efficiency - F(price) * F(int(verified.p), int(verified.q))

        best = best_stopping_rule(pair, price)
        assert best.value == max(value(goes_on) for goes_on in stop_trees((), 2, 2))
        assert best.value == value(
            {text for text in all_contexts(2, 1) if best(text + (0,) * (2 - len(text))) > len(text)}
            if best.value > 1
            else set()
        )


@pytest.mark.parametrize("price", ["1/5", "1/2", "9/10"])
def test_rules_are_ordered_and_the_bound_is_attained(price: str) -> None:
    """(i) ≤ (ii) ≤ (iii); keeping block's node masses attains (iii) with repair B."""
    gaps = set()
    for pair in PAIRS:
        stopping, bound = best_stopping_rule(pair, price).value, price_bound(pair, price)
        solution = solve_exact(dropping_program(pair, price))
        assert solution.gap == 0
        dropped = 1 + solution.value
        assert stopping <= dropped <= bound
        gaps |= {stopping < dropped, dropped < bound}
        masses = {
            pair.context(depth, number): mass
            for depth, level in enumerate(output_law("block", pair).accepted_masses)
            for number, mass in enumerate(level)
        }
        law = {
            text: mass - sum(masses.get((*text, token), 0) for token in range(2))
            for text, mass in masses.items()
        }
        found = output_law("block", with_cemetery(KeptDrafts(law), pair))
        assert found.total_variation == 0
        verified = sum(mass for text, mass in masses.items() if text)
        assert found.block_efficiency - F(price) * verified == bound
        assert found.block_efficiency - 1 == verified  # every kept token is accepted
    assert True in gaps


def test_does_dropping_pay() -> None:
    """The minimal pairs of 8.11, and the covariance against the laws of repair B and of a coin."""
    for target, values in (
        (NINE, (1, F(9, 10), F(81, 100), F(9, 10))),
        (FAIR, (F(3, 5), F(27, 50), F(9, 20), F(1, 2))),
        (["99/100", "1/100"], (F(91, 100), F(819, 1000), F(891, 1000), F(9, 10))),
    ):
        keep_all, _, *others = dropped_by(target, NINE, 1)
        assert (keep_all, *others) == values
        assert gain_of_dropping(target, NINE, ["1", "0"]) == values[3] - values[1]
    drop = Shortened(1, lambda tokens, rows: int(tokens[0] != 2))
    lucky = rows_pair(["3/5", "2/5", "0"], ["1/2", "1/3", "1/6"], 1)
    assert output_law("token", lucky, drop).prefix_law(1).tolist() == [F(3, 5), F(2, 5), 0]
    pays = set()
    for seed in range(12):
        pair = random_rational([811, seed], 3, 1)
        kept = 1 - pair.draft[0][0][2]
        coin = Shortened(1, lambda tokens, rows, kept=kept: {0: 1 - kept, 1: kept})
        keep_all, at_random, conditioned, cemetery = (
            accepted("token", *given)
            for given in (
                (pair,),
                (pair, coin),
                (pair, with_conditioned_rows(drop, pair)),
                (with_cemetery(drop, pair),),
            )
        )
        assert conditioned <= cemetery <= keep_all
        gain = gain_of_dropping(pair.target[0][0], pair.draft[0][0], [F(1), F(1), F(0)])
        assert cemetery - at_random == gain
        pays.add(gain > 0)
    assert pays == {True, False}


def test_gain_of_keeping_with_a_probability() -> None:
    """It is no longer the covariance of being kept and being accepted, which is 4/225."""
    pair, keep = rows_pair(FAIR, NINE, 1), [F(5, 9), F(1)]
    drop = Shortened(1, lambda tokens, rows: {0: 1 - keep[tokens[0]], 1: keep[tokens[0]]})
    coin = Shortened(1, lambda tokens, rows: {0: F(2, 5), 1: F(3, 5)})
    gain = accepted("token", with_cemetery(drop, pair)) - accepted("token", pair, coin)
    assert gain_of_dropping(FAIR, NINE, keep) == gain == F(6, 25)


@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (2, 3)])
def test_cemetery_is_lossless_optimal_and_at_least_conditioned(shape: tuple[int, int]) -> None:
    """Random rules; B has the optimum of the kept drafts, by the linear program (Statement 8.10)."""
    differs = set()
    for seed in range(4 if shape == (2, 2) else 2):
        pair = random_rational([810, seed], *shape)
        lengths = {
            path: (seed + 3 * number + number // 2) % (shape[1] + 1)
            for number, path in enumerate(product(range(shape[0]), repeat=shape[1]))
        }
        drop = Shortened(1, lambda tokens, rows, lengths=lengths: lengths[tokens])
        repaired = with_cemetery(drop, pair)
        laws = {name: output_law(name, repaired) for name in ("token", "block", "naive_sampling")}
        conditioned = {
            name: output_law(name, pair, with_conditioned_rows(drop, pair)) for name in ("token", "block")
        }
        assert all(law.total_variation == 0 for law in (*laws.values(), *conditioned.values()))
        assert laws["block"].block_efficiency == optimum(repaired).value
        if shape == (2, 2):
            assert laws["block"].block_efficiency == optimum(pair, drop).value
        assert sum(kept_weights(drop, pair)[()]) == 1
        for name, law in conditioned.items():
            assert laws[name].block_efficiency >= law.block_efficiency
            differs.add(laws[name].block_efficiency > law.block_efficiency)
    assert True in differs


class CorrectionOnly(Verifier):
    """Block verification on kept tokens that draws from max(w p - s, 0) and leaves the last test as it is."""

    name = "correction_only"
    source = "known-wrong"

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Any:
        from spectheory import Outcome, verifiers

        size, block = paths.shape[-1], verifiers["block"]
        whole = block.outcome(paths, target_rows, draft_rows)
        ended = paths[:, 0, :] == target_rows.shape[-1] - 1
        stops = whole.stop_probs * 1
        for number, path in enumerate(ended):
            if path.any():
                kept = int(path.argmax())
                if kept:
                    short = block.outcome(
                        paths[number : number + 1, :, :kept],
                        target_rows[number : number + 1, :, : kept + 1],
                        draft_rows[number : number + 1, :, :kept],
                    )
                    stops[number] = stops[number] * 0
                    stops[number, :, : kept + 1] = short.stop_probs[0]
        assert size == 2
        return Outcome(stops, whole.correction)


def test_repair_must_change_the_last_test_of_block() -> None:
    """N < L: only the correction changed leaves 1/32 with block; repair B leaves 0 (§9, A3)."""
    pair = rows_pair(FAIR, ["3/4", "1/4"], 2)
    drop = Shortened(1, lambda tokens, rows: 2 - tokens[1])
    repaired = with_cemetery(drop, pair)
    assert output_law(CorrectionOnly(), repaired).total_variation == F(1, 32)
    assert output_law("block", repaired).total_variation == 0
    unlikely = with_cemetery(Shortened(1, before_unlikely), rows_pair(NINE, NINE, 2))
    for name in ("greedy_multipath", "mixed_multipath", "multi_round", "traversal"):
        assert output_law(name, unlikely, 2).total_variation == 0  # own-token drops per path
