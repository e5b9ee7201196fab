"""spectheory: a referee for the verification algorithms of speculative decoding.

>>> import spectheory
>>> certificate = spectheory.certify("block", spectheory.instances.two_token(2))
>>> print(certificate.block_efficiency, certificate.optimum, certificate.target_matching)
20/9 20/9 True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Certificate": "spectheory.certificate",
    "ModelPair": "spectheory.pair",
    "Outcome": "spectheory.outcome",
    "OutputLaw": "spectheory.law",
    "Verifier": "spectheory.outcome",
    "certify": "spectheory.certificate",
    "optimal_acceptance": "spectheory.programs",
    "optimum": "spectheory.programs",
    "output_law": "spectheory.law",
    "simulate": "spectheory.montecarlo",
    "verifiers": "spectheory.algorithms",
}

if TYPE_CHECKING:
    from spectheory import instances
    from spectheory.algorithms import verifiers
    from spectheory.certificate import Certificate, certify
    from spectheory.law import OutputLaw, output_law
    from spectheory.montecarlo import simulate
    from spectheory.outcome import Outcome, Verifier
    from spectheory.pair import ModelPair
    from spectheory.programs import optimal_acceptance, optimum

__all__ = [
    "Certificate",
    "ModelPair",
    "Outcome",
    "OutputLaw",
    "Verifier",
    "certify",
    "instances",
    "optimal_acceptance",
    "optimum",
    "output_law",
    "simulate",
    "verifiers",
]


def __getattr__(name: str) -> Any:
    """Load public names on first use, so that ``spectheory --help`` and ``import`` are instant."""
    if name == "instances":
        return import_module("spectheory.instances")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'spectheory' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
