"""Commands in a pseudo-terminal: the bytes that they write, and the screen that a person then sees."""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from fresh_interpreter import forks

SEQUENCE = re.compile(r"\x1b\[(\??)(\d*)[\d;]*([A-Za-z])|[^\x1b]", re.DOTALL)


class Screen:
    """A terminal that knows the control sequences of rich and click, and refuses others.

    Attributes:
        lines: all lines, also those that went off the top.
        too_wide: the lines that the terminal itself had to wrap.
        cursor_is_shown: whether a person sees the cursor.
    """

    def __init__(self, columns: int, rows: int, written: str) -> None:
        self.columns, self.rows = columns, rows
        self.lines: list[list[str]] = [[]]
        self.too_wide: list[str] = []
        self.row = self.column = 0
        self.cursor_is_shown = True
        assert not SEQUENCE.sub("", written), "a control sequence that this terminal does not know"
        for found in SEQUENCE.finditer(written):
            private, number, final = found.groups()
            if final is None:
                self._put(found[0])
            else:
                self._control(private + final, int(number or 0))

    def _put(self, character: str) -> None:
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self._feed()
        else:
            assert character.isprintable(), repr(character)
            if self.column == self.columns:
                self.too_wide.append("".join(self.lines[self.row]))
                self._feed()
                self.column = 0
            line = self.lines[self.row]
            line.extend(" " * (self.column + 1 - len(line)))
            line[self.column] = character
            self.column += 1

    def _feed(self) -> None:
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append([])

    def _control(self, name: str, number: int) -> None:
        if name == "A":
            self.row = max(self.row - (number or 1), self._top)
        elif name == "K":
            line = self.lines[self.row]
            line[:] = [] if number == 2 else line[: self.column]
        elif name in ("?h", "?l") and number == 25:
            self.cursor_is_shown = name == "?h"
        else:
            assert name == "m", f"a control sequence that this terminal does not know: {number}{name}"

    @property
    def _top(self) -> int:
        return max(len(self.lines) - self.rows, 0)

    def shown(self) -> str:
        """What is on the screen at the end."""
        return _text(self.lines[self._top :])

    def everything(self) -> str:
        """The screen, and above it all that scrolled away."""
        return _text(self.lines)


def _text(lines: Sequence[Sequence[str]]) -> str:
    return "\n".join("".join(line).rstrip() for line in lines).rstrip("\n") + "\n"


class Played(NamedTuple):
    """What a command left behind: its exit status, the number of bytes that it wrote, and the screen."""

    code: int | None
    size: int
    screen: Screen


def play(
    arguments: Sequence[str],
    folder: Path,
    columns: int = 100,
    rows: int = 40,
    environment: Mapping[str, str] | None = None,
) -> Played:
    """Run ``spectheory`` in a terminal of this size, in a fork of an interpreter that has its libraries."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    settings = {name: value for name, value in os.environ.items() if name not in OF_ANOTHER_TERMINAL}
    settings |= {"TERM": "xterm-256color", **(environment or {})}
    process = forks().Process(target=_run, args=(list(arguments), os.ttyname(theirs), str(folder), settings))
    process.start()
    written = b""
    while ours in (ready := select.select([ours, process.sentinel], [], [])[0]):
        written += os.read(ours, 1 << 16)
    assert ready == [process.sentinel]
    process.join()
    os.close(ours)
    os.close(theirs)
    return Played(process.exitcode, len(written), Screen(columns, rows, written.decode()))


OF_ANOTHER_TERMINAL = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")


def _run(arguments: list[str], terminal: str, folder: str, settings: dict[str, str]) -> None:
    os.login_tty(os.open(terminal, os.O_RDWR))
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        setattr(sys, name, open(number, mode, buffering=1, encoding="utf-8", closefd=False))  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(settings)
    from spectheory.command_line.main import main

    sys.exit(main(arguments))
