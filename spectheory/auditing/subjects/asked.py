"""Questions to a sampler: a pair, how the paths of one call are drafted, and the calls that this makes."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from spectheory.auditing.tape.decisions import Tape
from spectheory.auditing.tape.ordinary import OrdinaryRun
from spectheory.pairs.contexts import numbered_context, prefix_numbers, rows_along
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.pair import ModelPair

MAX_ASKED_TUPLES = 4_096
"""The most tuples of several paths on one pair, if the user set the number of paths."""
Numbers = Tape | OrdinaryRun
"""Where the random numbers of a call come from: decisions that we follow, or ordinary numbers."""


class Question(NamedTuple):
    """One pair and one draft process.

    Attributes:
        name: the name of the pair.
        pair: the models.
        process: how K paths are drafted.
        words: the process in words.  Questions with the same words form one group.
    """

    name: str
    pair: ModelPair
    process: DraftProcess
    words: str

    @property
    def num_drafts(self) -> int:
        return self.process.num_drafts

    @property
    def where(self) -> str:
        """The name of the pair.  With several paths, also how they are drafted."""
        return self.name if self.num_drafts == 1 else f"{self.name} with {self.words}"


class Part(NamedTuple):
    """One call that a question makes with some probability, such as a call on one tuple of drafts.

    Attributes:
        probability: the probability of the call.
        call: (numbers) -> the label of the call, such as its tokens.
        words: where the call is, in words.
    """

    probability: Fraction
    call: Callable[[Numbers], Any]
    words: str


def drafts_and_rows(question: Question) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, Fraction]]:
    """Yield the tuples of drafts: paths [K, L], target rows [K, L+1, V], draft rows [K, L, V], their law."""
    pair, process = question.pair, question.process
    levels = [process.drafter(pair, number).draft for number in range(process.num_drafts)]
    for leaves, probs in process.tuples(pair, MAX_ASKED_TUPLES):
        for numbers, prob in zip(leaves.tolist(), probs, strict=True):
            paths = np.array([numbered_context(n, pair.draft_length, pair.vocab_size) for n in numbers])
            prefixes = prefix_numbers(paths, pair.vocab_size)
            draft = [rows_along(level, prefixes[k : k + 1])[0] for k, level in enumerate(levels)]
            yield paths, rows_along(pair.target, prefixes), np.stack(draft), prob
