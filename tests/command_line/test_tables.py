"""Tables for people: the numbers stand in them, and long ones are cut."""

from __future__ import annotations

import pytest

from cli_support import run_json
from spectheory.command_line.main import main


def test_certify_table_states_the_numbers(capsys: pytest.CaptureFixture[str], pair_file: str) -> None:
    assert main(["certify", pair_file, "--verifier", "block"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    for text in ("block: lossless", "20/9 = 2.222222", "'A' 1/3, 'B' 2/3"):
        assert text in captured.out


def test_long_rationals_are_cut_in_tables(capsys: pytest.CaptureFixture[str]) -> None:
    """The table shows first digits and a decimal, the JSON object everything."""
    arguments = ("acceptance", "--target", "1/3,2/3", "--draft", "2/3,1/3", "--num-drafts", "200")
    exact = run_json(capsys, *arguments)["lower_bound"]
    assert len(exact) > 400
    assert main(list(arguments)) == 0
    out = capsys.readouterr().out
    assert f"{exact[:20]}... = 0.633042" in out
    assert exact[:21] not in out
