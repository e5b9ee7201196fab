"""The statements by name, ``NAME`` or ``NAME:OTHER``."""

from __future__ import annotations

from typing import Any

from spectheory.exact.proof.comparisons import AtLeast, Exchangeable, SinglePath
from spectheory.exact.proof.lossless import Lossless, Optimal
from spectheory.exact.proof.prefixes import Completed, PrefixMatching
from spectheory.exact.proof.statement import Law, Statement, Subject
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import unknown_name
from spectheory.pairs.drafts import DraftProcess, PrefixTree, WithoutReplacement
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier

KINDS: dict[str, type[Statement]] = {
    "lossless": Lossless,
    "optimal": Optimal,
    "at_least": AtLeast,
    "prefix_matching": PrefixMatching,
    "exchangeable": Exchangeable,
    "single_path": SinglePath,
    "completed": Completed,
    "law": Law,
}
SAY_LOSSLESS = tuple(name for name, kind in KINDS.items() if kind.says_lossless)
"""The statements of which a proof says that the verifier is lossless."""


def statement_of(name: str, verifier: Verifier, process: DraftProcess, draft_length: int) -> Statement:
    """The statement of a name about a verifier.

    Raises:
        UnknownNameError: the name is no statement, or names an unknown verifier to compare with.
        InvalidInputError: it does not speak of these drafts, or no proof speaks of this verifier.
    """
    kind, _, other = name.partition(":")
    if kind not in KINDS or bool(other) != (kind == "at_least"):
        raise unknown_name("statement", name, [*KINDS], "; at_least is followed by :VERIFIER or :VERIFIER@K")
    compared = KINDS[kind].compared(other, (verifier, process), draft_length)
    subjects = []
    for one, drafts in ((verifier, process), *compared):
        if not one.exact:
            raise InvalidInputError(
                f"verifier {one.name!r} computes in float64; a proof needs the numbers that it is given"
            )
        bound = one.bind(drafts)
        if isinstance(bound, UserVerifier) and bound.has_own_bind:
            raise InvalidInputError(
                f"verifier {bound.name!r} has its own bind, which may return different verifiers for "
                "different pairs, and a proof speaks of all pairs; prove the verifier that it returns"
            )
        subjects.append(Subject(one, drafts, bound))
    return KINDS[kind](name, subjects)


def drafts_document(process: DraftProcess) -> dict[str, Any]:
    """A draft process in JSON."""
    widths = {"widths": list(process.widths)} if isinstance(process, (PrefixTree, WithoutReplacement)) else {}
    return {"process": process.name, "num_drafts": process.num_drafts, **widths}
