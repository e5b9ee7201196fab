"""What the documentation site has beyond ``docs/``: mkdocs calls the ``on_...`` functions (see mkdocs.yml).

README.md, the notebooks, the figures and the benchmarks become pages where they lie.  References, the gallery
and the API pages are made from references.bib, from what ``make reproduce`` wrote and from docs/names.md; a
page for every test file that is evidence of a claim shows these tests.  Long pages are cut into several
(``site_sections.py``), and the scoreboard is made from the stored audits.  Links between files of the
repository become links between pages.  Formulas become MathML, which browsers show
without a script.  Pages of notebooks show the outputs that the notebooks hold.
"""

import ast
import html
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from posixpath import normpath, relpath
from typing import Any

import latex2mathml.converter
import nbformat
from claims import Claim, all_claims
from mkdocs.structure.files import File, Files
from names_page import MODULES, TITLES
from site_sections import CUTS, addresses, badges, claim_cards, scoreboard, sections

from spectheory.command_line.audit_reports import badge

ROOT = Path(__file__).parent.parent
SUITE = ROOT / "benchmarks" / "results" / "conformance_audits-xeon-2core.json"
MOUNTED = {
    "notebooks": "*.ipynb",  # to download
    "figures": "*.[pj][dns]*",  # pdf, png, json
    "benchmarks": "**/*.[mpj][dns]*",  # md, png, json
}
FIRST_FIGURES = ("paired_gains", "greedy_falls", "token_tree", "full_information", "release_grid")
"""The first row of the gallery: what a visitor should see if no other picture is looked at."""
LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<link>[^()\s]+)\)")
ENTRY = re.compile(r"^@(?P<kind>[a-z]+)\{(?P<key>[^,]+),\n(?P<fields>.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^  (?P<name>\w+)\s*= \{(?P<value>.*)\},$", re.MULTILINE)
STATEMENT = re.compile(r"^> (\*\*Statement (\d+)\.(\d+)\*\*)", re.MULTILINE)
API_NAME = re.compile(r"^\| `(\w+)` \| (.*) \|$", re.MULTILINE)
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
"""Head of a page that the search leaves out: tests, which would hide the guides."""
BOOSTS = {
    "api/": 0.002,
    "notebooks/": 0.5,
    "claims/": 0.2,
    "theory": 0.3,
    "audits": 0.5,
    "findings/": 0.5,
    "benchmarks/": 0.3,
    "screens": 0.2,
    "concepts": 8,
    "read_a_certificate": 4,
    "is_it_lossless": 4,
}
"""Beginning of an address -> weight of the page in the search.  Guides have 2."""
CITATION = re.compile(r"\btheory\.md Statement (\d+)\.(\d+)")
CITATION_OF_THE_PAGE = re.compile(r"(?<!\*)\bStatement (\d+)\.(\d+)")
FORMULA = re.compile(
    r'<(?P<tag>div|span) class="arithmatex">\\[\[(](?P<latex>.*?)\\[\])]</(?P=tag)>', re.DOTALL
)
FUNCTION = re.compile(r"<(m[io])>(exp|log|max|min)</\1>")
BAR_OR_SLASH = re.compile(r'<mo( stretchy="false")?>(&#x000(?:2F|7C);)</mo>')
LABEL = re.compile(r'(?:title|label)[(=]"([^"]+)"')
CODE = re.compile(r"^```.*?^```$|^    [^\n]*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
BLOCKS = re.compile(r"^```.*?^```$|^    [^\n]*$", re.MULTILINE | re.DOTALL)


# ------------------------------------------------------------------------------------ what mkdocs calls


def on_files(files: Files, config: Any) -> Files:
    """Add what lies outside ``docs/`` and what is made here."""
    for folder, pattern in MOUNTED.items():
        for path in sorted((ROOT / folder).glob(pattern)):
            uri = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    docs = ROOT / "docs"
    audits = [(docs / name).read_text(encoding="utf-8") for name in ("audits.md", "audits_by_release.md")]
    made = {
        "index.md": (ROOT / "README.md").read_text(encoding="utf-8"),
        "references.md": references_page((docs / "references.bib").read_text(encoding="utf-8")),
        "figures/gallery.md": gallery_page(ROOT / "figures"),
        "is_it_lossless.md": scoreboard(*audits, json.loads(SUITE.read_text(encoding="utf-8"))),
        **{f"badges/{name}.svg": badge(*told) for name, told in badges(audits[0]).items()},
        **{part.uri: part.text for name in CUTS for part in sections(name)[1:]},
        **{uri: UNSEARCHED + content for uri, content in evidence_pages(all_claims())},
        **dict(api_pages()),
    }
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        made[f"notebooks/{path.stem}.md"] = notebook_page(path)
    for uri, content in made.items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_config(config: Any) -> Any:
    """The sections of the theory stand in the navigation."""
    theory = next(part for part in config.nav if "Theory" in part)["Theory"]
    theory[1:1] = [{part.title: part.uri} for part in sections("theory.md")[1:]]
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links between files become links between pages; statements can be linked to."""
    uri = page.file.src_uri
    boost = next((weight for start, weight in BOOSTS.items() if uri.startswith(start)), 2)
    page.meta.setdefault("search", {"boost": boost})
    is_theory = uri.startswith("theory")
    if is_theory:
        markdown = STATEMENT.sub(r'> <a id="statement-\2-\3"></a>\1', markdown)
    elif uri == "claims/index.md":
        markdown = claim_cards(markdown)
    elif uri == "names.md":
        markdown = linked_names(markdown)
    if uri in CUTS:
        first, *others = sections(uri)
        links = [f"- [{part.title}]({relpath(part.uri, Path(uri).parent)})" for part in others]
        markdown = first.text
        if uri != "command_line.md":  # which has a table of its commands
            markdown += "\n" + "\n".join(links) + "\n"

    def cite(match: re.Match[str]) -> str:
        anchor = f"statement-{match[1]}-{match[2]}"
        target = relpath(addresses("theory.md").get(anchor, "theory.md"), Path(uri).parent.as_posix())
        return f"[{match[0]}]({target}#{anchor})"

    def known(target: str) -> bool:
        return files.get_file_from_path(target) is not None

    linked = outside_code(markdown, lambda text: page_links(text, uri, known), BLOCKS)
    citation = CITATION_OF_THE_PAGE if is_theory else CITATION
    return outside_code(linked, lambda text: citation.sub(cite, text))


def on_page_content(content: str, page: Any, config: Any, files: Files) -> str:
    """Formulas become MathML."""
    return FORMULA.sub(lambda found: mathml(found["latex"], found["tag"] == "div"), content)


# --------------------------------------------------------------------------------------------- formulas


def mathml(latex: str, display: bool) -> str:
    """A formula of a page, as MathML.

    Raises:
        ValueError: for a command that latex2mathml does not know.
    """
    made = latex2mathml.converter.convert(
        html.unescape(latex).strip(), display="block" if display else "inline"
    )
    if "\\" in made:
        raise ValueError(f"latex2mathml does not know a command of this formula: {latex.strip()}")
    # The spaces of TeX, as far as a browser would set others.
    made = FUNCTION.sub(r'<mo lspace="0.1em" rspace="0.1em">\2</mo>', made)
    made = BAR_OR_SLASH.sub(r'<mo stretchy="false" lspace="0" rspace="0">\2</mo>', made)
    made = made.replace("<mo>&#x02205;</mo>", "<mi>&#x02205;</mi>")
    return f'<div class="formula">{made}</div>' if display else made


# ------------------------------------------------------------------------------------------------ links


def outside_code(markdown: str, change: Callable[[str], str], code: re.Pattern[str] = CODE) -> str:
    """Apply a change to everything but code.

    Example:
        >>> outside_code("a `a` a", str.upper)
        'A `a` A'
    """
    parts, end = [], 0
    for found in code.finditer(markdown):
        parts += [change(markdown[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*parts, change(markdown[end:])])


def page_links(markdown: str, uri: str, known: Callable[[str], bool]) -> str:
    """Relative links as the site needs them; a link to a file that is no part of it becomes its text.

    Args:
        markdown: of a page.
        uri: of that page in the site.
        known: whether the site has a file of this uri.
    """
    whole = next((name for name in CUTS if uri.startswith(name.removesuffix(".md") + "/")), uri)
    source = "README.md" if whole == "index.md" else whole
    folder = (Path("docs", whole) if (ROOT / "docs" / whole).exists() else Path(source)).parent.as_posix()

    def changed(match: re.Match[str]) -> str:
        link, _, anchor = match["link"].partition("#")
        if (not link and whole not in CUTS) or "://" in link:
            return match[0]
        target = page_of(normpath(f"{folder}/{link}")) if link else whole
        if link in {part.uri for name in CUTS for part in sections(name)}:
            target = link  # the list of sections, which is made here
        if anchor and target in CUTS:
            target = addresses(target).get(anchor, target)
        if not known(target):
            return match["text"]
        here = relpath(target, Path(uri).parent.as_posix())
        return f"{match['image']}[{match['text']}]({here}{'#' + anchor if anchor else ''})"

    return LINK.sub(changed, markdown)


def page_of(path: str) -> str:
    """The uri in the site of a file of the repository.

    Example:
        >>> page_of("docs/theory.md"), page_of("notebooks/07_real_models.ipynb")
        ('theory.md', 'notebooks/07_real_models.md')
        >>> page_of("tests/exact/test_law.py")
        'tests/test_law.md'
    """
    special = {
        "README.md": "index.md",
        "docs/references.bib": "references.md",
        "notebooks": "notebooks/01_two_tokens.md",
    }
    return special.get(path, re.sub(r"\.(ipynb|py)$", ".md", path.removeprefix("docs/")))


# ------------------------------------------------------------------------------------------- made pages


def notebook_page(path: Path) -> str:
    """A notebook as Markdown: texts, code and outputs."""
    notebook = nbformat.read(path, as_version=4)
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.cell_type == "code":
            parts += [
                f"```python\n{cell.source}\n```",
                *(_output(output, cell.source) for output in cell.outputs),
            ]
    parts.append(f"[Download this notebook]({path.name}){{ download }}")
    return "\n\n".join(parts) + "\n"


def _output(output: Any, source: str) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        shown = ", ".join(dict.fromkeys(["drawn by the code above", *LABEL.findall(source)]))
        source = f"data:image/png;base64,{data['image/png'].strip()}"
        return f'<img class="output" alt="{html.escape(shown)}" src="{source}">'
    if "text/html" in data:
        return f'<div class="output">{data["text/html"]}</div>'
    text = output.get("text") or data.get("text/plain", "")
    return "" if not text.strip() else f"```text\n{text.rstrip()}\n```"


def references_page(bibliography: str) -> str:
    """references.bib as a page; every key is an anchor."""
    lines = ["# References", "", "The code and these pages cite papers by their key.", ""]
    for entry in sorted(ENTRY.finditer(bibliography), key=lambda found: found["key"]):
        fields = {
            field["name"]: field["value"].replace("{", "").replace("}", "").replace("\\&", "&")
            for field in FIELD.finditer(entry["fields"])
        }
        authors = [" ".join(reversed(name.split(", "))) for name in fields["author"].split(" and ")]
        place = fields.get("journal") or fields.get("booktitle") or fields.get("publisher")
        parts = [", ".join(authors), f"*{fields['title']}*", *([place] if place else []), fields["year"]]
        text = ". ".join(part.rstrip(".") for part in parts) + "."
        if "eprint" in fields:
            text += f" [arXiv:{fields['eprint']}](https://arxiv.org/abs/{fields['eprint']})."
        if "doi" in fields:
            text += f" [doi:{fields['doi']}](https://doi.org/{fields['doi']})."
        if "url" in fields:
            text += f" <{fields['url']}>."
        if "note" in fields:
            text += f" {fields['note'].rstrip('.')}."
        lines += [f'<a id="{entry["key"]}"></a>', "", f"**{entry['key']}**", f": {text}", ""]
    return "\n".join(lines)


def gallery_page(folder: Path) -> str:
    """A small picture of every figure that has one, linked to its data file."""
    lines = [
        "# Figures",
        "",
        "These are the figures and tables of `make reproduce`. Each links to its numbers and its claims.",
        "",
        '<div class="gallery">',
    ]
    for path in sorted(folder.glob("*.json"), key=lambda path: (path.stem not in FIRST_FIGURES, path.stem)):
        document = json.loads(path.read_text(encoding="utf-8"))
        title, source = (html.escape(document[key], quote=False) for key in ("title", "source"))
        picture = path.with_suffix(".png")
        shown = f'<img src="{picture.name}" alt="{title}" loading="lazy">' if picture.exists() else ""
        failed = sum(bool(check["failures"]) for check in document["checks"])
        lines.append(
            f'<a href="{path.name}">{shown}<b>{title}</b><small>{source}</small>'
            f"<small>{len(document['checks']) - failed} of {len(document['checks'])} claims hold</small></a>"
        )
    return "\n".join([*lines, "</div>", ""])


def evidence_pages(claims: Sequence[Claim]) -> Iterator[tuple[str, str]]:
    """A page for every test file that is evidence of a claim: its tests that are, under their names.

    Yields:
        (uri, Markdown).
    """
    stated: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for claim in claims:
        for evidence in claim.evidence:
            file, _, test = evidence.partition("::")
            if test:
                stated[file][test].append(claim.id)
    for file, tests in sorted(stated.items()):
        uri = page_of(file)
        claims_page = relpath("claims/index.md", Path(uri).parent.as_posix())
        lines = [f"# {file}", "", f"Its tests that are evidence of [claims]({claims_page})."]
        source = (ROOT / file).read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef) and node.name in tests:
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                code = "\n".join(source.splitlines()[first - 1 : node.end_lineno])
                lines += ["", f"## `{node.name}` {{ #{node.name} }}", "", ", ".join(tests[node.name]) + "."]
                lines += ["", "```python", code, "```"]
        yield uri, "\n".join(lines) + "\n"


def api_pages() -> Iterator[tuple[str, str]]:
    """A page for every public name of docs/names.md, with its docstring: (uri, Markdown)."""
    for title, module, names in _public_names():
        homes = exported(module)
        for name in names:
            home = homes.get(name, f"{module}.{name}")
            yield f"api/{title}.{name}.md", f"# {name}\n\nFrom `{title}`.\n\n::: {home}\n"


def linked_names(page: str) -> str:
    """docs/names.md with a link from every name to its page."""
    parts = re.split(r"^## `(.*)`$", page, flags=re.MULTILINE)
    for number in range(1, len(parts), 2):
        title = parts[number]
        parts[number + 1] = API_NAME.sub(
            lambda row, title=title: f"| [`{row[1]}`](api/{title}.{row[1]}.md) | {row[2]} |",
            parts[number + 1],
        )
        parts[number] = f"## `{title}`"
    return "".join(parts)


def _public_names() -> Iterator[tuple[str, str, list[str]]]:
    """The sections of docs/names.md: title, module, names."""
    page = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")
    parts = re.split(r"^## `(.*)`$", page, flags=re.MULTILINE)
    modules = dict(zip(TITLES, MODULES, strict=True))
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        yield title, modules[title], [name for name, _ in API_NAME.findall(text)]


def exported(package: str) -> dict[str, str]:
    """What can be imported from a package, and the full name of each; its modules are left out."""
    found: dict[str, str] = {}
    stub = ROOT / package.replace(".", "/") / "__init__.pyi"
    for node in ast.parse(stub.read_text(encoding="utf-8")).body if stub.exists() else []:
        if isinstance(node, ast.ImportFrom) and node.module:
            module = f"{package}.{node.module}"
            further = exported(module)
            found |= {alias.name: further.get(alias.name, f"{module}.{alias.name}") for alias in node.names}
    return found


def modules_of(room: str) -> list[str]:
    """Dotted names of the modules of a room that define something public."""
    path = ROOT / "spectheory" / room
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return [
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for file in files
        if any(map(_is_public, ast.parse(file.read_text(encoding="utf-8")).body))
    ]


def _is_public(node: ast.stmt) -> bool:
    """A function, a class, or a table such as ``verifiers``."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return not node.name.startswith("_")
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) == "Registry"
    )
