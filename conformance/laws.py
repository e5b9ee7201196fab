"""Exact laws of what a verifier emits when its drafts are given: the library's verifiers in rationals."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from spectheory import verifiers

Row = Mapping[int, Fraction]
Block = tuple[int, ...]
Law = dict[Block, Fraction]
SEPARATOR = -1


def conditional_law(
    verifier: Any, paths: Sequence[Block], target: Sequence[Sequence[Row]], draft: Sequence[Sequence[Row]]
) -> Law:
    """Law of the emitted block, given the drafted paths.

    Args:
        verifier: of the library.
        paths: K paths of L tokens.
        target: K times L+1 rows along the paths.
        draft: K times L rows.
    """
    length = len(paths[0])
    if not length:
        return {(token,): mass for token, mass in target[0][0].items()}
    rows = [row for own in (*target, *draft) for row in own]
    used = sorted({*(t for row in rows for t in row), *(t for path in paths for t in path)})
    place = {token: k for k, token in enumerate(used)}

    def dense(some: Sequence[Sequence[Row]]) -> Any:
        found = [[[row.get(token, Fraction(0)) for token in used] for row in own] for own in some]
        return np.array([found], dtype=object)

    placed = np.array([[[place[token] for token in path] for path in paths]])
    outcome = verifier.outcome(placed, dense(target), dense(draft))
    law: Law = {}
    for k, n in product(range(len(paths)), range(length + 1)):
        stop = np.asarray(outcome.stop_probs)[0, k, n]
        if stop:
            correction = np.asarray(outcome.correction(np.array([k]), np.array([n])))[0]
            for token, mass in zip(used, correction, strict=True):
                if mass:
                    block = (*paths[k][:n], token)
                    law[block] = law.get(block, Fraction(0)) + stop * mass
    return {block: Fraction(mass) for block, mass in law.items()}


def forced_law(name: str, drafts: Block, target: Sequence[Row], draft: Sequence[Row]) -> Law:
    """Law of one path; at a placeholder (-1) the token is drawn from the target's row and the block ends."""
    real = drafts.index(-1) if -1 in drafts else len(drafts)
    return conditional_law(verifiers[name], [drafts[:real]], [target[: real + 1]], [draft[:real]])


def product_law(rows: Sequence[Row]) -> Law:
    """Law of independent tokens, one from each row: what the target draws."""
    law: Law = {(): Fraction(1)}
    for row in rows:
        law = {(*block, t): mass * p for block, mass in law.items() for t, p in row.items()}
    return law


def drafted_law(target: Sequence[Row], draft: Sequence[Row]) -> Law:
    """Law of drafts and block together where the engine draws the drafts: drafts, ``SEPARATOR``, block."""
    return {
        (*drafts, SEPARATOR, *block): mass * p
        for drafts, mass in product_law(draft).items()
        for block, p in forced_law("token", drafts, target, draft).items()
    }
