"""The exact output law of block verification at V = 4, L = 4 in three arithmetics."""

from typing import Any

from timing import arguments, median_seconds, ratio_entry, report

from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.verification.algorithms import verifiers
from spectheory.verification.outcome import Outcome


class BlockInFractions:
    """Block verification as a user's object: it is handed Fractions, not python-flint's rationals."""

    single_path = True

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        return verifiers["block"].outcome(paths, target_rows, draft_rows)


def measure(repeats: int) -> list[dict[str, Any]]:
    """Times of the three arithmetics, after checking that they agree.

    Raises:
        ArithmeticError: the laws differ.
    """
    pair = instances.random_rational(44, vocab_size=4, draft_length=4)
    in_float = pair.to_float()
    exact = output_law("block", pair)
    if exact.block_efficiency != output_law(BlockInFractions(), pair).block_efficiency:
        raise ArithmeticError("Fractions and python-flint disagree")
    if abs(output_law("block", in_float).block_efficiency - float(exact.block_efficiency)) > 1e-12:
        raise ArithmeticError("float64 and rationals disagree")
    seconds = median_seconds(
        {
            "python-flint": lambda: output_law("block", pair),
            "Fraction": lambda: output_law(BlockInFractions(), pair),
            "float64": lambda: output_law("block", in_float),
        },
        repeats,
    )
    claim, details = "law of block, V=4 L=4", {"block_efficiency": str(exact.block_efficiency)}
    return [
        ratio_entry(claim, "python-flint", "Fraction", seconds, **details),
        ratio_entry(claim, "float64", "python-flint", seconds, **details),
    ]


if __name__ == "__main__":
    options = arguments(__doc__)
    report(measure(options.repeats), options.repeats, options.out)
