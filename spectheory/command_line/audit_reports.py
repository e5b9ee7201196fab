"""Audits as a Markdown page, and as SARIF for tools that show findings in code."""

from __future__ import annotations

import datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from spectheory.foundation.documents import count_text, to_json

if TYPE_CHECKING:
    from spectheory.auditing.verdicts.audit_certificate import AuditCertificate

_INTRODUCTION = """\
# Audits of shipped samplers

This page is written by `make audits` ({date}). It speaks of the released code of the versions named, run
unmodified on a CPU with its random numbers replaced. The hash is of the file that holds the sampler. How an
audit works, and how to audit a sampler of your own: [Auditing](auditing.md).

| sampler | code | verdict | total variation | forbidden token | samples |
|---|---|---|---|---|---|
"""

_COLUMNS = """
The total variation is the largest over the pairs, between the output completed with the target and the
target. A relaxation is held against the law that it states. The samples are what a χ² test at 99 % needs to
see the difference with a power of 99 %, on the pair where it needs the fewest. Where random numbers are
multiplied, the total variation is a lower bound and the samples are an estimate.

A forbidden token is one to which the target gives probability 0. A coin of exactly 0 that is compared with a
ratio of 0 by *at most* makes one, once in 2^24 numbers of float32 and once in 2^53 of float64. This
probability is part of the total variation, and the verdict is on the total variation: what is below the bound
of rounding is lossless up to arithmetic: a total variation of 4 (L+1) (Λ+V+8) 2^-24, with Λ the largest
|log| of a positive probability. A forbidden token is said beside the verdict, as a finding at the
boundary, because a text that a grammar or a filter excludes may not come out at all, however rare.
"""

_ASSUMED = """
## What is assumed

A verdict is on the shapes (V, L, K) that are listed: vocabulary, drafted tokens, drafted paths. Rows are
float32, and the law is computed in rationals. What was taken at its word:

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
    lines.append(_COLUMNS)
    for found in audits:
        where = f"`{found.provenance.file}`, sha256 `{found.provenance.sha256}`"
        lines.append(f"\n## {found.sampler}\n\n{where}\n\n")
        boundary = [f"boundary: {text}" for text in found.boundary]
        lines += [f"- {text}\n" for text in (*found.reasons, *boundary, found.note) if text]
        if found.counterexample is not None:
            lines.append(f"- counterexample: {found.counterexample.in_words()}\n")
        lines += [f"- stated: {found.relaxation}\n"] if found.relaxation else []
        asked = count_text(len(found.cases), "case")
        lines.append(f"- asked: {asked} with (V, L, K) = {found.scope.shapes_text()}\n")
        lines += [f"- refused or left out: {text}\n" for text in found.scope.refused]
        lines += [f"- batches of two requests: {', '.join(found.batches)}\n"] if found.batches else []
        lines += [f"- random numbers: {text}\n" for text in found.primitives]
        lines += [f"- stand-in: {text}\n" for text in found.stand_ins]
        lines += [f"- probed: {text}\n" for text in found.probes]
    lines.append(_ASSUMED)
    lines += [f"- {text}\n" for text in audits[0].scope.assumed]
    lines.append(_MISSING)
    return "".join(lines)


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
