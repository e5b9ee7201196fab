"""What it costs ``simulate`` to check that every answer of a verifier is a law, as a share of verification.

Verification is ``outcome()``, a sampled stop and its correction row for every batch element, on the rows that
``verifiers.py`` times, by default V = 32 000, K = 4, L = 8 and a batch of 16.  The check is ``law_errors`` on
all stop probabilities and those correction rows; its result stays on the device, and ``simulate`` looks at it
once per batch of prompts.  The largest error found says how far rounding is from the tolerance.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
from timing import median_seconds, write
from verifiers import Shape, described_machine, drafted, finished, parse_arguments, placed, runnable

from spectheory.simulation.judging import LAW_TOLERANCE, law_errors


def measure(shape: Shape, dtype: str, device: str, repeats: int, seed: int) -> list[dict[str, Any]]:
    """One entry per verifier."""
    given = drafted(shape, dtype, seed).on(device)
    entries = []
    for name, verifier in runnable(shape).items():
        if name == "multi_round_without_replacement":  # for other drafts than these
            continue

        def verified(verifier: Any = verifier) -> tuple[Any, Any, Any]:
            outcome = verifier.outcome(*given)
            stop = outcome.sample_stop(torch.Generator(device).manual_seed(seed))
            return outcome, stop, outcome.correction(stop.path_index, stop.length)

        answer = verified()

        def checked(answer: tuple[Any, Any, Any] = answer) -> Any:
            return law_errors(*answer)

        runs: dict[str, Callable[[], Any]] = {"verification": verified, "check": checked}
        seconds = median_seconds({what: finished(run, device) for what, run in runs.items()}, repeats)
        entries.append(
            {
                "verifier": name,
                "verification_seconds": seconds["verification"],
                "check_seconds": seconds["check"],
                "share": seconds["check"] / seconds["verification"],
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
    print(f"{'verifier':20}{'verification ms':>16}{'check ms':>10}{'share':>8}{'largest error':>15}")
    for entry in entries:
        print(
            f"{entry['verifier']:20}{entry['verification_seconds'] * 1e3:16.2f}"
            f"{entry['check_seconds'] * 1e3:10.3f}{entry['share']:8.2%}{entry['largest_error']:15.1e}"
        )
    settings = {**shape._asdict(), "dtype": options.dtype, "seed": options.seed}
    write(
        options.out,
        {"machine": described, "settings": settings, "repeats": options.repeats, "results": entries},
    )
    return 1 if any(entry["largest_error"] > entry["tolerance"] / 10 for entry in entries) else 0


if __name__ == "__main__":
    sys.exit(main())
