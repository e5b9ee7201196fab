"""The partner of every check of a figure: it fails when the figure is told a lie."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from deep import first_is_quick
from figure_support import NAMES, Changed, Lie, after, assert_seen, instead, small, told, told_of
from figures.draft_length_gain import lost_lead
from figures.results import Checks, Findings, ResultTable
from later import Later
from spectheory.pairs.drafts import ConfidenceTree
from spectheory.pairs.instances import two_token
from spectheory.verification.algorithms.spectr_gbv import conditionally_independent_bound

frontier = Later("figures.frontier")


def plus(amount: float) -> Callable[[Any], Any]:
    return lambda value: value + amount


def ninth(value: Any) -> Any:
    return value / 9


def curve(cut: Callable[[Any], Any]) -> Lie:
    return after(lambda cuts, *_: [Changed(one, value=cut) for one in cuts])


def late(*_: Any, drafts: Any) -> bool:
    return bool(drafts.widths[0] == 1)


def estimating(wanted: Callable[[str], bool], **changes: Any) -> Lie:
    return told(
        estimates=lambda found: [Changed(one, **changes) if wanted(one.verifier) else one for one in found]
    )


def slower(factor: float, model: str) -> Lie:
    return after(
        lambda rows: tuple(
            row._replace(relative=row.relative * (factor if row.model == model else 1)) for row in rows
        )
    )


def higher(found: Any, column: str, by: float) -> Any:
    """A measurement with more in one column."""
    place = found.columns.index(column)
    rows = [
        (*row[:place], row[place] if row[place] is None else row[place] + by, *row[place + 1 :])
        for row in found.rows
    ]
    return replace(found, rows=rows)


MORE, MUCH_MORE = told(block_efficiency=plus(1)), told(block_efficiency=plus(9))
DEFECTIVE, LOSSLESS = told(total_variation=plus(1)), told(total_variation=lambda value: value * 0)
ALL_HALF = ResultTable("d", "", ["verifier", "total_variation"], [("token", 0.5), ("greedy_block", 0.0)])

LIES: list[tuple[str, str, Lie, list[str]]] = [
    # spectr2023
    ("acceptance_bounds", "optimal_acceptance",
     after(lambda found, t, q, drafts: Changed(found, value=lambda _: Fraction(1, 9 * drafts))),
     ["α_K does not fall", "α_K lies between", "the upper bound is attained", "for K ≤ 4"]),
    ("acceptance_bounds", "optimal_acceptance", told(value=plus(1)), ["α_K stays at or below"]),
    ("kseq_ratio", "optimal_acceptance", told(value=lambda value: 9 * value), ["no ratio found"]),
    ("kseq_ratio", "_worst_of_family", after(lambda found, _: (1.0, *found[1:])), ["no searched rows"]),
    ("otm_bernoulli", "bernoulli_acceptance", instead(0), ["the min cut equals"]),
    ("otm_bernoulli", "otm_optimum", told(value=plus(1)), ["for K ≤"]),
    ("otm_bernoulli", "optimal_acceptance", told(value=ninth), ["no rule exceeds"]),
    ("otm_uniform", "optimal_acceptance_curve", curve(ninth), ["the min cut equals", "K-SEQ attains"]),
    ("otm_uniform", "optimal_acceptance_curve", curve(lambda _: Fraction(1, 2)),
     ["α_K increases", "1 − α_K is halved"]),
    ("prefix_trees", "output_law", DEFECTIVE, ["every verifier is lossless"]),
    ("prefix_trees", "output_law", MUCH_MORE, ["no verifier exceeds"]),
    ("prefix_trees", "output_law", told_of(late, block_efficiency=plus(9)), ["no shape serves"]),
    ("prefix_trees", "output_law", told_of(late, block_efficiency=plus(-1)), ["conditional transport is"]),
    ("prefix_trees", "optimum", told_of(late, value=plus(9)), ["no shape has a larger"]),
    # block2024
    ("acceptance_length", "output_law", told(length_probs=lambda probs: probs[::-1]),
     ["every exact probability"]),
    ("draft_length_gain", "_efficiencies",
     after(lambda found, name, _: [(1 + (name == "token")) * value for value in found]),
     ["block verification never earns"]),
    ("draft_length_gain", "two_token", lambda original: lost_lead, ["on context-free and Markov"]),
    ("draft_length_gain", "lost_lead", lambda original: two_token, ["it does not always grow"]),
    ("full_information", "output_law", MORE,
     ["E[τ] is 10/9", "block verification is the best", "no lossless verifier", "the coupling program"]),
    ("full_information", "output_law", LOSSLESS, ["greedy block reaches"]),
    ("full_information", "block_transport_optimum", told(value=plus(1)), ["the coupling program"]),
    ("full_information", "find_verifier", lambda original: lambda name: original("token"),
     ["block verification accepts each"]),
    ("two_token_table", "optimum", told(value=plus(1)), ["block verification attains"]),
    ("two_token_table", "output_law", MORE, ["E[τ] at draft length 2"]),
    # greedy2026
    ("frontier", "multi_path_interval", told(upper=plus(-1)), ["no verifier exceeds"]),
    ("frontier", "multi_path_interval", told(lower=lambda _: 9.0),
     ["the bound of the best cap"]),
    ("frontier", "efficiencies", after(lambda found, *_: found | {"scored_multipath": 1.0}),
     ["scored selection closes", "it loses to no other"]),
    ("equal_rows", "most_on_independent", after(lambda most, _: most - 1),
     ["no verifier of independent paths is above the ceiling"]),
    ("equal_rows", "measurement", after(lambda found, _: higher(found, "missed_high", -1.0)),
     ["no verifier is above the ceiling beyond", "no verifier of independent paths is above the ceiling"]),
    ("greedy_falls", "multi_path_interval", told(upper=plus(-1)), ["neither exceeds"]),
    ("greedy_falls", "output_law", MORE, ["the closed form"]),
    ("greedy_falls", "printed_times", after(lambda rows: rows[::-1]), ["every row"]),
    ("greedy_falls", "limit_of_many_drafts", instead(Fraction(9)), ["it tends"]),
    ("lossy_front", "optimum", told(value=plus(1)), ["the front starts"]),
    ("lossy_front", "lossy_optimum",
     told_of(lambda pair, budget, drafts: budget == Fraction(1, 8), value=plus(-1)), ["it is concave"]),
    ("lossy_front", "lossy_optimum", told(value=plus(-1)), ["with a total variation of 1", "no verifier"]),
    ("one_path_optimum", "single_path_optimum", told(value=ninth),
     ["block verification attains", "no lossless verifier"]),
    ("one_path_optimum", "output_law", DEFECTIVE, ["token and block verification are"]),
    ("token_tree", "output_law",
     told(accepted_masses=lambda levels: [level * (1 + (d == 2)) for d, level in enumerate(levels)]),
     ["every antichain's", "the masses add up"]),
    ("token_tree", "count_antichains", instead(0), ["there are N_L"]),
    # spectrgbv2026
    ("spectr_gbv_bound", "conditionally_independent_bound",
     lambda original: lambda pair, drafts: Fraction(9 * drafts),
     ["Bound(K) is not a bound", "Bound(K) does not always"]),
    ("spectr_gbv_bound", "output_law", LOSSLESS, ["SpecTr-GBV is not lossless"]),
    ("spectr_gbv_bound", "output_law",
     after(lambda law, name, *given: Changed(
         law, block_efficiency=lambda _: 1 + conditionally_independent_bound(*given))),
     ["SpecTr-GBV does not always"]),
    ("spectr_gbv_law", "output_law", told(total_variation=plus(1)), ["the bars differ"]),
    ("spectr_gbv_law", "output_law", lambda original: lambda *_: original("token", two_token(1)),
     ["the output is not"]),
    ("one_path_weights", "accepted", after(lambda found, _: dict.fromkeys(found, found["token"])),
     ["block accepts", "greedy_block accepts"]),
    ("one_path_weights", "accepted",
     after(lambda found, _: dict(zip(found, reversed(found.values()), strict=True))),
     ["token ≤ block", "token accepts"]),
    ("kill_matrix", "output_law", told(total_variation=lambda _: 0), ["every mistake"]),
    ("kill_matrix", "output_law", told(total_variation=lambda _: Fraction(1)), ["no pair shows"]),
    ("spectr_gbv_bound", "conditionally_independent_maximum", instead(Fraction(2)),
     ["Bound(2) bounds", "its class does not"]),
    # language models
    ("draft_processes", "simulate",
     estimating(lambda name: True, interval=lambda _: (0.1, 0.2), counted_interval=lambda _: (0.3, 0.4)),
     ["the two ways of counting"]),
    ("draft_processes", "simulate",
     told_of(
         lambda *_, drafts, **__: drafts.text == ConfidenceTree(4).text,
         estimates=lambda found: [Changed(one, block_efficiency=lambda _: 0.0) for one in found],
     ),
     ["a confidence tree holds"]),
    ("greedy_falls_on_models", "common.bundled.simulate",
     estimating(lambda name: name.startswith("scored"), interval=lambda _: (0.1, 0.2),
                gain_interval=lambda _: (9.0, 9.5)),
     ["with most drafts scored", "every gain lies"]),
    ("full_vocabulary", "common.bundled.simulate",
     estimating(lambda name: name == "spectr", block_efficiency=lambda _: 0.0),
     ["with one draft"]),
    ("full_vocabulary", "common.bundled.simulate",
     estimating(lambda name: name == "token", block_efficiency=lambda _: 0.0),
     ["on the same drafts a longer"]),
    ("full_vocabulary", "defects_on_two_tokens", instead(ALL_HALF), ["a verifier has a defect"]),
    ("latency", "printed_latencies", slower(1.1, "target"), ["as printed, no call of the target"]),
    ("latency", "printed_latencies", slower(1.1, "draft"), ["as printed, a call of the draft"]),
    ("latency", "measured", slower(4.0, "draft"), ["here a call of the draft"]),
    ("latency", "measured", slower(12.0, "target"), ["here a call of the target"]),
    ("paired_gains", "measurement",
     after(lambda found, *_: replace(
         found, rows=[(name, name != "scored_multipath", 2.0, 0.5, 0.6, 0.7) for name, *_ in found.rows]
     )),
     ["every gain lies", "scored selection gains"]),
    ("temperature_gains", "simulate", estimating(lambda name: name == "block", interval=lambda _: (0.0, 0.0)),
     ["block is nowhere seen"]),
    ("release_grid", "verdicts",
     after(lambda rows, page: [(*row[:2], "undecided") for row in rows] if page == "audits.md" else rows),
     ["on few pairs an audit"]),
    ("verification_cost", "fastest",
     after(lambda best, rows, cost: (max if cost > 0.01 else min)(rows, key=lambda row: row["nodes"])),
     ["dearer rows never"]),
    ("whole_texts", "simulate",
     estimating(lambda name: name in ("spectr", "greedy_multipath"), interval=lambda _: (0.1, 0.2),
                counted_interval=lambda _: (0.3, 0.4)),
     ["the two ways of counting", "several drafts are nowhere"]),
    ("whole_texts", "printed_times",
     after(lambda rows: [row._replace(ms_per_token=10.0 / row.num_drafts) for row in rows]),
     ["as printed, three drafts", "as printed, a call"]),
    ("whole_texts", "measurement",
     after(lambda found, name: found if name == "walltimes" else replace(
         found, rows=[(*row[:-3], 2.0, 0.5, 0.6) for row in found.rows])),
     ["on a real model every mean", "on a real model all intervals"]),
    ("rows_per_call", "price_bound", instead(1.0), ["no rule exceeds"]),
    ("rows_per_call", "draft_defect", told(total_variation=plus(1)), ["every way is lossless"]),
    ("rows_per_call", "best_stopping_rule", instead(lambda tokens, rows: 0), ["no predictable rule"]),
]  # fmt: skip
"""Figure, what it calls, the lie it is told, and the claims that then must fail."""


@first_is_quick(
    ("name", "called", "lie", "claims"),
    [pytest.param(*lie, marks=[pytest.mark.deep] * (place % 2)) for place, lie in enumerate(LIES)],
    quick=6,
)
def test_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, name: str, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, name, called, lie, claims)


def test_every_figure_has_a_partner() -> None:
    """That of ``real_pair`` is in test_models."""
    assert {name for name, *_ in LIES} | {"printed_gains", "real_pair"} == {*NAMES}


@first_is_quick(
    ("verifier", "factor", "claims"),
    [("spectr", 0.5, ["the printed order"]), ("block", 0.9, ["the printed order", "block is above token"])],
)
def test_lower_printed_numbers_are_seen(
    monkeypatch: pytest.MonkeyPatch, verifier: str, factor: float, claims: list[str]
) -> None:
    printed_gains = import_module("figures.printed_gains")
    given = printed_gains.gains_over_token

    def lie(original: Any) -> Any:
        rows = tuple(
            row._replace(block_efficiency=row.block_efficiency * (factor if row.verifier == verifier else 1))
            for row in original()
        )
        monkeypatch.setattr(printed_gains, "gains_over_token", lambda: given(rows))
        return lambda: rows

    two = {"block_efficiency": 2.0, "low": 1.0, "high": 3.0, "gain_high": 1.0}
    monkeypatch.setattr(printed_gains, "_estimates", lambda shapes, *_, **__: dict.fromkeys(shapes, two))
    assert_seen(monkeypatch, "printed_gains", "printed_rows", lie, claims)


def test_gains_that_do_not_grow_and_a_low_block_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Block below token here; gains that are the same at every length."""
    low, high = ({"block_efficiency": 2.0, "low": 1.0, "high": 3.0, "gain_high": x} for x in (-1, 1))
    monkeypatch.setattr(
        "figures.printed_gains._estimates",
        lambda shapes, *_, **__: {s: low if s[3] == "block" else high for s in shapes},
    )
    lie = after(
        lambda rows: [one._replace(percent=5.0, row=one.row._replace(printed_gain=None)) for one in rows]
    )
    assert_seen(monkeypatch, "printed_gains", "gains_over_token", lie, ["the mean printed gain", "here, too"])


def test_an_optimum_is_exceeded_by_more_than_rounding() -> None:
    optima: Any = [SimpleNamespace(upper=2.0)]
    for value, failures in ((2.0, 0), (2 + 5e-10, 0), (2 + 2e-9, 1)):
        checks = Checks()
        frontier._expect_at_most_optimal(checks, "here", optima, {"block": [value]})
        assert len(Findings("", [], checks).failures) == failures


def test_trees_with_more_leaves_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four leaves are needed for a tree that scores as many tokens as another with fewer leaves."""
    lie = told_of(late, block_efficiency=plus(9))
    assert_seen(monkeypatch, "prefix_trees", "output_law", lie, ["nor does a tree"], num_leaves=(2, 4))


def test_a_pair_on_which_greedy_multipath_grows() -> None:
    """Two drafts of the two-token pair earn more than one: then nothing falls, and the check says so."""
    failures = small("greedy_falls", names=("two_token",), num_drafts=(1, 2)).failures
    assert any(text.startswith("it does not always grow") for text in failures)
