"""The claims are complete, and their evidence exists."""

import ast
import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from scripts import load

script = load("scripts", "claims")
Claim, all_claims, counted_tests = script.Claim, script.all_claims, script.counted_tests
FIGURES = load("scripts", "reproduce").names()
ROCQ = load("scripts", "rocq")
ROOT = Path(__file__).parents[2]


def collected(source: str) -> dict[str, bool]:
    """The tests that pytest collects from a file: name -> whether it is counted; not skipped or deep ones."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            marks = [ast.unparse(mark) for mark in node.decorator_list]
            if not any(re.match(r"pytest\.mark\.(skip|xfail|deep)", mark) for mark in marks):
                found[node.name] = "counted" in marks
    return found


@cache
def collected_from(name: str) -> dict[str, bool]:
    path = ROOT / name
    is_collected = (
        path.is_file() and path.is_relative_to(ROOT / "tests") and re.fullmatch(r"test_\w+\.py", path.name)
    )
    return collected(path.read_text(encoding="utf-8")) if is_collected else {}


def exists(evidence: str) -> bool:
    """Whether a test, a figure, a notebook, a proof or a theorem is there."""
    kind, _, name = evidence.partition(":")
    if kind == "proof":
        return (ROOT / "spectheory" / "exact" / "proof" / "stored" / f"{name}.proof").is_file()
    if kind == "machine":
        return name in {theorem for file in ROCQ.files() for theorem in ROCQ.theorems(file)}
    if kind == "figure":
        return name in FIGURES
    if kind == "notebook":
        return (ROOT / "notebooks" / f"{name}.ipynb").is_file()
    file, _, test = evidence.partition("::")
    return test in collected_from(file)


def complaints(claims: Iterable[Claim], counted: Collection[str]) -> list[str]:
    """What is wrong with claims: evidence that is not there, and verdicts that nothing bears out."""
    found = []
    for claim in claims:
        found += [f"{claim.id}: no {name}" for name in claim.evidence if not exists(name)]
        if claim.verdict not in script.VERDICTS:
            found.append(f"{claim.id}: {claim.verdict!r} is no verdict")
        if not claim.claim.endswith(".") or not claim.place:
            found.append(f"{claim.id}: no sentence, or no place")
        if claim.verdict != "holds" and not claim.note:
            found.append(f"{claim.id}: {claim.verdict} without a note")
        if claim.verdict == "proved" and not re.search(r"theory\.md (§|Statements? )\d", claim.note):
            found.append(f"{claim.id}: proved, but nothing says where")
        if claim.verdict == "misprint" and not re.search(
            r"[Cc]orrect|meant|must|should|needed|but|reverse", claim.note
        ):
            found.append(f"{claim.id}: misprint, but nothing says what is correct")
        if claim.verdict == "not checkable here" and not claim.note.startswith("Needs "):
            found.append(f"{claim.id}: the note does not say what it needs")
        if claim.verdict not in ("not checkable here", "no claim") and not claim.evidence:
            found.append(f"{claim.id}: {claim.verdict} without evidence")
        if claim.verdict in ("holds", "refuted") and not set(claim.evidence) & set(counted):
            found.append(f"{claim.id}: {claim.verdict}, but no counted test")
        if claim.verdict in ("holds", "proved") and not (claim.proved_for or claim.no_proof):
            found.append(f"{claim.id}: {claim.verdict}, without a proof for every pair or a reason")
        if claim.verdict == "holds" and claim.instances < 2:
            found.append(f"{claim.id}: holds on {claim.instances} instances")
    return found


def test_every_statement_has_its_row() -> None:
    """224 statements, each once; the page, which is compared with them, has their names in order."""
    prefixes = {"SP": 56, "BV": 67, "GM": 62, "SG": 39}
    assert len({claim.id for claim in all_claims()}) == len(all_claims()) == 224
    for paper, (prefix, count) in zip(script.PAPERS, prefixes.items(), strict=True):
        claims = script.claims_of(paper)
        assert len(claims) == count
        assert all(claim.id.startswith(f"{prefix}-") for claim in claims)


def test_every_verdict_has_its_evidence() -> None:
    """Tests, figures and notebooks exist; proofs, assumptions and instances are named."""
    assert complaints(all_claims(), counted_tests()) == []


def test_partner_wrong_rows_are_caught() -> None:
    """A dangling reference of every kind, a verdict that is none, and verdicts without what they need."""
    good = next(claim for claim in all_claims() if claim.id == "SP-L1a")
    counted = counted_tests()
    assert complaints([good], counted) == []
    file = "tests/theory/test_claims.py"
    for name in (
        "tests/test_nothing.py::test_x",
        f"{file}::test_nothing",
        f"{file}::complaints",
        "tests/support/counted.py::counted",
        "figure:otm_bernouli",
        "notebook:99_nothing",
        "proof:otm_V9_L1_K1_all",
        "machine:block_losless",
    ):
        assert complaints([replace(good, evidence=(*good.evidence, name))], counted) == [
            f"{good.id}: no {name}"
        ]
    for verdict in ("holds", "proved"):
        true = next(claim for claim in all_claims() if claim.no_proof and claim.verdict == verdict)
        assert complaints([true], counted) == []
        assert complaints([replace(true, no_proof="")], counted) != []
    for changes in (
        {"verdict": "unknown"},
        {"note": "It is clear."},
        {"note": ""},
        {"verdict": "misprint"},
        {"claim": "no sentence"},
        {"verdict": "not checkable here"},
        {"evidence": ()},
        {"verdict": "no claim", "note": ""},
        {"verdict": "holds", "instances": 1},
        {
            "verdict": "refuted",
            "evidence": ("tests/exact/test_law.py::test_most_violated_antichain_is_the_worst_of_all",),
        },
    ):
        assert complaints([replace(good, **changes)], counted), changes  # type: ignore[arg-type]
    marked = "@pytest.mark.skip\ndef test_a(): ...\n@pytest.mark.deep\ndef test_c(): ...\n"
    assert collected(f"{marked}@counted\ndef test_b(): ...\n") == {"test_b": True}


def test_counted_tests_and_their_numbers_belong_together() -> None:
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    counted = {
        f"{path.relative_to(ROOT)}::{name}"
        for path in files
        for name, is_counted in collected(path.read_text(encoding="utf-8")).items()
        if is_counted
    }
    assert counted == set(counted_tests())
    assert counted <= {name for claim in all_claims() for name in claim.evidence}
    assert min(counted_tests().values()) >= 1


def test_partner_a_counted_test_that_runs_another_number_fails() -> None:
    """The decorator compares what ran with the number that the claims name."""
    from counted import counted

    def test_that_is_not_listed() -> Iterable[None]:
        yield

    with pytest.raises(AssertionError, match="ran 1 instances"):
        counted(test_that_is_not_listed)()  # type: ignore[arg-type]
