"""Reading the statements of the papers, and choosing among them."""

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from spectheory.foundation.validation import unknown_name

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

_SHAPE = r"^proof:.*_V(\d+)_L(\d+)_K([\d-]+)_(\w+)$"


@dataclass(frozen=True)
class Claim:
    """One statement of a paper.

    Attributes:
        id: its name in the inventory, such as ``SP-L1a``.
        place: where it stands: theorem, equation, figure, section.
        claim: the statement in our own words and in the letters of theory.md §1.
        note: the argument, the assumption, the correct form, the refuting instance, or what would be needed.
        evidence: tests (``tests/file.py::test``), exhibits (``exhibit:name``), notebooks
            (``notebook:name``) and proofs (``proof:name``, a file of ``exact/proof/stored``).
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
        proofs = (re.search(_SHAPE, one) for one in self.evidence)
        found = dict.fromkeys(proof.groups() for proof in proofs if proof is not None)
        return [f"V = {v}, L = {n}, K = {k}{', positive rows' * (rows != 'all')}" for v, n, k, rows in found]

    def to_document(self) -> dict[str, Any]:
        """The JSON object of the statement."""
        return asdict(self) | {"evidence": list(self.evidence), "proved_for": self.proved_for}


@cache
def counted_tests() -> Mapping[str, int]:
    """Test -> the number of instances it runs; the tests count them and compare."""
    return _read("instances")


@cache
def all_claims() -> tuple[Claim, ...]:
    """Every statement, paper by paper in the order of the paper.

    Example:
        >>> first = all_claims()[0]
        >>> print(first.id, first.paper, first.verdict)
        SP-H1 spectr2023 conditional
    """
    counts = counted_tests()
    return tuple(
        Claim(
            name,
            paper,
            **(entry | {"evidence": tuple(entry["evidence"])}),
            instances=0
            if entry["verdict"] == "refuted"
            else sum(counts.get(test, 0) for test in entry["evidence"]),
        )
        for paper in PAPERS
        for name, entry in _read(paper).items()
    )


def select_claims(paper: str | None = None, verdict: str | None = None) -> list[Claim]:
    """The statements of one paper, with one verdict, or both; all of them by default.

    Raises:
        UnknownNameError: there is no such paper or verdict.

    Example:
        >>> [claim.id for claim in select_claims("spectr2023", "refuted")]
        ['SP-T2', 'SP-T2h', 'SP-8b']
    """
    if paper is not None and paper not in PAPERS:
        raise unknown_name("paper", paper, PAPERS)
    if verdict is not None and verdict not in VERDICTS:
        raise unknown_name("verdict", verdict, VERDICTS)
    return [
        claim for claim in all_claims() if paper in (None, claim.paper) if verdict in (None, claim.verdict)
    ]


def count_verdicts(claims: Sequence[Claim]) -> dict[str, int]:
    """Verdict -> how many of the statements have it, in the order of ``VERDICTS``."""
    counts = Counter(claim.verdict for claim in claims)
    return {verdict: counts[verdict] for verdict in VERDICTS}


def counts_text(claims: Sequence[Claim]) -> str:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in count_verdicts(claims).items() if count)
    total = f"{len(claims)} statement{'' if len(claims) == 1 else 's'}"
    return f"{total}: {counts}" if counts else total


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))
