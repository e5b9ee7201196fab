"""Options that several commands share: trees of drafts, and how many drafts."""

import pytest

from cli_support import run_error, run_json


@pytest.mark.parametrize(
    ("tree", "optimal"), [("prefix_tree:2,1", "212/81"), ("without_replacement:2,1", None)]
)
def test_trees_of_drafts(
    capsys: pytest.CaptureFixture[str], pair_file: str, tree: str, optimal: str | None
) -> None:
    """A prefix tree of widths (2, 1) is two i.i.d. paths; two distinct first tokens are another law."""
    document = run_json(capsys, "certify", pair_file, "--verifier", "block", "--tree", tree)
    best = run_json(capsys, "optimum", pair_file, "--tree", tree)["value"]
    assert (document["num_drafts"], document["block_efficiency"]) == (2, "20/9")
    assert document["optimum"] == best
    assert (best == "212/81") is (optimal == "212/81")


def test_trees_and_num_drafts_must_agree(capsys: pytest.CaptureFixture[str], pair_file: str) -> None:
    """Where both are given; a number of drafts that is not asked for is no contradiction."""
    tree = ("optimum", pair_file, "--tree", "prefix_tree:2,1")
    for num_drafts in ("1", "3"):
        error = run_error(capsys, *tree, "--num-drafts", num_drafts)
        assert f"--num-drafts is {num_drafts}, but --tree prefix_tree:2,1 draws 2 paths" in error
    assert run_json(capsys, *tree, "--num-drafts", "2") == run_json(capsys, *tree)
