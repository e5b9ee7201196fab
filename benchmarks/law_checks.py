"""What it costs ``simulate`` to check that every answer of a verifier is a law, beside verification.

Three rounds take turns on the rows that ``verifiers.py`` times, by default V = 32 000, K = 4, L = 8 and a
batch of 16, in CPU time on a CPU: ``sampled`` is ``outcome()`` and ``sample()``, what decoding does;
``checked`` is ``outcome()``, a sampled stop and ``law_errors``, what ``simulate`` does behind prompts, where
no token is drawn; ``both`` is ``sampled`` and ``law_errors`` of what was drawn, as over whole texts.  The
largest error found says how far rounding is from the tolerance.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from timing import median_seconds, write
from verifiers import Shape, described_machine, drafted, finished, parse_arguments, placed, runnable

from spectheory.verification.law_errors import LAW_TOLERANCE, law_errors


def measure(shape: Shape, dtype: str, device: str, repeats: int, seed: int) -> list[dict[str, Any]]:
    """One entry per verifier."""
    given = drafted(shape, dtype, seed).on(device)
    entries = []
    for name, verifier in runnable(shape).items():
        if name == "multi_round_without_replacement":  # for other drafts than these
            continue

        def drawing() -> torch.Generator:
            return torch.Generator(device).manual_seed(seed)

        def sampled(verifier: Any = verifier) -> Any:
            return verifier.outcome(*given).sample(drawing())

        def checked(verifier: Any = verifier) -> Any:
            outcome = verifier.outcome(*given)
            return law_errors(outcome, outcome.sample_stop(drawing()), given[0])

        def both(verifier: Any = verifier) -> Any:
            outcome = verifier.outcome(*given)
            drawn = outcome.sample(drawing())
            return law_errors(outcome, outcome.stop_of(drawn), given[0], drawn)

        runs: dict[str, Callable[[], Any]] = {"sampled": sampled, "checked": checked, "both": both}
        seconds = median_seconds(
            {what: finished(run, device) for what, run in runs.items()},
            repeats,
            time.process_time if device == "cpu" else time.perf_counter,
        )
        entries.append(
            {
                "verifier": name,
                "seconds": seconds,
                "checked_to_sampled": seconds["checked"] / seconds["sampled"],
                "both_to_sampled": seconds["both"] / seconds["sampled"],
                "largest_error": float(checked().max()),
                "tolerance": LAW_TOLERANCE[dtype],
            }
        )
    return entries


def main() -> int:
    """Measure, print, write; 1 if rounding alone comes within a tenth of the tolerance."""
    options = parse_arguments(__doc__)
    device, shape = placed(options)
    described = described_machine(device)
    entries = measure(shape, options.dtype, device, options.repeats, options.seed)
    print(f"{described['processor']}; device {described['device']}; {shape}, {options.dtype}")
    print(f"{'verifier':20}{'sampled ms':>12}{'checked':>10}{'both':>8}{'largest error':>15}")
    for entry in entries:
        milliseconds = entry["seconds"]["sampled"] * 1e3
        print(
            f"{entry['verifier']:20}{milliseconds:12.3f}{entry['checked_to_sampled']:10.2f}"
            f"{entry['both_to_sampled']:8.2f}{entry['largest_error']:15.1e}"
        )
    settings = {**shape._asdict(), "dtype": options.dtype, "seed": options.seed}
    write(
        options.out,
        {"machine": described, "settings": settings, "repeats": options.repeats, "results": entries},
    )
    return 1 if any(entry["largest_error"] > entry["tolerance"] / 10 for entry in entries) else 0


if __name__ == "__main__":
    sys.exit(main())
