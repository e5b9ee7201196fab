"""Options that several commands share: drafts, which are numbers of paths or a process."""

from pathlib import Path

import pytest

from cli_support import run_error, run_json
from spectheory.command_line.options import drafts_of, numbers_of
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import ConfidenceTree, Iid, PrefixTree, ShapedTree, TopTree, WithoutReplacement


@pytest.mark.parametrize(
    ("tree", "optimal"), [("prefix_tree:2,1", "212/81"), ("without_replacement:2,1", None)]
)
def test_trees_of_drafts(
    capsys: pytest.CaptureFixture[str], pair_file: str, tree: str, optimal: str | None
) -> None:
    """A prefix tree of widths (2, 1) is two i.i.d. paths; two distinct first tokens are another law."""
    document = run_json(capsys, "certify", pair_file, "--verifier", "block", "--drafts", tree)
    best = run_json(capsys, "optimum", pair_file, "--drafts", tree)["value"]
    assert (document["num_drafts"], document["block_efficiency"]) == (2, "20/9")
    assert document["optimum"] == best
    assert (best == "212/81") is (optimal == "212/81")


def test_drafts_are_read() -> None:
    """Every process reads back what it prints as its text."""
    assert drafts_of("2") == 2
    assert drafts_of("1-3,8") == [1, 2, 3, 8]
    for process in (
        Iid(3), PrefixTree((2, 2)), WithoutReplacement((3, 1)), TopTree((3, 1)), ShapedTree((3, 2, 1)),
        ConfidenceTree(16),
    ):  # fmt: skip
        assert drafts_of(process.text) == process
    for text in ("2.5", "", "4-1", "1-1000"):
        with pytest.raises(InvalidInputError, match="is not a whole number"):
            numbers_of(text)


def test_a_process_of_a_user(
    capsys: pytest.CaptureFixture[str], pair_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class or an object, module:name; the partner is no process."""
    text = "from spectheory.pairs.drafts import PrefixTree\nmine, wrong = PrefixTree((2, 1)), 3\n"
    (tmp_path / "my_drafts_here.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = run_json(capsys, "optimum", pair_file, "--drafts", "my_drafts_here:mine")
    assert found["value"] == "212/81"
    said = run_error(capsys, "optimum", pair_file, "--drafts", "my_drafts_here:wrong")
    assert "my_drafts_here:wrong" in said


RULES = """
def after_unlikely(tokens, rows):
    sure = [row[token] >= 0.5 for token, row in zip(tokens, rows)]
    return next((place + 1 for place, is_sure in enumerate(sure) if not is_sure), len(sure))


def before_unlikely(tokens, rows):
    sure = [row[token] >= 0.5 for token, row in zip(tokens, rows)]
    return next((place for place, is_sure in enumerate(sure) if not is_sure), len(sure))
"""


def test_a_length_rule_is_obeyed_on_language_models(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The partner reads a token first: it is refused where texts are written, and measured with its δ."""
    (tmp_path / "my_rules.py").write_text(RULES, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    asked = ("decode", "-v", "block", "-l", "2", "-n", "4", "--drafts")
    assert run_json(capsys, *asked, "my_rules:after_unlikely")["num_drafts"] == 1
    assert "theory.md Statement 8.5" in run_error(capsys, *asked, "my_rules:before_unlikely")
    measured = ("simulate", "-v", "block", "-l", "2", "-n", "0", "--samples", "2", "--drafts")
    for name, is_lossy in (("after_unlikely", False), ("before_unlikely", True)):
        (found,) = run_json(capsys, *measured, f"my_rules:{name}")["draft_defects"].values()
        assert (found > 1e-9) is is_lossy
