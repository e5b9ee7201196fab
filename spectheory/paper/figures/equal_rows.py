from itertools import pairwise

from matplotlib.figure import Figure

from spectheory.paper import Checks, Findings, ResultTable, exhibit
from spectheory.paper.equal_rows import INDEPENDENT, StudySettings
from spectheory.paper.figures.lossless import labels, lossless_verifiers
from spectheory.paper.measured import measurement
from spectheory.paper.study_results import EVERYWHERE, best_verifiers, draw, most_on_independent

SOURCE = "study"
COLUMNS = (
    "domain", "temperature", "draft", "drafts", "verifier", "nodes", "block_efficiency", "low", "high",
    "gain", "gain_low", "gain_high", "lead", "lead_low", "lead_high", "contexts", "ceiling", "missed",
    "missed_low", "missed_high",
)  # fmt: skip


def _plot(findings: Findings) -> Figure:
    return draw(findings.tables[0].select())


@exhibit(
    "language models",
    title="Drafts and verifiers at equal numbers of target rows, on SmolLM2",
    source="this package (no counterpart in the papers)",
    plot=_plot,
)
def equal_rows() -> Findings:
    """The study on SmolLM2, measured before and read from a file."""
    checks, found = Checks(), measurement(SOURCE)
    table = ResultTable("equal_rows", f"{found.machine}. Tokens per call of the target, with 95 % intervals.")
    curves: dict[tuple[str, str], list[float]] = {}
    for row in found.select(domain=EVERYWHERE):
        table.add(**{name: row[name] for name in COLUMNS})
        inside = row["low"] <= row["block_efficiency"] <= row["high"]
        checks.expect("every mean lies in its interval", inside, str(row))
        if row["drafts"] == "likeliest":
            curve = str(row["temperature"]), str(row["draft"])
            curves.setdefault(curve, []).append(row["block_efficiency"])
        elif row["missed"] is not None:
            below = row["missed_high"] > 0
            checks.expect("no verifier is above the ceiling beyond its error", below, str(row))
    independent = [row for row in table.select(drafts=INDEPENDENT) if row["missed"] is not None]
    best = best_verifiers(independent)
    drawn = {
        (row["temperature"], row["draft"], row["nodes"]): most_on_independent(row)
        for row in independent
        if row["verifier"] == best[row["draft"], INDEPENDENT]
    }
    for row in independent:
        most = drawn[row["temperature"], row["draft"], row["nodes"]]
        claim = "no verifier of independent paths is above the ceiling that is drawn"
        checks.expect(claim, row["block_efficiency"] <= most, f"{row}: above {most}")
    judged = {row["verifier"] for row in independent}
    missing = [name for name in lossless_verifiers(StudySettings().draft_length) if name not in judged]
    for (heat, draft), values in curves.items():
        rises = all(one <= two for one, two in pairwise(values))
        checks.expect("more likeliest nodes earn no less", rises, f"{draft} at {heat}: {values}")
    return Findings(
        "At the same tokens of texts that the target writes, behind every prompt one per temperature, every "
        "draft model drafts by every process; the interval of a difference is that of `lead` in the table. "
        "Of each draft model and process the verifier that earns the most is drawn; the process that earns "
        "the most with all tokens is thick, and its 95 % interval is shaded. Delayed and hub trees, which "
        "earn less, are in the table alone. No lossless verifier exceeds the ceiling of independent paths. "
        "It is estimated, so that a verifier may stand above `ceiling`. The broken line is the upper end: "
        "what the verifier that is drawn earns, and the upper end of what it misses (`missed_high`). Of "
        f"independent paths {labels(missing)} are not judged. "
        "With the likeliest nodes nobody exceeds naive sampling. Measured by "
        f"`{found.command}`.",
        tables=[table],
        checks=checks,
    )
