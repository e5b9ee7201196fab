"""Verifiers of several paths: any ranking, the optimal one, the mixture; and their skewed drafts."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
from law_checks import assert_same_law, budget_masses
from spectheory import certify, instances
from spectheory.algorithms.path_selection.base import PathSelection, SelectedPaths
from spectheory.algorithms.path_selection.greedy_multipath import GreedyMultipath
from spectheory.algorithms.path_selection.leaf_rankings import ExplicitRanking, LeafRankings
from spectheory.algorithms.path_selection.mixed_multipath import MixedMultipath, best_mixture, root_mixture
from spectheory.algorithms.path_selection.optimal_multipath import OptimalMultipath
from spectheory.arrays import Array, to_flint
from spectheory.bounds.antichain_hulls import most_violated_antichain
from spectheory.bounds.rankings import Ranking, check_leaf_order, leaf_order, ratio_ranking
from spectheory.bounds.skewed_draft import SkewedDraft
from spectheory.contexts import prefix_numbers
from spectheory.drafts import DraftProcess, WithoutReplacement
from spectheory.errors import InvalidInputError
from spectheory.iteration import decoded_tokens_law, first_tokens_law
from spectheory.law import output_law
from spectheory.outcome import Outcome
from spectheory.pair import ModelPair
from spectheory.programs import multi_path_optimum
from spectheory.testing.strategies import pairs
from spectheory.verifier import Verifier
from table import Case, groups
from torch_support import drafted, on_device

RANDOM_GROUPS = [
    "random-V2-L1-K3",
    "random-V2-L2-K3",
    "random-V2-L3-K2",
    "random-V3-L1-K2",
    "random-V3-L2-K2",
    "random-V4-L1-K3",
]
LAMBDAS = [Fraction(number, 5) for number in range(6)]

RANKINGS: dict[str, Ranking] = {
    "ratio": ratio_ranking,
    "reversed ratio": lambda target_rows, draft_rows: -ratio_ranking(target_rows, draft_rows),
    "target": lambda target_rows, draft_rows: target_rows,
    "unlikely last": lambda target_rows, draft_rows: -draft_rows,
    "difference": lambda target_rows, draft_rows: target_rows - draft_rows,
    "token id": lambda target_rows, draft_rows: draft_rows * 0,
}
"""Tree-based rankings; ties are frequent, and in the last all tokens tie."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small batches gain nothing from more threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def some_cases(group: str, most: int = 8) -> tuple[Case, ...]:
    """The first cases of a group of the table."""
    return groups()[group][:most]


def plain_order(pair: ModelPair, ranking: Ranking) -> list[tuple[int, ...]]:
    """All leaves by their tuples of (key, token id), the definition of a tree-based ranking."""

    def key(path: tuple[int, ...]) -> list[tuple[Any, int]]:
        steps = []
        for i, token in enumerate(path):
            rows = [np.array(row(pair, path[:i])) for row in (reference.target_row, reference.draft_row)]
            steps.append((ranking(*rows)[token], token))
        return steps

    return sorted(reference.leaves(pair), key=key)


# --------------------------------------------------------------------------- skewed drafts


@pytest.mark.parametrize("name", RANKINGS)
@pytest.mark.parametrize("group", [*RANDOM_GROUPS, "partial_overlap", "disjoint_supports", "point_masses"])
def test_leaf_form_is_tree_form(group: str, name: str) -> None:
    """Eq. 19 = Eqs. 22-23 at every node, ties and zeros included; both are what plain Python sums up."""
    for case in some_cases(group):
        pair, K = case.pair, case.num_drafts
        tree = SkewedDraft.from_ranking(pair, K, RANKINGS[name])
        leaf = SkewedDraft.from_order(pair, K, leaf_order(pair, RANKINGS[name]))
        order = plain_order(pair, RANKINGS[name])
        expected = reference.skewed_leaf_probs(pair, order, K)
        assert [expected[path] for path in reference.leaves(pair)] == tree.leaf_law.tolist(), case
        assert len(tree.node_laws) == len(leaf.node_laws) == pair.draft_length + 1
        for one, other in zip(tree.node_laws, leaf.node_laws, strict=True):
            assert (one == other).all(), case
            assert all(isinstance(value, Fraction) for value in one)
        assert check_leaf_order(pair, order).tolist() == leaf_order(pair, RANKINGS[name]).tolist()
        for depth, rows in enumerate(tree.rows):
            sums = rows.sum(axis=1)
            assert (sums == (tree.node_laws[depth] > 0)).all()
            reached = tree.node_laws[depth][:, None] * rows
            assert (reached.ravel() == tree.node_laws[depth + 1]).all()


def test_leaf_form_partner_the_printed_sums_are_no_law() -> None:
    """With q(P_i) inside the sums, as printed in Eq. 19, r does not sum to 1."""
    probs = instances.two_token(1).draft_path_probs(1)
    printed = [(i * q) ** 2 - ((i - 1) * q) ** 2 for i, q in enumerate(probs, start=1)]
    assert sum(printed) != 1
    assert sum(SkewedDraft.from_order(instances.two_token(1), 2, [0, 1]).leaf_law) == 1


def test_law_of_the_selected_path_by_enumerating_drafts() -> None:
    """r is how often the highest-ranked of K drafts is each leaf, tuple by tuple."""
    for seed in range(6):
        pair = instances.random_rational(seed, 2, 2)
        rank = np.argsort(np.random.default_rng(seed).permutation(4))
        probs = pair.draft_path_probs(2)
        counted = [Fraction(0)] * 4
        for drafts in product(range(4), repeat=3):
            counted[max(drafts, key=lambda leaf: rank[leaf])] += np.prod(probs[list(drafts)])
        assert SkewedDraft.from_order(pair, 3, np.argsort(rank)).leaf_law.tolist() == counted


def test_skewed_draft_bad_input() -> None:
    """Orders, laws and rankings of the wrong shape."""
    pair = instances.two_token(2)
    with pytest.raises(InvalidInputError, match="exactly once"):
        SkewedDraft.from_order(pair, 2, [0, 1, 2, 2])
    with pytest.raises(InvalidInputError, match=r"outside 0\.\.1"):
        SkewedDraft.from_order(pair, 2, [(0, 0), (0, 1), (1, 0), (1, 2)])
    with pytest.raises(InvalidInputError, match=r"expected \(4,\), one per context"):
        SkewedDraft.from_leaf_law(pair, np.array([Fraction(1)]))
    with pytest.raises(InvalidInputError, match="one key per token"):
        SkewedDraft.from_ranking(pair, 2, lambda target_rows, draft_rows: draft_rows[..., 0])
    with pytest.raises(InvalidInputError, match="one key per token"):
        output_law(GreedyMultipath(lambda target_rows, draft_rows: draft_rows[..., 0]), pair, 2)


# ----------------------------------------------------------------- greedy, with any ranking


@pytest.mark.parametrize("name", RANKINGS)
@pytest.mark.parametrize("group", [*RANDOM_GROUPS, "partial_overlap"])
def test_greedy_is_lossless_with_every_tree_ranking(group: str, name: str) -> None:
    """Valid exactly; the law is that of plain Python with one global order; Eq. 16 is its efficiency."""
    ranking = RANKINGS[name]
    for case in some_cases(group):
        pair, K = case.pair, case.num_drafts
        law = output_law(GreedyMultipath(ranking), pair, K)
        assert law.total_variation == 0, case
        assert most_violated_antichain(pair, budget_masses(law), K)[0] == 0, case
        skewed = reference.skewed_leaf_probs(pair, plain_order(pair, ranking), K)
        assert law.block_efficiency == reference.ranking_efficiency(pair, skewed), case
        assert law.block_efficiency == SkewedDraft.from_ranking(pair, K, ranking).block_efficiency(pair)
        bound = GreedyMultipath.with_order(pair, leaf_order(pair, ranking))
        assert_same_law(output_law(bound, pair, K), law)
        if name == "ratio":
            assert reference.law_of(law) == reference.greedy_multipath_law(pair, K)


def test_the_ranking_matters() -> None:
    """The rankings earn different amounts; with one draft none of them matters."""
    pair = instances.two_token(2)
    values = {
        name: output_law(GreedyMultipath(rank), pair, 2).block_efficiency for name, rank in RANKINGS.items()
    }
    assert values["ratio"] == Fraction(212, 81)  # theory.md §5
    assert values["reversed ratio"] < values["ratio"]
    for ranking in RANKINGS.values():
        assert_same_law(output_law(GreedyMultipath(ranking), pair, 1), output_law("block", pair, 1))


def test_every_explicit_order_is_lossless() -> None:
    """Def. 5.1: all 24 orders of four leaves, most of them not tree-based; exact, in floats, with K = 3."""
    pair = instances.sticky_chain(2)
    values = set()
    for order in permutations(range(4)):
        verifier = ExplicitRanking(pair, order)
        law = output_law(verifier, pair, 3)
        named = [pair.context(2, leaf) for leaf in order]
        skewed = reference.skewed_leaf_probs(pair, named, 3)
        assert law.total_variation == 0
        assert law.block_efficiency == reference.ranking_efficiency(pair, skewed)
        assert_same_law(output_law(ExplicitRanking(pair, named), pair, 3), law)
        assert_same_law(output_law(verifier, pair.to_float(), 3), law, 1e-12)
        values.add(law.block_efficiency)
    assert len(values) > 4


class Unchecked(ExplicitRanking):
    """Known to be wrong: an order on the leaves of one pair that is taken to any other."""

    def bind(self, process: DraftProcess, pair: ModelPair | None = None) -> Verifier:
        return super().bind(process)


def test_a_bound_verifier_is_refused_on_another_pair() -> None:
    """By certify and output_law, exact or float, for the draft's and the target's rows and the shape."""
    pair, other = instances.sticky_chain(2), instances.two_token(2)
    for verifier in (ExplicitRanking(pair, range(4)), OptimalMultipath(pair, 2)):
        for elsewhere in (other, other.to_float()):
            for judge in (certify, output_law):
                with pytest.raises(
                    InvalidInputError, match=r"another pair: the draft rows at context \(0,\)"
                ):
                    judge(verifier, elsewhere, 2)
        # The last row of the target alone, by as little as a float can say.
        rows = pair.to_float().target[2].copy()
        rows[3] = np.nextafter(rows[3], 1)
        nearly = ModelPair((*pair.to_float().target[:2], rows), pair.to_float().draft, pair.vocab)
        with pytest.raises(InvalidInputError, match=r"another pair: the target rows at context \(1, 1\)"):
            output_law(verifier, nearly, 2)
        with pytest.raises(InvalidInputError, match=r"bound to a pair with \(L, V\) = \(2, 2\)"):
            output_law(verifier, instances.two_token(3), 2)
        paths = np.zeros((1, 2, 3), dtype=np.int64)
        with pytest.raises(InvalidInputError, match=r"bound to a pair with \(L, V\) = \(2, 2\)"):
            verifier.outcome(paths, np.full((1, 2, 4, 2), 0.5), np.full((1, 2, 3, 2), 0.5))


def test_a_bound_verifier_takes_its_pair_however_it_is_written() -> None:
    """Another object with the same rows, and their float64 version; a float pair's verifier its own."""
    for pair, again in (
        (instances.sticky_chain(2), instances.sticky_chain(3).truncate(2)),
        (instances.random_rational(5, 3, 2), instances.random_rational(5, 3, 2)),
    ):
        for build in (lambda p: ExplicitRanking(p, range(p.vocab_size**2)), lambda p: OptimalMultipath(p, 2)):
            expected = output_law(build(pair), pair, 2)
            assert expected.total_variation == 0
            assert_same_law(output_law(build(pair), again, 2), expected)
            assert output_law(build(pair), again.to_float(), 2).total_variation < 1e-12
            assert output_law(build(pair.to_float()), again.to_float(), 2).total_variation < 1e-12


def test_why_partner_bound_to_the_wrong_pair() -> None:
    """Without the check: verified against the law of another pair's drafts it is not lossless."""
    certificate = certify(Unchecked(instances.sticky_chain(2), range(4)), instances.two_token(2), 2)
    assert not certificate.is_valid
    assert certificate.total_variation > 0
    certificate = certify(Unchecked(instances.two_token(2), range(4)), instances.two_token(2), 2)
    assert certificate.is_valid


def test_bound_verifiers_over_iterations() -> None:
    """Refused where the rows change with the context; by name the verifier is made anew and lossless.

    Bound to the chain from its start and let go on without the check, the law is wrong.
    """
    pair, options = instances.sticky_chain(2), {"num_drafts": 2, "memory": 1}
    for bound in (OptimalMultipath(pair, 2), GreedyMultipath.with_order(pair, range(4))):
        assert first_tokens_law(bound, pair, 3, 1, **options).total_variation == 0
        with pytest.raises(InvalidInputError, match=r"bound to another pair: .* over several iterations"):
            first_tokens_law(bound, pair, 4, **options)
        with pytest.raises(InvalidInputError, match="bound to another pair"):
            decoded_tokens_law(bound, pair, 2, **options)
        with pytest.raises(InvalidInputError, match="bound to another pair"):
            decoded_tokens_law(bound, instances.random_rational(1, 2, 5), 2, num_drafts=2, draft_length=2)
    assert first_tokens_law("optimal_multipath", pair, 4, **options).total_variation == 0
    assert first_tokens_law(Unchecked(pair, range(4)), pair, 4, **options).total_variation > 0
    same_everywhere = instances.two_token(2)
    for bound in (OptimalMultipath(same_everywhere, 2), ExplicitRanking(same_everywhere, range(4))):
        assert first_tokens_law(bound, same_everywhere, 4, num_drafts=2).total_variation == 0


def test_orders_partner_weights_and_arithmetic_are_checked() -> None:
    """A float64 pair's verifier has no exact law; weights of orders are a law exactly."""
    with pytest.raises(InvalidInputError, match="float64 pair"):
        output_law(ExplicitRanking(instances.two_token(1).to_float(), [0, 1]), instances.two_token(1), 2)
    for weights in ([Fraction(1, 2)], [Fraction(3, 2), Fraction(-1, 2)], [Fraction(1, 3), Fraction(1, 3)]):
        with pytest.raises(InvalidInputError, match="sum exactly 1"):
            LeafRankings(instances.two_token(1), weights, [[0, 1], [1, 0]])


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


# ----------------------------------------------------------------------------- the optimum


@pytest.mark.parametrize("group", ["two_token", "uniform_equal", "partial_overlap", *RANDOM_GROUPS])
def test_optimal_multipath_attains_the_optimum(group: str) -> None:
    """Theorem 4.6: lossless exactly, and its exact law earns the optimum of the antichain program."""
    for case in (case for case in some_cases(group, 12) if case.has_optimum):
        verifier = OptimalMultipath(case.pair, case.num_drafts)
        certificate = certify(verifier, case.pair, case.num_drafts)
        assert certificate.is_valid, case
        assert certificate.total_variation == 0, case
        assert certificate.block_efficiency == certificate.optimum == verifier.value, case
        assert certificate.optimum == multi_path_optimum(case.pair, case.num_drafts).value, case


def test_optimal_multipath_beats_every_ranking_somewhere() -> None:
    """The mixture of rankings is needed: on some pair every single one earns less."""
    pair = instances.uniform_equal(1)
    assert output_law(OptimalMultipath(pair, 2), pair, 2).block_efficiency == 2
    orders = permutations(range(2))
    values = [output_law(ExplicitRanking(pair, order), pair, 2).block_efficiency for order in orders]
    assert values == [Fraction(7, 4), Fraction(7, 4)]  # theory.md §5
    assert len(OptimalMultipath(pair, 2).orders) == 2


def test_optimal_multipath_on_float_pairs() -> None:
    """A float pair goes through its exact neighbour; the float law earns that optimum."""
    for seed, (V, L, K) in enumerate([(2, 2, 2), (3, 2, 3), (2, 3, 2), (3, 3, 3)]):
        pair = instances.random_float(seed, V, L, agreement=0.5)
        verifier = OptimalMultipath(pair, K)
        law = output_law(verifier, pair, K)
        assert law.total_variation < 1e-13
        assert abs(law.block_efficiency - verifier.value) < 1e-12
        for name in ("block", "greedy_multipath", "spectr"):
            assert output_law(name, pair, K).block_efficiency <= verifier.value + 1e-9


def test_optimal_multipath_partner_made_for_another_setting() -> None:
    """Verified against one ranking's law instead of the mixture's it is wrong; another K is refused."""
    pair = instances.uniform_equal(1)
    wrong = OptimalMultipath(pair, 2)
    wrong._drafts[2] = SkewedDraft.from_order(pair, 2, wrong.orders[0])
    assert output_law(wrong, pair, 2).total_variation > 0
    with pytest.raises(InvalidInputError, match="made for 2 drafts"):
        output_law(OptimalMultipath(pair, 2), pair, 3)
    with pytest.raises(InvalidInputError, match="num_drafts"):
        OptimalMultipath(pair, 0)


# ----------------------------------------------------------------------------- the mixture


def mixture_value(pair: ModelPair, num_drafts: int, share: Fraction, ranking: Ranking) -> Fraction:
    """Σ_a min_k p(a_{k+1:} | a_{1:k}) r(a_{1:k}) of r = λ q + (1-λ) q^Γ, in plain Python."""
    ranked = reference.skewed_leaf_probs(pair, plain_order(pair, ranking), num_drafts)
    mixed = {path: share * reference.draft_prob(pair, path) + (1 - share) * r for path, r in ranked.items()}
    return reference.ranking_efficiency(pair, mixed)


@pytest.mark.parametrize("group", [*RANDOM_GROUPS, "partial_overlap", "equal_models", "point_masses"])
def test_mixture_is_lossless_and_concave(group: str) -> None:
    """Exact for every λ; λ = 1 is block, λ = 0 greedy_multipath; E is concave and E(λ*) its maximum."""
    for case in some_cases(group, 5):
        pair, K = case.pair, case.num_drafts
        laws = [output_law(MixedMultipath(share), pair, K) for share in LAMBDAS]
        assert_same_law(laws[0], output_law("greedy_multipath", pair, K))
        assert_same_law(laws[-1], output_law("block", pair, K))
        for law, share in zip(laws, LAMBDAS, strict=True):
            assert law.total_variation == 0, (case, share)
            assert most_violated_antichain(pair, budget_masses(law), K)[0] == 0, case
        values = [law.block_efficiency for law in laws]
        assert values[2] == mixture_value(pair, K, LAMBDAS[2], ratio_ranking), case
        for left, middle, right in zip(values, values[1:], values[2:], strict=False):
            assert 2 * middle >= left + right, case
        best = best_mixture(pair, K)
        at_best = output_law(MixedMultipath(best.first_draft_prob), pair, K)
        assert at_best.block_efficiency == best.block_efficiency >= max(values), case


@pytest.mark.parametrize("name", RANKINGS)
def test_mixture_with_every_ranking(name: str) -> None:
    """Lossless with λ = 1/3 and with the rule at the root; the closed form holds."""
    for case in (*some_cases("random-V2-L2-K3", 3), *some_cases("random-V3-L2-K2", 3)):
        pair, K = case.pair, case.num_drafts
        law = output_law(MixedMultipath(Fraction(1, 3), RANKINGS[name]), pair, K)
        assert law.total_variation == 0
        assert law.block_efficiency == mixture_value(pair, K, Fraction(1, 3), RANKINGS[name])
        chosen = output_law(MixedMultipath(ranking=RANKINGS[name]), pair, K)
        assert chosen.total_variation == 0
        assert chosen.block_efficiency <= best_mixture(pair, K, RANKINGS[name]).block_efficiency


@pytest.mark.parametrize("group", ["two_token", "uniform_equal", "sticky_chain", *RANDOM_GROUPS])
def test_rule_at_the_root(group: str) -> None:
    """Lossless exactly; with L = 1 it is the best λ; otherwise between nothing and the best."""
    for case in some_cases(group):
        law = output_law(MixedMultipath(), case.pair, case.num_drafts)
        best = best_mixture(case.pair, case.num_drafts)
        assert law.total_variation == 0, case
        assert law.block_efficiency <= best.block_efficiency, case
        if case.pair.draft_length == 1:
            assert law.block_efficiency == best.block_efficiency, case
        share = root_mixture(case.pair.target[0], case.pair.draft[0], case.num_drafts)[0]
        fixed = output_law(MixedMultipath(share), case.pair, case.num_drafts)
        assert_same_law(law, fixed)


def test_rule_at_the_root_partner_it_is_no_guarantee() -> None:
    """Only the best λ is never below both: at the root λ = 1/7 is best here, over two positions λ = 0."""
    root, rest = ["6/7", "1/7"], {(0,): ["1", "0"], (1,): ["0", "1"]}
    target = {(): root, **rest, **{key: ["1", "0"] for key in product(range(2), repeat=2)}}
    draft = {(): ["2/3", "1/3"], (0,): ["2/3", "1/3"], (1,): ["1", "0"]}
    pair = ModelPair.from_contexts(target, draft, 2)
    assert root_mixture(pair.target[0], pair.draft[0], 2)[0] == Fraction(1, 7)
    chosen = output_law(MixedMultipath(), pair, 2).block_efficiency
    assert chosen == Fraction(502, 189)
    assert best_mixture(pair, 2) == (0, Fraction(1508, 567))
    assert output_law("greedy_multipath", pair, 2).block_efficiency == Fraction(1508, 567) > chosen


@given(st.lists(st.integers(0, 6), min_size=6, max_size=6), st.integers(1, 4), st.booleans())
def test_root_mixture_maximises(weights: list[int], num_drafts: int, by_ratio: bool) -> None:
    """h(λ) is nowhere larger: not at 0, 1, any turn λ_x, or on a grid; λ is the middle of the maximisers."""
    target, draft = weights[:3], weights[3:]
    if not sum(target) or not sum(draft):
        target, draft = [1, 1, 1], [1, 2, 3]
    p = [Fraction(weight, sum(target)) for weight in target]
    q = [Fraction(weight, sum(draft)) for weight in draft]
    order = sorted(range(3), key=lambda x: (p[x] / q[x] if by_ratio and q[x] else 0, x))
    cumulative, g = Fraction(0), [Fraction(0)] * 3
    for x in order:
        g[x] = (cumulative + q[x]) ** num_drafts - cumulative**num_drafts
        cumulative += q[x]

    def h(share: Fraction) -> Fraction:
        return sum((min(p[x], share * q[x] + (1 - share) * g[x]) for x in range(3)), Fraction(0))

    turns = [(p[x] - g[x]) / (q[x] - g[x]) for x in range(3) if q[x] != g[x]]
    places = {Fraction(0), Fraction(1), *(turn for turn in turns if 0 <= turn <= 1)}
    best = max(h(place) for place in places | {Fraction(i, 7) for i in range(8)})
    maximisers = [place for place in places if h(place) == best]
    ranking = RANKINGS["ratio" if by_ratio else "token id"]
    found = root_mixture(np.array(p, dtype=object), np.array(q, dtype=object), num_drafts, ranking)
    assert h(found) == best
    assert found == (min(maximisers) + max(maximisers)) / 2
    if not by_ratio:  # rounding may break ties of p/q, and with them the ranking
        rows = np.array(p, dtype=float), np.array(q, dtype=float)
        assert abs(float(found) - root_mixture(*rows, num_drafts, ranking)) < 1e-9


def test_greedy_multipath_loses_to_one_path() -> None:
    """Identical models, V = 2, L = 1, K = 2: r = (1/4, 3/4), 7/4 < 2 (theory.md Statement 5.7)."""
    pair = instances.uniform_equal(1)
    skewed = SkewedDraft.from_ranking(pair, 2)
    assert skewed.leaf_law.tolist() == [Fraction(1, 4), Fraction(3, 4)]
    assert output_law("greedy_multipath", pair, 2).block_efficiency == Fraction(7, 4)
    assert output_law("block", pair, 2).block_efficiency == 2
    assert output_law(MixedMultipath(), pair, 2).block_efficiency == 2
    assert best_mixture(pair, 2) == (1, 2)


@pytest.mark.parametrize(("agreement", "greedy_wins"), [(0.0, True), (0.3, True), (0.6, None), (0.9, False)])
def test_shape_of_the_measured_means(agreement: float, greedy_wins: bool | None) -> None:
    """V=3, L=3, K=3: the more the models agree the more the ranking harms (theory.md Statement 5.7).

    The best mixture is above both (theory.md Statement 5.8), and the rule at the root within 1% of it.
    """
    rows = []
    for seed in range(25):
        pair = instances.random_float(seed, 3, 3, agreement=agreement)
        draft = SkewedDraft.from_leaf_law(pair, pair.draft_path_probs(3))
        ranked = SkewedDraft.from_ranking(pair, 3)
        share = root_mixture(pair.target[0], pair.draft[0], 3)[0]
        mixed = SkewedDraft.mixture([share, 1 - share], [draft, ranked])
        values = [skewed.block_efficiency(pair) for skewed in (draft, ranked, mixed)]
        rows.append([*values, best_mixture(pair, 3).block_efficiency])
        assert rows[-1][3] >= max(rows[-1][:3]) - 1e-12
    block, greedy, root, best = np.mean(rows, axis=0)
    if greedy_wins is not None:
        assert (greedy > block + 0.1) == greedy_wins
        assert (greedy < block - 0.1) == (not greedy_wins)
    assert best > max(block, greedy) + 0.03
    assert root > 0.99 * best


@given(pairs(), st.integers(1, 3), st.integers(0, 4))
def test_best_mixture_on_any_pair(pair: ModelPair, num_drafts: int, quarter: int) -> None:
    """Exact or float, V = 1 included: never below λ = quarter/4; the arithmetic of the pair is kept."""
    best = best_mixture(pair, num_drafts)
    share = Fraction(quarter, 4)
    value = output_law(MixedMultipath(share), pair, num_drafts).block_efficiency
    assert value <= best.block_efficiency + (0 if pair.is_exact else 1e-12)
    assert isinstance(best.first_draft_prob, Fraction if pair.is_exact else float)
    assert output_law(MixedMultipath(), pair, num_drafts).total_variation <= (0 if pair.is_exact else 1e-12)


def test_mixture_parameters() -> None:
    """Floats are taken exactly, also on exact pairs; what is no number in [0, 1] is refused."""
    pair = instances.two_token(2)
    law = output_law(MixedMultipath(0.25), pair, 2)
    assert_same_law(law, output_law(MixedMultipath(Fraction(1, 4)), pair, 2))
    assert law.total_variation == 0
    for wrong in (-0.1, 2, Fraction(5, 4), "1/2", True, float("nan"), float("inf"), None.__class__):
        with pytest.raises(InvalidInputError, match="first_draft_prob"):
            MixedMultipath(wrong)
    for verifier in (
        MixedMultipath(),
        OptimalMultipath(pair, 2),
        GreedyMultipath(),
        ExplicitRanking(pair, range(4)),
    ):
        with pytest.raises(InvalidInputError, match="is not valid for 'without_replacement'"):
            output_law(verifier, pair, process=WithoutReplacement((2, 1)))


class ShareOfTheDrafts(MixedMultipath):
    """Known to be wrong: λ depends on the drafts, not on the context only."""

    def _share(self, target_row: Array, draft_row: Array, num_drafts: int) -> Array:
        return self.shares

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        same = paths[..., 0, 0] == paths[..., 1, 0]
        zero = target_rows[..., 0, 0, 0] * 0
        self.shares = np.where(same, zero, zero + 1)
        return super().outcome(paths, target_rows, draft_rows)


def test_mixture_partner_a_share_that_looks_at_the_drafts() -> None:
    """Then the selected path has another law than λ q + (1-λ) q^Γ, and the output is wrong."""
    assert output_law(ShareOfTheDrafts(), instances.two_token(2), 2).total_variation > 0


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
