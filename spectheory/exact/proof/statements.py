"""What can be proved of a verifier on every pair: for each statement its conditions on a face and at a pair.

==================== ==================================================================================
``lossless``         the completed output has the law of the target
``optimal``          lossless, and no lossless verifier decodes more tokens (one draft, or draft length 1)
``at_least:OTHER``   at least the block efficiency of another verifier; ``OTHER@K`` has K drafts
``prefix_matching``  the node masses that its law asks for satisfy the antichain conditions
``exchangeable``     the law of the output given the drafts does not depend on their order
``single_path``      it depends on the first draft only, and is its law given that draft alone
``completed``        the output has the law of the target if it is completed with the modified target
``law``              the stops and the tokens behind them are a law, as every verifier's must be
==================== ==================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, product
from typing import Any, NamedTuple

import numpy as np

from spectheory.exact.certificate import certificate_of
from spectheory.exact.iteration import completed_law
from spectheory.exact.law import output_law
from spectheory.exact.proof.domain import FormalPair
from spectheory.exact.proof.formal_numbers import FormalRun
from spectheory.exact.proof.rational_functions import POSITIVE, ZERO, RationalFunction
from spectheory.exact.proof.stops import Stops, fresh, function_of, stops_of
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import unknown_name
from spectheory.optima.pair_optimum import optimum
from spectheory.pairs.contexts import Context, context_number, numbered_context
from spectheory.pairs.drafts import DraftProcess, Iid
from spectheory.pairs.pair import ModelPair
from spectheory.verification.evaluator import Evaluator
from spectheory.verification.modification import modified_rows
from spectheory.verification.resolve import Problem, find_verifier
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier

CLAIMS = {
    "lossless": "the output has the law of the target",
    "optimal": "the verifier is lossless, and no lossless one has a larger block efficiency",
    "at_least": "the block efficiency is at least that of {other}",
    "prefix_matching": "the node masses satisfy the antichain conditions",
    "exchangeable": "the law of the output does not depend on the order of the drafts",
    "single_path": "the law of the output depends on the first draft only",
    "completed": "completed with the modified target, the output has the law of the target",
    "law": "the stops and the tokens behind them are a law",
}
NOT_TARGET = "the output law is not the target's"
AT_LEAST_ZERO = ZERO | POSITIVE
MAX_SETS = 1_000
"""The most antichains, or sets of tokens, of which conditions are written down."""


class Condition(NamedTuple):
    """One of the functions must have a sign in ``mask``; ``wrong`` says what is wrong where none has.

    The condition speaks of the pairs on which the prefixes ``given`` can be drafted.
    """

    functions: Sequence[RationalFunction]
    mask: int
    wrong: str
    given: tuple[Context, ...] = ()


class Subject(NamedTuple):
    """A verifier, as it is given and as it is bound, with the process of its drafts."""

    verifier: Verifier
    process: DraftProcess
    bound: Verifier


class Statement(NamedTuple):
    """A statement about a verifier.

    Attributes:
        name: as above.
        subjects: the verifier with its drafts, and what it is compared with, if anything.
    """

    name: str
    subjects: tuple[Subject, ...]

    @staticmethod
    def of(name: str, verifier: Verifier, process: DraftProcess, draft_length: int) -> Statement:
        """The statement of a name.

        Raises:
            UnknownNameError: there is no such statement, or no such other verifier.
            InvalidInputError: it does not speak of these drafts.
        """
        kind, _, other = name.partition(":")
        if kind not in CLAIMS or bool(other) != (kind == "at_least"):
            raise unknown_name(
                "statement", name, [*CLAIMS], "; at_least is followed by :VERIFIER or :VERIFIER@K"
            )
        compared = []
        if kind == "at_least":
            other, _, count = other.partition("@")
            if count and not count.isdigit():
                raise InvalidInputError(f"at_least:OTHER@K needs a whole number K, got {count!r}")
            compared = [(find_verifier(other), Iid(int(count)) if count else process)]
        elif kind == "single_path":
            compared = [(verifier, process.first_path())]
        elif kind == "exchangeable" and not isinstance(process, Iid):
            raise InvalidInputError(f"exchangeable speaks of i.i.d. drafts, got {process}")
        elif kind == "completed" and verifier.modified_target_rows is None:
            raise InvalidInputError(
                f"verifier {verifier.name!r} has no modified_target_rows; prove that it is lossless"
            )
        elif kind == "optimal" and process.num_drafts > 1 < draft_length:
            raise InvalidInputError(
                f"the optimum has a closed form for one draft and for draft length 1, got "
                f"{process.num_drafts} drafts of length {draft_length}; compare with at_least:OTHER"
            )
        for one, _ in (runs := [(verifier, process), *compared]):
            if not one.exact:
                raise InvalidInputError(
                    f"verifier {one.name!r} computes in float64; a proof needs the numbers that it is given"
                )
        bound = [one.bind(drafts) for one, drafts in runs]
        for one in bound:
            if isinstance(one, UserVerifier) and one.has_own_bind:
                raise InvalidInputError(
                    f"verifier {one.name!r} has a bind of its own, which may return another one for some "
                    "pairs, and a proof speaks of all pairs; prove the verifier that it returns"
                )
        return Statement(name, tuple(Subject(*run, one) for run, one in zip(runs, bound, strict=True)))

    @property
    def has_rows_beyond(self) -> bool:
        """Whether it speaks of the rows at contexts that cannot be drafted."""
        return self.name == "completed"

    @property
    def claim(self) -> str:
        """The statement in words."""
        kind, _, other = self.name.partition(":")
        return CLAIMS[kind].format(other=other)

    def wrong_at(self, pair: ModelPair) -> str:
        """What is wrong on a pair with rational rows; empty if nothing is."""
        kind, (verifier, process, _) = self.name.partition(":")[0], self.subjects[0]
        if kind in ("exchangeable", "single_path"):
            laws = [_stops_at(one, pair) for one in self.subjects]
            differences = _differences(kind, laws, pair.vocab_size)
            return _WRONG[kind] if any(one != other for one, other in differences) else ""
        if kind == "prefix_matching":
            found = certificate_of(output_law(verifier, pair, process), 0)
            return "" if found.prefix_matching else _WRONG[kind]
        if kind == "completed":
            differences = completed_law(verifier, pair, process) != pair.target_path_probs(
                pair.draft_length + 1
            )
            return _WRONG[kind] if np.any(differences) else ""
        law = output_law(verifier, pair, process)
        if kind in ("lossless", "optimal") and law.total_variation != 0:
            return NOT_TARGET
        wanted = law.block_efficiency
        if kind == "optimal":
            wanted = optimum(pair, process).value
        elif kind == "at_least":
            other, drafts, _ = self.subjects[1]
            wanted = output_law(other, pair, drafts).block_efficiency
        return _WRONG[kind] if law.block_efficiency < wanted else ""

    def conditions(self, pair: FormalPair, run: FormalRun, laws: Sequence[Stops]) -> Iterator[Condition]:
        """The conditions on a face.

        Args:
            pair: the rows as functions.
            run: answers which of two functions is smaller.
            laws: what each of the subjects returned.
        """
        seen: set[Any] = set()
        for condition in self._conditions(pair, run, laws):
            if any(f.is_zero for f in condition.functions) and condition.mask & ZERO:
                continue
            given = condition.given if pair.draft_sign & ZERO else ()
            key = condition.functions[0], condition.mask, given
            if len(condition.functions) > 1 or key not in seen:
                seen.add(key)
                yield condition

    def _conditions(self, pair: FormalPair, run: FormalRun, laws: Sequence[Stops]) -> Iterator[Condition]:
        kind, law = self.name.partition(":")[0], laws[0]
        for one in laws:
            yield from _is_law(one, pair)
        if kind == "law":
            return
        if kind in ("exchangeable", "single_path"):
            for one, other in _differences(kind, laws, pair.vocab_size):
                yield Condition([one - other], ZERO, _WRONG[kind])
            return
        if kind == "at_least":
            mine, others = (_block_efficiency(one, pair) for one in laws)
            yield Condition([mine - others], AT_LEAST_ZERO, _WRONG[kind])
            return
        if kind == "completed":
            yield from _is_completed(pair, run, law, self.subjects[0])
            return
        masses = _node_masses(pair, run, law)
        if kind == "prefix_matching":
            for antichain in _antichains(pair, ()):
                hit = _hit_probability(antichain, law, pair)
                for context in antichain:
                    hit = hit - masses[context]
                yield Condition([hit], AT_LEAST_ZERO, _WRONG[kind])
            return
        for prefix, mass in masses.items():
            if prefix not in pair.reached:
                yield Condition([mass], ZERO, f"the output law is wrong at {prefix}")
        if kind == "optimal":
            yield _is_optimal(pair, run, law)


_WRONG = {
    "optimal": "the block efficiency is below the optimum",
    "at_least": "the block efficiency is below that of the other verifier",
    "prefix_matching": "an antichain is passed too often",
    "exchangeable": "another order of the drafts changes the law of the output",
    "single_path": "the law of the output is not that for the first draft alone",
    "completed": "completed with the modified target, the output law is not the target's",
}


def _stops_at(subject: Subject, pair: ModelPair) -> Stops:
    """The stops on all tuples of a pair with rational rows."""
    _, process, bound = subject
    evaluator = Evaluator.of(Problem(fresh(bound), pair, process), process)
    [(leaves, weights)] = process.tuples(pair, 1 << 20)
    return stops_of(evaluator, leaves, weights)


def _is_law(law: Stops, pair: FormalPair) -> Iterator[Condition]:
    """Given the drafts, the stops and the tokens behind them are a law."""
    length, one = pair.draft_length, pair.field.constant(1)
    for leaves, probs, masses in zip(law.leaves, law.probs, law.masses, strict=True):
        paths = [numbered_context(int(leaf), length, pair.vocab_size) for leaf in leaves]
        given = tuple(sorted({path[:depth] for path in paths for depth in range(1, length + 1)}))
        total = one - one
        for prob, entries in zip(probs.ravel(), masses.reshape(-1, masses.shape[-1]), strict=True):
            if prob.is_zero:
                continue
            total, left = total + prob, prob
            yield Condition([prob], AT_LEAST_ZERO, "a stop probability is negative", given)
            for mass in entries:
                left = left - mass
                yield Condition([mass], AT_LEAST_ZERO, "a correction row has a negative entry", given)
            yield Condition([left], ZERO, "a correction row does not sum to 1", given)
        yield Condition([total - one], ZERO, "stop probabilities do not sum to 1", given)


def _node_masses(pair: FormalPair, run: FormalRun, law: Stops) -> dict[Context, RationalFunction]:
    """D(a) p(a) of every context that is reached, and of the outputs behind them.

    With R(a, x) the probability of the output (a, x), it is 1 at the root, and D p at (a, x) is
    D(a) p(a) p(x|a) - R(a, x).  The law is the target's if and only if it is 0 where no draft goes further.
    """
    size, output = pair.vocab_size, _outputs(pair, law)
    found: dict[Context, RationalFunction] = {(): pair.field.constant(1)}
    for context in pair.reached:
        probs = pair.target[len(context)][context_number(context, size)]
        for token in range(size):
            mass = run.simplified(output[context][token])
            found[*context, token] = found[context] * probs[token] - mass
    return found


def _outputs(pair: FormalPair, law: Stops) -> dict[Context, list[RationalFunction]]:
    """Accepted prefix -> probability of the output with each next token."""
    size, zero = pair.vocab_size, pair.field.constant(0)
    output = {context: [zero] * size for context in pair.reached}
    for weight, given in zip(law.weights, law.outputs(size), strict=True):
        for context, masses in given.items():
            output[context] = [a + weight * b for a, b in zip(output[context], masses, strict=True)]
    return output


def _is_completed(pair: FormalPair, run: FormalRun, law: Stops, subject: Subject) -> Iterator[Condition]:
    """The probability that an output passes through a prefix, completed with the modified rows, is p(prefix)
    where no draft goes further.

    With R(a, x) the probability of the output (a, x), the probability E that a text has been completed up to
    a prefix is E(a, x) = R(a, x) + E(a) m(x|a), with the modified row m at depths 1 to L-1, and the target's
    at depth L.
    """
    size, length, output = pair.vocab_size, pair.draft_length, _outputs(pair, law)
    zero, nothing = pair.field.constant(0), [pair.field.constant(0)] * size
    modified = _modified_rows(pair, run, subject)
    completed: dict[Context, RationalFunction] = {(): zero}
    drawn: dict[Context, RationalFunction] = {(): pair.field.constant(1)}
    for context in sorted(pair.contexts, key=len):
        target = pair.target[len(context)][context_number(context, size)]
        following = modified[context] if 0 < len(context) < length else target
        for token, mass in enumerate(output.get(context, nothing)):
            prefix = (*context, token)
            completed[prefix] = run.simplified(mass + completed[context] * following[token])
            drawn[prefix] = drawn[context] * target[token]
            if prefix not in pair.reached:
                left = drawn[prefix] - completed[prefix]
                yield Condition([left], ZERO, f"the completed output law is wrong at {prefix}")


def _modified_rows(
    pair: FormalPair, run: FormalRun, subject: Subject
) -> dict[Context, list[RationalFunction]]:
    """The rows at depths 1 to L-1 that the target has behind an output."""
    rows, found = pair.rows_in(run), {}
    for depth in range(1, pair.draft_length):
        given = rows.target[depth], rows.draft[depth], rows.target_path_probs(depth)
        modify: Any = fresh(subject.verifier).modified_target_rows
        changed = modified_rows(modify, *given, rows.draft_path_probs(depth), subject.process.num_drafts)
        for number, row in enumerate(changed):
            context = numbered_context(number, depth, pair.vocab_size)
            found[context] = [function_of(entry, run) for entry in row]
    return found


def _block_efficiency(law: Stops, pair: FormalPair) -> RationalFunction:
    """E[τ+1]."""
    total = pair.field.constant(0)
    for weight, paths in zip(law.weights, law.probs, strict=True):
        for probs in paths:
            for depth, prob in enumerate(probs):
                total = total + pair.field.constant(depth + 1) * weight * prob
    return total


def _is_optimal(pair: FormalPair, run: FormalRun, law: Stops) -> Condition:
    """E[τ+1] attains an upper bound of every lossless verifier: the masses of theory.md Statement 4.2 for
    one draft, and a cut of Statement 3.2 for draft length 1."""
    size, one = pair.vocab_size, pair.field.constant(1)
    mine, wrong = _block_efficiency(law, pair), _WRONG["optimal"]
    if law.leaves.shape[1] == 1:
        best = one
        accepted: dict[Context, RationalFunction] = {(): one}
        drafted: dict[Context, RationalFunction] = {(): one}
        for context in pair.reached[1:]:
            before, token = context[:-1], context[-1]
            depth, number = len(before), context_number(before, size)
            drafted[context] = drafted[before] * pair.draft[depth][number][token]
            mass = accepted[before] * pair.target[depth][number][token]
            smaller = run.is_at_least_zero(drafted[context] - mass)
            accepted[context] = mass if smaller else drafted[context]
            best = best + accepted[context]
        return Condition([mine - best], AT_LEAST_ZERO, wrong)
    cuts = []
    for inside in _subsets(range(size)):
        cut = one + one
        for token in inside:
            cut = cut + pair.target[0][0][token]
        for leaves, weight in zip(law.leaves, law.weights, strict=True):
            cut = cut - weight if set(leaves.tolist()) <= set(inside) else cut
        cuts.append(mine - cut)
    return Condition(cuts, AT_LEAST_ZERO, wrong)


def _hit_probability(antichain: Sequence[Context], law: Stops, pair: FormalPair) -> RationalFunction:
    """The probability that some draft passes through an antichain."""
    size, length, total = pair.vocab_size, pair.draft_length, pair.field.constant(0)
    for leaves, weight in zip(law.leaves, law.weights, strict=True):
        prefixes = ((leaves // size ** (length - len(a)) == context_number(a, size)).any() for a in antichain)
        total = total + weight if any(prefixes) else total
    return total


def _antichains(pair: FormalPair, context: Context) -> list[tuple[Context, ...]]:
    """The antichains at or below a context among the contexts that are reached."""
    parts = [_antichains(pair, (*context, token)) for token in pair.face.get(context, ())]
    below = [tuple(chain(*some)) for some in product(*parts)]
    if len(below) > MAX_SETS:
        raise InvalidInputError(f"more than {MAX_SETS} antichains; take a smaller shape")
    return [*below, (context,)]


def _subsets(tokens: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return chain(*(combinations(tokens, count) for count in range(len(tokens) + 1)))


def _differences(kind: str, laws: Sequence[Stops], size: int) -> Iterator[tuple[Any, Any]]:
    """The probabilities that must be equal: for the drafts in order, or for the first of them alone."""
    law, other = laws[0], laws[-1]
    wanted = dict(zip(map(tuple, other.leaves.tolist()), other.outputs(size), strict=True))
    for leaves, output in zip(law.leaves.tolist(), law.outputs(size), strict=True):
        key = tuple(sorted(leaves)) if kind == "exchangeable" else (leaves[0],)
        zero = law.masses.flat[0] - law.masses.flat[0]
        for context in output.keys() | wanted[key].keys():
            rows = (found.get(context, [zero] * size) for found in (output, wanted[key]))
            yield from zip(*rows, strict=True)
