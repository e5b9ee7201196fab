"""The bundled language models, as the figures use them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spectheory.models import LanguageModelPair
    from spectheory.simulation import Simulation


@cache
def bundled_pair() -> LanguageModelPair:
    """The bundled target and draft on the CPU, loaded once."""
    from spectheory.models import LanguageModelPair

    return LanguageModelPair.load("bundled", "bundled", device="cpu")


def whole(simulation: Simulation) -> Simulation:
    """The simulation itself; one that was interrupted interrupts the exhibit it is for."""
    if simulation.interrupted:
        raise KeyboardInterrupt
    return simulation
