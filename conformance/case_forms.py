"""Requests and cases as the file has them: sparse rows of exact rationals, with their laws."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from math import prod
from typing import Any

import numpy as np

from audits.specimens.batch_engine import BatchRequest
from conformance.laws import Block, Law, Row, conditional_law, drafted_law, forced_law, product_law
from spectheory import verifiers

Case = dict[str, Any]
Request = dict[str, Any]
LOG_2 = math.log(2)
MOST_BLOCKS = 64
"""A law for the claim "lossless" has at most so many blocks: more have no power at the draws of a case."""


def sparse(row: Row) -> list[list[Any]]:
    """A row as the file has it; every probability must be exact in float32."""
    return [[token, str(mass)] for token, mass in sorted(row.items()) if mass]


def exact_in_float32(row: Row) -> bool:
    return all(Fraction(float(np.float32(float(mass)))) == mass for mass in row.values())


def written(law: Law) -> list[list[Any]]:
    return [[list(block), str(mass)] for block, mass in sorted(law.items())]


def row_of(pairs: Sequence[Sequence[Any]]) -> dict[int, Fraction]:
    return {token: Fraction(mass) for token, mass in pairs}


def law_of(pairs: Sequence[Sequence[Any]]) -> Law:
    return {tuple(block): Fraction(mass) for block, mass in pairs}


def request(drafts: Sequence[int], target: Sequence[Row], draft: Sequence[Row], *claims: str) -> Request:
    """A request with forced drafts, its law for "token", and for other claims.

    With one-hot draft rows every lossless algorithm has one law of the completed block: "lossless" is added.
    """
    laws = {"token": forced_law("token", tuple(drafts), target, draft)}
    laws |= {claim: forced_law(claim, tuple(drafts), target, draft) for claim in claims}
    certain = all(row.get(token) == 1 for token, row in zip(drafts, draft, strict=True))
    if certain and prod(map(len, target)) <= MOST_BLOCKS:
        laws["lossless"] = product_law(target)
    rows = {"target": [sparse(row) for row in target], "draft": [sparse(row) for row in draft]}
    return {"drafts": list(drafts), **rows, "law": {claim: written(law) for claim, law in laws.items()}}


def of_paths(paths: Sequence[Block], target: Sequence[Row], draft: Sequence[Row], *claims: str) -> Request:
    """A request with several forced paths, and rows that depend on the depth only."""
    found = {
        claim: conditional_law(verifiers[claim], paths, [target] * len(paths), [draft] * len(paths))
        for claim in claims
    }
    rows = {"target": [sparse(row) for row in target], "draft": [sparse(row) for row in draft]}
    return {"paths": [list(path) for path in paths], **rows, "law": {c: written(f) for c, f in found.items()}}


def with_settings(
    drafts: Sequence[int], weights: Sequence[Row], draft: Sequence[Row], settings: Mapping[str, Any]
) -> Request:
    """A request that is handed weights (exponentials of logits) and settings; target rows follow."""
    target = [processed(row, settings, drafts[:i], i) for i, row in enumerate(weights)]
    return {
        **request(drafts, target, draft),
        "weights": [sparse(row) for row in weights],
        "parameters": dict(settings),
    }


def drafting(target: Sequence[Row], draft: Sequence[Row]) -> Request:
    """A request whose drafts the engine draws from the rows."""
    rows = {"target": [sparse(row) for row in target], "draft": [sparse(row) for row in draft]}
    return {"length": len(draft), **rows, "law": {"token": written(drafted_law(target, draft))}}


def two_calls(first: Request, then: Sequence[Request]) -> Request:
    """A request and its next call, which depends on how many tokens the first emitted."""
    law: Law = {}
    for block, mass in law_of(first["law"]["token"]).items():
        for other, p in law_of(then[len(block) - 1]["law"]["token"]).items():
            law[(*block, -1, *other)] = mass * p
    plain = [{name: each[name] for name in ("drafts", "target", "draft")} for each in (first, *then)]
    return {**plain[0], "then": plain[1:], "law": {"token": written(law)}}


def case(
    name: str,
    vocab: int,
    requests: Iterable[Request],
    draws: int,
    about: str,
    profile: str = "core",
    **more: Any,
) -> Case:
    """A case; ``kind`` is "fixed" unless it is given."""
    kind = more.pop("kind", "fixed")
    head = {"id": name, "profile": profile, "kind": kind, "about": about, "vocab": vocab, "draws": draws}
    return {**head, **more, "requests": list(requests)}


def pooled(
    name: str,
    vocab: int,
    target: Sequence[Row],
    draft: Sequence[Row],
    scale: int,
    about: str,
    drafts: int = 1,
) -> Case:
    """Every tuple of drafts in the proportions of its law: for the claim "lossless" of any algorithm.

    Args:
        name, vocab, target, draft, about: of the case.
        scale: so many times the smallest numbers of calls.
        drafts: K, the number of independent paths.
    """
    single = product_law(draft)
    tuples = list(itertools.product(single.items(), repeat=drafts))
    masses = [prod(mass for _, mass in each) for each in tuples]
    smallest = math.lcm(*(mass.denominator for mass in masses))
    calls = []
    for each, mass in zip(tuples, masses, strict=True):
        paths = [list(path) for path, _ in each]
        own = {"drafts": paths[0]} if drafts == 1 else {"paths": paths}
        calls.append({**own, "times": int(mass * smallest) * scale})
    rows = {"target": [sparse(row) for row in target], "draft": [sparse(row) for row in draft]}
    head = {"id": name, "profile": "lossless" if drafts == 1 else "paths", "kind": "pooled", "about": about}
    law = written(product_law(target))
    return {**head, "vocab": vocab, "claims": ["lossless"], **rows, "calls": calls, "law": law}


def grid(name: str, vocab: int, points: int, forced: Request, about: str) -> Case:
    """Given coins: every acceptance, residual and bonus probability is a multiple of 1/points.

    Raises:
        ValueError: a block would not occur a number of times that is an integer in every order of tokens.
    """
    coins = len(forced["drafts"]) + 1
    for i, token in enumerate(forced["drafts"]):
        p, q = row_of(forced["target"][i]), row_of(forced["draft"][i])
        left = {y: m - q.get(y, 0) for y, m in p.items() if m > q.get(y, 0)}
        chances = [p.get(token, Fraction(0)) / q[token], *(m / sum(left.values()) for m in left.values())]
        if any((chance * points).denominator != 1 for chance in chances if chance < 1):
            raise ValueError(f"{name}: not all of {chances} are multiples of 1/{points}")
    counts = [
        [block, int(mass * points**coins)] for block, mass in sorted(law_of(forced["law"]["token"]).items())
    ]
    head = {
        "id": name,
        "profile": "coins",
        "kind": "grid",
        "about": about,
        "vocab": vocab,
        "claims": ["token"],
    }
    rows = [{part: forced[part] for part in ("drafts", "target", "draft")}]
    return {**head, "points": points, "coins": coins, "requests": rows, "counts": counts}


class TieError(ValueError):
    """A row on the boundary of a cut, where engines differ and rounding decides."""


def _clear(distances: Iterable[Fraction]) -> None:
    if any(abs(distance) < Fraction(1, 256) for distance in distances):
        raise TieError


def _root(mass: Fraction) -> Fraction:
    root = Fraction(math.isqrt(mass.numerator), math.isqrt(mass.denominator))
    if root * root != mass:
        raise ValueError(f"at temperature 2 weights must be squares, got {mass}")
    return root


def processed(
    weights: Row, settings: Mapping[str, Any], before: Sequence[int], i: int
) -> dict[int, Fraction]:
    """Mask, penalties, temperature (0, 1/2, 1 or 2), min-p, top-k, top-p, in this order, in rationals.

    Raises:
        TieError: a token lies within 1/256 of a cut.
    """
    row = {t: Fraction(m) for t, m in weights.items() if t in settings.get("allowed", {i: weights})[i]}
    halvings = round(settings.get("frequency_penalty", 0) / LOG_2)
    for token in [*settings.get("past", []), *before]:
        if token in row:
            row[token] /= 2**halvings
    temperature = settings.get("temperature", 1)
    if temperature == 0:
        best = max(row, key=lambda token: (row[token], -token))
        _clear(row[token] / row[best] - 1 for token in row if token != best)
        return {best: Fraction(1)}
    powers = {0.5: lambda m: m * m, 1: lambda m: m, 2: _root}
    row = _normalised({token: powers[temperature](mass) for token, mass in row.items()})
    if "min_p" in settings:
        least = Fraction(settings["min_p"]) * max(row.values())
        _clear((mass - least) / max(row.values()) for mass in row.values())
        row = {token: mass for token, mass in row.items() if mass >= least}
    order = sorted(row, key=lambda token: (-row[token], token))
    if "top_k" in settings and len(order) > settings["top_k"]:
        _clear([row[order[settings["top_k"] - 1]] - row[order[settings["top_k"]]]])
        order = order[: settings["top_k"]]
    row = _normalised({token: row[token] for token in order})
    if "top_p" in settings:
        sums = list(itertools.accumulate((row[token] for token in order), initial=Fraction(0)))
        _clear(total - Fraction(settings["top_p"]) for total in sums[:-1])
        order = [t for t, total in zip(order, sums, strict=False) if total < Fraction(settings["top_p"])]
    return _normalised({token: row[token] for token in order})


def _normalised(row: Row) -> dict[int, Fraction]:
    total = sum(row.values())
    return {token: mass / total for token, mass in row.items()}


@cache
def _number(text: str) -> float:
    return float(Fraction(text))


def batch_of(requests: Sequence[Request], vocab: int) -> list[BatchRequest]:
    """Requests as an engine is handed them: dense rows of floats."""

    def dense(rows: Any) -> list[Any]:
        found = np.zeros((len(rows), vocab))
        for out, row in zip(found, rows, strict=True):
            for token, mass in row:
                out[token] = _number(mass)
        return list(found)

    return [
        BatchRequest(
            each.get("drafts", ()),
            dense(each.get("weights", each["target"])),
            dense(each["draft"]),
            each.get("parameters"),
        )
        for each in requests
    ]
