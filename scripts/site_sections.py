"""Long pages as several pages of the site: theory by section, commands one by one, claims as cards.

The files in ``docs/`` stay one file each.  ``site_pages.py`` calls this module when the site is built.
"""

import html
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
STATEMENT = re.compile(r"^> \*\*Statement (\d+)\.(\d+)\*\*", re.MULTILINE)
HEADING = re.compile(r"^#{1,6} (.*)$", re.MULTILINE)
CUTS = {
    "theory.md": re.compile(r"^(?=## §|### )", re.MULTILINE),
    "command_line.md": re.compile(r"^(?=## `)", re.MULTILINE),
    "auditing.md": re.compile(r"^(?=## (?:Audit every pull request|Verdicts)$)", re.MULTILINE),
    "scored_selection.md": re.compile(r"^(?=## (?:On random|On language|Above the))", re.MULTILINE),
    "machine_proofs.md": re.compile(r"^(?=## (?:From the definitions|The main theorems))", re.MULTILINE),
    "benchmarks/README.md": re.compile(r"^(?=## )", re.MULTILINE),
}
"""Page -> where a new page of the site begins."""


class Section(NamedTuple):
    """A part of a long page: its address in the site, its title and its text."""

    uri: str
    title: str
    text: str


def slug(heading: str) -> str:
    """The anchor of a heading.

    Example:
        >>> slug("§5 Several paths"), slug("`plan`")
        ('5-several-paths', 'plan')
    """
    return re.sub(r"[\s]+", "-", re.sub(r"[^\w\- ]", "", heading.lower()).strip())


@cache
def sections(name: str) -> list[Section]:
    """The parts of a page of ``docs/`` or another folder; the first keeps the page's address.

    A part of the third level has the second-level heading above it in its title: *Several paths: Recoupling*.
    """
    path = ROOT / name if "/" in name else ROOT / "docs" / name
    first, *rest = CUTS[name].split(path.read_text(encoding="utf-8"))
    found = [Section(name, "", first)]
    above = ""
    for text in rest:
        marks, heading = re.match(r"(#+) (.*)", text).groups()  # type: ignore[union-attr]
        above = heading if marks == "##" else above
        title = heading if marks == "##" else f"{above}: {heading}"
        body = text.partition("\n")[2]
        uri = f"{name.removesuffix('.md')}/{slug(heading)}.md"
        found.append(Section(uri, title, f'# {title}\n\n<a id="{slug(heading)}"></a>\n{body}'))
    return found


@cache
def addresses(name: str) -> Mapping[str, str]:
    """Anchor of a long page -> the page of the site that has it."""
    found: dict[str, str] = {}
    for section in sections(name):
        found |= {slug(heading): section.uri for heading in HEADING.findall(section.text)}
        found |= dict.fromkeys(re.findall(r'<a id="([^"]+)"', section.text), section.uri)
        found |= {f"statement-{a}-{b}": section.uri for a, b in STATEMENT.findall(section.text)}
    return found


# ---------------------------------------------------------------------------------------------- claims

FILTER = """<div class="claim-filter" role="group" aria-label="Show claims by verdict">
{buttons}
</div>

<script>
const buttons = document.querySelectorAll(".claim-filter button")
buttons.forEach(button => button.onclick = () => {
  const wanted = button.dataset.verdict, pressed = button.getAttribute("aria-pressed") === "true"
  buttons.forEach(each => each.setAttribute("aria-pressed", String(each === button && !pressed)))
  document.querySelectorAll(".claim").forEach(claim =>
    claim.hidden = !pressed && claim.dataset.verdict !== wanted)
})
</script>
"""


def claim_cards(page: str) -> str:
    """The page of the claims with a card per row of its tables: verdict, claim, note; evidence is folded.

    Raises:
        ValueError: a row of a table does not have the columns of the head.
    """
    head = "| id | place | claim | verdict | note | N | every pair of | evidence |"
    lines, verdicts = [], dict.fromkeys(re.findall(r"^\| .*? \| \*\*([a-z ]+)\*\* \| ", page, re.MULTILINE))
    in_table = False
    for line in page.splitlines():
        if line == head:
            in_table = True
        elif in_table and line.startswith("|---"):
            continue
        elif in_table and line.startswith("| "):
            lines += _card(line)
        else:
            in_table = False
            lines.append(line)
    buttons = "\n".join(
        f'<button type="button" aria-pressed="false" data-verdict="{verdict}">{verdict}</button>'
        for verdict in verdicts
    )
    text = "\n".join(lines)
    first = text.index("\n## ")
    return f"{text[:first]}\n\n{FILTER.replace('{buttons}', buttons)}{text[first:]}\n"


def _card(row: str) -> list[str]:
    cells = [cell.strip() for cell in row.strip().strip("|").split(" | ")]
    if len(cells) != 8:
        raise ValueError(f"a row of the claims has {len(cells)} cells: {row}")
    name, place, claim, verdict, note, number, shapes, evidence = cells
    verdict = verdict.strip("*")
    facts = [f"{number} instances" * bool(number), f"every pair of: {shapes}" * bool(shapes)]
    return [
        "",
        f'<div class="claim" data-verdict="{verdict}" markdown="1">',
        "",
        f'<span class="verdict {slug(verdict)}">{verdict}</span> **{html.escape(name)}** · {place}',
        "",
        claim,
        "",
        *([note, ""] if note else []),
        '<details markdown="1"><summary>Evidence</summary>',
        "",
        ". ".join(fact for fact in facts if fact),
        "",
        *(f"- {one}" for one in evidence.split("<br>") if one),
        "",
        "</details>",
        "</div>",
        "",
    ]


# ------------------------------------------------------------------------------------------ scoreboard

LETTERS = {
    "lossless": ("L", "lossless"),
    "not lossless": ("N", "not-lossless"),
    "equals its stated relaxation": ("R", "relaxation"),
    "undecided": ("?", "undecided"),
}
"""Verdict -> its letter and its colour on the scoreboard.  A release without a verdict is grey."""

ROW = re.compile(r"^\| `([^`]+)` \| ([^|]*) \| ([^|]*) \| ([^|]*?) ?\|", re.MULTILINE)


def newest_releases(audits: str) -> Mapping[str, tuple[str, str]]:
    """Sampler -> its newest release and the verdict on it, from docs/audits.md."""
    table = audits[: audits.index("\n- **sampler**")]
    return {name: (release, verdict) for name, release, _, verdict in ROW.findall(table) if "==" not in name}


def badges(audits: str) -> Mapping[str, tuple[str, str]]:
    """Sampler -> the verdict and the scope of its badge."""
    return {name: (verdict, release) for name, (release, verdict) in newest_releases(audits).items()}


SUITE_LETTERS = {
    "conforms": ("C", "lossless"),
    "does not conform": ("N", "relaxation"),
    "undecided": ("?", "undecided"),
}
"""Verdict of the suite -> its letter and colour; N is not red: a lossless sampler may have another law."""


def scoreboard(audits: str, by_release: str, suite: Mapping[str, Mapping[str, Any]]) -> str:
    """The page *Is it lossless?*: a grid of samplers and releases, from stored results.

    Args:
        audits: docs/audits.md, every sampler's newest release on all pairs.
        by_release: docs/audits_by_release.md, older releases on two pairs.
        suite: sampler -> the conformance suite's verdict, as ``benchmarks/conformance_audits.py`` stores it.
    """
    date = re.search(r"\d{4}-\d\d-\d\d", audits)[0]  # type: ignore[index]
    newest = newest_releases(audits)
    older: dict[str, dict[str, tuple[str, str]]] = {}
    for name, releases, verdict, reason in ROW.findall(by_release[: by_release.index("\n## ")]):
        for release in releases.split(", "):
            older.setdefault(name, {})[release] = (verdict, reason)
    letters = [(*told, verdict) for verdict, told in LETTERS.items()] + [("·", "never", "not audited")]
    legend = [
        f'<span class="score {colour}">{letter}</span> {verdict}' for letter, colour, verdict in letters
    ]
    head = '<th>sampler</th><th>newest</th><th colspan="6">earlier</th><th>suite</th><th>badge</th>'
    rows = []
    for name, (release, verdict) in newest.items():
        version = release.split()[-1]
        others = [(each, *told) for each, told in older.get(name, {}).items() if each != version][:6]
        cells = [_cell(version, verdict, "on all pairs"), *(_cell(*told) for told in others)]
        cells += ["<td></td>"] * (7 - len(cells))
        badge = f'<td><a href="#{name}"><img src="badges/{name}.svg" alt="{name}: {verdict}"></a></td>'
        cells.append(_suite_cell(suite.get(name, {"skipped": "it was not run"})))
        rows.append(f'<tr id="{name}"><th scope="row"><code>{name}</code></th>{"".join(cells)}{badge}</tr>')
    return f"""# Is it lossless?

Released samplers by release, run on {date}. The first cell is the newest release on all pairs, from
[Audits](audits.md). The others are earlier releases on two pairs, from
[Audits by release](audits_by_release.md). The column *suite* has the verdicts of the
[conformance suite](conformance.md) on the newest release: C conforms, N does not conform to the
law that is named when you point at it, ? undecided, · not run, with the reason. A sampler can be
lossless and not conform, because the suite judges one algorithm: mlx-lm draws from the target and
keeps the draft where both agree.

## vLLM, SGLang, transformers and others

<p class="score-legend">{" ".join(legend)}</p>

<div class="scoreboard"><table><thead><tr>{head}</tr></thead><tbody>
{chr(10).join(rows)}
</tbody></table></div>

Every row has an address, such as `is_it_lossless.html#vllm`. `spectheory audit NAME --badge FILE` writes the
badge of your own run.
"""


def _cell(release: str, verdict: str, reason: str) -> str:
    letter, colour = LETTERS.get(verdict, ("·", "never"))
    told = html.escape(f"{release}: {verdict}{f', {reason}' if reason else ''}", quote=True)
    shown = f'<span class="score {colour}" title="{told}">{letter}</span>'
    return f"<td>{shown}<small>{html.escape(release)}</small></td>"


def _suite_cell(row: Mapping[str, Any]) -> str:
    letter, colour = SUITE_LETTERS.get(row.get("verdict", ""), ("·", "never"))
    told = row.get("skipped") or f"{row['version']}: {row['verdict']} to {row['claims']}, by {row['by']}"
    return f'<td><span class="score {colour}" title="{html.escape(told, quote=True)}">{letter}</span></td>'
