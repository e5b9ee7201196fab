"""The relaxations that vLLM's samplers are asked with, and the options that ask for them."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import torch

from spectheory.auditing.subjects.relaxations import deferred_rejection, synthetic_acceptance

RATES = (Fraction(3, 4), Fraction(1, 2), Fraction(1, 4))
AT_RATES = synthetic_acceptance(RATES)
SYNTHETIC: Mapping[str, Any] = {"synthetic_conditional_rates": torch.tensor([float(rate) for rate in RATES])}
FLY: Mapping[str, Any] = {"fly_window_size": 1, "fly_entropy_threshold": 0.3, "fly_entropy_top_k": 3}
FLY_LAW = deferred_rejection(window=1, threshold=0.3, top_k=3)
