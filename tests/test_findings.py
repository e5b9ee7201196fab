"""The pages of findings have what ``scripts/findings.py`` runs; running it needs the released packages."""

import pytest

from scripts import load
from spectheory.auditing.subjects.libraries import ROUNDS, SUBJECTS

script = load("scripts", "findings")
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in script.PAGES.glob("*.md")}
INDEX = PAGES.pop("index")


@pytest.mark.parametrize("name", PAGES)
def test_a_page(name: str) -> None:
    """A known sampler, a program that compiles, and changes of lines that are there once."""
    finding = script.finding_of(PAGES[name])
    assert {**SUBJECTS, **ROUNDS}[finding.audit[0]].package
    compile(finding.reproduction, name, "exec")
    text = "".join(old for old, _ in finding.changes)
    assert script.fixed(text, finding.changes) == "".join(new for _, new in finding.changes)
    assert f"| [{name}]({name}.md) |" in INDEX


def test_what_is_not_a_finding() -> None:
    page = PAGES["hsd"]
    for part in ("**Audit.**", "```python", "+++", "```diff"):
        with pytest.raises(ValueError, match="a page has an audit"):
            script.finding_of(page.replace(part, "") if part in page else page.replace("\n--- ", "\n"))
    for text in ("a\nb\nb\n", "ab\n"):
        with pytest.raises(ValueError, match="expected once: b"):
            script.fixed(text, [("b\n", "c\n")])
    assert script.fixed("a\nb\nab\n", [("b\n", "c\n")]) == "a\nc\nab\n"
