"""The gain of recoupling over scored selection on given drafts, at any vocabulary size."""

from __future__ import annotations

import numpy as np

from spectheory.foundation.arrays import add_scaled, at_most_one, divide_or_zero, positive_part
from spectheory.optima.one_position.joint_cut import min_cut_of_nodes
from spectheory.pairs.contexts import first_path_with_prefix
from spectheory.verification.algorithms.path_selection.scored import ScoredSelection, winning_masses


def recoupling_gain(
    verifier: ScoredSelection, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray
) -> float:
    """Compute the tokens that ``Recoupled(verifier)`` gains over ``verifier``, given D'.

    D' are the drafts without their last tokens.  The mean over drafts is the difference of the block
    efficiencies.  Source: theory.md Statement 5.24.  Let a be the node of path k at depth L-1.  Given D',
    scored selection accepts a leaf with probability

        Σ_k Σ_w ρ_k(w) t(aw)/R(aw),      ρ_k(w) = P(path k is selected and draws w | D').

    Recoupling accepts a leaf with probability equal to the minimum cut of the masses e(a, w).  e(a, w) sums
    over the paths k through a: ρ_k(w) t(aw)/R(aw), and the stops at a with the correction w.  The rest of the
    law is the same.  ρ_k is an integral over the score, so we list no tuples of last tokens, and the time is
    the time of sorting K rows.

    Args:
        verifier: scored selection.
        paths, target_rows, draft_rows: a K-tuple of drafts, [K, L], and floats [K, L+1, V] and [K, L, V].

    Example:
        >>> from spectheory import instances, verifiers
        >>> pair = instances.random_rational([93, 23], 2, 2).to_float()
        >>> targets = np.stack([pair.target[0][0], pair.target[1][0], pair.target[2][0]])
        >>> rows = np.stack([targets] * 2), np.stack([np.stack([pair.draft[0][0], pair.draft[1][0]])] * 2)
        >>> round(recoupling_gain(verifiers["scored_multipath"], np.zeros((2, 2), dtype=int), *rows), 6)
        0.0
    """
    num_drafts = len(paths)
    targets, drafts = target_rows[:, -2].astype(float), draft_rows[:, -1].astype(float)
    state = verifier.score_states(paths[:, :-1], target_rows, draft_rows, num_drafts)
    split = verifier.split(state, targets, drafts)

    def by_token(of_rows: np.ndarray) -> np.ndarray:
        """Interpolate means under the rows of the plan to means under the law of every next token."""
        values = np.take_along_axis(of_rows, split.row, axis=-1)
        if split.next_share is None:
            return values
        steps = np.take_along_axis(of_rows[:, 1:] - of_rows[:, :-1], split.row, axis=-1)
        return add_scaled(values, split.next_share, steps)

    levels = by_token((split.plan * state.win_rates[:, None]).sum(-1))
    wins = np.stack([winning_masses(state.masses, path) for path in range(num_drafts)])
    chances = divide_or_zero(wins, state.masses)
    selected = drafts * by_token((split.plan * chances[:, None]).sum(-1))
    demands = state.served[:, None] * divide_or_zero(targets, drafts)
    leaves = selected * at_most_one(divide_or_zero(demands, levels))
    # Block verification of the selected path stops at a, given that the leaf is rejected.
    weight = at_most_one(divide_or_zero(state.served, state.level))
    residual = positive_part(
        weight[:, None] * targets - drafts * divide_or_zero(levels, state.level[:, None])
    )
    mass = residual.sum(-1)
    stops = divide_or_zero((selected - leaves).sum(-1), 1 - weight + mass)
    outputs = leaves + stops[:, None] * residual
    holders = first_path_with_prefix(paths)[:, -2]
    nodes, counts = np.unique(holders, return_counts=True)
    at_nodes = np.stack([outputs[holders == node].sum(axis=0) for node in nodes])
    return float(min_cut_of_nodes(at_nodes, drafts[nodes], counts.tolist()).value - leaves.sum())
