import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.results import Checks, Findings, ResultTable, result
from figures.style import ACCENT, Look, legend_below, panels
from spectheory.foundation.arrays import hit_probability
from spectheory.optima import path_selection_optimum
from spectheory.optima.bounds.level_sets import LevelSets
from spectheory.optima.bounds.skewed_draft import SkewedDraft, is_skewed_draft
from spectheory.pairs.instances import two_token
from spectheory.verification.curves import BLACK, GREY, VERIFIER_STYLES

LAWS = {
    "draft": ("draft q", ACCENT),
    "ranking": ("selected by the ranking p/q", VERIFIER_STYLES["greedy_multipath"].colour),
    "optimal": ("selected by the optimum", BLACK),
}


def _draw(findings: Findings) -> Figure:
    with panels(1, 2, height=3.6) as (figure, (left, right)):
        _bars(left, findings.table("skewed_drafts"))
        _level_sets(right, findings.table("skewed_drafts_level_sets"), findings.settings["num_drafts"])
        legend_below(figure, 3)
    return figure


def _bars(axes: Axes, table: ResultTable) -> None:
    width, rows = 0.2, table.where(law="draft")
    places = np.arange(len(rows.rows))
    axes.bar(places - 1.5 * width, rows["target"], width * 0.9, color=GREY, alpha=0.5, label="target p")
    for number, (name, (label, colour)) in enumerate(LAWS.items()):
        heights = table.where(law=name)["selected"]
        axes.bar(places + (number - 0.5) * width, heights, width * 0.9, color=colour, label=label)
    axes.set_xticks(range(len(places)), rows["path"])
    axes.tick_params(axis="x", length=0)
    axes.set(xlabel="drafted path", ylabel="probability")
    axes.set_title("Law of the selected path")


def _level_sets(axes: Axes, table: ResultTable, num_drafts: int) -> None:
    masses = np.linspace(0, 1, 101)
    axes.plot(masses, hit_probability(masses, num_drafts), color=GREY, linewidth=1.2, linestyle=":",
              label=f"limit $1 - (1 - u)^{num_drafts}$")  # fmt: skip
    for name, (_, colour) in LAWS.items():
        rows = table.where(law=name)
        look: Look = {"color": colour, "markersize": 4, "linewidth": 1.4}
        axes.plot([0, *rows["draft_mass"]], [0, *rows["selected_mass"]], "o-", **look)
    axes.set(xlabel="draft mass u of the paths most favoured", ylabel="selected mass")
    axes.set(xlim=(0, 1), ylim=(0, 1.02))
    axes.set_title("Level sets and their limit")


@result(
    title="Skewed drafts and the limit on them",
    source="greedy2026, Lemma 4.5, Theorem 4.6, Eq. 17",
    draw=_draw,
)
def skewed_drafts(draft_length: int = 2, num_drafts: int = 3) -> Findings:
    """Laws of the selected path on the two-token pair, exactly, and their level sets below 1 − (1 − u)^K."""
    checks, pair = Checks(), two_token(draft_length)
    draft, target = pair.draft_path_probs(draft_length), pair.target_path_probs(draft_length)
    best = path_selection_optimum(pair, num_drafts)
    laws = {
        "draft": SkewedDraft.from_leaf_law(pair, draft),
        "ranking": SkewedDraft.from_ranking(pair, num_drafts),
        "optimal": best.skewed_draft,
    }
    table = ResultTable(
        "skewed_drafts",
        "Probabilities of every path: of the target, of the draft, and of being selected. Exact.",
    )
    level_sets = ResultTable(
        "skewed_drafts_level_sets",
        "Sets of the paths with the largest selected / draft, one path more each: how often one "
        "draft lies in it, how often the selected path does, and the limit 1 − (1 − draft_mass)^K. "
        "Exact.",
    )
    summary = ResultTable(
        "skewed_drafts_efficiency",
        "Block efficiency of block verification against each law, tokens per target call, and how "
        "many of its level sets meet the limit.",
    )
    earned, tight = {}, {}
    texts = ["".join(pair.vocab[token] for token in pair.context(draft_length, n)) for n in range(len(draft))]
    for name, law in laws.items():
        earned[name] = value = law.block_efficiency(pair)
        sets = LevelSets.of(law.leaf_law, draft, num_drafts)
        tight[name] = sum(bool(excess == 0) for excess in sets.excesses)
        summary.add(law=name, block_efficiency=value, tight_sets=tight[name], level_sets=len(sets.excesses))
        for text, p, q, r in zip(texts, target, draft, law.leaf_law, strict=True):
            table.add(law=name, path=text, target=p, draft=q, selected=r)
        for mass, chosen, limit in zip(sets.draft_masses, sets.masses, sets.limits, strict=True):
            level_sets.add(law=name, draft_mass=mass, selected_mass=chosen, limit=limit)
        member = is_skewed_draft(pair, law.leaf_law, num_drafts).is_member
        checks.expect("each of the laws can be selected (Lemma 4.5)", member, name)
        checks.expect("no law exceeds it", value <= best.value, f"{name}: {value} > {best.value}")
    on_top = np.array([int(n == 0) for n in range(len(draft))], dtype=object) * draft[0] ** 0
    always = is_skewed_draft(pair, on_top, num_drafts).is_member
    checks.expect("always selecting one path cannot", not always, "the law that always selects one path")
    claim = "a ranking meets the limit on every level set: it is a vertex (Appendix H)"
    checks.expect(claim, tight["ranking"] == len(draft), f"only {tight['ranking']} of {len(draft)} are tight")
    claim = "the optimal law attains the optimum (Theorem 4.6)"
    checks.expect(claim, earned["optimal"] == best.value, f"{earned['optimal']} < {best.value}")
    return Findings(
        "Selecting one of several drafts skews its law, within limits: no set of paths can be selected "
        "more often than it is drafted at all. A ranking meets the limit on all its level sets and "
        "skews too much; the optimum keeps off it. They earn "
        f"{earned['ranking']} and {earned['optimal']} tokens per call, "
        f"the draft itself {earned['draft']}.",
        tables=[table, level_sets, summary],
        checks=checks,
    )


if __name__ == "__main__":
    skewed_drafts.main()
