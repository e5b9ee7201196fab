"""Runs the suite on the samplers of ``audits/libraries`` that are handed rows; the verdicts are data.

    PYTHONPATH=.:scripts:tests/support python benchmarks/conformance_audits.py CACHE [NAME ...] [--out FILE]

CACHE is the folder that ``spectheory audit fetch`` filled.  Triton kernels run in Triton's interpreter.
Rounds and trees have no forced drafts of this form, and are left out with the reason.  Without names, rows
that the file has are kept.
"""

import argparse
import json
import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("TRITON_INTERPRET", "1")  # before Triton is imported

from conformance_samplers import GREEDY, Held, of_batch, of_batches_of_one, of_one_path, verdict_on

from audits.registry import SUBJECTS, load_subject

RESULT = Path("benchmarks/results/conformance_audits-xeon-2core.json")
BLOCK = ("block", "vllm-ascend-block", "vllm-v2-block", "sglang-block")
MOST_SECONDS = 60
"""A sampler that takes longer is left out: an interpreter of kernels may take hours."""
FORMS = {"sampler": of_one_path, "batch": of_batch}


class TooLongError(BaseException):
    """Not an Exception, which would count as a fault of the sampler."""


def too_long(_number: int, _frame: Any) -> None:
    raise TooLongError


def row_of(name: str, cache: Path) -> dict[str, Any]:
    """The verdict on a sampler, or why it was not run."""
    subject = SUBJECTS[name]
    if subject.signature not in FORMS:
        return {"skipped": f"the signature {subject.signature} has no rows of given drafts"}
    if subject.settings.get("relaxation") is not None:
        return {"skipped": "it states another law than the target's"}
    sampler = load_subject(name, cache)
    start = time.process_time()
    claims, profiles = ("block", ("block",)) if name in BLOCK else ("token", ("core",))
    if subject.signature == "batch" and claims == "token":
        profiles = GREEDY
    forms = [FORMS[subject.signature], of_batches_of_one] if subject.signature == "batch" else [of_one_path]
    head: dict[str, Any] = {"version": subject.library.tested[:10], "claims": claims}
    for form in forms:
        own = Held("audits", False, partial(form, sampler.sampler), profiles, claims)
        found = verdict_on(own)
        found["form"] = form.__name__
        if "raised" not in found:
            break
        found["verdict"] = "undecided"  # our call may be at fault: adapters say which batches they take
        profiles = profiles[:1]
    return {**head, **found, "cpu_seconds": round(time.process_time() - start, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cache", type=Path)
    parser.add_argument("names", nargs="*", default=list(SUBJECTS))
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    kept = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    rows = kept if options.names == list(SUBJECTS) else {}
    signal.signal(signal.SIGALRM, too_long)
    for name in (name for name in options.names if name not in rows):
        signal.alarm(MOST_SECONDS)
        try:
            rows[name] = row_of(name, options.cache)
        except TooLongError:
            rows[name] = {"skipped": f"it takes more than {MOST_SECONDS} s"}
        signal.alarm(0)
        print(name, rows[name], flush=True)
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
