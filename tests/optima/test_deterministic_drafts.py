"""The optimum of deterministic drafts: the antichain program, enumeration, and 1 + Σ p over the tree."""

from collections.abc import Iterator

from spectheory import instances, optimum
from spectheory.exact.law import output_law
from spectheory.optima.cutting_planes import multi_path_optimum
from spectheory.optima.deterministic_drafts import deterministic_program
from spectheory.optima.solving.solution import check_solution
from spectheory.pairs.contexts import context_number
from spectheory.pairs.drafts import ConfidenceTree, Deterministic, TopTree
from spectheory.pairs.pair import ModelPair

SHAPES = ((2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1), (4, 2))


def cases(seeds: range) -> Iterator[tuple[ModelPair, Deterministic]]:
    for seed in seeds:
        size, length = SHAPES[seed % len(SHAPES)]
        pair = instances.random_rational([271, seed], size, length, zero_probability=0.2)
        yield pair, TopTree((1 + seed % 2, *[1] * (length - 2), min(2, size))[-length:])
        yield pair, ConfidenceTree(1 + seed % (size * length))


def drafted_mass(pair: ModelPair, process: Deterministic) -> object:
    nodes = {path[:length] for path in process.paths(pair) for length in range(1, len(path) + 1)}
    return 1 + sum(pair.target_path_probs(len(node))[context_number(node, pair.vocab_size)] for node in nodes)


def test_the_optimum_is_the_mass_of_the_tree_and_naive_sampling_earns_it() -> None:
    """Statement 5.27 on 68 pairs and trees, the certificate checked against the program."""
    count = 0
    for pair, process in cases(range(34)):
        found = optimum(pair, process)
        check_solution(deterministic_program(pair, process), found)
        assert found.value == drafted_mass(pair, process)
        law = output_law("naive_sampling", pair, process)
        assert law.total_variation == 0
        assert law.block_efficiency == found.value
        count += 1
    assert count == 68


def test_the_program_over_all_antichains_has_the_same_optimum() -> None:
    for pair, process in cases(range(28)):
        if (pair.vocab_size, pair.draft_length) in ((2, 1), (2, 2), (3, 1), (4, 1)):
            assert multi_path_optimum(pair, process).value == optimum(pair, process).value


def test_the_partner_a_tree_of_other_nodes_has_another_optimum() -> None:
    pair = instances.two_token(2)
    assert optimum(pair, TopTree((1, 1))).value < optimum(pair, TopTree((1, 2))).value
    assert optimum(pair, TopTree((1, 2))).value != optimum(pair, 2).value
