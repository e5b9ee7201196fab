"""Check what pages say about the repository: links, names, citations, formulas, tables, stored notebooks.

``make lint`` runs it: each complaint is a line, and the exit status is 1 if there is one.  With ``--write``
the table of docs/verifiers.md and the page of the claims are written anew.
"""

import json
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import claims
import yaml
from notebook_outputs import NOTEBOOKS, code_cells, code_hash
from site_pages import CODE, ENTRY, exported, mathml, modules_of

from spectheory import __version__, verifiers
from spectheory.pairs.drafts.process import ANY_PROCESS
from spectheory.verification.verifier import Verifier

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
VERIFIERS = ROOT / "docs" / "verifiers.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md")), ROOT / "benchmarks" / "README.md"]
SOURCES = ("spectheory", "figures", "audits", "tests", "benchmarks", "scripts", "notebooks")
MOST_LINES = 500
"""Of a test file: more is not read in one go."""

HEAD = "| name | paper and algorithm | lossless | drafts |\n|---|---|---|---|\n"
PROCESSES = {
    "iid": "i.i.d.",
    "per_path": "one model per path",
    "prefix_tree": "prefix tree",
    "without_replacement": "without replacement",
}
KEY = re.compile(r"\b[a-z]+(?:19|20)\d\d[a-z]?\b")
PLACE = r"(?:§\d+|Statements? \d+\.\d+)"
MORE = r"(?:(?:, | and | or | to |, and )(?:§\d+|(?:Statements? )?\d+\.\d+))*"
CITATION = re.compile(rf"theory\.md ({PLACE}{MORE})")
BLOCK = re.compile(r"^((?:> )?)\$\$\n((?:\1[^$\n]+\n)+)\1\$\$$", re.MULTILINE)
INLINE = re.compile(r"(?<![^\s(])\$([^\s$](?:[^$\n]*[^\s$])?)\$(?=[\s.,:;?)]|$)", re.MULTILINE)
READ_AS_MARKDOWN = re.compile(r"\\[^a-zA-Z ]|[^a-zA-Z0-9]_|[*~]|<(?! )|\]\(")


def text_of(path: Path) -> str:
    """The text of a file."""
    return path.read_text(encoding="utf-8")


def dead_links(page: Path) -> Iterator[str]:
    """Links to files or headings that are not there, and names of the package that do not exist."""
    text = text_of(page)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    for link in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", text)):
        file, _, anchor = link.partition("#")
        if (file and "://" not in file and not (page.parent / file).exists()) or (
            not file and anchor not in anchors
        ):
            yield f"{link} leads nowhere"
    for name in re.findall(r"`(spectheory(?:\.\w+)+)", text):
        try:
            pkgutil.resolve_name(name)
        except (AttributeError, ImportError):
            yield f"there is no {name}"


def wrong_formulas(page: Path) -> Iterator[str]:
    """Formulas that GitHub, which reads them as Markdown first, or the site would not show."""
    text = CODE.sub("", text_of(page))
    formulas = [found[2] for found in BLOCK.finditer(text)] + INLINE.findall(text)
    for latex in formulas:
        mathml(latex, display=True)  # a command that is not known raises ValueError
    yield from filter(READ_AS_MARKDOWN.search, formulas)
    for row in re.findall(r"^\|.*", text, re.MULTILINE):
        yield from (latex for latex in INLINE.findall(row) if "|" in latex)
    yield from (line for line in INLINE.sub("", BLOCK.sub("", text)).splitlines() if "$" in line)


def wrong_citations(text: str, keys: set[str], places: set[str]) -> Iterator[str]:
    """Keys without an entry in docs/references.bib; sections and statements that theory.md does not have."""
    yield from (f"no entry {key} in docs/references.bib" for key in set(KEY.findall(text)) - keys)
    for cited in CITATION.findall(re.sub(r"\s+(?:# )?", " ", text)):
        found = set(re.findall(r"§\d+|\d+\.\d+", cited))
        yield from (f"no {place} in theory.md" for place in found - places)


def stale_outputs(notebook: Path) -> Iterator[str]:
    """Cells that have changed since the notebook was run, or were not run in order."""
    document = json.loads(text_of(notebook))
    if document["metadata"].get("spectheory", {}).get("code_sha256") != code_hash(document):
        yield "the code has changed since it was run: make notebooks"
    for number, cell in enumerate(code_cells(document), start=1):
        if cell["execution_count"] != number:
            yield f"cell {number} was not run in order"


def hidden_modules() -> Iterator[str]:
    """Modules with the name of a function on a face: ``import`` and attribute would give different things."""
    public = {name: home for name, home in exported("spectheory").items() if name.islower()}
    for room in sorted({path.parent.name for path in (ROOT / "spectheory").glob("*/__init__.py")}):
        for module in modules_of(room):
            if public.get(module.rpartition(".")[2], module) != module and module.count(".") > 1:
                yield f"{module} has the name of a public function"


def row(name: str, verifier: Verifier) -> str:
    """Name, source, claim and drafts of one verifier, as a row of docs/verifiers.md."""
    if verifier.single_path:
        drafts = "the first path"
    elif verifier.draft_processes is ANY_PROCESS:
        drafts = "any"
    else:
        drafts = ", ".join(PROCESSES[process] for process in sorted(verifier.draft_processes))
    drafts += "; one token" if verifier.max_draft_length == 1 else ""
    return f"| `{name}` | {verifier.source} | {'yes' if verifier.lossless else 'no'} | {drafts} |\n"


def with_table(page: str) -> str:
    """docs/verifiers.md with a row per registered verifier, in order."""
    before, _, after = page.partition(HEAD)
    rows = "".join(row(*entry) for entry in verifiers.items())
    return before + HEAD + rows + re.sub(r"\A(\|.*\n)*", "", after)


def complaints() -> Iterator[str]:
    """All of them, each with its file."""
    for page in PAGES:
        yield from (f"{page.relative_to(ROOT)}: {one}" for one in (*dead_links(page), *wrong_formulas(page)))
    keys = {entry["key"] for entry in ENTRY.finditer(text_of(ROOT / "docs" / "references.bib"))}
    theory = text_of(ROOT / "docs" / "theory.md")
    places = set(re.findall(r"^## (§\d+) ", theory, re.MULTILINE))
    places |= set(re.findall(r"^> \*\*Statement (\d+\.\d+)\*\* \(", theory, re.MULTILINE))
    sources = [path for name in SOURCES for path in (ROOT / name).rglob("*")]
    for path in [*PAGES, *(path for path in sources if path.suffix in (".py", ".ipynb"))]:
        for one in wrong_citations(text_of(path), keys, places):
            yield f"{path.relative_to(ROOT)}: {one}"
    for path in (ROOT / "tests").rglob("*.py"):
        if text_of(path).count("\n") > MOST_LINES:
            yield f"{path.relative_to(ROOT)} has more than {MOST_LINES} lines"
    for notebook in NOTEBOOKS:
        yield from (f"{notebook.name}: {one}" for one in stale_outputs(notebook))
    yield from hidden_modules()
    navigation = str(yaml.safe_load(text_of(ROOT / "mkdocs.yml"))["nav"])
    shown = [f"{path.stem}.md" for path in [*(ROOT / "docs").glob("*.md"), *NOTEBOOKS]]
    yield from (f"mkdocs.yml does not show {page}" for page in shown if page not in navigation)
    if (
        with_table(text_of(VERIFIERS)) != text_of(VERIFIERS)
        or claims.PAGE.read_text("utf-8") != claims.claims_page()
    ):
        yield "docs/verifiers.md or docs/claims/index.md is stale: python scripts/lint_pages.py --write"
    if f"version: {__version__}\n" not in text_of(ROOT / "CITATION.cff"):
        yield f"CITATION.cff is not of version {__version__}"


if __name__ == "__main__":
    if "--write" in sys.argv:
        VERIFIERS.write_text(with_table(text_of(VERIFIERS)), encoding="utf-8")
        claims.PAGE.write_text(claims.claims_page(), encoding="utf-8")
    found = list(complaints())
    print(*found, sep="\n", file=sys.stderr)
    sys.exit(1 if found else 0)
