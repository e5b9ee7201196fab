"""Tables for people: the numbers stand in them, and long ones are cut."""

import pytest
from rich.console import Console

from cli_support import run_json
from spectheory.command_line import tables
from spectheory.command_line.main import main
from spectheory.command_line.tables import print_tables, print_texts, width_of_words
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


def test_a_narrow_terminal_breaks_no_word(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It first takes the padding, then prints lists; the partner: a pipe or a wide terminal has neither."""
    row = {"name": "block", "source": "see without_replacement", "drafts": "without_replacement"}
    table = Table("title", [row] * 2, note="end")
    narrowest = width_of_words([table.header(), *table.texts()])
    assert narrowest == 1 + 3 + len("block") + 2 * (3 + len("without_replacement"))
    assert width_of_words([["", "name"], ["block", ""]]) == 1 + 3 + len("block") + 3 + len("name")
    assert width_of_words([["name", ""], ["block", ""]]) == 1 + 3 + len("block") + 3
    for is_terminal, lacking, head, times in (
        (True, 0, "┃ name ", 1), (True, 1, "┃name ", 1), (True, 6, "┃name ", 1),
        (True, 7, "│ name   │ block ", 2), (False, 7, "┃ name ", 1),
    ):  # fmt: skip
        console = Console(
            force_terminal=is_terminal, width=narrowest - lacking, color_system=None, highlight=False
        )
        monkeypatch.setattr(tables, "_console", lambda console=console: console)
        print_tables([table])
        out = capsys.readouterr().out
        assert out.count(head) == times
        assert (out.count("without_replacement") == 4) == is_terminal
        assert out.endswith("end\n")


def screen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], table: Table, width: int
) -> list[str]:
    """The lines that a terminal of this width shows, what is bold within stars."""
    console = Console(force_terminal=True, width=width, color_system="standard", highlight=False)
    monkeypatch.setattr(tables, "_console", lambda: console)
    print_tables([table])
    out = capsys.readouterr().out.replace("\x1b[1m", "*").replace("\x1b[0m", "*")
    return [line.strip() for line in out.replace("**", "").split("\n")]


def test_screens_of_tables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers at the right, headers and labels bold, lines between rows of several lines, nothing steers."""
    rows = [
        {"name": "block", "drafts": 2, "a \x1b": "a\x1bb"},
        {"name": "token by token", "drafts": 10, "a \x1b": "its verification"},
    ]
    assert screen(monkeypatch, capsys, Table("found\x1b", rows, note="the end"), 42) == [
        r"found\x1b",
        "┏━━━━━━━━━━━━━━━━┳━━━━━━━━┳━━━━━━━━━━━━━━┓",
        r"┃* name           *┃* drafts *┃* a \x1b       *┃",
        "┡━━━━━━━━━━━━━━━━╇━━━━━━━━╇━━━━━━━━━━━━━━┩",
        r"│ block          │      2 │ a\x1bb       │",
        "│ token by token │     10 │ its          │",
        "│                │        │ verification │",
        "└────────────────┴────────┴──────────────┘",
        "the end",
        "",
    ]
    assert screen(monkeypatch, capsys, Table("found\x1b", rows), 17) == [
        r"found\x1b",
        "┌────────┬──────┐",
        "│* name   *│ bloc │",
        "│*        *│ k    │",
        "│* drafts *│ 2    │",
        r"│* a \x1b *│ a\x1 │",
        "│*        *│ bb   │",
        "├────────┼──────┤",
        "│* name   *│ toke │",
        "│*        *│ n by │",
        "│*        *│ toke │",
        "│*        *│ n    │",
        "│* drafts *│ 10   │",
        r"│* a \x1b *│ its  │",
        "│*        *│ veri │",
        "│*        *│ fica │",
        "│*        *│ tion │",
        "└────────┴──────┘",
        "",
    ]
    lines = Table("lines", [{"a": "x\ny", "b": ""}, {"a": "z", "b": ""}])
    assert screen(monkeypatch, capsys, lines, 60) == [
        "lines", "┏━━━┳━━━┓", "┃* a *┃* b *┃", "┡━━━╇━━━┩", "│ x │   │", "│ y │   │", "├───┼───┤",
        "│ z │   │", "└───┴───┘", "",
    ]  # fmt: skip
    nothing = Table("nothing", [], {"a": "{a}", "b c": "{b}"})
    assert screen(monkeypatch, capsys, nothing, 60) == [
        "nothing", "┏━━━┳━━━━━┓", "┃* a *┃* b c *┃", "┡━━━╇━━━━━┩", "└───┴─────┘", "",
    ]  # fmt: skip
    record = Table("record", [{"name": "block", "drafts": 2}], is_record=True)
    assert screen(monkeypatch, capsys, record, 60) == [
        "record", "┌────────┬───────┐", "│* name   *│ block │", "│* drafts *│ 2     │",
        "└────────┴───────┘", "",
    ]  # fmt: skip


def test_a_file_is_wide_and_a_terminal_colours_no_number(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The prompt is faint, what a call costs is bold; no line of a text is broken."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "30")
    assert tables._console().width == 120
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert tables._console().width == 30
    cost = {"tokens": 1, "calls": 1, "accepted_per_call": [0], "tokens_per_call": 1.0, "finished": "length"}
    piece = {"text": "1 + 1\x1b " * 9, "accepted": False}
    print_texts({"texts": [{"prompt": "2 + 2", "pieces": [piece]} | cost]})
    assert capsys.readouterr().out.split("\n") == [
        "\x1b[2m2 + 2\x1b[0m" + r"1 + 1\x1b " * 9,
        "",
        "\x1b[1m1 token, 1 call of the target,\x1b[0m",
        "\x1b[1m1.00 tokens per call; ended by\x1b[0m",
        "\x1b[1mlength\x1b[0m",
        "",
        "",
    ]


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
