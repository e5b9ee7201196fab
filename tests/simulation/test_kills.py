"""Runs stopped at random moments and started again print what an unbroken run prints, byte for byte."""

import json
from pathlib import Path

from fresh_interpreter import run_forked
from models_support import save_pair

PROGRAM = """
import io, itertools, json, os, random, signal, sys, time
from contextlib import redirect_stdout
from pathlib import Path
from spectheory.command_line.main import main

CODES = {signal.SIGKILL: 128 + signal.SIGKILL, signal.SIGTERM: 143, signal.SIGINT: 130}
arguments, folder = GIVEN
folder, moment = Path(folder), random.Random(1)
out = folder / "out"
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it


def started(words):
    child = os.fork()
    if child:
        return child
    code = CODES[signal.SIGINT]  # of a Ctrl-C that comes before main does
    try:
        for number in (1, 2):
            os.dup2(os.open(folder / ("out", "err")[number - 1], os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
        code = main(words)
        sys.stdout.flush()
    finally:
        os._exit(code)


def ended(child):
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return 128 - code if code < 0 else code


with redirect_stdout(io.StringIO()) as printed:
    assert main(arguments) == 0
start = time.perf_counter()
assert ended(started(arguments)) == 0
seconds, found, numbers = time.perf_counter() - start, [], itertools.cycle(CODES)
while len(found) < 7 or found[-1][0]:
    state = folder / f"state-{sum(code == 0 for code, *_ in found)}"
    child, number = started([*arguments, "--checkpoint", str(state)]), next(numbers)
    if len(found) < 6:
        time.sleep(moment.uniform(0, seconds))
        os.kill(child, number)
    code = ended(child)
    kept = state.read_bytes().count(b"\\n") if state.exists() else 0
    found.append((code, CODES[number], kept, out.read_text() == printed.getvalue()))
print(json.dumps(found))
"""


def test_stopped_at_random_moments(tmp_path: Path) -> None:
    """Many short batches, one per prompt, so that a good part of the time goes into the checkpoint."""
    target, draft = save_pair(tmp_path, "llama")
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("\n".join(f"import module{number}" for number in range(20)))
    arguments = [
        "simulate", str(target), str(draft), "--prompts", str(prompts), "--json",
        "--verifier", "token,block", "--batch-size", "1", "--draft-length", "2", "--jobs", "1",
        "--max-new-tokens", "3", "--drafts", "1,2",
    ]  # fmt: skip
    done = run_forked(PROGRAM.replace("GIVEN", repr((arguments, str(tmp_path)))))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert all(code in (0, of_signal) for code, of_signal, *_ in found)
    assert all(is_whole for code, _, _, is_whole in found if code == 0)
    assert max(kept for code, _, kept, _ in found if code) > 1  # the partner: some stop fell into the run
