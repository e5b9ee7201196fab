"""Laws on the leaves of a pair: random ones, random skewed drafts, and all leaf sets one after the other."""

from fractions import Fraction
from itertools import combinations

import numpy as np

from spectheory.optima.bounds.skewed_draft import SkewedDraft
from spectheory.pairs.pair import ModelPair


def ranking_vertex(pair: ModelPair, num_drafts: int, order: object) -> np.ndarray:
    """The law of the highest-ranked of K drafts."""
    return SkewedDraft.from_order(pair, num_drafts, order).leaf_law  # type: ignore[arg-type]


def f(mass: Fraction, num_drafts: int) -> Fraction:
    """P(some draft lies in a set of draft mass ``mass``)."""
    return 1 - (1 - mass) ** num_drafts


def random_law(rng: np.random.Generator, size: int) -> np.ndarray:
    """Whole weights up to 5 over their sum, zeros included."""
    weights = rng.integers(0, 6, size)
    weights[rng.integers(size)] += 1
    return np.array([Fraction(int(weight), int(weights.sum())) for weight in weights], dtype=object)


def random_member(rng: np.random.Generator, pair: ModelPair, num_drafts: int) -> np.ndarray:
    """A law that is a skewed draft: a random mixture of random rankings."""
    size = pair.vocab_size**pair.draft_length
    weights = random_law(rng, 4)
    return np.asarray(sum(w * ranking_vertex(pair, num_drafts, rng.permutation(size)) for w in weights))


def largest_excess(pair: ModelPair, law: np.ndarray, num_drafts: int) -> Fraction:
    """The largest r(S) - f(q(S)) over all sets S of leaves, one set after the other."""
    probs = pair.draft_path_probs(pair.draft_length)
    sets = (s for size in range(1, len(law) + 1) for s in combinations(range(len(law)), size))
    return max(sum(law[list(s)]) - f(sum(probs[list(s)]), num_drafts) for s in sets)
