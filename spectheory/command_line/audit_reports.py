"""Reports of audits for other tools: SARIF, JUnit's XML, and a table for a pull request."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from spectheory.foundation.documents import count_text, replace_file, to_json

if TYPE_CHECKING:
    from pathlib import Path

    from spectheory.auditing.verdicts.audit_certificate import AuditCertificate
    from spectheory.auditing.verdicts.cases import AuditCase

_SARIF_VERSION = "2.1.0"
LABEL = "draft verification"
LETTER = 6.6
"""The mean width of a letter of the badge, in pixels, at a font size of 11."""
_BADGES = {
    "not lossless": "#c0392b",
    "undecided": "#b7950b",
    "equals its stated relaxation": "#2471a3",
    "lossless": "#1e8449",
}
"""Verdict -> colour, the worst first."""
_LEVELS = {"not lossless": "error", "undecided": "warning", "boundary": "warning"}


def write_report(file: Path, audits: list[AuditCertificate]) -> None:
    """Write the audits in the format of the file's ending: .sarif, .xml or .md."""
    if file.suffix == ".sarif":
        replace_file(file, json.dumps(sarif(audits), ensure_ascii=False) + "\n")
    else:
        replace_file(file, junit(audits) if file.suffix == ".xml" else markdown(audits))


def sarif(audits: list[AuditCertificate]) -> dict[str, Any]:
    """Build one SARIF run of the audits: a defect is an error; a forbidden token or no decision is a warning.

    A lossless sampler has no result.  The properties of the run hold the verdict and the scope of each audit.

    Args:
        audits: at least one.  If the file of a sampler is in the current directory, its path is relative.
    """
    results = [
        {
            "ruleId": rule.replace(" ", "-"),
            "level": _LEVELS[rule],
            "message": {"text": f"{found.sampler}: {text}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": found.provenance.file},
                        "region": {"startLine": found.provenance.line},
                    }
                }
            ],
            "properties": {"scope": to_json(found.scope), "shapes": found.scope.shapes_text()},
            "partialFingerprints": {"sampler/v1": f"{found.sampler} {found.provenance.sha256}"},
        }
        for found in audits
        for rule, texts in ((found.verdict, found.reasons), ("boundary", found.boundary))
        for text in texts
    ]
    rules = [
        {
            "id": rule.replace(" ", "-"),
            "shortDescription": {"text": f"What is said of a sampler: {rule}."},
        }
        for rule in _LEVELS
    ]
    driver = {"name": "spectheory", "version": version("spectheory"), "rules": rules}
    verdicts = [
        {
            "sampler": found.sampler,
            "verdict": found.headline(),
            "tokens per call": found.tokens_text(),
            "scope": to_json(found.scope),
        }
        for found in audits
    ]
    run = {"tool": {"driver": driver}, "results": results, "properties": {"verdicts": verdicts}}
    return {"version": _SARIF_VERSION, "runs": [run]}


def junit(audits: list[AuditCertificate]) -> str:
    """Build JUnit's XML from the audits: one suite per sampler, with a test per pair and one of the verdict.

    A defect is a failure, and so is a pair with a wrong law.  An undecided verdict is an error.  Refused or
    omitted parts are skipped tests.
    """
    root = ElementTree.Element("testsuites", name="spectheory audit")
    for found in audits:
        tests = [(case.where, "failure" if case.is_wrong else "", _distance(case)) for case in found.cases]
        tests += [(text, "skipped", "not audited") for text in found.scope.refused]
        outcome = "failure" if found.is_defective else "" if found.is_decided else "error"
        tests.append(("verdict", outcome, "; ".join(found.reasons)))
        counts = Counter(kind for _, kind, _ in tests)
        suite = ElementTree.SubElement(root, "testsuite", name=_printable(found.sampler))
        suite.attrib |= {"tests": str(len(tests)), "skipped": str(counts["skipped"])}
        suite.attrib |= {"failures": str(counts["failure"]), "errors": str(counts["error"])}
        said = ElementTree.SubElement(suite, "properties")
        for name, value in _said(found).items():
            ElementTree.SubElement(said, "property", name=name, value=_printable(value))
        place: dict[str, Any] = {
            "classname": _printable(found.sampler),
            "file": _printable(found.provenance.file),
        }
        for name, kind, message in tests:
            test = ElementTree.SubElement(suite, "testcase", name=_printable(name), **place)
            if kind:
                ElementTree.SubElement(test, kind, message=_printable(message))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def markdown(audits: list[AuditCertificate]) -> str:
    """Build a table of the audits for a pull request."""
    counts = Counter(found.verdict for found in audits)
    columns = ["sampler", "verdict", "asked (V, L, K)", "because"]
    lines = ["### Audit of samplers", "", ", ".join(f"{n} × {verdict}" for verdict, n in counts.items()), ""]
    lines += [_line(columns), _line(["---"] * len(columns))]
    for found in audits:
        name = found.sampler.partition("==")[0]
        because = "; ".join([*found.reasons, *(f"boundary: {text}" for text in found.boundary)])
        lines.append(_line([f"`{name}`", found.verdict, found.scope.shapes_text(), because]))
    for found in audits:
        lines += ["", f"<details><summary><code>{found.sampler}</code></summary>", ""]
        lines += [f"- {name}: {_cell(value)}" for name, value in _said(found).items()]
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def badge_of(audits: list[AuditCertificate]) -> str:
    """Draw the worst verdict and the number of audits as a badge.

    Args:
        audits: at least one.
    """
    worst = min((found.verdict for found in audits), key=[*_BADGES].index)
    return badge(worst, "" if len(audits) == 1 else f"{len(audits)} samplers")


def badge(verdict: str, scope: str) -> str:
    """Draw a verdict and what it is about as an SVG image of one line, in the colour of the verdict."""
    said = ", ".join(filter(None, [verdict, scope]))
    widths = [round(LETTER * len(text)) + 12 for text in (LABEL, said)]
    places = widths[0] / 2, widths[0] + widths[1] / 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{sum(widths)}" height="20" role="img">'
        f"<title>{LABEL}: {said}</title>"
        f'<rect width="{widths[0]}" height="20" fill="#444"/>'
        f'<rect x="{widths[0]}" width="{widths[1]}" height="20" fill="{_BADGES[verdict]}"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,sans-serif" font-size="11">'
        f'<text x="{places[0]}" y="14">{LABEL}</text><text x="{places[1]}" y="14">{said}</text></g></svg>\n'
    )


def _distance(case: AuditCase) -> str:
    return f"total variation {float(case.total_variation - case.undecided):.3g}"


def _said(found: AuditCertificate) -> dict[str, str]:
    """Describe a verdict in words: the audited code, the tests, and the counterexample.  Label -> text."""
    from spectheory.auditing.verdicts.audit_certificate import rows_in_words

    code, scope = found.provenance, found.scope
    wrong, asked = found.counterexample, count_text(len(found.cases), "case")
    counterexample, rows = ("", "") if wrong is None else (wrong.in_words(), rows_in_words(wrong))
    said = {
        "verdict": found.verdict,
        "code": f"{code.package} {code.version} {code.file}".strip() + f", sha256 {code.sha256[:16]}",
        "note": found.note,
        "stated law": found.relaxation,
        "counterexample": counterexample,
        "rows there": rows,
        "tokens per call": found.tokens_text(),
        "asked": f"{asked} with (V, L, K) = {scope.shapes_text()}" if found.cases else found.scope_text(),
        "drafts": ", ".join(scope.processes),
        "batches": found.batches_text(),
        "refused or left out": "; ".join(scope.refused),
        "arithmetic": scope.arithmetic,
        "tolerance": scope.tolerance,
    }
    return {name: value for name, value in said.items() if value}


def _cell(text: str) -> str:
    """Write a text on one line of Markdown, with the characters of markup escaped."""
    return re.sub(r"([\\|<>`*_\[\]])", r"\\\1", " ".join(text.split()))


def _line(cells: list[str]) -> str:
    is_code = [cell.startswith("`") for cell in cells]
    shown = [cell if code else _cell(cell) for cell, code in zip(cells, is_code, strict=True)]
    return f"| {' | '.join(shown)} |"


def _printable(text: str) -> str:
    """Remove the characters that XML does not allow."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)
