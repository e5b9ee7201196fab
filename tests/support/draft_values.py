"""Pairs and drafters for the values of docs/theory.md §8."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from spectheory import ModelPair, Outcome, Verifier, certify, output_law, verifiers
from spectheory.exact.batches import batch_law
from spectheory.foundation.arrays import Array
from spectheory.pairs.contexts import Context, path_to
from spectheory.pairs.drafts import KeptDrafts, Shortened
from spectheory.pairs.drafts.kept import DisclosedDrafts
from spectheory.pairs.drafts.mapped import mapped_drafts
from spectheory.pairs.drafts.repairs import with_cemetery, with_conditioned_rows
from spectheory.pairs.grammars import conditional_pair
from spectheory.verification.algorithms.first_then_match import FirstThenMatch
from spectheory.verification.defective.drafters import drafters

F = Fraction
FAIR, SKEW, OTHER, NINE = ["1/2", "1/2"], ["2/3", "1/3"], ["1/3", "2/3"], ["9/10", "1/10"]
first_then_match = FirstThenMatch()


def rows_pair(target: list[str], draft: list[str], length: int) -> ModelPair:
    return ModelPair.context_free_pair(target, draft, length)


def wrong_variation(name: str) -> Any:
    """The total variation of a known-wrong drafter, recomputed."""
    drafter = drafters()[name]
    if drafter.topic == "batch":
        return batch_law(drafter.verifier, drafter.pair, drafter.process).total_variation
    return certify(drafter.verifier, drafter.pair, drafter.process, with_optimum=False).total_variation


def before_unlikely(tokens: Context, rows: Any) -> int:
    """Drop the first token with a probability below 1/2, and all after it."""
    unlikely = [bool(row[token] < 0.5) for token, row in zip(tokens, rows, strict=True)]
    return [*unlikely, True].index(True)


def after_unlikely(tokens: Context, rows: Any) -> int:
    return min(len(tokens), 1 + before_unlikely(tokens, rows))


def accepted(verifier: Any, pair: ModelPair, process: Any = 1) -> Any:
    """E[τ], without the correction token."""
    law = output_law(verifier, pair, process)
    assert law.total_variation == 0
    return law.block_efficiency - 1


def dropped_by(target: list[str], draft: list[str], length: int = 3) -> list[Any]:
    """E[τ] of block: no rule, the token kept, a coin of the same cost, repairs A and B (Statement 8.11)."""
    pair, kept = rows_pair(target, draft, length), F(draft[0])
    coin = {n: kept**n * (1 - kept) if n < length else kept**n for n in range(length + 1)}
    drop = Shortened(1, before_unlikely)
    return [
        accepted("block", pair),
        accepted("block", pair, Shortened(1, after_unlikely)),
        accepted("block", pair, Shortened(1, lambda tokens, rows: coin)),
        accepted("block", pair, with_conditioned_rows(drop, pair)),
        accepted("block", with_cemetery(drop, pair)),
    ]


def history_pair(then: list[str]) -> ModelPair:
    """The target of the map that merges two draft tokens: A first, then a row after A."""
    target: dict[Context, list[str]] = {(): ["1", "0"], (0,): then, (1,): FAIR}
    target |= {(a, b): FAIR for a in (0, 1) for b in (0, 1)}
    return ModelPair.from_contexts(target, {(): ["1", "0"], (0,): FAIR, (1,): FAIR}, 2)


MERGED = {0: 0, 1: 0, 2: 1}
"""Tokens 0 and 1 mean A, token 2 means B."""


def merged_drafter() -> ModelPair:
    """After 0 comes A, after 1 comes B."""
    zero, two = ["1", "0", "0"], ["0", "0", "1"]
    rows = {(): ["1/2", "1/2", "0"], (0,): zero, (1,): two, (2,): zero}
    target = rows | {(a, b): zero for a in range(3) for b in range(3)}
    return ModelPair.from_contexts(target, rows, 2)


def merging(pair: ModelPair) -> KeptDrafts:
    return mapped_drafts(pair, merged_drafter(), MERGED)


def with_history(canonical: bool = False) -> DisclosedDrafts:
    """Rows that read the draft's own tokens, or the tokens of the re-encoded text."""
    after, drafter = {0: ["1", "0"], 1: ["0", "1"], 2: ["1", "0"]}, merged_drafter()
    return DisclosedDrafts(
        [
            (prob, tuple(MERGED[token] for token in drafted), [["1", "0"], after[known]])
            for number, prob in enumerate(drafter.draft_path_probs(2))
            if prob
            for drafted in [drafter.context(2, number)]
            for known in [0 if canonical and drafted[0] == 1 else drafted[0]]
        ]
    )


def retokenised() -> tuple[ModelPair, KeptDrafts]:
    """Characters a, b to the tokens a, b, ab: fair characters, and a uniform target."""
    pair, characters = rows_pair(["1/3"] * 3, ["1/3"] * 3, 2), rows_pair(FAIR, FAIR, 2)
    return pair, mapped_drafts(pair, characters, lambda x: [2] if x == (0, 1) else list(x))


def late_latent(early: bool) -> tuple[ModelPair, DisclosedDrafts]:
    """A fair latent Z that is disclosed at once, or after the first token (Statement 8.15)."""
    target: dict[Context, list[str]] = {(): FAIR, (0,): ["1/10", "9/10"], (1,): ["1/10", "9/10"]}
    target |= {(a, b): FAIR for a in (0, 1) for b in (0, 1)}
    pair = ModelPair.from_contexts(target, {(): FAIR, (0,): FAIR, (1,): FAIR}, 2)
    zero, one = ["1", "0"], ["0", "1"]
    first = {0: zero, 1: FAIR} if early else {0: ["3/4", "1/4"], 1: ["3/4", "1/4"]}
    events = [
        ("1/2", (0, 0), [first[0], zero]),
        ("1/4", (0, 1), [first[1], one]),
        ("1/4", (1, 1), [first[1], one]),
    ]
    return pair, DisclosedDrafts(events)


def token_latent(disclosed: bool) -> tuple[ModelPair, Any]:
    """A latent whose disclosure helps token verification (Statement 8.15)."""
    target: dict[Context, list[str]] = {(): FAIR, (0,): ["0", "1"], (1,): ["0", "1"]}
    target |= {(a, b): FAIR for a in (0, 1) for b in (0, 1)}
    pair = ModelPair.from_contexts(target, {(): FAIR, (0,): FAIR, (1,): FAIR}, 2)
    zero, one = ["1", "0"], ["0", "1"]
    if disclosed:
        events = [("1/4", (0, 1), [FAIR, one]), ("1/4", (1, 1), [FAIR, one]), ("1/2", (0, 0), [zero, zero])]
        return pair, DisclosedDrafts(events)
    law = {(0, 1): "1/4", (1, 1): "1/4", (0, 0): "1/2"}
    return pair, KeptDrafts(law, {(): ["3/4", "1/4"], (0,): ["2/3", "1/3"], (1,): one})


def ordered(rows: str, target: str = "fair") -> tuple[ModelPair, Any]:
    """Tokens drawn in the order 2, 1 with P(equal) = 3/4 (Statement 8.22)."""
    near = {0: ["3/4", "1/4"], 1: ["1/4", "3/4"]}
    inner = (
        {(): FAIR, (0,): near[0], (1,): near[1]} if target == "joint" else {(): FAIR, (0,): FAIR, (1,): FAIR}
    )
    levels = inner | {(a, b): FAIR for a in (0, 1) for b in (0, 1)}
    pair = ModelPair.from_contexts(levels, {(): FAIR, (0,): FAIR, (1,): FAIR}, 2)
    joint = {(a, b): "3/8" if a == b else "1/8" for a in (0, 1) for b in (0, 1)}
    point = {0: ["1", "0"], 1: ["0", "1"]}
    if rows == "marginals":
        return pair, KeptDrafts(joint)
    if rows == "conditionals":
        return pair, KeptDrafts(joint, {(t,): near[t] for t in (0, 1)})
    second: dict[str, Any] = {"as drawn": lambda b: FAIR, "disclosed": lambda b: point[b]}
    return pair, DisclosedDrafts(
        [(prob, path, [near[path[1]], second[rows](path[1])]) for path, prob in joint.items()]
    )


class ReadsItsFirstCoin(Verifier):
    """Block verification of one token if its first coin exceeds h_1, and of two otherwise (Statement 8.9)."""

    name = "reads_its_first_coin"
    single_path = True

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        block = verifiers["block"]
        two = block.outcome(paths, target_rows, draft_rows)
        one = block.outcome(paths[..., :1], target_rows[..., :2, :], draft_rows[..., :1, :])
        whole, accepted = two.stop_probs[..., 2], one.stop_probs[..., 1]
        left = accepted[..., None] * target_rows[:, :, 1] - draft_rows[:, :, 1]
        left = np.where(left > 0, left, left * 0).sum(-1)  # S; h_1 = S / (1 - w_1 + S)
        first = np.where(left == 0, left, left / np.where(left == 0, 1, 1 - accepted + left))
        # The coin has exceeded h_1, and the only token is accepted if it does not exceed w_1.
        alone = np.where(accepted > first, accepted - first, 0)
        with_second = first * (1 - whole)
        stops = [1 - first - alone, alone + with_second, first * whole]

        def correction(path_index: Array, length: Array) -> Array:
            rows = two.correction(path_index, length)
            share = (alone + with_second)[:, 0]
            mixed = alone * target_rows[:, 0, 1] + with_second * rows
            mixed = mixed / np.where(share == 0, 1, share)[:, None]
            return np.where((length == 1)[:, None] & (share > 0)[:, None], mixed, rows)

        return Outcome(np.stack(stops, axis=-1), correction)


def redrawn_window() -> list[Any]:
    """Blocks of token verification, drawn again while they contain 1, 1; texts of three fair tokens.

    The total variation from the projected and from the conditional law, and of these (after Statement 8.19).
    """
    no_two_ones = {"any": {0: "any", 1: "one"}, "one": {0: "any"}}
    fair = rows_pair(FAIR, SKEW, 2)
    masses = output_law("token", rows_pair(FAIR, SKEW, 1)).masses
    blocks = {
        path_to(number, depth, 2): mass
        for depth, level in enumerate(masses, 1)
        for number, mass in enumerate(np.ravel(level))
    }

    def legal(text: Context) -> bool:
        return (1, 1) not in list(pairwise(text))

    law: dict[Context, Any] = {}
    open_texts = {(): F(1)}
    while open_texts:
        text, prob = open_texts.popitem()
        allowed = {block: mass for block, mass in blocks.items() if mass and legal(text + block)}
        for block, mass in allowed.items():
            longer, share = (text + block)[:3], prob * mass / sum(allowed.values())
            into = law if len(longer) == 3 else open_texts
            into[longer] = into.get(longer, 0) + share
    found = np.array([law.get(path_to(number, 3, 2), F(0)) for number in range(8)])
    exact = [
        conditional_pair(fair, no_two_ones, "any", masked).target_path_probs(3) for masked in (True, False)
    ]
    return [abs(one - other).sum() / 2 for one, other in ((found, exact[0]), (found, exact[1]), exact)]


def variation(verifier: Any, problem: tuple[ModelPair, Any]) -> Any:
    return output_law(verifier, *problem).total_variation
