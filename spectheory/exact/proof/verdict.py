"""What a search for a proof has found: the verdict, its scope, and the proof to be stored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, Any, ClassVar

import flint

import spectheory
from spectheory.exact.proof import proof_file
from spectheory.exact.proof.domain import Shape
from spectheory.exact.proof.formulas import Formula
from spectheory.exact.proof.statements import Statement
from spectheory.foundation.documents import count_text
from spectheory.foundation.errors import InvalidInputError, NoVerdictError
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, UNDECIDED, Result, Table, Templates
from spectheory.foundation.scope import Scope
from spectheory.pairs.drafts import DraftProcess, Iid, PrefixTree, WithoutReplacement
from spectheory.pairs.pair import ModelPair

if TYPE_CHECKING:
    import sympy

PROVED, TRUSTED, REFUTED = "proved", "solver-trusted", "refuted"
SAY_LOSSLESS = ("lossless", "optimal")
"""The statements of which a proof says that the verifier is lossless."""


@dataclass(frozen=True, eq=False, repr=False)
class Proof(Result):
    """What is known of a verifier on every pair of a shape.

    Attributes:
        verdict: ``"proved"``, ``"solver-trusted"``, ``"refuted"`` or ``"undecided"``; the second where
            a solver says without a certificate that some regions are empty.
        verifier: its name.
        statement: what is said of it.
        shape: the pairs.
        process: of the drafts.
        num_regions: on which the statement holds by an identity.
        num_open: regions that were not decided.
        num_lemmas, num_trusted: lemmas that close regions, and those of them without a certificate.
        wrong: what is wrong on ``pair``; empty where nothing was found.
        pair: on which it does not hold.
        outside: with 99 % confidence, at most this share of the pairs whose rows are drawn uniformly lies in
            regions that are not decided; 0 where there are none.
        seconds, cpu_seconds: of the search.
        verifier_code: the digest of the code.
        tree: the proof, for ``save``; ``None`` where there is none.
        formulas: the block efficiency on all regions, where it was asked for; of an undecided proof, on those
            that are done.
        unfinished: where it is undecided, the search, for ``save`` and for ``resume`` of ``prove``.
    """

    verdict: str
    verifier: str
    statement: Statement
    shape: Shape
    process: DraftProcess
    num_regions: int
    num_open: int
    num_lemmas: int
    num_trusted: int
    wrong: str
    pair: ModelPair | None
    outside: float
    seconds: float
    cpu_seconds: float
    verifier_code: str
    tree: dict[str, Any] | None
    formulas: tuple[Formula, ...] = ()
    unfinished: dict[str, Any] | None = None

    facts: ClassVar[Templates] = {
        "statement": "{claim}, for every pair with {scope}",
        "regions": "{regions} decided, {open_regions} open; {lemmas} lemmas, {trusted_lemmas} uncertified",
        "not decided": "at most {open_share:.3g} of the pairs with uniform rows, with 99 % confidence",
        "wrong": "{wrong}",
        "pair": "{rows}",
        "assumed": "{assumed}",
        "code": "sha256 {verifier_code}",
        "seconds": "{seconds:.1f}",
    }

    answers: ClassVar[tuple[str, ...]] = ("wrong", "not decided", "regions")
    fine_print: ClassVar[tuple[str, ...]] = ("assumed", "code", "seconds")

    @property
    def lossless(self) -> bool | None:
        """Whether the verifier is lossless on all these pairs; None if that is not known or not asked."""
        if self.statement.name not in SAY_LOSSLESS or self.verdict not in (PROVED, REFUTED):
            return None
        return self.verdict == PROVED

    @property
    def basis(self) -> str:
        """``"proved"``; of a refuted statement the numbers of its pair."""
        return "rationals" if self.verdict == REFUTED else "proved"

    def judgement(self) -> tuple[str, str]:
        """Its statement, unless that is *lossless*, is what is proved or refuted."""
        of = f"{self.verifier} on {'a' if self.verdict == REFUTED else 'every'} pair with {self._pairs}"
        if self.lossless is not None and self.statement.name == LOSSLESS:
            return f"{LOSSLESS if self.lossless else NOT_LOSSLESS} ({self.basis})", of
        return self.verdict, of if self.statement.name == LOSSLESS else f"{self.statement.name}: {of}"

    @property
    def scope(self) -> Scope:
        """What the search was about: all pairs of one shape."""
        process, shape = self.process, self.shape
        left_out = ("pairs with zeros in their rows",) if shape.positive else ()
        shapes = ((shape.vocab_size, shape.draft_length, process.num_drafts),)
        return Scope("rational formulas", "none", shapes, (process.text,), left_out)

    @property
    def _pairs(self) -> str:
        """The pairs and the drafts in words."""
        process, shape = self.process, self.shape
        count = count_text(process.num_drafts, "draft")
        drafts = count if isinstance(process, Iid) else f"{count} of {process}"
        return f"{shape.vocab_size} tokens, draft length {shape.draft_length}, {drafts}, {shape.domain}"

    def headline(self) -> str:
        named = "" if self.statement.name == "lossless" else f", {self.statement.name}"
        return f"{self.verifier}{named}: {self.verdict}, {self._pairs}"

    def __bool__(self) -> bool:
        """Whether it is proved that the verifier is lossless.

        Raises:
            NoVerdictError: the statement is another one.
        """
        if self.statement.name not in SAY_LOSSLESS:
            raise NoVerdictError(
                f"a proof of the statement {self.statement.name!r} does not say lossless; ask .verdict"
            )
        return self.verdict == PROVED

    def to_document(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "basis": self.basis,
            "lossless": self.lossless,
            "scope": self.scope.to_document(),
            "verifier": self.verifier,
            "statement": self.statement.name,
            "vocab_size": self.shape.vocab_size,
            "draft_length": self.shape.draft_length,
            "drafts": drafts_document(self.process),
            "domain": self.shape.domain,
            "regions": self.num_regions,
            "open_regions": self.num_open,
            "lemmas": self.num_lemmas,
            "trusted_lemmas": self.num_trusted,
            "open_share": self.outside,
            "wrong": self.wrong,
            "pair": None if self.pair is None else self.pair.to_document(),
            "formulas": [formula.to_document() for formula in self.formulas],
            "seconds": self.seconds,
            "spectheory": spectheory.__version__,
            "python": python_version(),
            "python_flint": flint.__version__,
            "verifier_code": self.verifier_code,
        }

    def shown(self) -> dict[str, Any]:
        pair = {} if self.pair is None else self.pair.to_document()
        sides = [f"{side} {_rows_text(pair[side])}" for side in ("target", "draft") if pair]
        return {
            "claim": self.statement.claim,
            "scope": self._pairs,
            "rows": "\n".join(sides),
            "open_share": self.outside if self.verdict == UNDECIDED else None,
            "assumed": "a new object has seen no call, the code does not look at the types of numbers, and "
            "modified_target_rows, if there is one, is of later calls",
        }

    def tables(self) -> list[Table]:
        columns = {"block efficiency": "{block_efficiency}", "where": "{where}"}
        rows = [formula.to_document() for formula in self.formulas]
        return [*super().tables(), *([Table("formulas", rows, columns)] if rows else [])]

    @property
    def block_efficiency(self) -> sympy.Expr:
        """E[τ+1] in sympy, by regions; the variables are those of ``Formula``.

        Raises:
            InvalidInputError: the proof was not made with ``show=True``, or is not finished.

        Example:
            >>> from fractions import Fraction
            >>> from spectheory import prove
            >>> formula = prove("token", 2, 1, positive=True, show=True).block_efficiency
            >>> formula
            Piecewise((-p_0 + q_0 + 2, p_0 - q_0 >= 0), (p_0 - q_0 + 2, True))
            >>> formula.subs({"p_0": Fraction(1, 3), "q_0": Fraction(2, 3)})
            5/3
        """
        import sympy

        if not self.formulas or self.num_open:
            raise InvalidInputError("there are no formulas for all regions; call prove with show=True")
        *some, last = ((formula.expression, formula.where) for formula in self.formulas)
        return sympy.Piecewise(*some, (last[0], True))

    def save(self, path: str | Path) -> int:
        """Write the proof for ``check_proof``, or the search to be resumed; returns the size in bytes.

        Raises:
            InvalidInputError: the verdict is ``"refuted"``.
        """
        tree = self.tree or self.unfinished
        if tree is None:
            raise InvalidInputError(f"there is no proof to write: the verdict is {self.verdict!r}")
        left_out = {"pair", "wrong", "open_share", "open_regions", "formulas", "seconds"}
        left_out |= {"verdict", "basis", "lossless", "scope"}
        header = {key: value for key, value in self.to_document().items() if key not in left_out}
        name = proof_file.FORMAT if self.tree else proof_file.SEARCH_FORMAT
        return proof_file.write(path, {"format": name, **header, **tree})


def _rows_text(rows: Any) -> str:
    """The rows of one model in a pair file, each behind its context."""
    if not isinstance(rows, dict):
        return " ".join(rows)
    return ", ".join(f"{context or 'root'}: {' '.join(row)}" for context, row in rows.items())


def drafts_document(process: DraftProcess) -> dict[str, Any]:
    """A draft process in JSON."""
    widths = {"widths": list(process.widths)} if isinstance(process, (PrefixTree, WithoutReplacement)) else {}
    return {"process": process.name, "num_drafts": process.num_drafts, **widths}
