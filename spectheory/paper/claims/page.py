"""The statements as Markdown: docs/claims.md, and the counts in the report of ``reproduce``."""

from collections.abc import Sequence

from spectheory.paper.claims.statements import (
    PAPERS,
    VERDICTS,
    Claim,
    all_claims,
    count_verdicts,
    counts_text,
    select_claims,
)

TITLE = "# Claims of the papers"
INTRODUCTION = """\
This page lists the claims of the four papers, statement by statement, in our words and in the notation of
[theory.md §1](theory.md#1-notation-output-laws-validity). Every verdict has evidence: a test or an exhibit
of this repository. `spectheory claims` prints the same table. `spectheory.paper.claims_page()` writes this
page.

A claim about an experiment is about the models, data and hardware of that experiment. It is *not checkable
here*, unless the printed numbers of the paper contradict it: then it is *refuted*. If it is not true in
general, the note has an instance. A theorem, or a claim about an algorithm without an experiment, is
*refuted* by an instance, and *conditional* where the note has a condition under which it is true.

N is the number of instances that the counted tests of a row run, for and against the claim. Each of these
tests compares N with the number of instances that it ran. Two kinds of rows have no N: refuted claims,
which the instance of the note decides, and claims whose evidence is an argument, a single value or an
exhibit.

"Every pair of" names the shapes for which the claim, or the part of it that is about one call, is proved by a
[stored proof](proofs.md). A claim that holds or is proved without one says why."""


def claims_page() -> str:
    """The text of docs/claims.md.

    Example:
        >>> claims_page().splitlines()[0]
        '# Claims of the papers'
    """
    parts = [TITLE, INTRODUCTION, _verdicts(), claims_summary(), *(_section(paper) for paper in PAPERS)]
    return "\n\n".join(parts) + "\n"


def claims_summary() -> str:
    header, *rows = claims_counts()
    return markdown_table(header, rows)


def claims_counts() -> list[list[str]]:
    """How many statements of every paper have every verdict; the first row is the header."""
    return [
        ["paper", *VERDICTS, "all"],
        *([paper, *_counts(select_claims(paper))] for paper in PAPERS),
        ["all", *_counts(list(all_claims()))],
    ]


def _verdicts() -> str:
    return markdown_table(["verdict", "meaning"], list(map(list, VERDICTS.items())))


def _counts(claims: list[Claim]) -> list[str]:
    return [str(count) for count in (*count_verdicts(claims).values(), len(claims))]


def _section(paper: str) -> str:
    claims = select_claims(paper)
    header = ["id", "place", "claim", "verdict", "note", "N", "every pair of", "evidence"]
    rows = [
        [
            *(claim.id, claim.place, claim.claim, f"**{claim.verdict}**", claim.note),
            *(str(claim.instances or ""), "<br>".join(claim.proved_for) or claim.no_proof),
            "<br>".join(map(_link, claim.evidence)),
        ]
        for claim in claims
    ]
    return f"## {paper}\n\n{counts_text(claims)}.\n\n{markdown_table(header, rows)}"


def _link(evidence: str) -> str:
    kind, _, name = evidence.partition(":")
    if kind == "exhibit":
        return f"[{name}](../figures/report.md#{name})"
    if kind == "notebook":
        return f"[{name}](../notebooks/{name}.ipynb)"
    if kind == "proof":
        return f"[proof {name}](proofs.md#proofs-that-are-stored)"
    file, _, test = evidence.partition("::")
    return f"[{file}::{test}](../{file}#{test})"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; bars inside cells are escaped.

    Example:
        >>> print(markdown_table(["set", "size"], [["{a | b}", "2"]]))
        | set | size |
        |---|---|
        | {a \\| b} | 2 |
    """
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (header, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])
