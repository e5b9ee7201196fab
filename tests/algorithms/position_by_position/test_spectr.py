"""spectr: kseq at every position, on i.i.d. drafts and on trees that are acted out."""

from __future__ import annotations

from math import prod

import pytest

from drawn_trees import SIZES, acted_out, assert_close, drawn_trees, kseq_rule_by_hand, mapping_of
from edge_pairs import edge_pairs, random_pairs
from law_checks import assert_same_law
from spectheory.algorithms.position_by_position.kseq import KSeq
from spectheory.algorithms.position_by_position.spectr import SpecTr
from spectheory.drafts import Iid, PrefixTree
from spectheory.law import output_law


def test_kseq_is_spectr_at_one_position() -> None:
    """The same law, i.i.d. and on a tree of one level."""
    for pair in [*edge_pairs(1), *random_pairs(3, 1, 10, 660)]:
        for process in (Iid(2), Iid(3), PrefixTree((3,))):
            assert_same_law(
                output_law(KSeq(), pair, process=process), output_law(SpecTr(), pair, process=process)
            )


@pytest.mark.parametrize(("vocab_size", "widths", "how_many"), SIZES)
def test_laws_on_prefix_trees_are_those_acted_out(
    vocab_size: int, widths: tuple[int, ...], how_many: int
) -> None:
    """The law to 1e-12, draw by draw on explicit trees; lossless."""
    length = len(widths)
    cases = random_pairs(vocab_size, length, how_many, 700)
    for pair in [*(edge_pairs(length) if prod(widths) == 2 and length < 3 else []), *cases]:
        law = output_law(SpecTr(), pair, process=PrefixTree(widths))
        expected = acted_out(pair, drawn_trees(pair, widths, False), kseq_rule_by_hand)
        assert_close(mapping_of(law), expected, 1e-12)
        assert law.total_variation < 1e-12
