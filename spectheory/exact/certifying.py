"""Certify a verifier on one pair: its output law, whether it is lossless, and its gap to the optimum."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from spectheory.exact.certificate import Certificate
from spectheory.exact.counterexample import Failure, names_of, smallest_counterexample
from spectheory.exact.law import DEFAULT_MAX_TUPLES, FLOAT64, OutputLaw, output_law
from spectheory.foundation.documents import count_text
from spectheory.foundation.errors import (
    EnumerationTooLargeError,
    InvalidInputError,
    InvalidOutcomeError,
    NotJudgedError,
)
from spectheory.foundation.exact_numbers import float_tolerance
from spectheory.foundation.scope import Scope
from spectheory.optima.pair_optimum import optimum
from spectheory.optima.solving.solution import Optimum
from spectheory.pairs.contexts import Context
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.drafts.defect import DraftDefect, draft_defect
from spectheory.pairs.drafts.iid import draft_process
from spectheory.pairs.drafts.kept import AdaptiveDrafts
from spectheory.pairs.pair import ModelPair, check_pair
from spectheory.verification.machine_proofs import machine_proofs
from spectheory.verification.resolve import Problem, find_verifier, resolve
from spectheory.verification.sampler_runs import outcome_or_run, runs_a_sampler
from spectheory.verification.user import UserVerifier
from spectheory.verification.user_checks import ROUNDING, first_failure, sampled_drafts

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
