"""What selecting a path does to its law: the skewed drafts of the ranking and of the optimum."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectheory.optima import path_selection_optimum
from spectheory.optima.bounds.level_sets import LevelSets
from spectheory.optima.bounds.skewed_draft import SkewedDraft, is_skewed_draft
from spectheory.pairs.instances import two_token
from spectheory.paper.drawing import legend_below, panels
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.style import ACCENT, BLACK, GREY, VERIFIER_COLOURS

LAWS = {
    "draft": ("draft q", ACCENT),
    "ranking": ("selected by the ranking p/q", VERIFIER_COLOURS["greedy_multipath"]),
    "optimal": ("selected by the optimum", BLACK),
}


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"skewed_drafts": _plot(findings)}


@exhibit(
    title="Skewed drafts and the limit on them",
    source="greedy2026, Lemma 4.5, Theorem 4.6, Eq. 17",
    draw=_draw,
)
def skewed_drafts(draft_length: int = 2, num_drafts: int = 3) -> Findings:
    """Laws of the selected path on the two-token pair, exactly, and their level sets below 1 − (1 − u)^K.

    Args:
        draft_length: L.
        num_drafts: K.
    """
    pair = two_token(draft_length)
    draft, target = pair.draft_path_probs(draft_length), pair.target_path_probs(draft_length)
    best = path_selection_optimum(pair, num_drafts)
    laws = {
        "draft": SkewedDraft.from_leaf_law(pair, draft),
        "ranking": SkewedDraft.from_ranking(pair, num_drafts),
        "optimal": best.skewed_draft,
    }
    texts = ["".join(pair.vocab[token] for token in pair.context(draft_length, n)) for n in range(len(draft))]
    rows, level_sets, infeasible, summary, above = [], [], [], [], []
    for name, law in laws.items():
        earned = law.block_efficiency(pair)
        sets = LevelSets.of(law.leaf_law, draft, num_drafts)
        tight = sum(bool(excess == 0) for excess in sets.excesses)
        summary.append((name, earned, float(earned), tight, len(sets.excesses)))
        rows += [
            (name, text, p, float(p), q, float(q), r, float(r))
            for text, p, q, r in zip(texts, target, draft, law.leaf_law, strict=True)
        ]
        level_sets += [
            (name, mass, float(mass), chosen, float(chosen), limit, float(limit))
            for mass, chosen, limit in zip(sets.draft_masses, sets.masses, sets.limits, strict=True)
        ]
        if not is_skewed_draft(pair, law.leaf_law, num_drafts).is_member:
            infeasible.append(name)
        if earned > best.value:
            above.append(f"{name}: {earned} > {best.value}")
    vertex = (
        [] if summary[1][3] == len(draft) else [f"only {summary[1][3]} of {len(draft)} level sets are tight"]
    )
    missed = [] if summary[2][1] == best.value else [f"{summary[2][1]} < {best.value}"]
    on_top = np.array([int(n == 0) for n in range(len(draft))], dtype=object) * draft[0] ** 0
    not_seen = ["the law that always selects one path"] * is_skewed_draft(pair, on_top, num_drafts).is_member
    return Findings(
        explanation=(
            "Selecting one of several drafts skews its law, within limits: no set of paths can be selected "
            "more often than it is drafted at all. A ranking meets the limit on all its level sets and "
            "skews too much; the optimum keeps off it. They earn "
            f"{summary[1][1]} and {summary[2][1]} tokens per call, "
            f"the draft itself {summary[0][1]}."
        ),
        settings={"draft_length": draft_length, "num_drafts": num_drafts},
        tables=[
            ResultTable(
                "skewed_drafts",
                (
                    "law",
                    "path",
                    "target",
                    "target_float",
                    "draft",
                    "draft_float",
                    "selected",
                    "selected_float",
                ),
                rows,
                "Probabilities of every path: of the target, of the draft, and of being selected. Exact.",
            ),
            ResultTable(
                "skewed_drafts_level_sets",
                (
                    "law",
                    "draft_mass",
                    "draft_mass_float",
                    "selected_mass",
                    "selected_mass_float",
                    "limit",
                    "limit_float",
                ),
                level_sets,
                "Sets of the paths with the largest selected / draft, one path more each: how often one "
                "draft lies in it, how often the selected path does, and the limit 1 − (1 − draft_mass)^K. "
                "Exact.",
            ),
            ResultTable(
                "skewed_drafts_efficiency",
                ("law", "block_efficiency", "block_efficiency_float", "tight_sets", "level_sets"),
                summary,
                "Block efficiency of block verification against each law, tokens per target call, and how "
                "many of its level sets meet the limit.",
            ),
        ],
        checks=[
            Check.of("each of the laws can be selected (Lemma 4.5)", len(laws), infeasible),
            Check.of("always selecting one path cannot", 1, not_seen),
            Check.of("a ranking meets the limit on every level set: it is a vertex (Appendix H)", 1, vertex),
            Check.of("the optimal law attains the optimum (Theorem 4.6)", 1, missed),
            Check.of("no law exceeds it", len(laws), above),
        ],
    )


def _plot(findings: Findings) -> Figure:
    with panels(1, 2, height=3.6) as (figure, (left, right)):
        _bars(left, findings.table("skewed_drafts"))
        _level_sets(right, findings.table("skewed_drafts_level_sets"), findings.settings["num_drafts"])
        legend_below(figure, 3)
    return figure


def _bars(axes: Axes, table: ResultTable) -> None:
    width = 0.2
    paths = [row["path"] for row in table.select(law="draft")]
    places = np.arange(len(paths))
    axes.bar(places - 1.5 * width, [row["target_float"] for row in table.select(law="draft")],
             width * 0.9, color=GREY, alpha=0.5, label="target p")  # fmt: skip
    for number, (name, (label, colour)) in enumerate(LAWS.items()):
        axes.bar(places + (number - 0.5) * width, [row["selected_float"] for row in table.select(law=name)],
                 width * 0.9, color=colour, label=label)  # fmt: skip
    axes.set_xticks(range(len(paths)), paths)
    axes.tick_params(axis="x", length=0)
    axes.set(xlabel="drafted path", ylabel="probability")
    axes.set_title("Law of the selected path")


def _level_sets(axes: Axes, table: ResultTable, num_drafts: int) -> None:
    masses = np.linspace(0, 1, 101)
    axes.plot(masses, 1 - (1 - masses) ** num_drafts, color=GREY, linewidth=1.2, linestyle=":",
              label=f"limit $1 - (1 - u)^{num_drafts}$")  # fmt: skip
    for name, (_, colour) in LAWS.items():
        rows = table.select(law=name)
        drafted, selected = (
            [0, *(row[key] for row in rows)] for key in ("draft_mass_float", "selected_mass_float")
        )
        axes.plot(drafted, selected, "o-", color=colour, markersize=4, linewidth=1.4)  # fmt: skip
    axes.set(
        xlabel="draft mass u of the paths most favoured", ylabel="selected mass", xlim=(0, 1), ylim=(0, 1.02)
    )
    axes.set_title("Level sets and their limit")
