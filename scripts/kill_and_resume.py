"""Stop ``simulate --checkpoint`` at random moments, start it again each time, and compare what it prints.

    python scripts/kill_and_resume.py --moments 30 --signals KILL,INT -- TARGET DRAFT

What follows ``--`` are arguments of ``spectheory simulate``.  The run is first made without a stop.  Then it
is stopped again and again, each time at a moment drawn uniformly from the time of the whole run and by the
next of the signals, and started again on the same checkpoint.  Whenever it comes to its end, what it has
printed must be the same, byte for byte, and it begins anew on a fresh checkpoint, until there were so many
stops.  Prints one JSON object; exit status 1 if any output differed or any exit code was another one than
the signal's.

Libraries are loaded once, by the run without a stop: every other run is a fork.  That run is made by one
process, whatever ``--jobs`` says, because the threads that lead others would not live on in a fork.
"""

import argparse
import io
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path

from spectheory.command_line.main import main

EXIT_CODES = {signal.SIGKILL: 128 + signal.SIGKILL, signal.SIGTERM: 143, signal.SIGINT: 130}


def started(arguments: list[str], out: Path) -> int:
    """Fork a run that prints to ``out`` and to ``out`` with ``.err``; returns its process id."""
    child = os.fork()
    if child:
        return child
    code = EXIT_CODES[signal.SIGINT]  # of a Ctrl-C that comes before main does
    try:
        for path, number in ((out, 1), (out.with_suffix(".err"), 2)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
        code = main(arguments)
        sys.stdout.flush()
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """Wait for a run; its exit code, 128 + n where signal n ended it."""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return 128 - code if code < 0 else code


def stopped_at(child: int, seconds: float, number: signal.Signals) -> int:
    """Send the signal after so many seconds, and wait; the exit code."""
    time.sleep(seconds)
    os.kill(child, number)
    return ended(child)


def kill_and_resume(
    arguments: list[str], moments: int, signals: list[signal.Signals], seed: int
) -> dict[str, object]:
    """What the docstring of this file says; the JSON object."""
    moment, folder = random.Random(seed), Path(tempfile.mkdtemp())
    with redirect_stdout(io.StringIO()) as printed:
        if main([*arguments, "--json", "--jobs", "1"]):
            sys.exit("the run does not come to its end")
    whole = printed.getvalue().encode()
    start = time.perf_counter()
    ended(started([*arguments, "--json"], folder / "timed"))
    seconds = time.perf_counter() - start
    numbers = itertools.cycle(signals)
    stops = torn = finished = different = wrong_codes = 0
    kept: list[int] = []
    while stops < moments or not finished:
        state, out = folder / f"state-{finished}.jsonl", folder / "out"
        for path in (out, out.with_suffix(".err")):
            path.unlink(missing_ok=True)
        child = started([*arguments, "--json", "--checkpoint", str(state)], out)
        number = next(numbers)
        code = stopped_at(child, moment.uniform(0, seconds), number) if stops < moments else ended(child)
        torn += b"was not finished and is dropped" in out.with_suffix(".err").read_bytes()
        if code == 0:
            finished += 1
            different += out.read_bytes() != whole
        else:
            stops += 1
            wrong_codes += code != EXIT_CODES[number]
            kept.append(max(0, state.read_bytes().count(b"\n") - 1) if state.exists() else 0)
    return {
        "signals": [number.name for number in signals],
        "stops": stops,
        "batches_kept_at_stops": kept,
        "torn_lines_dropped": torn,
        "runs_finished": finished,
        "outputs_that_differ": different,
        "wrong_exit_codes": wrong_codes,
        "seconds_of_the_whole_run": round(seconds, 2),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--moments", type=int, default=30)
    parser.add_argument("--signals", default="KILL", help="KILL, TERM or INT, or several of them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("arguments", nargs="*", help="of spectheory simulate, after --")
    given = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    signals = [signal.Signals[f"SIG{name}"] for name in given.signals.split(",")]
    found = kill_and_resume(["simulate", *given.arguments], given.moments, signals, given.seed)
    print(json.dumps(found))
    sys.exit(1 if found["outputs_that_differ"] or found["wrong_exit_codes"] else 0)
