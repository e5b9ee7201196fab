"""Random contexts of scored selection in float64, for its couplings."""

import numpy as np

from spectheory.verification.algorithms.path_selection.score_levels import ScoreNode


def random_node(seed: int, unevenness: float) -> ScoreNode:
    """64 contexts of 24 tokens and 32 cells, some tokens never drafted."""
    rng = np.random.default_rng(seed)
    drafted = rng.dirichlet(np.full(24, unevenness), size=64) * (rng.random((64, 24)) < 0.8)
    demands = -np.sort(-rng.gamma(0.5, 2, size=(64, 24)), axis=-1)
    edges = np.arange(33) / 32
    rates = np.broadcast_to((edges[1:] ** 4 - edges[:-1] ** 4) * 32, (64, 32))
    masses = rng.dirichlet(np.full(32, 2 * unevenness), size=64)
    return ScoreNode.of(drafted / drafted.sum(-1, keepdims=True), demands, masses, rates)
