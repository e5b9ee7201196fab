"""Run the scripts of ``figures/``, several at a time: ``python scripts/reproduce.py --out FOLDER --jobs 4``.

A line per script goes to stderr as it ends.  Exits with 1 if a script failed, as it does where a claim is
false.  Stopped by Ctrl-C or SIGTERM, it ends the scripts that run; ``--resume`` goes on from what is
finished.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

ROOT = Path(__file__).parent.parent
FIRST = ("printed_gains", "whole_texts", "full_vocabulary", "frontier", "temperature_gains")
"""The scripts that take longest, which begin."""
GRACE = 3.0
"""Seconds that a script has to end by itself; none needs longer, because it writes a file in one step."""


class Running(NamedTuple):
    name: str
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    since: float


def names() -> list[str]:
    """All figures and tables: every script but the two modules that they share."""
    return sorted({path.stem for path in (ROOT / "figures").glob("*.py")} - {"results", "style"})


def start(name: str, options: Sequence[str]) -> Running:
    """Start a script in a process group of its own, so that only this program ends it."""
    output = tempfile.TemporaryFile()  # noqa: SIM115 - closed where the script ends
    command = [sys.executable, "-m", f"figures.{name}", *options]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, process_group=0
    )
    return Running(name, process, output, time.monotonic())


def ended(waiting: list[str], jobs: int, options: Sequence[str]) -> Iterator[Running]:
    """Run all scripts, so many at a time; each is yielded when it has ended."""
    running: list[Running] = []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(start(waiting.pop(0), options))
            done = [one for one in running if one.process.poll() is not None]
            running = [one for one in running if one not in done]
            yield from done
            time.sleep(0 if done else 0.05)
    finally:
        stop(running)


def stop(running: Sequence[Running]) -> None:
    """End the scripts: SIGTERM, and SIGKILL for those that are still there after ``GRACE`` seconds."""
    for one in running:
        one.process.terminate()
    until = time.monotonic() + GRACE
    for one in running:
        try:
            one.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            one.process.kill()
            one.process.wait()


def terminated(*_: object) -> None:
    sys.exit(143)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="scripts; all without one")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "figures", help="folder for the files")
    parser.add_argument("--jobs", type=int, default=1, help="scripts at a time")
    parser.add_argument("--resume", action="store_true", help="leave what the folder has finished")
    asked = parser.parse_args()
    if unknown := {*asked.names} - {*names()}:
        parser.error(f"there is no figure {', '.join(sorted(unknown))}; there are {', '.join(names())}")
    signal.signal(signal.SIGTERM, terminated)
    wanted = asked.names or names()
    ordered = sorted(wanted, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    options = ["--out", str(asked.out.resolve()), *["--resume"] * asked.resume]
    failed = []
    for number, one in enumerate(ended(ordered, asked.jobs, options), 1):
        seconds, code = time.monotonic() - one.since, one.process.returncode
        said = "" if code == 0 else f" FAILED with status {code}"
        print(f"{number} of {len(wanted)}: {one.name}, {seconds:.0f} s{said}", file=sys.stderr, flush=True)
        with one.output:
            one.output.seek(0)
            if code != 0:
                failed.append(one.name)
                print(one.output.read().decode(errors="replace"), file=sys.stderr, flush=True)
    print(f"failed: {', '.join(failed)}" if failed else f"all claims hold; see {asked.out}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
