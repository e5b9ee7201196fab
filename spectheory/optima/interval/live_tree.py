"""The live tree: the part of the tree that the interior-point method uses, without nodes of tiny mass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectheory.optima.bounds.context_tree import ContextTree, Levels
from spectheory.optima.bounds.dual_scores import needed_scores, slacks_of_shares
from spectheory.pairs.contexts import parent_nodes


@dataclass(frozen=True, eq=False)
class LiveTree:
    """The live nodes of a tree, and bins of leaves.

    A node is live if its parent is live and min{p(a), K q(a)}, a bound on x(a), is above a threshold.  All
    other nodes are dead: they have x(a) = 0 and fixed scores and slacks.  The first dead node a on the path
    decides for its subtree.  If p(a) ≤ K q(a), the target limits the subtree, and y = 0.  Otherwise the draft
    limits it, and z = 0.

    Every leaf is attached to its last live context.  The leaves attached to one node have equal path scores,
    so they form one *bin* b, with draft mass q_b.  Bins of tiny mass are omitted.

    The live nodes are numbered by depth, and within a depth in the order of the tree's contexts.  The root is
    0.  An array [n] has entries for the nodes 1..n.

    Attributes:
        tree: the full tree.
        parent: the parent's number, [n].
        depth_ends: the number of live nodes of depth at most d, root included, for d = 0..L.
        target_conditionals: p(x|a) at node (a, x), [n].
        weights: the worth of one unit of x(a), 1 + Σ p(x|a) z(a, x) over dead children, [n].
        draft_probs: q(a), [n].
        bin_node: the node to which the bin's leaves are attached, [B], increasing.
        bin_mass: q_b, [B], divided by its sum.
        bin_of_leaf: the bin of every leaf of the full tree, -1 for leaves in no bin, [V^L].
        positions: the index within its depth of every live node, by depth.
        fixed_slacks: z by depth at dead nodes, and 0 at live ones.
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
    fixed_slacks: Levels

    @staticmethod
    def of(tree: ContextTree, num_drafts: int, threshold: float) -> LiveTree:
        """Build the live tree of a float64 tree, for a threshold on min{p(a), K q(a)}."""
        V = tree.vocab_size
        live, limited = [np.ones(1, dtype=bool)], [np.zeros(1, dtype=bool)]
        for target, draft in zip(tree.target_probs[1:], tree.draft_probs[1:], strict=True):
            parent_lives = np.repeat(live[-1], V)
            live.append(parent_lives & (np.minimum(target, num_drafts * draft) > threshold))
            by_target = np.where(parent_lives, target <= num_drafts * draft, np.repeat(limited[-1], V))
            limited.append(~live[-1] & by_target)
        fixed = slacks_of_shares(tree, limited)

        numbers = _numbered(live)  # numbers of the live nodes, -1 for dead nodes
        attached = numbers[0]  # the last live context on the path to every node
        for level in numbers[1:]:
            attached = np.where(level >= 0, level, np.repeat(attached, V))
        count = sum(int(level.sum()) for level in live)
        mass = np.bincount(attached, weights=tree.draft_probs[-1], minlength=count)
        bin_node = np.flatnonzero(mass > threshold / num_drafts)
        bin_of_node = np.full(count, -1)
        bin_of_node[bin_node] = np.arange(len(bin_node))

        below_root = np.concatenate(live)
        below_root[0] = False
        parents = np.concatenate(numbers)[parent_nodes(V, tree.draft_length)]
        conditionals = np.concatenate([rows.ravel() for rows in tree.target_rows])
        return LiveTree(
            tree=tree,
            parent=parents[below_root[1:]],
            depth_ends=np.cumsum([level.sum() for level in live]),
            target_conditionals=conditionals[below_root[1:]],
            weights=np.concatenate(needed_scores(tree, fixed))[below_root],
            draft_probs=np.concatenate(tree.draft_probs)[below_root],
            bin_node=bin_node,
            bin_mass=mass[bin_node] / mass[bin_node].sum(),
            bin_of_leaf=bin_of_node[attached],
            positions=[np.flatnonzero(level) for level in live],
            fixed_slacks=fixed,
        )

    @property
    def size(self) -> int:
        """n, the number of live nodes without the root."""
        return len(self.parent)

    def nodes_at(self, depth: int) -> slice:
        """Return the slice of an array [n] with the nodes of a depth ≥ 1."""
        return slice(self.depth_ends[depth - 1] - 1, self.depth_ends[depth] - 1)

    def gather(self, levels: Levels) -> np.ndarray:
        """Take the entries of the live nodes below the root, [n], from arrays by depth on the full tree."""
        parts = [level[position] for level, position in zip(levels, self.positions, strict=True)]
        return np.concatenate(parts[1:])

    def leaf_law(self, bin_law: np.ndarray) -> np.ndarray:
        """Compute r on the leaves of the full tree, [V^L]: each bin's mass is spread in proportion to q."""
        ratio = np.append(bin_law / self.bin_mass, 0.0)  # the last entry is for leaves in no bin (-1)
        kept = np.bincount(self.bin_of_leaf + 1, weights=self.tree.draft_probs[-1])[1:].sum()
        return ratio[self.bin_of_leaf] * self.tree.draft_probs[-1] / kept

    def full_slacks(self, slacks: np.ndarray) -> Levels:
        """Compute z by depth on the full tree, from z at the live nodes, [n]."""
        levels = [level.copy() for level in self.fixed_slacks]
        for depth in range(1, self.tree.draft_length + 1):
            levels[depth][self.positions[depth]] = slacks[self.nodes_at(depth)]
        return levels


def _numbered(live: list[np.ndarray]) -> list[np.ndarray]:
    """Number the live nodes 0, 1, .. depth after depth; dead nodes get -1."""
    flags = np.concatenate(live)
    numbers = np.where(flags, np.cumsum(flags) - 1, -1)
    return np.split(numbers, np.cumsum([len(level) for level in live])[:-1])
