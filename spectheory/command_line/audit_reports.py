"""Audits as a Markdown page, and for other tools: SARIF, JUnit, and a table for a pull request."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from fractions import Fraction
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from spectheory.auditing.verdicts.audit_certificate import ASSUMPTIONS
from spectheory.foundation.documents import count_text, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spectheory.auditing.verdicts.audit_certificate import AuditCase, AuditCertificate
    from spectheory.auditing.verdicts.audit_changes import AuditChanges

_INTRODUCTION = """\
# Audits of shipped samplers

[Auditing](auditing.md) explains how an audit works, and how to audit your sampler. `make audits` wrote this
page on {date}. It is about the released code of the named versions, run unmodified on a CPU with its random
numbers replaced. A run that is resumed keeps the entries of the same releases that it had before.
[Findings](findings/index.md) has the defects that are ready to be filed.

| sampler | release | rule | verdict | K | trees | total variation | boundary | first bad | first good |
|---|---|---|---|---|---|---|---|---|---|
"""

_COLUMNS = """
- **sampler**: the name for `spectheory audit`.
- **release**: the version, or the commit of a repository without releases.
- **rule**: the verification rule that the sampler implements.
- **verdict**: one of the five [verdicts](auditing.md#verdicts). A relaxation is compared with the law that
  it states.
- **K**, **trees**: the numbers of drafted paths, and whether paths without a common law were asked about.
- **total variation**: the largest over all cases, between the output completed with the target and the
  target. Where random numbers are multiplied it is a lower bound. Below 4 (L+1) (Λ+V+8) 2^-24, with Λ the
  largest |log| of a positive probability, it is rounding.
- **boundary**: the largest probability of a token to which the target gives probability 0. A coin of
  exactly 0 that is compared with a ratio of 0 by *at most* accepts one, once in 2^24 numbers of float32 and
  once in 2^53 of float64. This probability is a part of the total variation, on which the verdict rests. It
  is reported beside the verdict, because a text that a grammar or a filter excludes may not come out at
  all, however rare.
- **first bad**, **first good**: among the releases of [Audits by release](audits_by_release.md), the oldest
  with a defect, and the first one after the last defect.

The details name the samples that a χ² test at 99 % needs to find the difference with a power of 99 %, on the
pair where it needs the fewest. Where random numbers are multiplied it is an estimate.

## Details
"""

_ASSUMED = """
## What is assumed

A verdict is on the shapes (V, L, K) that are listed: vocabulary, drafted tokens, drafted paths. Rows are
float32, and the law is computed in rationals. Every audit rests on this:

"""

_MISSING = """
## What is not audited

- TensorRT-LLM: the package index holds a source package of 10 kB, which fetches the wheel from another index,
  with the compiled library in it. `audit fetch` downloads wheels of the package index only. A checkout's
  function is audited with `--as`.
- The tree sampling of SGLang and of FlashInfer is compiled for a device; no interpreter runs it.
- llama.cpp and OpenVINO GenAI sample in C++ and export no function of drafts, rows and random numbers.
- vLLM Ascend is audited where it verifies in torch; its kernels need a device's own compiler.
"""

_RULES = {
    "block": "block",
    "ensemble": "token, ensemble",
    "fly": "deferred rejection (FLy)",
    "gemma4": "token, with its drafter",
    "synthetic": "synthetic rates",
    "hsd": "hierarchical (HSD)",
    "hsd-eagle": "hierarchical (HSD)",
}
"""A sampler's name, or its last part -> the rule; every other sampler verifies token by token."""
_TREES = ("eagle", "economize", "hsd-eagle")
"""Samplers of trees."""
BAD = {
    "vllm-ascend": ("0.13.0", "0.23.0"),
    "vllm": ("0.23.0", "0.27.1"),
    "vllm-v2": ("0.27.1", "0.29.0"),
    "vllm-v2-block": ("0.27.1", "0.33.0"),
    "vllm-v2-synthetic": ("0.27.1", "0.29.0"),
}
"""Sampler -> the first bad release of docs/audits_by_release.md, and the first good one after it."""


def page(entries: Sequence[Mapping[str, Any]], date: datetime.date) -> str:
    """Audits as a Markdown page: one table, and the details of every audited file, folded."""
    lines = [_INTRODUCTION.format(date=date.isoformat())]
    lines += [
        f"| {' | '.join([*each['cells'], *BAD.get(each['sampler'], ('', ''))])} |\n" for each in entries
    ]
    lines.append(_COLUMNS)
    of_files: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for each in entries:
        of_files.setdefault((each["package"], each["file"], each["sha256"]), []).append(each)
    for (package, file, digest), of_file in of_files.items():
        name = f"{package}: <code>{file}</code>".removeprefix(": ")
        lines.append(f'\n<details markdown="1">\n<summary>{name}</summary>\n\nsha256 `{digest}`\n\n')
        shared = [
            text for text in of_file[0]["details"] if all(text in other["details"] for other in of_file)
        ]
        lines += [f"- {text}\n" for text in shared]
        for each in of_file:
            lines += [f"- `{each['sampler']}`: {text}\n" for text in each["details"] if text not in shared]
        lines.append("\n</details>\n")
    lines.append(_ASSUMED)
    lines += [f"- {text}\n" for text in ASSUMPTIONS]
    lines.append(_MISSING)
    return "".join(lines)


def entry(found: AuditCertificate) -> dict[str, Any]:
    """What a page says of a sampler, as plain data that can be kept."""
    distance = max((case.total_variation - case.undecided for case in found.cases), default=0)
    bound = "≥ " if any(case.undecided for case in found.cases) else ""
    numbers = sorted({case.num_drafts for case in found.cases})
    code = found.provenance
    cells = [
        f"`{found.sampler}`",
        f"{code.package} {code.version}".strip(),
        _RULES.get(found.sampler, _RULES.get(found.sampler.rpartition("-")[2], "token")),
        found.verdict,
        f"{numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else "".join(map(str, numbers)),
        "yes" if found.sampler in _TREES else "no",
        f"{bound}{float(distance):.3g}",
        _boundary(found.forbidden),
    ]
    return {
        "sampler": found.sampler,
        "verdict": found.verdict,
        "package": code.package,
        "file": code.file,
        "sha256": code.sha256,
        "cells": cells,
        "details": _details(found),
    }


def _boundary(probability: Fraction) -> str:
    exact = str(probability)
    return (exact if len(exact) < 30 else f"{float(probability):.2g}") if probability else "no"


def _details(found: AuditCertificate) -> list[str]:
    """What is said of a sampler below the table, one sentence each."""
    counterexample = found.counterexample
    return [
        *found.reasons,
        *[f"boundary: {text}" for text in found.boundary],
        *[text for text in (found.note,) if text],
        *([] if counterexample is None else [f"counterexample: {counterexample.in_words()}"]),
        *([f"stated: {found.relaxation}"] if found.relaxation else []),
        f"asked: {count_text(len(found.cases), 'case')} with (V, L, K) = {found.scope.shapes_text()}",
        *[f"refused or left out: {text}" for text in found.scope.refused],
        *([f"batches: {found.batches_text()}"] if found.batches else []),
        *[f"random numbers: {text}" for text in found.primitives],
        *[f"stand-in: {text}" for text in found.stand_ins],
        *([] if found.samples is None else [f"seen by a χ² test with {found.samples:.2g} samples"]),
        *[f"probed: {text}" for text in found.probes],
    ]


_SARIF_VERSION = "2.1.0"
_LEVELS = {"defect": "error", "not decided": "warning", "boundary": "warning"}


def sarif(audits: list[AuditCertificate]) -> dict[str, Any]:
    """The audits as one SARIF run: a defect is an error; a forbidden token, or no decision, is a warning.

    A lossless sampler has no result.  The properties of the run have the verdict and the scope of each.

    Args:
        audits: at least one; a sampler of a file of the current directory is named relative to it.
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
        {"sampler": found.sampler, "verdict": found.headline(), "scope": to_json(found.scope)}
        for found in audits
    ]
    run = {"tool": {"driver": driver}, "results": results, "properties": {"verdicts": verdicts}}
    return {"version": _SARIF_VERSION, "runs": [run]}


def junit(audits: list[AuditCertificate]) -> str:
    """The audits as JUnit's XML: a suite per sampler, with a test per pair and one for the verdict.

    A pair with a wrong law and a defect are failures, and a verdict that is not decided is an error.  What
    was refused or left out is a skipped test.
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


def markdown(audits: list[AuditCertificate], changes: AuditChanges | None = None) -> str:
    """The audits as a table for a pull request, with what changed against a base."""
    words = changes.changes if changes is not None else ()  # in the order of the audits
    counts = Counter(found.verdict for found in audits)
    columns = ["sampler", "verdict", *(["before", "change"] if words else []), "asked (V, L, K)", "because"]
    lines = ["### Audit of samplers", "", ", ".join(f"{n} × {verdict}" for verdict, n in counts.items()), ""]
    lines += [_line(columns), _line(["---"] * len(columns))]
    for place, found in enumerate(audits):
        name = found.sampler.partition("==")[0]
        change = [words[place].before or "", words[place].what] if words else []
        because = "; ".join([*found.reasons, *(f"boundary: {text}" for text in found.boundary)])
        lines.append(_line([f"`{name}`", found.verdict, *change, found.scope.shapes_text(), because]))
    for left in words[len(audits) :]:
        lines.append(_line([f"`{left.sampler}`", "", left.before or "", left.what, "", ""]))
    for found in audits:
        lines += ["", f"<details><summary><code>{found.sampler}</code></summary>", ""]
        lines += [f"- {name}: {_cell(value)}" for name, value in _said(found).items()]
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _distance(case: AuditCase) -> str:
    return f"total variation {float(case.total_variation - case.undecided):.3g}"


def _said(found: AuditCertificate) -> dict[str, str]:
    """The code and the scope of a verdict, in words."""
    code, scope = found.provenance, found.scope
    counterexample = "" if found.counterexample is None else found.counterexample.in_words()
    said = {
        "verdict": found.verdict,
        "code": f"{code.package} {code.version} {code.file}".strip() + f", sha256 {code.sha256[:16]}",
        "note": found.note,
        "stated law": found.relaxation,
        "counterexample": counterexample,
        "asked": f"{count_text(len(found.cases), 'case')} with (V, L, K) = {scope.shapes_text()}",
        "drafts": ", ".join(scope.processes),
        "batches": found.batches_text(),
        "refused or left out": "; ".join(scope.refused),
        "arithmetic": scope.arithmetic,
        "tolerance": scope.tolerance,
    }
    return {name: value for name, value in said.items() if value}


def _cell(text: str) -> str:
    """A text on one line of Markdown, whose signs are not markup."""
    return re.sub(r"([\\|<>`*_\[\]])", r"\\\1", " ".join(text.split()))


def _line(cells: list[str]) -> str:
    is_code = [cell.startswith("`") for cell in cells]
    shown = [cell if code else _cell(cell) for cell, code in zip(cells, is_code, strict=True)]
    return f"| {' | '.join(shown)} |"


def _printable(text: str) -> str:
    """A text without the characters that XML does not have."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)
