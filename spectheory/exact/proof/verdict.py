"""What a search for a proof has found: the verdict, its scope, and the proof to be stored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, Any, ClassVar

import flint

import spectheory
from spectheory.exact.proof.domain import Shape
from spectheory.exact.proof.formulas import Formula
from spectheory.exact.proof.proof_file import FORMAT, write
from spectheory.exact.proof.statement import Statement
from spectheory.exact.proof.statements import drafts_document
from spectheory.foundation.documents import count_text
from spectheory.foundation.errors import InvalidInputError, NoVerdictError
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, Result, Table, Templates
from spectheory.foundation.scope import Scope
from spectheory.pairs.drafts import DraftProcess, Iid
from spectheory.pairs.pair import ModelPair

if TYPE_CHECKING:
    import sympy

PROVED, REFUTED = "proved", "refuted"


@dataclass(frozen=True, eq=False, repr=False)
class Proof(Result):
    """What is known of a verifier on every pair of a shape.

    Attributes:
        verdict: ``"proved"``, ``"refuted"`` or ``"undecided"``.
        statement: what is said, and of which verifier.
        shape: the pairs.
        num_regions: on which the statement holds by an identity.
        num_open: regions on which a condition fails and of which it is not known whether they are empty.
        num_lemmas: that close regions.
        wrong: what is wrong on ``pair``; empty where nothing was found.
        pair: on which it does not hold.
        seconds: of the processor.
        verifier_code: the digest of the code.
        log: the proof, for ``save``; ``None`` where there is none.
        formulas: the block efficiency on all regions, where it was asked for.
    """

    verdict: str
    statement: Statement
    shape: Shape
    num_regions: int
    num_open: int
    num_lemmas: int
    wrong: str
    pair: ModelPair | None
    seconds: float
    verifier_code: str
    log: dict[str, Any] | None
    formulas: tuple[Formula, ...] = ()

    facts: ClassVar[Templates] = {
        "statement": "{claim}, for every pair with {scope}",
        "regions": "{regions} decided, {open_regions} open; {lemmas} lemmas",
        "wrong": "{wrong}",
        "pair": "{rows}",
        "assumed": "{assumed}",
        "code": "sha256 {verifier_code}",
        "seconds": "{seconds:.1f}",
    }

    answers: ClassVar[tuple[str, ...]] = ("wrong", "regions")
    fine_print: ClassVar[tuple[str, ...]] = ("assumed", "code", "seconds")

    @property
    def verifier(self) -> str:
        """The name of the verifier."""
        return self.statement.subjects[0].verifier.name

    @property
    def process(self) -> DraftProcess:
        """The law of the drafts."""
        return self.statement.subjects[0].process

    @property
    def lossless(self) -> bool | None:
        """Whether the verifier is lossless on all these pairs; None if that is not known or not asked."""
        if not self.statement.says_lossless or self.verdict not in (PROVED, REFUTED):
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
        left_out = ("pairs with zeros in their rows",) if self.shape.positive else ()
        shapes = ((self.shape.vocab_size, self.shape.draft_length, self.process.num_drafts),)
        return Scope("rational formulas", "none", shapes, (self.process.text,), left_out)

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
        if not self.statement.says_lossless:
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
            **self._stated(),
            "open_regions": self.num_open,
            "wrong": self.wrong,
            "pair": None if self.pair is None else self.pair.to_document(),
            "formulas": [formula.to_document() for formula in self.formulas],
            "seconds": self.seconds,
        }

    def _stated(self) -> dict[str, Any]:
        """The fields that a stored proof has, too."""
        return {
            "verifier": self.verifier,
            "statement": self.statement.name,
            "vocab_size": self.shape.vocab_size,
            "draft_length": self.shape.draft_length,
            "drafts": drafts_document(self.process),
            "domain": self.shape.domain,
            "regions": self.num_regions,
            "lemmas": self.num_lemmas,
            "spectheory": spectheory.__version__,
            "python": python_version(),
            "python_flint": flint.__version__,
            "verifier_code": self.verifier_code,
        }

    def document(self) -> dict[str, Any]:
        """The proof as it is stored.

        Raises:
            InvalidInputError: there is none.
        """
        if self.log is None:
            raise InvalidInputError(f"there is no proof to write: the verdict is {self.verdict!r}")
        stated = {**self._stated(), "num_lemmas": self.num_lemmas}
        del stated["lemmas"]  # the name of the list of lemmas
        return {"format": FORMAT, **stated, **self.log}

    def shown(self) -> dict[str, Any]:
        pair = {} if self.pair is None else self.pair.to_document()
        sides = [f"{side} {_rows_text(pair[side])}" for side in ("target", "draft") if pair]
        return {
            "claim": self.statement.claim.format(other=self.statement.name.partition(":")[2]),
            "scope": self._pairs,
            "rows": "\n".join(sides),
            "assumed": "the same answers for one tuple of drafts as for all, and for numbers of any type",
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

        if not self.formulas:
            raise InvalidInputError("there are no formulas for all regions; call prove with show=True")
        *some, last = ((formula.expression, formula.where) for formula in self.formulas)
        return sympy.Piecewise(*some, (last[0], True))

    def save(self, path: str | Path) -> int:
        """Write the proof for ``check_proof``; returns the size in bytes.

        Raises:
            InvalidInputError: the verdict is not ``"proved"``.
        """
        return write(path, self.document())


def _rows_text(rows: Any) -> str:
    """The rows of one model in a pair file, each after its context."""
    if not isinstance(rows, dict):
        return " ".join(rows)
    return ", ".join(f"{context or 'root'}: {' '.join(row)}" for context, row in rows.items())
