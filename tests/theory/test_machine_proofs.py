"""The machine proofs rest on no axiom, belong to their sources, and are about what the package computes."""

from pathlib import Path

import pytest

import extracted
from extracted import CASES, OUTPUTS
from scripts import load
from spectheory import ModelPair

rocq = load("scripts", "rocq")


def stored_outputs() -> list[str]:
    """One digest per case, of what the extracted programs answered."""
    return OUTPUTS.read_text(encoding="utf-8").split()


def test_stored_assumptions_belong_to_the_sources() -> None:
    first, _, rest = rocq.ASSUMPTIONS.read_text(encoding="utf-8").partition("\n")
    assert first == f"sources {rocq.digest()}", "run make rocq"
    printed = {name for name in rocq.files() for theorem in rocq.theorems(name)}
    names = [
        f"{rocq.logical(name).removeprefix('Spectheory.')}.{theorem}"
        for name in rocq.files()
        for theorem in rocq.theorems(name)
    ]
    assert printed
    assert rest.count(rocq.CLOSED) == len(names)
    assert [name for name in names if f"\n{name}\n" not in rest] == []
    assert "Axioms:" not in rest


@pytest.mark.parametrize("word", ["Admitted", "admit", "Axiom", "Parameter", "Conjecture"])
def test_no_source_assumes_anything(word: str) -> None:
    for name in rocq.files():
        source = rocq.without_comments((rocq.PROOFS / name).read_text(encoding="utf-8"))
        assert word not in source.replace(".", " ").split(), name


def test_admitted_proofs_are_found() -> None:
    source = "Lemma a : True. (* Admitted. (* nested *) *) Proof. Admitted."
    assert rocq.without_comments(source).replace(".", " ").split().count("Admitted") == 1


def test_sizes_of_the_specification() -> None:
    """Readers compare each file with a printed algorithm, so each fits on a page."""
    for path in sorted((rocq.PROOFS / "spec").glob("*.v")):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= (130 if path.stem == "common" else 60), path.name
        assert f"spec/{path.name}" in rocq.files()


def test_output_law_is_the_law_of_the_stored_extraction() -> None:
    found = [extracted.digest(extracted.expected(*case)) for case in CASES]
    assert len(found) >= 300
    assert found == stored_outputs()


def compare_with_extraction(cases: list[tuple[str, ModelPair, int]], folder: Path) -> None:
    source = (rocq.EXTRACTION / "verifiers.ml").read_text(encoding="utf-8")
    program = extracted.build(source, rocq.EXTRACTION / "bridge.ml", folder)
    found = extracted.answers(program, [extracted.request(*case) for case in cases])
    assert found == [extracted.expected(*case) for case in cases]


@pytest.mark.skipif(not extracted.has_ocaml(), reason="needs ocamlfind with zarith")
def test_output_law_is_the_law_of_the_extracted_programs(tmp_path: Path) -> None:
    """On the cases with fewer than 64 tuples of drafts; the stored digests have all."""
    small = [case for case in CASES if (case[1].vocab_size ** case[1].draft_length) ** case[2] < 64]
    assert {case[0] for case in small} == {"token", "block", "greedy_multipath"}
    compare_with_extraction(small, tmp_path)


@pytest.mark.deep
@pytest.mark.skipif(not extracted.has_ocaml(), reason="needs ocamlfind with zarith")
def test_output_law_is_the_law_of_the_extracted_programs_on_every_case(tmp_path: Path) -> None:
    compare_with_extraction(CASES, tmp_path)


CHANGES = {
    "n.max (n.subtract (n.mul w (p c t)) (q c t)) n.zero": "n.max (n.subtract (p c t) (q c t)) n.zero",
    "n.min (n.mul w (ratio n p q u c t)) n.one": "n.min (ratio n p q u c t) n.one",
    "(if accepted then (c', w') else best)": "(if accepted then (c', w) else best)",
    "then draw n vocabulary (p s)": "then draw n vocabulary (q [])",
}
"""Lines of the extraction, and wrong ones in their place."""


@pytest.mark.skipif(not extracted.has_ocaml(), reason="needs ocamlfind with zarith")
@pytest.mark.parametrize("line", CHANGES)
def test_a_changed_line_changes_the_law(line: str, tmp_path: Path) -> None:
    source = (rocq.EXTRACTION / "verifiers.ml").read_text(encoding="utf-8")
    assert source.count(line) == 1
    changed = extracted.build(source.replace(line, CHANGES[line]), rocq.EXTRACTION / "bridge.ml", tmp_path)
    cases = [case for case in CASES if case[0] == "block"]
    found = extracted.answers(changed, [extracted.request(*case) for case in cases])
    assert found != [extracted.expected(*case) for case in cases]


def test_the_page_names_theorems_that_exist() -> None:
    """Every theorem that has a statement in proofs/ is on the page."""
    page = (rocq.ROOT / "docs" / "machine_proofs.md").read_text(encoding="utf-8")
    known = [theorem for name in rocq.files() for theorem in rocq.theorems(name)]
    assert [theorem for theorem in known if f"`{theorem}`" not in page] == []
