"""The machine proofs rest on no axiom, belong to their sources, and are about what the package computes."""

import re
from collections import Counter
from pathlib import Path

import pytest

import extracted
from extracted import OUTPUTS, Case
from program_support import PAIRS
from scripts import load

rocq = load("scripts", "rocq")


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


def compare_with_stored(compared: list[tuple[str, Case]]) -> None:
    """Compare the laws with the stored digests of the extracted programs' answers."""
    for line, one in compared:
        assert line == f"{one.program} {extracted.digest(one.expected())}"


def stored() -> list[tuple[str, Case]]:
    """Every stored line with its case; laws in floats have digests of their own."""
    lines, found = OUTPUTS.read_text(encoding="utf-8").splitlines(), list(extracted.cases())
    counts = Counter(one.program for one in found)
    assert set(counts) == set(extracted.PROGRAMS)
    assert min(counts.values()) >= 100
    return [(line, one) for line, one in zip(lines, found, strict=True) if not one.tolerance]


def test_output_law_is_the_law_of_the_stored_extraction() -> None:
    """On every tenth case; a deep test has all."""
    compare_with_stored(stored()[::10])


@pytest.mark.deep
def test_output_law_is_the_law_of_the_stored_extraction_on_every_case() -> None:
    compare_with_stored(stored())


def compare_with_extraction(compared: list[Case], folder: Path) -> None:
    source = (rocq.EXTRACTION / "verifiers.ml").read_text(encoding="utf-8")
    program = extracted.build(source, rocq.EXTRACTION / "bridge.ml", folder)
    found = extracted.answers(program, [one.request() for one in compared])
    assert [one.program for one, answer in zip(compared, found, strict=True) if not one.agrees(answer)] == []


needs_ocaml = pytest.mark.skipif(not extracted.has_ocaml(), reason="needs ocamlfind with zarith")


@needs_ocaml
def test_output_law_is_the_law_of_the_extracted_programs(tmp_path: Path) -> None:
    """On one pair for each program."""
    compare_with_extraction([extracted.case(program, PAIRS[2]) for program in extracted.PROGRAMS], tmp_path)


@pytest.mark.deep
@needs_ocaml
def test_output_law_is_the_law_of_the_extracted_programs_on_every_case(tmp_path: Path) -> None:
    compare_with_extraction(list(extracted.cases()), tmp_path)


CHANGES = {
    "n.min (ratio n p q u c t) n.one)) (fun accepted ->": (
        "token",
        "ratio n p q u c t)) (fun accepted ->",
    ),
    "n.max (n.subtract (n.mul w (p c t)) (q c t)) n.zero": (
        "block",
        "n.max (n.subtract (p c t) (q c t)) n.zero",
    ),
    "n.min (n.mul w (ratio n p q u c t)) n.one": ("block", "n.min (ratio n p q u c t) n.one"),
    "      block_loop n vocabulary p q u c' rest' w'\n": (
        "block",
        "      block_loop n vocabulary p q u c' rest' w\n",
    ),
    "else n.min (n.div gain0 loss) n.one": ("greedy_block", "else n.min (n.div gain0 n.one) n.one"),
    "then draw n vocabulary (p s)": ("token", "then draw n vocabulary (q [])"),
    "n.subtract (power n (n.add (path_prob n q [] a) below) k) (power n below k)": (
        "greedy_multipath",
        "n.subtract (power n (n.add (path_prob n q [] a) below) k) n.zero",
    ),
    "(n.mul (n.subtract n.one lambda) (skewed n vocabulary q lower k a))": (
        "mixed_multipath",
        "(n.mul n.one (skewed n vocabulary q lower k a))",
    ),
    "selection n t vocabulary p (fun c _ -> draw n vocabulary (p c)) l [] paths": (
        "naive_sampling",
        "selection n t vocabulary p (fun c _ -> draw n vocabulary (p [])) l [] paths",
    ),
    "else recursive_tests n vocabulary u q others": (
        "multi_round",
        "else recursive_tests n vocabulary u r others",
    ),
    "(behind_token t y drafts)": ("multi_round_tree", "(children (Stdlib.List.hd drafts))"),
    "(fun _ -> r) (fun _ -> row xs) u [] x": (
        "multi_round_without_replacement",
        "(fun _ -> r) (fun _ -> row []) u [] x",
    ),
    "else n.div (plan x y) (drafts_prob n q x)": ("otm", "else n.div (plan x y) (drafts_prob n q [])"),
    "else n.div (p x) (n.mul rho (q x))": ("kseq", "else n.div (p x) (q x)"),
    "then gbv_prefixes n t vocabulary p q u l k from c' rest' c' h": (
        "spectr_gbv",
        "then gbv_prefixes n t vocabulary p q u l k from c' rest' t0 h",
    ),
    "(n.mul (n.min (q x) (n.div (p x) rho))": ("spectr", "(n.mul (n.min (p x) (n.div (p x) rho))"),
}
"""Lines of the extraction: a program that runs them, and wrong ones in their place."""


@needs_ocaml
@pytest.mark.parametrize(
    "line", [next(iter(CHANGES)), *(pytest.param(n, marks=pytest.mark.deep) for n in CHANGES)]
)
def test_a_changed_line_changes_the_law(line: str, tmp_path: Path) -> None:
    program, wrong = CHANGES[line]
    source = (rocq.EXTRACTION / "verifiers.ml").read_text(encoding="utf-8")
    assert source.count(line) == 1
    changed = extracted.build(source.replace(line, wrong), rocq.EXTRACTION / "bridge.ml", tmp_path)
    tried = [one for one in extracted.cases() if one.program == program and one.size <= MOST_TUPLES]
    found = extracted.answers(changed, [one.request() for one in tried])
    assert not all(one.agrees(answer) for one, answer in zip(tried, found, strict=True))


MOST_TUPLES = 27
"""Tuples of drafts of a case that is small enough to be run once per changed line."""


def test_the_page_has_the_statements_that_coq_printed() -> None:
    page = rocq.PAGE.read_text(encoding="utf-8")
    _, _, printed = rocq.ASSUMPTIONS.read_text(encoding="utf-8").partition("\n\n")
    assert page.count("```text\n") >= 10
    assert rocq.with_statements(page, printed) == page
    assert rocq.with_statements(page.replace("forall", "exists"), printed) == page


def test_the_page_names_theorems_that_exist() -> None:
    """Every theorem that has a statement in proofs/ is on the page."""
    page = rocq.PAGE.read_text(encoding="utf-8")
    known = [theorem for name in rocq.files() for theorem in rocq.theorems(name)]
    assert [theorem for theorem in known if f"`{theorem}`" not in page] == []


def test_every_file_of_theorems_has_partners() -> None:
    """The table of partners names, for each file, a theorem that has a number and a refuted algorithm."""
    page = rocq.PAGE.read_text(encoding="utf-8").partition("## Partners\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    having = {theorem for row in rows for theorem in re.findall(r"`([\w']+)`", row[0])}
    partners = {theorem for row in rows for theorem in re.findall(r"`([\w']+)`", row[2])}
    found = {name: set(rocq.theorems(name)) for name in rocq.files()}
    assert all(theorems & (having | partners) for theorems in found.values() if theorems)
    assert having | partners <= set().union(*found.values())
    assert min(len(re.findall("`", row[2])) for row in rows) > 0


def test_sizes_of_the_specification() -> None:
    """Readers compare each file with a printed algorithm, so each fits on a page."""
    for path in sorted((rocq.PROOFS / "spec").glob("*.v")):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= (130 if path.stem == "common" else 60), path.name
        assert f"spec/{path.name}" in rocq.files()


def test_every_program_has_a_changed_line() -> None:
    assert {program for program, _ in CHANGES.values()} == set(extracted.PROGRAMS)
