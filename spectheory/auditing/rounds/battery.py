"""The pairs on which we judge a shipped sampler, the smallest first.

Dyadic rows are exact in floats.  A token without target mass reveals wrong comparisons at the ends of a coin
(a uniform number).  Three tokens with unequal residuals reveal a wrong correction row, which normalising
hides for two tokens.  Random pairs, whose rows depend on the context, reveal a row from the wrong position.
Four tokens with mass under both models reveal rows that keep only the three most likely tokens.

For several drafted paths we use fewer pairs, with all tuples that can be drafted.  So paths coincide at the
first position, at the second and everywhere, and share a prefix below which they split in three.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np

from spectheory import instances
from spectheory.foundation.validation import check_count
from spectheory.pairs.pair import ModelPair

MOST_TEXTS = 32
"""A random pair that tells texts apart is searched for where there are at most so many."""


def audit_pairs() -> Mapping[str, ModelPair]:
    """Name -> pair, all exact."""
    return {
        "forbidden token": instances.bernoulli("1/2", "1"),
        "dyadic": ModelPair.context_free_pair(["1/4", "3/4"], ["1/2", "1/2"], 1),
        "two residual tokens": instances.two_residual_tokens(1),
        "disjoint supports": instances.disjoint_supports(1),
        "equal models": instances.equal_models(2),
        "thirds": instances.two_token(2),
        "sticky chain": instances.sticky_chain(2),
        "random dyadic, 2 tokens": random_dyadic(1, 2, 2),
        "tiny probabilities": instances.tiny_probabilities(200, 2, 2),
        "dyadic, 3 drafted": ModelPair.context_free_pair(["1/4", "3/4"], ["1/2", "1/2"], 3),
        "random dyadic, 3 drafted": random_dyadic(2, 2, 3),
        "random dyadic, 3 tokens": random_dyadic(3, 3, 2),
        "random dyadic, 4 tokens": random_dyadic(4, 4, 1),
        "random dyadic, 4 tokens, 2 drafted": with_first_token_drafted(random_dyadic(5, 4, 2)),
    }


def pairs_of_several_paths(num_drafts: int = 2) -> Mapping[str, ModelPair]:
    """Name -> pair, all exact, for two drafted paths or more.  Few paths have mass, so tuples are few.

    On some pairs recursive rejection accepts a second draft with a probability strictly between 0 and 1; on
    others it accepts a third draft so.  This happens at the first position and at the second.  No pair with
    three tokens has both: after a random rejection of the second draft, only one token is left for the third.
    """
    pairs = {
        "two residual tokens": instances.two_residual_tokens(1),
        "random dyadic, 2 tokens": random_dyadic(1, 2, 2),
        "coins of all drafts, 4 tokens": random_dyadic(78, 4, 1),
        "first token shared, 3 tokens": with_first_token_drafted(random_dyadic(6, 3, 2)),
        "tiny probabilities": instances.tiny_probabilities(200, 2, 2),
        "a zero among sevenths": _with_rows(("1/3", "2/3", "0"), ("1/7", "3/7", "3/7")),
        "hundredths": _with_rows(("1/50", "1/25", "47/50"), ("47/50", "1/100", "1/20")),
        "two coins of 2/5": _with_rows(("1/500", "1/25", "479/500"), ("1/200", "1/10", "179/200")),
    }
    if num_drafts == 2:
        return pairs | {
            "second coin, 3 tokens": random_dyadic(6, 3, 1),
            "three tokens left, 4 tokens": random_dyadic(46, 4, 1),
            "second coin, then one token": _with_second_token_drafted(random_dyadic(2, 3, 2)),
            "first token shared, 3 drafted": with_first_token_drafted(random_dyadic(7, 2, 3)),
        }
    return pairs | {
        "third coin, 3 tokens": random_dyadic(1, 3, 1),
        "third coin, then one token": _with_second_token_drafted(random_dyadic(33, 3, 2)),
        "first token shared, third coin": with_first_token_drafted(random_dyadic(5, 3, 2)),
    }


LOOPS = ("forbidden token", "two residual tokens")


def pairs_of_loops() -> Mapping[str, ModelPair]:
    """Name -> pair, all exact, for whole decoding loops: few, because a text has several steps.

    The last pair has no equal probabilities in a row, so that greedy loops are judged on it too.  Its
    likeliest path is drafted up to the first token, and the second is rejected.
    """
    return {name: audit_pairs()[name] for name in LOOPS} | {"dyadic without ties": random_dyadic(8, 2, 2)}


QUICK = {
    1: ("dyadic", "two residual tokens", "thirds", "random dyadic, 2 tokens", "random dyadic, 4 tokens"),
    2: ("two residual tokens", "second coin, 3 tokens", "first token shared, 3 tokens"),
}
"""Number of paths -> the pairs of a quick audit.

They have a zero residual, two and three residual tokens, rows that depend on the context, and a second
draft that is accepted with a probability inside (0, 1).
"""


def quick_pairs(num_drafts: int = 1) -> Mapping[str, ModelPair]:
    """Name -> pair, all exact, for a quick audit.  There are no pairs for three paths or more."""
    known = audit_pairs() if num_drafts == 1 else pairs_of_several_paths(num_drafts)
    return {name: known[name] for name in QUICK.get(num_drafts, ())}


def pairs_of_trees() -> Mapping[str, ModelPair]:
    """Name -> pair, all exact, for trees: the pairs for one path and for several paths, and three more.

    On these three, if every tried child of the root is rejected, the correction has two tokens or more.
    """
    long = random_dyadic(23, 3, 3)
    return {
        **_pairs_of_paths(),
        "two tokens left, 3 tokens": random_dyadic(20, 3, 2),
        "two tokens left, 4 tokens": random_dyadic(22, 4, 1),
        "two tokens left, 3 drafted": ModelPair(
            long.target, (long.draft[0], *map(_of_two, long.draft[1:])), long.vocab
        ),
    }


def _pairs_of_paths() -> dict[str, ModelPair]:
    """The pairs for one path, for two and for three."""
    return {**audit_pairs(), **pairs_of_several_paths(2), **pairs_of_several_paths(3)}


def _of_two(rows: np.ndarray) -> np.ndarray:
    """Draft rows on the first two tokens, so that trees are few."""
    kept = np.full_like(rows, Fraction(0))
    kept[:, 0] = [(1 + 2 * (row % 2)) * Fraction(1, 4) for row in range(len(rows))]
    kept[:, 1] = 1 - kept[:, 0]
    return kept


class PairsOfShapes(dict[str, ModelPair]):
    """Name -> pair, for the shapes that the user set.

    Attributes:
        of_trees: further pairs that we use only for trees.
    """

    of_trees: dict[str, ModelPair]


def pairs_of_shapes(vocab_sizes: Sequence[int], draft_lengths: Sequence[int]) -> PairsOfShapes:
    """The audit's pairs of these shapes, and random pairs where a shape lacks a kind of pair.

    If a shape has no pair, we add a random one.  If no pair of a shape has different target rows after every
    text, we add one such pair, if we find it.  For three tokens or more, we add a pair for trees on which two
    rejections leave tokens.

    Args:
        vocab_sizes, draft_lengths: V and L.  If empty, the shapes of ``audit_pairs``.
    """
    known = _pairs_of_paths()
    sizes = vocab_sizes or sorted({pair.vocab_size for pair in known.values()})
    lengths = draft_lengths or sorted({pair.draft_length for pair in known.values()})
    shapes = list(product(sizes, lengths))
    chosen = PairsOfShapes({name: pair for name, pair in known.items() if shape_of(pair) in shapes})
    _fill(chosen, shapes, "random dyadic", partial(random_dyadic, 8))
    _fill(chosen, shapes, "other rows behind every text", _telling, tells_texts_apart)
    of_trees = {name: pair for name, pair in pairs_of_trees().items() if name not in known}
    chosen.of_trees = {name: pair for name, pair in of_trees.items() if shape_of(pair) in shapes}
    leaving = [shape for shape in shapes if shape[0] > 2]
    _fill(chosen.of_trees, leaving, "tokens left", partial(random_dyadic, 20))
    return chosen


def _fill(
    pairs: dict[str, ModelPair],
    shapes: Sequence[tuple[int, int]],
    name: str,
    make: Callable[[int, int], ModelPair | None],
    is_wanted: Callable[[ModelPair], bool] = lambda pair: True,
) -> None:
    """Add a pair of each shape (V, L) that has no wanted pair, if there is one."""
    known = {shape_of(pair) for pair in pairs.values() if is_wanted(pair)}
    for size, length in shapes:
        pair = None if (size, length) in known else make(size, length)
        if pair is not None:
            pairs[f"{name}, {size} tokens, {length} drafted"] = pair


def shape_of(pair: ModelPair) -> tuple[int, int]:
    return pair.vocab_size, pair.draft_length


def tells_texts_apart(pair: ModelPair) -> bool:
    """Whether the target's rows after L tokens are all different."""
    rows = list(map(tuple, pair.target[-1].tolist()))
    return len(set(rows)) == len(rows)


def _telling(size: int, length: int) -> ModelPair | None:
    """The first random pair with ``tells_texts_apart``.  For L >= 2 its first draft is certain."""
    if size**length > MOST_TEXTS:
        return None
    pairs = (random_dyadic(seed, size, length) for seed in range(8, 40))
    found = next(filter(tells_texts_apart, pairs), None)
    return found if found is None or length == 1 else with_first_token_drafted(found)


def with_first_token_drafted(pair: ModelPair) -> ModelPair:
    """Change a pair so that its draft always starts with the token 0."""
    row = np.full_like(pair.draft[0], Fraction(0))
    row[0, 0] = Fraction(1)
    return ModelPair(pair.target, (row, *pair.draft[1:]), pair.vocab)


def _with_rows(target: tuple[str, ...], draft: tuple[str, ...]) -> ModelPair:
    """A pair with L = 1 and these rows at the root.  Its later rows have small entries, a zero and thirds."""
    rows = {(): target, (0,): ("1/50", "0", "49/50"), (1,): ("97/100", "1/50", "1/100"), (2,): ("1/3",) * 3}
    return ModelPair.from_contexts(rows, {(): draft}, 1)


def _with_second_token_drafted(pair: ModelPair) -> ModelPair:
    """Change a pair with L = 2 so that the second draft is certain: token i after the first draft i."""
    rows = np.full_like(pair.draft[1], Fraction(0))
    rows[range(len(rows)), range(len(rows))] = Fraction(1)
    return ModelPair(pair.target, (pair.draft[0], rows), pair.vocab)


def random_dyadic(seed: int, vocab_size: int, draft_length: int) -> ModelPair:
    """A pair whose rows are random positive sixteenths.  For many tokens the unit is smaller.

    Example:
        >>> print(random_dyadic(1, 2, 1).draft[0])
        [[Fraction(15, 16) Fraction(1, 16)]]
    """
    size, length = check_count("vocab_size", vocab_size, 2), check_count("draft_length", draft_length)
    parts = max(16, 1 << size.bit_length())
    rng = np.random.default_rng(seed)

    def row() -> list[Fraction]:
        cuts = np.sort(rng.choice(np.arange(1, parts), size - 1, replace=False))
        return [Fraction(int(weight), parts) for weight in np.diff([0, *cuts, parts])]

    def rows(depths: int) -> dict[tuple[int, ...], list[Fraction]]:
        return {context: row() for depth in range(depths) for context in product(range(size), repeat=depth)}

    return ModelPair.from_contexts(rows(length + 1), rows(length), length)
