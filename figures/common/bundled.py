"""Helpers of several figures: the bundled language models, and laws of the accepted length."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from figures.results import ResultTable
from spectheory.simulation import simulate
from spectheory.verification.length_rules import WithLengthRule
from spectheory.verification.resolve import find_verifier

if TYPE_CHECKING:
    from spectheory.models import LanguageModelPair
    from spectheory.simulation import Estimate, Simulation

ENUMERATED = {1: (2, 3, 4), 2: (2, 3), 3: (2,)}
"""K to the lengths L at which the total variation is enumerated, on a vocabulary of two."""
ONE_PATH = ("token", "block", "greedy_block")
LOSSY = ("greedy_block", "spectr_gbv")
GREEDY_BLOCK = "Greedy block is lossless only with its modification of the target in the next calls"
"""Its status, for the explanations of figures, without the full stop."""
Shown = tuple[str, int, int]
"""A verifier, k drafts and l tokens that it is shown."""
Setting = tuple[int, int, int]
"""A restriction to m tokens at every context, L drafted tokens, K drafts."""


def setting_text(setting: Setting) -> str:
    tokens, length, drafts = setting
    return f"vocabulary V = {tokens}, L = {length}, K = {drafts}"


def at_least(length_probs: Sequence[Any]) -> list[Any]:
    """P(tau >= i) from P(tau = i), i = 0..L.

    Example:
        >>> at_least([1, 2, 3])
        [6, 5, 3]
    """
    return list(accumulate(reversed(length_probs)))[::-1]


@cache
def bundled_pair() -> LanguageModelPair:
    """The bundled target and draft on the CPU, loaded once."""
    from spectheory.models import LanguageModelPair

    return LanguageModelPair.load("bundled", "bundled", device="cpu")


def whole(simulation: Simulation) -> Simulation:
    """The simulation itself; one that was interrupted interrupts the figure that it is for."""
    if simulation.interrupted:
        raise KeyboardInterrupt
    return simulation


def on_common_drafts(
    asked: Sequence[Shown], base: str, prompts: Sequence[Any], temperature: float = 1.0, **settings: Any
) -> dict[Shown, Estimate]:
    """Estimates of verifiers on the first k of K drafts and their first l of L tokens, the same for all.

    Gains are over the base on one draft of as many tokens, so that one simulation has one l.
    """
    from spectheory.models import SamplingOptions

    found: dict[Shown, Estimate] = {}
    most, longest = max(drafts for _, drafts, _ in asked), max(tokens for _, _, tokens in asked)
    for length in sorted({tokens for _, _, tokens in asked}):
        here = [one for one in asked if one[2] == length]
        handed = {name: _on_first(name, length, longest) for name, _, _ in here}
        simulation = whole(
            simulate(
                bundled_pair(), prompts, list(handed.values()), against=handed[base].name,
                drafts=sorted({1, most, *(drafts for _, drafts, _ in here)}), draft_length=longest,
                batch_size=16, options=SamplingOptions(temperature=temperature), **settings,
            )
        )  # fmt: skip
        estimates = {(one.verifier, one.num_drafts): one for one in simulation.estimates}
        found |= {one: estimates[handed[one[0]].name, one[1]] for one in here}
    return found


def _on_first(name: str, length: int, longest: int) -> Any:
    """A verifier that is handed the first tokens of longer drafts."""
    if length == longest:
        return find_verifier(name)
    return WithLengthRule(name, lambda tokens, rows: min(length, np.shape(tokens)[-1]), allow_lossy=True)


def gained(estimate: Estimate, unit: float = 1.0) -> dict[str, float | None]:
    """What an estimate gains over its base with its interval, in a unit, as columns; the base has none."""
    low, high = estimate.gain_interval or (None, None)
    numbers = {"gain": estimate.gain, "gain_low": low, "gain_high": high}
    return {name: None if number is None else number / unit for name, number in numbers.items()}


def interval(estimate: Estimate) -> dict[str, float]:
    """Block efficiency of an estimate with its interval, as columns."""
    low, high = estimate.interval
    return {"block_efficiency": estimate.block_efficiency, "low": low, "high": high}


def counted(estimate: Estimate) -> dict[str, float]:
    """Sampled tokens per call of an estimate with their interval, as columns."""
    low, high = estimate.counted_interval
    return {"counted": estimate.counted, "counted_low": low, "counted_high": high}


def defects_on_two_tokens(name: str, verifiers: Sequence[str], temperatures: Sequence[float]) -> ResultTable:
    """Total variation on the bundled models restricted to two tokens after the first prompt, exactly.

    The two tokens are the likeliest there.  K and L are those of ``ENUMERATED``; verifiers of one path have
    K = 1, the others K from 2 on.
    """
    from spectheory.exact.certifying import certify
    from spectheory.models import Restriction, SamplingOptions, bundled_prompts, restrict

    models, text = bundled_pair(), bundled_prompts()[0]
    restriction = Restriction.at_prompt(models, text, 2)
    table = ResultTable(
        name,
        "Total variation, exact, on the bundled models restricted to a vocabulary of two after the first "
        "prompt, for the K and L that can be enumerated. It is not that of the estimates, whose vocabulary "
        "is whole.",
    )
    for temperature in temperatures:
        options = SamplingOptions(temperature=temperature)
        pairs = {length: restrict(models, text, restriction, length, options) for length in ENUMERATED[1]}
        for verifier in verifiers:
            for drafts, lengths in ENUMERATED.items():
                for length in lengths if (drafts == 1) == (verifier in ONE_PATH) else ():
                    found = certify(verifier, pairs[length], drafts, with_optimum=False)
                    table.add(
                        temperature=temperature, verifier=verifier, num_drafts=drafts, draft_length=length,
                        total_variation=round(float(found.total_variation), 9),
                    )  # fmt: skip
    return table
