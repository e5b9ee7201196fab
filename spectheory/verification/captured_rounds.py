"""Rounds on a CUDA device as CUDA graphs: one launch replaces tens to thousands.

A round is a call of ``outcome``, and the sample or correction rows taken from it.  The device computes a few
numbers in microseconds, but the host needs a millisecond to launch the operations.  So we record the
operations of a round once, and replay them in later rounds of the same shape.  The laws, and the samples of a
given seed, stay the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, NamedTuple

from spectheory.foundation.arrays import Array
from spectheory.foundation.errors import NoKernelsNotice
from spectheory.foundation.kernels import choice
from spectheory.verification.compilation import Compiled
from spectheory.verification.outcome import Outcome, Sample, uniform_numbers
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier

Replay = Callable[[], None]
PADDED_UP_TO = 64
"""Batches up to this size are padded to a power of two, so that few graphs are needed as texts end."""
MOST_BYTES = 1 << 31
"""The most bytes of rows for which rounds are captured.  With more, the host is not the bottleneck."""
MOST_KEPT = 32
"""The most verifiers whose graphs are kept, and the most kinds of inputs."""


class Memory:
    """Memory that the graphs of a device share: their input arrays and their intermediate results.

    Attributes:
        rounds: the number of rounds begun.  The results of a round stay valid until the next one begins.
    """

    def __init__(self) -> None:
        self.rounds = 0
        self._inputs: dict[Any, list[Array]] = {}
        self._pool: Any = None

    def inputs(self, kind: Any, given: Sequence[Array], size: int) -> list[Array]:
        """Return the input arrays for batches of ``size`` elements of this kind, allocated at the first call.

        Entries that a smaller batch does not fill hold repeated elements of earlier batches.
        """
        import torch

        again = torch.arange(size, device=given[0].device) % len(given[0])
        return kept(self._inputs, kind, lambda: [array[again].contiguous() for array in given])

    @contextmanager
    def rehearsal(self) -> Iterator[None]:
        """Context for a trial run before a capture.  Waiting for the device raises ``RuntimeError`` in it."""
        import torch

        before, stream = torch.cuda.get_sync_debug_mode(), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        torch.cuda.set_sync_debug_mode("error")
        try:
            with torch.cuda.stream(stream):
                yield
        finally:
            torch.cuda.set_sync_debug_mode(before)
            torch.cuda.current_stream().wait_stream(stream)

    def capture(self, function: Callable[[], Any]) -> tuple[Replay, Any]:
        """Record the operations of a function; return their replay, and the arrays that it writes."""
        import torch

        graph, stream, here = torch.cuda.CUDAGraph(), torch.cuda.Stream(), torch.cuda.current_stream()
        stream.wait_stream(here)
        with torch.cuda.stream(stream):
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                results = function()
            finally:
                graph.capture_end()
        here.wait_stream(stream)
        self._pool = graph.pool()
        return graph.replay, results


class Round(NamedTuple):
    """The graphs of one verifier on inputs of one kind.

    Attributes:
        inputs: paths, target rows and draft rows.
        uniform: uniform numbers for the stop and for the token, [size, 1] each.
        stop: path index and length, [2, size].
        stops: replay this graph first; it writes ``stop_probs``, [size, K, L+1].
        sample: writes ``drawn``: path index, length and token, [3, size].
        correction: writes ``rows``, the correction rows at ``stop``, [size, V].
    """

    inputs: list[Array]
    uniform: list[Array]
    stop: Array
    stops: Replay
    stop_probs: Array
    sample: Replay
    drawn: Array
    correction: Replay
    rows: Array


class CapturedRounds:
    """Run the rounds of one verifier, and capture a graph when a kind of batch comes a second time.

    The kind of a batch is its shape, its dtypes and its device.  A verifier that waits for the device, or
    computes its plans on the host, is not captured.

    Args:
        verifier: a verifier of the package, bound.
        memory: the memory for the device of the rows.
    """

    def __init__(self, verifier: Verifier, memory: Memory) -> None:
        self.verifier, self.memory = verifier, memory
        self._rounds: dict[Any, Round | None] = {}
        self._is_refused = False

    def outcome(self, *given: Array) -> Outcome:
        """Compute the verifier's outcome on paths, target rows and draft rows."""
        count = len(given[0])
        size = 1 << (count - 1).bit_length() if 0 < count <= PADDED_UP_TO else count
        kind = (size, *((tuple(array.shape[1:]), array.dtype, array.device) for array in given))
        large = sum(array.nbytes for array in given[1:]) > MOST_BYTES
        if self._is_refused or large or not count or kind not in self._rounds:
            self._rounds.setdefault(kind, None)
            return self.verifier.outcome(*given)
        one = self._rounds[kind] = self._rounds[kind] or self._captured(kind, given, size)
        return self.verifier.outcome(*given) if one is None else CapturedOutcome(self, one, given)

    def _captured(self, kind: Any, given: Sequence[Array], size: int) -> Round | None:
        import torch

        memory, verifier = self.memory, self.verifier
        memory.rounds += 1
        inputs = memory.inputs(kind, given, size)
        uniform = [inputs[1].new_full((size, 1), 0.5, dtype=torch.float64) for _ in range(2)]
        stop = inputs[0].new_zeros((2, size))

        def sampled(outcome: Outcome) -> Array:
            drawn = outcome.sample(list(uniform))
            return torch.stack((drawn.path_index, drawn.length, drawn.token))

        def asked() -> None:
            outcome = verifier.outcome(*inputs)
            sampled(outcome)
            outcome.correction(*stop)

        asked()  # so that caches are filled before the capture
        try:
            with memory.rehearsal():
                asked()
        except RuntimeError:
            self._is_refused = True
            return None
        try:
            stops, outcome = memory.capture(lambda: verifier.outcome(*inputs))
            sample, drawn = memory.capture(lambda: sampled(outcome))
            correction, rows = memory.capture(lambda: outcome.correction(*stop))
        except RuntimeError as error:
            self._is_refused = True
            fault = f"{type(error).__name__}: {error}".partition("\n")[0]
            warnings.warn(
                f"no CUDA graph of {verifier.name!r}, which runs as it is: {fault}", NoKernelsNotice, 2
            )
            return None
        return Round(inputs, uniform, stop, stops, outcome.stop_probs, sample, drawn, correction, rows)


class CapturedOutcome(Outcome):
    """The outcome of a replayed round.  Once the next round begins, requests are computed without a graph."""

    def __init__(self, rounds: CapturedRounds, one: Round, given: Sequence[Array]) -> None:
        rounds.memory.rounds += 1
        for array, there in zip(given, one.inputs, strict=True):
            there[: len(array)].copy_(array)
        one.stops()
        number, size = rounds.memory.rounds, len(given[0])

        def is_there() -> bool:
            return rounds.memory.rounds == number

        def correction(path_index: Array, length: Array) -> Array:
            if not is_there():
                return rounds.verifier.outcome(*given).correction(path_index, length)
            for there, numbers in zip(one.stop, (path_index, length), strict=True):
                there[:size].copy_(numbers)
            one.correction()
            return one.rows[:size].clone()

        def sample(generator: Any) -> Sample:
            if not is_there():
                return rounds.verifier.outcome(*given).sample(generator)
            for there in one.uniform:
                uniform_numbers(generator, given[0][..., 0, :], out=there[:size])
            one.sample()
            return Sample(*one.drawn[:, :size].clone())

        super().__init__(one.stop_probs[:size].clone(), correction)
        self.__dict__["_sample"] = sample

    _sample: Callable[[Any], Sample]

    def sample(self, generator: Any) -> Sample:
        return self._sample(generator)


_MEMORY: dict[Any, Memory] = {}
_ROUNDS: dict[Any, CapturedRounds] = {}
"""(device, class and attributes of a verifier) -> its rounds; equal verifiers share them."""


def captured_outcome(verifier: Verifier, *given: Array) -> Outcome:
    """Compute ``verifier.outcome``; on a CUDA device replay a graph if this kind of batch came before.

    Users' verifiers and compiled verifiers are run without a graph.

    Args:
        verifier: the verifier to run.
        given: paths, target rows and draft rows, with one leading axis.
    """
    device = getattr(given[1], "device", None)
    as_it_is = isinstance(verifier, UserVerifier | Compiled)
    if getattr(device, "type", None) != "cuda" or as_it_is or not choice.are_plain(given[1:], given[1:]):
        return verifier.outcome(*given)
    import torch

    with torch.cuda.device(device):
        return rounds_of(verifier, _MEMORY.setdefault(device, Memory()), device).outcome(*given)


def rounds_of(verifier: Verifier, memory: Memory, device: Any) -> CapturedRounds:
    """Return the rounds of a verifier on a device.

    If its attributes are not hashable, the rounds are new at each call.
    """
    named = device, type(verifier), *sorted(vars(verifier).items())
    try:
        # A copy, so that later changes to the verifier do not affect the kept one.
        return kept(_ROUNDS, named, lambda: CapturedRounds(copy(verifier), memory))
    except TypeError:  # not hashable
        return CapturedRounds(verifier, memory)


def kept(entries: dict[Any, Any], name: Any, make: Callable[[], Any]) -> Any:
    """Return ``entries[name]``, made if it is missing.  If there are ``MOST_KEPT``, the oldest is removed."""
    if name not in entries:
        if len(entries) >= MOST_KEPT:
            del entries[next(iter(entries))]
        entries[name] = make()
    return entries[name]
