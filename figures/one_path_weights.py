from collections.abc import Sequence
from itertools import product
from typing import Any

from matplotlib.figure import Figure

from figures.results import Checks, Findings, ResultTable, as_float, result
from figures.style import panels_by
from spectheory.exact.law import output_law
from spectheory.pairs.instances import two_token
from spectheory.verification.curves import verifier_curve

SHOWN = ("ABAB", "BAAB")
"""Drafted paths of the picture: a loss that is made good, and one that is not."""
NAMES = ("greedy_block", "block", "token")


def _draw(findings: Findings) -> Figure:
    table = findings.table("one_path_weights")
    label = "P(prefix is accepted)"
    with panels_by(table, "path", label, width=2.9, height=3.0, legend_columns=3) as (figure, parts):
        for axes, path, rows in parts:
            for name in NAMES:
                values = [as_float(value) for value in rows[name]]
                verifier_curve(axes, name, rows["length"], values)
            axes.set_xticks(rows["length"], ["", *path])
            axes.set(xlabel="drafted tokens", ylim=(0, 1.05))
            axes.set_title(f"draft {' '.join(path)}", fontsize=9)
    return figure


@result(
    title="One drafted path: token and block verification side by side",
    source="block2024, Algorithms 1, 2 and 4; theory.md Statement 4.3",
    draw=_draw,
)
def one_path_weights(draft_length: int = 4) -> Findings:
    """How likely each algorithm accepts each prefix of a draft.

    Checks: Statement 4.3 on every drafted path of the two-token pair, and the definition of the weight
    against the node masses of the output law.
    """
    checks = Checks()
    pair = two_token(draft_length)
    table = ResultTable(
        "one_path_weights", "P(τ ≥ i | draft) for each prefix of two drafts of the two-token pair; exact."
    )
    laws = {name: output_law(name, pair).accepted_masses for name in NAMES}
    for path in product(range(2), repeat=draft_length):
        text = "".join(pair.vocab[token] for token in path)
        for length in range(draft_length + 1):
            target, draft = pair.target[0][0], pair.draft[0][0]
            values = accepted([target[token] / draft[token] for token in path[:length]])
            if text in SHOWN:
                table.add(path=text, length=length, **values)
            drafted = pair.draft_path_probs(length)[number := _number(path[:length])]
            for name, value in values.items():
                claim = f"{name} accepts the prefix with this probability"
                found = laws[name][length][number] / drafted
                checks.expect(claim, found == value, f"{text[:length]}: {found} and {value}")
            claim = "token ≤ block ≤ greedy block (Statement 4.3)"
            rises = values["token"] <= values["block"] <= values["greedy_block"]
            checks.expect(claim, rises, f"{text[:length]}: {values}")
    return Findings(
        "Token verification multiplies the ratios p/q, each capped at 1, so a loss is never made good. Block "
        "verification caps the running product: a later ratio above 1 wins back what an earlier one lost. "
        "Greedy block, which is not lossless in one call, caps only the whole product.",
        tables=[table],
        checks=checks,
    )


def accepted(ratios: Sequence[Any]) -> dict[str, Any]:
    """How likely each algorithm accepts a prefix whose tokens have these ratios p/q.

    Example:
        >>> accepted([0.5, 2.0])
        {'greedy_block': 1, 'block': 1, 'token': 0.5}
    """
    weight, capped, ratio = 1, 1, 1
    for step in ratios:
        weight, capped, ratio = min(1, weight * step), capped * min(1, step), ratio * step
    return {"greedy_block": min(1, ratio), "block": weight, "token": capped}


def _number(path: tuple[int, ...]) -> int:
    """The place of a path of two tokens among those of its length."""
    return int("".join(map(str, path)) or "0", 2)


if __name__ == "__main__":
    one_path_weights.main()
