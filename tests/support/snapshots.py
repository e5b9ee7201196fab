"""Digests of what is asked: a change of any pair or draft process is noticed."""

from collections.abc import Iterable
from hashlib import sha256

from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.pair import ModelPair


def digest(asked: Iterable[tuple[str, ModelPair, DraftProcess]]) -> tuple[int, str]:
    """How many are asked, and a digest of their names, rows and draft processes in their order."""
    found, seen, number = sha256(), set[int](), 0
    for number, (name, pair, process) in enumerate(asked, 1):
        found.update(f"{name} {process.name} {process.text} {process.num_drafts}".encode())
        if id(pair) not in seen:
            seen.add(id(pair))
            found.update(
                " ".join(map(str, (x for level in (*pair.target, *pair.draft) for x in level.flat))).encode()
            )
    return number, found.hexdigest()[:8]
