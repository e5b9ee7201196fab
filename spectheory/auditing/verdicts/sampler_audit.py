"""The audit of a shipped sampler: its exact law on a battery of pairs, and a verdict on its code."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from spectheory.auditing.rounds.batches import audit_batches
from spectheory.auditing.rounds.battery import audit_pairs
from spectheory.auditing.rounds.two_calls import call_twice, pairs_of_calls
from spectheory.auditing.subjects.libraries import load_subject
from spectheory.auditing.subjects.shipped import HIDDEN, Shipped
from spectheory.auditing.tape.atoms import PROBES
from spectheory.auditing.tape.decisions import HiddenRandomnessError, NotEnumerableError
from spectheory.auditing.verdicts.audit_certificate import (
    ARITHMETIC,
    BOUNDARY,
    DEFECT,
    EXACT,
    NOT_DECIDED,
    RELAXATION,
    AuditCase,
    AuditCertificate,
)
from spectheory.auditing.verdicts.chi_squared import samples_needed, total_variation
from spectheory.certificate import Certificate, certify
from spectheory.documents import number_text
from spectheory.errors import EnumerationTooLargeError, InvalidInputError, InvalidPairError
from spectheory.law import OutputLaw, output_law
from spectheory.pair import ModelPair

PRECISION = Fraction(1, 2**24)
"""Half the distance of neighbouring floats of 32 bits just below 1, and the step of ``torch.rand``."""
MAX_RUNS_FOUND_AGAIN = 1_000
"""The first wrong law is computed twice unless it has more runs: then enough runs were made twice."""
MAX_LEAVES = 16
"""The optimum, as a second proof, is computed on pairs of at most 16 drafted paths."""


def audit(
    sampler: str | Callable[..., Any] | Shipped,
    pairs: Mapping[str, ModelPair] | None = None,
    *,
    signature: str = "sampler",
    mixes: Sequence[str] = (),
    stop_at_first: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> AuditCertificate:
    """Compute the exact law of a shipped sampler on every pair, and judge it.

    Args:
        sampler: a function in torch, unmodified; the name of a library's sampler, such as "transformers";
            or a ``Shipped`` sampler with more settings.
        pairs: name -> exact pair; by default ``audit_pairs()``.
        signature: how a function is called: a name of ``SIGNATURES``.
        mixes: the kinds of batches of a function with the signature "batch".
        stop_at_first: whether to stop at the first pair that shows a defect.
        progress: called with (pairs done, number of pairs).

    Raises:
        InvalidInputError: a pair is not exact.
        InvalidOutcomeError: the sampler fails, or returns something other than tokens.
        UnknownNameError: no library's sampler, or no signature, has this name.

    Example:
        >>> import torch
        >>> from spectheory import instances
        >>> def first_draft(paths, target_rows, draft_rows, generator):
        ...     '''Takes the drafted token and draws the next token from the target.'''
        ...     return [int(paths[0, 0]), int(torch.multinomial(target_rows[0, 1], 1, generator=generator))]
        >>> print(audit(first_draft, {"thirds": instances.two_token(1)}))
        <first_draft: defect: its law is not the target's on thirds, total variation 1/3>
    """
    if isinstance(sampler, str):
        sampler = load_subject(sampler)
    elif not isinstance(sampler, Shipped):
        sampler = Shipped(sampler, signature, mixes=mixes)
    given = audit_pairs() if pairs is None else pairs
    for name, pair in given.items():
        if not pair.is_exact:
            raise InvalidInputError(
                f'an audit is exact and takes exact pairs; write the rows of {name!r} as texts, such as "1/3"'
            )
    cases: list[AuditCase] = []
    refused: list[InvalidInputError] = []
    is_found = False
    for pair in pairs_of_calls(given.values()):
        try:
            call_twice(*sampler.prepared(pair))
        except HiddenRandomnessError as error:
            refused.append(error)
    for number, (name, pair) in enumerate(given.items()):
        if progress is not None:
            progress(number, len(given))
        try:
            asked, prepared = sampler.prepared(pair)
            runs = -sampler.journal.runs
            cases.append(_case(name, asked, prepared))
            runs += sampler.journal.runs
            if [case.pair for case in cases if case.is_wrong] == [name] and runs <= MAX_RUNS_FOUND_AGAIN:
                _check_law_again(asked, prepared)
        except (NotEnumerableError, EnumerationTooLargeError) as error:
            refused.append(error)
        is_found = stop_at_first and _verdict(sampler, cases, refused)[0] == DEFECT
        if is_found:
            break
    batches: tuple[str, ...] = ()
    if sampler.signature_name == "batch" and not is_found:
        try:
            batches = audit_batches(sampler)
        except (NotEnumerableError, EnumerationTooLargeError) as error:
            refused.append(error)
    if progress is not None:
        progress(len(given), len(given))
    return _certificate(sampler, given, cases, refused, batches)


def _certificate(
    sampler: Shipped,
    pairs: Mapping[str, ModelPair],
    cases: list[AuditCase],
    refused: list[InvalidInputError],
    batches: tuple[str, ...],
) -> AuditCertificate:
    journal, relaxation = sampler.journal, sampler.relaxation
    verdict, reasons = _verdict(sampler, cases, refused)
    wrong = [case for case in cases if case.is_wrong]
    has_own_law = relaxation is not None and relaxation.verifier is not None
    is_shown = verdict == DEFECT and wrong and not has_own_law
    return AuditCertificate(
        sampler=sampler.name,
        signature=sampler.signature_name,
        verdict=verdict,
        reasons=tuple(reasons),
        cases=tuple(cases),
        counterexample=_shrunk(sampler, pairs[wrong[0].pair]) if is_shown else None,
        relaxation="" if relaxation is None else relaxation.words,
        provenance=sampler.provenance,
        primitives=tuple(sorted(journal.primitives)),
        findings=tuple(sorted(journal.findings | _boundary(cases))),
        batches=batches,
        stand_ins=sampler.stand_ins,
        seeds=sampler.seeds,
        probes=(
            f"inside of every cell of a comparison, at {' and '.join(map(str, PROBES))} of it",
            f"{journal.repeated} of {journal.runs} runs were made twice, with the same numbers",
            f"{journal.pairs_of_calls} runs of two calls in a row",
        ),
        note=sampler.note,
    )


def _case(name: str, sampler: Shipped, pair: ModelPair) -> AuditCase:
    law, undecided = _law(sampler, pair)
    stated = _stated_law(sampler, pair)
    found, wanted = _compared(sampler, law, stated)
    case = AuditCase(
        pair=name,
        draft_length=pair.draft_length,
        total_variation=total_variation(found, wanted, law.undefined),
        undecided=undecided,
        bound=rounding_bound(pair),
        forbidden=law.completed_law[_allowed(pair, stated) == 0].sum() + Fraction(0),
        undefined=law.undefined,
        block_efficiency=law.block_efficiency,
        optimum=None,
        samples=samples_needed(found, wanted, law.undefined),
    )
    if not case.is_wrong or pair.vocab_size**pair.draft_length > MAX_LEAVES or sampler.relaxation is not None:
        return case
    best = certify("token", pair).optimum
    return replace(case, optimum=best) if isinstance(best, Fraction) else case


def _check_law_again(sampler: Shipped, pair: ModelPair) -> None:
    """Check that all runs give the same law a second time.

    Raises:
        HiddenRandomnessError: they do not, so the first law is not the sampler's.
    """
    law, _ = _law(sampler, pair)
    sampler.forget()
    again, _ = _law(sampler, pair)
    if not all(np.array_equal(*levels) for levels in zip(law.masses, again.masses, strict=True)):
        raise HiddenRandomnessError(f"{HIDDEN}: followed twice, it has two laws")


def _stated_law(sampler: Shipped, pair: ModelPair) -> OutputLaw | None:
    """The law of the verifier that a relaxation states."""
    verifier = None if sampler.relaxation is None else sampler.relaxation.verifier
    return None if verifier is None else output_law(verifier, pair)


def _compared(sampler: Shipped, law: OutputLaw, stated: OutputLaw | None) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities that are compared: those found, those wanted.

    They are those of completed outputs and of the target.  Where the law of a verifier is stated, they are
    those of outputs as they are, with or without the correction token.
    """
    if stated is None or sampler.relaxation is None:
        return law.completed_law, law.pair.target_path_probs(law.pair.draft_length + 1)
    masses = [law.masses, stated.masses]
    if not sampler.relaxation.is_about_tokens:
        size = law.pair.vocab_size
        masses = [tuple(mass.reshape(-1, size).sum(1) for mass in levels) for levels in masses]
    found, wanted = map(np.concatenate, masses)
    return found, wanted


def _allowed(pair: ModelPair, stated: OutputLaw | None) -> np.ndarray:
    """The wanted law of completed outputs: outputs of probability 0 are forbidden."""
    return pair.target_path_probs(pair.draft_length + 1) if stated is None else stated.completed_law


def _law(sampler: Shipped, pair: ModelPair) -> tuple[OutputLaw, Fraction]:
    """The law, and a bound on its error."""
    sampler.undecided = Fraction(0)
    return output_law(sampler, pair), sampler.undecided


def rounding_bound(pair: ModelPair) -> Fraction:
    """The largest total variation that rounding to float32 can cause: 4 (L+1) (Λ + V + 8) 2^-24.

    Λ is the largest |log| of a positive probability: a logit x has an error of |x| 2^-24, which is the
    relative error of its exponential.  V + 8 roundings give a row from exponentials, a ratio and a residual,
    of both models, including the step of the coin.

    Example:
        >>> from spectheory import instances
        >>> print(rounding_bound(instances.two_token(1)) < Fraction(1, 10**5))
        True
    """
    smallest = min(value for level in (*pair.target, *pair.draft) for value in level.flat if value)
    logarithm = math.ceil(-math.log(smallest))
    return 4 * (pair.draft_length + 1) * (logarithm + pair.vocab_size + 8) * PRECISION


def _verdict(
    sampler: Shipped, cases: list[AuditCase], refused: list[InvalidInputError]
) -> tuple[str, list[str]]:
    hidden = [error for error in refused if isinstance(error, HiddenRandomnessError)]
    if hidden:  # no law that was found is known to be the sampler's
        return NOT_DECIDED, [str(hidden[0])]
    wrong = [case for case in cases if case.is_wrong]
    reasons = []
    if wrong:
        first = wrong[0]
        whose = "the one it states" if sampler.relaxation else "the target's"
        distance = number_text(first.total_variation, decimal=False)
        if first.undecided:
            distance = f"at least {float(first.total_variation - first.undecided):.4g}"
        reasons.append(f"its law is not {whose} on {first.pair}, total variation {distance}")
    above = [case for case in wrong if case.is_above_the_optimum]
    if above:
        case = above[0]
        earned = f"{float(case.block_efficiency):.6g}"
        if case.undecided:
            earned = f"at least {float(case.block_efficiency - case.draft_length * case.undecided):.4g}"
        reasons.append(
            f"it earns {earned} tokens per call on {case.pair}, and no "
            f"lossless verifier earns more than {number_text(case.optimum, decimal=False)}"
        )
    undefined = max((case for case in cases if case.undefined), key=lambda case: case.undefined, default=None)
    if undefined is not None:
        reasons.append(
            "it ends without an output with probability "
            f"{number_text(undefined.undefined, decimal=False)} on {undefined.pair}: "
            f"{min(sampler.journal.undefined)}"
        )
    reasons += [f"{kind}: {text}" for kind, text in sorted(sampler.journal.findings)]
    if reasons:
        return DEFECT, reasons
    if refused:
        return NOT_DECIDED, [str(refused[0])]
    unknown = [case for case in cases if case.is_open]
    if unknown:
        case = unknown[0]
        return NOT_DECIDED, [
            f"random numbers are combined, and the total variation on {case.pair} is known to "
            f"{float(case.undecided):.3g} only"
        ]
    if sampler.relaxation is not None:
        return RELAXATION, []
    return (ARITHMETIC if any(case.total_variation for case in cases) else EXACT), []


def _boundary(cases: list[AuditCase]) -> set[tuple[str, str]]:
    """Findings on forbidden tokens, for example from a coin of exactly 0 that is at most a ratio of 0.

    They are reported beside the verdict, which counts their probability in the total variation.
    """
    made = [case for case in cases if case.makes_forbidden_tokens]
    if not made:
        return set()
    worst = max(made, key=lambda case: case.forbidden)
    prob = number_text(worst.forbidden, decimal=False)
    return {(BOUNDARY, f"a forbidden token is made with probability {prob} on {worst.pair}")}


def _shrunk(sampler: Shipped, pair: ModelPair) -> Certificate | None:
    """The certificate on the smallest pair that still shows the defect: shorter paths, then fewer tokens.

    ``None`` where boxes are undecided there, because the law is then not known exactly.
    """
    for smaller in _smaller(pair):
        try:
            asked, prepared = sampler.prepared(smaller)
            law, undecided = _law(asked, prepared)
        except InvalidInputError:  # the sampler does not take the pair
            continue
        distance = total_variation(*_compared(asked, law, _stated_law(asked, prepared)), law.undefined)
        if distance - undecided > rounding_bound(prepared):
            return _shrunk(sampler, smaller)
    asked, prepared = sampler.prepared(pair)
    if _law(asked, prepared)[1]:
        return None
    return certify(asked, prepared, with_optimum=False)


def _smaller(pair: ModelPair) -> Iterator[ModelPair]:
    if pair.draft_length > 1:
        yield pair.truncate(pair.draft_length - 1)
    if pair.vocab_size > 2:
        for left_out in range(pair.vocab_size):
            try:
                yield pair.restrict([token for token in range(pair.vocab_size) if token != left_out])
            except InvalidPairError:  # a row has no mass on the others
                continue
