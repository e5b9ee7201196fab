"""Several iterations on trees, on a draft model per path, and of users' own verifiers."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from deep import first_is_quick
from drawn_trees import acted_out, drawn_trees, multi_round_rule, without_replacement_rule
from reference import Law
from spectheory import instances, output_law
from spectheory.exact.iteration import (
    completed_law,
    decoded_tokens_law,
    expected_decoded_tokens,
    first_tokens_law,
    modified_pair,
)
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import PerPath, PrefixTree, WithoutReplacement
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.one_path.greedy_block import GreedyBlock
from spectheory.verification.algorithms.position_by_position.multi_round import MultiRound
from spectheory.verification.algorithms.spectr_gbv import SpecTrGbv
from texts import lengths_of, texts_after
from user_verifiers import UserBlock

ZERO, ONE = Fraction(0), Fraction(1)


def recursive_rejection_law(pair: ModelPair, widths: tuple[int, ...], distinct: bool) -> Law:
    """One iteration of multi-round rejection on every tree of draws."""
    rule = without_replacement_rule if distinct else multi_round_rule
    return acted_out(pair, drawn_trees(pair, widths, distinct), rule)


TREES: dict[str, tuple[str, Any, bool]] = {
    "distinct": ("multi_round_without_replacement", WithoutReplacement((2, 1)), True),
    "tree": ("multi_round", PrefixTree((2, 2)), False),
}


@first_is_quick("case", TREES)
def test_law_of_decoded_tokens_on_trees(case: str) -> None:
    """The law of N(i) against plain recursion: context-free, Markov and deep pairs; not that of i.i.d.

    i up to 3, and up to 2 where four paths make the recursion long.
    """
    name, drafts, distinct = TREES[case]
    iterations = 3 if distinct else 2
    for pair, deep, options in (
        (instances.two_token(2), instances.two_token(8), {}),
        (instances.sticky_chain(2), instances.sticky_chain(8), {"memory": 1}),
        (full := instances.random_rational(6, 2, 8, zero_probability=0), full, {"draft_length": 2}),
    ):
        laws = decoded_tokens_law(name, pair, iterations, drafts=drafts, **options)
        for i, law in enumerate(laws, start=1):
            texts = texts_after(
                lambda here, _: recursive_rejection_law(here, drafts.widths, distinct), deep, 2, i
            )
            assert law.tolist() == lengths_of(texts, 3 * i)
        iid = decoded_tokens_law("multi_round", pair, 1, drafts=drafts.num_drafts, **options)
        assert iid[0].tolist() != laws[0].tolist()  # partner
        means = expected_decoded_tokens(name, pair, 2, drafts=drafts, **options)
        assert means[1] == sum(n * prob for n, prob in enumerate(laws[1]))


class AsIfWithReplacement(MultiRound):
    """Known to be wrong: takes distinct drafts for drafts with replacement."""

    draft_processes = frozenset({"without_replacement"})


TWO_LEFT = ModelPair.context_free_pair(["1/2", "1/3", "1/6"], ["1/6", "1/6", "2/3"], 2)
"""After a rejection the target has mass left on two tokens, unequally, and the draft equally."""
ITERATED: list[tuple[ModelPair, dict[str, Any]]] = [
    (instances.two_token(2), {}),
    (instances.sticky_chain(2), {"memory": 1}),
    (instances.random_rational(6, 2, 5, zero_probability=0), {"draft_length": 2}),
    (TWO_LEFT, {}),
]


@first_is_quick("case", [*TREES, "otm", "spectr"], quick=2)
def test_lossless_over_iterations_on_trees(case: str) -> None:
    """The first tokens of two and three iterations are p_m; exactly, but for spectr's division factor."""
    name, drafts = TREES[case][:2] if case in TREES else (case, PrefixTree((2, 1)))
    for pair, options in ITERATED:
        for num_tokens, num_iterations in ((3, 3), (4, 2)):
            found = first_tokens_law(name, pair, num_tokens, num_iterations, drafts=drafts, **options)
            assert found.total_variation <= (1e-12 if case == "spectr" else 0), (pair, num_tokens)
        completed = completed_law(name, instances.sticky_chain(2), drafts=drafts)
        difference = np.abs(completed - instances.sticky_chain(2).target_path_probs(3))
        assert difference.max() <= (1e-12 if case == "spectr" else 0)


def test_lossless_partner_distinct_drafts_taken_for_independent_ones() -> None:
    """The wrong rejection on the same drafts is not; every verifier is refused on drafts it is not for.

    Where a rejection leaves one token only, what the second draft is checked against has no influence:
    hence a pair where it leaves two.
    """
    drafts = WithoutReplacement((2, 1))
    for num_tokens in (1, 3):
        right, wrong = (
            first_tokens_law(verifier, TWO_LEFT, num_tokens, drafts=drafts).total_variation
            for verifier in ("multi_round_without_replacement", AsIfWithReplacement())
        )
        assert right == 0
        assert wrong > 0
    with pytest.raises(InvalidInputError, match="is not valid for 'without_replacement' drafts"):
        first_tokens_law("multi_round", instances.two_token(2), 2, drafts=drafts)
    with pytest.raises(InvalidInputError, match="is not valid for 'iid' drafts"):
        decoded_tokens_law("multi_round_without_replacement", instances.two_token(2), 2, drafts=2)
    with pytest.raises(InvalidInputError, match="is not valid for 'prefix_tree' drafts"):
        modified_pair(SpecTrGbv(), instances.two_token(2), drafts=PrefixTree((2, 1)))


def test_modification_follows_the_model_of_the_path() -> None:
    """greedy_block under every process is lossless with its modification, which is that of its own path."""
    pair, other = instances.two_token(2), instances.bernoulli("1/5", "1/2", 2)
    for drafts in (PrefixTree((2, 2)), WithoutReplacement((2, 1))):
        assert first_tokens_law(GreedyBlock(), pair, 4, drafts=drafts).total_variation == 0
        assert (completed_law(GreedyBlock(), pair, drafts=drafts) == pair.target_path_probs(3)).all()
        without = first_tokens_law(GreedyBlock(), pair, 3, drafts=drafts, with_modification=False)
        assert without.total_variation > 0
    swapped = ModelPair(pair.target, other.draft, pair.vocab)
    own = modified_pair(GreedyBlock(), pair, drafts=PerPath((other, pair)))
    assert [level.tolist() for level in own.target] == [
        level.tolist() for level in modified_pair(GreedyBlock(), swapped).target
    ]
    by_pairs_draft = modified_pair(GreedyBlock(), pair)
    assert own.target[1].tolist() != by_pairs_draft.target[1].tolist()
    mixed = replace(output_law(GreedyBlock(), swapped), pair=by_pairs_draft)
    assert (mixed.completed_law != pair.target_path_probs(3)).any()  # partner: the other draft's rows


def test_one_modification_for_several_draft_models_is_refused() -> None:
    """A verifier of several paths is given one draft row to modify with; without modification it may run."""
    pair = instances.two_token(2)
    drafts = PerPath((instances.bernoulli("1/5", "1/2", 2), pair))
    for function in (completed_law, modified_pair):
        with pytest.raises(InvalidInputError, match="each of the 2 paths has its own draft model"):
            function(UsersSeveralPaths(), pair, drafts=drafts)
    assert output_law(UsersSeveralPaths(), pair, drafts).completed_law.sum() == 1
    with pytest.raises(InvalidInputError, match="not one per path"):
        decoded_tokens_law("multi_round", pair, 2, drafts=drafts)


class UsersGreedyBlock:
    """greedy_block as a user would hand it in: any object with the two methods."""

    single_path = True

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Any:
        return GreedyBlock().outcome(paths, target_rows, draft_rows)

    def modified_target_rows(self, *arguments: Any) -> Any:
        return GreedyBlock().modified_target_rows(*arguments)


class UsersSeveralPaths(UsersGreedyBlock):
    """The same, not saying that it looks at one path only."""

    single_path = False


def test_users_own_verifiers() -> None:
    pair = instances.two_token(2)
    own, published = (decoded_tokens_law(v, pair, 2) for v in (UserBlock(), "block"))
    assert [law.tolist() for law in own] == [law.tolist() for law in published]
    assert first_tokens_law(UsersGreedyBlock(), pair, 3).total_variation == 0
    by_name = f"{__name__}:UsersGreedyBlock"
    assert first_tokens_law(by_name, pair, 3).total_variation == 0
    assert first_tokens_law(by_name, pair, 3, with_modification=False).total_variation == Fraction(1, 9)


def test_trees_belong_to_one_draft_length() -> None:
    deep = instances.random_rational(6, 2, 5, zero_probability=0)
    with pytest.raises(InvalidInputError, match=r"2 widths, \[2, 2\]; expected one per drafted token, 5"):
        decoded_tokens_law("multi_round", deep, 2, drafts=PrefixTree((2, 2)))
    laws = decoded_tokens_law("multi_round", deep, 2, drafts=PrefixTree((2, 2)), draft_length=2)
    assert [law.sum() for law in laws] == [1, 1]
