"""Medians of the seconds of calls on a pair of language models, for drafts of one shape."""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from spectheory.decoding import timed_call
from spectheory.models import LanguageModelPair, SamplingOptions
from spectheory.models.drafting import prefill
from spectheory.pairs.drafts import DraftProcess


class CallCosts(NamedTuple):
    """Medians of seconds: of a call of the target that scores no drafts, of drafting, of scoring the drafts.

    Verification is not among them.
    """

    plain: float
    draft: float
    target: float

    def speed_up(self, block_efficiency: float) -> float:
        """Tokens per second over those of plain decoding."""
        return block_efficiency * self.plain / (self.draft + self.target)

    def cost_ratio(self, draft_length: int) -> float:
        """c: a step of drafting, one of L, over a call that scores no drafts."""
        return self.draft / (draft_length * self.plain)

    def row_cost(self, target_rows: int) -> float:
        """r: what one of N drafted tokens adds to a call of the target, over a call that scores none."""
        return (self.target - self.plain) / (target_rows * self.plain)


def call_costs(
    pair: LanguageModelPair,
    prompt: str | Sequence[int],
    drafts: int | DraftProcess,
    draft_length: int,
    options: SamplingOptions | None = None,
    *,
    repeats: int = 7,
) -> CallCosts:
    """Time the calls of both models behind one text, after one round to warm up.

    Args:
        pair: the models, loaded.
        prompt: the text, or its token ids.
        drafts, draft_length, options: as in ``draft_and_score``.
        repeats: how many rounds are timed.

    Example:
        ``call_costs(pair, "def main(", 4, 4).speed_up(2.5)``
    """
    options, generator = options or SamplingOptions(), pair.generator(0)
    prefilled = prefill(pair, [prompt])
    rounds = [timed_call(prefilled, drafts, draft_length, generator, options) for _ in range(1 + repeats)]
    return CallCosts(*map(median, zip(*rounds[1:], strict=True)))
