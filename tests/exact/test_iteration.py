"""Several iterations: the law of N(i), losslessness with the distribution modification, Theorem 2."""

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from deep import first_is_quick
from reference import Law, Path, block_law, draft_row, normalised, target_row, token_law
from spectheory import instances, output_law
from spectheory.exact.iteration import (
    completed_law,
    decoded_tokens_law,
    expected_decoded_tokens,
    first_tokens_law,
    modified_pair,
)
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.one_path.greedy_block import GreedyBlock
from spectheory.verification.algorithms.spectr_gbv import SpecTrGbv
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import find_verifier
from table import groups
from texts import lengths_of, texts_after

ZERO, ONE = Fraction(0), Fraction(1)
Rows = Callable[[Path], list[Any]]


def path_prob(rows: Rows, start: Path, path: Path) -> Fraction:
    prob = ONE
    for i, token in enumerate(path):
        prob *= rows(start + path[:i])[token]
    return prob


def greedy_iterations(
    target: Rows, draft: Rows, size: int, length: int, iterations: int, text: Path = (), modify: bool = True
) -> Law:
    """block2024 Algorithm 6: what ``iterations`` iterations append to ``text``."""
    if iterations == 0:
        return {text: ONE}
    law: Law = defaultdict(Fraction)
    for path in product(range(size), repeat=length):
        weight = path_prob(draft, text, path)
        if weight == 0:
            continue
        residuals, accept = [], [ONE]
        for i in range(length + 1):
            ratio = path_prob(target, text, path[:i]) / path_prob(draft, text, path[:i])
            if i == length:
                residuals.append([ratio * p for p in target(text + path)])
                accept.append(min(ONE, ratio))
                break
            pairs = list(zip(target(text + path[:i]), draft(text + path[:i]), strict=True))
            residuals.append([max(ratio * p - q, ZERO) for p, q in pairs])
            loss = sum(max(q - ratio * p, ZERO) for p, q in pairs)
            if i:
                accept.append(min(ONE, sum(residuals[i]) / loss) if loss else ONE)
        for tau in range(length, -1, -1):
            stop = weight * accept[tau]
            weight -= stop
            if stop == 0:
                continue
            for token, prob in enumerate(normalised(residuals[tau])):
                if prob == 0:
                    continue
                ended = (*text, *path[:tau], token)
                window = (len(text), len(ended), len(text) + length)
                following = modified_target(target, draft, text, window) if modify else target
                rest = greedy_iterations(following, draft, size, length, iterations - 1, ended, modify)
                for longer, mass in rest.items():
                    law[longer] += stop * prob * mass
    return law


def modified_target(target: Rows, draft: Rows, start: Path, window: tuple[int, int, int]) -> Rows:
    """Eq. 31: the target at contexts of length ended..end-1, joint probabilities from ``start`` on."""
    begin, ended, end = window

    def rows(context: Path) -> list[Any]:
        own = target(context)
        if not ended <= len(context) < end:
            return own
        path = context[begin:]
        p, q = path_prob(target, start, path), path_prob(draft, start, path)
        excess = [max(p * a - q * b, ZERO) for a, b in zip(own, draft(context), strict=True)]
        return normalised(excess) if sum(excess) else own

    return rows


def functions_of(pair: ModelPair) -> tuple[Rows, Rows]:
    if pair.context_free:
        return lambda context: target_row(pair, ()), lambda context: draft_row(pair, ())
    return lambda context: target_row(pair, context), lambda context: draft_row(pair, context)


def test_lemma_8() -> None:
    """greedy_block completed with the modified target is exactly p_{L+1}; with its own target it is not."""
    fails = 0
    for case in (case for group in groups().values() for case in group[:6]):
        pair = case.pair
        wanted = pair.target_path_probs(pair.draft_length + 1)
        assert (completed_law(GreedyBlock(), pair) == wanted).all(), case
        fails += (output_law(GreedyBlock(), pair).completed_law != wanted).any()
    assert fails > 20


def test_completion_without_modification_is_that_of_the_output_law() -> None:
    """For verifiers that modify nothing both completions are the output law's; and in float64."""
    pair = instances.random_rational(4, 3, 2)
    for name in ("token", "block", "greedy_multipath"):
        assert modified_pair(name, pair, 2) is pair
        assert (completed_law(name, pair, 2) == output_law(name, pair, 2).completed_law).all()
    in_float = completed_law(GreedyBlock(), pair.to_float())
    np.testing.assert_allclose(in_float, pair.target_path_probs(3).astype(float), rtol=0, atol=1e-12)


def test_modified_rows_as_printed() -> None:
    """Eq. 31 row by row; depths 0 and L keep the target's own rows."""
    changed = 0
    for case in groups()["random-V3-L3-K2"]:
        pair = case.pair
        modified = modified_pair(GreedyBlock(), pair)
        target, draft = functions_of(pair)
        for depth in range(pair.draft_length + 1):
            inside = modified_target(target, draft, (), (0, 1, pair.draft_length))
            for number in range(pair.vocab_size**depth):
                context = pair.context(depth, number)
                assert modified.target[depth][number].tolist() == inside(context), (case, context)
                changed += inside(context) != target(context)
        assert all((a == b).all() for a, b in zip(modified.draft, pair.draft, strict=True))
    assert changed > 10


@pytest.mark.parametrize(("name", "reference"), [("token", token_law), ("block", block_law)])
def test_law_of_decoded_tokens_by_recursion(name: str, reference: Callable[[ModelPair], Law]) -> None:
    """N(1), N(2), N(3) against plain recursion over texts on pairs of eight levels, and V = 3 of five."""
    for seed, size, deep, iterations in ((1, 2, 8, 3), (2, 2, 8, 3), (3, 3, 5, 2)):
        pair = instances.random_rational(seed, size, deep)
        laws = decoded_tokens_law(name, pair, iterations, draft_length=2)
        assert len(laws) == iterations
        for i, law in enumerate(laws, start=1):
            assert law.tolist() == lengths_of(texts_after(lambda here, _: reference(here), pair, 2, i), 3 * i)
        other = decoded_tokens_law("token" if name == "block" else "block", pair, iterations, draft_length=2)
        assert other[-1].tolist() != laws[-1].tolist()  # partner


def test_context_free_pairs_convolve() -> None:
    """On a context-free pair N(i) is a sum of i independent copies of tau + 1; ten iterations at once."""
    pair = instances.three_token_reversed(2)
    length = np.array([ZERO, *output_law("block", pair).length_probs])
    expected = np.array([ONE])
    for law in decoded_tokens_law("block", pair, 10):
        expected = np.convolve(expected, length)
        assert law.tolist() == expected.tolist()
        assert law.sum() == 1
    assert expected_decoded_tokens("block", pair, 10)[9] == 10 * output_law("block", pair).block_efficiency


@first_is_quick("verifier", ["token", "block", GreedyBlock()], ids=str)
def test_markov_memory_agrees_with_deep_pairs(verifier: Any) -> None:
    """sticky_chain continued by its last token, against the same chain enumerated deep enough."""
    continued = decoded_tokens_law(verifier, instances.sticky_chain(2), 3, memory=1)
    deep = decoded_tokens_law(verifier, instances.sticky_chain(8), 3, draft_length=2)
    assert [law.tolist() for law in continued] == [law.tolist() for law in deep]
    longer = decoded_tokens_law(verifier, instances.sticky_chain(3), 3, draft_length=2, memory=2)
    assert [law.tolist() for law in longer] == [law.tolist() for law in deep]
    other = decoded_tokens_law(verifier, instances.two_token(2), 3)
    assert [law.tolist() for law in continued] != [law.tolist() for law in other]


@pytest.mark.parametrize("pair", [instances.two_token(2), instances.three_token_reversed(2)], ids=["2", "3"])
@pytest.mark.parametrize("modify", [True, False])
def test_greedy_block_iterations_acted_out(pair: ModelPair, modify: bool) -> None:
    """N(i), and the law of all texts, of Algorithm 6 with models as functions (modified again and again)."""
    target, draft = functions_of(pair)
    laws = decoded_tokens_law(GreedyBlock(), pair, 3, with_modification=modify)
    for i in (1, 2, 3) if pair.vocab_size == 2 else (1, 2):
        texts = greedy_iterations(target, draft, pair.vocab_size, 2, i, modify=modify)
        assert laws[i - 1].tolist() == lengths_of(texts, 3 * i)
    other = decoded_tokens_law(GreedyBlock(), pair, 3, with_modification=not modify)
    assert other[1].tolist() != laws[1].tolist()


def test_greedy_block_iterations_acted_out_with_contexts() -> None:
    """The same on context-dependent pairs with zeros, and with windows of two modified tokens (L = 3)."""
    for seed, length, deep in ((1, 2, 5), (2, 2, 5), (3, 3, 7), (4, 3, 7)):
        pair = instances.random_rational(seed, 2, deep)
        laws = decoded_tokens_law(GreedyBlock(), pair, 2, draft_length=length)
        texts = greedy_iterations(*functions_of(pair), 2, length, 2)
        assert laws[1].tolist() == lengths_of(texts, 2 * (length + 1))


@pytest.mark.parametrize("name", ["spectr", "greedy_multipath"])
def test_several_drafts(name: str) -> None:
    """E[N(1)] is the block efficiency; N(i) is a law; two drafts of greedy_multipath beat one here."""
    pair = instances.two_token(2)
    laws = decoded_tokens_law(name, pair, 3, drafts=2)
    means = expected_decoded_tokens(name, pair, 3, drafts=2)
    efficiency = output_law(name, pair, 2).block_efficiency
    for i, (law, mean) in enumerate(zip(laws, means, strict=True), start=1):
        assert len(law) == 3 * i + 1
        assert law.sum() == pytest.approx(1, rel=0, abs=1e-12)
        assert mean == pytest.approx(i * efficiency, rel=0, abs=1e-12)
    assert means[2] > expected_decoded_tokens(name, pair, 3, drafts=1)[2]


def test_greedy_block_wins_first_and_loses_later() -> None:
    """Two-token example, L = 2: E[N(i)] is 7/3, 40/9, 59/9 against block's 20/9, 40/9, 60/9."""
    pair = instances.two_token(2)
    greedy = expected_decoded_tokens(GreedyBlock(), pair, 6)
    block = expected_decoded_tokens("block", pair, 6)
    assert greedy[:3] == (Fraction(7, 3), Fraction(40, 9), Fraction(59, 9))
    assert block[:3] == (Fraction(20, 9), Fraction(40, 9), Fraction(60, 9))
    texts = greedy_iterations(*functions_of(pair), 2, 2, 3)
    assert sum(len(text) * prob for text, prob in texts.items()) == Fraction(59, 9)
    assert all(g < b for g, b in zip(greedy[2:], block[2:], strict=True))


@pytest.mark.parametrize("verifier", ["token", "block", GreedyBlock()], ids=str)
def test_lossless_over_iterations(verifier: Any) -> None:
    """The first m tokens of m iterations, and of fewer ones completed, are exactly p_m."""
    for pair, options in (
        (instances.two_token(2), {}),
        (instances.three_token_reversed(2), {}),
        (instances.sticky_chain(2), {"memory": 1}),
        (instances.random_rational(7, 2, 6), {"draft_length": 3}),
        (instances.random_rational(8, 3, 5), {"draft_length": 2}),
        (instances.random_rational(9, 2, 8), {"draft_length": 2}),
    ):
        for num_tokens, num_iterations in ((1, 1), (3, 3), (4, 2), (4, None)):
            found = first_tokens_law(verifier, pair, num_tokens, num_iterations, **options)
            assert found.law.shape == (pair.vocab_size**num_tokens,)
            assert found.total_variation == 0, (pair, num_tokens, num_iterations)
            if pair.draft_length >= num_tokens - 1:
                assert (found.target == pair.target_path_probs(num_tokens)).all()


def test_without_modification_greedy_block_is_not() -> None:
    """Two-token example: defect 1/9 from the second token on; the first token is right."""
    pair = instances.two_token(2)
    defects = [
        first_tokens_law(GreedyBlock(), pair, m, with_modification=False).total_variation for m in (1, 2, 3)
    ]
    assert defects == [0, Fraction(1, 9), Fraction(1, 9)]
    texts = greedy_iterations(*functions_of(pair), 2, 2, 2, modify=False)
    by_hand: Law = defaultdict(Fraction)
    for text, prob in texts.items():
        by_hand[text[:2]] += prob
    law = first_tokens_law(GreedyBlock(), pair, 2, with_modification=False).law
    assert law.tolist() == [by_hand[pair.context(2, n)] for n in range(4)]


def test_several_drafts_are_lossless_over_iterations() -> None:
    """greedy_multipath exactly and spectr to rounding, K = 2; spectr_gbv as printed has 477/7616 at once."""
    pair = instances.two_token(2)
    assert first_tokens_law("greedy_multipath", pair, 4, drafts=2).total_variation == 0
    assert first_tokens_law("spectr", pair, 4, drafts=2).total_variation < 1e-12
    defects = [first_tokens_law(SpecTrGbv(), pair, m, drafts=2).total_variation for m in (1, 2, 3)]
    assert defects == [Fraction(477, 7616), Fraction(381, 3808), Fraction(381, 3808)]


def test_a_pair_that_ends_too_early_is_refused() -> None:
    deep = instances.random_rational(1, 2, 8)
    with pytest.raises(InvalidInputError, match="need a pair of draft length 8, and this one has 7"):
        decoded_tokens_law("block", deep.truncate(7), 3, draft_length=2)
    decoded_tokens_law("block", deep, 3, draft_length=2)
    with pytest.raises(InvalidInputError, match="need a pair of draft length 4, and this one has 3"):
        first_tokens_law("block", deep.truncate(3), 3, draft_length=2)
    first_tokens_law("block", deep.truncate(4), 3, draft_length=2)
    with pytest.raises(InvalidInputError, match="need a pair of draft length 5, and this one has 4"):
        first_tokens_law("block", deep.truncate(4), 6, 1, draft_length=2)


class Silent:
    """Block verification that says of every correction token that it is undefined."""

    name = "silent"

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        right = find_verifier("block").outcome(paths, target_rows, draft_rows)
        return Outcome(right.stop_probs, lambda path, length: right.correction(path, length) * 0)


def test_nothing_follows_an_undefined_output() -> None:
    """`certify` counts it as a defect of one iteration; the iterations after it have no law."""
    pair = instances.two_token(1)
    for ask in (
        lambda: completed_law(Silent(), pair),
        lambda: decoded_tokens_law(Silent(), pair, 2),
        lambda: first_tokens_law(Silent(), pair, 2),
    ):
        with pytest.raises(InvalidOutcomeError, match="with probability 1 the verifier stops where"):
            ask()


@pytest.mark.parametrize("verifier", ["block", GreedyBlock()], ids=str)
def test_float_pairs(verifier: Any) -> None:
    for pair, options in (
        (instances.two_token(3), {}),
        (instances.random_rational(3, 2, 8), {"draft_length": 2}),
    ):
        exact = decoded_tokens_law(verifier, pair, 3, **options)
        for law, expected in zip(
            decoded_tokens_law(verifier, pair.to_float(), 3, **options), exact, strict=True
        ):
            assert law.dtype == np.float64
            np.testing.assert_allclose(law, expected.astype(float), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0,), {}, "num_iterations must be a whole number"),
        ((1.5,), {}, "num_iterations must be a whole number"),
        ((1,), {"drafts": 0}, "drafts must be a whole number"),
        ((1,), {"draft_length": 0}, "draft_length must be a whole number"),
        ((1,), {"memory": -1}, "memory must be a whole number of at least 0"),
        ((1,), {"memory": True}, "memory must be a whole number of at least 0"),
    ],
)
def test_bad_numbers_are_refused(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        decoded_tokens_law("block", instances.two_token(2), *arguments, **options)
    with pytest.raises(InvalidInputError, match="num_tokens must be a whole number"):
        first_tokens_law("block", instances.two_token(2), 0)
