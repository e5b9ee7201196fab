"""Convert logits to the rows that a verifier sees: temperature, top-k and top-p."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from spectheory.foundation.arrays import argsort, on_host
from spectheory.foundation.errors import ComputationError, InvalidInputError
from spectheory.foundation.validation import check_count, is_number


@dataclass(frozen=True)
class SamplingOptions:
    """Settings that convert logits of both models to probabilities: temperature, then top-k, then top-p.

    Attributes:
        temperature: divisor of the logits.  0 keeps only the most likely token; ties go to the lower id.
        top_k: number of most likely tokens to keep (exactly k; ties go to the lower id).  None keeps all.
        top_p: keep the smallest set of most likely tokens whose mass reaches this value.  None keeps all.

    Raises:
        InvalidInputError: a value is outside its range.

    Example:
        >>> SamplingOptions(temperature=0.7, top_k=50)
        SamplingOptions(temperature=0.7, top_k=50, top_p=None)
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        if not is_number(self.temperature) or self.temperature < 0:
            raise InvalidInputError(f"temperature must be a number of at least 0, got {self.temperature!r}")
        object.__setattr__(self, "temperature", float(self.temperature))
        if self.top_k is not None:
            object.__setattr__(
                self, "top_k", check_count("top_k", self.top_k, advice="None keeps all tokens")
            )
        if self.top_p is not None:
            if not is_number(self.top_p) or not 0 < self.top_p <= 1:
                raise InvalidInputError(
                    f"top_p must be above 0 and at most 1, got {self.top_p!r}; None keeps all tokens"
                )
            object.__setattr__(self, "top_p", float(self.top_p))


PLAIN_SAMPLING = SamplingOptions()
"""Unchanged probabilities of the models: temperature 1, all tokens."""


def most_likely(scores: Tensor, count: int) -> Tensor:
    """Ids of the ``count`` largest scores in descending order; ties by lower id.  [..., V] -> [..., count]

    ``torch.topk`` does not define which of equal scores it takes, nor their order.  A stable sort does.
    """
    if on_host(scores) and count < scores.shape[-1]:
        largest, tokens = scores.topk(count)
        if (scores >= largest[..., -1:]).sum() == tokens.numel():  # no score left out equals the last kept
            tokens = tokens.sort(-1).values
            return tokens.gather(-1, argsort(-scores.gather(-1, tokens)))
    return argsort(-scores)[..., :count]


class LogitsCheck:
    """Records whether all logits so far had a finite maximum.

    On the CPU a row without a finite maximum raises at once.  On an accelerator this would wait for the
    device.  There the record stays on the device until ``failed`` is called, and the logits of such a row
    become 0.
    """

    def __init__(self) -> None:
        self._failed: Tensor | None = None

    def largest(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits, with bad rows replaced, and their maxima.  [..., V] -> [..., V], [..., 1]

        Raises:
            ComputationError: a maximum is not finite, on the CPU.
        """
        largest = logits.amax(dim=-1, keepdim=True)
        finite = torch.isfinite(largest)
        if on_host(logits):
            refuse_logits(not finite.all())
            return logits, largest
        failed = ~finite.all()
        self._failed = failed if self._failed is None else self._failed | failed
        return logits.where(finite, 0), largest.where(finite, 0)

    def failed(self, like: Tensor) -> Tensor:
        """Whether some row had no finite maximum: a scalar tensor, by default on the device of ``like``."""
        return like.new_zeros((), dtype=torch.bool) if self._failed is None else self._failed


def refuse_logits(failed: bool) -> None:
    """Raise ComputationError if ``failed``: some logits had no finite maximum."""
    if failed:
        raise ComputationError(
            "the model returned logits without a finite maximum (NaN or infinity); "
            'load it with a wider number type, for example dtype="float32"'
        )


def scaled_logits(
    logits: Tensor,
    options: SamplingOptions = PLAIN_SAMPLING,
    *,
    dtype: torch.dtype = torch.float64,
    check: LogitsCheck | None = None,
) -> Tensor:
    """Compute logits whose softmax is the law of the next token: temperature, then top-k, then top-p.

    To condition on few tokens, start from these logits and not from probabilities, which can underflow.

    Args:
        logits: [..., V], of any floating type; upcast to float32 or better before anything else.
        options: temperature, top-k and top-p; use the same for target and draft.
        dtype: float64, or float32 to save memory on a GPU.
        check: records rows without a finite maximum for a later check.  None checks here, and waits for the
            device.

    Returns:
        [..., V] of ``dtype``, -infinity for tokens that are left out.

    Raises:
        ComputationError: a row has no finite maximum, and ``check`` is None or the logits are on the CPU.

    Example:
        >>> scaled_logits(torch.tensor([0.0, 0.0, 0.0]), SamplingOptions(top_k=2)).softmax(-1)
        tensor([0.5000, 0.5000, 0.0000], dtype=torch.float64)
    """
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32)).to(dtype)
    own = LogitsCheck()
    logits, largest = (own if check is None else check).largest(logits)
    refuse_logits(check is None and bool(own.failed(logits)))
    if options.temperature == 0:
        most = torch.argmax(logits, dim=-1, keepdim=True)  # the first of equal logits
        return torch.full_like(logits, -math.inf).scatter(-1, most, 0.0)
    # We subtract the maximum first, so that a tiny temperature cannot overflow.
    scaled = logits - largest
    if options.temperature != 1:
        scaled = scaled / options.temperature
    if options.top_k is not None and options.top_k < logits.shape[-1]:
        kept = most_likely(scaled, options.top_k)
        left_out = torch.ones_like(scaled, dtype=torch.bool).scatter(-1, kept, False)
        scaled = scaled.masked_fill(left_out, -math.inf)
    if options.top_p is not None and options.top_p < 1:
        scaled = scaled.masked_fill(_beyond_top_p(scaled, options.top_p), -math.inf)
    return scaled


def _beyond_top_p(scaled: Tensor, top_p: float) -> Tensor:
    """Mask of the tokens outside the smallest set of most likely tokens with mass >= top_p.  [..., V]"""
    order = most_likely(scaled, scaled.shape[-1])
    ranked = torch.softmax(scaled, dim=-1).gather(-1, order)
    # A token is kept iff the mass of the more likely tokens is below top_p; before the first it is 0.
    before = torch.nn.functional.pad(ranked.cumsum(dim=-1)[..., :-1], (1, 0))
    return torch.zeros_like(scaled, dtype=torch.bool).scatter(-1, order, before >= top_p)
