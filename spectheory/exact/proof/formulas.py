"""Block efficiency as formulas, one for all regions on which a verifier decides to the same effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spectheory.exact.proof.domain import Support
from spectheory.exact.proof.graph import Graph, Node
from spectheory.exact.proof.numbers import ANY, NEGATIVE, POSITIVE, ZERO, Factor, Field, Function
from spectheory.exact.proof.region import Region
from spectheory.exact.proof.runs import Leaf
from spectheory.exact.proof.walk import Condition, Sum, Totals, Walk
from spectheory.pairs.contexts import Context

if TYPE_CHECKING:
    import sympy

Signs = dict[Factor, int]
"""Factor -> the signs that it has."""
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

    The variables are named as in ``p_1_0``, the target's probability of token 0 after token 1, and ``q_0``,
    the draft's of token 0 at the root.  The last token of a row has what the others leave.

    Attributes:
        field: of the functions.
        face: at every context, the tokens that the draft may draw.
        regions: the formula holds on each of them.
        block_efficiency: E[τ+1].
        acceptance: P(τ ≥ i) for i = 1..L.
    """

    field: Field
    face: Mapping[Context, Support]
    regions: tuple[Signs, ...]
    block_efficiency: Function
    acceptance: tuple[Function, ...]

    @property
    def expression(self) -> sympy.Expr:
        """The block efficiency in sympy."""
        return _expression(self.block_efficiency, self.field)

    @property
    def where(self) -> Any:
        """Where the formula holds, as a condition of sympy; rows are taken to be laws."""
        import sympy

        size, zeros = 1 + sum(name.count("_") == 1 for name in self.field.names if name[0] == "p"), []
        for context, tokens in self.face.items():
            names = ("_".join(map(str, ("q", *context, token))) for token in range(size - 1))
            row = [*map(sympy.Symbol, names)]
            row.append(1 - sum(row))
            zeros += [sympy.Eq(row[token], 0) for token in range(size) if token not in tokens]
        regions = (sympy.And(*map(_condition, region.items())) for region in self.regions)
        return sympy.And(*zeros, sympy.Or(*regions))

    @property
    def num_equalities(self) -> int:
        """Of its widest region; 0 where that has as many dimensions as its face."""
        return min(sum(mask == ZERO for mask in region.values()) for region in self.regions)

    def to_document(self) -> dict[str, Any]:
        """The JSON object; ``latex`` is the block efficiency."""
        import sympy

        return {
            "where": str(self.where),
            "block_efficiency": str(self.expression),
            "acceptance": [str(_expression(prob, self.field)) for prob in self.acceptance],
            "latex": sympy.latex(self.expression),
        }


def formulas_of(walk: Walk) -> tuple[Formula, ...]:
    """One formula for all regions of a face on which the acceptance is the same function.

    Regions of all rows are walked, so that those of rows that do not interact multiply.  A proof does not
    need this walk: its regions and lemmas are not counted.
    """
    counted = walk.num_regions, dict(walk.oracle.used)
    domain, graph, field = walk.domain, walk.graph, walk.domain.field
    groups: dict[Any, tuple[dict[Context, Support], Signs, list[Signs]]] = {}
    depths = range(1, domain.draft_length + 1)

    def note(region: Region, totals: Totals) -> Iterator[Condition]:
        acceptance = tuple(totals.get(depth, field.zero) for depth in depths)
        face = {context: support for context, support in region.supports.items() if support}
        _, given, regions = groups.setdefault((tuple(face.items()), acceptance), (face, {}, []))
        given.update((field.factors[number], mask) for number, mask in region.given.items())
        signs = {field.factors[number]: mask for number, mask in region.signs.items()}
        regions.append({factor: mask for factor, mask in signs.items() if mask != given.get(factor, ANY)})
        return iter(())

    walk.on_region = lambda region: None
    walk.walk(Sum.of((walk.runs[0], _acceptance(graph))), note)
    walk.num_regions, walk.oracle.used = counted
    found = [
        Formula(field, face, tuple(_merged(regions, given)), field.sum([field.one, *acceptance]), acceptance)
        for (_, acceptance), (face, given, regions) in groups.items()
    ]
    return tuple(sorted(found, key=lambda formula: formula.num_equalities))


def _acceptance(graph: Graph) -> Any:
    """P(τ ≥ i) given a tuple."""

    def vector(leaf: Leaf) -> dict[Any, Node]:
        depths = range(1, len(leaf.stops[0]))
        return {depth: graph.sum(stop for row in leaf.stops for stop in row[depth:]) for depth in depths}

    return vector


def _merged(regions: Sequence[Signs], given: Mapping[Factor, int]) -> list[Signs]:
    """Regions that differ in the signs of one factor become one, until no two do."""
    left = list(regions)
    for number, region in enumerate(left):
        for other in left[:number]:
            whole = {factor: given.get(factor, ANY) for factor in region.keys() | other.keys()}
            signs = {f: (region.get(f, whole[f]), other.get(f, whole[f])) for f in whole}
            different = [factor for factor, (one, two) in signs.items() if one != two]
            if len(different) <= 1:
                union = {factor: one | two for factor, (one, two) in signs.items()}
                rest = [one for one in left if one is not region and one is not other]
                kept = {factor: mask for factor, mask in union.items() if mask != whole[factor]}
                return _merged([*rest, kept], given)
    return left


def _condition(item: tuple[Factor, int]) -> Any:
    import sympy

    factor, mask = item
    return getattr(sympy, RELATIONS[mask])(_polynomial(factor.polynomial), 0)


def _expression(function: Function, field: Field) -> sympy.Expr:
    below = function.divisor
    for number, exponent in function.denominator:
        below *= _polynomial(field.factors[number].polynomial) ** exponent
    return _polynomial(function.numerator) / below


def _polynomial(polynomial: Any) -> sympy.Expr:
    import sympy

    return sympy.sympify(str(polynomial).replace("^", "**"))
