"""Certify a verifier on one pair: its output law, whether it is lossless, and its gap to the optimum."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from spectheory.exact.counterexample import Counterexample, Failure, names_of, smallest_counterexample
from spectheory.exact.law import DEFAULT_MAX_TUPLES, FLOAT64, OutputLaw, output_law
from spectheory.foundation.documents import both, count_text, decimal_text, to_json, value_text
from spectheory.foundation.errors import (
    EnumerationTooLargeError,
    InvalidInputError,
    InvalidOutcomeError,
    NotJudgedError,
)
from spectheory.foundation.exact_numbers import Number, float_tolerance, plain_number
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, Result, Templates
from spectheory.foundation.scope import Scope
from spectheory.optima.pair_optimum import optimum
from spectheory.optima.solving.solution import Optimum
from spectheory.pairs.contexts import Context
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.drafts.defect import DraftDefect, draft_defect
from spectheory.pairs.drafts.iid import draft_process
from spectheory.pairs.drafts.kept import AdaptiveDrafts
from spectheory.pairs.pair import ROUNDING_OF_A_ROW, ModelPair, check_pair
from spectheory.verification.machine_proofs import MachineProof, machine_proofs
from spectheory.verification.resolve import Problem, find_verifier, resolve
from spectheory.verification.sampler_runs import outcome_or_run, runs_a_sampler
from spectheory.verification.user import UserVerifier
from spectheory.verification.user_checks import ROUNDING, first_failure, sampled_drafts


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
        return LOSSLESS if self.is_valid else NOT_LOSSLESS

    @property
    def basis(self) -> str:
        """The numbers used for the verdict: ``"rationals"``, ``"float64"``, or the arithmetic of a rerun."""
        return basis_of(self.arithmetic)

    @property
    def block_efficiency_float(self) -> float:
        """The block efficiency as a float."""
        return float(self.block_efficiency)

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

    @property
    def is_valid(self) -> bool:
        """Whether the verifier is lossless on this pair: target-matching and prefix-matching."""
        return self.target_matching and self.prefix_matching is not False

    def __bool__(self) -> bool:
        return self.is_valid

    def judgement(self) -> tuple[str, str]:
        drafts = "" if self.draft_process == "iid" else f" with {self.draft_process} drafts"
        shape = self.vocab_size, self.draft_length, self.num_drafts
        place = f"on this pair{drafts}, (V, L, K) = {shape}"
        if self.failure is not None:
            about = f"{self.verifier} fails {place}"
        elif self.is_valid:
            about = f"{self.verifier} {place}"
        else:
            about = f"{self.verifier} {place}, total variation {decimal_text(self.total_variation)}"
        return f"{self.verdict} ({self.basis})", about

    def headline(self) -> str:
        if self.failure is not None:
            verdict = f"NOT lossless, it fails on this pair ({self.failure.in_words()})"
        elif self.is_valid:
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
            "lossless": self.is_valid,
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
            "in_words": None if self.is_valid else self.in_words(),
            "stops": None if self.counterexample is None else self.counterexample.stops_in_words() or None,
        }

    def _gap_in_words(self) -> str | None:
        """Describe the gap, and of a lossless verifier the share of the optimum that it earns."""
        if self.best is None or self.gap is None:
            return None
        gap = f"at most {self.gap:.3g}" if self.best.is_interval else value_text(self.gap)
        if not self.is_valid:
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
        return "none" if self.is_valid else "the node budgets violate an antichain inequality"

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
            "lossless": self.is_valid,
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


def _failed(
    verifier: UserVerifier, pair: ModelPair, process: DraftProcess, failure: InvalidOutcomeError
) -> Certificate:
    """Build the certificate of a verifier that fails on drafts.

    An error on rationals counts only if the verifier also raises on floats.
    """
    if failure.__cause__ is not None and ((verifier.exact and pair.is_exact) or runs_a_sampler(verifier)):
        failure = _raised_on_floats(verifier, pair, process, failure)
        pair, process = pair.to_float(), process.to_float()
    problem = resolve(verifier, pair, process)
    return failed_certificate(problem, failure, problem.pair.arithmetic, sampled_drafts(problem))


def _raised_on_floats(
    verifier: UserVerifier, pair: ModelPair, process: DraftProcess, raised: InvalidOutcomeError
) -> InvalidOutcomeError:
    """Run the verifier on floats, and return its error.  A sampler gets numpy's random numbers.

    Raises:
        NotJudgedError: it runs without an error, so only rationals or our random numbers make it fail.
    """
    in_floats = pair.to_float(), process.to_float()
    try:
        if runs_a_sampler(verifier):
            problem = resolve(verifier, *in_floats)
            drafted = sampled_drafts(problem)
            for seed in range(SAMPLER_RUNS):
                outcome_or_run(problem.verifier, *drafted, np.random.default_rng(seed))
        else:
            output_law(verifier, *in_floats)
    except InvalidOutcomeError as error:
        if runs_a_sampler(verifier) or not isinstance(error, NotJudgedError):
            return error
    where = "on floats: compute with the entries that it is given, or set its attribute exact = False"
    if runs_a_sampler(verifier):
        where = "with random numbers of numpy: of the numbers that it is given, use comparisons, *, + and -"
    raise NotJudgedError(f"{raised}; this is not counted as a defect, since it runs {where}") from raised


def failed_certificate(
    problem: Problem,
    error: InvalidInputError,
    arithmetic: str,
    drafted: Sequence[Any],
    tolerance: float = 1e-9,
) -> Certificate:
    """Build the certificate of a verifier that raised an error.

    Args:
        problem: the bound verifier, with the pair and the process.
        error: the error on the pair.
        arithmetic: name of the arithmetic.
        drafted: tuples of drafts in this arithmetic.  The certificate names the first on which the verifier
            fails.
        tolerance: tolerance of the arithmetic.
    """
    alone = first_failure(problem.verifier, drafted, tolerance)
    if alone is None:
        failure = Failure(str(error), None)
    else:
        failure = Failure(str(alone[1]), tuple(names_of(problem.pair, path) for path in alone[0]))
    return Certificate(**_setting(problem, arithmetic, "none"), failure=failure)


def _setting(problem: Problem, arithmetic: str, tolerance: str, refused: tuple[str, ...] = ()) -> Any:
    """Build the fields that every certificate has."""
    verifier, pair, process = problem
    shape = pair.vocab_size, pair.draft_length, process.num_drafts
    return {
        "verifier": verifier.name,
        "source": verifier.source,
        "vocab": pair.vocab,
        "draft_length": pair.draft_length,
        "num_drafts": process.num_drafts,
        "draft_process": process.name,
        "arithmetic": arithmetic,
        "machine_proof": machine_proofs(verifier).get(process.name),
        "scope": Scope(arithmetic, tolerance, (shape,), (drafts_in_words(process),), refused),
    }


SAMPLER_RUNS = 20
"""Number of runs of a sampler that raised: a branch of probability 1/4 is missed once in 300."""


def certify(
    verifier: str | Any,
    pair: ModelPair,
    drafts: int | DraftProcess = 1,
    *,
    tolerance: float = 1e-9,
    with_optimum: bool = True,
    max_tuples: int = DEFAULT_MAX_TUPLES,
    progress: Callable[[int, int], None] | None = None,
) -> Certificate:
    """Certify a verifier on an enumerated pair.

    A user's verifier that raises on drafts, or whose answer is not a law, is not lossless.  An error on
    rationals counts only if it also raises on floats.

    Args:
        verifier: a name, or any object with ``outcome(paths, target_rows, draft_rows)``.
        pair: the models; exact pairs give exact certificates.
        drafts: K, for paths drafted i.i.d., or another draft process.
        tolerance: in float64, the largest total variation and antichain excess that count as zero, and the
            largest relative error of a path's probability.
        with_optimum: also compute the optimum over all valid verifiers.
        max_tuples: largest number of tuples of drafted paths to enumerate.
        progress: called with (enumerated tuples, all tuples).

    Raises:
        EnumerationTooLargeError: the law itself is too large to enumerate.
        NotJudgedError: user code fails before it gets drafts, or only on rationals.

    Example:
        >>> from spectheory import instances
        >>> certificate = certify("token", instances.two_token(2))
        >>> print(certificate.block_efficiency, certificate.optimum, certificate.total_variation)
        19/9 20/9 0
    """
    process, verifier = draft_process(drafts), find_verifier(verifier)
    row_defect, pair = check_pair(pair).row_defect, pair.normalised()
    try:
        law = output_law(
            verifier, pair, process, max_tuples=max_tuples, tolerance=tolerance, progress=progress
        )
    except InvalidOutcomeError as error:
        if isinstance(error, NotJudgedError) or not isinstance(verifier, UserVerifier):
            raise
        return _failed(verifier, pair, process, error)
    best, note = _optimum(pair, process) if with_optimum else (None, "not asked for")
    return certificate_of(law, tolerance, best=best, note=note, row_defect=row_defect)


def certificate_of(
    law: OutputLaw,
    tolerance: float,
    epsilon: float = FLOAT64,
    arithmetic: str | None = None,
    best: Optimum | None = None,
    note: str = "not asked for",
    row_defect: float = 0.0,
) -> Certificate:
    """Build the certificate of an output law.

    Args:
        law: the output law.
        tolerance: as in ``certify``.
        epsilon: distance from 1 to the next float of the arithmetic; not used in exact arithmetic.
        arithmetic: name of the arithmetic; by default the one of ``law.pair``.
        best, note: the optimum, and how it was computed.
        row_defect: ``row_defect`` of the pair before its rows were divided by their sums.
    """
    pair, verifier = law.pair, law.verifier
    slack = float_tolerance(pair, tolerance)

    @cache
    def worst(depth: int) -> tuple[Context, Any, Any] | None:
        """Find the prefix with the largest error at this depth, or None.

        Returns (prefix, its probability, its target probability).
        """
        if law.is_exactly_right:
            return None
        excess = law.excess(depth, tolerance, epsilon)
        number = int(np.argmax(excess))
        if not excess[number] > 0:
            return None
        wanted = pair.target_path_probs(depth)[number]
        return pair.context(depth, number), law.prefix_law(depth)[number], wanted

    is_defined = law.undefined <= (ROUNDING * epsilon if slack else 0)  # for the target it is 0
    target_matching = law.total_variation <= slack and is_defined and worst(pair.draft_length + 1) is None
    excess = law.largest_excess
    is_violated = excess is not None and bool(excess[0] > slack)
    refused = (LATER_CALLS,) if target_matching and verifier.modified_target_rows is not None else ()
    refused = (*refused, law.refused) if law.refused else refused
    problem = Problem(verifier, pair, law.process)
    return Certificate(
        **_setting(problem, arithmetic or pair.arithmetic, tolerance_text(slack, epsilon), refused),
        block_efficiency=law.block_efficiency,
        target_matching=bool(target_matching),
        total_variation=law.total_variation,
        undefined=law.undefined,
        prefix_matching=None if excess is None or (is_violated and not target_matching) else not is_violated,
        first_token_law=tuple(law.prefix_law(1)),
        counterexample=smallest_counterexample(law, worst),
        best=best,
        optimum_note=note,
        row_defect=row_defect,
        law=law,
        draft_defect=_draft_defect(law),
    )


def _draft_defect(law: OutputLaw) -> DraftDefect | None:
    """Compute the draft defect of a process that may change drafts; ``None`` if there is none to compute."""
    if not isinstance(law.process, AdaptiveDrafts):
        return None
    try:
        return draft_defect(law.process, law.pair)
    except InvalidInputError:
        return None  # too many tuples, or rows that are no function of the text: the law is judged alone


LATER_CALLS = "later calls: modified_target_rows changes their target"
"""Part of a scope: the law is computed for one call on the given rows."""


def tolerance_text(tolerance: float, epsilon: float) -> str:
    """Describe the largest difference at which two probabilities of a path count as equal.

    Example:
        >>> print(tolerance_text(1e-9, FLOAT64))
        within 1e-09 p(a) + 1.4e-14 on every path a
    """
    return f"within {tolerance:g} p(a) + {ROUNDING * epsilon:.2g} on every path a" if tolerance else "none"


def drafts_in_words(process: DraftProcess) -> str:
    """Describe the number of drafts, and the process if it is not i.i.d.

    Example:
        >>> from spectheory.pairs.drafts import Iid, PrefixTree
        >>> drafts_in_words(Iid(1)), drafts_in_words(PrefixTree((2, 1)))
        ('1 draft', '2 drafts (prefix_tree 2,1)')
    """
    drafts = count_text(process.num_drafts, "draft")
    return drafts if process.name == "iid" else f"{drafts} ({process.text.replace(':', ' ')})"


def _optimum(pair: ModelPair, process: DraftProcess) -> tuple[Optimum | None, str]:
    try:
        best = optimum(pair, drafts=process)
    except EnumerationTooLargeError as error:
        return None, str(error)
    beyond_exact = pair.is_exact and best.is_interval
    return best, ("too large for the exact program; " if beyond_exact else "") + best.method
