"""Tables for people: the numbers stand in them, and long ones are cut."""

import pytest

from cli_support import run_json
from spectheory.command_line.main import main
from spectheory.command_line.tables import print_tables
from spectheory.foundation.results import Table


def test_long_rationals_are_cut_in_tables(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("acceptance", "--target", "1/3,2/3", "--draft", "2/3,1/3", "--num-drafts", "200")
    exact = run_json(capsys, *arguments)["lower_bound"]
    assert len(exact) > 400
    assert main(list(arguments)) == 0
    out = capsys.readouterr().out
    assert f"{exact[:20]}... = 0.633042" in out
    assert exact[:21] not in out


def test_markup_of_a_user_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Brackets are not styles of the terminal; a long cell is folded, and nothing of it is lost."""
    print_tables([Table("[bold]title", [{"[red]": "[/red]", "long": "x" * 300}] * 2, note="[dim]note")])
    out = capsys.readouterr().out
    assert all(text in out for text in ("[bold]title", "[red]", "[/red]", "[dim]note"))
    assert out.count("x") == 600
    assert max(map(len, out.splitlines())) <= 120
