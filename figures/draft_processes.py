from collections.abc import Sequence

from matplotlib.figure import Figure

from figures.common.bundled import bundled_pair, counted, interval, whole
from figures.results import Checks, Findings, ResultTable, result
from figures.style import Look, estimates, legend_below, note, panels, verifier_band
from spectheory.pairs.drafts import ConfidenceTree, DraftProcess, Iid, TopTree, WithoutReplacement
from spectheory.simulation import simulate
from spectheory.verification.curves import BLACK, GREY, VERIFIER_STYLES

MULTI, NAIVE = (VERIFIER_STYLES[name].label for name in ("multi_round", "naive_sampling"))
SAMPLED_PROCESSES = ("iid", "without_replacement")
SAMPLED = ("scored_multipath", "greedy_multipath", "multi_round")


def _draw(findings: Findings) -> Figure:
    table = findings.table("draft_processes")
    kinds = list(dict.fromkeys(zip(table["drafts"], table["verifier"], strict=True)))
    with panels(1, 2, width=4.3, height=3.8, sharey=True) as (figure, all_axes):
        for drafts, name in kinds:
            rows, style = table.where(drafts=drafts, verifier=name), VERIFIER_STYLES[name]
            process, _, shape = drafts.partition(":")
            first = shape.partition(",")[0]
            fewer = ", half as many tokens" if rows["nodes"][0] < max(table["nodes"]) else ""
            label, colour, line = {
                "iid": (f"{shape} independent paths: {style.label}", style.colour, "-"),
                "without_replacement": (f"{first} paths, first tokens distinct: {MULTI}", style.colour, "-"),
                "confidence_tree": (
                    f"{shape} likeliest nodes{fewer}: {NAIVE}",
                    BLACK,
                    "--" if fewer else ":",
                ),
                "top_tree": (f"{first} likeliest first tokens, then the likeliest: {NAIVE}", GREY, "--"),
            }[process]
            look: Look = {"color": colour, "markerfacecolor": colour, "linestyle": line, "label": label}
            axes = all_axes[process not in SAMPLED_PROCESSES]
            verifier_band(axes, name, rows["temperature"], *estimates(rows), **look)
        for axes, title in zip(all_axes, ("Sampled drafts", "Drafts chosen by the draft model"), strict=True):
            axes.set(xlabel="temperature", title=title, xticks=sorted(set(table["temperature"])))
        all_axes[0].set_ylabel("block efficiency\n[tokens per target call]")
        level = 100 * findings.settings["confidence"]
        note(all_axes[0], f"bands: {level:g} % intervals of the means", (0.02, 0.03), ha="left")
        legend_below(figure, 2)
    return figure


@result(
    title="As many drafted tokens, sampled or chosen",
    source="this package; the processes of docs/draft_processes.md",
    draw=_draw,
    small={"temperatures": (0.5, 1.0), "num_drafts": 2, "draft_length": 2, "num_prompts": 4, "samples": 2},
)
def draft_processes(
    temperatures: Sequence[float] = (0.2, 0.4, 0.6, 0.8, 1.0),
    num_drafts: int = 4,
    draft_length: int = 4,
    num_prompts: int = 32,
    samples: int = 3,
    seed: int = 29,
    confidence: float = 0.95,
) -> Findings:
    """Monte Carlo estimates on the bundled prompts: the target scores K L drafted tokens in every process.

    Args:
        temperatures: of both models.
        num_drafts: K sampled paths; the deterministic trees have as many nodes as these.
    """
    from spectheory.models import SamplingOptions, bundled_prompts

    checks, prompts = Checks(), bundled_prompts()[:num_prompts]
    nodes, widths = num_drafts * draft_length, (num_drafts, *[1] * (draft_length - 1))
    asked: list[tuple[DraftProcess, Sequence[str]]] = [
        (Iid(num_drafts), SAMPLED),
        (WithoutReplacement(widths), ("multi_round_without_replacement",)),
        (ConfidenceTree(nodes), ("naive_sampling",)),
        (ConfidenceTree(nodes // 2), ("naive_sampling",)),
        (TopTree(widths), ("naive_sampling",)),
    ]
    table = ResultTable(
        "draft_processes",
        f"Block efficiency in tokens per target call, {len(prompts)} held-out prompts, "
        f"{100 * confidence:g}% intervals over drafts. nodes: drafted tokens that the target scores.",
    )
    for value in temperatures:
        earned = {}
        for process, names in asked:
            simulation = whole(
                simulate(
                    bundled_pair(), prompts, names, drafts=process, draft_length=draft_length,
                    samples=samples, seed=seed, confidence=confidence, batch_size=16,
                    options=SamplingOptions(temperature=value),
                )
            )  # fmt: skip
            drafts = process.text
            for estimate in simulation.estimates:
                earned[drafts, estimate.verifier] = estimate.block_efficiency
                table.add(
                    temperature=value, drafts=drafts, verifier=estimate.verifier,
                    nodes=nodes // 2 if drafts == ConfidenceTree(nodes // 2).text else nodes,
                    **interval(estimate), **counted(estimate),
                )  # fmt: skip
                (low, high), (least, most) = estimate.interval, estimate.counted_interval
                claim = "the two ways of counting agree: their intervals meet"
                checks.expect(claim, low <= most and least <= high, f"{estimate.verifier} at {value}")
        tree, half = (earned[ConfidenceTree(n).text, "naive_sampling"] for n in (nodes, nodes // 2))
        claim = "a confidence tree holds the smaller one, and earns no less"
        checks.expect(claim, tree >= half - 1e-6, f"{tree}, {half} at {value}")
    return Findings(
        f"{num_drafts} paths of {draft_length} tokens, sampled, beside trees of the draft model's "
        f"likeliest tokens. The target scores {nodes} drafted tokens in every process but the tree of "
        f"{nodes // 2} nodes. Of deterministic drafts no verifier earns more than naive sampling "
        "(theory.md Statement 5.27). Broken lines are deterministic, with naive sampling.",
        tables=[table],
        checks=checks,
    )


if __name__ == "__main__":
    draft_processes.main()
