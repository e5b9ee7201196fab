"""The stored proofs of a verifier: the shapes on which it is proved lossless for every pair."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

from spectheory.exact.proof.verifier_code import code_digest
from spectheory.foundation.scope import Scope
from spectheory.verification.verifier import Verifier

SCOPE = "vocab_size", "draft_length", "drafts", "domain"


def proved_shapes(verifier: Verifier) -> tuple[dict[str, Any], ...]:
    """Of every stored proof of losslessness of a verifier with this code, the fields ``SCOPE``.

    The proofs are not checked here; ``check_proof`` does that.

    Example:
        >>> from spectheory import verifiers
        >>> shapes_text(proved_shapes(verifiers["traversal"]))
        '(2, 1, 2-3), (3, 1, 2), (2, 2, 2)'
    """
    found = [one for one in _headers(verifier.name) if one["statement"] == "lossless"]
    digest = code_digest(verifier) if found else ""
    return tuple({key: one[key] for key in SCOPE} for one in found if one["verifier_code"] == digest)


def _headers(name: str) -> Iterator[dict[str, Any]]:
    for path in sorted(files(__package__).joinpath("stored").iterdir(), key=str):
        if path.name.startswith(f"{name}_V"):
            yield json.loads(gzip.decompress(path.read_bytes()))


def shapes_text(proved: Sequence[dict[str, Any]]) -> str:
    """The shapes as (V, L, K), each with its tree of drafts and its domain unless they are the usual ones.

    Example:
        >>> drafts = {"process": "iid", "num_drafts": 1}
        >>> shape = {"vocab_size": 2, "draft_length": 3, "drafts": drafts, "domain": "positive rows"}
        >>> shapes_text([shape, shape | {"domain": "all rows"}])
        '(2, 3, 1) with positive rows, (2, 3, 1)'
    """
    groups: dict[str, list[tuple[int, int, int]]] = {}
    for one in proved:
        drafts = one["drafts"]
        widths = ",".join(map(str, drafts.get("widths", ())))
        said = f" on {drafts['process']}:{widths}" if widths else ""
        said += "" if one["domain"] == "all rows" else f" with {one['domain']}"
        groups.setdefault(said, []).append((one["vocab_size"], one["draft_length"], drafts["num_drafts"]))
    return ", ".join(
        f"{Scope('', '', tuple(shapes), ()).shapes_text()}{said}" for said, shapes in groups.items()
    )
