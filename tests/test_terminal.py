"""What a person sees in a terminal: the first ten minutes, and every command while a user's code runs.

The screens of the first ten minutes lie beside this file.  After an intended change of what commands print,
``PYTHONPATH=.:tests/support python tests/test_terminal.py`` writes them again; look at each that changed.
"""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from cli_support import OWN_VERIFIER, TWO_TOKEN
from spectheory import instances
from spectheory.command_line.main import group
from terminal import Played, play

SLOW = """
import time

_waits = [1.2]


def wait():
    '''Once: the line of progress is drawn meanwhile.'''
    if _waits:
        time.sleep(_waits.pop())
"""
WAITS = "    def residual(self, target, draft):\n"
SAMPLER = """
import torch
WAIT

def verify(paths, target_rows, draft_rows, generator):
    wait()
    path, target, draft = paths[0].tolist(), target_rows[0], draft_rows[0]
    for place, token in enumerate(path):
        if torch.rand((), generator=generator) >= target[place, token] / draft[place, token]:
            residual = (target[place] - draft[place]).clamp(min=0)
            return [*path[:place], int(torch.multinomial(residual, 1, generator=generator))]
    return [*path, int(torch.multinomial(target[-1], 1, generator=generator))]
"""

WITH_USER_CODE = {
    "certify pair.json -v my_verifiers:FirstToken": (0, "first_token: lossless on this pair"),
    "certify pair.json -v my_verifiers:ForgotTheResidual": (1, "forgot_the_residual: NOT lossless"),
    "certify pair.json -v my_verifiers:FirstToken,block": (0, "the best first"),
    "prove my_verifiers:FirstToken --vocab 2 -l 1 --out PROOF": (0, "the proof is in PROOF"),
    "prove --check PROOF my_verifiers:FirstToken": (0, "is lossless on every pair"),
    "plan pair.json -n 2 -v my_verifiers:FirstToken": (0, "first_token"),
    "audit my_sampler:verify --as sampler -k 1 --pair pair.json": (0, "verify: exactly lossless on 1 case"),
}
LONG = {
    "certify --suite standard --quick -v my_verifiers:FirstToken": (0, "first_token: lossless on"),
    "certify --suite standard --quick -v my_verifiers:ForgotTheResidual": (1, "residual: NOT lossless"),
    "audit my_sampler:verify --as sampler -k 1": (0, "verify: lossless up to arithmetic on"),
    "simulate -v my_verifiers:FirstToken --one-call -l 2 --samples 2 --jobs 1 --device cpu": (
        0,
        "first_token",
    ),
    "decode -v my_verifiers:FirstToken -l 2 -n 8 --device cpu": (0, "tokens per call"),
}
WITH_PROGRESS = {
    "optimum LARGE -k 2 --time-limit 1.5": (3, "certified between"),
}
PROGRESS = re.compile(r"^[^┏┡\n]*━|^step ", re.MULTILINE)
"""A bar, which is not the head of a table, or the line of an interval."""
WITHOUT_EITHER = {"acceptance", "verifiers", "restrict", "models"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("terminal")
    write_files(folder, SLOW)
    instances.random_float(1, 2, 15, agreement=0.3).save(folder / "LARGE")
    (folder / "PROMPTS").write_text("import os\ndef main(argument):\n", encoding="utf-8")
    return folder


def write_files(folder: Path, wait: str) -> None:
    """A pair and a user's code, as in the README and the pages."""
    (folder / "pair.json").write_text(json.dumps(TWO_TOKEN), encoding="utf-8")
    waiting = OWN_VERIFIER.replace(WAITS, WAITS + "        wait()\n") if wait else OWN_VERIFIER
    (folder / "my_verifiers.py").write_text(wait + waiting, encoding="utf-8")
    sampler = (
        SAMPLER.replace("WAIT", wait) if wait else SAMPLER.replace("WAIT", "").replace("    wait()\n", "")
    )
    (folder / "my_sampler.py").write_text(sampler, encoding="utf-8")


def test_every_command_is_played() -> None:
    played = {command.split()[0] for command in (WITH_USER_CODE | LONG | WITH_PROGRESS)}
    assert played | WITHOUT_EITHER == set(group.commands)
    assert not played & WITHOUT_EITHER


@pytest.mark.parametrize(
    "command",
    [*WITH_USER_CODE, *WITH_PROGRESS, *(pytest.param(command, marks=pytest.mark.deep) for command in LONG)],
)
def test_the_screen_after_a_command(command: str, folder: Path) -> None:
    """While a user's code runs, the line of progress is drawn in its place: it adds nothing to the screen."""
    code, verdict = (WITH_USER_CODE | LONG | WITH_PROGRESS)[command]
    played = play(command.split(), folder)
    assert played.code == code, played.screen.everything()
    assert played.size <= 50_000
    assert " ".join(verdict.split()) in " ".join(played.screen.shown().split())
    check_screen(played)
    assert not PROGRESS.search(played.screen.everything())


def check_screen(played: Played) -> None:
    """What holds after every command."""
    assert played.screen.cursor_is_shown
    assert played.screen.too_wide == []
    assert "Traceback" not in played.screen.everything()


PRINTS = """
import sys
from my_verifiers import FirstToken, wait


class Prints(FirstToken):
    def residual(self, target, draft):
        print("a word")
        print("another", file=sys.stderr)
        return super().residual(target, draft)
"""


def test_partner_what_user_code_prints_is_seen(folder: Path) -> None:
    """It stays above the line of progress, once per call."""
    (folder / "my_prints.py").write_text(PRINTS, encoding="utf-8")
    played = play(["certify", "pair.json", "-v", "my_prints:Prints"], folder, rows=400)
    check_screen(played)
    lines = played.screen.everything().splitlines()
    assert 0 < lines.count("a word") == lines.count("another")
    assert not PROGRESS.search(played.screen.everything())


def test_partner_a_terminal_refuses_what_it_does_not_know() -> None:
    """The emulation: a line is drawn again in its place, a wide one is wrapped and named."""
    from terminal import Screen

    assert Screen(9, 4, "one\r\x1b[2Ktwo\r\n").shown() == "two\n"
    assert Screen(9, 4, "\x1b[?25lone").cursor_is_shown is False
    assert Screen(4, 4, "12345").too_wide == ["1234"]
    assert Screen(9, 2, "1\r\n2\r\n3").shown() == "2\n3\n"
    with pytest.raises(AssertionError, match="does not know"):
        Screen(9, 4, "\x1b[2J")


FIRST_TEN_MINUTES = (
    "",
    "certify --help",
    "certify pair.json --verifier block",
    "certfy pair.json --verifier block",
    "certify pairs.json --verifier block",
    "certify pair.json",
    "certify pair.json --verifier blok",
    "verifiers",
    "optimum pair.json --num-drafts 2",
    "acceptance --target 1/3,2/3 --draft 2/3,1/3",
    "certify pair.json --verifier my_verifier:ForgotTheResidual",
    "certify pair.json --verifier my_verifiers:ForgotTheResidual",
    "certify pair.json --verifier my_verifiers:FirstToken",
    "audit --help",
    "audit my_sampler:verify",
    "audit my_sampler:verify --as coins",
    "audit my_sampler:verify --as sampler --num-drafts 1 --pair pair.json",
    "simulate --help",
)
SIZES = {80: 24, 140: 40}
SCREENS = Path(__file__).parent


def first_ten_minutes(folder: Path, columns: int) -> Iterator[tuple[str, Played]]:
    write_files(folder, "")
    for command in FIRST_TEN_MINUTES:
        yield command, play(shlex.split(command), folder, columns, SIZES[columns])


def recorded(command: str, played: Played) -> str:
    """What is compared: the command, its status, and the screen without times and versions."""
    screen = re.sub(r"\b\d+\.\d+ s\b", "… s", played.screen.shown())
    return f"$ spectheory {command}\n{screen}[{played.code}]\n\n"


@pytest.mark.parametrize("columns", [80, pytest.param(140, marks=pytest.mark.deep)])
def test_the_first_ten_minutes(columns: int, tmp_path: Path) -> None:
    screens = ""
    for command, played in first_ten_minutes(tmp_path, columns):
        check_screen(played)
        screens += recorded(command, played)
    assert screens == (SCREENS / f"first_ten_minutes_{columns}.txt").read_text(encoding="utf-8")


def main() -> None:
    for columns in SIZES:
        with TemporaryDirectory() as folder:
            text = "".join(recorded(*each) for each in first_ten_minutes(Path(folder), columns))
            (SCREENS / f"first_ten_minutes_{columns}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
