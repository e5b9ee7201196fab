"""The certificate of a verifier on one pair: its output law, its verdict, and its gap to the optimum."""

from dataclasses import dataclass
from typing import Any, ClassVar

from spectheory.exact.counterexample import Counterexample, Failure
from spectheory.exact.law import OutputLaw
from spectheory.foundation.documents import both, count_text, decimal_text, to_json, value_text
from spectheory.foundation.exact_numbers import Number, plain_number
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, Result, Templates
from spectheory.foundation.scope import Scope
from spectheory.optima.solving.solution import Optimum
from spectheory.pairs.drafts.defect import DraftDefect
from spectheory.pairs.pair import ROUNDING_OF_A_ROW
from spectheory.verification.machine_proofs import MachineProof


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Result):
    """The verdict on one verifier and one pair, with its numbers.

    Quantities are Fractions in exact arithmetic, floats in float64, and ``None`` if there is a ``failure``.

    Attributes:
        verifier, source: name of the verifier, and its paper or origin.
        vocab, draft_length, num_drafts: names of the V tokens, L and K.
        draft_process: name of the draft process, by default ``"iid"``.
        arithmetic: ``"exact"`` or ``"float64"``; for a rerun in a suite, a name in ``rounded.ARITHMETICS``.
        scope: the cases that the verdict covers.
        block_efficiency: E[tau + 1], tokens per target call, the correction token included.
        target_matching: whether the output, completed to L+1 tokens with the target, has the target's law.
            In floats the total variation, and the error on every path relative to its probability, may be up
            to ``tolerance`` (``OutputLaw.excess``).
        total_variation: total variation between the completed law and p_{L+1}.
        undefined: probability that the algorithm stops where its correction token is 0/0.
        prefix_matching: whether the node budgets satisfy every antichain inequality (Thm 4.3).  Together with
            target_matching this is equivalent to validity.  It is ``None`` if an inequality fails and
            target_matching is False, because the budgets are then not the accepted masses.  It is also
            ``None`` if drafts are not i.i.d. and there are too many antichains to list.  An ``Outcome``
            stops on drafted prefixes by construction.
        first_token_law: law of the first token of the completed output, one probability per token.
        counterexample: the worst of the shortest prefixes on which the law is wrong, with its cause.
        best: the optimum over all valid verifiers of the pair; ``None`` if not requested or too large.
        optimum_note: how ``best`` was computed, or why it is ``None``.
        row_defect: largest distance from 1 of the sum of a float row of the given pair.  If it exceeds
            rounding, we first divided all rows by their sums.
        law: the output law.
        failure: why a user's verifier has no law: it raised on drafts, or its answer is not a law.
        machine_proof: the theorem about a published algorithm; it is no basis of the verdict.
        draft_defect: the draft defect of a process that may shorten or change drafts, otherwise ``None``
            (theory.md Statement 8.1).  The verdict is about this pair only; δ is about all targets.
    """

    verifier: str
    source: str
    vocab: tuple[str, ...]
    draft_length: int
    num_drafts: int
    draft_process: str
    arithmetic: str
    scope: Scope
    block_efficiency: Any = None
    target_matching: bool = False
    total_variation: Any = None
    undefined: Any = None
    prefix_matching: bool | None = None
    first_token_law: tuple[Any, ...] = ()
    counterexample: Counterexample | None = None
    best: Optimum | None = None
    optimum_note: str = "not asked for"
    row_defect: float = 0.0
    law: OutputLaw | None = None
    failure: Failure | None = None
    machine_proof: MachineProof | None = None
    draft_defect: DraftDefect | None = None

    facts: ClassVar[Templates] = {
        "algorithm": "{algorithm}",
        "beyond this pair": "{proved_for_every_pair}",
        "pair": "{vocab_size} tokens, draft length {draft_length}, {drafts}, {arithmetic} arithmetic",
        "drafts": "{draft_defect}",
        "block efficiency": "{block_efficiency} tokens per target call",
        "optimum": "{optimum} ({optimum_note})\nnot computed: {not_computed}",
        "gap to the optimum": "{gap_in_words}",
        "undefined output": "with probability {undefined:short} it is 0/0",
        "target-matching": "{target_matching}, total variation {total_variation:short}",
        "prefix-matching": "{prefix_matching}",
        "tolerance": "{tolerance}",
        "rows of the pair": "sums off 1 by up to {row_defect:.3g}; every row was divided by its sum",
        "law of the first token": "{first_token_law}",
        "counterexample": "{in_words}",
        "given these drafts": "{stops}",
    }
    columns: ClassVar[Templates] = {
        "verifier": "{verifier}",
        "lossless on it": "{lossless}",
        "block efficiency": "{block_efficiency}",
        "gap to the optimum": "{gap:.6f}",
        "total variation": "{total_variation:short}",
    }
    answers: ClassVar[tuple[str, ...]] = ("drafts", "counterexample", "gap to the optimum")
    fine_print: ClassVar[tuple[str, ...]] = (
        "tolerance",
        "rows of the pair",
        "law of the first token",
        "given these drafts",
    )

    @property
    def vocab_size(self) -> int:
        """V."""
        return len(self.vocab)

    @property
    def verdict(self) -> str:
        """``"lossless"`` or ``"not lossless"``."""
        return LOSSLESS if self else NOT_LOSSLESS

    @property
    def basis(self) -> str:
        """The numbers used for the verdict: ``"rationals"``, ``"float64"``, or the arithmetic of a rerun."""
        return basis_of(self.arithmetic)

    @property
    def optimum(self) -> Number | None:
        """The value of ``best``, or the lower end of its interval; None if there is no ``best``."""
        return None if self.best is None else self.best.value

    @property
    def gap(self) -> Number | None:
        """Optimum minus block efficiency, in tokens per target call; an upper bound for an interval."""
        if self.best is None:
            return None
        optimum = self.best.upper if self.best.is_interval else self.best.value
        return plain_number(optimum - self.block_efficiency)

    def __bool__(self) -> bool:
        """Whether the verifier is lossless on this pair: target-matching and prefix-matching."""
        return self.target_matching and self.prefix_matching is not False

    def judgement(self) -> tuple[str, str]:
        drafts = "" if self.draft_process == "iid" else f" with {self.draft_process} drafts"
        shape = self.vocab_size, self.draft_length, self.num_drafts
        place = f"on this pair{drafts}, (V, L, K) = {shape}"
        if self.failure is not None:
            about = f"{self.verifier} fails {place}"
        elif self:
            about = f"{self.verifier} {place}"
        else:
            about = f"{self.verifier} {place}, total variation {decimal_text(self.total_variation)}"
        return f"{self.verdict} ({self.basis})", about

    def headline(self) -> str:
        if self.failure is not None:
            verdict = f"NOT lossless, it fails on this pair ({self.failure.in_words()})"
        elif self:
            verdict = "lossless on this pair"
        else:
            verdict = f"NOT lossless, total variation {decimal_text(self.total_variation)} on this pair"
        arithmetic = (
            "in exact arithmetic"
            if self.arithmetic == "exact"
            else f"in {self.arithmetic} {self.scope.tolerance}"
        )
        drafts = "" if self.draft_process == "iid" else f", {self.draft_process} drafts"
        return f"{self.verifier}: {verdict}, {self.scope.in_words()}{drafts}, {arithmetic}"

    def shown(self) -> dict[str, Any]:
        best: Any = self.best
        is_interval = best is not None and best.is_interval
        wrong = self.draft_defect
        return {
            "algorithm": self.source,
            "proved_for_every_pair": self.machine_proof and self.machine_proof.in_words(),
            "drafts": count_text(self.num_drafts, "draft"),
            "lossless": bool(self),
            "draft_defect": None if wrong is None or wrong else wrong.in_words(),
            "block_efficiency": self.block_efficiency,
            "total_variation": self.total_variation,
            "optimum": f"{best.lower} to {best.upper}" if is_interval else self.optimum,
            "not_computed": self.optimum_note if self.best is None and self.failure is None else None,
            "gap": None if is_interval else self.gap,
            "gap_in_words": self._gap_in_words(),
            "undefined": self.undefined or None,
            "prefix_matching": self._prefix_matching_in_words(),
            "tolerance": None if self.arithmetic == "exact" or self.failure else self.scope.tolerance,
            "row_defect": self.row_defect if self.row_defect > ROUNDING_OF_A_ROW else None,
            "first_token_law": dict(zip(self.vocab, self.first_token_law, strict=self.failure is None)),
            "in_words": None if self else self.in_words(),
            "stops": None if self.counterexample is None else self.counterexample.stops_in_words() or None,
        }

    def _gap_in_words(self) -> str | None:
        """Describe the gap, and of a lossless verifier the share of the optimum that it earns."""
        if self.best is None or self.gap is None:
            return None
        gap = f"at most {self.gap:.3g}" if self.best.is_interval else value_text(self.gap)
        if not self:
            return gap
        earned = float(self.block_efficiency)
        best = earned + float(self.gap)
        return f"{gap}; {earned:.3f} of {best:.3f} tokens per call ({100 * earned / best:.3g} %)"

    def _prefix_matching_in_words(self) -> str | bool | None:
        if self.prefix_matching is not None or self.failure is not None:
            return self.prefix_matching
        return "not checked" if self.target_matching else "not judged: the law is not the target's"

    def __eq__(self, other: object) -> bool:
        """Whether both have equal documents, models and drafts."""
        return super().__eq__(other) and isinstance(other, Certificate) and other.law == self.law

    __hash__ = Result.__hash__

    def in_words(self) -> str:
        """Describe the smallest counterexample or the failure; ``"none"`` for a valid verifier."""
        if self.failure is not None:
            return self.failure.in_words()
        if self.counterexample is not None:
            return self.counterexample.in_words()
        return "none" if self else "the node budgets violate an antichain inequality"

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object of ``spectheory certify --json``; missing numbers are null.

        Rationals are strings such as ``"20/9"``.  A quantity computed in float64 is null, and the field with
        the ending ``_float`` has the number.  The optimum of an exact pair is exact even if the verifier's
        law is not.
        """
        names = ("vocab_size", "draft_length", "num_drafts", "draft_process", "arithmetic")
        best = {} if self.best is None else self.best.to_document()
        first_token_law = zip(self.vocab, self.first_token_law, strict=self.failure is None)
        return {
            "verifier": self.verifier,
            "verdict": self.verdict,
            "basis": self.basis,
            "lossless": bool(self),
            **{name: getattr(self, name) for name in names},
            **both("block_efficiency", self.block_efficiency),
            "target_matching": self.target_matching,
            "total_variation": to_json(self.total_variation),
            "undefined": to_json(self.undefined),
            "prefix_matching": self.prefix_matching,
            "optimum": best.get("value"),
            "optimum_float": best.get("value_float"),
            "optimum_lower": best.get("lower"),
            "optimum_upper": best.get("upper"),
            "optimum_note": self.optimum_note,
            "gap": to_json(self.gap),
            "gap_float": None if self.gap is None else float(self.gap),
            "first_token_law": {name: to_json(value) for name, value in first_token_law},
            "counterexample": to_json(self.counterexample),
            "failure": to_json(self.failure),
            "machine_proof": self.machine_proof and self.machine_proof.theorem,
            "scope": self.scope.to_document(),
            **({} if self.draft_defect is None else {"draft_defect": to_json(self.draft_defect)}),
        }


def basis_of(arithmetic: str) -> str:
    """Name the basis of a verdict from a law computed in ``arithmetic``."""
    return "rationals" if arithmetic == "exact" else arithmetic
