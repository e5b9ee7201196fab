"""What all algorithms that select position by position share: one draft, trees, torch and memory."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep import first_is_quick
from drawn_trees import drawn_paths, drawn_trees
from edge_pairs import SPREAD, random_pairs
from law_checks import assert_same_law
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import DraftProcess, Iid, PerPath, PrefixTree, WithoutReplacement
from spectheory.pairs.pair import ModelPair
from spectheory.testing.strategies import pairs
from spectheory.verification.algorithms.position_by_position.kseq import KSeq
from spectheory.verification.algorithms.position_by_position.multi_round import MultiRound
from spectheory.verification.algorithms.position_by_position.multi_round_without_replacement import (
    MultiRoundWithoutReplacement,
)
from spectheory.verification.algorithms.position_by_position.otm import OTM
from spectheory.verification.algorithms.position_by_position.positions import PositionByPosition
from spectheory.verification.algorithms.position_by_position.spectr import SpecTr
from spectheory.verification.outcome import Outcome
from spectheory.verification.verifier import Verifier
from torch_support import DEVICES, assert_same_outcomes


class CountsRepeats:
    """Makes a position-by-position verifier treat repeated draws as independent drafts."""

    def __init__(self, verifier: PositionByPosition) -> None:
        self.verifier, self.name, self.exact = verifier, f"{verifier.name}_repeats", verifier.exact

    def outcome(self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray) -> Outcome:
        return self.verifier.outcome(paths, target_rows, draft_rows)


@first_is_quick("widths", [(1, 2), (1, 3)])
def test_draws_partner_counting_repeats_breaks_validity(widths: tuple[int, ...]) -> None:
    """The paths below one node share its draw; as independent drafts they give TV far above rounding."""
    pair = ModelPair.context_free_pair(*SPREAD, 2)
    process = PrefixTree(widths)
    for verifier in (SpecTr(), MultiRound()):
        assert output_law(verifier, pair, drafts=process).total_variation < 1e-12
        assert output_law(CountsRepeats(verifier), pair, drafts=process).total_variation > 1e-2
    wrong = output_law(
        CountsRepeats(OTM()), instances.two_token(2), drafts=PrefixTree((1, 2))
    ).total_variation
    assert wrong > Fraction(1, 100)


def test_trees_of_iid_paths_agree_with_iid() -> None:
    for pair in random_pairs(2, 2, 6, 1300):
        for verifier in (SpecTr(), MultiRound(), OTM()):
            assert_same_law(
                output_law(verifier, pair, drafts=PrefixTree((3, 1))), output_law(verifier, pair, 3), 1e-15
            )


@given(pair=pairs(exact=True), width=st.integers(1, 2))
def test_prefix_trees_with_any_pair(pair: ModelPair, width: int) -> None:
    """Branching at the last depth, pairs with zeros, ties and a single token; V <= 3, L <= 2."""
    process = PrefixTree((1,) * (pair.draft_length - 1) + (width,))
    assert output_law(MultiRound(), pair, drafts=process).total_variation == 0
    assert output_law(OTM(), pair, drafts=process).total_variation == 0
    assert output_law(SpecTr(), pair, drafts=process).total_variation < 1e-12


@pytest.mark.parametrize("process", [PerPath((instances.two_token(2),) * 2), WithoutReplacement((2, 1))])
@pytest.mark.parametrize("verifier", [SpecTr(), OTM()], ids=repr)
def test_processes_that_are_not_meant_are_refused(verifier: Verifier, process: DraftProcess) -> None:
    """K-SEQ and the plan from q^n suppose drafts from one q, with replacement."""
    with pytest.raises(InvalidInputError, match=f"not valid for '{process.name}' drafts"):
        output_law(verifier, instances.two_token(2), drafts=process)


def batch_of(pair: ModelPair, process: DraftProcess, batch: int, seed: int) -> tuple[np.ndarray, ...]:
    chunks = list(process.tuples(pair, 1000))
    leaves = np.concatenate([chunk.leaves for chunk in chunks])
    probs = np.concatenate([chunk.probs for chunk in chunks]).astype(float)
    chosen = leaves[np.random.default_rng(seed).choice(len(leaves), size=batch, p=probs / probs.sum())]
    size, length = pair.vocab_size, pair.draft_length
    prefixes = [chosen // size ** (length - depth) for depth in range(length + 1)]
    paths = np.stack([prefix % size for prefix in prefixes[1:]], axis=-1)
    target_rows = np.stack([pair.target[depth][prefixes[depth]] for depth in range(length + 1)], axis=-2)
    draft_rows = np.stack(
        [
            np.stack(
                [process.drafter(pair, k).draft[i][prefixes[i][:, k]] for k in range(process.num_drafts)],
                axis=1,
            )
            for i in range(length)
        ],
        axis=-2,
    )
    return paths, target_rows, draft_rows


FLOAT_MODELS = tuple(instances.random_float(60 + k, 3, 2) for k in range(2))

TORCH_CASES: list[tuple[Verifier, ModelPair, DraftProcess]] = [
    (KSeq(), instances.random_float(1, 5, 1), Iid(3)),
    (KSeq(2.5), instances.random_float(1, 5, 1), Iid(2)),
    (KSeq(Fraction(5, 2)), instances.partial_overlap(1).to_float(), PrefixTree((2,))),
    (SpecTr(), instances.random_float(2, 3, 2), Iid(3)),
    (SpecTr(), instances.random_float(3, 3, 2), PrefixTree((2, 2))),
    (SpecTr(), instances.partial_overlap(2).to_float(), PrefixTree((1, 2))),
    (MultiRound(), instances.random_float(4, 3, 2), Iid(3)),
    (MultiRound(), instances.random_float(5, 3, 2), PrefixTree((2, 2))),
    (MultiRound(), instances.disjoint_supports(2).to_float(), PrefixTree((2, 1))),
    (MultiRound(), FLOAT_MODELS[0], PerPath(FLOAT_MODELS)),
    (MultiRoundWithoutReplacement(), instances.random_float(6, 4, 2), WithoutReplacement((2, 2))),
    (MultiRoundWithoutReplacement(), instances.equal_models(2).to_float(), WithoutReplacement((3, 1))),
    (OTM(), instances.random_float(7, 3, 2), PrefixTree((2, 1))),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("verifier", "pair", "process"), TORCH_CASES, ids=[f"{v.name}-{p.name}" for v, _, p in TORCH_CASES]
)
def test_torch_agrees_with_numpy(
    verifier: Verifier, pair: ModelPair, process: DraftProcess, device: str
) -> None:
    """Batches of 8 x 6 tuples: stop probabilities and the rows of all stops made, to 1e-12."""
    arrays = [array.reshape((8, 6, *array.shape[1:])) for array in batch_of(pair, process, 48, seed=5)]
    assert_same_outcomes(device, verifier.bind(process), arrays, verifier.name)


def test_torch_partner_another_process_disagrees() -> None:
    """On the same paths, the verifier that was not told about the tree gives other numbers."""
    pair = instances.random_float(3, 3, 2)
    arrays = batch_of(pair, PrefixTree((2, 2)), 48, seed=5)
    told = SpecTr().bind(PrefixTree((2, 2))).outcome(*arrays)
    assert np.abs(told.stop_probs - SpecTr().outcome(*arrays).stop_probs).max() > 1e-3


def test_trees_that_are_acted_out_sum_to_one() -> None:
    pair = instances.random_rational(43, 3, 2, zero_probability=0)
    for widths, distinct in (((2, 1), False), ((2, 2), True), ((1, 2), True)):
        assert sum(prob for _, prob in drawn_trees(pair, widths, distinct)) == 1
    assert sum(prob for _, prob in drawn_paths(pair, [pair, pair])) == 1
