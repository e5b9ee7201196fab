"""The standard suite: it flags every known-wrong verifier, clears every lossless one, and says why."""

import math
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from deep import first_is_quick
from defect_table import PAIRS, matrix
from snapshots import digest
from spectheory import instances, output_law
from spectheory.exact.cause import starts_with
from spectheory.exact.suite import certify_suite, largest_share
from spectheory.exact.suite_cases import (
    MAX_TUPLES,
    RANDOM_NAMES,
    SHAPES,
    SuiteCase,
    random_cases,
    standard_pairs,
    standard_suite,
    suite_for,
)
from spectheory.foundation.arrays import namespace
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError, NotJudgedError
from spectheory.foundation.exact_numbers import fractions_if_exact
from spectheory.pairs.contexts import numbered_context
from spectheory.pairs.drafts import DraftProcess, Iid, PrefixTree, ShapedTree, WithoutReplacement
from spectheory.pairs.drafts.process import ALL_PROCESSES
from spectheory.testing import assert_lossless
from spectheory.verification.algorithms import verifiers
from spectheory.verification.defective import defects
from spectheory.verification.evaluator import Evaluator
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import Problem
from spectheory.verification.user import as_verifier
from user_verifiers import UserBlock, UserToken
from wrong_verifiers import BlockWithoutWeight

WITHIN = "within 1e-09 p(a) + 1.4e-14 on every path a"
LOSSLESS = [name for name, verifier in verifiers.items() if verifier.lossless]


@pytest.mark.parametrize("half", [0, pytest.param(12, marks=pytest.mark.deep)])
@first_is_quick("name", LOSSLESS)
def test_every_lossless_verifier_is_cleared(name: str, half: int) -> None:
    """Exactly for the exact ones, under every draft process it is meant for, and again in floats.

    Every twelfth case, from another start for each verifier; every second one of them in a deep test.
    """
    cases = suite_for(verifiers[name])[(LOSSLESS.index(name) + half) % 24 :: 24]
    cases = [case for case in cases if case.process.count_tuples(case.pair) <= 100]
    assert {case.process.name for case in cases} == verifiers[name].draft_processes
    found = certify_suite(name, cases)
    assert found
    assert not found.refused
    assert len(found.verdicts) == len(cases) >= 5
    assert len(found.reruns) == (0 if name == "optimal_multipath" else 3 * len(cases))
    if verifiers[name].exact:
        assert {verdict.total_variation for verdict in found.verdicts} == {Fraction(0)}
    else:
        assert f"float64 {WITHIN}" in found.headline()


@first_is_quick("name", [*defects, *(name for name in verifiers if name not in LOSSLESS)], quick=5)
def test_every_wrong_verifier_is_flagged(name: str) -> None:
    """Also the one that is lossless on the pair of the README, and those that need a tree to show."""
    verifier = defects[name] if name in defects else verifiers[name]
    found = certify_suite(verifier, stop_at_first=True)
    assert not found
    assert found.counterexample is not None
    assert found.counterexample.in_words() != "none"
    assert found.verdicts[-1].total_variation > 0


def test_one_pair_is_not_a_verdict_on_a_verifier() -> None:
    """``shared_uniform`` is lossless on every pair of two tokens; the test above has the suite catch it."""
    assert output_law(defects["shared_uniform"], instances.two_token(3)).total_variation == 0


def test_what_the_suite_holds() -> None:
    """Zeros, ties, equal rows, disjoint supports, tiny entries; up to 6 tokens, 4 drafts; small first."""
    suite = standard_suite()
    pairs = [case.pair for case in suite]
    assert len({str(case) for case in suite}) == len(suite)
    assert {case.process.num_drafts for case in suite} == {1, 2, 3, 4}
    assert {pair.vocab_size for pair in pairs} >= {2, 3, 4, 5, 6}
    shapes = {
        (case.pair.vocab_size, case.pair.draft_length, case.process.num_drafts)
        for case in suite
        if (case.pair.target[0] != case.pair.draft[0]).any()
    }
    assert set(SHAPES) <= shapes
    assert len(SHAPES) == 53
    assert {(3, 2, 3), (3, 2, 4), (4, 3, 2), (3, 4, 2), (4, 2, 3)} < set(SHAPES)
    assert all(pair.is_exact for pair in pairs)
    rows = [
        (p, q)
        for pair in pairs
        for t, d in zip(pair.target, pair.draft, strict=False)
        for p, q in zip(t, d, strict=True)
    ]
    assert any((p == q).all() for p, q in rows)
    assert any((p * q == 0).all() for p, q in rows)
    assert any(0 < min(q[q > 0]) < Fraction(1, 10**14) for _, q in rows)
    assert any((p[(q > 0) & (q < Fraction(1, 10**9))] == 0).any() for p, q in rows)
    assert any((p > 0).sum() >= 4 for p, _ in rows)
    assert any(((p > q).sum() >= 2) and len(set((p - q)[p > q])) > 1 for p, q in rows)
    sizes = [case.process.count_tuples(case.pair) for case in suite]
    assert sizes == sorted(sizes)
    assert len(standard_pairs()) == 20


def test_the_suite_has_every_small_tree() -> None:
    """Every shape of up to five nodes, every draft length up to 4 tokens; widths with up to four paths, where
    their drafts are few enough to be enumerated."""
    assert [math.comb(2 * edges, edges) // (edges + 1) for edges in range(6)] == [1, 1, 2, 5, 14, 42]
    shapes = {case.process.shape for case in standard_suite(("shaped_tree",))}
    assert len(shapes) == 1 + 2 + 5 + 14 + 42 - 1  # of the last, the path of five tokens is too long
    assert {ShapedTree(shape).num_nodes for shape in shapes} == {1, 2, 3, 4, 5}
    factors = {(2,), (3,), (4,), (2, 2)}
    for name, missing in (("top_tree", set()), ("prefix_tree", {(4, 1, 1, 1)})):
        widths = {case.process.shape for case in standard_suite((name,))} - {(2, 2, 2), (2, 2, 2, 2)}
        wanted = {
            tuple(found)
            for length in (1, 2, 3, 4)
            for factor in factors
            if len(factor) <= length
            for found in set(permutations((*factor, *[1] * (length - len(factor)))))
        }
        assert wanted - widths == missing
        assert widths <= wanted


@first_is_quick(
    "process",
    [
        PrefixTree((1, 2, 1)), ShapedTree((2, 0, 1)), WithoutReplacement((1, 2, 1)),
        *(
            pytest.param(process, marks=pytest.mark.deep)
            for process in (
                PrefixTree((2, 1, 2)), PrefixTree((1, 1, 2, 1)), ShapedTree((2, 1, 1, 1)),
                ShapedTree((1, 2, 0, 2)),
            )
        ),
    ],
    ids=lambda process: process.text,
)  # fmt: skip
def test_a_verifier_that_is_wrong_on_one_tree_is_flagged(process: DraftProcess) -> None:
    """And is lossless where that tree is left out, so that the headline names the trees."""
    cases = standard_suite((process.name,))
    where = [case for case in cases if case.process == process]
    assert not certify_suite(WrongOnTree(process), where, stop_at_first=True)
    without = [case for case in cases if case.process != process]
    small = [case for case in without if case.process.count_tuples(case.pair) <= 20]
    found = certify_suite(WrongOnTree(process), small[:: len(small) // 4])
    assert found
    assert process.text not in found.scope.processes
    assert f"{process.name} (" in found.headline()
    assert str(process.shape)[1:-1].replace(" ", "") not in found.shown()["processes"].split()


class WrongOnTree:
    """Naive sampling, but where it is bound to one tree: there it accepts the whole first path."""

    name = "wrong_on_tree"

    def __init__(self, process: DraftProcess, here: bool = False) -> None:
        self.process, self.here = process, here
        self.draft_processes = frozenset({process.name})

    def bind(self, process: DraftProcess, pair: Any = None) -> "WrongOnTree":
        return WrongOnTree(self.process, process == self.process)

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        found = verifiers["naive_sampling"].outcome(paths, target_rows, draft_rows)
        if not self.here:
            return found
        stops, rows = found.stop_probs * 0, namespace(paths).arange(len(paths))
        last = (paths[:, 0] >= 0).sum(-1)
        stops[rows, 0, last] = stops[rows, 0, last] + 1
        return Outcome(stops, lambda path_index, length: target_rows[:, 0, 0, :] + 0)


def test_the_suite_follows_the_drafts_a_verifier_is_meant_for() -> None:
    """Trees for what is made for trees, i.i.d. drafts for who says nothing, short paths for kseq."""
    assert {case.process.name for case in suite_for(verifiers["multi_round_without_replacement"])} == {
        "without_replacement"
    }
    assert len({case.process.name for case in suite_for(verifiers["token"])}) == 5
    assert {case.process.name for case in suite_for(as_verifier(UserToken()))} == {"iid"}
    assert {case.pair.draft_length for case in suite_for(verifiers["kseq"])} == {1}


def test_shapes_that_an_arithmetic_did_not_see_are_counted() -> None:
    """Torch judges every other case in one precision, and large cases are judged in rationals alone."""
    large = SuiteCase("large", instances.random_rational(1, 3, 3), Iid(3))
    scope = certify_suite("token", [*cases_of(1), large]).scope
    assert (3, 3, 3) in scope.shapes
    assert "float64 at 1 of 2 shapes" in scope.refused
    small = certify_suite("token", cases_of(1, 2)).scope.refused
    assert not any(words.startswith(("float64 at", "float32 at")) for words in small)


def cases_of(*lengths: int, num_drafts: int = 1) -> list[SuiteCase]:
    """Two tokens at several draft lengths."""
    return [SuiteCase(f"L{length}", instances.two_token(length), Iid(num_drafts)) for length in lengths]


def test_one_failure_is_enough_and_the_first_is_shown() -> None:
    """A wrong weight shows from the second token on: lossless at L = 1, not at L = 2 and 3."""
    verifier = BlockWithoutWeight()
    found = certify_suite(verifier, cases_of(1, 2, 3))
    assert [verdict.is_lossless for verdict in found.verdicts] == [True, False, False]
    assert not found
    assert list(dict.fromkeys(verdict.case for verdict in found.failures)) == ["L2, 1 draft", "L3, 1 draft"]
    assert found.counterexample is not None
    assert found.counterexample.draft_length == 2
    stopped = certify_suite(verifier, cases_of(1, 2, 3), stop_at_first=True)
    assert len(stopped.verdicts) == 2
    assert certify_suite(verifier, cases_of(1))


def test_what_is_refused_is_no_verdict_and_what_is_broken_is_an_error() -> None:
    """A draft process it is not meant for is refused by case; a case that is too large ends the suite, and a
    ``bind`` that fails does."""
    cases = [*cases_of(2), SuiteCase("tree", instances.two_token(2), WithoutReplacement((2, 1)))]
    found = certify_suite("multi_round", cases)
    assert len(found.verdicts) == 1
    assert "refused or left out: 1 case" in found.headline()
    assert list(found.refused) == ["tree, 2 drafts (without_replacement 2,1)"]
    with pytest.raises(EnumerationTooLargeError, match="max_tuples"):
        certify_suite("conditional_transport", cases_of(2, 12, num_drafts=4))

    class FailsWhenBound(UserBlock):
        def bind(self, process: Any, pair: Any = None) -> Any:
            raise RuntimeError("no file of weights")

    with pytest.raises(NotJudgedError, match="no file of weights"):
        certify_suite(FailsWhenBound(), cases_of(1))


def test_assert_lossless_fails_with_one_sentence() -> None:
    """Pair, prefix, both probabilities and the drafts; nothing is asked after the first failure."""
    with pytest.raises(
        AssertionError, match=r"not lossless\. On .*, 1 draft: the completed output starts with .*; 1 of "
    ):
        assert_lossless(defects["draft_correction"])


@pytest.mark.parametrize("name", ["target_correction", "longest_accepted", "small_division_factor", "block"])
def test_the_drafts_to_blame_add_up(name: str) -> None:
    """E[P(output starts with a | drafts)] is the law of a, for every a; the cause has the largest term."""
    pair, process = instances.sticky_chain(2), Iid(2)
    law = output_law(defects.get(name, name), pair, drafts=process)
    tables = Evaluator.of(Problem(law.verifier, pair, process), process)
    tuples = next(process.tuples(pair, 100))
    for depth in (1, 2, 3):
        for number in range(2**depth):
            prefix = numbered_context(number, depth, 2)
            given = fractions_if_exact(starts_with(tables, tuples.leaves, prefix))
            assert (tuples.probs * given).sum() == law.prefix_law(depth)[number]
            deviation = law.prefix_law(depth)[number] - pair.target_path_probs(depth)[number]
            if not deviation:
                continue
            drafts, share, _ = law.cause(prefix)
            terms: Any = (
                tuples.probs * (given - pair.target_path_probs(depth)[number]) * (1 if deviation > 0 else -1)
            )
            worst = int(np.argmax(terms))
            paths = tuple(numbered_context(int(leaf), 2, 2) for leaf in tuples.leaves[worst])
            # Verifiers of one path are asked about the first path only.
            assert terms[worst] > 0
            if not law.verifier.single_path:
                assert (drafts, share) == (paths, given[worst])


class WrongAtDepth(UserToken):
    """After a rejection at one depth the correction comes from the target itself."""

    name = "wrong_at_depth"

    def __init__(self, depth: int) -> None:
        self.depth = depth

    def on_path(self, path: Any, target_rows: Any, draft_rows: Any) -> Any:
        stops, rows = super().on_path(path, target_rows, draft_rows)
        return stops, [
            *rows[: self.depth],
            *target_rows[self.depth : self.depth + 1],
            *rows[self.depth + 1 :],
        ]


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_the_quick_suite_looks_at_every_position_that_its_scope_names(depth: int) -> None:
    """A correction that is wrong at the third drafted token is found; behind it the target's row is right."""
    cases = [case for case in standard_suite(quick=True) if case.process.num_drafts == 1]
    longest = [case for case in cases if case.pair.draft_length == 3]
    found = certify_suite(WrongAtDepth(depth), longest, quick=True)
    assert bool(found) == (depth == 3)
    assert max(length for _, length, _ in found.scope.shapes) == 3


def test_a_scope_names_the_shapes_of_random_pairs() -> None:
    """A pair with two deterministic models is judged, and its shape is not named for it; a suite of one's own
    without random pairs names the shapes that it has."""
    fixed = SuiteCase("point_masses-L3", instances.point_masses(3), Iid(2))
    drawn = SuiteCase("random_seed4_V2-L3", instances.random_rational(4, 2, 3), Iid(1))
    assert certify_suite("token", [fixed, drawn]).scope.shapes == ((2, 3, 1),)
    assert certify_suite("token", [fixed]).scope.shapes == ((2, 3, 2),)
    named = [case for case in standard_suite(quick=True) if case.name.startswith(RANDOM_NAMES)]
    shapes = {(case.pair.vocab_size, case.pair.draft_length, case.process.num_drafts) for case in named}
    assert {shape[:2] for shape in shapes} == {(2, 1), (2, 2), (2, 3), (3, 1), (3, 2)}
    assert {case.pair.vocab_size for case in standard_suite() if case.name.startswith("alike")} == {3}


class KeepsResiduals(UserToken):
    """Looks residuals up by rows of two digits, so that those of the pair before are found."""

    name = "keeps_residuals"

    def __init__(self, digits: int = 2) -> None:
        self.digits, self.kept = digits, dict[Any, Any]()

    def correction(self, target: Any, draft: Any) -> Any:
        key = tuple(round(float(prob), self.digits) for prob in (*target, *draft))
        return self.kept.setdefault(key, super().correction(target, draft))


def test_residuals_that_are_kept_from_another_pair_are_found() -> None:
    """By pairs that are alike, with residuals of two tokens; a key of all digits, the partner, is right."""
    cases = [case for case in standard_suite(quick=True) if case.name.startswith("alike")]
    assert not certify_suite(KeepsResiduals(), cases, stop_at_first=True)
    assert certify_suite(KeepsResiduals(17), cases)


OF_BEFORE = {
    "iid": (225, "5ebb58ee"),
    "quick": (73, "4fd719c8"),
    "trees": (1403, "178936fd"),
    "random": (60, "6f6c4a37"),
    "random trees": (20, "e8011a6e"),
}


def test_the_suite_is_that_of_before() -> None:
    """After a change that is meant, the new digests are in the message."""
    takes = {
        "iid": standard_suite(),
        "quick": standard_suite(quick=True),
        "trees": standard_suite(ALL_PROCESSES - {"iid"}),
        "random": random_cases(verifiers["block"], 60, seed=3),
        "random trees": random_cases(verifiers["traversal"], 20, seed=3),
    }
    found = {
        name: digest((case.name, case.pair, case.process) for case in cases) for name, cases in takes.items()
    }
    assert found == OF_BEFORE


def test_a_suite_of_ones_own() -> None:
    """Any cases; a verifier that refuses them all gets no verdict."""
    case = SuiteCase("mine", instances.sticky_chain(2), Iid(2))
    assert assert_lossless(UserBlock(), [case]).verdicts[0].case == "mine, 2 drafts"
    with pytest.raises(InvalidInputError, match="was judged on no case of the suite"):
        certify_suite("multi_round_without_replacement", [case])
    document = certify_suite(defects["target_correction"], [case]).to_document()
    assert document["lossless"] is False
    assert document["failures"] == document["cases"] == 1
    assert len(document["reruns"]) == 3
    assert document["scope"]["shapes"] == [[2, 2, 2]]
    assert document["counterexample"]["counterexample"]["drafts"]


def test_where_nothing_is_rounded_there_is_no_tolerance() -> None:
    """The quick suite judges one case in three in floats, too."""
    scopes = [certify_suite("block", [case], quick=True).scope for case in cases_of(1, 2, 3, 4)]
    for scope in scopes:
        assert (scope.tolerance == "none") == (scope.arithmetic == "exact arithmetic")
    assert len({scope.arithmetic for scope in scopes}) == 2


def test_a_case_is_judged_on_its_own_drafts() -> None:
    """Not on as many i.i.d. ones, which earn something else."""
    pair, tree = instances.sticky_chain(2), PrefixTree((1, 2))
    found = certify_suite("multi_round", [SuiteCase("tree", pair, tree)]).verdicts[0].block_efficiency
    assert found == output_law("multi_round", pair, drafts=tree).block_efficiency
    assert found != output_law("multi_round", pair, 2).block_efficiency


def test_cases_are_small_and_their_lengths_those_a_verifier_can_do() -> None:
    """At most 700 tuples, but for one or two pairs of each shape; of a verifier that is made for two tokens,
    both lengths up to two."""
    large = [case.name for case in standard_suite() if case.process.count_tuples(case.pair) > MAX_TUPLES]
    assert 0 < len(large) < 20
    assert all(name.startswith(("shape_", "full_")) for name in large)
    verifier = as_verifier(UserToken())
    verifier.max_draft_length = 2
    assert {case.pair.draft_length for case in suite_for(verifier)} == {1, 2}


def test_the_models_of_two_paths_differ() -> None:
    """In every case of one model per path there is a second model with another first row."""
    cases = standard_suite(("per_path",))
    assert len(cases) > 10
    for case in cases:
        first, second = (case.process.drafter(case.pair, k).draft[0] for k in (0, 1))
        uniform = all(value == Fraction(1, case.pair.vocab_size) for value in first[0])
        assert (first != second).any() or uniform


def test_every_pair_of_the_table_is_informative() -> None:
    """Every pair kills something, no two the same defects; every defect dies, no two in the same way."""
    killed_by = {label: frozenset(name for name in matrix() if matrix()[name][label]) for label in PAIRS}
    assert all(killed_by.values())
    assert len(set(killed_by.values())) == len(PAIRS)
    assert all(any(row.values()) for row in matrix().values())
    assert len({tuple(row.values()) for row in matrix().values()}) == len(matrix())


def test_no_single_pair_is_enough() -> None:
    """No pair kills all; a random pair of three tokens, one with ties in p/q and the two-token pair do."""
    killed = {label: {name for name in matrix() if matrix()[name][label]} for label in PAIRS}
    assert max(map(len, killed.values())) == len(defects) - 2
    three = ("random_seed6_V3-L2", "uniform_equal-L1", "two_token-L2")
    assert set().union(*(killed[label] for label in three)) == set(defects)


def test_random_pairs_bound_the_share_on_which_a_verifier_fails() -> None:
    """N pairs miss all of a share f with a chance of (1 - f)^N < e^(-fN), which is 1 %."""
    for number in (5, 100, 4000):
        assert math.exp(-largest_share(number) * number) == pytest.approx(0.01, rel=1e-12)
    assert largest_share(4) == 1
