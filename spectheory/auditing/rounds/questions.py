"""Questions on which we judge a sampler: pairs, and how the paths of one call are drafted."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np

from spectheory.auditing.rounds.battery import (
    PairsOfShapes,
    audit_pairs,
    pairs_of_loops,
    pairs_of_several_paths,
    pairs_of_trees,
    quick_pairs,
)
from spectheory.auditing.subjects.asked import MAX_ASKED_TUPLES, Question, drafts_and_rows
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import LOOPS
from spectheory.exact.law import OutputLaw
from spectheory.foundation.documents import count_text
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import to_flint
from spectheory.pairs.contexts import Context, context_number
from spectheory.pairs.drafts import DraftProcess, Iid
from spectheory.pairs.drafts.kept import KeptDrafts
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.processors import is_on_a_boundary

MAX_TUPLES = 64
"""The most tuples of several paths on one pair, if the user did not set the number of paths."""
QUICK_ONLY = "most of the battery: a quick audit asks about a few pairs and batches"


def questions(
    sampler: Shipped, pairs: Mapping[str, ModelPair] | None
) -> tuple[dict[str, list[Question]], tuple[str, ...]]:
    """Build the questions, grouped by the words of their process, with one path first.

    Also return what we leave out, in words.
    """
    groups: dict[str, list[Question]] = {}
    left_out: dict[str, None] = {QUICK_ONLY: None} if sampler.quick else {}
    for number in sorted(sampler.num_drafts):
        default = audit_pairs() if number == 1 else pairs_of_several_paths(number)
        default = quick_pairs(number) if sampler.quick else default
        default = pairs_of_loops() if sampler.signature_name in LOOPS else default
        for name, pair in (default if pairs is None else pairs).items():
            for process, words in _drafted(sampler, pair, number):
                _ask(sampler, Question(name, pair, process, words), groups, left_out)
    known = pairs_of_trees() if pairs is None else pairs
    if isinstance(pairs, PairsOfShapes):
        known = {**pairs, **pairs.of_trees}
    for tree in sampler.trees:
        words = tree.text
        for name, pair in known.items():
            if tree.fits(pair):
                _ask(sampler, Question(name, pair, tree, words), groups, left_out)
        if words not in groups and sampler.has_given_drafts:
            raise InvalidInputError(f"no pair has drafts of {words}; a tree has a width per drafted token")
    return groups, tuple(left_out)


def _ask(
    sampler: Shipped, question: Question, groups: dict[str, list[Question]], left_out: dict[str, None]
) -> None:
    count = question.process.count_tuples(question.pair)
    most = MAX_ASKED_TUPLES if sampler.has_given_drafts else MAX_TUPLES
    if question.num_drafts > 1 and count > most:
        left_out[f"{question.words} on {question.name}: {count:.0f} tuples of drafts, more than {most}"] = (
            None
        )
    elif sampler.declared is not None and is_on_a_boundary(question.pair, sampler.declared, sampler.prompt):
        left_out[f"{question.name}: rounding changes which tokens {sampler.declared.name} keeps"] = None
    else:
        groups.setdefault(question.words, []).append(question)


def _drafted(sampler: Shipped, pair: ModelPair, num_drafts: int) -> Iterator[tuple[DraftProcess, str]]:
    if not sampler.signature.point_mass_drafts or num_drafts == 1:
        yield Iid(num_drafts), count_text(num_drafts, "independent path")
        return
    for paths in _deterministic_paths(pair.vocab_size, pair.draft_length, num_drafts):
        yield KeptDrafts({tuple(paths): 1}), f"{num_drafts} deterministic paths"


def _deterministic_paths(vocab_size: int, length: int, num_drafts: int) -> Iterator[list[Context]]:
    """Yield tuples of paths that split at the first position, at the last, at both, and nowhere."""
    first = (0,) * length
    if num_drafts <= vocab_size:
        yield [(token, *first[1:]) for token in range(num_drafts)]
    if length > 1 and num_drafts <= vocab_size:
        yield [(*first[1:], token) for token in range(num_drafts)]
    if length > 1 and num_drafts == 3:
        yield [first, (*first[1:], 1), (1, *first[1:])]
    yield [first] * num_drafts


def followed_law(sampler: Shipped, question: Question) -> tuple[OutputLaw, Fraction]:
    """Compute the law of a sampler's output, and a bound on the error of this law.

    A run is undefined if the sampler fails, or if it does not return a drafted prefix and one more token of
    the vocabulary.

    Raises:
        NotEnumerableError: we cannot follow the sampler's random numbers.
    """
    pair, size = question.pair, question.pair.vocab_size
    sampler.undecided = undefined = Fraction(0)
    masses = [np.full(size**depth, Fraction(0)) for depth in range(1, pair.draft_length + 2)]
    for paths, target_rows, draft_rows, prob in drafts_and_rows(question):
        for tokens, mass in sampler.law_given(paths, target_rows, draft_rows).items():
            if tokens:
                masses[len(tokens) - 1][context_number(tokens, size)] += prob * mass
            else:
                undefined += prob * mass
    law = OutputLaw(sampler, pair, question.process, tuple(map(to_flint, masses)), undefined)
    return law, sampler.undecided
