"""Hub drafts: their law, the optimum at one position and what verifiers earn."""

from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from coupled_drafts import hub_plan
from decoding_support import tiny_pair
from spectheory import certify, instances, optimum, prove
from spectheory.foundation.errors import InvalidInputError
from spectheory.models.drafting import draft_and_score, prefill
from spectheory.optima.multi_path import antichains
from spectheory.pairs.drafts import DraftProcess, HubTree, WithoutReplacement
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms import verifiers

PAIRS = [
    instances.random_rational(seed, size, length, zero_probability=0, equal_row_probability=0)
    for seed, (size, length) in enumerate([(2, 1), (3, 1), (4, 1), (2, 2), (3, 2), (4, 1), (3, 1)])
]


def law(pair: ModelPair, process: DraftProcess) -> dict[tuple[int, ...], Any]:
    found: dict[tuple[int, ...], Any] = defaultdict(Fraction)
    for chunk in process.tuples(pair, 1_000):
        for leaves, prob in zip(chunk.leaves.tolist(), chunk.probs, strict=True):
            found[tuple(leaves)] += prob
    return found


@pytest.mark.parametrize("pair", PAIRS)
def test_the_law_of_the_tuples(pair: ModelPair) -> None:
    """It sums to 1, its first path is the draft model's, and at one position it is that of ``hub_plan``."""
    for widths in {(2, *[1] * (pair.draft_length - 1)), (2,) * pair.draft_length}:
        process = HubTree(widths)
        found = law(pair, process)
        assert sum(found.values()) == 1
        assert process.count_tuples(pair) == len(found)
        first = np.zeros(pair.vocab_size**pair.draft_length, dtype=object)
        for leaves, prob in found.items():
            first[leaves[0]] += prob
        assert first.tolist() == pair.draft_path_probs(pair.draft_length).tolist()
        members = antichains(pair.vocab_size, pair.draft_length)[:50]
        assert DraftProcess._hits(process, pair, members).tolist() == process._hits(pair, members).tolist()
    if pair.draft_length == 1:
        plan = hub_plan(pair.target[0][0], pair.draft[0][0])
        assert law(pair, HubTree((2,))) == plan.draft_law
        assert optimum(pair, HubTree((2,))).value == 1 + plan.acceptance


class TakesThemForDistinctDraws(type(verifiers["multi_round_without_replacement"])):  # type: ignore[misc]
    """Not lossless: the second token of a node is not drawn from the row without the first."""

    draft_processes = frozenset({"hub_tree"})


@pytest.mark.parametrize("pair", PAIRS)
def test_certificates(pair: ModelPair) -> None:
    process = HubTree((2, *[1] * (pair.draft_length - 1)))
    for name in ("token", "block", "naive_sampling"):
        certificate = certify(name, pair, process)
        assert certificate
        assert certificate.block_efficiency <= certificate.optimum


def test_a_verifier_of_other_drafts_is_flagged() -> None:
    """Where token 1 and then the hub are rejected, the others have the residual (2/3, 1/3)."""
    pair = ModelPair.context_free_pair(
        ["1/10", "1/10", "5/10", "3/10"], ["5/10", "3/10", "1/10", "1/10"], draft_length=1
    )
    assert certify("multi_round_without_replacement", pair, WithoutReplacement((2,)))
    assert certify("naive_sampling", pair, HubTree((2,)))
    assert not certify(TakesThemForDistinctDraws(), pair, HubTree((2,)))


def test_language_models_draft_by_the_law() -> None:
    """Pearson's chi-square of 4 000 pairs of tokens; without replacement has another law."""
    from scipy.stats import chisquare

    pair, prompts = tiny_pair(), [[0, 1]] * 4_000
    statistics = []
    for process in (HubTree((2,)), WithoutReplacement((2,))):
        drafted = draft_and_score(prefill(pair, prompts), process, 1, pair.generator(3))
        row = drafted.draft_rows[0, 0, 0].numpy()
        plan = hub_plan(row, row)
        numbers = list(plan.draft_law)
        counts = [(drafted.paths[:, :, 0] == torch.tensor(key)).all(1).sum().item() for key in numbers]
        if process.name == "hub_tree":
            assert sum(counts) == len(prompts)
        expected = np.array(list(plan.draft_law.values()), dtype=float)
        statistics.append(chisquare(counts, expected * sum(counts) / expected.sum()).pvalue)
    assert statistics[0] > 0.001 > statistics[1]


def test_hub_trees_that_cannot_be_drafted() -> None:
    with pytest.raises(InvalidInputError, match=r"1 or 2 next tokens, got widths \[3\]"):
        HubTree((3,))
    with pytest.raises(InvalidInputError, match="only 1 tokens with mass"):
        certify("naive_sampling", instances.point_masses(1), HubTree((2,)))
    with pytest.raises(InvalidInputError, match="a proof speaks of these"):
        prove("naive_sampling", vocab_size=2, draft_length=1, drafts=HubTree((2,)))
    with pytest.raises(InvalidInputError, match="not valid for 'hub_tree' drafts"):
        certify("multi_round", instances.two_token(1), HubTree((2,)))
