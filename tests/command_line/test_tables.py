"""Tables for people: the numbers stand in them, and long ones are cut."""

import pytest
from rich.console import Console

from cli_support import run_json
from spectheory.command_line import tables
from spectheory.command_line.main import main
from spectheory.command_line.tables import print_tables, print_texts
from spectheory.foundation.results import Table


def test_long_rationals_are_cut_in_tables(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("acceptance", "1/3,2/3", "2/3,1/3", "--drafts", "200")
    exact = run_json(capsys, *arguments)["lower_bound"]
    assert len(exact) > 400
    assert main(list(arguments)) == 0
    out = capsys.readouterr().out
    assert f"{exact[:20]}... = 0.633042" in out
    assert exact[:21] not in out


def test_texts_are_printed_with_what_they_cost(capsys: pytest.CaptureFixture[str]) -> None:
    """Accepted pieces are marked; of 3 + 2 tokens in two calls one is beyond the end."""
    pieces = [{"text": "ab", "accepted": True}, {"text": "c", "accepted": False}]
    cost = {
        "tokens": 4,
        "calls": 2,
        "accepted_per_call": [2, 1],
        "tokens_per_call": 2.5,
        "finished": "length",
    }
    print_texts({"texts": [{"prompt": "x = ", "pieces": pieces} | cost]})
    within = {"tokens": 1, "calls": 1, "accepted_per_call": [0], "tokens_per_call": 1.0}
    print_texts({"texts": [{"prompt": "", "pieces": pieces[1:]} | cost | within]})
    assert capsys.readouterr().out.split("\n") == [
        "x = ‹ab›c", "",
        "4 tokens, 2 calls of the target, 2.50 tokens per call with 1 beyond the end; ended by length", "",
        "c", "", "1 token, 1 call of the target, 1.00 tokens per call; ended by length", "", "",
    ]  # fmt: skip


def test_markup_of_a_user_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Brackets are not styles of the terminal; a long cell is folded, and nothing of it is lost."""
    print_tables([Table("[bold]title", [{"[red]": "[/red]", "long": "x" * 300}] * 2, note="[dim]note")])
    out = capsys.readouterr().out
    assert all(text in out for text in ("[bold]title", "[red]", "[/red]", "[dim]note"))
    assert out.count("x") == 600
    assert max(map(len, out.splitlines())) <= 120


@pytest.mark.parametrize("no_color", [False, True])
def test_what_is_accepted_shows_without_colour(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, no_color: bool
) -> None:
    """NO_COLOR takes the colour and leaves the line under accepted drafts."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(tables, "_console", lambda: Console(force_terminal=True, color_system="standard"))
    cost = {"tokens": 1, "calls": 1, "accepted_per_call": [0], "tokens_per_call": 1.0, "finished": "length"}
    print_texts({"texts": [{"prompt": "", "pieces": [{"text": "ab", "accepted": True}]} | cost]})
    assert ("4mab" if no_color else "4;32mab") in capsys.readouterr().out


def test_nothing_that_is_printed_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A model may write an escape sequence, and a file may have one as a name."""
    steering = "\x1b[2Jé\t\x9b1m\x7f\n"
    cost = {"tokens": 1, "calls": 1, "accepted_per_call": [0], "tokens_per_call": 1.0, "finished": "length"}
    print_texts({"texts": [{"prompt": steering, "pieces": [{"text": steering, "accepted": True}]} | cost]})
    print_tables([Table(steering, [{"a": steering}], note=steering)])
    printed = capsys.readouterr().out
    assert not {"\x1b", "\x9b", "\x7f"} & {*printed}
    assert printed.count(r"\x1b[2Jé") == 5
