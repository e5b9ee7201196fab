"""Verification of one drafted path against ``_speculative_sampling`` of transformers, batch 1, one thread.

transformers is given logits, as it asks for, and takes the softmax of all rows.  Our verifiers are given the
rows of probabilities, once plainly and once compiled, or the logits, whose softmax then counts too.  All take
turns in one process; what is compared are medians of the processor's time, which counts no other process, and
only the ratios travel to another machine.  Each is timed right after itself, as in a loop over calls, and
also right after another one, which leaves caches full of other rows and other code.  The script starts anew
and tells glibc to keep freed memory: otherwise who is timed after memory was given back pays for its pages.

Exit status 1 if ``token`` or ``block`` is slower than transformers from the same logits.
"""

import argparse
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any

import torch
from timing import exit_status, machine, median_seconds, write
from verifiers import Shape, drafted

from spectheory import verifiers
from spectheory.verification.verifier import Verifier

NAMES = ("token", "block")


def alternatives(
    vocab_size: int, draft_length: int, seed: int, **compile_options: Any
) -> dict[str, Callable[[], Any]]:
    """Name -> one verification: a law of stops and one sample, or transformers' sample."""
    from transformers.generation.utils import _speculative_sampling

    given = drafted(Shape(vocab_size, draft_length, num_drafts=1, batch=1), "float32", seed).on("cpu")
    paths, target_rows, draft_rows = given
    target_logits, draft_logits = target_rows.log(), draft_rows.log()
    generator = torch.Generator().manual_seed(seed)

    def ours(verifier: Verifier, from_logits: bool) -> Callable[[], Any]:
        def run() -> Any:
            rows = (target_rows, draft_rows)
            if from_logits:
                rows = (target_logits.softmax(-1), draft_logits.softmax(-1))
            return verifier.outcome(paths, *rows).sample(generator)

        return run

    found: dict[str, Callable[[], Any]] = {
        "transformers": lambda: _speculative_sampling(
            paths[0], draft_logits[0], draft_length, target_logits[0]
        )
    }
    for name in NAMES:
        found[name] = ours(verifiers[name], from_logits=False)
        found[f"{name}, from logits"] = ours(verifiers[name], from_logits=True)
        compiled = verifiers[name].compiled(**compile_options)
        found[f"{name}, compiled"] = ours(compiled, from_logits=False)
        found[f"{name}, compiled, from logits"] = ours(compiled, from_logits=True)
    return found


def measure(
    vocab_size: int, draft_length: int, repeats: int, seed: int, **compile_options: Any
) -> list[dict[str, Any]]:
    """One entry per alternative: its median times, and how many times faster than transformers it is."""
    torch._dynamo.reset()  # graphs of this size, not of any
    runs = alternatives(vocab_size, draft_length, seed, **compile_options)
    own, others = (median_seconds(runs, repeats, process_time, untimed) for untimed in (1, 0))
    return [
        {
            "alternative": name,
            "vocab_size": vocab_size,
            "milliseconds": 1e3 * own[name],
            "times_faster": own["transformers"] / own[name],
            "milliseconds_after_another": 1e3 * others[name],
            "times_faster_after_another": others["transformers"] / others[name],
        }
        for name in runs
    ]


def slower(entries: list[dict[str, Any]]) -> list[str]:
    """One line per plain verifier that is slower than transformers from the same logits."""
    asked = {f"{name}, from logits" for name in NAMES}
    return [
        f"{entry['alternative']}, V = {entry['vocab_size']}: {entry['times_faster']:.2f} times as fast"
        for entry in entries
        if entry["alternative"] in asked and not entry["times_faster"] >= 1
    ]


KEEP_FREED_MEMORY = {
    "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1),
    "MALLOC_MMAP_THRESHOLD_": str(2**31 - 1),
    "MALLOC_TOP_PAD_": str(2**26),
}


def main() -> int:
    """Measure, print, write; 1 if one is slower."""
    if not KEEP_FREED_MEMORY.keys() <= os.environ.keys():
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | KEEP_FREED_MEMORY)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vocab-sizes", type=int, nargs="+", default=[32_000, 128_256], help="V")
    parser.add_argument("--draft-length", type=int, default=8, help="L")
    parser.add_argument("--repeats", type=int, default=51, help="timed runs of each, at least 5")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", default="inductor", help="of torch.compile")
    parser.add_argument(
        "--cpp-wrapper", action="store_true", help="compiled kernels are started from C++, not from Python"
    )
    parser.add_argument("--out", type=Path, help="write the results as JSON to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    compile_options = {"backend": options.backend}
    if options.cpp_wrapper:
        compile_options["options"] = {"cpp_wrapper": True}
    entries = [
        entry
        for size in options.vocab_sizes
        for entry in measure(size, options.draft_length, options.repeats, options.seed, **compile_options)
    ]
    print(f"{'':38} {'right after itself':>22} {'after another one':>22}")
    print(f"{'alternative':30} {'V':>7} {'ms':>8}  times faster {'ms':>8}  times faster")
    for entry in entries:
        print(
            f"{entry['alternative']:30} {entry['vocab_size']:7} "
            f"{entry['milliseconds']:8.3f} {entry['times_faster']:13.2f} "
            f"{entry['milliseconds_after_another']:8.3f} {entry['times_faster_after_another']:13.2f}"
        )
    settings = {name: value for name, value in vars(options).items() if name != "out"}
    described = {**machine(), "torch": torch.__version__, "transformers": version("transformers")}
    write(options.out, {"machine": described, "settings": settings, "results": entries})
    return exit_status([f"slower: {line}" for line in slower(entries)])


if __name__ == "__main__":
    sys.exit(main())
