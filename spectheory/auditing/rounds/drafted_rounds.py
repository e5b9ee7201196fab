"""Rounds that draft and verify: drafter and verifier on one tape, so that what they share is seen.

A verifier that is handed drafts is judged as if these were independent of its random numbers.  A round draws
both.  The law of its output is compared with the target, and the law of its drafts with the rows that it
reports.  Two rounds in a row begin the second one after the tokens of the first.
"""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import torch

from spectheory.auditing.following.intercept import intercepted
from spectheory.auditing.subjects.draft_generators import laws_of_drafts
from spectheory.auditing.subjects.shipped import Shipped, Tokens
from spectheory.auditing.subjects.signatures import SEED, Models
from spectheory.auditing.tape.decisions import Tape
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.pairs.contexts import context_number
from spectheory.pairs.pair import ModelPair
from spectheory.verification.verifier import users_code

Drafts = tuple[Tokens, tuple[tuple[float, ...], ...]]


def draft_length_of_rounds(pair: ModelPair, rounds: int) -> int | None:
    """The draft length with which so many rounds return at most L+1 tokens of the pair, if there is one.

    Example:
        >>> from spectheory import instances
        >>> [draft_length_of_rounds(instances.two_token(3), rounds) for rounds in (1, 2, 3)]
        [3, 1, None]
    """
    length, rest = divmod(pair.draft_length + 1, rounds)
    return length - 1 if not rest and length > 1 else None


def law_of_rounds(sampler: Shipped, pair: ModelPair, rounds: int) -> tuple[dict[Tokens, Fraction], Fraction]:
    """The probability of all tokens of rounds in a row, () for runs without a valid output.

    Of a single round the law of the drafts is compared too; a finding goes to the sampler's journal.

    Args:
        sampler: of the signature "round".
        pair: the models, as deep as the tokens of all rounds.
        rounds: their number.

    Returns:
        The law, and the probability of runs with a box's answer.

    Raises:
        InvalidOutcomeError: the round returns something other than drafts, rows and an accepted prefix with a
            correction token.
    """
    length = draft_length_of_rounds(pair, rounds)
    if length is None:
        raise InvalidOutcomeError(f"{rounds} rounds do not end at draft length {pair.draft_length}")

    def rows_of(levels: Sequence[np.ndarray], context: Sequence[int]) -> torch.Tensor:
        row = levels[len(context)][context_number(tuple(context), pair.vocab_size)]
        return torch.tensor(row.astype(float), dtype=torch.float32)

    def once(tape: Tape) -> tuple[Tokens, Drafts]:
        context: Tokens = ()
        generator = torch.Generator().manual_seed(SEED)
        with intercepted(tape, sampler.journal):
            for tape.call in range(rounds):
                models = Models(
                    lambda tokens: rows_of(pair.target, tokens),
                    lambda tokens: rows_of(pair.draft, tokens),
                    context,
                    length,
                )
                with users_code(sampler.words, sampler.sampler):
                    drafted, rows, returned = sampler.sampler(models, generator)
                    drafted, tokens = sampler.tokens(drafted), sampler.tokens(returned)
                    told = tuple(map(tuple, torch.as_tensor(rows).double().tolist()))
                sampler.credited_path(np.array([drafted]), tokens, pair.vocab_size)
                context += tokens
        return context, (drafted, told)

    law, undecided = sampler.law_of_runs(once, ((), ((), ())))
    tokens: dict[Tokens, Fraction] = defaultdict(Fraction)
    for (found, _), mass in law.items():
        tokens[found] += mass
    if rounds == 1:
        runs = [(mass, *drafts) for (_, drafts), mass in law.items() if drafts[0]]
        laws_of_drafts(runs, pair, sampler.journal)
    return tokens, undecided
