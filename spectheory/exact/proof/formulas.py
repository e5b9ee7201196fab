"""Block efficiency as formulas, one for all regions on which a verifier decides to the same effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spectheory.exact.proof.domain import Face, FormalPair, variable
from spectheory.exact.proof.rational_functions import (
    ANY_SIGN,
    NEGATIVE,
    POSITIVE,
    ZERO,
    Factor,
    RationalFunction,
)
from spectheory.exact.proof.stops import Stops

if TYPE_CHECKING:
    import sympy

Region = dict[Factor, int]
"""Factor -> the signs that it has there."""
RELATIONS = {
    NEGATIVE: "Lt",
    ZERO: "Eq",
    POSITIVE: "Gt",
    NEGATIVE | ZERO: "Le",
    POSITIVE | ZERO: "Ge",
    NEGATIVE | POSITIVE: "Ne",
}


@dataclass(frozen=True)
class Formula:
    """The block efficiency on some regions.

    The variables are named as in ``p_1_0``, the target's probability of token 0 behind token 1, and ``q_0``,
    the draft's of token 0 at the root.  The last token of a row has what the others leave.

    Attributes:
        face: at every context, the tokens that the draft may draw.
        regions: the formula holds on each of them.
        block_efficiency: E[τ+1].
        acceptance: P(τ ≥ i) for i = 1..L.
    """

    face: Face
    regions: tuple[Region, ...]
    block_efficiency: RationalFunction
    acceptance: tuple[RationalFunction, ...]

    @property
    def expression(self) -> sympy.Expr:
        """The block efficiency in sympy."""
        return _expression(self.block_efficiency)

    @property
    def where(self) -> Any:
        """Where the formula holds, as a condition of sympy; rows are taken to be laws."""
        import sympy

        size, zeros = self._vocab_size, []
        for context, tokens in self.face.items():
            row = [sympy.Symbol(variable("q", context, token)) for token in range(size - 1)]
            row.append(1 - sum(row))
            zeros += [sympy.Eq(row[token], 0) for token in range(size) if token not in tokens]
        regions = (sympy.And(*map(_condition, region.items())) for region in self.regions)
        return sympy.And(*zeros, sympy.Or(*regions))

    @property
    def num_equalities(self) -> int:
        """Of its widest region; 0 where that has as many dimensions as its face."""
        return min(sum(mask == ZERO for mask in region.values()) for region in self.regions)

    @property
    def _vocab_size(self) -> int:
        names = self.block_efficiency.field.names
        return 1 + sum(name.startswith("p_") and name.count("_") == 1 for name in names)

    def to_document(self) -> dict[str, Any]:
        """The JSON object; ``latex`` is the block efficiency."""
        import sympy

        return {
            "where": str(self.where),
            "block_efficiency": str(self.expression),
            "acceptance": [str(_expression(prob)) for prob in self.acceptance],
            "latex": sympy.latex(self.expression),
        }


class Leaves:
    """The leaves of a walk, grouped by their formula."""

    def __init__(self) -> None:
        self._groups: dict[Any, tuple[FormalPair, list[Region]]] = {}

    def add(self, pair: FormalPair, known: Mapping[Factor, int], law: Stops) -> None:
        """Note what a verifier returned at a leaf with these signs."""
        zero = pair.field.constant(0)
        reach = [zero] * (pair.draft_length + 1)
        for weight, paths in zip(law.weights, law.probs, strict=True):
            for probs in paths:
                for depth, prob in enumerate(probs):
                    for least in range(depth + 1):
                        reach[least] = reach[least] + weight * prob
        given = pair.known
        region = {factor: mask for factor, mask in known.items() if mask != given.get(factor, ANY_SIGN)}
        key = tuple(pair.face.items()), tuple(reach)
        self._groups.setdefault(key, (pair, []))[1].append(region)

    def formulas(self) -> tuple[Formula, ...]:
        """One formula for all leaves of a face that have it."""
        found = []
        for (_, reach), (pair, regions) in self._groups.items():
            total = pair.field.constant(0)
            for prob in reach:
                total = total + prob
            found.append(Formula(pair.face, tuple(_merged(regions, pair.known)), total, reach[1:]))
        return tuple(sorted(found, key=lambda formula: formula.num_equalities))


def _merged(regions: Sequence[Region], given: Mapping[Factor, int]) -> list[Region]:
    """Regions that differ in the signs of one factor become one, until no two do."""
    left = list(regions)
    for number, region in enumerate(left):
        for other in left[:number]:
            factors = region.keys() | other.keys()
            whole = {factor: given.get(factor, ANY_SIGN) for factor in factors}
            signs = {f: (region.get(f, whole[f]), other.get(f, whole[f])) for f in factors}
            different = [factor for factor, (one, two) in signs.items() if one != two]
            if len(different) <= 1:
                union = {factor: one | two for factor, (one, two) in signs.items()}
                rest = [one for one in left if one is not region and one is not other]
                kept = {f: mask for f, mask in union.items() if mask != whole[f]}
                return _merged([*rest, kept], given)
    return left


def _condition(item: tuple[Factor, int]) -> Any:
    import sympy

    factor, mask = item
    return getattr(sympy, RELATIONS[mask])(_sum(factor.terms, factor.field.names), 0)


def _expression(function: RationalFunction) -> sympy.Expr:
    names = function.field.names
    return _sum(function.numerator.to_dict(), names) / _sum(function.denominator.to_dict(), names)


def _sum(terms: Mapping[Any, Any], names: Sequence[str]) -> sympy.Expr:
    """A polynomial, exponents -> coefficient, in sympy."""
    import sympy

    symbols = [sympy.Symbol(name) for name in names]
    products = (
        int(coefficient) * sympy.prod(x ** int(n) for x, n in zip(symbols, exponents, strict=True))
        for exponents, coefficient in terms.items()
    )
    return sympy.Add(*products)
