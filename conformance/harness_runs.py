"""Compiles and runs every harness whose tools are here, and judges each with its control.

    python -m conformance.harness_runs [NAME ...] [--json FILE]

It prints what was skipped and why, and runs the one file to copy with its own right sampler.  Seconds are
CPU seconds of a process, its start included.  The exit code is 0 if all that ran conforms.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
FIXED = ("core", "wide", "many", "placeholders", "precision", "broken-rows", "coins")
"""Profiles of cases.txt under the claim "token"."""
WITH_SETTINGS = (*FIXED, "settings", "masks", "logprobs", "drafted", "calls")


class Harness(NamedTuple):
    """One harness.

    Attributes:
        file: its source in ``harness``.
        tools: programs, or modules after "module:", that it needs.
        build: its compilation; {source} and {folder} are replaced.
        command: the run, before the cases and "wrong".
        cases: the file that it reads.
        profiles: what its sampler has, under the claim "token".
        claims: (claim, profiles) that are judged besides.
    """

    file: str
    tools: Sequence[str]
    build: Sequence[str]
    command: Sequence[str]
    cases: str = "cases.txt"
    profiles: Sequence[str] = FIXED
    claims: Sequence[tuple[str, Sequence[str]]] = (("lossless", ("core", "wide", "many", "lossless")),)


_BINARY = ("{folder}/harness",)
_SCRIPT: dict[str, Any] = {"cases": "cases.jsonl", "profiles": WITH_SETTINGS, "build": ()}
_PATHS = (("lossless", ("core", "lossless", "paths")), ("multi_round", ("paths",)))
HARNESSES: dict[str, Harness] = {
    "c": Harness("harness.c", ["gcc"], ["gcc", "-O2", "-Wall", "-o", *_BINARY, "{source}", "-lm"], _BINARY),
    "c++": Harness(
        "harness.cpp", ["g++"], ["g++", "-O2", "-std=c++17", "-Wall", "-o", *_BINARY, "{source}"], _BINARY
    ),
    "rust": Harness(
        "harness.rs", ["rustc"], ["rustc", "--edition", "2021", "-O", "-o", *_BINARY, "{source}"], _BINARY
    ),
    "go": Harness("harness.go", ["go"], ["go", "build", "-o", *_BINARY, "{source}"], _BINARY),
    "java": Harness(
        "Harness.java",
        ["javac", "java"],
        ["javac", "-d", "{folder}", "{source}"],
        ["java", "-cp", "{folder}", "Harness"],
    ),
    "javascript": Harness("harness.js", ["node"], command=["node", "{source}"], **_SCRIPT),
    "numpy": Harness(
        "harness_numpy.py", ["module:numpy"], command=[sys.executable, "{source}"], claims=_PATHS, **_SCRIPT
    ),
    "torch": Harness("harness_torch.py", ["module:torch"], command=[sys.executable, "{source}"], **_SCRIPT),
}


def missing_tools(harness: Harness) -> list[str]:
    """What of a harness's tools is not here."""

    def is_here(tool: str) -> bool:
        kind, _, module = tool.partition(":")
        return find_spec(module) is not None if module else shutil.which(kind) is not None

    return [tool.removeprefix("module:") for tool in harness.tools if not is_here(tool)]


class Ran(NamedTuple):
    """Answers of a harness and of its control, and the CPU seconds of the first."""

    answers: Path
    control: Path
    seconds: float


def run_harness(harness: Harness, folder: Path) -> Ran:
    """Compile a harness into a folder and play all cases twice, rightly and wrongly.

    Raises:
        subprocess.CalledProcessError: it does not compile, or ends with an error.
    """

    def filled(parts: Sequence[str]) -> list[str]:
        return [part.format(source=HERE / "harness" / harness.file, folder=folder) for part in parts]

    if harness.build:
        subprocess.run(filled(harness.build), check=True, capture_output=True)
    command = [*filled(harness.command), str(HERE / harness.cases)]
    answers, control = folder / "answers.jsonl", folder / "wrong.jsonl"
    start = child_seconds()
    with answers.open("w", encoding="utf-8") as out:
        subprocess.run(command, check=True, stdout=out)
    seconds = child_seconds() - start
    with control.open("w", encoding="utf-8") as out:
        subprocess.run([*command, "wrong"], check=True, stdout=out)
    return Ran(answers, control, seconds)


def child_seconds() -> float:
    """CPU seconds of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_one_file(folder: Path) -> tuple[bool, float]:
    """Whether the file to copy passes with its own right sampler as the adapter, and its CPU seconds."""
    text = (HERE / "test_draft_verification.py").read_text(encoding="utf-8")
    text = text.replace(
        "    from my_engine import rejection_sample\n", "    rejection_sample = reference()\n"
    )
    own = folder / "test_draft_verification.py"
    own.write_text(text, encoding="utf-8")
    start = child_seconds()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(own)]
    done = subprocess.run(command, check=False, capture_output=True)
    return done.returncode == 0, child_seconds() - start


def verdicts(harness: Harness, ran: Ran) -> list[dict[str, Any]]:
    """Reports of the judge, one for each claim; its exit code is added."""
    found = []
    for claims, profiles in (("token", harness.profiles), *harness.claims):
        files = (HERE / "judge.py", HERE / "cases.jsonl", ran.answers, "--control", ran.control)
        command = [sys.executable, *map(str, files)]
        command += ["--json", "--claims", claims, "--profiles", ",".join(profiles)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        report = json.loads(done.stdout) if done.stdout else {"verdict": done.stderr}
        found.append({**report, "exit": done.returncode, "claims": claims})
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(HARNESSES))
    parser.add_argument("--json", type=Path, help="write verdicts and seconds to this file")
    options = parser.parse_args()
    rows, all_conform = {}, True
    for name in options.names:
        harness = HARNESSES[name]
        missing = missing_tools(harness)
        if missing:
            print(f"{name}: skipped, there is no {' and no '.join(missing)}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            ran = run_harness(harness, Path(folder))
            reports = verdicts(harness, ran)
        for report in reports:
            print(f"{name}: {report['verdict']} to {report['claims']}, control {report.get('control')}")
        print(f"{name}: {ran.seconds:.2f} CPU s for all cases of {harness.cases}")
        all_conform &= all(report["exit"] == 0 for report in reports)
        rows[name] = {
            "seconds": round(ran.seconds, 3),
            "verdicts": {r["claims"]: r["verdict"] for r in reports},
        }
    if options.names == list(HARNESSES):
        with tempfile.TemporaryDirectory() as folder:
            passes, seconds = run_one_file(Path(folder))
        print(f"the one file: {'passes' if passes else 'FAILS'} in {seconds:.2f} s")
        all_conform &= passes
        rows["one file"] = {"seconds": round(seconds, 3), "passes": passes}
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0 if all_conform else 1


if __name__ == "__main__":
    sys.exit(main())
