"""What a person sees in a terminal: every command while a user's code runs."""

import json
import re
from pathlib import Path

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
    "certify pair.json -v my_verifiers:FirstToken": (0, "✓ lossless (rationals): first_token on this pair"),
    "certify pair.json -v my_verifiers:ForgotTheResidual": (
        1,
        "✗ not lossless (rationals): forgot",
    ),
    "certify pair.json -v my_verifiers:FirstToken,block": (0, "the best first"),
    "prove my_verifiers:FirstToken --vocab-size 2 -l 1 --out PROOF": (0, "the proof is in PROOF"),
    "prove --check PROOF my_verifiers:FirstToken": (0, "is lossless on every pair"),
    "plan pair.json --target-rows 2 -v my_verifiers:FirstToken": (0, "first_token"),
    "audit my_sampler:verify --as sampler -k 1 --pair pair.json": (
        0,
        "✓ lossless (followed): verify",
    ),
}
LONG = {
    "certify --suite quick -v my_verifiers:FirstToken": (0, "✓ lossless (rationals): first_token,"),
    "certify --suite quick -v my_verifiers:ForgotTheResidual": (
        1,
        "✗ not lossless (rationals): forgot_the_residual,",
    ),
    "audit my_sampler:verify --as sampler -k 1": (0, "✓ lossless (followed): verify on"),
    "simulate -v my_verifiers:FirstToken -n 0 -l 2 --samples 2 --jobs 1 ": (
        0,
        "first_token",
    ),
    "decode -v my_verifiers:FirstToken -l 2 -n 8 ": (0, "tokens per call"),
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
    (folder / "pair.json").write_text(json.dumps(TWO_TOKEN), encoding="utf-8")
    waiting = OWN_VERIFIER.replace(WAITS, WAITS + "        wait()\n")
    (folder / "my_verifiers.py").write_text(SLOW + waiting, encoding="utf-8")
    (folder / "my_sampler.py").write_text(SAMPLER.replace("WAIT", SLOW), encoding="utf-8")
    instances.random_float(1, 2, 15, agreement=0.3).save(folder / "LARGE")
    (folder / "PROMPTS").write_text("import os\ndef main(argument):\n", encoding="utf-8")
    return folder


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
