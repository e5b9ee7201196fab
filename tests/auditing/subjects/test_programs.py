"""Programs in C and JavaScript: right ones are lossless, wrong ones are found, with handed numbers or own."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli_support import run_json
from spectheory import audit
from spectheory.auditing import AuditCertificate
from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.auditing.subjects.programs import BatchProgram, Program
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import PROGRAM
from spectheory.command_line.main import main
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.pair import ModelPair

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
PAIRS = {"skewed": ModelPair.context_free_pair(["1/2", "1/4", "1/4"], ["1/8", "1/4", "5/8"], 1)}
"""The wrong residual has a total variation of 1/8."""
CC, NODE = shutil.which("cc"), shutil.which("node")


def judged(command: str, within: float = 0.03) -> tuple[str, str]:
    program = Program(command)
    try:
        found = audit(Shipped(program, PROGRAM, num_drafts=[1]), PAIRS, within=within)
    finally:
        program.close()
    assert "another program, which cannot be followed" in found.ways[0]
    return found.verdict, found.basis


@pytest.mark.skipif(CC is None, reason="no C compiler")
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], ("lossless", "probed")),
        (["-DWRONG"], ("not lossless", "probed")),
        (["-DOWN"], ("undecided", "drawn")),
        (["-DOWN", "-DWRONG"], ("not lossless", "drawn")),
    ],
)
def test_a_program_in_c(flags: list[str], expected: tuple[str, str], tmp_path: Path) -> None:
    made = tmp_path / "sampler"
    subprocess.run([str(CC), "-O2", *flags, "-o", made, EXAMPLES / "sampler_program.c"], check=True)
    assert judged(str(made)) == expected


@pytest.mark.skipif(NODE is None, reason="no JavaScript")
@pytest.mark.parametrize("race", ["", " gumbel"])
def test_a_program_in_javascript(race: str) -> None:
    command = f"node {EXAMPLES / 'sampler_program.js'}{race}"
    assert judged(command) == ("lossless", "probed")
    assert judged(f"{command} wrong") == ("not lossless", "probed")


def judged_batch(command: str) -> AuditCertificate:
    program = BatchProgram(command)
    try:
        sampler = Shipped(program, "batch", mixes=BatchProgram.MIXES)
        return audit(sampler, PAIRS, within=0.1, quick=True)
    finally:
        program.close()


@pytest.mark.skipif(NODE is None, reason="no JavaScript")
@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        ("", ""),
        ("shared", "are not independent"),
        ("company", "with the seed 1000 gets the tokens"),
        ("logprobs", "the log-probability -"),
        ("greedy", "beside other requests (greedy) the tokens of a request have another law than alone"),
    ],
)
def test_a_program_of_batches(mistake: str, says: str) -> None:
    """Each mistake is right on the pairs, so that only batches show it."""
    found = judged_batch(f"node {EXAMPLES / 'batch_program.js'} {mistake}".strip())
    assert found.basis == "probed"
    assert not any(case.is_wrong for case in found.cases)
    assert sorted(found.batches) == ["equal lengths", "greedy", "no drafts", "ragged", "seeds"]
    assert found.is_lossless is not bool(says)
    assert says in "".join(found.reasons)
    assert found.provenance.file == found.sampler


@pytest.mark.parametrize("name", ["sampler_program.c", "sampler_program.js", "batch_program.js"])
def test_an_example_is_one_screen(name: str) -> None:
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) <= 45


def python(code: str) -> str:
    return f"{sys.executable} -c 'import json, sys\nfor line in sys.stdin:\n {code}'"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("print(7, flush=True)", "the program answers '7"),
        ('print(json.dumps(dict(error="no rows")), flush=True)', "the program answers 'no rows'"),
        ('print("token", flush=True)', "which is not JSON"),
        ("sys.exit(3)", "the program ended with exit code 3"),
    ],
)
def test_an_answer_that_is_none_is_a_defect_and_is_named(code: str, says: str) -> None:
    """The partners are the programs above."""
    program = Program(python(code))
    half = {"half": random_dyadic(1, 2, 1)}
    found = audit(Shipped(program, PROGRAM, num_drafts=[1]), half, within=0.9)
    program.close()
    assert found.verdict == "not lossless"
    assert says in found.reasons[0]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ('dict(error="no rows")', "the program answers 'no rows'"),
        ("dict(requests=[7])", "the program answers 7 for a request"),
        ("dict(requests=[])", "the program answers for 0 requests, expected 1"),
        ("dict(requests=[dict(tokens=[0], used=0)] * 5)", "the program answers for 5 requests, expected 1"),
    ],
)
def test_an_answer_for_a_batch_that_is_none_is_named(answer: str, says: str) -> None:
    found = judged_batch(python(f"print(json.dumps({answer}), flush=True)"))
    assert found.is_defective
    assert says in found.reasons[0]


def right_batch(reads: str) -> AuditCertificate:
    """Judge a right program: both models are equal, so it accepts the draft, and then draws."""
    coin = "__import__('random').choices(range(3), r['target_rows'][-1])"
    each = f'dict(tokens=r["draft_tokens"] + {coin}, logprobs=None)'.replace("'", '"')
    answer = f'dict(requests=[{each} for r in json.loads(line)["requests"]], reads={reads})'
    program = BatchProgram(python(f"print(json.dumps({answer}), flush=True)"))
    row = ["1/2", "1/4", "1/4"]
    pairs = {"equal": ModelPair.context_free_pair(row, row, 1)}
    try:
        sampler = Shipped(program, "batch", mixes=())
        return audit(sampler, pairs, within=0.5, quick=True)
    finally:
        program.close()


@pytest.mark.parametrize("reads", ['["top_p"]', '"seed"', "7", "[[]]"])
def test_what_a_program_reads_is_no_accusation(reads: str) -> None:
    """The field is named, and the two values that it can have."""
    found = right_batch(reads)
    assert found.verdict == "undecided"
    said = "".join(found.reasons)
    assert '"reads": ' in said
    assert '"greedy", "seed"' in said


@pytest.mark.parametrize("reads", ["None", "[]"])
def test_null_is_an_absent_field(reads: str) -> None:
    found = right_batch(reads)
    assert (found.verdict, found.basis) == ("undecided", "drawn")
    assert '"reads"' not in "".join(found.reasons)
    assert found.cases[0].undefined == 0


def test_a_program_that_does_not_exist() -> None:
    with pytest.raises(InvalidInputError, match=r"cannot be started: .*No such file"):
        Program("/no/such/program")


@pytest.mark.skipif(NODE is None, reason="no JavaScript")
def test_the_option_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its exit codes are those of any audit; an undecided one is 0 where that is accepted."""
    pair = tmp_path / "pair.json"
    random_dyadic(1, 2, 1).save(pair)
    program = f"node {EXAMPLES / 'sampler_program.js'}"
    own = python('print(json.dumps(dict(tokens=[__import__("random").randrange(2)])), flush=True)')
    options = ["--pair", str(pair), "--within", "0.05"]
    right = run_json(capsys, "audit", "--command", program, *options)
    assert (right["verdict"], right["basis"], right["lossless"]) == ("lossless", "probed", True)
    assert 0.04 < right["within"] < 0.0501
    run_json(capsys, "audit", "--command", f"{program} wrong", *options, code=1)
    batch = f"node {EXAMPLES / 'batch_program.js'} shared"
    found = run_json(capsys, "audit", "--command", batch, "--as", "batch", "--quick", *options, code=1)
    assert found["signature"] == "batch"
    assert main(["audit", "--command", batch, "--as", "sampler"]) == 2
    assert "--as batch" in capsys.readouterr().err
    assert main(["audit", "--command", batch, "--as", "batch", "--drafts", "2"]) == 2
    assert "'batch' take one drafted path" in capsys.readouterr().err
    options[-1] = "0.9"
    for accepted, code in ((), 4), (("--accept", "undecided"), 0):
        found = run_json(capsys, "audit", "--command", own, *options, *accepted, code=code)
        assert (found["verdict"], found["basis"]) == ("undecided", "drawn")
        assert "would have been seen" in found["reasons"][-1]
