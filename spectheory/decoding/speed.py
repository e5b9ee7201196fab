"""Measure the seconds of the calls of both models."""

import time

import torch

from spectheory.models import SamplingOptions
from spectheory.models.drafting import PrefilledPrompts, draft_and_score
from spectheory.models.sampling import scaled_logits
from spectheory.pairs.drafts import DraftProcess

PARTS = ("draft", "target", "other")
"""The parts of a round: drafting, scoring the drafts, and other work."""


class Stopwatch:
    """Adds up seconds by part.  Call it with the name of a part when that part ends.

    On an accelerator every call waits for the device, so that no part is charged for the work of another.

    Example:
        >>> watch = Stopwatch(torch.device("cpu"))
        >>> watch("draft")
        >>> watch.seconds["target"], watch.seconds["draft"] > 0
        (0.0, True)
    """

    def __init__(self, device: torch.device) -> None:
        self.seconds, self._device = dict.fromkeys(PARTS, 0.0), device
        self._start = self._now()

    def __call__(self, part: str) -> None:
        now = self._now()
        self.seconds[part] += now - self._start
        self._start = now

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()


def timed_call(
    prefilled: PrefilledPrompts,
    drafts: int | DraftProcess,
    draft_length: int,
    generator: torch.Generator,
    options: SamplingOptions,
) -> tuple[float, float, float]:
    """Measure the seconds of one target call without drafts, of drafting, and of scoring the drafts.

    Verification is not included.

    Args:
        prefilled: the texts after which the models are called; they are not changed.
        drafts, draft_length, generator, options: as in ``draft_and_score``.
    """
    pair, watch = prefilled.pair, Stopwatch(prefilled.pair.device)
    nothing = prefilled.texts.token_ids.new_zeros((prefilled.num_prompts, 1, 0))
    with torch.no_grad():
        logits = pair.logits(prefilled.target.follow(prefilled.texts, nothing, first=0))
    torch.softmax(scaled_logits(logits, options, dtype=pair.probs_dtype), dim=-1)
    watch("other")
    draft_and_score(prefilled, drafts, draft_length, generator, options, lap=watch)
    return watch.seconds["other"], watch.seconds["draft"], watch.seconds["target"]
