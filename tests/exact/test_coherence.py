"""Who is coherent in the length and in the number of drafts: the data of the package against the laws."""

from itertools import product

import numpy as np
import pytest

from coherence import is_coherent_in_drafts, is_coherent_in_length
from draft_values import FAIR, OTHER, SKEW, rows_pair
from spectheory import instances, output_law, verifiers
from spectheory.exact.batches import batch_law, completed_law_given
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import KeptDrafts, PerPath, Shortened
from spectheory.pairs.instances import random_rational
from spectheory.verification.algorithms.position_by_position.kseq import KSeq
from spectheory.verification.length_rules import COHERENCE

REVERSED = rows_pair(["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"], 1)
DECIDED = [name for name in COHERENCE if COHERENCE[name].in_length is not None]


@pytest.mark.parametrize("name", DECIDED)
def test_coherence_in_length(name: str) -> None:
    """K = 2 (or 1) on the two-token pair; one pair suffices to deny, theory.md proves the others."""
    pair = instances.two_token(1 if verifiers[name].max_draft_length == 1 else 2).to_float()
    num_drafts = 1 if verifiers[name].single_path else 2
    assert is_coherent_in_length(name, pair, num_drafts) == COHERENCE[name].in_length


@pytest.mark.parametrize("name", DECIDED)
def test_coherence_in_the_number_of_drafts(name: str) -> None:
    """From one to two drafts of one token out of three."""
    assert is_coherent_in_drafts(name, REVERSED.to_float()) == COHERENCE[name].in_drafts


def test_kseq_with_one_division_factor_is_coherent() -> None:
    """Only a factor that depends on the number of drafts breaks it (Statement 8.2; §9, A4)."""
    assert is_coherent_in_drafts(KSeq(2), REVERSED)
    assert not is_coherent_in_drafts(KSeq(), REVERSED.to_float())


def test_exact_martingales_of_one_path() -> None:
    """Rationals, deeper, with zeros of the pair; exact match ignores the drafts."""
    for seed in range(3):
        pair = random_rational([82, seed], 2, 3)
        assert all(is_coherent_in_length(name, pair) for name in ("token", "block", "naive_sampling"))
    laws = [completed_law_given("naive_sampling", pair, (path,)) for path in product(range(2), repeat=2)]
    assert all((law == pair.target_path_probs(4)).all() for law in laws)
    token = [completed_law_given("token", pair, (path,)) for path in product(range(2), repeat=2)]
    assert any((law != token[0]).any() for law in token)


def test_completed_law_is_linear_in_the_kept_law() -> None:
    """The output law of kept drafts is the mean of M_n (Statement 8.1 (i))."""
    pair = random_rational([83], 3, 2)
    law = {(): "1/4", (1,): "1/4", (2, 0): "1/2"}
    mean = sum(
        np.array([float(prob.partition("/")[0]) / float(prob.partition("/")[2])] * 27)
        * completed_law_given("block", pair, (path,)).astype(float)
        for path, prob in law.items()
    )
    found = output_law("block", pair, KeptDrafts(law)).prefix_law(3).astype(float)
    assert np.allclose(mean, found)


def test_batches_of_different_models_and_stopping_points() -> None:
    """A stopping point is right for models that differ, and the density formula gives δ (8.7, 8.8)."""
    fair, skewed = rows_pair(OTHER, FAIR, 2), rows_pair(FAIR, SKEW, 2)
    drafts = PerPath((fair, skewed))
    admitted = Shortened(drafts, lambda tokens, rows: (1, 2) if tokens[0][0] == 0 else (1, 0))
    assert batch_law("block", fair, admitted).total_variation == 0
    peeks = Shortened(drafts, lambda tokens, rows: (1, 2) if tokens[0][1] == 0 else (1, 0))
    assert batch_law("block", fair, peeks).total_variation == 0  # token 2 of request 1 is a coin here
    wrong = Shortened(drafts, lambda tokens, rows: (2, 2) if tokens[0][1] == 0 else (1, 0))
    assert batch_law("block", fair, wrong).total_variation > 0


def test_every_published_verifier_has_an_entry() -> None:
    assert COHERENCE.keys() == set(verifiers)
    assert COHERENCE["block"].adaptive_lengths == "yes"
    assert COHERENCE["greedy_multipath"].adaptive_lengths == "per path only"


def test_paths_of_different_lengths_need_padding() -> None:
    each = Shortened(2, lambda tokens, rows: (1 + tokens[0][0], 1 + tokens[1][0]))
    with pytest.raises(InvalidInputError, match="different lengths"):
        output_law("multi_round", instances.two_token(2), each)
    assert output_law("naive_sampling", instances.two_token(2), each).total_variation == 0
