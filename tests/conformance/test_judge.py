"""The judge: its e-values keep the null, its words and exit codes, and answers that are no answers."""

import ast
import itertools
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from conformance import judge
from conformance.simulation import log_mixture

HERE = Path(judge.__file__).parent
CASES = judge.read_cases(HERE / "cases.jsonl")
CORE = [case for case in CASES if case["profile"] == "core"]


def mean_e_value(law, null, calls):
    """The mean of a part's e-value, over all sequences of cells."""
    total = 0.0
    for cells in itertools.product(range(len(law)), repeat=calls):
        part = judge.Part("", null, [(0, None, 0, range(len(null)))])
        total += math.prod(law[cell] for cell in cells) * math.exp(part.log_e([list(cells)]))
    return total


@pytest.mark.parametrize("calls", [1, 3, 6])
@pytest.mark.parametrize("law", [(0.5, 0.5, 0.0), (0.25, 0.75, 0.0), (0.2499, 0.7501, 0.0)])
def test_mean_of_an_e_value_is_at_most_1(law, calls):
    """E[E] <= 1 for every law within the null, here exactly over all sequences."""
    null = [judge.loosened(round(mass, 2)) for mass in law[:-1]] + [judge.ABSOLUTE]
    assert mean_e_value(law, null, calls) <= 1 + 1e-12


def test_mean_of_an_e_value_grows_outside_of_the_null():
    """The partner that must fail."""
    null = [judge.loosened(0.5), judge.loosened(0.5), judge.ABSOLUTE]
    assert mean_e_value((0.9, 0.05, 0.05), null, 6) > 100


def test_pairs_of_calls_do_not_overlap():
    for lag in (1, 2, 8):
        used = [t for start in judge.pair_starts(100, lag) for t in (start, start + lag)]
        assert len(used) == len(set(used))


def test_mean_of_equal_strata_is_at_most_1():
    """Unequal laws whose average is in the null: the inequality of arithmetic and geometric means."""
    strata, null = ((0.9, 0.1), (0.1, 0.9)), [judge.loosened(0.5), judge.loosened(0.5)]
    total = 0.0
    for cells in itertools.product((0, 1), repeat=6):
        mass = math.prod(strata[t % 2][cell] for t, cell in enumerate(cells))
        part = judge.Part("", null, [(0, None, 0, range(2))])
        total += mass * math.exp(part.log_e([list(cells)]))
    assert total <= 1


def test_simulation_computes_the_same_mixture():
    counts = [[3, 0, 5], [10, 1, 0]]
    expected = [judge.log_mixture(own) for own in counts]
    assert log_mixture(np.array(counts)) == pytest.approx(expected)


@pytest.fixture(scope="module")
def right():
    rng = judge.random.Random(3)
    return {case["id"]: judge.play(case, judge.pure_sampler("", rng)) for case in CORE}


@pytest.fixture(scope="module")
def wrong():
    rng = judge.random.Random(3)
    return {case["id"]: judge.play(case, judge.pure_sampler("target", rng)) for case in CORE}


def written(path, results):
    lines = [json.dumps({"case": name, "answers": answers}) + "\n" for name, answers in results.items()]
    path.write_text("".join(lines))
    return path


def run(*arguments, **options):
    command = [sys.executable, "-I", HERE / "judge.py", HERE / "cases.jsonl", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_exit_codes_and_the_control(tmp_path, right, wrong):
    good, bad = written(tmp_path / "good", right), written(tmp_path / "bad", wrong)
    done = run(good, "--control", bad)
    assert (done.returncode, done.stdout.splitlines()[0][:17]) == (0, "conforms to token")
    done = run(bad, "--control", bad)
    assert done.returncode == 1
    assert "request" in done.stdout
    assert "position" in done.stdout
    assert "--claims lossless" in done.stdout
    assert run(good).returncode == 4
    done = run(good, "--control", good)
    assert done.returncode == 4
    assert "NOT FOUND; the run says nothing" in done.stdout
    assert run(good, "--profiles", "nothing").returncode == 2
    assert run(tmp_path / "nowhere").returncode == 2


def test_stops_as_soon_as_a_sampler_has_failed(tmp_path, wrong):
    """What follows the failure is not read, so it may be no JSON."""
    text = written(tmp_path / "bad", wrong).read_text()
    assert run("-", "--stop", input=text + "no JSON\n").returncode == 1
    assert run("-", input=text + "no JSON\n").returncode == 2


def test_a_closed_pipe_changes_nothing(tmp_path, right, wrong):
    good, bad = written(tmp_path / "good", right), written(tmp_path / "bad", wrong)
    line = f"{sys.executable} {HERE}/judge.py {HERE}/cases.jsonl {good} --control {bad}"
    done = subprocess.run(
        ["bash", "-c", f"{line} | true; echo ${{PIPESTATUS[0]}}"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n"
    assert done.stderr == ""


def test_missing_answers_are_undecided(right):
    some = {name: answers for name, answers in right.items() if name != "copies"}
    assert judge.judge(CASES, some)["verdict"] == "undecided"
    assert judge.judge(CASES, {**some, "copies": right["copies"][:-1]})["missing"] == ["copies"]


def test_more_calls_are_judged_together(right):
    rng = judge.random.Random(8)
    twice = {case["id"]: right[case["id"]] + judge.play(case, judge.pure_sampler("", rng)) for case in CORE}
    assert judge.judge(CASES, right, times=2)["verdict"] == "undecided"
    assert judge.judge(CASES, twice, times=2)["verdict"] == "conforms"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ([], "no token"),
        ([0, 0, 0], "3 tokens"),
        ([99], "outside"),
        ([True], "outside"),
        ([0.0], "outside"),
        (7, "no list"),
    ],
)
def test_answers_of_a_wrong_form_fail_at_once(right, answer, why):
    calls = [list(call) for call in right["full-rows"]]
    calls[5][0] = answer
    report = judge.judge(CASES, {**right, "full-rows": calls})
    assert report["verdict"] == "does not conform"
    row = next(row for row in report["cases"] if row["case"] == "full-rows")
    assert why in row["faults"][0]


@pytest.mark.parametrize(
    ("name", "requests", "times", "changed"),
    [
        ("laws", range(3, 4), 8, {1: "-1/64", 2: "1/64"}),
        ("copies", range(40, 80), 1, {0: "1/64", 2: "-1/64"}),
        ("copies", range(16), 16, {0: "1/64", 1: "-1/64"}),
    ],
)
def test_a_law_that_is_changed_by_1_64_fails_the_right_sampler(name, requests, times, changed):
    """A law of forty equal requests is resolved at once, others with more calls."""
    whole = json.loads(json.dumps(next(case for case in CORE if case["id"] == name)))
    own = [whole["requests"][r] for r in requests]
    case = {**whole, "requests": own, "alike": [list(range(len(own)))]}
    answers = judge.play(
        {**case, "draws": times * case["draws"]}, judge.pure_sampler("", judge.random.Random(5))
    )
    assert judge.judge([case], {name: answers}, times=times)["verdict"] == "conforms"
    for request in own:
        for entry, change in changed.items():
            mass = request["law"]["token"][entry]
            mass[1] = str(judge.Fraction(mass[1]) + judge.Fraction(change))
    assert judge.judge([case], {name: answers}, times=times)["verdict"] == "does not conform"


def test_is_vendorable():
    """At most 500 lines, no function above 60, and no import outside of the standard library."""
    text = (HERE / "judge.py").read_text()
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert text.count("\n") <= 500
    assert max(node.end_lineno - node.lineno + 1 for node in functions) <= 60
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules <= set(sys.stdlib_module_names)


def test_self_test_passes():
    done = run("--self-test")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("must be") == 3
