"""Statements beside losslessness: proved and checked, and refuted by a pair where they are false."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from deep import first_is_quick
from later import Later
from spectheory import certify, defects, optimum, output_law, verifiers
from spectheory.exact.iteration import completed_law
from spectheory.exact.proof.check import check_document
from spectheory.exact.proof.domain import Domain, Shape
from spectheory.exact.proof.draft_tuples import Drafts
from spectheory.exact.proof.graph import Graph
from spectheory.exact.proof.proof_file import RejectedProofError
from spectheory.exact.proof.region import Region
from spectheory.exact.proof.search import prove
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.pairs.drafts import Iid, PrefixTree, WithoutReplacement
from spectheory.verification.algorithms.one_path.greedy_block import GreedyBlock
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import find_verifier

sympy = Later("sympy")

PROVED: list[tuple[str, str, int, int, Any]] = [
    ("optimal", "block", 3, 1, 1),
    ("optimal", "mixed_multipath", 2, 1, 2),
    ("at_least:token", "greedy_block", 2, 1, 1),
    ("prefix_matching", "multi_round", 2, 1, 2),
    ("exchangeable", "greedy_multipath", 2, 1, 2),
    ("completed", "greedy_block", 2, 1, 1),
    ("at_least:multi_round@1", "multi_round", 2, 1, 2),
    ("at_least:multi_round", "traversal", 2, 1, 2),
    ("single_path", "token", 2, 1, 2),
    ("single_path", "block", 2, 1, PrefixTree((2,))),
    ("optimal", "block", 2, 2, 1),
    ("at_least:token", "block", 2, 2, 1),
    ("at_least:block", "greedy_block", 2, 2, 1),
    ("completed", "greedy_block", 2, 2, 1),
    ("single_path", "block", 2, 2, 2),
]


@first_is_quick(("statement", "name", "vocab_size", "draft_length", "drafts"), PROVED, quick=6)
def test_statements_are_proved_and_checked(
    statement: str, name: str, vocab_size: int, draft_length: int, drafts: Any
) -> None:
    found = prove(name, vocab_size, draft_length, drafts, statement=statement)
    assert (found.verdict, found.num_open) == ("proved", 0)
    assert check_document(found.document(), verifiers[name]) <= found.num_regions


@pytest.mark.parametrize(
    ("name", "draft_length", "drafts"), [("token", 2, 1), ("multi_round", 1, 2), ("greedy_multipath", 1, 2)]
)
def test_partner_verifiers_below_the_optimum_are_refuted(name: str, draft_length: int, drafts: int) -> None:
    """By pairs on which the program has a larger value: of one path, and of one position."""
    found = prove(name, 2, draft_length, drafts, statement="optimal")
    assert found.pair is not None
    certificate = certify(name, found.pair, drafts, with_optimum=False)
    assert certificate
    assert certificate.block_efficiency < optimum(found.pair, drafts).value


class StopsAtOnce:
    """Accepts nothing, and emits a token of the target: lossless.

    Args:
        stop: the probability to stop at the root.
    """

    def __init__(self, stop: int = 1) -> None:
        self.stop = stop

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        stops, number = np.full(target_rows.shape[:-1], Fraction(0), dtype=object), np.arange(len(paths))
        stops[:, 0, 0] = self.stop
        return Outcome(stops, lambda path_index, length: target_rows[number, path_index, length])


def test_optimal_speaks_of_regions_on_which_nothing_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the walk alone, without a pair at which the verifier is asked."""
    monkeypatch.setattr("spectheory.exact.proof.search.SIMPLE_PAIRS", 0)
    monkeypatch.setattr("spectheory.exact.proof.statement.MOST_SPOTS", 0)
    assert prove(StopsAtOnce(), 2, 1, 2).verdict == "proved"
    assert prove(StopsAtOnce(), 2, 1, 2, statement="optimal").verdict == "refuted"
    found = prove("mixed_multipath", 2, 1, 2, statement="optimal")
    assert found.verdict == "proved"
    with pytest.raises(RejectedProofError, match="below the optimum"):
        check_document(found.document(), find_verifier(StopsAtOnce()))


def test_at_least_of_a_verifier_that_never_stops_is_refused() -> None:
    with pytest.raises(InvalidOutcomeError, match="sum to"):
        prove(StopsAtOnce(0), 2, 2, statement="at_least:token")
    assert prove("token", 2, 2, statement="at_least:token").verdict == "proved"


@pytest.mark.parametrize("statement", ["optimal", "prefix_matching"])
def test_partner_a_wrong_law_is_refuted(statement: str) -> None:
    assert prove(defects["target_correction"], 2, 1, statement=statement).verdict == "refuted"


@pytest.mark.parametrize(
    ("name", "draft_length", "drafts", "other"),
    [("token", 2, 1, "block@1"), ("greedy_multipath", 1, 2, "greedy_multipath@1")],
)
def test_partner_orders_that_are_false_are_refuted(
    name: str, draft_length: int, drafts: int, other: str
) -> None:
    """``token`` and ``block`` the wrong way round, and ``greedy_multipath``, which a draft can make worse."""
    found = prove(name, 2, draft_length, drafts, statement=f"at_least:{other}")
    assert found.verdict == "refuted"
    assert found.pair is not None
    better, _, count = other.partition("@")
    mine, others = output_law(name, found.pair, drafts), output_law(better, found.pair, int(count))
    assert mine.block_efficiency < others.block_efficiency


@pytest.mark.parametrize("name", ["block", "greedy_multipath"])
def test_what_verifiers_declare_holds(name: str) -> None:
    """``exchangeable`` and ``single_path`` of a verifier are proved, not declared."""
    verifier = verifiers[name]
    for flag in ("exchangeable", "single_path"):
        verdict = prove(verifier, 2, 1, 2, statement=flag).verdict
        assert verdict == ("proved" if getattr(verifier, flag) else "refuted")


@pytest.mark.parametrize("statement", ["exchangeable", "single_path"])
def test_partner_drafts_tried_in_turn_are_neither(statement: str) -> None:
    found = prove("multi_round", 2, 1, 2, statement=statement)
    assert (found.verdict, found.wrong != "") == ("refuted", True)


class _Unmodified(GreedyBlock):
    """After an output the target stays as it is."""

    def modified_target_rows(self, target_rows: Any, *others: Any) -> Any:
        return target_rows


class _WrongBeyond(GreedyBlock):
    """The modified rows are the draft's at contexts that the draft never reaches."""

    def modified_target_rows(
        self, target_rows: Any, draft_rows: Any, target_probs: Any, draft_probs: Any, num_drafts: int
    ) -> Any:
        rows = super().modified_target_rows(target_rows, draft_rows, target_probs, draft_probs, num_drafts)
        return np.where((draft_probs == 0)[:, None], draft_rows, rows)


@pytest.mark.parametrize("verifier", [_Unmodified(), pytest.param(_WrongBeyond(), marks=pytest.mark.deep)])
def test_partner_wrong_modifications_are_refuted(verifier: Any) -> None:
    found = prove(verifier, 2, 2, statement="completed")
    assert found.verdict == "refuted"
    assert found.pair is not None
    assert (completed_law(verifier, found.pair, 1) != found.pair.target_path_probs(3)).any()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("fastest", "no statement is called 'fastest'"),
        ("at_least", "at_least is followed by :VERIFIER"),
        ("at_least:token@two", "needs a whole number K"),
        ("at_least:token@²", "needs a whole number K"),
        ("at_least:kseq", "computes in float64"),
        ("optimal", "closed form for one draft"),
        ("completed", "no modified_target_rows"),
    ],
)
def test_statements_that_are_not_there_are_refused(statement: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        prove("multi_round", 2, 2, 2, statement=statement)


@pytest.mark.parametrize(
    ("name", "shape", "drafts", "positive"),
    [
        ("greedy_block", (2, 1), 1, False),
        ("multi_round", (2, 1), 2, False),
        pytest.param("block", (2, 2), 1, True, marks=pytest.mark.deep),
    ],
)
def test_formulas_are_the_block_efficiency(
    name: str, shape: tuple[int, int], drafts: int, positive: bool
) -> None:
    found = prove(name, *shape, drafts, statement="law", positive=positive, show=True)
    formula, domain = found.block_efficiency, Domain(Shape(*shape, positive))
    for point in domain.drawn_points(12):
        values = {
            name: Fraction(int(v.p), int(v.q)) for name, v in zip(domain.field.names, point, strict=True)
        }
        value = formula.subs(values)
        pair = domain.pair_at(point)
        assert Fraction(int(value.p), int(value.q)) == output_law(name, pair, drafts).block_efficiency
        assert any(one.where.subs(values) == sympy.true for one in found.formulas)
    for one in found.formulas:
        accepted = sum(map(sympy.sympify, one.to_document()["acceptance"]))
        assert sympy.expand(1 + accepted - one.expression) == 0


def test_partner_another_verifier_has_another_formula() -> None:
    formulas = [
        prove(one, 2, 1, statement="law", positive=True, show=True).block_efficiency
        for one in ("token", defects["swapped_models"])
    ]
    values = {"p_0": Fraction(1, 3), "q_0": Fraction(2, 3)}
    assert formulas[0].subs(values) == sympy.Rational(5, 3) != formulas[1].subs(values)


def test_formulas_are_written_where_they_are_asked_for() -> None:
    with pytest.raises(InvalidInputError, match="show=True"):
        _ = prove("token", 2, 1).block_efficiency
    found = prove("token", 2, 1, positive=True, show=True)
    assert [one["where"] for one in found.to_document()["formulas"]] == ["p_0 - q_0 >= 0", "p_0 - q_0 < 0"]


@pytest.mark.parametrize(
    "process",
    [Iid(2), PrefixTree((1, 2)), PrefixTree((2, 1)), WithoutReplacement((2, 1)), WithoutReplacement((1, 2))],
)
def test_tuples_and_their_probabilities_are_those_of_the_process(process: Any) -> None:
    """At points with and without zeros; a tuple with a zero cannot be drafted."""
    shape = Shape(2, 2)
    drafts, graph = Drafts(shape, process), Graph()
    domain = Domain(shape, drafts.least_support)
    for point in domain.drawn_points(8):
        pair, region = domain.pair_at(point), Region(domain)
        for context in domain.contexts:
            row = domain.rows_at(point, context)[1]
            region = region.entered(context, tuple(x for x, entry in enumerate(row) if entry))
        [(leaves, probs)] = process.enumerate(pair, 1 << 20)
        wanted = {
            tuple(some): Fraction(int(q.p), int(q.q)) for some, q in zip(leaves.tolist(), probs, strict=True)
        }
        found = {}
        for paths in drafts.tuples:
            draws = drafts.draws_of(graph, paths)
            if all(token in region.supports[context] for context, token, _ in draws):
                prob = domain.field.at(
                    domain.field.product(region.value(node) for _, _, node in draws), point
                )
                found[tuple(2 * first + second for first, second in paths)] = Fraction(
                    int(prob.p), int(prob.q)
                )
        assert found == wanted
