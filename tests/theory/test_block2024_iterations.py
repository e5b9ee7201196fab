"""Claims of block2024 on several calls: Theorem 2 and what is true in its place.

Given the output x*, the calls of a lossless one-path verifier are independent of what was drafted before.
A call that starts behind x*_{1:s} accepts at least i tokens with probability D(x*_{s+1:s+i}), the node
budget, which depends on the probabilities of the tokens of x* only.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from counted import counted
from spectheory import instances, output_law
from spectheory.exact.iteration import decoded_tokens_law, expected_decoded_tokens, first_tokens_law
from spectheory.pairs.instances import random_rational
from theory_examples import block_on_prefix, forced_start_pair

ONE, ZERO = Fraction(1), Fraction(0)
Rows = Sequence[tuple[Fraction, Fraction]]
"""(p, q) of every token of the output x*, with p > 0."""


def token_budgets(rows: Rows) -> list[Fraction]:
    """P(τ ≥ i | x*) of token verification for i = 0..L."""
    budgets = [ONE]
    for p, q in rows:
        budgets.append(budgets[-1] * min(ONE, q / p))
    return budgets


def block_budgets(rows: Rows) -> list[Fraction]:
    """P(τ ≥ i | x*) of block verification, w q/p along the path."""
    budgets, weight, ratio = [ONE], ONE, ONE
    for p, q in rows:
        weight, ratio = (min(ONE, weight * p / q), ratio * q / p) if q else (ONE, ZERO)
        budgets.append(weight * ratio)
    return budgets


def tokens_given_the_output(
    budgets: Callable[[Rows], list[Fraction]], rows: Rows, draft_length: int, calls: int, start: int = 0
) -> dict[int, Fraction]:
    """The law of N(calls) given x*; N stops at the end of the rows."""
    if calls == 0 or start >= len(rows):
        return {start: ONE}
    kept = [*budgets(rows[start : start + draft_length]), ZERO]
    law: dict[int, Fraction] = {}
    for accepted, (here, longer) in enumerate(itertools.pairwise(kept)):
        if here > longer:
            after = min(len(rows), start + accepted + 1)
            for end, prob in tokens_given_the_output(budgets, rows, draft_length, calls - 1, after).items():
                law[end] = law.get(end, ZERO) + (here - longer) * prob
    return law


def at_least(law: dict[int, Fraction], tokens: int) -> Fraction:
    return sum((prob for end, prob in law.items() if end >= tokens), ZERO)


def random_output(seed: int, length: int) -> Rows:
    """Rows along an output, with zeros of the draft, ties and certain tokens."""
    rng = np.random.default_rng([231, seed])
    values = [Fraction(n, 4) for n in range(5)]
    return [(values[rng.integers(1, 5)], values[rng.integers(5)]) for _ in range(length)]


ZEROS = [(ONE, ONE)] * 4 + [(Fraction(3, 4), ONE), (ONE, Fraction(3, 4)), (ONE, ONE)] + [(ONE, ZERO)] * 3
"""The output 0^10 on the pair of theory.md Statement 4.6."""


@counted
def test_block_is_never_behind_token_on_any_output() -> Iterator[None]:
    """theory.md Statement 4.7: P(N(i) ≥ n | x*) of block is at least token's, for every i, n and x*."""
    strict = 0
    for number in range(200):
        draft_length, rows = 1 + number % 4, random_output(number, 9)
        for calls in (1, 2, 3, 4):
            block, token = (
                tokens_given_the_output(budgets, rows, draft_length, calls)
                for budgets in (block_budgets, token_budgets)
            )
            for tokens in range(1, len(rows) + 1):
                assert at_least(block, tokens) >= at_least(token, tokens)
                strict += at_least(block, tokens) > at_least(token, tokens)
            yield
    assert strict > 100


@counted
def test_token_verification_gains_from_a_later_start() -> Iterator[None]:
    """The step of Statement 4.7 that fails for block.

    Started later, token's calls end later, on every output.
    """
    block_fails = 0
    for number in range(200):
        rows = random_output(number, 9)
        for budgets in (token_budgets, block_budgets):
            early, late = (tokens_given_the_output(budgets, rows, 3, 2, start) for start in (0, 1))
            ends = range(1, len(rows) + 1)
            monotone = all(at_least(early, end) <= at_least(late, end) for end in ends)
            if budgets is token_budgets:
                assert monotone
            block_fails += not monotone
        yield
    assert block_fails > 0


@counted
def test_theorem_2_is_false_for_two_calls() -> Iterator[None]:
    """E[N(2)] = 57/8 < 29/4, Lemma 5 at x* = 0^10, ℓ = 8: 3/4 < 1, and f(4) = 1 > f(5) = 3/4."""
    pair = forced_start_pair()
    block = expected_decoded_tokens("block", pair, 2, draft_length=4)
    shorter = expected_decoded_tokens(block_on_prefix(3), pair, 2, draft_length=4)
    assert (block[0], shorter[0]) == (5, 4)
    assert (block[1], shorter[1]) == (Fraction(57, 8), Fraction(29, 4))
    assert first_tokens_law(block_on_prefix(3), pair, 5, draft_length=4).total_variation == 0
    on_zeros = [tokens_given_the_output(block_budgets, ZEROS, length, 2) for length in (4, 3)]
    assert [at_least(law, 8) for law in on_zeros] == [Fraction(3, 4), 1]
    f = [at_least(tokens_given_the_output(block_budgets, ZEROS, 4, 1, start), 8) for start in range(3, 8)]
    assert f[1] == 1 > f[2] == Fraction(3, 4)  # started behind 4 and behind 5 tokens
    yield


@counted
def test_dominance_orders_the_means_of_increasing_functions() -> Iterator[None]:
    """Lemma 7: larger tails give larger means of increasing functions, and not of all functions."""
    rng = np.random.default_rng(226)
    others = 0
    for _ in range(100):
        tails = np.sort(rng.integers(0, 100, size=(2, 6)), axis=1)[:, ::-1]  # P(X ≥ 1..6), in percent
        laws = [
            -np.diff([100, *row, 0]) for row in (np.maximum(*tails), np.minimum(*tails))
        ]  # larger, smaller
        steps = rng.integers(0, 9, size=7)
        larger, smaller = (law @ np.cumsum(steps) for law in laws)
        assert larger >= smaller
        larger, smaller = (law @ steps for law in laws)
        others += larger < smaller
        yield
    assert others > 10


@counted
def test_the_conditional_law_is_that_of_the_enumeration() -> Iterator[None]:
    """Second route: the law of N(2) from the budgets along every output, summed over outputs."""
    for number in range(6):
        pair = random_rational([232, number], 2, 5, zero_probability=0.1)
        for name, budgets in (("token", token_budgets), ("block", block_budgets)):
            expected = decoded_tokens_law(name, pair, 2, draft_length=2)[1]
            summed = [ZERO] * len(expected)
            for leaf in range(2**5):
                path = [leaf >> shift & 1 for shift in range(4, -1, -1)]
                rows, prob, node = [], ONE, 0
                for depth, token in enumerate(path):
                    p, q = pair.target[depth][node][token], pair.draft[depth][node][token]
                    rows.append((p, q))
                    prob, node = prob * p, 2 * node + token
                if prob:
                    for tokens, share in tokens_given_the_output(budgets, rows, 2, 2).items():
                        # two calls of 3 tokens can pass the end of the rows, where N is at least 5
                        summed[tokens] += prob * share
            assert summed[:5] == list(expected[:5])
            assert summed[5] == sum(expected[5:])
            yield


@counted
def test_first_calls_are_ordered_on_every_output() -> Iterator[None]:
    """Theorem 2 and Lemma 5 for i = 1: no verifier of the list reaches more than block at any node."""
    for number in range(40):
        pair = random_rational([233, number], 2 + number % 2, 2)
        best = output_law("block", pair).accepted_masses
        for other in ("token", block_on_prefix(1)):
            found = output_law(other, pair)
            assert found.total_variation == 0
            for mine, theirs in zip(best, found.accepted_masses, strict=True):
                assert (mine >= theirs).all()
        yield


@counted
def test_greedy_block_wins_on_some_pairs_and_loses_on_others() -> Iterator[None]:
    """C.1 and Table 4.

    Over three calls greedy_block is ahead of block on some pairs, behind token on others.
    """
    ahead = behind = below_token = 0
    for number in range(24):
        pair = random_rational([101, number], 2, 8)
        greedy, block, token = (
            expected_decoded_tokens(name, pair, 3, draft_length=2)
            for name in ("greedy_block", "block", "token")
        )
        assert greedy[0] >= block[0] >= token[0]
        ahead += all(g >= b for g, b in zip(greedy, block, strict=True)) and greedy != block
        behind += any(g < b for g, b in zip(greedy, block, strict=True))
        below_token += any(g < t for g, t in zip(greedy, token, strict=True))
        if number == 17:
            assert greedy[2] == Fraction(2357884457, 372556800)
            assert token[2] == Fraction(37551790187, 5867769600) > greedy[2]
        yield
    assert min(ahead, behind, below_token) >= 1
    toy = [expected_decoded_tokens(name, instances.two_token(2), 3)[2] for name in ("greedy_block", "block")]
    assert toy == [Fraction(59, 9), Fraction(60, 9)]
