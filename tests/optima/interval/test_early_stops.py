"""The search for the interval is stopped: time limits, signals and errors in the callback."""

import itertools
import signal
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from interval_checks import proofs_hold
from spectheory import instances
from spectheory.optima.interval import interval
from spectheory.optima.interval.interior_point import ChordProgram
from spectheory.optima.interval.interval import multi_path_interval


def test_a_time_limit_returns_a_valid_interval() -> None:
    """The first check already comes too late, so block verification and its slacks remain."""
    pair = instances.random_float(1, 10, 3, 1.0, 0.5)
    best = multi_path_interval(pair, 4, time_limit=1e-9)
    assert best.status == "time limit"
    assert best.rounds == 0
    assert best.lower < 3.908 < best.upper
    proofs_hold(pair, 4, best)


def steps_that(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> None:
    """Make every interior-point step call ``act`` with its number, 1, 2, .., before it moves."""
    numbers, step = itertools.count(1), ChordProgram.step

    def patched(program: ChordProgram) -> float:
        act(next(numbers))
        return step(program)

    monkeypatch.setattr(ChordProgram, "step", patched)


def test_a_time_limit_in_the_middle_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that moves one second per step, 6.5 s are seven steps: overrun by less than one step."""
    clock = [0.0]

    def tick(number: int) -> None:
        clock[0] = float(number)

    pair = instances.random_float(1, 10, 3, 1.0, 0.5)
    full = multi_path_interval(pair, 4)
    steps_that(monkeypatch, tick)
    monkeypatch.setattr(interval, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    best = multi_path_interval(pair, 4, time_limit=6.5)
    assert (best.status, best.rounds, best.seconds) == ("time limit", 7, 7.0)
    assert full.rounds > 7
    assert best.lower < full.lower <= full.upper < best.upper
    assert 1e-6 < best.relative_gap < 0.5
    proofs_hold(pair, 4, best)
    # the same limit ends nothing when the clock stands still
    clock[0] = 0.0
    monkeypatch.setattr(interval, "time", SimpleNamespace(monotonic=lambda: 0.0))
    assert multi_path_interval(pair, 4, time_limit=6.5).status == "optimal"


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[], None]]:
    """A real SIGINT to this process, which Python turns into KeyboardInterrupt."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, previous)


@pytest.mark.parametrize("name", ["certified_bound_of_draft", "certified_bound_of_slacks"])
def test_a_signal_within_a_bound(
    monkeypatch: pytest.MonkeyPatch, ctrl_c: Callable[[], None], name: str
) -> None:
    """SIGINT while a bound is computed: the one before it stands, with its own proof."""
    numbers, bound = itertools.count(1), getattr(interval, name)

    def patched(*arguments: object) -> object:
        found = bound(*arguments)
        if next(numbers) == 8:
            ctrl_c()
        return found

    monkeypatch.setattr(interval, name, patched)
    pair = instances.random_float(1, 10, 3, 1.0, 0.5)
    best = multi_path_interval(pair, 4)
    assert best.status == "interrupted"
    assert 0 < best.rounds < 8
    proofs_hold(pair, 4, best)


def test_an_error_in_the_callback_is_not_swallowed() -> None:

    def broken(number: int, lower: float, upper: float) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        multi_path_interval(instances.two_token(), 2, progress=broken)
