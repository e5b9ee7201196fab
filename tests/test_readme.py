"""README.md and docs/*.md: every Python and console block runs and prints what the page says.

How a page is read.  A fenced block directly below a line that ends in a file name in backquotes and a colon
is that file.  The Python blocks of a page are one program.  What it prints stands behind the ``print`` as a
comment, or below the block in a ``text`` block.  In console blocks ``...`` stands for the rest of a line, a
line ``...`` for any number of lines, and ``echo $?`` is answered by the status of the command before it.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from spectheory.command_line.main import main

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(?P<above>[^\n]*)\n\n```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"`([\w.]+\.\w+)`(?: \(\[[^]]+\]\([^)]+\)\))?:$")
SAID = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)


class Block(NamedTuple):
    language: str
    text: str
    file_name: str | None


def blocks_of(page: str) -> list[Block]:
    """All fenced blocks; a fence that is not of the expected form is refused."""
    found = []
    for match in BLOCK.finditer(page):
        name = FILE_NAME.search(match["above"])
        found.append(Block(match["language"], match["text"], name and name[1]))
    assert page.count("```") == 2 * len(found), "a fence without an empty line above it, or not closed"
    return found


def run_page(
    page: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> int:
    """Run the blocks of a page in an empty folder; the number of outputs that were compared."""
    monkeypatch.chdir(folder)
    (folder / "audits").symlink_to(ROOT / "audits")  # as in a clone, where adapters are found
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    known_modules = set(sys.modules)
    blocks = blocks_of(page)
    for block in blocks:
        if block.file_name:
            (folder / block.file_name).write_text(block.text, encoding="utf-8")
    names: dict[str, object] = {"__name__": "page"}
    compared = 0
    try:
        for number, block in enumerate(blocks):
            if block.language == "python":
                exec(compile(block.text, "page", "exec"), names)
                printed = capsys.readouterr().out.splitlines()
                said = SAID.findall(block.text)
                for following in blocks[number + 1 : number + 2]:
                    said += following.text.splitlines() if following.language == "text" else []
                assert printed == said
                compared += len(said)
            elif block.language == "console":
                compared += run_transcript(block.text, capsys)
    finally:
        for name in {block.file_name.removesuffix(".py") for block in blocks if block.file_name}:
            if name not in known_modules:
                sys.modules.pop(name, None)
    return compared


def expected(line: str) -> str:
    """The pattern of a printed line as the page shows it."""
    if line == "...":
        return "(.*\n)*"
    shown = line.removesuffix("...")
    return re.escape(shown.strip()) + ("\n" if shown == line else ".*\n")


def run_transcript(text: str, capsys: pytest.CaptureFixture[str]) -> int:
    """Run the commands of a console block and compare what they print."""
    assert text.startswith("$ ")
    status, lines = 0, 0
    for part in text[2:].split("\n$ "):
        command, *said = part.splitlines()
        if command == "echo $?":
            printed = [str(status)]
        else:
            command, _, file = command.partition(" > ")
            program, *arguments = command.split()
            assert program == "spectheory"
            status = main(arguments)
            captured = capsys.readouterr()
            if file:
                Path(file).write_text(captured.out, encoding="utf-8")
                continue
            printed = (captured.err + captured.out).splitlines()
        found = "".join(f"{line.strip()}\n" for line in printed)  # titles are centred
        assert re.fullmatch("".join(map(expected, said)), found), found
        lines += len(said)
    return lines


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_print_what_the_page_says(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = path.read_text(encoding="utf-8")
    compared = run_page(page, tmp_path, capsys, monkeypatch)
    languages = {block.language for block in blocks_of(page)}
    assert languages <= {"python", "console", "json", "text", "sh", "yaml"}
    assert (compared > 0) == bool(languages & {"python", "console"})


@pytest.mark.parametrize(
    "page",
    [
        "\n\n```python\nprint(1 + 1)  # 3\n```\n",
        "\n\n```python\nprint(2)\n```\n",
        "\n\n```python\nprint(2)  # 2\nprint(3)\n```\n",
        "\n\n```python\nprint(2)\n```\n\n```text\n3\n```\n",
        "\n\n```python\nraise ValueError\n```\n",
        "\n\n```console\n$ spectheory verifiers --nonsense\n$ echo $?\n0\n```\n",
        "\n\n```console\n$ spectheory verifiers\n...\n│ nonsense...\n...\n```\n",
        '\n\n```console\n$ spectheory acceptance 1 1 --json\n{"target": ["2"]...\n```\n',
        "text\n```python\nprint(2)  # 2\n```\n",
    ],
)
def test_blocks_partner_wrong_pages_are_caught(
    page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong, a missing and an additional output; an exception; a wrong status; a block not found."""
    with pytest.raises((AssertionError, ValueError)):
        run_page(page, tmp_path, capsys, monkeypatch)
