"""All benchmarks in one run: a table on the terminal, JSON with ``--out``, exit status 1 if a claim fails."""

import sys

import exact_law
import min_cut
import vectorised_law
from timing import arguments, report

if __name__ == "__main__":
    options = arguments(__doc__)
    cut = min_cut.measure(options.repeats)
    entries = [*cut, *exact_law.measure(options.repeats), *vectorised_law.measure(options.repeats)]
    report(entries, options.repeats, options.out)
    sys.exit(0 if min_cut.holds(cut) else 1)
