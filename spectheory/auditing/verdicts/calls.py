"""Judge a sampler that we cannot follow, by calling it: probe it, or draw if probing fails."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from spectheory.auditing.handing.numbers import NotHandedError
from spectheory.auditing.probing.claim import Probed, points_needed
from spectheory.auditing.probing.learning import BudgetSpentError
from spectheory.auditing.rounds.by_calls import asked_of, draw_question, learn_question
from spectheory.auditing.rounds.questions import Question
from spectheory.auditing.rounds.rounding import rounding_bound
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.verdicts.audit_certificate import DRAWN, AuditCase
from spectheory.verification.user import users_line

MISSED = 1.001
"""A bound more than this factor above the requested bound has missed it.  A smaller excess is rounding."""


class Found(NamedTuple):
    """Result of calls on a question: a learned law, or a case judged by draws."""

    probed: Probed[Any] | None = None
    drawn: AuditCase | None = None

    @property
    def fails(self) -> bool:
        """True if the sampler was probed and no call has a valid output."""
        return self.probed is not None and not any(any(law) for law in self.probed.laws)


@dataclass
class Calls:
    """Judges questions one after the other, by calls.

    Attributes:
        sampler: the sampler, whose journal receives findings.
        within: the largest allowed error of a learned law, as a total variation.
        risk: the probability that the result on a question is wrong.
        ways: the reasons why we drew and did not probe, in sentences.
    """

    sampler: Shipped
    within: float
    risk: float
    ways: list[str] = field(default_factory=list)
    _most_tuples: float = math.inf

    def ask(self, question: Question) -> Found:
        """Probe the sampler on a question, or draw.

        Raises:
            NotEnumerableError: the sampler asks a stand-in for something that the stand-in lacks.
        """
        tuples = question.process.count_tuples(question.pair)
        if tuples < self._most_tuples:
            try:
                probed = learn_question(self.sampler, question, self.within, self.risk)
            except NotHandedError as error:
                self._most_tuples = 0
                self.ways.append(f"not probed: {error}{users_line(error)}")
            except BudgetSpentError as error:
                self._most_tuples = tuples
                self.ways.append(f"not probed: {error} on {question.name}")
            else:
                if probed.within <= self.within * MISSED:
                    return Found(probed)
                self.ways.append(
                    f"not probed: {probed.mismatches} of {probed.points} calls on {question.name} have "
                    "another answer than was learned"
                )
        return Found(drawn=self._drawn(question))

    def _drawn(self, question: Question) -> AuditCase:
        pair = asked_of(self.sampler, question)[1].pair
        draws = points_needed(self.within, self.risk)  # as many calls as probing takes
        found, tokens = draw_question(self.sampler, question, draws, self.risk)
        if found.undefined:
            why = f"; it makes no valid output: {min(self.sampler.reasons, default='it returns no tokens')}"
        else:
            why = ""
        stake = f"10^{found.log10_stake:.1f}" if found.log10_stake < math.inf else "any bound"
        return AuditCase(
            pair=question.name,
            vocab_size=pair.vocab_size,
            draft_length=pair.draft_length,
            num_drafts=question.num_drafts,
            process=question.words,
            total_variation=Fraction(found.distance).limit_denominator(10**6),
            undecided=Fraction(found.seen).limit_denominator(10**6),
            bound=rounding_bound(pair),
            forbidden=Fraction(0),
            undefined=Fraction(0),
            block_efficiency=Fraction(tokens).limit_denominator(10**6),
            optimum=None,
            samples=None,
            basis=DRAWN,
            calls=found.draws,
            is_rejected=found.rejected,
            because=f"{found.draws} draws, against which a bet grew beyond {stake}{why}",
        )
