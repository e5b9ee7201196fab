"""The 224 statements of the four papers, and their page.

``docs/claims`` has one file per paper, and ``instances.toml`` with the number of instances that each counted
test runs.  ``python scripts/claims.py`` writes ``docs/claims/index.md`` from them.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "docs" / "claims"
PAGE = FOLDER / "index.md"
PAPERS = ("spectr2023", "block2024", "greedy2026", "spectrgbv2026")
"""The keys of the papers, in docs/references.bib."""

VERDICTS: Mapping[str, str] = {
    "proved": "true, by the argument that the note names",
    "holds": "true on every instance that was tried, without a proof here",
    "conditional": "true under the assumption that the note adds",
    "misprint": "false as printed; the note has the correct form",
    "refuted": "false; the note has an instance, or the printed numbers that contradict it",
    "not checkable here": "the note says what a check needs, and where the claim is false in general",
    "no claim": "a drawing or a survey, as the note says",
}
"""Every verdict, and what it means."""

SHAPE = re.compile(r"^proof:.*_V(\d+)_L(\d+)_K([\d-]+)_(\w+)$")

INTRODUCTION = """\
# Claims of the papers

This page lists the claims of the four papers, statement by statement, in our words and in the notation of
[theory.md §1](../theory.md#1-notation-output-laws-validity). Every verdict has evidence: a test, a figure, a
notebook, a proof or a [machine proof](../machine_proofs.md) of this repository. `python scripts/claims.py`
writes the page from the files beside it.

A claim about an experiment is about the models, data and hardware of that experiment. It is *not checkable
here*, unless the printed numbers of the paper contradict it: then it is *refuted*. If it is not true in
general, the note has an instance. A theorem, or a claim about an algorithm without an experiment, is
*refuted* by an instance, and *conditional* where the note has a condition under which it is true.

N is the number of instances that the counted tests of a row run, for and against the claim. Each of these
tests compares N with the number of instances that it ran. Two kinds of rows have no N: refuted claims,
which the instance of the note decides, and claims whose evidence is an argument, a single value or a
figure.

"Every pair of" names the shapes for which the claim, or the part of it that is about one call, is proved by a
[stored proof](../proofs.md). A claim that holds or is proved without one says why."""


@dataclass(frozen=True)
class Claim:
    """One statement of a paper.

    Attributes:
        id: its name in the inventory, such as ``SP-L1a``.
        place: where it stands: theorem, equation, figure, section.
        claim: the statement in our own words and in the letters of theory.md §1.
        note: the argument, the assumption, the correct form, the refuting instance, or what would be needed.
        evidence: tests (``tests/file.py::test``), figures (``figure:name``), notebooks
            (``notebook:name``), proofs (``proof:name``, a file of ``exact/proof/stored``) and theorems that a
            machine has checked (``machine:name``, in ``proofs/``).
        instances: how many instances the counted tests among the evidence run; 0 if none is counted, and
            where the verdict is "refuted": there the note's one instance counts.
        no_proof: why a statement that holds or is proved has no proof for every pair of a shape.
    """

    id: str
    paper: str
    place: str
    claim: str
    verdict: str
    note: str
    evidence: tuple[str, ...]
    instances: int
    no_proof: str = ""

    @property
    def proved_for(self) -> list[str]:
        """The shapes for every pair of which a stored proof is among the evidence."""
        proofs = (SHAPE.search(one) for one in self.evidence)
        found = dict.fromkeys(proof.groups() for proof in proofs if proof is not None)
        return [f"V = {v}, L = {n}, K = {k}{', positive rows' * (rows != 'all')}" for v, n, k, rows in found]


@cache
def counted_tests() -> Mapping[str, int]:
    """Test -> the number of instances it runs; the tests count them and compare."""
    return _read("instances")


@cache
def all_claims() -> tuple[Claim, ...]:
    """Every statement, paper by paper in the order of the paper."""
    return tuple(
        Claim(
            name,
            paper,
            **(entry | {"evidence": tuple(entry["evidence"])}),
            instances=0
            if entry["verdict"] == "refuted"
            else sum(counted_tests().get(test, 0) for test in entry["evidence"]),
        )
        for paper in PAPERS
        for name, entry in _read(paper).items()
    )


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def claims_page() -> str:
    """The text of docs/claims/index.md."""
    verdicts = table(["verdict", "meaning"], list(map(list, VERDICTS.items())))
    counts = table(
        ["paper", *VERDICTS, "all"],
        [*([paper, *_counts(claims_of(paper))] for paper in PAPERS), ["all", *_counts(all_claims())]],
    )
    return "\n\n".join([INTRODUCTION, verdicts, counts, *map(_section, PAPERS)]) + "\n"


def claims_of(paper: str) -> list[Claim]:
    return [claim for claim in all_claims() if claim.paper == paper]


def _counts(claims: Sequence[Claim]) -> list[str]:
    found = Counter(claim.verdict for claim in claims)
    return [str(count) for count in (*(found[verdict] for verdict in VERDICTS), len(claims))]


def _section(paper: str) -> str:
    claims = claims_of(paper)
    found = Counter(claim.verdict for claim in claims)
    counts = ", ".join(f"{found[verdict]} {verdict}" for verdict in VERDICTS if found[verdict])
    header = ["id", "place", "claim", "verdict", "note", "N", "every pair of", "evidence"]
    rows = [
        [
            *(claim.id, claim.place, claim.claim, f"**{claim.verdict}**", claim.note),
            *(str(claim.instances or ""), "<br>".join(claim.proved_for) or claim.no_proof),
            "<br>".join(map(_link, claim.evidence)),
        ]
        for claim in claims
    ]
    return f"## {paper}\n\n{len(claims)} statements: {counts}.\n\n{table(header, rows)}"


def _link(evidence: str) -> str:
    kind, _, name = evidence.partition(":")
    if kind == "figure":
        return f"[{name}](../../figures/{name}.json)"
    if kind == "notebook":
        return f"[{name}](../../notebooks/{name}.ipynb)"
    if kind == "proof":
        return f"[proof {name}](../proofs.md#proofs-that-are-stored)"
    if kind == "machine":
        return f"[machine proof {name}](../machine_proofs.md)"
    file, _, test = evidence.partition("::")
    return f"[{file}::{test}](../../{file}#{test})"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; bars inside cells are escaped."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (header, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])


if __name__ == "__main__":
    PAGE.write_text(claims_page(), encoding="utf-8")
