"""Which published verifiers stay lossless if the length or the number of drafts depends on the drafts."""

from collections.abc import Mapping
from typing import NamedTuple


class Coherence(NamedTuple):
    """Whether the completed law is a martingale (theory.md Statement 8.2); ``None`` if nobody has decided it.

    Attributes:
        in_length: in the common number of tokens of all drafts.
        in_drafts: in the number of drafts.
    """

    in_length: bool | None
    in_drafts: bool | None

    @property
    def adaptive_lengths(self) -> str:
        """Say which length rules keep the verifier lossless, as ``spectheory verifiers`` prints it."""
        return {True: "yes", False: "per path only", None: "not decided"}[self.in_length]


_BOTH, _IN_LENGTH, _NEITHER = Coherence(True, True), Coherence(True, False), Coherence(False, False)

COHERENCE: Mapping[str, Coherence] = {
    "token": _BOTH,
    "block": _BOTH,
    # Its later calls have another target, which depends on the length.  Further drafts are not read.
    "greedy_block": Coherence(False, True),
    # Only because their division factors depend on the number of drafts (Statement 8.2).
    "kseq": _IN_LENGTH,
    "spectr": _IN_LENGTH,
    "multi_round": _BOTH,
    "multi_round_without_replacement": Coherence(None, None),
    "otm": _IN_LENGTH,
    # They weigh the selected path by a law that the length discloses (Statement 8.13).
    "greedy_multipath": _NEITHER,
    "mixed_multipath": _NEITHER,
    "scored_multipath": _NEITHER,
    "optimal_multipath": _NEITHER,
    "traversal": _BOTH,
    "spectr_gbv": _NEITHER,
    "naive_sampling": _BOTH,
    "conditional_transport": _IN_LENGTH,
}
"""Name of a published verifier -> its coherence.  The tests recompute it on pairs."""
