"""Statistics of probed and drawn audits by simulation: ``python benchmarks/probing.py [RUNS] [DRAW_RUNS]``.

Prints how often a bound of probing lies below the truth, false alarms of the bets with optional stopping, and
the differences that draws see.  ``benchmarks/results/probing.txt`` holds what it printed.
"""

import math
import sys
import time

import numpy as np

from spectheory.auditing.drawing.draw import draw_and_judge
from spectheory.auditing.drawing.power import seen_with
from spectheory.auditing.handing.handing import handing
from spectheory.auditing.probing.claim import probe

SIZES = ((0.001, 0.002), (0.003, 0.005), (0.01, 0.02), (0.03, 0.05), (0.1, 0.2))
"""Areas of a hidden wrong square, and the bounds that are asked for: between 1 and 2 times as large."""
RISK = 0.05
WANTED = np.array([0.1, 0.2, 0.3, 0.4])


def coverage(runs: int) -> None:
    print(f"hidden wrong regions, {runs} runs each, at a risk of {RISK}")
    rng = np.random.default_rng(1)
    for size, within in SIZES:
        below = found = 0
        side = math.sqrt(size)
        for number in range(runs):
            corner = rng.random(2) * (1 - side)

            def sampler(_: int, corner: np.ndarray = corner, side: float = side) -> int:
                first, second = np.random.random(), np.random.random()  # noqa: NPY002
                if 0 <= first - corner[0] < side and 0 <= second - corner[1] < side:
                    return 9
                return int(first < 0.3) + 2 * int(second < 0.6)

            with handing():
                probed = probe([(1.0, sampler)], within, RISK, 50_000, number)
            missed = abs(float(probed.laws[0].get(9, 0)) - size)
            found += missed < 1e-6
            below += missed > probed.within
        print(
            f"area {size}, within {within}: learned {found}, bound below the truth {below}, "
            f"allowed {RISK * runs:.0f}"
        )


def false_alarms(runs: int) -> None:
    for risk in (0.05, 0.01):
        alarms = 0
        for seed in range(runs):
            drawn = iter(np.random.default_rng(seed).choice(4, 300, p=WANTED))
            answer = lambda drawn=drawn: divmod(int(next(drawn)), 2)  # noqa: E731
            alarms += draw_and_judge(answer, WANTED, 2, 2, most=300, risk=risk).rejected
        print(f"drawn, stopped when won, {runs} right samplers at a risk of {risk}: {alarms} false alarms")


def power() -> None:
    print("total variation that is rejected with probability 0.99, false alarm 10^-6: 4, 9, 27, 125 outcomes")
    for draws in (1_000, 10_000, 100_000, 1_000_000):
        seen = [seen_with(np.full(cells, 1 / cells), draws, 5e-7) for cells in (4, 9, 27, 125)]
        print(f"{draws:>9} draws: {', '.join(f'{each:.3f}' for each in seen)}")


if __name__ == "__main__":
    start = time.process_time()
    power()
    false_alarms(int(sys.argv[2]) if len(sys.argv) > 2 else 2_000)
    coverage(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)
    print(f"CPU {time.process_time() - start:.0f} s")
