"""The draft defect, against its definition by brute force and against the output of verifiers."""

from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from draft_values import FAIR, NINE, OTHER, SKEW, before_unlikely, rows_pair
from spectheory import ModelPair, certify, instances, output_law
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import Context, context_number
from spectheory.pairs.drafts import KeptDrafts, PerPath, PrefixTree, Shortened, draft_defect
from spectheory.pairs.drafts.kept import DisclosedDrafts
from spectheory.pairs.drafts.mapped import mapped_drafts
from spectheory.pairs.drafts.shortened import LengthFlags, length_flags
from spectheory.pairs.instances import random_rational

F = Fraction
SHAPES = ((2, 1), (3, 1), (2, 2), (3, 2), (2, 3))


def random_law(rng: np.random.Generator, size: int, low: int = 1) -> list[Fraction]:
    weights = rng.integers(low, 7, size)
    while not weights.sum():
        weights = rng.integers(low, 7, size)
    return [F(int(weight), int(weights.sum())) for weight in weights]


def drawn(seed: int) -> tuple[ModelPair, Any]:
    """A positive pair, and a process: a rule, a joint law with rows, a map or a mask."""
    rng = np.random.default_rng([53, seed])
    size, length = SHAPES[seed % len(SHAPES)]
    paths = list(product(range(size), repeat=length))
    levels = [
        {text: random_law(rng, size) for depth in range(ends) for text in product(range(size), repeat=depth)}
        for ends in (length + 1, length)
    ]
    pair = ModelPair.from_contexts(*levels, length)
    kind = seed // len(SHAPES) % 5
    if kind == 0:  # a rule that reads everything
        lengths = {path: int(rng.integers(length + 1)) for path in paths}
        return pair, Shortened(1, lambda tokens, rows: lengths[tokens])
    if kind == 1:  # a random predictable rule
        goes_on = {text: random_law(rng, 2, low=0)[0] for text in levels[1]}

        def stops(tokens: Context, rows: Any) -> dict[int, Fraction]:
            law, reached = {}, F(1)
            for depth in range(length):
                law[depth] = reached * (1 - goes_on[tokens[:depth]])
                reached *= goes_on[tokens[:depth]]
            return law | {length: reached}

        return pair, Shortened(1, stops)
    if kind == 2:  # kept tokens of any joint law, with other rows
        texts = [text for depth in range(length + 1) for text in product(range(size), repeat=depth)]
        law = dict(zip(texts, random_law(rng, len(texts), low=0), strict=True))
        rows = {text: random_law(rng, size) for text in levels[1] if rng.random() < 0.5}
        return pair, KeptDrafts(law, rows)
    if kind == 3:  # a map of another vocabulary, right rows or the pair's
        target, draft = (
            {t: random_law(rng, 3) for d in range(ends) for t in product(range(3), repeat=d)}
            for ends in (length + 1, length)
        )
        images = {token: [*range(size), None][int(rng.integers(size + 1))] for token in range(3)}
        drafter = ModelPair.from_contexts(target, draft, length)
        return pair, mapped_drafts(pair, drafter, images, None if seed % 2 else {})
    allowed = int(rng.integers(size))  # a mask of the draft rows, handed over or not
    masked = {text: [F(int(token == allowed)) for token in range(size)] for text in levels[1]}
    return pair, KeptDrafts({(allowed,) * length: 1}, masked if seed % 2 else None)


def completed_by_definition(pair: ModelPair, process: Any) -> tuple[dict[Context, Fraction], Any]:
    """ν and the law of the handed rows, from their definitions in §8."""
    kept = {path: F(int(prob.p), int(prob.q)) for (path,), prob in process.kept_law(pair).items()}
    handed = process.drafter(pair, 0).draft

    def along(text: Context, start: int) -> Fraction:
        prob = F(1)
        for depth in range(start, len(text)):
            prob *= handed[depth][context_number(text[:depth], pair.vocab_size)][text[depth]]
        return prob

    leaves = list(product(range(pair.vocab_size), repeat=pair.draft_length))
    completed = {
        leaf: sum(kept.get(leaf[:n], F(0)) * along(leaf, n) for n in range(pair.draft_length + 1))
        for leaf in leaves
    }
    return completed, {leaf: along(leaf, 0) for leaf in leaves}


@pytest.mark.parametrize(
    "seeds",
    [range(40), *(pytest.param(range(n, n + 46), marks=pytest.mark.deep) for n in range(40, 500, 46))],
    ids=lambda seeds: f"from {seeds[0]}",
)
def test_defect_is_its_definition_and_decides_token_and_block(seeds: range) -> None:
    """δ = TV(ν, q̂); lossless on a positive target iff δ = 0; TV ≤ δ, and = δ at p = q̂ (Statement 8.1)."""
    verdicts = set()
    for seed in seeds:
        pair, process = drawn(seed)
        completed, handed = completed_by_definition(pair, process)
        delta = sum(abs(completed[leaf] - handed[leaf]) for leaf in handed) / 2
        found = draft_defect(process, pair)
        assert found.total_variation == delta
        assert bool(found) == (delta == 0)
        if not found:
            place = tuple(int(token) for token in found.path[0])
            starts = [
                sum(prob for leaf, prob in law.items() if leaf[: len(place)] == place)
                for law in (completed, handed)
            ]
            assert starts == [found.probability, found.expected]
        rows = process.drafter(pair, 0)
        equal = ModelPair((*rows.draft, pair.target[-1]), pair.draft, pair.vocab)
        for verifier in ("token", "block"):
            variation = output_law(verifier, pair, process).total_variation
            assert (variation == 0) == (delta == 0)
            assert variation <= delta
            if all(prob > 0 for prob in handed.values()):
                own = KeptDrafts(
                    {path: F(int(prob.p), int(prob.q)) for (path,), prob in process.kept_law(pair).items()},
                    {
                        pair.context(d, n): list(row)
                        for d, level in enumerate(rows.draft)
                        for n, row in enumerate(level)
                    },
                )
                assert output_law(verifier, equal, own).total_variation == delta
        verdicts.add(delta == 0)
    assert verdicts == {True, False}


@pytest.mark.parametrize(
    ("rows", "stopping", "pseudo"),
    [((FAIR, FAIR, FAIR), 5, 9), ((["2/5", "3/5"], ["3/7", "4/7"], OTHER), 5, 5)],
    ids=["fair", "generic"],
)
def test_all_rules_of_two_tokens(rows: tuple[list[str], ...], stopping: int, pseudo: int) -> None:
    """Of the 81 rules 5 are predictable; on the fair draft 4 more are pseudo-stopping (after 8.4)."""
    target = {text: OTHER for depth in range(3) for text in product(range(2), repeat=depth)}
    pair = ModelPair.from_contexts(target, dict(zip([(), (0,), (1,)], rows, strict=True)), 2)
    paths = list(product(range(2), repeat=2))
    found = []
    for lengths in product(range(3), repeat=4):
        rule = dict(zip(paths, lengths, strict=True))
        process = Shortened(1, lambda tokens, rows, rule=rule: rule[tokens])
        flags = length_flags(process, pair)
        assert flags.predictable == flags.stopping_point
        assert flags.pseudo_stopping == bool(draft_defect(process, pair))
        found.append(flags)
    assert sum(flags.predictable for flags in found) == stopping
    assert sum(flags.pseudo_stopping for flags in found) == pseudo
    assert all(flags.pseudo_stopping for flags in found if flags.predictable)


def test_all_joint_rules_of_two_requests() -> None:
    """8 stopping points, 10 others jointly lossless, 18 lossless for each request only, 220 lossy (8.7)."""
    pair, counts = rows_pair(FAIR, FAIR, 1), dict.fromkeys(("point", "joint", "alone", "lossy"), 0)
    drafts = list(product(((0,), (1,)), repeat=2))
    for kept in product(product(range(2), repeat=2), repeat=4):
        rule = dict(zip(drafts, kept, strict=True))
        flags = length_flags(Shortened(2, lambda tokens, rows, rule=rule: rule[tokens]), pair)
        # One token: alone a request is lossless if it keeps both tokens equally often (8.5).
        alone = all(
            sum(rule[d][r] for d in drafts if d[r] == (0,)) == sum(rule[d][r] for d in drafts if d[r] == (1,))
            for r in range(2)
        )
        assert flags.predictable == alone
        kind = "point" if flags.stopping_point else "joint" if flags.pseudo_stopping else "alone"
        counts[kind if kind != "alone" or alone else "lossy"] += 1
    assert counts == {"point": 8, "joint": 10, "alone": 18, "lossy": 220}


def test_one_text_with_two_rows_is_refused() -> None:
    """The message names the text and both rows; the product of the rows would say δ = 0 (§9, A9)."""
    pair = rows_pair(FAIR, FAIR, 2)
    events = [("1/2", (0, 0), [FAIR, NINE]), ("1/2", (0, 1), [FAIR, SKEW])]
    with pytest.raises(InvalidInputError, match=r"text '0' has two rows, \(9/10, 1/10\) and \(2/3, 1/3\)"):
        draft_defect(DisclosedDrafts(events), pair)
    same = DisclosedDrafts([("1/2", (0, 0), [FAIR, FAIR]), ("1/2", (1, 1), [FAIR, FAIR])])
    assert draft_defect(same, pair).total_variation == F(1, 2)


def test_verdict_is_of_the_pair_and_the_next_line_of_other_targets() -> None:
    """A truncated target hides the drafter: lossless, and δ = 1/3 is said (after 8.1)."""
    pair = rows_pair(["1/2", "1/2", "0"], ["1/3"] * 3, 1)
    for verifier in ("token", "block"):
        found = certify(verifier, pair, KeptDrafts({(0,): "1/2", (1,): "1/2"}))
        assert found.verdict == "lossless"
        assert found.shown()["draft_defect"].startswith(
            "rows handed over are not the law of the drafts (δ = 1/3): other targets are lossy"
        )
        assert found.answers[0] == "drafts"
        assert found.to_document()["draft_defect"]["total_variation"] == "1/3"
    right = certify("token", pair, KeptDrafts({(0,): "1/2", (1,): "1/2"}, {(): ["1/2", "1/2", "0"]}))
    assert right.shown()["draft_defect"] is None
    assert "draft_defect" not in certify("token", pair).to_document()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Shortened(1, lambda tokens, rows: 3), "from 0 to 2"),
        (lambda: Shortened(1, lambda tokens, rows: {0: "1/2"}), "sums to 1/2"),
        (lambda: Shortened(PrefixTree((2, 1)), lambda tokens, rows: 1), "independent paths"),
        (lambda: KeptDrafts({(0,): "1/2"}), "sums to 1/2"),
        (lambda: KeptDrafts({(0, 0, 0): "1"}), "no draft of the pair"),
        (lambda: KeptDrafts({(0,): "1"}, {(): ["1"]}), "a row of 1 tokens"),
        (lambda: KeptDrafts({(0,): "1"}, {(): ["1", "1"]}), "it is no law"),
        (lambda: KeptDrafts({}), "need a law"),
    ],
)
def test_wrong_input_is_refused(make: Any, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        draft_defect(make(), instances.two_token(2))


@pytest.mark.parametrize("seed", range(3))
def test_a_permuted_row_is_seldom_rejected(seed: int) -> None:
    """Over all permutations P(rejection) <= E min(1, 1/(V p(X))); the output is as far from p as q (8.16)."""
    rng = np.random.default_rng([816, seed])
    target, draft = random_law(rng, 3), random_law(rng, 3)
    pair = ModelPair.context_free_pair(target, draft, 1)
    drawn = {(token,): prob for token, prob in enumerate(draft)}
    rejections = []
    for order in permutations(range(3)):
        law = output_law("token", pair, KeptDrafts(drawn, {(): [draft[token] for token in order]}))
        rejections.append(2 - law.block_efficiency)
        distance = sum(abs(p - q) for p, q in zip(target, draft, strict=True)) / 2
        assert abs(law.total_variation - distance) <= rejections[-1]
    bound = sum(q * min(F(1), 1 / (3 * p)) for p, q in zip(target, draft, strict=True))
    assert 0 < sum(rejections) / 6 <= bound


def test_ordinary_drafts_and_floats() -> None:
    pair = random_rational([53], 3, 2)
    assert draft_defect(2, pair)
    assert draft_defect(PerPath((pair, pair)), pair)
    with pytest.raises(InvalidInputError, match="independent"):
        draft_defect(PrefixTree((2, 1)), pair)
    rule = Shortened(1, before_unlikely)
    exact, rounded = (draft_defect(rule, each) for each in (pair, pair.to_float()))
    assert rounded.basis == "float64"
    assert float(exact.total_variation) == pytest.approx(rounded.total_variation, abs=1e-12)


def test_a_rule_that_reads_the_other_path_is_predictable_for_each_path_only() -> None:
    pair = rows_pair(OTHER, SKEW, 1)
    rule = Shortened(2, lambda tokens, rows: (1 - tokens[1][0], 1))
    assert length_flags(rule, pair) == LengthFlags(True, True, True)
    both = Shortened(2, lambda tokens, rows: (1 - tokens[1][0], 1 - tokens[0][0]))
    assert length_flags(both, pair) == LengthFlags(True, False, False)


def test_mapped_texts_are_cut_to_the_length_of_the_pair() -> None:
    """A text of twice as many tokens: the law of its first token, and no draft of two."""
    pair, drafter = rows_pair(OTHER, SKEW, 1), rows_pair(FAIR, NINE, 1)
    cut = mapped_drafts(pair, drafter, lambda text: [*text, 1])
    assert cut.law == mapped_drafts(pair, drafter, {0: 0, 1: 1}).law
    assert certify("token", pair, cut, with_optimum=False)
    with pytest.raises(InvalidInputError, match="at most 1 token"):
        certify("token", pair, KeptDrafts({(0, 1): 1}))


def test_a_float_drafter_of_an_exact_pair_is_refused() -> None:
    """The other way round the rationals are rounded."""
    pair, images = rows_pair(OTHER, SKEW, 1), {0: 0, 1: 1}
    with pytest.raises(InvalidInputError, match=r"in float64 and the pair exact; give pair\.to_float\(\)"):
        mapped_drafts(pair, pair.to_float(), images)
    floats = pair.to_float()
    for drafter in (pair, floats):
        assert certify("token", floats, mapped_drafts(floats, drafter, images), with_optimum=False)


def test_laws_of_kept_drafts_are_checked_whole() -> None:
    """Also a path of probability 0; lengths of a rule that mean the same are added."""
    pair = ModelPair.context_free_pair(["1/3", "2/3"], ["1/2", "1/2"], 2)
    for law in ({(0,): 1, (7,): 0}, {(0,): 1, (0, 0, 0): 0}):
        with pytest.raises(InvalidInputError, match="is no draft of the pair"):
            draft_defect(KeptDrafts(law), pair)
    assert draft_defect(Shortened(1, lambda tokens, rows: {1: "1/2", (1,): "1/2"}), pair).total_variation == 0
    for given, words in (({1: "1/2", (1,): "1/2", 2: "1/2"}, "sums to 3/2"), (None, "expected a number of")):
        with pytest.raises(InvalidInputError, match=f"a length rule returned .*{words}"):
            draft_defect(Shortened(1, lambda tokens, rows: given), pair)  # noqa: B023


def test_an_event_has_at_most_one_row_more_than_tokens() -> None:
    pair = instances.two_token(2)
    fair, skew = ["1/2", "1/2"], ["1/3", "2/3"]
    assert draft_defect(DisclosedDrafts([(1, (0,), [fair, skew])]), pair).total_variation
    with pytest.raises(InvalidInputError, match="2 rows are handed over with the tokens \\(\\)"):
        draft_defect(DisclosedDrafts([(1, (), [fair, skew])]), pair)
