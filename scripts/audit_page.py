"""Write the page of all audits: ``python scripts/audit_page.py CACHE KEPT SAMPLER..  > docs/audits.md``.

CACHE is the folder of fetched files.  Every audit is kept in the folder KEPT once it is finished.  It is made
again only if the code of the sampler or the code that audits changed.  The exit status is that of
``spectheory audit``.
"""

import datetime
import json
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import spectheory.auditing
from spectheory.auditing.subjects.adapters import find_adapters, load_adapters
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.verdicts.audit_certificate import ASSUMPTIONS, AuditCertificate
from spectheory.command_line.audit_commands import asked_drafts, samplers_of, status_of
from spectheory.foundation.documents import count_text, json_sha256, replace_file

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
- **verdict**: one of the four [verdicts](auditing.md#verdicts). A relaxation is compared with the law that
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
  with a defect, and the first one after the last defect.  Releases between those were not audited.

A row is about one sampler. `vllm` is the first model runner's and `vllm-v2` the second one's. A finding may
concern a sampler that is lossless here: [gpt_fast](findings/gpt_fast.md) is about the round around it, and
[litgpt](findings/litgpt.md) about `top_p` below 1.

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
- SpecExec's own rule (`SpecExecBase`) has no adapter: its engines and its tree with their caches would have
  to be replaced. Its SpecInfer is audited.
"""

_RULES = {
    "block": "block",
    "ensemble": "token, ensemble",
    "fly": "deferred rejection (FLy)",
    "gemma4": "token, with its drafter",
    "synthetic": "synthetic rates",
    "hsd": "hierarchical (HSD)",
    "hsd-eagle": "hierarchical (HSD)",
    "naive": "one token of the target",
    "nucleus": "a token for every node",
    "rest": "a token for every node",
    "typical": "typical acceptance",
}
"""A sampler's name, or its last part -> the rule; every other sampler verifies token by token."""
_TREES = (
    "eagle",
    "economize",
    "hsd-eagle",
    "medusa-typical",
    "medusa-nucleus",
    "rest",
    "sequoia",
    "mcsd",
    "mcsd-replacement",
    "mcsd-naive",
    "specexec-specinfer",
)
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
        _boundary(found.forbidden or Fraction(0)),
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
        *[f"probed: {text}" for text in found.probes],
    ]


def code_of_audits() -> list[str]:
    """The hashes of all files that audit."""
    folders = (Path(spectheory.auditing.__file__).parent, find_adapters())
    return [sha256(file.read_bytes()).hexdigest() for each in folders for file in sorted(each.rglob("*.py"))]


def kept_entries(samplers: Sequence[Shipped], kept: Path) -> list[dict[str, Any]]:
    """The entries of all samplers, from the folder where code is the same."""
    kept.mkdir(parents=True, exist_ok=True)
    entries, code = [], code_of_audits()
    for sampler in samplers:
        file = kept / f"{sampler.name}.json"
        try:
            known = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = {}
        question = json_sha256([sampler.provenance.sha256, code])
        is_finished = isinstance(known, dict) and {"sampler", "verdict", "cells", "details"} <= known.keys()
        if not is_finished or known.get("question") != question:
            known = {**entry(spectheory.auditing.audit(sampler)), "question": question}
            replace_file(file, json.dumps(known, ensure_ascii=False, indent=1) + "\n")
        entries.append(known)
    return entries


def main(cache: str, kept: str, *names: str) -> int:
    samplers = samplers_of(names, None, asked_drafts(()), Path(cache))
    found = kept_entries(samplers, Path(kept))
    sys.stdout.write(page(found, datetime.date.today()))
    for each in found:
        stored = load_adapters().SUBJECTS.get(each["sampler"])
        if stored is not None and stored.verdict != each["verdict"]:
            sys.stderr.write(f"{each['sampler']}: {each['verdict']}, and its file says {stored.verdict}\n")
    return status_of([each["verdict"] for each in found])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
