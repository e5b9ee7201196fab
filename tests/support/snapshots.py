"""What was before: digests of pairs and draft processes, shapes and numbers of documents."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.pair import ModelPair


def digest(asked: Iterable[tuple[str, ModelPair, DraftProcess]]) -> tuple[int, str]:
    """How many are asked, and a digest of their names, rows and draft processes in their order."""
    found, seen, listed = sha256(), set[int](), list(asked)
    for name, pair, process in listed:
        found.update(f"{name} {process.name} {process.text} {process.num_drafts}".encode())
        if id(pair) not in seen:
            seen.add(id(pair))
            found.update(
                " ".join(map(str, (x for level in (*pair.target, *pair.draft) for x in level.flat))).encode()
            )
    return len(listed), found.hexdigest()[:8]


def numbers(value: Any) -> list[float]:
    """All numbers in a document."""
    if isinstance(value, (dict, list)):
        entries = value.values() if isinstance(value, dict) else value
        return [number for entry in entries for number in numbers(entry)]
    return [value] if isinstance(value, (int, float)) else []


def shape(value: Any) -> Any:
    """A document without its numbers."""
    if isinstance(value, dict):
        return {key: shape(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [shape(entry) for entry in value]
    return 0 if isinstance(value, (int, float)) else value
