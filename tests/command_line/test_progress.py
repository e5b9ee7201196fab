"""Progress goes to a terminal's stderr and nowhere else."""

import sys

import pytest

from spectheory.command_line.progress import interval_line, progress_bar
from terminal import Screen


def test_silent_where_stderr_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("working") as progress, interval_line() as report:
        progress(1, 2)
        report(1, 1.0, 2.0)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_partner_a_terminal_sees_the_interval(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line that is overwritten, gone when the search ends, also by an error."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")

    def search() -> None:
        with interval_line() as report:
            report(1, 1.0, 2.0)
            report(2, 1.25, 1.5)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "step 2: the optimum lies in 1.250000000 to 1.500000000" in captured.err
    assert Screen(80, 24, captured.err.replace("\n", "\r\n")).everything() == "\n"


def test_partner_a_terminal_sees_how_much_is_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("certifying") as progress:
        progress(7, 20)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "certifying" in captured.err
    assert "7/20" in captured.err


def test_a_closed_stderr_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python has None for it; `optimum PAIR.json 2>&-` ended with 70."""
    monkeypatch.setattr(sys, "stderr", None)
    with interval_line() as report, progress_bar("drafting") as progress:
        report(1, 1.0, 2.0)
        progress(1, 2)
