"""From tokens per target call to the speed-up that they predict, for models on other hardware."""

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import check_count, is_number


def predicted_speed_up(
    block_efficiency: float,
    draft_length: int,
    cost_ratio: float,
    target_rows: int = 0,
    row_cost: float = 0.0,
) -> float:
    """How many times faster than plain decoding, in the computational model of spectr2023 §1.

    A call of the target that scores no drafts takes one unit of time, each drafted token that it scores r
    units more, and a call of the draft c units.  An iteration makes L calls of the draft, one after another,
    and one call of the target, which scores N drafted tokens.  It yields B tokens, for which plain decoding
    needs B calls of the target:

        speed-up = B / (1 + L c + N r).

    Verification is taken to be free.  spectr2023 has r = 0: K paths cost as much as one path.

    Args:
        block_efficiency: B, tokens per target call.
        draft_length: L, the depth of a tree.
        cost_ratio: c, the time of a call of the draft over that of a call of the target.
        target_rows: N, the drafted tokens.
        row_cost: r, the time that one more row adds to a call of the target, over that of the call.

    Raises:
        InvalidInputError: a cost is not a number of at least 0, L is not a whole number of at least 1, or N
            is not a whole number.

    Example:
        >>> predicted_speed_up(3.0, 8, 0.25), predicted_speed_up(3.0, 8, 0)
        (1.0, 3.0)
        >>> predicted_speed_up(3.0, 2, 0.0, target_rows=8, row_cost=0.0625)
        2.0
    """
    length, rows = (
        check_count("draft_length", draft_length),
        check_count("target_rows", target_rows, at_least=0),
    )
    for name, cost in (("cost_ratio", cost_ratio), ("row_cost", row_cost)):
        if not is_number(cost) or cost < 0:
            raise InvalidInputError(f"{name} must be a number of at least 0, got {cost!r}")
    return float(block_efficiency) / (1 + length * float(cost_ratio) + rows * float(row_cost))
