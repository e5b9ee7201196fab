"""Every runnable verifier at full vocabulary: time and peak memory of one round, against a plain copy.

One round is ``outcome()`` and one ``sample()``, so one correction row per batch element.  The copy is
that of the same rows, on the same device, in the same run.  By default V = 32 000, K = 4, L = 8, a batch
of 16: 139 MB of rows in float32.  It is timed into memory that is there already.

The claim is about memory: a verifier that goes over the rows once needs less than twice their size
beyond them, whatever it sorts or sums on the way.  Exit status 1 and a line that says which if not.

Two meters measure the peak, and the tests hold both against functions whose allocations are known:

- of the torch run that is timed: the CUDA allocator's own maximum, or on the CPU every allocation of
  torch's CPU allocator, as its profiler records them;
- of the same code on numpy arrays (CPU only): ``tracemalloc``, to which numpy reports its buffers.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from timing import exit_status, machine, median_seconds, write

from spectheory.pairs.drafts import Iid, WithoutReplacement
from spectheory.verification.algorithms import verifiers as published
from spectheory.verification.outcome import Outcome
from spectheory.verification.verifier import Verifier

LIMIT = 2.0
"""The claim: peak extra memory of a one-pass verifier, as a multiple of the input rows, stays below it."""
NOT_RUN = {
    "otm": "a plan takes seconds for each pair of rows, see one_position_plan.py",
    "conditional_transport": "a plan for every context, as otm",
    "optimal_multipath": "needs both models at every context: for enumerable pairs only",
    "leaf_rankings": "bound to the V^L leaves of an enumerable pair",
    "kseq": "one position only; spectr is K-SEQ position by position",
}
"""The other verifiers of the package, and why they have no line."""
NO_CLAIM = ("multi_round_without_replacement", "scored_multipath", "spectr_gbv")
"""Measured too, without the claim."""
ONE_PASS = tuple(name for name in published if name not in (*NOT_RUN, *NO_CLAIM))
"""The claim is about these: every other verifier of the registry."""
LOGIT_SCALE, DRAFT_NOISE = 6.0, 1.0
"""Standard deviations of the target's logits and of what the draft adds.  At V = 32 000 the likeliest
token then has a sizeable share, so that some paths share prefixes."""


class Shape(NamedTuple):
    """V, L, K and the batch size."""

    vocab_size: int
    draft_length: int
    num_drafts: int
    batch: int


class Drafted(NamedTuple):
    """K drafted paths per batch element and the rows on them: the arguments of ``outcome``.

    Attributes:
        paths: [batch, K, L].
        target_rows: [batch, K, L+1, V].
        draft_rows: [batch, K, L, V].
    """

    paths: Any
    target_rows: Any
    draft_rows: Any

    @property
    def row_bytes(self) -> int:
        """Bytes of the rows of both models."""
        return int(self.target_rows.nbytes + self.draft_rows.nbytes)

    def on(self, device: str) -> Drafted:
        """The same numbers as torch tensors on a device."""
        return Drafted(*(torch.from_numpy(array).to(device) for array in self))


def drafted(shape: Shape, dtype: str, seed: int, distinct: bool = False) -> Drafted:
    """Random rows, and paths drafted from them.

    The row of a context is softmax of normal logits from a generator seeded with the context, so that
    paths that share a prefix carry the same rows.  The draft's logits are the target's and noise.

    Args:
        shape: V, L, K and the batch size.
        dtype: float32 or float64.
        seed: of everything.
        distinct: draw the first tokens of the K paths without replacement.
    """
    V, L, K, batch = shape
    target_rows = np.empty((batch, K, L + 1, V), dtype)
    draft_rows = np.empty((batch, K, L, V), dtype)
    paths = np.zeros((batch, K, L), np.int64)
    draws = np.random.default_rng([seed, 0])
    for element, number in np.ndindex(batch, K):
        for depth in range(L + 1):
            context = paths[element, number, :depth].tolist()
            # With the depth, because a seed sequence does not tell trailing zeros from none.
            rng = np.random.default_rng([seed, 1, element, depth, *context])
            logits = LOGIT_SCALE * rng.standard_normal(V)
            target_rows[element, number, depth] = _softmax(logits)
            if depth == L:
                continue
            row = draft_rows[element, number, depth]
            row[:] = _softmax(logits + DRAFT_NOISE * rng.standard_normal(V))
            taken: Any = paths[element, :number, 0] if distinct and depth == 0 else []
            paths[element, number, depth] = _draw(row, taken, draws)
    return Drafted(paths, target_rows, draft_rows)


def _softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def _draw(row: np.ndarray, taken: Any, rng: np.random.Generator) -> int:
    """A token from a row without the tokens taken before, renormalised."""
    left = row.astype(np.float64)
    left[taken] = 0.0
    cumulative = left.cumsum()
    # The share is exactly 1 at the last token with mass, and u < 1: a token without mass is never drawn.
    return int(np.argmax(cumulative / cumulative[-1] > rng.random()))


def runnable(shape: Shape) -> dict[str, Verifier]:
    """The verifiers that need on-path rows only, by name."""
    widths = (shape.num_drafts, *[1] * (shape.draft_length - 1))
    iid, distinct = Iid(shape.num_drafts), WithoutReplacement(widths)
    return {
        name: verifier.bind(iid if iid.name in verifier.draft_processes else distinct)
        for name, verifier in published.items()
        if name not in NOT_RUN
    }


def one_round(verifier: Verifier, given: Drafted, seed: int) -> tuple[Outcome, Any]:
    """``outcome()`` and one sample per batch element; both are kept, as a decoding loop would."""
    outcome = verifier.outcome(*given)
    if isinstance(given.paths, np.ndarray):
        return outcome, outcome.sample(np.random.default_rng(seed))
    device = given.paths.device
    return outcome, outcome.sample(torch.Generator(device).manual_seed(seed))


# ------------------------------------------------------------------------------------ meters


def numpy_peak_bytes(run: Callable[[], Any]) -> int:
    """The most memory that ``run`` held at once beyond what was there before, by tracemalloc.

    It runs once before, untraced: modules that the first call imports are no part of a round.
    """
    run()
    traced_before = tracemalloc.is_tracing()
    if not traced_before:
        tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        kept = run()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        if not traced_before:
            tracemalloc.stop()
    del kept
    return peak - before


def torch_peak_bytes(run: Callable[[], Any], device: str) -> int:
    """The same for torch: of the CUDA allocator, or of its CPU allocator through the profiler.

    Blocks are counted, not what a kernel takes from elsewhere: a stable sort on the CPU has a buffer of one
    row per thread.  A first call may allocate workspaces that stay; let ``run`` have run before.
    """
    return _cuda_peak_bytes(run) if torch.device(device).type == "cuda" else _torch_cpu_peak_bytes(run)


def _cuda_peak_bytes(run: Callable[[], Any]) -> int:
    """Bytes that were asked for: a block that the allocator hands out may be larger."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_stats()["requested_bytes.all.current"]
    kept = run()
    torch.cuda.synchronize()
    peak: int = torch.cuda.memory_stats()["requested_bytes.all.peak"]
    del kept
    return peak - before


def _torch_cpu_peak_bytes(run: Callable[[], Any]) -> int:
    """From the profiler's trace; blocks that were there before do not count when they are freed."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profiler:
        kept = run()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    del kept
    held: dict[int, int] = {}
    now = peak = 0
    for event in sorted((e for e in events if e["name"] == "[memory]"), key=lambda e: e["ts"]):
        address, size = event["args"]["Addr"], event["args"]["Bytes"]
        if size > 0:
            held[address] = size
            now += size
        else:
            now -= held.pop(address, 0)
        peak = max(peak, now)
    return peak


# ------------------------------------------------------------------------------- measurement


def measure(shape: Shape, dtype: str, device: str, repeats: int, seed: int) -> list[dict[str, Any]]:
    """One entry per verifier: time and bandwidth against the copy, peak memory against the input rows."""
    on_host = {False: drafted(shape, dtype, seed), True: drafted(shape, dtype, seed, distinct=True)}
    placed = {distinct: given.on(device) for distinct, given in on_host.items()}
    verifiers = runnable(shape)
    distinct = {name: "iid" not in v.draft_processes for name, v in verifiers.items()}
    rounds: dict[str, Callable[[], Any]] = {
        name: lambda v=verifier, given=placed[distinct[name]]: one_round(v, given, seed)  # type: ignore[misc]
        for name, verifier in verifiers.items()
    }
    for name, run in rounds.items():
        check_law(name, run()[0], dtype)
    given = placed[False]

    def copy() -> tuple[Any, Any]:
        return given.target_rows.clone(), given.draft_rows.clone()

    check_meter(torch_peak_bytes(copy, device) / given.row_bytes)
    room = copy()

    def warm_copy() -> None:
        """Into memory that is there: a fresh copy waits for its pages, which would flatter a verifier."""
        room[0].copy_(given.target_rows)
        room[1].copy_(given.draft_rows)

    seconds = median_seconds(
        {
            "copy": finished(warm_copy, device),
            **{name: finished(run, device) for name, run in rounds.items()},
        },
        repeats,
    )
    entries = []
    for name, run in rounds.items():
        entry: dict[str, Any] = {
            "verifier": name,
            "seconds": seconds[name],
            "copy_seconds": seconds["copy"],
            "time_over_copy": seconds[name] / seconds["copy"],
            "input_bytes": given.row_bytes,
            "bytes_per_second": given.row_bytes / seconds[name],
            "bandwidth_over_copy": seconds["copy"] / seconds[name],
            "peak_over_input": torch_peak_bytes(run, device) / given.row_bytes,
            "peak_over_input_numpy": None,
            "one_pass": name in ONE_PASS,
        }
        if torch.device(device).type == "cpu":
            verifier, arrays = verifiers[name], on_host[distinct[name]]
            peak = numpy_peak_bytes(lambda v=verifier, a=arrays: one_round(v, a, seed))  # type: ignore[misc]
            entry["peak_over_input_numpy"] = peak / given.row_bytes
        entries.append(entry)
    return entries


def finished(run: Callable[[], Any], device: str) -> Callable[[], Any]:
    """``run`` that returns only when the device is done."""
    if torch.device(device).type != "cuda":
        return run

    def run_and_wait() -> Any:
        result = run()
        torch.cuda.synchronize()
        return result

    return run_and_wait


def check_law(name: str, outcome: Outcome, dtype: str) -> None:
    """Refuse to time something that is no law: the stop probabilities must sum to 1 on every element.

    Raises:
        ValueError: they do not.
    """
    total = outcome.stop_probs.sum(axis=(-2, -1))
    tolerance = 1e-3 if dtype == "float32" else 1e-9
    worst = float(abs(total - 1).max())
    if not worst <= tolerance:
        raise ValueError(
            f"{name}: the stop probabilities sum to 1 only up to {worst:.1e}, want {tolerance:g}"
        )


def check_meter(copy_over_input: float) -> None:
    """Refuse a meter of memory that does not see the copy as the size of the input, to 1%.

    Raises:
        ValueError: it does not.
    """
    if not abs(copy_over_input - 1) <= 0.01:
        raise ValueError(f"the meter sees a copy of the input as {copy_over_input:.3f} times its size, not 1")


def over_limit(entries: list[dict[str, Any]]) -> dict[str, float]:
    """The one-pass verifiers whose peak is not below ``LIMIT`` times the input rows, with that multiple."""
    found = {}
    for entry in entries:
        multiples = (entry["peak_over_input"], entry["peak_over_input_numpy"])
        largest = max(multiple for multiple in multiples if multiple is not None)
        if entry["one_pass"] and not largest < LIMIT:
            found[entry["verifier"]] = largest
    return found


# ------------------------------------------------------------------------------------ report


def described_machine(device: str) -> dict[str, Any]:
    """The machine, the device and torch's version and threads."""
    return {
        **machine(),
        "device": torch.cuda.get_device_name() if torch.device(device).type == "cuda" else "cpu",
        "torch": version("torch"),
        "torch_threads": torch.get_num_threads(),
        "load_average_at_start": os.getloadavg() if hasattr(os, "getloadavg") else None,
    }


def report(entries: list[dict[str, Any]], described: Mapping[str, Any], shape: Shape, title: str) -> None:
    """The table, what it leaves out, and how to read it."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=150)
    table = Table(title=title)
    for heading in ("verifier", "ms", "time / copy", "GB/s of input", "bandwidth / copy"):
        left = heading == "verifier"
        table.add_column(heading, justify="left" if left else "right", no_wrap=left)
    for heading in ("peak / input", "peak / input, numpy", f"claim: < {LIMIT:g}"):
        table.add_column(heading, justify="right")
    first = entries[0]
    copy_rate = first["input_bytes"] / first["copy_seconds"] / 1e9
    table.add_row(
        "(copy)", f"{first['copy_seconds'] * 1e3:.1f}", "1.00", f"{copy_rate:.2f}", "1.000", "1.000"
    )
    failed = over_limit(entries)
    for entry in entries:
        numpy_peak = entry["peak_over_input_numpy"]
        claim = ("FAILS" if entry["verifier"] in failed else "holds") if entry["one_pass"] else "-"
        table.add_row(
            entry["verifier"],
            f"{entry['seconds'] * 1e3:.1f}",
            f"{entry['time_over_copy']:.2f}",
            f"{entry['bytes_per_second'] / 1e9:.2f}",
            f"{entry['bandwidth_over_copy']:.3f}",
            f"{entry['peak_over_input']:.3f}",
            "-" if numpy_peak is None else f"{numpy_peak:.3f}",
            claim,
        )
    console.print(f"{described['processor']}, {described['cores']} cores; device {described['device']}")
    console.print(table)
    console.print(
        f"{shape}: {first['input_bytes'] / 1e6:.1f} MB of rows.  Bandwidth counts the whole input, although "
        "token reads single entries of it, block and greedy_block the rows of the first path.",
        markup=False,
    )
    for name, reason in NOT_RUN.items():
        console.print(f"not run: {name}: {reason}", markup=False)


def parse_arguments(description: str | None) -> argparse.Namespace:
    """The shape, the device and where to write."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vocab-size", type=int, default=32_000, help="V")
    parser.add_argument("--num-drafts", type=int, default=4, help="K")
    parser.add_argument("--draft-length", type=int, default=8, help="L")
    parser.add_argument("--batch", type=int, default=16, help="batch elements")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--repeats", type=int, default=5, help="timed rounds of each, at least 5")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write the results as JSON to this file")
    return parser.parse_args()


def placed(options: argparse.Namespace) -> tuple[str, Shape]:
    """The device and the shape that were asked for."""
    automatic = "cuda" if torch.cuda.is_available() else "cpu"
    device = automatic if options.device == "auto" else options.device
    return device, Shape(options.vocab_size, options.draft_length, options.num_drafts, options.batch)


def main() -> int:
    """Measure, print, write; 1 if the claim fails."""
    options = parse_arguments(__doc__)
    device, shape = placed(options)
    described = described_machine(device)
    entries = measure(shape, options.dtype, device, options.repeats, options.seed)
    report(entries, described, shape, f"One round, {options.dtype}; medians of {options.repeats}")
    document = {
        "machine": described,
        "settings": {**shape._asdict(), "dtype": options.dtype, "seed": options.seed, "limit": LIMIT},
        "repeats": options.repeats,
        "results": entries,
        "not_run": NOT_RUN,
    }
    write(options.out, document)
    return exit_status(
        [
            f"claim fails: {name} holds {multiple:.2f} times the input rows beyond them, not below {LIMIT:g}"
            for name, multiple in over_limit(entries).items()
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
