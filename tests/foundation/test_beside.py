"""What user code does to its streams changes nothing but what stands on stderr."""

import io
import sys
from collections.abc import Callable

import pytest

from spectheory.foundation.beside import printed_beside


def wraps() -> None:
    sys.stdout = io.TextIOWrapper(sys.stdout.buffer, "utf-8")
    print("wrapped")


def wraps_both() -> None:
    sys.stdout, sys.stderr = (io.TextIOWrapper(each.detach(), "utf-8") for each in (sys.stdout, sys.stderr))
    print("wrapped")


def closes() -> None:
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    print("closed", file=sys.stderr)
    sys.stdout.close()
    sys.stderr.close()


def nests() -> None:
    with printed_beside():
        print("nested")
    sys.stdout.flush()


@pytest.mark.parametrize(
    ("does", "said"), [(wraps, "wrapped"), (wraps_both, "wrapped"), (closes, "closed"), (nests, "nested")]
)
def test_streams_are_what_they_were(
    does: Callable[[], None], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sys.stdout, sys.stderr
    with printed_beside():
        does()
    assert (sys.stdout, sys.stderr) == before
    print("after")
    print("after", file=sys.stderr)
    assert capsys.readouterr() == ("after\n", f"{said}\nafter\n")


def test_without_stderr_nothing_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with printed_beside():
        print("a word of user code")
    assert capsys.readouterr().out == ""


def test_a_stream_over_the_number_of_stdout_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgotten, it closes what the number stands for."""
    monkeypatch.setattr("spectheory.foundation.beside._KEPT", kept := [])
    with printed_beside():
        sys.stdout = opened = open(1, "w", closefd=False)  # noqa: SIM115
    with printed_beside():
        sys.stdout = io.StringIO()
    assert kept == [opened]
