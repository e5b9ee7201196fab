"""The theorems of ``proofs/``, checked by a machine, that are about published verifiers.

``machine_proofs.json`` names for each verifier the theorem, the draft processes it covers and the digest of
the code that was compared with the extracted program.  A verifier whose code has changed has no theorem.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from spectheory.verification.algorithms import verifiers
from spectheory.verification.verifier import Verifier
from spectheory.verification.verifier_code import code_digest


@dataclass(frozen=True)
class MachineProof:
    """A theorem about an algorithm.  It is no basis of a verdict: the theorem is not about our code.

    Attributes:
        theorem: its name in ``docs/machine_proofs.md``.
        every: the letters of the sizes for which it holds, such as ``"V and L"``.
        given: a condition of the theorem; empty for none.
    """

    theorem: str
    every: str
    given: str = ""

    def in_words(self) -> str:
        """Say what is proved.

        Example:
            >>> print(MachineProof("block_lossless", "V and L").in_words())
            in exact arithmetic, for every V and L: machine proof block_lossless
        """
        given = f", {self.given}" if self.given else ""
        return f"in exact arithmetic, for every {self.every}{given}: machine proof {self.theorem}"


def machine_proofs(verifier: Verifier) -> Mapping[str, MachineProof]:
    """Find the theorems that say that a published verifier is lossless.

    Args:
        verifier: any verifier, bound or not.

    Returns:
        Name of a draft process -> theorem.  It is empty if the verifier is not the published object with its
        default parameters, or if its code is not the code that was compared with the extracted program.

    Example:
        >>> from spectheory import verifiers
        >>> machine_proofs(verifiers["block"])["iid"].theorem
        'block_lossless'
        >>> machine_proofs(verifiers["spectr_gbv"])
        {}
    """
    entry = entries().get(verifier.name)
    if entry is None or type(verifier) is not type(verifiers[verifier.name]):
        return {}
    if code_digest(verifier) != entry["code"]:
        return {}
    sizes = entry["every"], entry.get("given", "")
    return {process: MachineProof(theorem, *sizes) for process, theorem in entry["theorems"].items()}


@cache
def entries() -> Mapping[str, Any]:
    """Read the data file: verifier -> theorem per draft process, sizes, condition and digest of the code."""
    source = files(__package__).joinpath(DATA)
    return json.loads(source.read_text(encoding="utf-8"))


DATA = "machine_proofs.json"
"""The data file, in the folder of this module."""
