"""Draft generators: the law of the drafted tokens must be the rows that are reported for them.

A verifier is lossless for the rows that it is given.  A generator that reports other rows than it draws from
makes a lossless verifier wrong, and no test of the verifier alone can show it.
"""

import copy
from collections.abc import Callable

import numpy as np
import torch

from spectheory.auditing.following.intercept import Journal, intercepted
from spectheory.auditing.subjects.drafting_rounds import Reported, laws_of_drafts
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.tape.decisions import Tape, all_runs
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.foundation.exact_numbers import exact_number
from spectheory.pairs.pair import ModelPair

Generator = Callable[[], tuple[list[int], torch.Tensor]]
"""() -> the L drafted tokens and the logits reported for them, [L, V]."""


class Drafted(Shipped):
    """A shipped sampler together with the shipped generator of its drafts.

    The sampler is judged on pairs whose draft is the measured law, and is given the reported rows.

    Args:
        sampler: the verifying half.
        generator_of: makes the generator from the draft model of a pair.
    """

    def __init__(self, sampler: Shipped, generator_of: Callable[[ModelPair], Generator]) -> None:
        super().__init__(
            sampler.sampler,
            sampler.signature_name,
            sampler.name,
            provenance=sampler.provenance,
            stand_ins=sampler.stand_ins,
        )
        self.note, self.is_of_another_file = sampler.note, sampler.is_of_another_file
        self.is_of_a_library = sampler.is_of_a_library
        self.generator_of = generator_of

    def prepared(self, pair: ModelPair) -> tuple[Shipped, ModelPair]:
        """A sampler that is given the reported rows, and the pair with the measured drafts."""
        law, reported = measured(self.generator_of(pair), pair, self.journal)
        told = copy.copy(self)
        told.reported = reported
        return told, ModelPair(pair.target, law, pair.vocab)


def measured(
    generate: Generator, pair: ModelPair, journal: Journal
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """The exact rows of the drafted tokens, and the reported rows, [V^i, V] for i < L.

    At a context that is never drafted both are the pair's row.
    """

    def run(tape: Tape) -> tuple[tuple[int, ...], Reported]:
        with intercepted(tape, journal):
            tokens, logits = generate()
        if len(tokens) != pair.draft_length:
            raise InvalidOutcomeError(
                f"the generator drafted {len(tokens)} tokens, expected {pair.draft_length}"
            )
        rows = logits.double().softmax(-1).tolist()
        return tuple(tokens), tuple(tuple(map(exact_number, row)) for row in rows)

    return laws_of_drafts([(result, mass) for mass, result in all_runs(run)], pair.draft, journal)
