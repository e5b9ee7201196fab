"""A checker of stored proofs: the walk of the search with the lemmas of the proof, and no others.

It shares the formal numbers and the evaluation of the verifier with the search (docs/proofs.md says what is
trusted).  A proof holds if

1. its lemmas are identities: their terms expand to 0, none is negative, and one is positive;
2. the parts of every split leave out no sign, and each is walked unless it is empty: a lemma says so, or the
   equalities on it, solved for variables, leave a polynomial no sign (``Region.solve``);
3. on every region the sums over the tuples are what the statement says, as identities;
4. at one rational point of a region, the verifier on all tuples in one batch satisfies the statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spectheory.exact.proof.domain import Domain, Shape
from spectheory.exact.proof.draft_tuples import Drafts
from spectheory.exact.proof.proof_file import RejectedProofError, read, recorded
from spectheory.exact.proof.runs import FailedRunError
from spectheory.exact.proof.statement import Statement, WrongPairError
from spectheory.exact.proof.statements import drafts_document, statement_of
from spectheory.exact.proof.walk import Walk, WrongError
from spectheory.pairs.drafts import DraftProcess, Iid, PrefixTree, WithoutReplacement
from spectheory.verification.algorithms import verifiers
from spectheory.verification.defective import defects
from spectheory.verification.resolve import find_verifier
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier
from spectheory.verification.verifier_code import code_digest

STATED = (
    "format", "verifier", "statement", "vocab_size", "draft_length", "drafts", "domain",
)  # fmt: skip
"""The fields of a proof that say what is proved, and which are checked."""
MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What is raised where a document is not the one of a proof; bad input is a ``ValueError``."""
TREES = {"prefix_tree": PrefixTree, "without_replacement": WithoutReplacement}


def check_proof(path: str | Path, verifier: str | Any | None = None) -> dict[str, Any]:
    """Check a stored proof.

    Args:
        path: of the file.
        verifier: of which it speaks: a name, or an object; by default the package's with the name in the
            file.

    Returns:
        The statement that is proved: the fields ``STATED``, and the number of regions.

    Raises:
        RejectedProofError: the proof does not hold for the verifier as it is.
        InvalidInputError: the file is not a proof.
        UnknownNameError: no verifier of the package has the name in the file.
    """
    document = read(path)
    name = str(document.get("verifier"))
    found = find_verifier(verifier or defects.get(name) or verifiers[name])
    if verifier is not None and found.name != name:
        raise RejectedProofError(f"it is of {name}, not of {found.name}")
    regions = check_document(document, found)
    return {key: document[key] for key in STATED} | {"regions": regions}


def check_document(document: Mapping[str, Any], verifier: Verifier) -> int:
    """Check a proof.

    Args:
        document: what the file holds.
        verifier: the one of which it speaks.

    Returns:
        The number of regions.

    Raises:
        RejectedProofError: it does not hold.
    """
    try:
        statement, shape, process = _stated(document, verifier)
        drafts = Drafts(shape, process)
        walk = Walk(recorded(document, Domain(shape, drafts.least_support)))
        statement.decide(walk, drafts)
    except RejectedProofError:
        raise
    except (WrongError, FailedRunError, WrongPairError, *MALFORMED) as error:
        raise RejectedProofError(f"it does not hold: {error}") from error
    return walk.num_regions


def _stated(document: Mapping[str, Any], verifier: Verifier) -> tuple[Statement, Shape, DraftProcess]:
    """What a document states of a verifier."""
    size, length, drafts = (document[key] for key in ("vocab_size", "draft_length", "drafts"))
    if not (type(size) is type(length) is int and size >= 2 and length >= 1):
        raise RejectedProofError("its shape is not one of whole numbers")
    kind = drafts["process"]
    process = Iid(drafts["num_drafts"]) if kind == "iid" else TREES[kind](tuple(drafts["widths"]))
    if drafts != drafts_document(process):
        raise RejectedProofError("its words on the drafts are not those of one process")
    statement = statement_of(document["statement"], verifier, process, length)
    shape = Shape(size, length, {"all rows": False, "positive rows": True}[document["domain"]])
    return statement, shape, process


def proved_shapes(verifier: Verifier) -> list[str]:
    """The shapes for every pair of which a stored proof of the package says that this code is lossless.

    The proofs are not checked again; they are of the classes of the verifier as they are now.  A user's
    object has no stored proofs.

    Example:
        >>> from spectheory import verifiers
        >>> proved_shapes(verifiers["mixed_multipath"])
        ['V=2 L=1 K=2', 'V=2 L=1 K=3', 'V=3 L=1 K=2']
    """
    if isinstance(verifier, UserVerifier):
        return []
    stored = sorted((Path(__file__).parent / "stored").glob(f"{verifier.name}_V*.proof"))
    found = []
    for document in map(read, stored):
        if is_of_this_code(document, verifier) and document["statement"] == "lossless":
            widths = document["drafts"].get("widths", ())
            count = document["drafts"]["num_drafts"]
            drafts = f"tree {'-'.join(map(str, widths))}" if len(widths) > 1 else f"K={count}"
            shape = f"V={document['vocab_size']} L={document['draft_length']} {drafts}"
            is_all = document["domain"] == "all rows"
            found.append(shape if is_all else f"{shape} ({document['domain']})")
    return found


def is_of_this_code(document: Mapping[str, Any], verifier: Verifier) -> bool:
    """Whether a stored proof names the digest of the code as it is."""
    return bool(document["verifier_code"] == digest_of_document(document, verifier))


def digest_of_document(document: Mapping[str, Any], verifier: Verifier) -> str:
    """The digest of the code, as it is, of which a stored proof speaks."""
    return digest_of(_stated(document, verifier)[0])


def digest_of(statement: Statement) -> str:
    """The digest of the code of a statement's verifiers and draft processes."""
    return code_digest(*(part for subject in statement.subjects for part in subject[:2]))
