"""Naive sampling: lossless whatever is drafted, on every process, in every arithmetic."""

import numpy as np
import pytest
import torch

from spectheory import certify, instances
from spectheory.exact.law import output_law
from spectheory.pairs.contexts import context_number
from spectheory.pairs.drafts import (
    ConfidenceTree,
    DraftProcess,
    Iid,
    PrefixTree,
    ShapedTree,
    TopTree,
    WithoutReplacement,
)
from spectheory.verification.algorithms.naive_sampling import NaiveSampling
from spectheory.verification.evaluator import Evaluator
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import resolve

PROCESSES = [
    Iid(2),
    PrefixTree((2, 2)),
    WithoutReplacement((2, 1)),
    TopTree((2, 2)),
    ShapedTree((3, 1)),
    ConfidenceTree(5),
]


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process.name)
def test_the_block_efficiency_is_the_mass_of_what_is_drafted(process: DraftProcess) -> None:
    """Statement 5.27: 1 + Σ p(a) P(a is drafted), the hit probabilities by the recursions of the process."""
    for seed in range(4):
        pair = instances.random_rational([5, seed], 3, 2, zero_probability=0)
        law = output_law("naive_sampling", pair, process)
        assert law.total_variation == 0
        nodes = [(x,) for x in range(3)] + [(x, y) for x in range(3) for y in range(3)]
        drafted = [process.hit_probability(pair, [node]) for node in nodes]
        masses = [pair.target_path_probs(len(node))[context_number(node, 3)] for node in nodes]
        assert law.block_efficiency == 1 + sum(map(np.multiply, masses, drafted))


class CountsTwice(NaiveSampling):
    """Adds the masses of drafts that carry the same token: right only where drafts differ."""

    def outcome(self, paths, target_rows, draft_rows) -> Outcome:  # type: ignore[no-untyped-def]
        right = super().outcome(paths, target_rows, draft_rows)
        same = (paths[..., :1, 0] == paths[..., 1:, 0]).sum(-1)
        stops = right.stop_probs.copy()
        moved = np.where(same > 0, stops[..., 0, 0], stops[..., 0, 0] * 0) / 2
        stops[..., 0, 0] -= moved
        stops[..., 0, -1] += moved
        return Outcome(stops, right.correction)


def test_the_partner_is_wrong_only_where_drafts_coincide() -> None:
    pair = instances.two_token(1)
    assert not certify(CountsTwice(), pair, 2).target_matching
    assert certify(CountsTwice(), pair, TopTree((2,))).target_matching


def test_rows_of_torch_have_the_same_law() -> None:
    """And tokens behind the end of a path are never indexed with."""
    pair, process = instances.random_rational(7, 3, 2, zero_probability=0).to_float(), ConfidenceTree(6)
    problem = resolve("naive_sampling", pair, process)
    (chunk,) = process.tuples(pair, 1)
    tuples = Evaluator.of(problem, process).tuples(chunk.leaves)
    assert (tuples.tokens == -1).any()
    ours = problem.verifier.outcome(*tuples[1:])
    theirs = problem.verifier.outcome(*(torch.tensor(array) for array in tuples[1:]))
    assert theirs.stop_probs.numpy() == pytest.approx(ours.stop_probs, abs=1e-15)
    for path in range(6):
        for length in range(3):
            if ours.stop_probs[0, path, length] > 0:
                stop = np.array([path]), np.array([length])
                rows = theirs.correction(*map(torch.tensor, stop))
                assert rows.numpy() == pytest.approx(ours.correction(*stop), abs=1e-15)
