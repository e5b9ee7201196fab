"""multi_round: its values, its closed form, and Algorithm 3 of spectr2023 acted out on explicit trees."""

from fractions import Fraction
from math import prod

import numpy as np
import pytest

from drawn_trees import (
    SIZES,
    acted_out,
    assert_close,
    drawn_paths,
    drawn_trees,
    kseq_rule_by_hand,
    multi_round_rule,
)
from edge_pairs import SPREAD, edge_pairs, random_pairs
from law_checks import assert_same_law
from reference import law_of
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.optima import optimal_acceptance
from spectheory.pairs.drafts import PerPath, PrefixTree
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.position_by_position.multi_round import (
    MultiRound,
    multi_round_acceptance,
)
from spectheory.verification.algorithms.position_by_position.spectr import SpecTr
from spectheory.verification.outcome import Outcome


def test_multi_round_reference_partner_one_survivor_earns_less() -> None:
    """Following the accepted draft alone, not the later ones that share its token, misses 7/3."""
    pair = instances.two_token(2)

    def efficiency(keep: int | None) -> Fraction:
        law = acted_out(pair, drawn_trees(pair, (2, 1), False), multi_round_rule, keep)
        return sum((len(path) * mass for path, mass in law.items()), Fraction(0))

    assert efficiency(None) == Fraction(7, 3)
    assert efficiency(1) < Fraction(7, 3)


@pytest.mark.parametrize("num_drafts", [1, 2, 3])
def test_multi_round_at_one_position_accepts_as_its_closed_form(num_drafts: int) -> None:
    """Acceptance 1 - prod_k (1 - sum min(p_k, q)), exactly; 13/18 for the three-token pair (theory.md §3)."""
    for pair in [*edge_pairs(1), *random_pairs(3, 1, 12, 680)]:
        closed = multi_round_acceptance(pair.target[0][0], pair.draft[0][0], num_drafts)
        assert output_law(MultiRound(), pair, num_drafts).block_efficiency == 1 + closed
        assert closed <= optimal_acceptance(pair.target[0][0], pair.draft[0][0], num_drafts).value
    assert output_law(MultiRound(), instances.three_token_reversed(1), 2).block_efficiency == 1 + Fraction(
        13, 18
    )


@pytest.mark.parametrize(("vocab_size", "widths", "how_many"), SIZES)
def test_laws_on_prefix_trees_are_those_acted_out(
    vocab_size: int, widths: tuple[int, ...], how_many: int
) -> None:
    """The laws, multi-round's exactly and SpecTr's to 1e-12, draw by draw on explicit trees; lossless."""
    length = len(widths)
    cases = random_pairs(vocab_size, length, how_many, 700)
    for pair in [*(edge_pairs(length) if prod(widths) == 2 and length < 3 else []), *cases]:
        trees, process = list(drawn_trees(pair, widths, False)), PrefixTree(widths)
        law = output_law(MultiRound(), pair, drafts=process)
        assert law_of(law) == acted_out(pair, trees, multi_round_rule)
        assert law.total_variation == 0
        law = output_law(SpecTr(), pair, drafts=process)
        assert_close(law_of(law), acted_out(pair, trees, kseq_rule_by_hand), 1e-12)
        assert law.total_variation < 1e-12


@pytest.mark.parametrize(
    ("vocab_size", "draft_length", "num_drafts", "how_many"),
    [(2, 1, 3, 10), (2, 2, 2, 12), (3, 1, 2, 12), (3, 2, 2, 4)],
)
def test_multi_round_with_a_model_per_path(
    vocab_size: int, draft_length: int, num_drafts: int, how_many: int
) -> None:
    """spectr2023 footnote 8: every path from its own model, each rejected against its own row; exactly."""
    for number, pair in enumerate(random_pairs(vocab_size, draft_length, how_many, 1000)):
        models = [
            instances.random_rational(2000 + 10 * number + k, vocab_size, draft_length)
            for k in range(num_drafts)
        ]
        law = output_law(MultiRound(), pair, drafts=PerPath(tuple(models)))
        assert law.total_variation == 0
        assert law_of(law) == acted_out(pair, drawn_paths(pair, models), multi_round_rule)


def test_model_per_path_partner_one_row_for_all_is_not_lossless() -> None:
    """Using the first model's row for every path breaks it; equal models make it i.i.d."""

    class FirstRowForAll(MultiRound):
        def outcome(self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray) -> Outcome:
            return super().outcome(paths, target_rows, np.repeat(draft_rows[..., :1, :, :], 2, axis=-3))

    pair = ModelPair.context_free_pair(*SPREAD, 1)
    models = (pair, ModelPair.context_free_pair(SPREAD[0], ["1/8", "1/2", "3/8"], 1))
    assert output_law(MultiRound(), pair, drafts=PerPath(models)).total_variation == 0
    assert output_law(FirstRowForAll(), pair, drafts=PerPath(models)).total_variation > Fraction(1, 100)
    same = output_law(MultiRound(), pair, drafts=PerPath((pair, pair)))
    assert_same_law(same, output_law(MultiRound(), pair, 2))
