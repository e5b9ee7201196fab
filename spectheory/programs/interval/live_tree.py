"""The part of the tree that the interior-point method works on, without nodes of no consequence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectheory.bounds.context_tree import ContextTree, Levels


@dataclass(frozen=True, eq=False)
class LiveTree:
    """Live nodes, and bins that hold the draft's mass.

    A node is live if its parent is and min{p(a), K q(a)}, a bound on x(a), is above a threshold.  The
    other nodes have x(a) = 0 here, and fixed prices: where p(a) ≤ K q(a) the target's price carries all of
    it (y = 0 in the subtree), elsewhere the draft's does (z = 0).  The leaves below a node that have no
    live node further down share their fate, so they are one *bin* of draft mass q_b.

    Numbering: the root is 0, the other live nodes 1..n by depth and parent; entries of an array [n]
    are for the nodes 1..n.

    Attributes:
        tree: the full tree.
        parent: the parent's number, [n].
        depth_ends: the number of live nodes of depth at most d, root included, for d = 0..L.
        target_conditionals: p(x|a) at node (a, x), [n].
        weights: what one unit of x(a) is worth, 1 + Σ p(x|a) z(a, x) over children with fixed z, [n].
        draft_probs: q(a), [n].
        bin_node: the node a bin hangs from, [B], increasing.
        bin_mass: q_b, [B], of sum 1.
        bin_of_leaf: the bin of every leaf of the full tree, -1 for leaves in no bin, [V^L].
        positions: the index within its depth of every live node, by depth.
        fixed_prices: z by depth where it is fixed, and 0 elsewhere.
    """

    tree: ContextTree
    parent: np.ndarray
    depth_ends: np.ndarray
    target_conditionals: np.ndarray
    weights: np.ndarray
    draft_probs: np.ndarray
    bin_node: np.ndarray
    bin_mass: np.ndarray
    bin_of_leaf: np.ndarray
    positions: list[np.ndarray]
    fixed_prices: Levels

    @staticmethod
    def of(tree: ContextTree, num_drafts: int, threshold: float) -> LiveTree:
        """Prune the tree at a threshold on min{p(a), K q(a)}."""
        V, L = tree.vocab_size, tree.draft_length
        live = [np.ones(1, dtype=bool)]
        for depth in range(1, L + 1):
            reach = np.minimum(tree.target_probs[depth], num_drafts * tree.draft_probs[depth])
            live.append(tree.from_parents(live[-1]) & (reach > threshold))
        fixed = _fixed_prices(tree, num_drafts, live)
        positions = [np.flatnonzero(level) for level in live]
        numbers, attached, count = [], np.zeros(1, dtype=int), 0
        for level, position in zip(live, positions, strict=True):
            number = np.full(len(level), -1)
            number[position] = np.arange(count, count + len(position))
            count += len(position)
            numbers.append(number)
            inherited = attached if not numbers[:-1] else np.repeat(attached, V)
            attached = np.where(level, number, inherited)
        mass = np.bincount(attached, weights=tree.draft_probs[L], minlength=count)
        bin_node = np.flatnonzero(mass > threshold / num_drafts)
        bin_of_node = np.full(count, -1)
        bin_of_node[bin_node] = np.arange(len(bin_node))
        worth = tree.required_prices(fixed)

        def gather(levels: Levels) -> np.ndarray:
            parts = [level[position] for level, position in zip(levels, positions, strict=True)]
            return np.concatenate([np.zeros(0), *parts[1:]])

        return LiveTree(
            tree=tree,
            parent=np.concatenate(
                [np.zeros(0, dtype=int), *(numbers[d - 1][positions[d] // V] for d in range(1, L + 1))]
            ),
            depth_ends=np.cumsum([len(position) for position in positions]),
            target_conditionals=gather(tree.target_conditionals),
            weights=gather(worth),
            draft_probs=gather(tree.draft_probs),
            bin_node=bin_node,
            bin_mass=mass[bin_node] / mass[bin_node].sum(),
            bin_of_leaf=bin_of_node[attached],
            positions=positions,
            fixed_prices=fixed,
        )

    @property
    def size(self) -> int:
        """n, the number of live nodes besides the root."""
        return len(self.parent)

    def nodes_at(self, depth: int) -> slice:
        """Where the nodes of a depth ≥ 1 stand in an array [n]."""
        return slice(self.depth_ends[depth - 1] - 1, self.depth_ends[depth] - 1)

    def leaf_law(self, bin_law: np.ndarray) -> np.ndarray:
        """r on the leaves of the full tree: every bin's share spread in proportion to q, [V^L]."""
        ratio = np.append(bin_law / self.bin_mass, 0.0)  # the last entry serves the leaves in no bin
        kept = np.bincount(self.bin_of_leaf + 1, weights=self.tree.draft_probs[-1])[1:].sum()
        return ratio[self.bin_of_leaf] * self.tree.draft_probs[-1] / kept

    def full_prices(self, target_prices: np.ndarray) -> Levels:
        """z on the full tree, from z at the live nodes."""
        levels = [level.copy() for level in self.fixed_prices]
        for depth in range(1, self.tree.draft_length + 1):
            levels[depth][self.positions[depth]] = target_prices[self.nodes_at(depth)]
        return levels


def _fixed_prices(tree: ContextTree, num_drafts: int, live: Levels) -> Levels:
    """z at the nodes that are not live: 1 + Σ p z where the target limits the subtree, else 0."""
    limited_by_target = [np.zeros(1, dtype=bool)]
    for depth in range(1, tree.draft_length + 1):
        here = tree.target_probs[depth] <= num_drafts * tree.draft_probs[depth]
        first = tree.from_parents(live[depth - 1]) & ~live[depth]
        inherited = tree.from_parents(limited_by_target[-1])
        limited_by_target.append(~live[depth] & np.where(first, here, inherited))
    prices = [np.zeros(len(level)) for level in live]
    below = np.zeros(len(live[-1]))
    for depth in range(tree.draft_length, 0, -1):
        prices[depth] = np.where(limited_by_target[depth], 1.0 + below, 0.0)
        below = tree.from_children(tree.target_conditionals[depth] * prices[depth])
    return prices
