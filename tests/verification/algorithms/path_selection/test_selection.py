"""What all verifiers that select one path share: the law of the selection, torch, sampled drafts."""

from fractions import Fraction

import numpy as np

from deep import first_is_quick
from explicit_ranking import ExplicitRanking
from rankings import RANKINGS
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.foundation.arrays import Array
from spectheory.foundation.exact_numbers import to_flint
from spectheory.optima.bounds.skewed_draft import SkewedDraft
from spectheory.pairs.contexts import prefix_numbers
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.path_selection.greedy_multipath import GreedyMultipath
from spectheory.verification.algorithms.path_selection.mixed_multipath import MixedMultipath
from spectheory.verification.algorithms.path_selection.optimal_multipath import OptimalMultipath
from spectheory.verification.algorithms.path_selection.selection import PathSelection, SelectedPaths
from spectheory.verification.verifier import Verifier
from table import groups
from torch_support import DEVICES, assert_agrees_on


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


def torch_verifiers(pair: ModelPair, num_drafts: int) -> list[Verifier]:
    size = pair.vocab_size**pair.draft_length
    return [
        *(GreedyMultipath(ranking) for ranking in RANKINGS.values()),
        *(MixedMultipath(share) for share in (0, Fraction(1, 3), 1)),
        MixedMultipath(),
        MixedMultipath(0.3, RANKINGS["difference"]),
        ExplicitRanking(pair, np.random.default_rng(1).permutation(size)),
        OptimalMultipath(pair, num_drafts),
    ]


@first_is_quick("device", DEVICES)
@first_is_quick(
    "group", ["partial_overlap", "equal_models", "random-V3-L2-K3", "random-V2-L3-K3", "sticky_chain"]
)
def test_torch_agrees_with_numpy(group: str, device: str) -> None:
    """Stop probabilities and all correction rows to 1e-12, zeros and ties included."""
    case = [case for case in groups()[group] if case.num_drafts > 1][-1]
    for verifier in torch_verifiers(case.pair, case.num_drafts):
        assert_agrees_on(device, verifier, case.pair, case.num_drafts, str(verifier))
