"""Streams and tasks: which verifier on how many drafts, and that tasks do not depend on one another."""

from typing import Any

import numpy as np
import pytest

from decoding_support import PROMPTS, tiny_pair
from spectheory import instances, verifiers
from spectheory.pairs.drafts import Iid
from spectheory.simulation.estimates import Tally
from spectheory.simulation.judging import Stream
from spectheory.simulation.parallel import Task, Work
from spectheory.simulation.settings import DrawSettings, SimulationSettings
from spectheory.simulation.sources import EnumeratedSource
from spectheory.simulation.texts import TextSource

GIVEN = [verifiers[name] for name in ("token", "spectr")]


def text_work() -> Work:
    settings = SimulationSettings(draft_length=2, batch_size=2, max_new_tokens=4, samples=3, seed=5)
    source = TextSource(tiny_pair(), list(PROMPTS), Iid(2), settings)
    return Work(source, Stream.of(GIVEN, [Iid(1), Iid(2)], Iid(1)))


def done(work: Work, task: Task) -> tuple[dict[str, Tally], int]:
    steps: list[int] = []
    return work.do(task, steps.append), sum(steps)


def assert_same(found: Tally, wanted: Tally) -> None:
    for name, value in vars(wanted).items():
        np.testing.assert_array_equal(getattr(found, name), value)


def test_texts_are_a_task_per_stream_and_common_drafts_are_one() -> None:
    texts = text_work()
    names = ["token", "spectr K=1", "spectr K=2"]
    assert texts.tasks([0, 1]) == [Task(batch, (name,)) for batch in (0, 1) for name in names]
    source = EnumeratedSource(instances.two_token(2), Iid(2), DrawSettings(samples=10))
    drafts = Work(source, Stream.of(GIVEN, [Iid(2)], Iid(2)))
    assert drafts.tasks([0]) == [Task(0, ("token", "spectr"))]
    assert [drafts.draws(task) for task in drafts.tasks([0])] == [10]


def test_a_task_depends_on_no_other() -> None:
    work = text_work()
    tasks = work.tasks([0, 1])
    forward = {task: done(work, task) for task in tasks}
    for task in reversed(tasks):
        again, steps = done(work, task)
        assert steps == work.draws(task) == 3 * 2
        for name in task.streams:
            assert_same(again[name], forward[task][0][name])
    first, other = (forward[Task(batch, ("token",))][0]["token"] for batch in (0, 1))
    assert (first.expected != other.expected).all()  # the partner


def test_streams_are_named_by_verifier_and_where_there_are_several_by_drafts() -> None:
    several = Stream.of(GIVEN, [Iid(2), Iid(4)], on_one_path=Iid(1))
    assert [(name, stream.num_drafts) for name, stream in several.items()] == [
        ("token", 1), ("spectr K=2", 2), ("spectr K=4", 4),
    ]  # fmt: skip
    alone = Stream.of(GIVEN, [Iid(3)], Iid(3))
    assert [(name, stream.num_drafts) for name, stream in alone.items()] == [("token", 3), ("spectr", 3)]


@pytest.mark.parametrize("error", [MemoryError("no room"), RuntimeError("something else")])
def test_only_a_lack_of_memory_is_said_to_be_one(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> Any:
        raise error

    monkeypatch.setattr(TextSource, "_tally", fail)
    work = text_work()
    with pytest.raises(Exception, match="batch_size 1" if isinstance(error, MemoryError) else "something"):
        work.do(work.tasks([0])[0], lambda draws: None)
