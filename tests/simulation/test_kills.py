"""Runs stopped at random moments and started again print what an unbroken run prints, byte for byte."""

import json
from pathlib import Path

import pytest

from fresh_interpreter import run_forked
from models_support import save_pair

SCRIPT = Path(__file__).parents[2] / "scripts" / "kill_and_resume.py"


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Many short batches, one per prompt, so that a good part of the time goes into the checkpoint."""
    folder = tmp_path_factory.mktemp("kills")
    target, draft = save_pair(folder, "llama")
    prompts = folder / "prompts.txt"
    prompts.write_text("\n".join(f"import module{number}" for number in range(20)))
    return [
        str(target), str(draft), "--prompts", str(prompts),
        "--verifier", "token,block", "--batch-size", "1", "--draft-length", "2", "--jobs", "1",
    ]  # fmt: skip


def test_stopped_at_random_moments(arguments: list[str]) -> None:
    """Whole texts; the draws of one call are stopped by signals in command_line/test_models.py."""
    run = [str(SCRIPT), "--moments", "6", "--seed", "1", "--signals", "KILL,TERM,INT", "--"]
    given = [*run, *arguments, "--max-new-tokens", "3", "--drafts", "1,2"]
    done = run_forked(
        f"import runpy, sys\nsys.argv = {given!r}\nrunpy.run_path(sys.argv[0], run_name='__main__')"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["stops"] == 6
    assert found["runs_finished"] >= 1
    assert found["outputs_that_differ"] == found["wrong_exit_codes"] == 0
    assert max(found["batches_kept_at_stops"]) > 0  # the partner: some stop fell into the run
