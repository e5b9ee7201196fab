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

[Auditing](auditing.md) explains how an audit works, and how to audit your sampler. `make audits` wrote this
page on {date}. It is about the released code of the named versions, run unmodified on a CPU with its random
numbers replaced.

| sampler | release | rule | verdict | total variation | forbidden token | samples |
|---|---|---|---|---|---|---|
"""

_COLUMNS = """
- **sampler**: the name for `spectheory audit`.
- **rule**: the verification rule that the sampler implements.
- **verdict**: one of the five [verdicts](auditing.md#verdicts). A relaxation is compared with the law that
  it states.
- **total variation**: the largest over {cases} cases, between the output completed with the target and the
  target. Where random numbers are multiplied it is a lower bound. Below 4 (L+1) (Λ+V+8) 2^-24, with Λ the
  largest |log| of a positive probability, it is rounding.
- **forbidden token**: the largest probability of a token to which the target gives probability 0. A coin of
  exactly 0 that is compared with a ratio of 0 by *at most* accepts one, once in 2^24 numbers of float32 and
  once in 2^53 of float64. This probability is a part of the total variation, on which the verdict rests. It
  is reported beside the verdict, because a text that a grammar or a filter excludes may not come out at
  all, however rare.
- **samples**: how many samples a χ² test at 99 % needs to find the difference with a power of 99 %, on the
  pair where it needs the fewest. Where random numbers are multiplied it is an estimate.

## Details
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

_RULES = {
    "block": "block",
    "ensemble": "token, ensemble",
    "fly": "deferred rejection (FLy)",
    "gemma4": "token, with its drafter",
    "synthetic": "synthetic rates",
}
"""Last part of a sampler's name -> the rule; every other sampler verifies token by token."""


def page(audits: list[AuditCertificate], date: datetime.date) -> str:
    """The audits as a Markdown page: one table, and the details of every audited file, folded."""
    lines = [_INTRODUCTION.format(date=date.isoformat()), *map(_row, audits)]
    lines.append(_COLUMNS.format(cases=len(audits[0].cases)))
    of_files: dict[tuple[str, str, str], list[AuditCertificate]] = {}
    for found in audits:
        code = found.provenance
        of_files.setdefault((code.package, code.file, code.sha256), []).append(found)
    for (package, file, digest), of_file in of_files.items():
        name = f"{package}: <code>{file}</code>".removeprefix(": ")
        lines.append(f'\n<details markdown="1">\n<summary>{name}</summary>\n\nsha256 `{digest}`\n\n')
        details = [_details(found) for found in of_file]
        shared = [text for text in details[0] if all(text in others for others in details)]
        lines += [f"- {text}\n" for text in shared]
        for found, texts in zip(of_file, details, strict=True):
            lines += [f"- `{found.sampler}`: {text}\n" for text in texts if text not in shared]
        lines.append("\n</details>\n")
    lines.append(_ASSUMED)
    lines += [f"- {text}\n" for text in audits[0].scope.assumed]
    lines.append(_MISSING)
    return "".join(lines)


def _row(found: AuditCertificate) -> str:
    distance = max((case.total_variation - case.undecided for case in found.cases), default=0)
    bound = "≥ " if any(case.undecided for case in found.cases) else ""
    cells = [
        f"`{found.sampler}`",
        f"{found.provenance.package} {found.provenance.version}".strip(),
        _RULES.get(found.sampler.rpartition("-")[2], "token"),
        found.verdict,
        f"{bound}{float(distance):.3g}",
        str(found.forbidden) if found.forbidden else "no",
        "never" if found.samples is None else f"{found.samples:.2g}",
    ]
    return f"| {' | '.join(cells)} |\n"


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
        *([f"batches of two requests: {', '.join(found.batches)}"] if found.batches else []),
        *[f"random numbers: {text}" for text in found.primitives],
        *[f"stand-in: {text}" for text in found.stand_ins],
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
