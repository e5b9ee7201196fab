"""Compute the exact output law of a verifier on an enumerated pair.

We enumerate all K-tuples of drafted paths with positive probability, vectorised in chunks, and sum the
verifier's conditional laws to the output law R(a_{1:i+1}) = P(X_{1:tau} = a_{1:i}, Y = a_{i+1}).  Everything
else is a function of R (theory.md §1).  If a verifier has a route (``laws``), we call its steps once per
context instead.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from spectheory.exact.cause import Cause, starts_with, stops_given
from spectheory.exact.enumeration import FLOAT64, sum_outcomes, tuples_to_enumerate
from spectheory.exact.laws.outputs import Masses
from spectheory.exact.laws.route import Route, follows_steps, route_of
from spectheory.foundation.arrays import divide_or_zero
from spectheory.foundation.documents import count_text, number_text, to_json
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidOutcomeError
from spectheory.foundation.exact_numbers import (
    Number,
    balanced_sum,
    flint_if_exact,
    fractions_if_exact,
    plain_number,
    to_fraction,
)
from spectheory.foundation.results import Result, Table, no_verdict
from spectheory.foundation.validation import check_count, check_tolerance
from spectheory.optima.bounds.antichain_hulls import most_violated_antichain
from spectheory.optima.bounds.context_tree import Levels, subtree_sums, sum_over_children
from spectheory.optima.bounds.tree_antichains import most_violated_antichains
from spectheory.optima.multi_path import largest_listed_excess
from spectheory.pairs.contexts import Context, context_number, numbered_context, path_to
from spectheory.pairs.drafts import DraftProcess, DraftTuples, Iid
from spectheory.pairs.drafts.kept import DisclosedDrafts
from spectheory.pairs.drafts.trees import Tree
from spectheory.pairs.pair import ModelPair
from spectheory.verification.evaluator import Evaluator
from spectheory.verification.kept_lengths import AtKeptLengths
from spectheory.verification.resolve import Problem, resolve
from spectheory.verification.user import UserVerifier, users_code
from spectheory.verification.user_checks import ROUNDING, check_function_of_inputs
from spectheory.verification.verifier import Verifier

DEFAULT_MAX_TUPLES = 2_000_000
"""Default limit of tuples to enumerate: about one minute of ``multi_round``."""
CHUNK_ENTRIES = 4_000_000
"""Number of entries of rows held in memory at once: 32 MB in float64."""
MAX_ENUMERATED_DRAFTS = 1_000
"""Largest number of paths of a tuple."""
NOT_LISTED = "most tuples of drafts: the law is that of the verifier's steps, compared with it on 64 tuples"
"""Part of a scope, if a route computes the law of a user's verifier."""
SHOWN_OUTPUTS = 20


@dataclass(frozen=True, eq=False, repr=False)
class OutputLaw(Result):
    """The output law R and its consequences.

    Attributes:
        verifier: the verifier, bound to the pair and the process.
        pair: the pair in the arithmetic of the law.
        process: the draft process.
        numbers: R as in ``masses``, in the number type of computations: python-flint rationals or float64.
        undefined: probability of a stop whose correction row has no mass, where the algorithm divides 0 by 0.
            It is missing from ``masses`` and from the block efficiency, and counts towards the total
            variation.  Zero for a lossless verifier.
        max_tuples: largest number of tuples of drafts to enumerate to explain an error.
        refused: cases that the law does not cover, for a scope; ``None`` if it covers all.
    """

    verifier: Verifier
    pair: ModelPair
    process: DraftProcess
    numbers: tuple[np.ndarray, ...]
    undefined: Any = 0
    max_tuples: int = DEFAULT_MAX_TUPLES
    refused: str | None = None

    def __bool__(self) -> bool:
        raise no_verdict(self, ".total_variation, or certify(...)")

    @property
    def num_drafts(self) -> int:
        """K."""
        return self.process.num_drafts

    @cached_property
    def masses(self) -> tuple[np.ndarray, ...]:
        """``masses[i]`` = R(a_{1:i+1}) over all paths of length i+1, [V^(i+1)], i = 0..L."""
        return tuple(map(fractions_if_exact, self.numbers))

    @cached_property
    def block_efficiency(self) -> Number:
        """E[tau + 1] = sum_a |a| R(a): tokens per target call, the correction token included."""
        return sum(prob * length for length, prob in enumerate(self.length_probs, start=1))

    @cached_property
    def length_probs(self) -> list[Any]:
        """P(tau = i) for i = 0..L."""
        return [plain_number(balanced_sum(mass)) for mass in self.numbers]

    @cached_property
    def accepted_masses(self) -> tuple[np.ndarray, ...]:
        """P(X_{1:tau} starts with a) for every node a of depth 0..L, arrays of shape [V^depth]."""
        size = self.pair.vocab_size
        levels: list[np.ndarray] = []
        for mass in reversed(self.numbers):
            level = sum_over_children(mass, size)
            levels.append(level + sum_over_children(levels[-1], size) if levels else level)
        return tuple(map(fractions_if_exact, reversed(levels)))

    @cached_property
    def completed_law(self) -> np.ndarray:
        """The law of the output completed to L+1 tokens with the target, shape [V^(L+1)]."""
        return fractions_if_exact(self._prefix_laws[-1])

    def prefix_law(self, depth: int) -> np.ndarray:
        """Compute the law of the first ``depth`` tokens of the completed output, shape [V^depth]."""
        return fractions_if_exact(self._prefix_laws[depth])

    @cached_property
    def _prefix_laws(self) -> Levels:
        law = self.numbers[0]
        for rows, mass in zip(self.pair.numbers.target[1:], self.numbers[1:], strict=True):
            law = (law[:, None] * rows).ravel() + mass
        probs = self.pair.numbers.target_path_probs
        if self.pair.is_exact and (law == probs[-1]).all():
            return list(probs)
        return subtree_sums(law, self.pair.vocab_size, self.pair.draft_length + 1)

    @property
    def is_exactly_right(self) -> bool:
        """Whether the completed output has exactly the target's law, computed in rationals.

        Then every prefix has its target probability.  No antichain T is violated either: Σ_{a∈T} D(a) p(a) is
        the probability that the accepted prefix passes through T, and the accepted prefix is a prefix of a
        draft.
        """
        return self.pair.is_exact and self.total_variation == 0

    def deviations(self, depth: int) -> np.ndarray:
        """Compute ``prefix_law`` minus the target's law, in the number type of computations, [V^depth]."""
        return self._prefix_laws[depth] - self.pair.numbers.target_path_probs[depth]

    def excess(self, depth: int, tolerance: float, epsilon: float = FLOAT64) -> np.ndarray:
        """Compute the part of each prefix's error that rounding does not explain, [V^depth].

        In floats we allow |law(a) - p(a)| <= ``tolerance`` p(a) + 64 ``epsilon``.  If p(a) = 0, we allow it
        only if outputs on the path have probability at most ``tolerance`` given any drafts.  An output that
        is rare only because its drafts are rare is not rounding.  In rationals we allow no error.
        """
        difference, probs = np.abs(self.deviations(depth)), self.pair.numbers.target_path_probs[depth]
        if self.pair.is_exact:
            return difference
        allowed = tolerance * probs + ROUNDING * epsilon
        if (difference[probs == 0] > 0).any():
            made = self._made_by_drafts(max(tolerance, ROUNDING * epsilon))
            allowed[(probs == 0) & (made.prefix_law(depth) > 0)] = 0
        return difference - allowed

    def _made_by_drafts(self, threshold: float) -> "OutputLaw":
        """Restrict R to outputs of target probability 0 that some drafts give more than ``threshold``."""
        kept: dict[float, OutputLaw] = self.__dict__.setdefault("_kept", {})
        if threshold not in kept:
            problem = Problem(self.verifier, self.pair, self.process)
            enumerated, as_multisets = tuples_to_enumerate(problem)
            if enumerated.count_tuples(self.pair, as_multisets) > self.max_tuples:
                raise EnumerationTooLargeError(
                    "in floats the output has forbidden tokens, and there are too many tuples of drafts to "
                    "say whether these are rounding; use an exact pair, or fewer drafts"
                )
            chunks = enumerated.enumerate(self.pair, 10_000, as_multisets)
            evaluator = Evaluator.of(problem, enumerated)
            summed, _ = sum_outcomes(evaluator, self.pair, chunks, inf, forbidden_above=threshold)
            kept[threshold] = OutputLaw(*problem, summed)
        return kept[threshold]

    @cached_property
    def node_budgets(self) -> tuple[np.ndarray, ...]:
        """D(a_{1:i}) = 1 - sum_{j <= i} R(a_{1:j}) / p(a_{1:j}) for depths 0..L+1.

        If p(a) = 0 the budget is undefined, and we use the budget of the parent.  A path without target mass
        therefore does not count as a violation.
        """
        return tuple(map(fractions_if_exact, self._node_budgets))

    @cached_property
    def _node_budgets(self) -> Levels:
        probs = self.pair.numbers.target_path_probs
        budgets = [probs[0]]
        for mass, path_probs in zip(self.numbers, probs[1:], strict=True):
            spent = divide_or_zero(mass, path_probs)
            budgets.append(np.repeat(budgets[-1], self.pair.vocab_size) - spent)
        return budgets

    @cached_property
    def largest_excess(self) -> tuple[Any, Sequence[Context]] | None:
        """Compute the largest violation of prefix-matching, and its antichain T.

        It is the largest Σ_{a∈T} D(a) p(a) - P(some draft passes through T), and at least 0.  ``None`` if it
        is too large to compute: drafts that are neither i.i.d. nor a tree with too many antichains to list,
        trees without replacement over many tokens, or so many drafts that the probability has too many
        digits.
        """
        if isinstance(self.process, Iid) and self.is_exactly_right:
            return plain_number(self.numbers[0][0] * 0), ()
        masses = [self.pair.numbers.target_path_probs[0]]  # D(a) p(a), at most 0 if p(a) = 0
        for rows, mass in zip(self.pair.numbers.target[:-1], self.numbers[:-1], strict=True):
            masses.append((masses[-1][:, None] * rows).ravel() - mass)
        if isinstance(self.process, Iid):
            if self.num_drafts > MAX_ENUMERATED_DRAFTS:
                # No violation for one draft implies none for many, which avoids the K-th powers.
                found = most_violated_antichain(self.pair, masses, 1)
                return None if found[0] > 0 else found
            return most_violated_antichain(self.pair, masses, self.num_drafts)
        try:
            if isinstance(self.process, Tree):
                violated = most_violated_antichains(self.pair, masses, self.process)
                return violated[0] if violated else (plain_number(masses[0][0] * 0), ())
            return largest_listed_excess(self.pair, masses, self.process)
        except EnumerationTooLargeError:
            return None

    def cause(self, prefix: Context) -> Cause | None:
        """Find the drafts that contribute most to the wrong probability of an output prefix a.

        With c the probability, given the drafts, that the completed output starts with a,

            law(a) - p(a) = Σ_drafts P(drafts) (c - p(a)).

        Returns:
            The K paths with the largest term in the direction of the deviation; ``None`` if there are too
            many tuples of drafts to enumerate, or the rows depend on more than the drafts.
        """
        depth, size, length = len(prefix), self.pair.vocab_size, self.pair.draft_length
        if isinstance(self.process, DisclosedDrafts):
            return None  # the drafts alone do not determine the rows
        number = context_number(prefix, size)
        wanted = self.pair.numbers.target_path_probs[depth][number]
        up = 1 if self.deviations(depth)[number] > 0 else -1
        problem = Problem(self.verifier, self.pair, self.process)
        enumerated, as_multisets = tuples_to_enumerate(problem)
        if enumerated.count_tuples(self.pair, as_multisets) > self.max_tuples:
            return None
        evaluator = Evaluator.of(problem, enumerated)
        best: tuple[Any, Any, Any] | None = None
        for leaves, probs in enumerated.enumerate(self.pair, 10_000, as_multisets):
            given = starts_with(evaluator, leaves, prefix)
            terms = up * probs * (given - wanted)
            worst = int(np.argmax(terms))
            if best is None or terms[worst] > best[0]:
                best = terms[worst], leaves[worst], given[worst]
        assert best is not None  # every process has a tuple of positive probability
        drafts = tuple(path_to(int(leaf), length, size) for leaf in best[1])
        return Cause(drafts, plain_number(best[2]), tuple(stops_given(evaluator, best[1])))

    @cached_property
    def total_variation(self) -> Number:
        """Half the sum of |completed law - p_{L+1}|: the defect of the verifier.

        An undefined output counts as an outcome of target probability 0.
        """
        deviations = np.abs(self.deviations(self.pair.draft_length + 1))
        return (plain_number(balanced_sum(deviations)) + self.undefined) / 2

    def __eq__(self, other: object) -> bool:
        """Whether both have equal documents, models and drafts."""
        if not super().__eq__(other) or not isinstance(other, OutputLaw):
            return False
        return other.pair == self.pair and other.process == self.process

    __hash__ = Result.__hash__

    def headline(self) -> str:
        return (
            f"output law of {self.verifier.name}: block efficiency {number_text(self.block_efficiency)}, "
            f"total variation {number_text(self.total_variation)}"
        )

    def tables(self) -> list[Table]:
        lengths = [
            {"accepted tokens": length, "probability": prob} for length, prob in enumerate(self.length_probs)
        ]
        outputs = sorted(self._outputs(), key=lambda output: output[1], reverse=True)
        likeliest = [{"output": ids, "probability": prob} for ids, prob in outputs[:SHOWN_OUTPUTS]]
        rest = len(outputs) - SHOWN_OUTPUTS
        note = f"and {count_text(rest, 'other output')}" if rest > 0 else ""
        return [Table(self.headline(), lengths), Table("likeliest outputs", likeliest, note=note)]

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object.

        ``outputs`` maps token ids, separated by spaces, to the positive entries of R.
        """
        document = {
            "verifier": self.verifier.name,
            "vocab_size": self.pair.vocab_size,
            "draft_length": self.pair.draft_length,
            "num_drafts": self.num_drafts,
            "draft_process": self.process.name,
            "block_efficiency": self.block_efficiency,
            "length_probs": self.length_probs,
            "total_variation": self.total_variation,
            "undefined": self.undefined,
            "outputs": dict(self._outputs()),
        }
        return {key: to_json(value) for key, value in document.items()}

    def rows(self) -> list[dict[str, Any]]:
        """One row per output, including impossible ones: token ids, number of accepted tokens, and R."""
        size = self.pair.vocab_size
        return [
            {"output": numbered_context(number, depth + 1, size), "accepted": depth, "probability": prob}
            for depth, mass in enumerate(self.masses)
            for number, prob in enumerate(mass)
        ]

    def _outputs(self) -> Iterator[tuple[str, Any]]:
        for depth, mass in enumerate(self.masses, start=1):
            for number in np.flatnonzero(mass != 0):
                yield (
                    " ".join(map(str, numbered_context(int(number), depth, self.pair.vocab_size))),
                    mass[number],
                )


def output_law(
    verifier: str | Any,
    pair: ModelPair,
    drafts: int | DraftProcess = 1,
    *,
    max_tuples: int = DEFAULT_MAX_TUPLES,
    tolerance: float = 1e-9,
    progress: Callable[[int, int], None] | None = None,
) -> OutputLaw:
    """Compute the law of the verifier's output on an enumerated pair.

    It is rational for an exact pair and an exact verifier, and float64 otherwise.

    Args:
        verifier: a name or any object with ``outcome(paths, target_rows, draft_rows)``.
        pair: the enumerated models.
        drafts: K, for paths drafted i.i.d., or another draft process.
        max_tuples: largest number of tuples of drafted paths to enumerate.
        tolerance: largest error, in non-negativity and sum 1, at which a float64 answer counts as a law.
        progress: called with (finished tuples, all tuples).

    Raises:
        InvalidInputError: the verifier does not accept the draft process or the pair.
        EnumerationTooLargeError: there are more tuples than ``max_tuples``.
        InvalidOutcomeError: an answer of the verifier is not a conditional law.

    Example:
        >>> from spectheory import instances
        >>> law = output_law("token", instances.two_token(1))
        >>> print(law.masses[0])
        [Fraction(0, 1) Fraction(1, 3)]
    """
    max_tuples, tolerance = check_count("max_tuples", max_tuples), check_tolerance("tolerance", tolerance)
    return law_of(resolve(verifier, pair, drafts), max_tuples, tolerance, progress)


def law_of(
    problem: Problem,
    max_tuples: int = DEFAULT_MAX_TUPLES,
    tolerance: float = 1e-9,
    progress: Callable[[int, int], None] | None = None,
    epsilon: float = FLOAT64,
) -> OutputLaw:
    """Compute ``output_law`` of a resolved problem; ``epsilon`` belongs to the verifier's arithmetic."""
    if isinstance(problem.process, DisclosedDrafts):
        return _mixed(problem, max_tuples, tolerance, epsilon)
    pair, of_user = problem.pair, isinstance(problem.verifier, UserVerifier)
    route = route_of(problem) if epsilon == FLOAT64 else None
    if route is not None and route.work <= max_tuples:
        if of_user:
            check_function_of_inputs(problem, tolerance)
        found = _followed(problem, route, tolerance, progress)
        if found is not None:
            undefined = to_fraction(found.undefined) if pair.is_exact else float(found.undefined)
            refused = NOT_LISTED if of_user else None
            return OutputLaw(*problem, found.by_depth, undefined, max_tuples, refused)
    enumerated, as_multisets = tuples_to_enumerate(problem)
    count, num_drafts = enumerated.count_tuples(pair, as_multisets), enumerated.num_drafts
    if count > max_tuples or num_drafts > MAX_ENUMERATED_DRAFTS:
        how_many = "more than 10^300" if count == inf else count
        raise EnumerationTooLargeError(
            f"{how_many} tuples of {num_drafts} drafted paths (vocabulary {pair.vocab_size}, "
            f"draft length {pair.draft_length}) exceed max_tuples = {max_tuples}; "
            "use fewer drafts, a shorter draft length, fewer tokens, or `spectheory simulate`"
        )
    size = max(1, CHUNK_ENTRIES // (enumerated.num_drafts * (pair.draft_length + 1) * pair.vocab_size))
    if of_user:
        check_function_of_inputs(problem, tolerance)
    chunks = enumerated.enumerate(problem.pair, size, as_multisets)
    if progress is not None:
        chunks = _counted(chunks, int(count), progress)
    evaluator = Evaluator.of(problem, enumerated)
    summed, undefined = sum_outcomes(evaluator, problem.pair, chunks, tolerance, epsilon)
    return OutputLaw(*problem, summed, undefined, max_tuples)


def _mixed(problem: Problem, max_tuples: int, tolerance: float, epsilon: float) -> OutputLaw:
    """Compute the law for drafts whose rows depend on more than the text, as a mixture over their rows."""
    verifier, pair, process = problem
    assert isinstance(process, DisclosedDrafts)
    base = verifier.base if isinstance(verifier, AtKeptLengths) else verifier
    numbers, undefined = [], 0
    for weight, part in process.parts():
        found = law_of(resolve(base, pair, part), max_tuples, tolerance, None, epsilon)
        share = flint_if_exact(np.array([weight]))[0] if pair.is_exact else float(weight)
        numbers.append([mass * share for mass in found.numbers])
        undefined = undefined + found.undefined * weight
    summed = tuple(np.sum(levels, axis=0) for levels in zip(*numbers, strict=True))
    return OutputLaw(*problem, summed, undefined, max_tuples)


def _followed(
    problem: Problem, route: Route, tolerance: float, progress: Callable[[int, int], None] | None
) -> Masses | None:
    """Compute the law by a route, or return ``None`` if this fails.

    The enumeration then finds the drafts on which the verifier fails.
    """
    if progress is not None:
        progress(0, route.work)
    verifier = problem.verifier
    of_user = isinstance(verifier, UserVerifier)
    with suppress(InvalidOutcomeError), users_code(verifier.name) if of_user else nullcontext():
        if of_user and not follows_steps(problem, route, tolerance):
            return None
        masses = route.law()
        if progress is not None and masses is not None:
            progress(route.work, route.work)
        return masses
    return None


def _counted(
    chunks: Iterable[DraftTuples], total: int, progress: Callable[[int, int], None]
) -> Iterator[DraftTuples]:
    done = 0
    for chunk in chunks:
        progress(done, total)
        yield chunk
        done += len(chunk.probs)
    progress(done, total)
