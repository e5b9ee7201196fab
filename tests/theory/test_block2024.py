"""Claims of block2024 on one call."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np

from counted import counted
from counted_numbers import operations_of
from spectheory import instances, output_law
from spectheory.exact.iteration import completed_law, modified_pair
from spectheory.optima import block_transport_optimum, single_path_program, solve_exact
from spectheory.pairs.contexts import numbered_context
from spectheory.pairs.instances import random_float, random_rational
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.one_path.block import Block
from table import every_pair

Path = tuple[int, ...]


def exact_pairs() -> Iterator[ModelPair]:
    """The shared pairs of at most 27 leaves."""
    return (pair for pair in every_pair() if pair.vocab_size**pair.draft_length <= 27)


def gain_of_block(pair: ModelPair) -> Fraction:
    """Its block efficiency over that of token verification."""
    return output_law("block", pair).block_efficiency / output_law("token", pair).block_efficiency


def weights(pair: ModelPair) -> list[np.ndarray]:
    """w of block verification by depth, on drafted contexts; elsewhere 0."""
    levels = [np.array([Fraction(1)], dtype=object)]
    for target, draft in zip(pair.target[:-1], pair.draft, strict=True):
        levels.append(
            np.array(
                [
                    min(Fraction(1), w * p / q) if q else Fraction(0)
                    for w, p_row, q_row in zip(levels[-1], target, draft, strict=True)
                    for p, q in zip(p_row, q_row, strict=True)
                ],
                dtype=object,
            )
        )
    return levels


@counted
def test_no_valid_verifier_keeps_a_prefix_more_often() -> Iterator[None]:
    """Lemma 4, node by node: the largest x(a) of the program of one path is w(a) q(a)."""
    for number in range(25):
        pair = random_rational([221, number], 2 + number % 2, 2)
        program, w = single_path_program(pair), weights(pair)
        for depth in range(1, pair.draft_length + 1):
            for node in range(pair.vocab_size**depth):
                p = pair.target_path_probs(depth)[node]
                if p == 0:
                    continue
                objective = np.array([Fraction(0)] * program.num_variables, dtype=object)
                objective[sum(pair.vocab_size**d for d in range(depth)) + node] = p
                best = solve_exact(replace(program, objective=objective, repair=None)).value
                assert best == w[depth][node] * pair.draft_path_probs(depth)[node]
                yield


@counted
def test_block_is_strictly_better_exactly_where_the_weight_can_recover() -> Iterator[None]:
    """Block beats token iff some drafted prefix has 0 < w < 1 and a drafted next token with p > q."""
    verdicts = set()
    for pair in exact_pairs():
        w = weights(pair)
        recovers = any(
            0 < w[depth][node] < 1 and pair.draft_path_probs(depth)[node] > 0 and p > q > 0
            for depth in range(pair.draft_length)
            for node in range(pair.vocab_size**depth)
            for p, q in zip(pair.target[depth][node], pair.draft[depth][node], strict=True)
        )
        assert gain_of_block(pair) >= 1
        assert (gain_of_block(pair) > 1) == recovers
        verdicts.add(recovers)
        yield
    assert verdicts == {True, False}


@counted
def test_the_toy_algorithm_is_block_verification() -> Iterator[None]:
    """Section 2: on AA, AB, BA, BB the law of τ, with the printed acceptances 1/4, 1, 1/2, 1."""
    pair = instances.two_token(2)
    printed = {
        (0, 0): (Fraction(3, 4), 0, Fraction(1, 4)),
        (0, 1): (0, 0, 1),
        (1, 0): (0, Fraction(1, 2), Fraction(1, 2)),
        (1, 1): (0, 0, 1),
    }
    for path, law in printed.items():
        target = np.array([pair.target[0][0]] * 3)[None, None]
        draft = np.array([pair.draft[0][0]] * 2)[None, None]
        stops = Block().outcome(np.array([[path]]), target, draft).stop_probs[0, 0]
        assert list(stops) == list(law)
        yield


@counted
def test_the_printed_argmin_is_the_first_accepted_index() -> Iterator[None]:
    """Below Fig. 2.

    The τ of token verification is (min{i : rejected}) - 1, the number of leading acceptances.
    """
    for length in (2, 3, 4):
        for accepted in product((False, True), repeat=length):
            leading = next((i for i, good in enumerate(accepted) if not good), length)
            corrected = min((i for i, good in enumerate(accepted, 1) if not good), default=length + 1) - 1
            assert corrected == leading
            printed = min((i for i, good in enumerate(accepted, 1) if good), default=0)
            if all(accepted):
                assert printed == 1 < leading
            yield


@counted
def test_behind_an_accepted_prefix_the_target_continues() -> Iterator[None]:
    """Lemma 6, Eqs. 17 and 29.

    What passes through an accepted a and starts with (a, t) has mass x(a) p(t|a).
    """
    for name, number in product(("token", "block", "multi_round", "greedy_multipath"), range(10)):
        pair = random_rational([222, number], 2 + number % 2, 2)
        law = output_law(name, pair, 2)
        size, L = pair.vocab_size, pair.draft_length
        for depth in range(L):
            passing = law.accepted_masses[depth]
            through = law.masses[depth].copy()  # outputs that end just behind a
            through = through + law.accepted_masses[depth + 1]
            for node, token in product(range(size**depth), range(size)):
                expected = passing[node] * pair.target[depth][node][token]
                assert through[node * size + token] == expected
        yield


@counted
def test_deterministic_models_make_block_token() -> Iterator[None]:
    """Section 6.2: one-hot rows in the target, the draft or both; w is then 0 or 1 times what token keeps."""
    for number, greedy in product(range(20), ("target", "draft", "both")):
        pair = random_rational([223, number], 3, 2)
        target, draft = (
            {
                numbered_context(node, depth, 3): one_hot(row) if greedy in (side, "both") else row
                for depth, level in enumerate(levels)
                for node, row in enumerate(level)
            }
            for side, levels in (("target", pair.target), ("draft", pair.draft))
        )
        cold = ModelPair.from_contexts(target, draft, 2)
        assert gain_of_block(cold) == 1
        yield
    assert gain_of_block(instances.two_token(2)) > 1


def one_hot(row: np.ndarray) -> list[Fraction]:
    best = int(np.argmax(row))
    return [Fraction(int(token == best)) for token in range(len(row))]


@counted
def test_the_gain_of_block_need_not_grow_with_the_draft_length() -> Iterator[None]:
    """Fig. 5, no theorem: two-token rows, then fair coins, disjoint after AB: gains 1, 20/19, 23/22."""
    target_row, draft_row, fair = ["1/3", "2/3"], ["2/3", "1/3"], ["1/2", "1/2"]
    gains = []
    for length in (1, 2, 3):
        target, draft = {}, {}
        for depth in range(length + 1):
            for context in product((0, 1), repeat=depth):
                disjoint = context[:2] == (0, 1) and depth == 2
                target[context] = target_row if depth < 2 else ["1", "0"] if disjoint else fair
                if depth < length:
                    draft[context] = draft_row if depth < 2 else ["0", "1"] if disjoint else fair
        pair = ModelPair.from_contexts(target, draft, length)
        gains.append(gain_of_block(pair))
        yield
    assert gains == [1, Fraction(20, 19), Fraction(23, 22)]
    toy = [gain_of_block(instances.two_token(n)) for n in (1, 2, 3, 4)]
    assert toy == sorted(toy)  # on the toy it does grow


@counted
def test_the_gain_of_block_rises_and_falls_as_the_models_agree() -> Iterator[None]:
    """Section 6.1.

    Mean gain over random pairs (V = 3, L = 3): it rises up to agreement 0.1 and falls to 0 for equal models.
    """
    means = []
    for agreement in (0.0, 0.05, 0.1, 0.2, 0.6, 0.9, 1.0):
        gains = []
        for number in range(20):
            gains.append(gain_of_block(random_float([224, number], 3, 3, agreement=agreement)) - 1)
            yield
        means.append(float(np.mean(gains)))
    assert means[:3] == sorted(means[:3])
    assert means[2:] == sorted(means[2:], reverse=True)
    assert abs(means[0] - 0.0443) < 5e-5
    assert abs(means[2] - 0.0464) < 5e-5
    assert abs(means[-1]) < 1e-12


@counted
def test_the_gain_of_block_can_fall_with_the_temperature() -> Iterator[None]:
    """Section 6.2, no theorem: softmax at T = 1/2 squares and normalises a row; 1/13 there, 1/19 at T = 1."""
    gains = []
    for power in (2, 1):
        row = [Fraction(1, 3) ** power, Fraction(2, 3) ** power]
        target = [value / sum(row) for value in row]
        assert power == 1 or target == [Fraction(1, 5), Fraction(4, 5)]
        pair = ModelPair.context_free_pair(target, target[::-1], 2)
        gains.append(gain_of_block(pair) - 1)
        yield
    assert gains == [Fraction(1, 13), Fraction(1, 19)]


@counted
def test_block_needs_more_operations_than_token() -> Iterator[None]:
    """Operations of one call before its correction: block's are affine in V and L, token's do not know V."""
    by_size = [operations_of("token", size, 1, 3) for size in (20, 40, 60, 80)]
    assert len(set(by_size)) == 1
    assert by_size[0] < operations_of("block", 20, 1, 3) / 5
    yield
    by_size = [operations_of("block", size, 1, 3) for size in (20, 40, 60, 80)]
    by_length = [operations_of("block", 30, 1, length) for length in (2, 4, 6)]
    for counts in (by_size, by_length):
        steps = np.diff(counts)
        assert max(steps) - min(steps) <= 0.01 * max(steps)
        assert min(steps) > 0
        yield


def sketch_law(length: int, steps: int) -> dict[Path, Fraction]:
    """What the printed sketch of block verification returns on the two-token pair, with xs = drafts."""
    target, draft = (Fraction(1, 3), Fraction(2, 3)), (Fraction(2, 3), Fraction(1, 3))
    law: dict[Path, Fraction] = {}
    for path in product((0, 1), repeat=length):
        weight, accept = Fraction(1), Fraction(1)
        for token in path:
            weight *= draft[token]
        given: dict[Path, Fraction] = {(): Fraction(1)}
        for i in range(steps):
            q = draft if i < length else (Fraction(0), Fraction(0))
            residual = [max(Fraction(0), p * accept - q[token]) for token, p in enumerate(target)]
            total = sum(residual) + 1 - accept
            given = {out: prob * (1 - accept) / total for out, prob in given.items()}
            for token in (0, 1):
                out = (*path[:i], token)
                given[out] = given.get(out, Fraction(0)) + residual[token] / total
            if i < length:
                accept = min(Fraction(1), accept * target[path[i]] / draft[path[i]])
        for out, prob in given.items():
            law[out] = law.get(out, Fraction(0)) + weight * prob
    return law


def completed_variation(law: dict[Path, Fraction], length: int) -> Fraction:
    """Total variation to the target after completing every output to L+1 tokens."""
    target = (Fraction(1, 3), Fraction(2, 3))
    distance = Fraction(0)
    for path in product((0, 1), repeat=length + 1):
        probs = [target[token] for token in path]
        wanted = np.prod(np.array(probs, dtype=object))
        made = sum(
            prob * np.prod(np.array([Fraction(1), *probs[len(out) :]], dtype=object))
            for out, prob in law.items()
            if path[: len(out)] == out
        )
        distance += abs(made - wanted)
    return distance / 2


@counted
def test_the_sketch_of_block_verification_ends_one_step_early() -> Iterator[None]:
    """Appendix A: γ steps give total variation 1/3, 1/3, 7/27; γ+1 steps are block verification."""
    printed = {1: Fraction(1, 3), 2: Fraction(1, 3), 3: Fraction(7, 27)}
    for length, variation in printed.items():
        assert completed_variation(sketch_law(length, length), length) == variation
        repaired = sketch_law(length, length + 1)
        assert completed_variation(repaired, length) == 0
        efficiency = sum(len(out) * prob for out, prob in repaired.items())
        assert efficiency == output_law("block", instances.two_token(length)).block_efficiency
        yield


@counted
def test_the_sketch_of_token_verification_forgets_the_correction() -> Iterator[None]:
    """Appendix A: it returns accepted tokens only; the completed first token is A with 4/9, not 1/3."""
    law: dict[Path, Fraction] = {}
    for token, (p, q) in enumerate(((Fraction(1, 3), Fraction(2, 3)), (Fraction(2, 3), Fraction(1, 3)))):
        accept = min(Fraction(1), p / q)
        law[(token,)] = q * accept
        law[()] = law.get((), Fraction(0)) + q * (1 - accept)
    assert law[()] == Fraction(1, 3)
    assert completed_variation(law, 1) == Fraction(1, 9)
    yield


@counted
def test_the_ideal_acceptance_is_that_of_a_coupling_and_not_of_a_valid_verifier() -> Iterator[None]:
    """Section 2: 10/9, 11/9 and 12/9 accepted tokens; 12/9 is the block-transport value."""
    pair = instances.two_token(2)
    assert output_law("token", pair).block_efficiency - 1 == Fraction(10, 9)
    assert output_law("block", pair).block_efficiency - 1 == Fraction(11, 9)
    assert block_transport_optimum(pair).value == Fraction(12, 9)
    assert output_law("greedy_block", pair).total_variation > 0
    yield


@counted
def test_greedy_block_needs_its_modification() -> Iterator[None]:
    """App. C and C.1.

    Alone BA comes out with 1/3 > 2/9; after B the modified target row is a point mass on B.
    """
    pair = instances.two_token(2)
    alone = output_law("greedy_block", pair).prefix_law(2)
    assert alone[2] == Fraction(1, 3) > pair.target_path_probs(2)[2] == Fraction(2, 9)
    yield
    assert list(modified_pair("greedy_block", pair).target[1][1]) == [0, 1]
    assert (completed_law("greedy_block", pair) == pair.target_path_probs(3)).all()
    yield
