"""How `optimum` ends: at the gap, short of it, interrupted or terminated; and what it has printed by then."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli_support import run_error, run_json
from spectheory import instances
from spectheory.command_line.main import main

Report = Callable[[int, float, float], None]


@pytest.fixture(scope="module")
def large_pair(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("large") / "pair.json"
    instances.random_float(1, 10, 3, agreement=0.3).save(path)
    return str(path)


def stop_after(monkeypatch: pytest.MonkeyPatch, steps: int, stop: Callable[[], None]) -> None:
    """Let the command's progress line call ``stop`` at its n-th report."""
    reports = []

    @contextmanager
    def interval_line() -> Iterator[Report]:
        def report(rounds: int, lower: float, upper: float) -> None:
            reports.append(rounds)
            if len(reports) == steps:
                stop()

        yield report

    monkeypatch.setattr("spectheory.command_line.progress.interval_line", interval_line)


def interrupt() -> None:
    raise KeyboardInterrupt


def terminate() -> None:
    signal.raise_signal(signal.SIGTERM)


@pytest.mark.deep
def test_a_time_limit_is_exit_code_3(capsys: pytest.CaptureFixture[str], large_pair: str) -> None:
    """The interval so far is certified and printed; the status says why it is no narrower."""
    limited = run_json(capsys, "optimum", large_pair, "-k", "2", "--time-limit", "1e-9", code=3)
    assert limited["status"] == "time limit"
    assert limited["value"] is None
    assert limited["upper"] - limited["lower"] > 1e-6 * limited["lower"]
    whole = run_json(capsys, "optimum", large_pair, "-k", "2")  # the partner: enough time, the gap is met
    assert whole["status"] == "optimal"
    assert limited["lower"] <= whole["lower"] <= whole["upper"] <= limited["upper"]
    assert whole["upper"] - whole["lower"] <= 1e-6 * whole["lower"]


def test_the_status_stands_in_the_table(capsys: pytest.CaptureFixture[str], large_pair: str) -> None:
    assert main(["optimum", large_pair, "-k", "2", "--time-limit", "1e-9"]) == 3
    captured = capsys.readouterr()
    assert "time limit: the gap asked for was not reached" in captured.out
    assert captured.err == ""
    assert main(["optimum", large_pair, "-k", "2", "--relative-gap", "0.5"]) == 0
    assert "status" not in capsys.readouterr().out


@pytest.mark.deep
def test_a_gap_beyond_float64_is_stalled(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """No float interval is narrower than its own rounding: the search stops and says so."""
    path = tmp_path / "pair.json"
    instances.random_float(1, 6, 3, agreement=0.3).save(path)
    stalled = run_json(capsys, "optimum", str(path), "-k", "2", "--relative-gap", "1e-15", code=3)
    assert stalled["status"] == "stalled"
    assert 0 < stalled["upper"] - stalled["lower"] < 1e-6


@pytest.mark.parametrize(("stop", "code"), [(interrupt, 130), (terminate, 143)])
def test_what_is_finished_is_printed(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    large_pair: str,
    stop: Callable[[], None],
    code: int,
) -> None:
    """Ctrl-C and SIGTERM in the third step: one JSON object, one line on stderr, the signal's exit code."""
    stop_after(monkeypatch, 3, stop)
    assert main(["optimum", large_pair, "-k", "2", "--json"]) == code
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["status"] == "interrupted"
    assert 1 <= document["lower"] < document["upper"] <= 4
    assert captured.err == "error: interrupted; the interval is what was certified by then\n"
    monkeypatch.setattr("spectheory.command_line.theory_commands.load_pair", lambda path: stop())
    assert main(["optimum", large_pair, "--json"]) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err.strip()) == ("", "error: interrupted before anything was finished")


def test_the_signal_s_handler_is_given_back(capsys: pytest.CaptureFixture[str], large_pair: str) -> None:
    """Whoever calls ``main`` keeps the handler of SIGTERM that was there."""
    before = signal.getsignal(signal.SIGTERM)
    run_error(capsys, "optimum", large_pair, "--relative-gap", "-1")
    assert signal.getsignal(signal.SIGTERM) is before
