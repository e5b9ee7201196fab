"""From tokens per target call to the speed-up that they predict, for models on other hardware."""

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import check_count, is_number


def predicted_speed_up(block_efficiency: float, draft_length: int, cost_ratio: float) -> float:
    """How many times faster than plain decoding, in the computational model of spectr2023 §1.

    A call of the target takes one unit of time, whatever it reads in parallel, and a call of the draft takes
    c.  An iteration makes L calls of the draft, one after another, and one call of the target.  It yields B
    tokens, for which plain decoding needs B calls of the target:

        speed-up = B / (1 + L c).

    Verification is taken to be free, and K paths to cost as much as one path.

    Args:
        block_efficiency: B, tokens per target call.
        draft_length: L.
        cost_ratio: c, the time of a call of the draft over that of a call of the target.

    Raises:
        InvalidInputError: the ratio is not a number of at least 0, or L is not a whole number of at least 1.

    Example:
        >>> predicted_speed_up(3.0, 8, 0.25), predicted_speed_up(3.0, 8, 0)
        (1.0, 3.0)
    """
    length = check_count("draft_length", draft_length)
    if not is_number(cost_ratio) or cost_ratio < 0:
        raise InvalidInputError(f"cost_ratio must be a number of at least 0, got {cost_ratio!r}")
    return block_efficiency / (1 + length * float(cost_ratio))
