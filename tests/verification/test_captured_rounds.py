"""Rounds as graphs: the laws and samples of the verifier itself, whatever came before.

On the host recorded operations stand for the graphs of a device; ``make gpu`` judges those.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from deep import first_is_quick
from recorded_graphs import RecordedMemory
from spectheory.foundation.errors import NoKernelsNotice
from spectheory.pairs.drafts import Iid, WithoutReplacement
from spectheory.verification import captured_rounds
from spectheory.verification.algorithms import verifiers
from spectheory.verification.algorithms.path_selection.scored_multipath import ScoredMultipath
from spectheory.verification.captured_rounds import CapturedOutcome, CapturedRounds
from spectheory.verification.verifier import Verifier
from torch_support import drafted_from_a_table

V, L, K = 5, 3, 2
FROM_THE_HOST = ("otm", "conditional_transport", "optimal_multipath", "kseq")


@pytest.fixture(autouse=True)
def _as_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """No number is looked at."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("spectheory."):
            for name in ("on_host", "is_one_number", "rows_for_loops"):
                if name in vars(module):
                    monkeypatch.setattr(module, name, lambda *_: False)


def drafted(seed: int, count: int) -> tuple[torch.Tensor, ...]:
    return drafted_from_a_table(seed, count, V, L, K, num_tokens=V)


def bound(name: str) -> Verifier:
    process = Iid(K) if "iid" in verifiers[name].draft_processes else WithoutReplacement((K, 1, 1))
    return verifiers[name].bind(process)


def same(verifier: Verifier, rounds: CapturedRounds, seed: int, count: int) -> bool:
    """Stops, samples and corrections are those of the verifier; whether they came from a graph."""
    given = drafted(seed, count)
    expected, found = verifier.outcome(*given), rounds.outcome(*given)
    assert torch.equal(found.stop_probs, expected.stop_probs)
    drawn, also = (outcome.sample(torch.Generator().manual_seed(seed)) for outcome in (expected, found))
    for field in ("path_index", "length", "token"):
        assert torch.equal(getattr(drawn, field), getattr(also, field))
    stop = drawn.path_index, drawn.length
    assert torch.equal(found.correction(*stop), expected.correction(*stop))
    return isinstance(found, CapturedOutcome)


@first_is_quick("name", [name for name in verifiers if name not in FROM_THE_HOST], quick=3)
def test_a_replayed_round_is_the_round(name: str) -> None:
    """Batches of 3, 3, 4 and 2 need one graph where they are filled up to 4, and 2 is another kind."""
    verifier = bound(name)
    rounds = CapturedRounds(verifier, RecordedMemory())
    assert [same(verifier, rounds, seed, count) for seed, count in enumerate((3, 3, 4, 3, 2, 2))] == [
        False, True, True, True, False, True,
    ]  # fmt: skip


def test_partner_a_graph_that_repeats_nothing_is_seen() -> None:
    verifier = bound("block")
    rounds = CapturedRounds(verifier, RecordedMemory(replays=False))
    assert not same(verifier, rounds, 1, 3)
    with pytest.raises(AssertionError):
        same(verifier, rounds, 2, 3)


def test_an_outcome_that_is_asked_late_is_computed_anew() -> None:
    """The next round, of this verifier or another one, has its memory by then."""
    memory, verifier = RecordedMemory(), bound("block")
    rounds, others = CapturedRounds(verifier, memory), CapturedRounds(bound("token"), memory)
    for seed in range(2):
        rounds.outcome(*drafted(seed, 3))
        others.outcome(*drafted(seed, 3))
    given = drafted(7, 3)
    early, expected = rounds.outcome(*given), verifier.outcome(*given)
    others.outcome(*drafted(8, 3))
    replayed = memory.replayed
    stop = torch.zeros(3, dtype=torch.int64), torch.tensor([0, 1, 2])
    assert torch.equal(early.correction(*stop), expected.correction(*stop))
    late, fresh = (outcome.sample(torch.Generator().manual_seed(1)) for outcome in (early, expected))
    assert torch.equal(late.token, fresh.token)
    assert memory.replayed == replayed


def test_what_waits_for_the_device_is_not_captured() -> None:
    class Waits(RecordedMemory):
        @contextmanager
        def rehearsal(self) -> Iterator[None]:
            raise RuntimeError("called a synchronizing CUDA operation")
            yield

    verifier, memory = bound("block"), Waits()
    rounds = CapturedRounds(verifier, memory)
    assert not any(same(verifier, rounds, seed, 3) for seed in range(4))


def test_what_no_graph_takes_runs_as_it_is() -> None:
    class Fails(RecordedMemory):
        def capture(self, function: Any) -> Any:
            raise RuntimeError("operation not permitted\nwhile a stream is captured")

    rounds = CapturedRounds(bound("block"), Fails())
    assert not same(rounds.verifier, rounds, 1, 3)
    with pytest.warns(NoKernelsNotice, match="no CUDA graph of 'block'.*: operation not permitted$"):
        assert not same(rounds.verifier, rounds, 2, 3)
    assert not same(rounds.verifier, rounds, 3, 3)


def test_on_the_host_nothing_is_captured() -> None:
    given: Any = drafted(1, 3)
    for _ in range(3):
        found = captured_rounds.captured_outcome(bound("block"), *given)
        assert not isinstance(found, CapturedOutcome)


def test_a_verifier_that_is_changed_is_another_one() -> None:
    """Also for kinds of batches that come later."""
    memory, device, verifier = RecordedMemory(), torch.device("cpu"), ScoredMultipath(num_cells=4)
    before = captured_rounds.rounds_of(verifier, memory, device)
    verifier.num_cells = 8
    assert captured_rounds.rounds_of(verifier, memory, device) is not before
    assert same(ScoredMultipath(num_cells=4), before, 1, 3) is False
    assert same(ScoredMultipath(num_cells=4), before, 2, 3)


def test_large_batches_are_not_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured_rounds, "MOST_BYTES", 100)
    verifier = bound("block")
    rounds = CapturedRounds(verifier, RecordedMemory())
    assert not any(same(verifier, rounds, seed, 3) for seed in range(3))


def test_a_verifier_bound_again_is_the_same() -> None:
    memory, device = RecordedMemory(), torch.device("cpu")
    rounds = {
        id(captured_rounds.rounds_of(verifiers[name].bind(Iid(number)), memory, device))
        for name in ("traversal", "block")
        for number in (2, 3, 2)
    }
    assert len(rounds) == 3  # block is the same for every number of paths
