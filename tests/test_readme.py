"""README.md and docs/*.md: every Python and console block runs and prints what the page says.

How a page is read.  A fenced block directly below a line that ends in a file name in backquotes and a colon
is that file.  The Python blocks of a page are one program.  What it prints stands behind the ``print`` as a
comment, or below the block in a ``text`` block.  In console blocks ``...`` stands for the rest of a line, a
line ``...`` for any number of lines, and ``echo $?`` is answered by the status of the command before it.
"""

import pkgutil
import re
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from scripts import load
from spectheory import verifiers
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


@pytest.mark.parametrize("path", [*PAGES, ROOT / "benchmarks/README.md"], ids=lambda path: path.stem)
def test_links_lead_somewhere(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", page, flags=re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    for link in re.findall(r"\]\(([^)]+)\)", page):
        file, _, anchor = link.partition("#")
        if file and "://" not in file:
            assert (path.parent / file).exists(), link
        elif not file:
            assert anchor in anchors, link


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_names_of_the_package_exist(path: Path) -> None:
    """Of modules, classes and functions in backquotes; the partner does not."""
    for name in re.findall(r"`(spectheory(?:\.\w+)+)", path.read_text(encoding="utf-8")):
        pkgutil.resolve_name(name)
    with pytest.raises(AttributeError):
        pkgutil.resolve_name("spectheory.no_such_name")


TABLE = load("scripts", "readme_table")


def test_table_of_verifiers_is_the_registry() -> None:
    page = PAGES[0].read_text(encoding="utf-8")
    assert TABLE.with_table(page) == page, "run: python scripts/readme_table.py"
    rows = [TABLE.row(*entry) for entry in verifiers.items()]
    assert "".join(rows) in page
    for wrong in (page.replace(rows[1], ""), page.replace(rows[-1], rows[-1] + rows[0])):
        assert wrong != page
        assert TABLE.with_table(wrong) == page


def test_table_of_papers_is_the_bibliography() -> None:
    """Key, title, first author and arXiv number as in docs/references.bib."""
    page = PAGES[0].read_text(encoding="utf-8")
    references = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (\w+\d{4}) \| ([^|]+) \| ([^|]+) \| \[([\d.]+)\]\((\S+)\) \|", page, flags=re.MULTILINE
    )
    assert [row[0] for row in rows] == ["spectr2023", "block2024", "greedy2026", "spectrgbv2026"]
    for key, title, authors, number, link in rows:
        entry = references.split(f"{{{key},")[1].split("\n}")[0]
        assert title in entry.replace("{", "").replace("}", "")
        assert authors.split(",")[0].split(" ")[0] in entry
        assert f"eprint    = {{{number}}}" in entry
        assert link == f"https://arxiv.org/abs/{number}"


def test_make_targets_and_extras_exist() -> None:
    """Named targets exist; every extra for users is named, with packages that it installs."""
    page = PAGES[0].read_text(encoding="utf-8")
    targets = re.findall(r"^make (\w+)", page, flags=re.MULTILINE)
    assert {"reproduce", "test"} <= set(targets)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    named = dict(re.findall(r'pip install "\.\[(\w+)\]" +# (.*)$', page, flags=re.MULTILINE))
    assert named.keys() == extras.keys() - {"docs", "dev"}
    for extra, about in named.items():
        required = {re.split(r"[>=;]", requirement)[0] for requirement in extras[extra]}
        assert set(about.rpartition("(")[2].rstrip(")").split(", ")) <= required
        assert ("[models]" in about) == ("spectheory[models]" in required)
