"""Pairs from the papers, and generators of random pairs.

``NAMED`` maps names of fixed instances to functions of the draft length.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from spectheory.foundation.arrays import normalise
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import check_count, check_positive, in_one_line, is_number
from spectheory.pairs.contexts import Context, all_contexts
from spectheory.pairs.levels import check_size
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.rows import Row, parse_probs


def two_token(draft_length: int = 2) -> ModelPair:
    """Motivating example of block2024, section 2, Eq. 2: exact, context-free.

    Target (1/3, 2/3), draft (2/3, 1/3) on the tokens A and B.

    Example:
        >>> two_token().vocab
        ('A', 'B')
    """
    return ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length, ["A", "B"])


def three_token_reversed(draft_length: int = 2) -> ModelPair:
    """Target (1/2, 1/3, 1/6), draft the same row reversed (theory.md §3): exact."""
    row = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    return ModelPair.context_free_pair(row, row[::-1], draft_length)


def bernoulli(draft_head: Any, target_head: Any, draft_length: int = 1) -> ModelPair:
    """Draft Ber(b) against target Ber(c), spectr2023 App. B.1: token 0 is a tail, token 1 a head.

    Args:
        draft_head: b, the draft's probability of a head (a string or Fraction is exact).
        target_head: c, the target's probability of a head.
        draft_length: L.

    Example:
        >>> print(bernoulli("1/4", "3/4").target[0][0])
        [Fraction(1, 4) Fraction(3, 4)]
    """
    b, c = parse_probs([draft_head, target_head])
    return ModelPair.context_free_pair([1 - c, c], [1 - b, b], draft_length, ["tail", "head"])


def uniform(support: int, ratio: int, draft_length: int = 1) -> ModelPair:
    """Draft U(d) against target U(d/r), spectr2023 App. B.1: d = ``support``, r = ``ratio``.

    Raises:
        InvalidInputError: r does not divide d.
    """
    support, ratio = check_count("support", support), check_count("ratio", ratio)
    if support % ratio:
        raise InvalidInputError(f"ratio must divide support, got support {support} and ratio {ratio}")
    small = support // ratio
    target = [Fraction(1, small)] * small + [Fraction(0)] * (support - small)
    return ModelPair.context_free_pair(target, [Fraction(1, support)] * support, draft_length)


def equal_models(draft_length: int = 2) -> ModelPair:
    """Identical target and draft, with a zero: a lossless verifier can accept everything."""
    row = ["1/2", "1/3", "1/6", "0"]
    return ModelPair.context_free_pair(row, row, draft_length)


def disjoint_supports(draft_length: int = 2) -> ModelPair:
    """A draft that proposes only tokens the target never emits, so that nothing can be accepted."""
    return ModelPair.context_free_pair(["1/2", "1/2", "0", "0"], ["0", "0", "1/3", "2/3"], draft_length)


def point_masses(draft_length: int = 2) -> ModelPair:
    """Two deterministic models that agree except after token 1, which the draft never reaches."""
    zero, one = ["1", "0"], ["0", "1"]
    return _two_token_pair(lambda context: (one if context[-1:] == (1,) else zero, zero), draft_length)


def forced_start() -> ModelPair:
    """The pair of theory.md Statement 4.6: two calls with four drafted tokens each, exact.

    In two calls, block verification of the first three drafted tokens decodes more than block verification of
    all four.

    Example:
        >>> print(forced_start().draft_length, forced_start().target[4][0])
        9 [Fraction(3, 4) Fraction(1, 4)]
    """
    zero, one, mostly_zero = ["1", "0"], ["0", "1"], ["3/4", "1/4"]
    after_zeros = {4: (mostly_zero, zero), 5: (zero, mostly_zero)}

    def rows(context: Context) -> tuple[Row, Row]:
        if any(context) or len(context) > 6:
            return zero, one
        return after_zeros.get(len(context), (zero, zero))

    return _two_token_pair(rows, 9)


def early_stop(draft_length: int) -> ModelPair:
    """The pair on which two calls of block verification lose the most tokens (theory.md Statement 4.10).

    Calls have L drafted tokens.  The first L tokens are forced to 0.  Then the target is (ρ, 1 - ρ) and the
    draft (1, 0), with ρ = L/(2(L-1)).  After one more 0 the target is (1, 0) and the draft
    (ρ, 1 - ρ).  The next L - 2 tokens are forced to 0 again.  Everywhere else the target is (1, 0) and the
    draft (0, 1).

    Args:
        draft_length: L of a call.  The draft length of the pair is 2L + 1, which two calls can reach.

    Raises:
        InvalidInputError: the draft length is below 3, where block verification loses nothing.

    Example:
        >>> pair = early_stop(3)
        >>> print(pair.draft_length, pair.target[3][0], pair.draft[4][0])
        7 [Fraction(3, 4) Fraction(1, 4)] [Fraction(3, 4) Fraction(1, 4)]
    """
    length = check_count("draft_length", draft_length, at_least=3)
    ratio = Fraction(length, 2 * (length - 1))
    zero, one, mostly_zero = ((p, 1 - p) for p in (Fraction(1), Fraction(0), ratio))
    rows = {length: (mostly_zero, zero), length + 1: (zero, mostly_zero)}

    def agreed(context: Context) -> tuple[Row, Row]:
        forced = not any(context) and len(context) < 2 * length
        return rows.get(len(context), (zero, zero)) if forced else (zero, one)

    return _two_token_pair(agreed, 2 * length + 1)


def off_path_pairs() -> tuple[ModelPair, ModelPair]:
    """Two pairs that differ only below the first token 0 (theory.md Statement 5.17): V = 2, L = 3, exact.

    At the root the target is (1/2, 1/2) and the draft (1/3, 2/3).  After 1 the target is (0, 1) and the draft
    (1/2, 1/2).  Everywhere else target and draft are (1, 0), except that below 0 the draft of the second pair
    is (0, 1).  With two or more drafts, no verifier that sees on-path rows only attains both optima.

    Example:
        >>> agreeing, failing = off_path_pairs()
        >>> print(agreeing.draft[1][0], failing.draft[1][0])
        [Fraction(1, 1) Fraction(0, 1)] [Fraction(0, 1) Fraction(1, 1)]
    """
    half, zero, one = ["1/2", "1/2"], ["1", "0"], ["0", "1"]
    target: dict[Context, Row] = dict.fromkeys(all_contexts(2, 3), zero)
    target |= {(): half, (1,): one}
    draft = {context: row for context, row in target.items() if len(context) < 3}
    draft |= {(): ["1/3", "2/3"], (1,): half}
    failing = {context: one if context[:1] == (0,) else row for context, row in draft.items()}
    return ModelPair.from_contexts(target, draft, 3), ModelPair.from_contexts(target, failing, 3)


def uniform_equal(draft_length: int = 1) -> ModelPair:
    """Equal models, rows (1/2, 1/2).  Here one path beats greedy_multipath (theory.md Statement 5.7)."""
    return ModelPair.context_free_pair(["1/2", "1/2"], ["1/2", "1/2"], draft_length)


def two_residual_tokens(draft_length: int = 2) -> ModelPair:
    """Target (1/2, 1/6, 1/3), draft (3/4, 1/16, 3/16): two tokens share the residual in varying proportions.

    max(p - q, 0) divides 5 : 7 between them.  max(2/3 p - q, 0), the residual of block verification after
    the first token, divides 7 : 5.  If only one token has residual mass, as in every pair of two tokens,
    normalisation hides a wrong residual.

    Example:
        >>> print(two_residual_tokens(1).draft[0][0])
        [Fraction(3, 4) Fraction(1, 16) Fraction(3, 16)]
    """
    return ModelPair.context_free_pair(["1/2", "1/6", "1/3"], ["3/4", "1/16", "3/16"], draft_length)


def rarely_drafted(draft_length: int = 1) -> ModelPair:
    """A pair of five tokens, of which three are drafted with probabilities 10^-9, 10^-10 and 10^-15 only.

    The target never emits the first and the third of these three, and emits the second with probability
    10^-11.  It emits another token, which is never drafted, with probability 10^-10.

    Example:
        >>> print(rarely_drafted(1).draft[0][0, 2], rarely_drafted(1).target[0][0, 2])
        1/10000000000 1/100000000000
    """
    draft = [Fraction(0), Fraction(1, 10**9), Fraction(1, 10**10), Fraction(1, 10**15), Fraction(0)]
    target = [Fraction(0), Fraction(0), Fraction(1, 10**11), Fraction(0), Fraction(1, 10**10)]
    draft[0], target[0] = (1 - sum(row, Fraction(0)) for row in (draft, target))
    return ModelPair.context_free_pair(target, draft, draft_length)


def partial_overlap(draft_length: int = 2) -> ModelPair:
    """Zeros in both rows: one token is only in the target, one only in the draft, two have equal ratios."""
    return ModelPair.context_free_pair(["1/4", "1/4", "1/2", "0"], ["1/4", "1/4", "0", "1/2"], draft_length)


def sticky_chain(draft_length: int = 2) -> ModelPair:
    """A fixed exact Markov pair in which the target repeats its last token more often than the draft does.

    Example:
        >>> print(sticky_chain().target[2][3])  # after (1, 1)
        [Fraction(1, 4) Fraction(3, 4)]
    """
    target: Mapping[Context, Row] = {(): ["1/2", "1/2"], (0,): ["3/4", "1/4"], (1,): ["1/4", "3/4"]}
    draft: Mapping[Context, Row] = {(): ["2/3", "1/3"], (0,): ["1/2", "1/2"], (1,): ["1/3", "2/3"]}
    return _two_token_pair(lambda context: (target[context[-1:]], draft[context[-1:]]), draft_length)


def random_float(
    seed: int | Sequence[int] | np.random.SeedSequence,
    vocab_size: int,
    draft_length: int,
    concentration: float = 1.0,
    agreement: float = 0.0,
) -> ModelPair:
    """Draw a pair with context-dependent Dirichlet rows, in float64.

    Args:
        seed: seed of numpy's default generator.
        vocab_size, draft_length: V and L.
        concentration: concentration of the symmetric Dirichlet distribution of every row.
        agreement: a in [0, 1]; the draft row is a * target + (1 - a) * an independent row.
    """
    _check_share("agreement", agreement)
    vocab_size, draft_length = _checked(vocab_size, draft_length)
    rng = _generator(seed)
    alpha = np.full(vocab_size, check_positive("concentration", concentration))
    target = [rng.dirichlet(alpha, size=vocab_size**i) for i in range(draft_length + 1)]
    other = [rng.dirichlet(alpha, size=vocab_size**i) for i in range(draft_length)]
    return _pair(target, [agreement * p + (1 - agreement) * q for p, q in zip(target, other, strict=False)])


def random_rational(
    seed: int | Sequence[int] | np.random.SeedSequence,
    vocab_size: int,
    draft_length: int,
    max_weight: int = 6,
    zero_probability: float = 0.2,
    equal_row_probability: float = 0.15,
) -> ModelPair:
    """Draw a pair with context-dependent exact rows: integer weights up to ``max_weight`` over their sum.

    Small weights make ties in p/q frequent.  ``zero_probability`` puts zeros into both models,
    and ``equal_row_probability`` makes some draft rows equal to the target's.

    Example:
        >>> random_rational(0, vocab_size=3, draft_length=2).is_exact
        True
    """
    vocab_size, draft_length = _checked(vocab_size, draft_length)
    max_weight = check_count("max_weight", max_weight)
    _check_share("zero_probability", zero_probability)
    _check_share("equal_row_probability", equal_row_probability)
    rng = _generator(seed)

    def row() -> list[Fraction]:
        weights = rng.integers(1, max_weight + 1, size=vocab_size)
        weights[rng.random(vocab_size) < zero_probability] = 0
        if not weights.any():
            weights[rng.integers(vocab_size)] = 1
        total = int(weights.sum())
        return [Fraction(int(weight), total) for weight in weights]

    target = [[row() for _ in range(vocab_size**i)] for i in range(draft_length + 1)]
    draft = [
        [list(target[i][n]) if rng.random() < equal_row_probability else row() for n in range(vocab_size**i)]
        for i in range(draft_length)
    ]
    return _pair(*([np.array(rows, dtype=object) for rows in side] for side in (target, draft)))


def tiny_probabilities(
    seed: int | Sequence[int] | np.random.SeedSequence, vocab_size: int, draft_length: int
) -> ModelPair:
    """Draw a pair with exact rows in which about half of the weights are scaled by 10^-9 or 10^-3.

    Example:
        >>> float(tiny_probabilities(1, 3, 1).draft[0].min())
        0.0003332222592469177
    """
    vocab_size, draft_length = _checked(vocab_size, draft_length)
    rng = _generator(seed)
    scales = (Fraction(1), Fraction(1), Fraction(1, 10**9), Fraction(1, 1000))

    def level(depth: int) -> np.ndarray:
        weights = np.empty((vocab_size**depth, vocab_size), dtype=object)
        for index in np.ndindex(weights.shape):
            weights[index] = scales[rng.integers(len(scales))] * int(rng.integers(1, 5))
        return normalise(weights)

    target = [level(depth) for depth in range(draft_length + 1)]
    return _pair(target, [level(depth) for depth in range(draft_length)])


NAMED: Mapping[str, Callable[[int], ModelPair]] = {
    "two_token": two_token,
    "three_token_reversed": three_token_reversed,
    "bernoulli_quarter_half": lambda length: bernoulli("1/4", "1/2", length),
    "bernoulli_quarter_one": lambda length: bernoulli("1/4", "1", length),
    "bernoulli_one_half": lambda length: bernoulli("1", "1/2", length),
    "uniform_4_2": lambda length: uniform(4, 2, length),
    "uniform_3_3": lambda length: uniform(3, 3, length),
    "uniform_equal": uniform_equal,
    "equal_models": equal_models,
    "disjoint_supports": disjoint_supports,
    "point_masses": point_masses,
    "partial_overlap": partial_overlap,
    "two_residual_tokens": two_residual_tokens,
    "sticky_chain": sticky_chain,
}
"""Name -> fixed exact instance, as a function of the draft length."""


def _pair(target: Sequence[np.ndarray], draft: Sequence[np.ndarray]) -> ModelPair:
    return ModelPair(tuple(target), tuple(draft), tuple(map(str, range(target[0].shape[1]))))


def _generator(seed: int | Sequence[int] | np.random.SeedSequence) -> np.random.Generator:
    """Make numpy's default generator.  The seed ``None`` is refused, because it cannot be repeated."""
    try:
        if seed is not None:
            return np.random.default_rng(seed)
    except (TypeError, ValueError):
        pass
    raise InvalidInputError(f"seed must be a whole number of at least 0, or several, got {in_one_line(seed)}")


def _check_share(name: str, value: Any) -> None:
    if not (is_number(value) and 0 <= value <= 1):
        raise InvalidInputError(f"{name} must lie in [0, 1], got {in_one_line(value)}")


def _checked(vocab_size: int, draft_length: int) -> tuple[int, int]:
    vocab_size = check_count("vocab_size", vocab_size)
    return vocab_size, check_size(vocab_size, check_count("draft_length", draft_length))


def _two_token_pair(rows: Callable[[Context], tuple[Row, Row]], draft_length: int) -> ModelPair:
    length = check_count("draft_length", draft_length)
    target = {context: rows(context)[0] for context in all_contexts(2, length)}
    draft = {context: rows(context)[1] for context in all_contexts(2, length - 1)}
    return ModelPair.from_contexts(target, draft, length)
