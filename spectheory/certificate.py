"""certify(): what a verifier outputs, whether that is lossless, and how far it is from the optimum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from spectheory.algorithms import find_verifier
from spectheory.drafts import Context, DraftProcess, Iid, draft_process
from spectheory.errors import EnumerationTooLargeError
from spectheory.law import DEFAULT_MAX_TUPLES, OutputLaw, output_law
from spectheory.outcome import as_verifier
from spectheory.pair import ModelPair
from spectheory.programs import antichains, most_violated_antichain, optimum
from spectheory.programs.budgets import contexts


@dataclass(frozen=True)
class PathDeviation:
    """One path on which the completed output law differs from the target's.

    Attributes:
        path: token names.
        law: the probability that the completed output starts with the path.
        target: the probability the target gives it.
    """

    path: tuple[str, ...]
    law: Any
    target: Any


@dataclass(frozen=True)
class AntichainViolation:
    """A set of prefixes that the output passes through more often than some draft does.

    Attributes:
        antichain: contexts, as tuples of token names.
        excess: sum of D(a) p(a) over it, minus P(some draft passes through it).
    """

    antichain: tuple[tuple[str, ...], ...]
    excess: Any


@dataclass(frozen=True)
class Certificate:
    """Everything that is known of one verifier on one pair, in one place.

    Exact quantities are Fractions, and floats where the arithmetic is float64.

    Attributes:
        verifier: its name.
        vocab, vocab_size, draft_length, num_drafts: the setting: V, L and K.
        draft_process: how the K paths were drawn, ``"iid"`` unless another was asked for.
        arithmetic: ``"exact"`` or ``"float64"``.
        block_efficiency: E[tau + 1], tokens per target call, the correction token included.
        target_matching: whether the output completed to L+1 tokens with the target is distributed as
            the target: exactly for exact arithmetic, otherwise within ``tolerance`` in total variation.
        total_variation: between that completed law and p_{L+1}.
        undefined: the probability that the algorithm stops where its correction token is 0/0.
        prefix_matching: whether the node budgets satisfy every antichain inequality (Thm 4.3), which
            with target_matching is equivalent to validity.  ``None`` where the drafts are not i.i.d. and
            the antichains are too many to list; an ``Outcome`` stops on drafted prefixes by construction.
        first_token_law: of the completed output, one probability per token.
        worst_path: the path of L+1 tokens with the largest deviation; ``None`` if there is none.
        counterexample: the shortest prefix on which the law is wrong, and of those the worst.
        antichain_violation: the most violated antichain; ``None`` if there is none.
        optimum: of the linear program over all valid verifiers, ``None`` where it is too large.
        optimum_float, optimum_lower, optimum_upper: floats, bounds from both sides.
        optimum_note: why ``optimum`` is ``None``, or how it was obtained.
        gap_float: optimum minus block efficiency.
        law: the output law itself.
    """

    verifier: str
    source: str
    vocab: tuple[str, ...]
    draft_length: int
    num_drafts: int
    draft_process: str
    arithmetic: str
    block_efficiency: Any
    target_matching: bool
    total_variation: Any
    undefined: Any
    prefix_matching: bool | None
    first_token_law: tuple[Any, ...]
    worst_path: PathDeviation | None
    counterexample: PathDeviation | None
    antichain_violation: AntichainViolation | None
    optimum: Any
    optimum_float: float | None
    optimum_lower: float | None
    optimum_upper: float | None
    optimum_note: str
    law: OutputLaw

    @property
    def vocab_size(self) -> int:
        """V."""
        return len(self.vocab)

    @property
    def block_efficiency_float(self) -> float:
        """The block efficiency as a float."""
        return float(self.block_efficiency)

    @property
    def gap_float(self) -> float | None:
        """Optimum minus block efficiency, in tokens per target call."""
        return None if self.optimum is None else float(self.optimum - self.block_efficiency)

    @property
    def is_valid(self) -> bool:
        """Target-matching and prefix-matching: the verifier is lossless on this pair."""
        return self.target_matching and self.prefix_matching is not False

    def to_document(self) -> dict[str, Any]:
        """The JSON object of ``spectheory certify --json``.

        Rationals are strings such as ``"20/9"``.  Quantities computed in float64 are null there and
        stand in their ``_float`` fields; the optimum of an exact pair is exact even where the
        verifier's law is not.
        """
        exact = self.arithmetic == "exact"
        optimum_exact = isinstance(self.optimum, Fraction)
        return {
            "verifier": self.verifier,
            "vocab_size": self.vocab_size,
            "draft_length": self.draft_length,
            "num_drafts": self.num_drafts,
            "arithmetic": self.arithmetic,
            "block_efficiency": str(self.block_efficiency) if exact else None,
            "block_efficiency_float": self.block_efficiency_float,
            "target_matching": self.target_matching,
            "total_variation": _plain(self.total_variation),
            "undefined": _plain(self.undefined),
            "prefix_matching": self.prefix_matching,
            "optimum": str(self.optimum) if optimum_exact else None,
            "optimum_float": self.optimum_float,
            "optimum_lower": self.optimum_lower,
            "optimum_upper": self.optimum_upper,
            "optimum_note": self.optimum_note,
            "gap_float": self.gap_float,
            "first_token_law": {
                name: _plain(value) for name, value in zip(self.vocab, self.first_token_law, strict=True)
            },
            "worst_path": _plain(self.worst_path),
            "counterexample": _plain(self.counterexample),
            "antichain_violation": _plain(self.antichain_violation),
        }


def certify(
    verifier: str | Any,
    pair: ModelPair,
    num_drafts: int | None = None,
    *,
    drafts: DraftProcess | None = None,
    tolerance: float = 1e-9,
    with_optimum: bool = True,
    max_tuples: int = DEFAULT_MAX_TUPLES,
) -> Certificate:
    """The certificate of a verifier on an enumerated pair.

    Args:
        verifier: a name, or any object with ``outcome(paths, target_rows, draft_rows)``.
        pair: the models; exact pairs give exact certificates.
        num_drafts: K paths, drafted i.i.d.; 1 if neither it nor ``drafts`` is given.
        drafts: another draft process, instead of ``num_drafts``.
        tolerance: in float64, the total variation and the antichain excess that still count as zero.
        with_optimum: also solve the linear program over all valid verifiers.
        max_tuples: the largest number of tuples of drafted paths that is enumerated.

    Raises:
        EnumerationTooLargeError: the law itself is too large to enumerate.
        InvalidOutcomeError: the verifier does not return conditional laws.

    Example:
        >>> from spectheory import instances
        >>> certificate = certify("token", instances.two_token(2))
        >>> print(certificate.block_efficiency, certificate.optimum, certificate.total_variation)
        19/9 20/9 0
    """
    law = output_law(verifier, pair, num_drafts, drafts=drafts, max_tuples=max_tuples, tolerance=tolerance)
    described = find_verifier(verifier) if isinstance(verifier, str) else as_verifier(verifier)
    slack = 0 if law.pair.is_exact else tolerance
    excess, antichain = _largest_excess(law)
    exceeded = None if excess is None else bool(excess > slack)
    value, lower, upper, note = None, None, None, "not asked for"
    if with_optimum:
        value, lower, upper, note = _optimum(
            pair, law.drafts if law.pair is pair else draft_process(num_drafts, drafts)
        )
    if isinstance(value, float) and law.total_variation <= slack and value < law.block_efficiency <= upper:
        value = float(law.block_efficiency)  # a lossless verifier attains it
    return Certificate(
        verifier=described.name,
        source=described.source,
        vocab=pair.vocab,
        draft_length=pair.draft_length,
        num_drafts=law.num_drafts,
        draft_process=law.drafts.name,
        arithmetic=law.pair.arithmetic,
        block_efficiency=law.block_efficiency,
        target_matching=bool(law.total_variation <= slack),
        total_variation=law.total_variation,
        undefined=law.undefined,
        prefix_matching=None if exceeded is None else not exceeded,
        first_token_law=tuple(law.prefix_law(1)),
        worst_path=_worst_at(law, pair.draft_length + 1, slack),
        counterexample=_shortest_wrong(law, slack),
        antichain_violation=_violation(pair, excess, antichain) if exceeded else None,
        optimum=value,
        optimum_float=None if value is None else float(value),
        optimum_lower=lower,
        optimum_upper=upper,
        optimum_note=note,
        law=law,
    )


def _budget_masses(law: OutputLaw) -> list[np.ndarray]:
    """D(a) p(a) for depths 0..L (0 where p(a) = 0)."""
    depths = range(law.pair.draft_length + 1)
    return [law.node_budgets[depth] * law.pair.target_path_probs(depth) for depth in depths]


def _largest_excess(law: OutputLaw) -> tuple[Any, Sequence[Context]]:
    """The largest sum of D(a) p(a) - P(some draft passes through T) over antichains T, and its T.

    (None, ()) for drafts that are not i.i.d. and too many antichains to list.
    """
    if isinstance(law.drafts, Iid):
        return most_violated_antichain(law.pair, _budget_masses(law), law.num_drafts)
    try:
        members_of_all = antichains(law.pair.vocab_size, law.pair.draft_length)
    except EnumerationTooLargeError:
        return None, ()
    nodes = contexts(law.pair.vocab_size, law.pair.draft_length)
    masses = np.concatenate(_budget_masses(law))
    worst: tuple[Any, Sequence[Context]] = (masses[0] - masses[0], ())
    for row in members_of_all:
        members = np.flatnonzero(row)
        antichain = [nodes[node] for node in members]
        excess = masses[members].sum() - law.drafts.hit_probability(law.pair, antichain)
        worst = max(worst, (excess, antichain), key=lambda found: found[0])
    return worst


def _optimum(pair: ModelPair, drafts: DraftProcess) -> tuple[Any, float | None, float | None, str]:
    try:
        solution = optimum(pair, drafts=drafts)
    except EnumerationTooLargeError as error:
        return None, None, None, str(error)
    beyond_exact = pair.is_exact and not isinstance(solution.value, Fraction)
    note = "too large for the exact program; " if beyond_exact else ""
    return solution.value, solution.lower, solution.upper, note + solution.method


def _worst_at(law: OutputLaw, depth: int, slack: Any) -> PathDeviation | None:
    """The path of this length whose probability is most wrong, if any is wrong."""
    reached = law.prefix_law(depth)
    wanted = law.pair.target_path_probs(depth)
    difference = np.abs(reached - wanted)
    worst = int(np.argmax(difference))
    if difference[worst] <= slack:
        return None
    names = tuple(law.pair.vocab[token] for token in law.pair.context(depth, worst))
    return PathDeviation(names, reached[worst], wanted[worst])


def _shortest_wrong(law: OutputLaw, slack: Any) -> PathDeviation | None:
    for depth in range(1, law.pair.draft_length + 2):
        found = _worst_at(law, depth, slack)
        if found:
            return found
    return None


def _violation(pair: ModelPair, excess: Any, antichain: Any) -> AntichainViolation:
    named = tuple(tuple(pair.vocab[token] for token in context) for context in antichain)
    return AntichainViolation(named, excess)


def _plain(value: Any) -> Any:
    """Rationals as strings, numpy floats as floats, dataclasses as objects, for JSON."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, (PathDeviation, AntichainViolation)):
        return {key: _plain(entry) for key, entry in asdict(value).items()}
    if isinstance(value, (tuple, list)):
        return [_plain(entry) for entry in value]
    return float(value)
