"""Compute the law of a verifier that selects one of K i.i.d. paths and block-verifies it.

It is the law of ``Block`` on a path that is drawn from one law and verified against another.  The path
follows the law with which the verifier really selects.  ``Block`` uses the rows that the verifier states for
the selected path.  If the two differ, the output law shows the error.
"""

from itertools import combinations

import numpy as np

from spectheory.exact.laws.by_prefix import law_by_prefixes
from spectheory.exact.laws.outputs import Masses
from spectheory.foundation.arrays import like_entries
from spectheory.optima.bounds.context_tree import subtree_sums
from spectheory.optima.bounds.skewed_draft import ranked_leaf_law
from spectheory.pairs.drafts import Iid
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.one_path.block import Block
from spectheory.verification.algorithms.path_selection.leaf_rankings import LeafRankings
from spectheory.verification.algorithms.path_selection.scored import ScoredSelection, winning_chances
from spectheory.verification.algorithms.path_selection.selection import PathSelection
from spectheory.verification.evaluator import Evaluator
from spectheory.verification.resolve import Problem
from spectheory.verification.user_checks import sampled_leaves

SAMPLED = 64
"""On so many tuples of K paths an order that was found from pairs of paths is tried."""


def law_by_selection(verifier: PathSelection, problem: Problem) -> Masses | None:
    """Compute the law of ``verifier``.  ``None`` if its selection does not follow a ranking by siblings.

    Raises:
        InvalidOutcomeError: an answer at some context is not a law.
    """
    pair, num_drafts = problem.pair, problem.process.num_drafts
    evaluator = Evaluator.of(problem, problem.process)
    said = _said_rows(verifier, evaluator, pair, num_drafts)
    selected = _selected_law(verifier, evaluator, problem) if said is not None else None
    if said is None or selected is None:
        return None
    reach = subtree_sums(selected, pair.vocab_size, pair.draft_length)
    return law_by_prefixes(Block(), pair.numbers.target, said, reach)


def _said_rows(
    verifier: PathSelection, evaluator: Evaluator, pair: ModelPair, num_drafts: int
) -> list[np.ndarray] | None:
    """Find the rows that ``select`` states for each context, by depth, [V^depth, V].

    We call it on K copies of one path through each context.  ``None`` if a row depends on later tokens.
    """
    size, length = pair.vocab_size, pair.draft_length
    leaves = np.arange(size ** (length - 1))[:, None] * size
    copies = evaluator.tuples(np.repeat(leaves, num_drafts, axis=1))
    rows = verifier.select(*copies[1:]).skewed_rows[:, 0]
    said = []
    for depth in range(length):
        below = size ** (length - 1 - depth)
        said.append(rows[::below, depth])
        if not (np.repeat(said[-1], below, axis=0) == rows[:, depth]).all():
            return None  # a row looks ahead
    return said


def _selected_law(verifier: PathSelection, evaluator: Evaluator, problem: Problem) -> np.ndarray | None:
    """Compute the probability that each path is selected, [V^L].  ``None`` if no ranking explains it."""
    pair, num_drafts = problem.pair, problem.process.num_drafts
    probs = pair.numbers.draft_path_probs[-1]
    if num_drafts == 1 or len(probs) == 1:
        return probs
    if isinstance(verifier, ScoredSelection):
        return _scored_law(verifier, pair, num_drafts)
    if isinstance(verifier, LeafRankings):
        mixed = 0 * probs
        for weight, order in zip(verifier.weights, verifier.orders, strict=True):
            law = ranked_leaf_law(probs, np.array(order), num_drafts)
            mixed = mixed + like_entries(weight, probs) * law
        return mixed

    tuples = sampled_leaves(problem, SAMPLED)
    candidates, chances = verifier.candidates(*evaluator.tuples(tuples)[1:])
    if not (chances == chances[:1]).all():
        return None
    of_two, law = Evaluator.of(problem, Iid(2)), 0 * probs
    for number in range(candidates.shape[1]):

        def winners(leaves: np.ndarray, number: int = number) -> np.ndarray:
            """Whether candidate ``number`` is the second of two paths (1) or the first (0).  [N, 2] -> [N]"""
            return verifier.candidates(*of_two.tuples(leaves)[1:])[0][:, number]

        selected = tuples[np.arange(len(tuples)), candidates[:, number]]
        siblings = _siblings(pair.vocab_size, pair.draft_length)
        won = winners(siblings)
        if not won.any() and not winners(siblings[:, ::-1]).any():  # always the first path
            if (selected != tuples[:, 0]).any():
                return None
            law = law + chances[0, number] * probs
            continue
        rank = _ranks(won, pair.vocab_size, pair.draft_length)
        if rank is None or (rank[tuples].max(axis=1) != rank[selected]).any():
            return None
        order = np.argsort(rank)
        neighbours = np.stack([order[:-1], order[1:]], axis=1)
        # Of an order, that it goes by siblings shows at its neighbours.
        if not winners(neighbours).all() or winners(neighbours[:, ::-1]).any():
            return None
        law = law + chances[0, number] * ranked_leaf_law(probs, order, num_drafts)
    return law


def _siblings(size: int, length: int) -> np.ndarray:
    """List the first leaves below two children of a context, for all pairs of siblings, [.., 2]."""
    pairs = np.array(list(combinations(range(size), 2)))
    below = [size ** (length - depth - 1) for depth in range(length)]
    contexts = [np.arange(size**depth)[:, None, None] * size for depth in range(length)]
    return np.concatenate([((c + pairs) * b).reshape(-1, 2) for c, b in zip(contexts, below, strict=True)])


def _ranks(winners: np.ndarray, size: int, length: int) -> np.ndarray | None:
    """Compute the rank of every leaf from the winners among ``_siblings``; ``None`` if there is no order."""
    pairs = np.array(list(combinations(range(size), 2)))
    rank, start = np.zeros(1, dtype=np.int64), 0
    for depth in range(length):
        won = winners[start : start + len(pairs) * size**depth].reshape(-1, len(pairs))
        start += won.size
        wins = np.zeros((size**depth, size), dtype=np.int64)
        np.add.at(wins.T, pairs[:, 0], won.T == 0)
        np.add.at(wins.T, pairs[:, 1], won.T == 1)
        if not (np.sort(wins, axis=1) == np.arange(size)).all():
            return None
        rank = (rank[:, None] * size + wins).ravel()
    return rank


def _scored_law(verifier: ScoredSelection, pair: ModelPair, num_drafts: int) -> np.ndarray:
    """Compute q(b) K P(the score of b is the largest of K) for every path b; the other K - 1 paths are drawn.

    This probability is linear in the law of each other score.  So we replace that law by its mean over paths.
    """
    leaves = np.arange(pair.vocab_size**pair.draft_length)
    path = Evaluator.of(Problem(verifier, pair, Iid(1)), Iid(1)).tuples(leaves[:, None])
    _, tokens, target_rows, draft_rows = (array[:, 0] for array in path)
    masses = verifier.score_states(tokens, target_rows, draft_rows, num_drafts).masses
    probs = pair.numbers.draft_path_probs[-1]
    others = np.repeat((probs[:, None] * masses).sum(axis=0)[None], num_drafts - 1, axis=0)
    every = np.broadcast_to(others, (len(masses), *others.shape))
    return probs * num_drafts * winning_chances(np.concatenate([masses[:, None], every], axis=1))[:, 0]
