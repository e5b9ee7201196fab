"""The findings on one pair, in each of the three ways: follow the sampler, probe it, or draw."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from spectheory.auditing.drawing.draw import Drawn
from spectheory.auditing.probing.claim import Probed
from spectheory.auditing.rounds.questions import followed_law
from spectheory.auditing.rounds.rounding import rounding_bound
from spectheory.auditing.subjects.asked import Question
from spectheory.auditing.subjects.model_loops import ModelLoop
from spectheory.auditing.subjects.runs import HIDDEN, OTHER_SEED
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.tape.decisions import HiddenRandomnessError
from spectheory.exact.certificate import Certificate
from spectheory.exact.certifying import certify
from spectheory.exact.counterexample import Counterexample, smallest_counterexample
from spectheory.exact.law import OutputLaw, output_law
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.foundation.results import no_verdict
from spectheory.optima.pair_optimum import optimum
from spectheory.pairs.contexts import Context

FOLLOWED, PROBED, DRAWN = "followed", "probed", "drawn"
"""The three ways.  Each takes over where the one before it cannot go on."""
RISK = 1e-6
"""The probability that a verdict on the basis *probed* or *drawn* is wrong by more than it says."""
LEARNED, MOST_PARTS = ("total_variation", "forbidden", "undefined", "block_efficiency"), 10**5
"""Numbers of learned laws are rounded to so many parts, which changes them by less than 10^-10."""
MAX_LEAVES = 16
"""The optimum, as a second proof, is computed on pairs of at most 16 drafted paths."""
MAX_RUNS_FOUND_AGAIN = 1_000
"""The first wrong law is computed twice unless it has more runs: then enough runs were made twice."""
MAX_SEEDS = 16
"""The most seeds that it is followed with again: fair coins agree for all of them with probability 2^-16."""
MAX_RUNS_OF_SEEDS = 100
"""The most runs of all these seeds: of numbers that are made of a seed few runs can be followed."""


@dataclass(frozen=True)
class AuditCase:
    """The findings on one pair.

    Attributes:
        pair, vocab_size, draft_length, num_drafts: its name, V, L and K.
        process: how the paths are drafted, in words.
        total_variation: of the completed output from the target (or from the stated law of a relaxation).
        undecided: a bound on the error of the total variation, if random numbers are multiplied or the law
            was learned from calls.  For draws, the total variation that they would have detected.
        bound: the largest total variation that rounding to float32 can cause.
        forbidden: the probability of outputs that have probability 0 under the target (or the stated law).
        undefined: the probability of ending without output.  For draws, the share of draws without output.
        block_efficiency: tokens per target call.
        optimum: the largest block efficiency of a lossless verifier.  ``None`` if several paths are drafted,
            if the pair is large, or for a relaxation.
        basis: followed, probed or drawn.
        calls: the number of calls of the sampler, if it was probed or drawn.
        is_rejected: True if draws have shown that the law is wrong.
        because: what the draws have shown.
        without_output: why a run ended without output, if one did.
    """

    pair: str
    vocab_size: int
    draft_length: int
    num_drafts: int
    process: str
    total_variation: Fraction
    undecided: Fraction = Fraction(0)
    bound: Fraction = Fraction(0)
    forbidden: Fraction = Fraction(0)
    undefined: Fraction = Fraction(0)
    block_efficiency: Fraction = Fraction(1)
    optimum: Fraction | None = None
    basis: str = FOLLOWED
    calls: int = 0
    is_rejected: bool = False
    because: str = ""
    without_output: str = ""

    def __bool__(self) -> bool:
        raise no_verdict(self, ".is_wrong and .is_open, or the certificate")

    @property
    def gap(self) -> Fraction | None:
        """Optimum minus block efficiency, in tokens per target call.  ``None`` without an optimum."""
        return None if self.optimum is None else self.optimum - self.block_efficiency

    @property
    def where(self) -> str:
        """The name of the pair.  With several paths, also how they are drafted."""
        return self.pair if self.num_drafts == 1 else f"{self.pair} with {self.process}"

    @property
    def is_wrong(self) -> bool:
        """Whether the law differs from the wanted law by more than rounding can cause."""
        if self.basis == DRAWN:
            return self.is_rejected
        return self.total_variation - self.undecided > self.bound

    @property
    def is_open(self) -> bool:
        """Whether we do not know the law well enough to decide.  Draws never show that a law is right."""
        if self.is_wrong or self.basis == DRAWN:
            return not self.is_wrong
        # A law that was learned is right, or wrong by more than rounding, which fewer mistakes could explain.
        error = 0 if self.basis == PROBED else self.undecided
        return self.total_variation + error > self.bound

    @property
    def makes_forbidden_tokens(self) -> bool:
        """Whether an output of probability 0 under the target has a positive probability."""
        return self.forbidden > self.undecided

    @property
    def is_above_the_optimum(self) -> bool:
        """Whether the block efficiency exceeds the optimum.  This proves a defect without comparing laws.

        A call has 1 to L+1 tokens, so a misplaced probability d changes the mean by at most L d.  The block
        efficiency must exceed the optimum by more than this margin.
        """
        margin = self.draft_length * (self.bound + self.undecided)
        return self.optimum is not None and self.block_efficiency - margin > self.optimum


def followed_case(sampler: Shipped, question: Question) -> AuditCase:
    """Compare the law of a sampler with the wanted law.

    Args:
        sampler: the sampler, whose law we follow, or one that has learned the law.
        question: the question, as ``Shipped.prepared`` makes it.

    Raises:
        NotEnumerableError: we cannot follow the sampler.
    """
    pair, (law, undecided) = question.pair, followed_law(sampler, question)
    stated = None
    if sampler.relaxation is not None and sampler.relaxation.verifier is not None:
        stated = output_law(sampler.relaxation.verifier, pair, question.process)
    found, wanted = _compared(sampler, law, stated)
    allowed = pair.target_path_probs(pair.draft_length + 1) if stated is None else stated.completed_law
    case = AuditCase(
        **_shape(question),
        total_variation=(abs(found - wanted).sum() + law.undefined) / 2,
        undecided=undecided,
        bound=rounding_bound(pair),
        forbidden=law.completed_law[allowed == 0].sum() + Fraction(0),
        undefined=law.undefined,
        block_efficiency=Fraction(law.block_efficiency),
        optimum=None,
    )
    is_large = pair.vocab_size**pair.draft_length > MAX_LEAVES
    is_loop = isinstance(sampler, ModelLoop)  # whose drafts we do not see
    if is_large or is_loop or question.num_drafts > 1 or sampler.relaxation is not None:
        return case
    best = optimum(pair).value
    return replace(case, optimum=best) if isinstance(best, Fraction) else case


def probed_case(sampler: Shipped, question: Question, probed: Probed[Any]) -> AuditCase:
    """As ``followed_case``, for a sampler whose law on the question was learned.

    A run without output may be rarer than rounding.  Then it is the end of a grid, at which code divides by
    0, and we do not count it.
    """
    case = followed_case(sampler, question)
    if case.undefined <= case.bound:
        case = replace(case, undefined=Fraction(0))
    return replace(
        case,
        **{name: getattr(case, name).limit_denominator(MOST_PARTS) for name in LEARNED},
        undecided=Fraction(probed.within).limit_denominator(MOST_PARTS),
        basis=PROBED,
        calls=probed.learned + probed.points,
    )


def drawn_case(question: Question, drawn: Drawn, tokens: float) -> AuditCase:
    """Report a test by draws.  ``tokens`` is the mean number of tokens of an answer."""
    stake = f"10^{drawn.log10_stake:.1f}" if drawn.log10_stake < math.inf else "any bound"
    numbers = drawn.distance, drawn.seen, drawn.undefined, tokens
    distance, seen, undefined, earned = (Fraction(n).limit_denominator(MOST_PARTS) for n in numbers)
    return AuditCase(
        **_shape(question),
        total_variation=distance,
        undecided=seen,
        bound=rounding_bound(question.pair),
        forbidden=Fraction(0),
        undefined=undefined,
        block_efficiency=earned,
        optimum=None,
        basis=DRAWN,
        calls=drawn.draws,
        is_rejected=drawn.rejected,
        because=f"{drawn.draws} draws, against which a bet grew beyond {stake}",
    )


def prepared(sampler: Shipped, question: Question) -> tuple[Shipped, Question]:
    """Return the sampler, and the question with the pair on which we judge the sampler."""
    asked, pair = sampler.prepared(question.pair)
    return asked, question._replace(pair=pair)


def _shape(question: Question) -> Mapping[str, Any]:
    """What every case says of its question."""
    return {
        "pair": question.name,
        "vocab_size": question.pair.vocab_size,
        "draft_length": question.pair.draft_length,
        "num_drafts": question.num_drafts,
        "process": question.words,
    }


def _compared(sampler: Shipped, law: OutputLaw, stated: OutputLaw | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the two arrays of probabilities that we compare: found and wanted.

    They are the law of completed outputs and the target.  If the sampler states the law of a verifier, they
    are the laws of outputs that are not completed, with or without the correction token.
    """
    if stated is None or sampler.relaxation is None:
        return law.completed_law, law.pair.target_path_probs(law.pair.draft_length + 1)
    masses = [law.masses, stated.masses]
    if not sampler.relaxation.is_about_tokens:
        size = law.pair.vocab_size
        masses = [tuple(mass.reshape(-1, size).sum(1) for mass in levels) for levels in masses]
    found, wanted = map(np.concatenate, masses)
    return found, wanted


def check_law_again(sampler: Shipped, question: Question, runs: int) -> None:
    """Check that all runs give the same law a second time, and with as many other seeds as time allows.

    Numbers that another library computes from a seed may lead to the same law for one other seed by chance.
    """
    if runs > MAX_RUNS_FOUND_AGAIN:
        return
    law, _ = followed_law(sampler, question)
    try:
        for number in range(1 + max(1, min(MAX_SEEDS, MAX_RUNS_OF_SEEDS // max(runs, 1)))):
            sampler.seed = number * OTHER_SEED
            sampler.forget()
            again, _ = followed_law(sampler, question)
            if not all(np.array_equal(*levels) for levels in zip(law.masses, again.masses, strict=True)):
                raise HiddenRandomnessError(f"{HIDDEN}: followed twice, it has two laws")
    finally:
        sampler.seed = 0


def certify_again(sampler: Shipped, question: Question) -> Certificate | None:
    """Certify the sampler on the pair of a question.

    Return ``None`` if boxes are undecided, because we then do not know the law exactly.  Return ``None`` also
    if a run without a valid output cannot be distinguished from a stop.
    """
    if followed_law(sampler, question)[1]:
        return None
    try:
        found = certify(sampler, question.pair, drafts=question.process, with_optimum=False)
    except InvalidOutcomeError:
        return None
    found = replace(found, counterexample=_beyond_rounding(found) or found.counterexample)
    if isinstance(sampler, ModelLoop) and found.counterexample is not None:  # whose drafts we do not see
        blameless = replace(found.counterexample, drafts=(), given_drafts=None, stops=())
        found = replace(found, counterexample=blameless)
    return found if found.failure is None else None


def _beyond_rounding(found: Certificate) -> Counterexample | None:
    """The smallest counterexample by more than rounding, which a certificate does not know."""
    law = found.law
    if law is None:
        return None

    def worst(depth: int) -> tuple[Context, Any, Any] | None:
        wanted, has = law.pair.target_path_probs(depth), law.prefix_law(depth)
        number = int(np.argmax(has - wanted))
        if has[number] - wanted[number] <= rounding_bound(law.pair):
            return None
        return law.pair.context(depth, number), has[number], wanted[number]

    return smallest_counterexample(law, worst)
