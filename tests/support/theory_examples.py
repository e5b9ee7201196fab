"""What docs/theory.md names and the package does not have: counterexamples, and bounds as they are stated."""

from fractions import Fraction
from typing import Any

import numpy as np

from spectheory import ModelPair, Outcome, output_law
from spectheory.optima.bounds.dual_scores import upper_bound
from spectheory.pairs.drafts import ConfidenceTree, TopTree  # noqa: F401 - for the tables of theory.md
from spectheory.pairs.instances import forced_start as forced_start_pair  # noqa: F401 - for the tables of theory.md
from spectheory.verification.algorithms.pooled import Pooled  # noqa: F401 - for the tables of theory.md
from spectheory.verification.algorithms.position_by_position.kseq import KSeq
from spectheory.verification.algorithms.position_by_position.positions import PositionByPosition
from spectheory.verification.algorithms.recoupled import Recoupled
from spectheory.verification.length_rules import WithLengthRule
from tree_rankings import best_ranking

TWO_TOKEN = (["1/3", "2/3"], ["2/3", "1/3"])
"""Target and draft row of the two-token pair."""
REVERSED = (["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"])
"""Target (1/2, 1/3, 1/6) and the draft with the same row reversed."""

Context = tuple[int, ...]


def agreeing_pair() -> ModelPair:
    """Models that agree well, on which greedy_multipath earns less than spectr (Statement 5.7)."""
    fair, heads, tails = ["1/2", "1/2"], ["3/4", "1/4"], ["1/4", "3/4"]
    target = {(): fair, (0,): fair, (1,): fair, (0, 0): fair, (0, 1): tails, (1, 0): heads, (1, 1): heads}
    draft = {(): fair, (0,): heads, (1,): tails}
    return ModelPair.from_contexts(target, draft, 2)


def low_ratio_pair() -> ModelPair:
    """One position whose minimum cut has a threshold below 1 (Statement 5.14)."""
    return ModelPair.context_free_pair(["0", "27/100", "73/100"], ["1/5", "3/10", "1/2"], draft_length=1)


def flat_root_pair() -> ModelPair:
    """A root that does not tell which share of the first draft is best behind it (Statement 5.8)."""
    sure, fair = ["1", "0"], ["1/2", "1/2"]
    target = dict.fromkeys([(), (0,), (1,), (0, 0), (0, 1), (1, 0), (1, 1)], sure)
    return ModelPair.from_contexts(target, {(): sure, (0,): fair, (1,): sure}, 2)


def block_on_prefix(num_tokens: int) -> WithLengthRule:
    """Block verification of the first n drafted tokens; the others are never accepted (Statement 4.6)."""
    return WithLengthRule("block", lambda tokens, rows: min(num_tokens, len(tokens)))


class PathsAsDrafts:
    """A position-by-position verifier that is not told which paths of a tree share a draw (§2)."""

    def __init__(self, verifier: PositionByPosition) -> None:
        self.verifier, self.name, self.exact = verifier, f"{verifier.name}_paths", verifier.exact

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        return self.verifier.outcome(paths, target_rows, draft_rows)


def kseq_defect(target: list[str], draft: list[str], num_drafts: int, division_factor: str) -> Any:
    """The total variation of K-SEQ with a factor that need not be valid (Statement 3.5)."""
    pair = ModelPair.context_free_pair(target, draft, draft_length=1)
    return output_law(KSeq(Fraction(division_factor), checked=False), pair, num_drafts).total_variation


def values_of_rankings(
    target: list[str], draft: list[str], draft_length: int, num_drafts: int
) -> tuple[Any, Any]:
    """Block efficiency of the ranking by p/q, and of the best orders of children, context by context."""
    pair = ModelPair.context_free_pair(target, draft, draft_length)
    found = best_ranking(pair, num_drafts)
    return found.greedy.value, found.best.value


def bound_with_cap(pair: ModelPair, num_drafts: int, cap: str) -> Any:
    """B(C) of Statement 5.14, an upper bound on every lossless verifier."""
    return upper_bound(pair, num_drafts, cap_scores(pair, Fraction(cap)))


def cap_scores(pair: ModelPair, cap: Fraction) -> list[np.ndarray]:
    """y of Statement 5.14 by depth 0..L: G(a) on hits and 0 elsewhere."""
    capped, hits = [Fraction(1)], [[True]]
    for target, draft in zip(pair.target[:-1], pair.draft, strict=True):
        grown = [
            score * p / q if q else None
            for score, p_row, q_row in zip(capped, target, draft, strict=True)
            for p, q in zip(p_row, q_row, strict=True)
        ]
        hits.append([value is None or value >= cap for value in grown])
        capped = [cap if hit else value for value, hit in zip(grown, hits[-1], strict=True)]
    scores: list[np.ndarray] = []
    carried = None  # z of the level below
    for depth in reversed(range(pair.draft_length + 1)):
        visited = np.full(pair.vocab_size**depth, Fraction(1))
        if carried is not None:
            visited = visited + (pair.target[depth] * carried.reshape(-1, pair.vocab_size)).sum(axis=1)
        scores.append(np.where(hits[depth], visited, Fraction(0)))
        carried = np.where(hits[depth], Fraction(0), visited)
    return scores[::-1]


class OnPathOptimum(Recoupled):
    """The optimum of every pair with V = L = K = 2 from rows on the drafted paths (Statement 5.26).

    The masses are those of the proof; of the base only the coupling is used.
    """

    def output_masses(self, tokens: np.ndarray, targets: np.ndarray, drafts: np.ndarray) -> np.ndarray:
        masses = np.zeros_like(drafts) * drafts[0, 0, 0, 0]
        for number, event in enumerate(tokens[:, :, 0].tolist()):
            p, q = targets[number, 0, 0], drafts[number, 0, 0]
            kept = [min(p[z], 1 - (1 - q[z]) ** 2) for z in (0, 1)]
            alone = [min(1, p[z] / q[z] ** 2) if q[z] else 0 for z in (0, 1)]
            for z in set(event):
                path = event.index(z)
                rows = targets[number, path, 1], drafts[number, path, 1]
                both = self._given_both(kept[z], alone[z], q[z], 2 * q[0] * q[1], *rows)
                if event[0] != event[1]:
                    masses[number, path, 1] = both
                else:
                    masses[number, path, 1] = (kept[z] * rows[0] - 2 * q[0] * q[1] * both) / q[z] ** 2
            left = 1 - masses[number].sum()
            short = [p[z] - kept[z] for z in (0, 1)]
            if left:
                masses[number, 0, 0] = [left * part / sum(short) for part in short]
        return masses

    def _given_both(self, kept: Any, alone: Any, q: Any, prob: Any, target: Any, draft: Any) -> np.ndarray:
        """e(z, .) given two first tokens: nearest to c q(. | z) among what serves z alone best."""
        if not prob:
            return target * 0
        share = (kept - q**2 * alone) / prob
        wanted = kept * target[0]
        served = [(wanted - q**2 * end) / prob for end in (1 - draft[1] ** 2, draft[0] ** 2)]
        possible = max(0, (wanted - q**2 * alone) / prob), min(share, wanted / prob)
        token = self._nearest(share * draft[0], served)
        token = min(max(token, possible[0]), possible[1])
        return np.array([token, share - token])

    def _nearest(self, number: Any, ends: list[Any]) -> Any:
        return min(max(number, ends[0]), ends[1])


def growth_bound(target: list[str], draft: list[str], draft_length: int, num_drafts: int) -> float:
    """Statement 5.31 with s = 1/2 for a context-free pair."""
    rho = sum((Fraction(p) * Fraction(q)) ** 0.5 for p, q in zip(target, draft, strict=True))
    return 1 + sum(min(1.0, num_drafts**0.5 * rho**depth) for depth in range(1, draft_length + 1))
