"""compare: the numbers of certify and optimum, side by side; a verifier that fails has a row that says so."""

import json
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

from spectheory import certify, compare, defects, instances, optimum
from spectheory.exact.comparison import OPTIMUM, Comparison
from spectheory.foundation.errors import InvalidInputError, NoVerdictError
from spectheory.pairs.drafts import WithoutReplacement
from wrong_verifiers import RaisesOnLast

PAIRS = {"two tokens": instances.two_token(2), "three tokens": instances.three_token_reversed(1)}


def row_of(found: Comparison, verifier: str, **place: Any) -> Mapping[str, Any]:
    (row,) = (
        row
        for row in found.rows()
        if row["verifier"] == verifier and all(row[name] == value for name, value in place.items())
    )
    return row


def test_numbers_are_those_of_certify_and_optimum() -> None:
    found = compare(["token", "block", "spectr_gbv"], PAIRS, [1, 2])
    assert len(found.rows()) == 2 * 2 * 4
    for name, pair in PAIRS.items():
        for num_drafts in (1, 2):
            best = optimum(pair, num_drafts).value
            at = {"pair": name, "num_drafts": num_drafts}
            assert Fraction(row_of(found, OPTIMUM, **at)["block_efficiency"]) == best
            for verifier in ("token", "block", "spectr_gbv"):
                row, certificate = row_of(found, verifier, **at), certify(verifier, pair, num_drafts)
                assert Fraction(row["block_efficiency"]) == certificate.block_efficiency
                assert Fraction(row["gap"]) == best - certificate.block_efficiency == certificate.gap
                assert Fraction(row["total_variation"]) == certificate.total_variation
                assert (row["verdict"], row["basis"]) == (certificate.verdict, "rationals")
                assert row["lossless"] is bool(certificate)


def test_values_of_the_papers_pair() -> None:
    """greedy2026 Table 1's pair: 20/9 and 212/81; token verification earns 19/9."""
    found = compare(["token"], instances.two_token(2), [1, 2])
    rows = [(row["drafts"], row["verifier"], row["block_efficiency"], row["gap"]) for row in found.rows()]
    assert rows == [
        ("iid:1", "optimum", "20/9", None), ("iid:1", "token", "19/9", "1/9"),
        ("iid:2", "optimum", "212/81", None), ("iid:2", "token", "19/9", "41/81"),
    ]  # fmt: skip


def test_a_verifier_that_fails_has_a_row_that_says_so() -> None:
    """It raises, its law is wrong, or it takes no such drafts; the others are judged all the same."""
    verifiers = [RaisesOnLast(), defects["draft_bonus"], "multi_round_without_replacement", "block"]
    found = compare(verifiers, instances.two_token(2))
    raises, wrong, refuses, block = found.rows()[1:]
    assert (raises["verdict"], raises["lossless"]) == ("not lossless", False)
    assert raises["block_efficiency"] is None
    assert "Error" in raises["because"]
    assert (wrong["verdict"], wrong["because"][:27]) == ("not lossless", "the completed output starts")
    assert (refuses["verdict"], refuses["lossless"], refuses["basis"]) == ("undecided", None, None)
    assert "not valid for 'iid' drafts" in refuses["because"]
    assert block["lossless"] is True
    (table,) = compare(verifiers, instances.two_token(2), [1, 2]).tables()
    assert [row[1] for row in table.texts()][1:4] == ["fails", "19/9 = 2.111111 *", "-"]
    assert "* not lossless" in table.note
    assert "not valid for 'iid' drafts" in table.note


def test_rows_say_what_they_have_seen_and_are_true_where_lossless() -> None:
    """The row of the optimum has no verdict; in floats the tolerance is said."""
    pairs = [instances.two_token(1), instances.two_token(1).to_float()]
    rows = compare(["token", defects["draft_bonus"]], pairs).compared
    for optimum_row, right, wrong in (rows[:3], rows[3:]):
        with pytest.raises(NoVerdictError, match="block_efficiency"):
            bool(optimum_row)
        assert right
        assert not wrong
    exact, rounded = rows[1].scope, rows[4].scope
    assert exact == "exact arithmetic, tolerance none; (V, L, K) = (2, 1, 1)"
    assert rounded.startswith("float64 arithmetic, tolerance within 1e-09 ")


def test_forms() -> None:
    """JSON, a frame, and LaTeX in both layouts."""
    found = compare(["token", "block"], PAIRS, 2)
    assert json.loads(json.dumps(found.to_document()))["rows"] == found.rows()
    frame = found.to_frame()
    assert list(frame["verifier"]) == ["optimum", "token", "block"] * 2
    assert frame["block_efficiency_float"][0] == pytest.approx(212 / 81)
    assert r"verifier & two tokens & three tokens \\" in found.to_latex()
    one = compare(["token"], instances.two_token(2)).to_latex()
    assert r"token & lossless & 19/9 = 2.111111 & 1/9 = 0.111111 & 0 \\" in one
    with pytest.raises(NoVerdictError, match=r"ask \.rows\(\)"):
        bool(found)


def test_a_picture_has_a_curve_per_verifier() -> None:
    """Over K, or over pairs; no value where a verifier fails; one of a user is drawn too."""
    axes = compare(["token", RaisesOnLast()], instances.two_token(2), [1, 2, 3]).plot()
    best, token, raises = (line.get_ydata() for line in axes.lines)
    assert [line.get_label() for line in axes.lines][1] == "token"
    assert list(axes.lines[1].get_xdata()) == [1, 2, 3]
    assert [float(value) for value in best] == sorted(float(value) for value in best)
    assert list(token) == [pytest.approx(19 / 9)] * 3
    assert all(math.isnan(value) for value in raises)
    assert axes.lines[2].get_label().endswith(" *")
    axes = compare(["token"], PAIRS).plot()
    assert [text.get_text() for text in axes.get_xticklabels()] == list(PAIRS)
    assert compare(["token"], instances.two_token(1)).plot(axes) is axes


def test_trees_and_floats() -> None:
    """A tree of drafts beside independent paths; float64 pairs have floats and an enclosed optimum."""
    found = compare(["naive_sampling"], instances.two_token(2), [2, WithoutReplacement((2, 1))])
    assert [row["drafts"] for row in found.rows()] == ["iid:2"] * 2 + ["without_replacement:2,1"] * 2
    pair = instances.two_token(2).to_float()
    best, block = compare(["block"], [pair]).rows()
    assert (block["pair"], block["basis"], block["block_efficiency"]) == ("pair 1", "float64", None)
    assert block["block_efficiency_float"] == pytest.approx(20 / 9)
    assert best["block_efficiency_float"] == pytest.approx(20 / 9)


@pytest.mark.parametrize(
    ("verifiers", "pairs", "drafts", "says"),
    [
        (["blok"], instances.two_token(1), 1, "did you mean 'block'"),
        ([], instances.two_token(1), 1, "name at least one verifier"),
        (["block"], [], 1, "name at least one verifier"),
        (["block"], instances.two_token(1), [], "name at least one verifier"),
        (["block"], instances.two_token(1), 0, "drafts must be"),
        (["block"], ["pair.json"], 1, "pair"),
    ],
)
def test_bad_arguments(verifiers: Any, pairs: Any, drafts: Any, says: str) -> None:
    with pytest.raises((InvalidInputError, TypeError), match=says):
        compare(verifiers, pairs, drafts)
