"""Compare verifiers with the optimum, on several pairs and numbers of drafts, as in the table of a paper.

>>> from spectheory import compare, instances
>>> found = compare(["token", "block"], instances.two_token(2))
>>> [(row["verifier"], row["block_efficiency"], row["gap"]) for row in found.rows()]
[('optimum', '20/9', None), ('token', '19/9', '1/9'), ('block', '20/9', '0')]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from spectheory.exact.certifying import certify
from spectheory.foundation.documents import both, value_text
from spectheory.foundation.errors import ComputationError, InvalidInputError
from spectheory.foundation.extras import installed
from spectheory.foundation.results import (
    LOSSLESS,
    NOT_LOSSLESS,
    UNDECIDED,
    Result,
    Table,
    Templates,
    no_verdict,
)
from spectheory.optima.pair_optimum import optimum
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.drafts.iid import draft_process
from spectheory.pairs.pair import ModelPair, check_pair
from spectheory.verification.resolve import find_verifier

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OPTIMUM = "optimum"
"""Name of the optimum in rows; no verifier of the package has this name."""


@dataclass(frozen=True)
class Compared:
    """A row of a comparison: one verifier, or the optimum, on one pair with one draft process.

    Attributes:
        pair: name of the pair.
        drafts, num_drafts: the draft process as text, such as ``iid:2``, and K.
        verifier: name of the verifier; ``"optimum"`` for the optimum over all lossless verifiers.
        verdict, basis: as in ``Certificate``.  *undecided* if the verifier refuses the pair or the drafts;
            None for the optimum.
        block_efficiency: tokens per target call.  None if the verifier fails, or the optimum is too large to
            compute.
        gap: the optimum minus ``block_efficiency``; an upper bound if the optimum is an interval.
        total_variation: total variation between the output law and the target's law.
        because: the counterexample, the verifier's error, or the reason why there is no number.
        scope: arithmetic, tolerance and shapes that the verdict covers, in words.
    """

    pair: str
    drafts: str
    num_drafts: int
    verifier: str
    verdict: str | None
    basis: str | None
    block_efficiency: Any = None
    gap: Any = None
    total_variation: Any = None
    because: str = ""
    scope: str = ""

    def __bool__(self) -> bool:
        if self.verdict is None:
            raise no_verdict(self, ".block_efficiency")
        return self.verdict == LOSSLESS

    def to_document(self) -> dict[str, Any]:
        return {
            "pair": self.pair,
            "drafts": self.drafts,
            "num_drafts": self.num_drafts,
            "verifier": self.verifier,
            "verdict": self.verdict,
            "basis": self.basis,
            "lossless": {LOSSLESS: True, NOT_LOSSLESS: False}.get(str(self.verdict)),
            **both("block_efficiency", self.block_efficiency),
            **both("gap", self.gap),
            **both("total_variation", self.total_variation),
            "because": self.because,
            "scope": self.scope,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """Verifiers and the optimum; ``rows()``, ``to_frame()``, ``to_latex()`` and ``plot()`` show them.

    Attributes:
        compared: for each pair and draft process in turn, the optimum and then the verifiers.
    """

    compared: tuple[Compared, ...]

    columns: ClassVar[Templates] = {
        "verifier": "{verifier}",
        "verdict": "{verdict}",
        "block efficiency": "{block_efficiency}",
        "gap to the optimum": "{gap}",
        "total variation": "{total_variation:short}",
        "because": "{because}",
    }

    def __bool__(self) -> bool:
        raise no_verdict(self, ".rows()")

    def headline(self) -> str:
        return "block efficiency in tokens per target call"

    def to_document(self) -> dict[str, Any]:
        return {"rows": self.rows()}

    def rows(self) -> list[dict[str, Any]]:
        """One row per pair, drafts and verifier, the optimum first, with numbers as texts and as floats."""
        return [row.to_document() for row in self.compared]

    def tables(self) -> list[Table]:
        """Make a table: all numbers of one pair and draft process, or block efficiencies of several."""
        places = list(dict.fromkeys((row.pair, row.drafts) for row in self.compared))
        if len(places) == 1:
            rows = [vars(row) for row in self.compared]
            columns = {name: text for name, text in self.columns.items() if name != "because"}
            is_explained = any(row.because for row in self.compared)
            return [Table(self.headline(), rows, self.columns if is_explained else columns)]
        size = len(self.compared) // len(places)
        lines = [
            {"verifier": row.verifier}
            | {f"at_{place}": _cell(self.compared[place * size + number]) for place in range(len(places))}
            for number, row in enumerate(self.compared[:size])
        ]
        columns = {name: f"{{at_{place}}}" for place, name in enumerate(_place_names(places))}
        notes = ["* not lossless"] if any(row.verdict == NOT_LOSSLESS for row in self.compared) else []
        notes += [
            f"{row.verifier} on {row.pair}, {row.drafts}: {row.because}"
            for row in self.compared
            if row.block_efficiency is None
        ]
        return [Table(self.headline(), lines, {"verifier": "{verifier}"} | columns, "; ".join(notes))]

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw a curve per verifier and a dashed line for the optimum, over K or over the pairs.

        A star marks verifiers that are not lossless.

        Args:
            axes: axes of matplotlib; by default the axes of a new figure.

        Raises:
            MissingDependencyError: matplotlib is not installed.
        """
        from spectheory.verification.curves import optimum_curve, verifier_curve

        if axes is None:
            with installed():
                from matplotlib.figure import Figure
            axes = Figure(layout="constrained").subplots()
        places = list(dict.fromkeys((row.pair, row.drafts) for row in self.compared))
        size = len(self.compared) // len(places)
        over_drafts = len({pair for pair, _ in places}) == 1 and len(places) > 1
        for number in range(size):
            curve = self.compared[number::size]
            at = [row.num_drafts if over_drafts else place for place, row in enumerate(curve)]
            values = [
                float("nan") if row.block_efficiency is None else float(row.block_efficiency) for row in curve
            ]
            if number == 0:
                optimum_curve(axes, at, values)
            else:
                verifier_curve(axes, curve[0].verifier, at, values)
                if any(row.verdict == NOT_LOSSLESS for row in curve):
                    axes.lines[-1].set_label(f"{axes.lines[-1].get_label()} *")
        if over_drafts:
            axes.set_xlabel("drafts K")
            axes.set_xticks([row.num_drafts for row in self.compared[::size]])
        else:
            axes.set_xticks(range(len(places)), _place_names(places))
        axes.set_ylabel("tokens per target call")
        axes.legend()
        return axes


def compare(
    verifiers: Sequence[str | Any],
    pairs: ModelPair | Mapping[str, ModelPair] | Sequence[ModelPair],
    drafts: int | DraftProcess | Sequence[int | DraftProcess] = 1,
) -> Comparison:
    """Certify verifiers and compute the optimum, on every pair with every draft process.

    If a verifier fails on drafts, or does not accept them, its row says so.

    Args:
        verifiers: names, ``"package.module:attribute"``, or objects with ``outcome``.
        pairs: one pair, a mapping from names to pairs, or a sequence of pairs.
        drafts: K for paths drafted i.i.d., another draft process, or several of them.

    Returns:
        The rows, with one row of the optimum for each pair and draft process.

    Raises:
        UnknownNameError: no verifier has one of the names.
        InvalidInputError: there is no verifier or no pair, or an argument has a wrong type.

    Example:
        >>> from spectheory import instances
        >>> columns = ["drafts", "verifier", "lossless", "block_efficiency"]
        >>> found = compare(["token", "spectr_gbv"], {"two tokens": instances.two_token(2)}, [1, 2])
        >>> print(found.to_frame()[columns].to_string(index=False))
        drafts   verifier lossless block_efficiency
         iid:1    optimum     None             20/9
         iid:1      token     True             19/9
         iid:1 spectr_gbv    False              7/3
         iid:2    optimum     None           212/81
         iid:2      token     True             19/9
         iid:2 spectr_gbv    False     131813/57120
    """
    given = [find_verifier(verifier) for verifier in verifiers]
    named = _named(pairs)
    listed: Any = drafts if isinstance(drafts, (list, tuple, range)) else [drafts]
    asked = [draft_process(each) for each in listed]
    if not (given and named and asked):
        raise InvalidInputError("name at least one verifier, one pair and one number of drafts")
    found: list[Compared] = []
    for name, pair in named.items():
        for process in asked:
            place = name, process.text, process.num_drafts
            best, highest, because = _optimum(pair, process)
            found.append(Compared(*place, OPTIMUM, None, None, best, because=because))
            found += [_judged(verifier, pair, process, place, highest) for verifier in given]
    return Comparison(tuple(found))


def _named(pairs: Any) -> dict[str, ModelPair]:
    """Map names to pairs.  Pairs without names are numbered."""
    if isinstance(pairs, Mapping):
        return {str(name): check_pair(pair) for name, pair in pairs.items()}
    listed = list(pairs) if isinstance(pairs, (list, tuple)) else [pairs]
    return {f"pair {number}": check_pair(pair) for number, pair in enumerate(listed, 1)}


def _optimum(pair: ModelPair, process: DraftProcess) -> tuple[Any, Any, str]:
    """Compute the optimum's value, its upper end, and a note.  If there is no optimum, the note says why."""
    try:
        best = optimum(pair, process)
    except (InvalidInputError, ComputationError) as error:
        return None, None, str(error)
    between = f"certified between {best.lower!r} and {best.upper!r}" if best.is_interval else ""
    return best.value, best.upper if best.is_interval else best.value, between


def _judged(
    verifier: Any, pair: ModelPair, process: DraftProcess, place: tuple[str, str, int], highest: Any
) -> Compared:
    try:
        found = certify(verifier, pair, process, with_optimum=False)
    except InvalidInputError as error:
        return Compared(*place, verifier.name, UNDECIDED, None, because=str(error))
    because = "" if found else found.in_words()
    value = found.block_efficiency
    gap = None if value is None or highest is None else highest - value
    looked_at = found.scope
    scope = f"{looked_at.arithmetic} arithmetic, tolerance {looked_at.tolerance}; {looked_at.in_words()}"
    told = found.verifier, found.verdict, found.basis
    return Compared(*place, *told, value, gap, found.total_variation, because, scope)


def _place_names(places: Sequence[tuple[str, str]]) -> list[str]:
    """Name places by pair, drafts or both, as far as they differ."""
    places = [(pair, drafts.replace("iid:", "K = ")) for pair, drafts in places]
    if len({pair for pair, _ in places}) == 1:
        return [drafts for _, drafts in places]
    if len({drafts for _, drafts in places}) == 1:
        return [pair for pair, _ in places]
    return [f"{pair}, {drafts}" for pair, drafts in places]


def _cell(row: Compared) -> str:
    """Format the block efficiency, with a star if the verifier is not lossless."""
    is_wrong = row.verdict == NOT_LOSSLESS
    if row.block_efficiency is None:
        return "fails" if is_wrong else "-"
    return value_text(row.block_efficiency) + (" *" if is_wrong else "")
