"""Audits for readers of other formats: a Markdown page, and SARIF for tools that show findings in code."""

from __future__ import annotations

import datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spectheory.auditing import AuditCertificate

_INTRODUCTION = """\
# Audits of shipped samplers

This page is written by `make audits` ({date}). It speaks of the released code of the versions named, run
unmodified on a CPU with its random numbers replaced. The hash is of the file that holds the sampler. How an
audit works, and how to audit a sampler of your own: [Auditing](auditing.md).

| sampler | code | verdict | total variation | forbidden token | samples |
|---|---|---|---|---|---|
"""

_COLUMNS = """
The total variation is the largest over {pairs} pairs, between the output completed with the target and the
target. A forbidden token is one to which the target gives probability 0: a coin of exactly 0 that is at most
a ratio of 0 makes it, once in 2^24 numbers of float32 and in 2^53 of float64. The samples are what a χ² test
at 99 % needs to see the difference with a power of 99 %, on the pair where it needs the fewest. Where random
numbers are multiplied, the total variation is a lower bound and the samples are an estimate.
"""

_ASSUMED = """
## What is assumed

"""


def page(audits: list[AuditCertificate], date: datetime.date) -> str:
    """The audits as a Markdown page."""
    lines = [_INTRODUCTION.format(date=date.isoformat())]
    for found in audits:
        code = f"{found.provenance.package} {found.provenance.version}".strip()
        distance = max((case.total_variation - case.undecided for case in found.cases), default=0)
        bound = "≥ " if any(case.undecided for case in found.cases) else ""
        forbidden = str(found.forbidden) if found.forbidden else "no"
        samples = "never" if found.samples is None else f"{found.samples:.2g}"
        lines.append(
            f"| `{found.sampler}` | {code} | {found.verdict} | {bound}{float(distance):.3g} | "
            f"{forbidden} | {samples} |\n"
        )
    lines.append(_COLUMNS.format(pairs=len(audits[0].cases)))
    for found in audits:
        where = f"`{found.provenance.file}`, sha256 `{found.provenance.sha256}`"
        lines.append(f"\n## {found.sampler}\n\n{where}\n\n")
        lines += [f"- {text}\n" for text in (*found.reasons, found.note) if text]
        lines += [f"- stated: {found.relaxation}\n"] if found.relaxation else []
        lines += [f"- batches of two requests: {', '.join(found.batches)}\n"] if found.batches else []
        lines += [f"- random numbers: {text}\n" for text in found.primitives]
    lines.append(_ASSUMED)
    lines += [f"- {text}\n" for text in audits[0].assumptions]
    return "".join(lines)


_SARIF_VERSION = "2.1.0"
_LEVELS = {"defect": "error", "not decided": "warning"}


def sarif(audits: list[AuditCertificate]) -> dict[str, Any]:
    """The audits as one SARIF run: a defect is an error, what is not decided a warning.

    Args:
        audits: at least one; a sampler of a file of the current directory is named relative to it.
    """
    results = [
        {
            "ruleId": found.verdict.replace(" ", "-"),
            "level": _LEVELS[found.verdict],
            "message": {"text": f"{found.sampler}: {reason}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": found.provenance.file},
                        "region": {"startLine": found.provenance.line},
                    }
                }
            ],
            "partialFingerprints": {"sampler/v1": f"{found.sampler} {found.provenance.sha256}"},
        }
        for found in audits
        if found.verdict in _LEVELS
        for reason in found.reasons
    ]
    rules = [
        {
            "id": verdict.replace(" ", "-"),
            "shortDescription": {"text": f"The verdict on a sampler: {verdict}."},
        }
        for verdict in _LEVELS
    ]
    driver = {"name": "spectheory", "version": version("spectheory"), "rules": rules}
    return {"version": _SARIF_VERSION, "runs": [{"tool": {"driver": driver}, "results": results}]}
