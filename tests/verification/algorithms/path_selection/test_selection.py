"""What all verifiers that select one path share: the law of the selection, torch, sampled drafts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from rankings import RANKINGS
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.foundation.arrays import Array
from spectheory.foundation.exact_numbers import to_flint
from spectheory.optima.bounds.skewed_draft import SkewedDraft
from spectheory.pairs.contexts import prefix_numbers
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.path_selection.greedy_multipath import GreedyMultipath
from spectheory.verification.algorithms.path_selection.leaf_rankings import ExplicitRanking
from spectheory.verification.algorithms.path_selection.mixed_multipath import MixedMultipath
from spectheory.verification.algorithms.path_selection.optimal_multipath import OptimalMultipath
from spectheory.verification.algorithms.path_selection.selection import PathSelection, SelectedPaths
from spectheory.verification.verifier import Verifier
from table import groups
from torch_support import drafted, on_device

# ----------------------------------------------------------------- greedy, with any ranking


class LastSelected(PathSelection):
    """Known to be wrong: selects the last draft but verifies against the law of the highest-ranked."""

    name = "last_selected"
    source = "a negative control"

    def select(self, paths: Array, target_rows: Array, draft_rows: Array) -> SelectedPaths:
        pair = instances.two_token(2)
        skewed = SkewedDraft.from_ranking(pair, paths.shape[-2])
        prefixes = prefix_numbers(paths, 2)[..., -1:, :]
        rows = np.stack([to_flint(t)[prefixes[..., i]] for i, t in enumerate(skewed.rows)], axis=-2)
        last = np.full((*paths.shape[:-2], 1), paths.shape[-2] - 1)
        return SelectedPaths(last, rows[..., 0, 0] * 0 + 1, target_rows[..., -1:, :, :], rows)


def test_the_law_of_the_selection_must_be_the_one_verified_against() -> None:
    """Lemma 4.4 needs r to be the law of the selected path: another law is not lossless."""
    assert output_law(LastSelected(), instances.two_token(2), 2).total_variation > 0
    assert output_law(LastSelected(), instances.two_token(2), 1).total_variation == 0


# ---------------------------------------------------------------------------------- torch


def torch_verifiers(pair: ModelPair, num_drafts: int) -> list[Verifier]:
    """Every verifier of this file, with custom parameters."""
    size = pair.vocab_size**pair.draft_length
    return [
        *(GreedyMultipath(ranking) for ranking in RANKINGS.values()),
        *(MixedMultipath(share) for share in (0, Fraction(1, 3), 1)),
        MixedMultipath(),
        MixedMultipath(0.3, RANKINGS["difference"]),
        ExplicitRanking(pair, np.random.default_rng(1).permutation(size)),
        OptimalMultipath(pair, num_drafts),
    ]


@pytest.mark.parametrize("device", ["cpu", *(["cuda"] if torch.cuda.is_available() else [])])
@pytest.mark.parametrize(
    "group", ["partial_overlap", "equal_models", "random-V3-L2-K3", "random-V2-L3-K3", "sticky_chain"]
)
def test_torch_agrees_with_numpy(group: str, device: str) -> None:
    """Stop probabilities, expected tokens and all correction rows to 1e-12, zeros and ties included."""
    case = [case for case in groups()[group] if case.num_drafts > 1][-1]
    arrays = drafted(case.pair.to_float(), case.num_drafts, batch=48, seed=23)
    for verifier in torch_verifiers(case.pair, case.num_drafts):
        expected, found = verifier.outcome(*arrays), verifier.outcome(*on_device(arrays, device))
        assert found.stop_probs.dtype == torch.float64
        assert tuple(found.stop_probs.shape) == expected.stop_probs.shape
        np.testing.assert_allclose(
            found.stop_probs.cpu().numpy(), expected.stop_probs, rtol=0, atol=1e-12, err_msg=str(verifier)
        )
        assert abs(expected.stop_probs.sum(axis=(1, 2)) - 1).max() < 1e-12
        for path_index, length in np.ndindex(expected.stop_probs.shape[1:]):
            where = np.full(48, path_index), np.full(48, length)
            rows = found.correction(*on_device(where, device)).cpu().numpy()
            stops = expected.stop_probs[:, path_index, length] > 1e-9
            np.testing.assert_allclose(
                rows[stops], expected.correction(*where)[stops], rtol=0, atol=1e-12, err_msg=str(verifier)
            )


def test_torch_partner_the_verifiers_differ_and_float32_stays() -> None:
    """On the same drafts different parameters give different numbers; float32 rows stay float32."""
    case = groups()["random-V3-L2-K3"][-1]
    paths, *rows = on_device(drafted(case.pair.to_float(), 3, batch=48, seed=23), "cpu")
    found = [MixedMultipath(share).outcome(paths, *rows).stop_probs for share in (0, 0.5, 1)]
    assert (found[0] - found[1]).abs().max() > 0.01
    assert (found[1] - found[2]).abs().max() > 0.01
    for verifier in torch_verifiers(case.pair, 3):
        outcome = verifier.outcome(paths, *(row.float() for row in rows))
        assert outcome.stop_probs.dtype == torch.float32
        assert outcome.correction(paths[:, 0, 0] * 0, paths[:, 0, 0] * 0).dtype == torch.float32


@pytest.mark.parametrize("build", [lambda pair: MixedMultipath(), lambda pair: OptimalMultipath(pair, 2)])
def test_estimates_from_sampled_drafts(build: Any) -> None:
    """Rao-Blackwell mean of 20 000 sampled drafts within 5 standard errors of the exact law; not of +0.1."""
    pair = instances.sticky_chain(2)
    verifier = build(pair)
    exact = float(output_law(verifier, pair, 2).block_efficiency)
    arrays = on_device(drafted(pair.to_float(), 2, 20_000, seed=77), "cpu")
    tokens = verifier.outcome(*arrays).expected_tokens().numpy()
    assert abs(tokens.mean() - exact) <= 5 * tokens.std() / 20_000**0.5
    assert abs(tokens.mean() - exact - 0.1) > 5 * tokens.std() / 20_000**0.5
