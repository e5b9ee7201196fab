"""certify(): what a verifier outputs, whether that is lossless, and how far it is from the optimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectheory.contexts import Context
from spectheory.documents import both, number_text, plain
from spectheory.drafts import DraftProcess, draft_process
from spectheory.errors import EnumerationTooLargeError
from spectheory.exact_numbers import float_tolerance
from spectheory.law import DEFAULT_MAX_TUPLES, OutputLaw, output_law
from spectheory.pair import ROUNDING_OF_A_ROW, ModelPair, check_pair
from spectheory.programs.interval.interval import CertifiedInterval
from spectheory.programs.optimum import optimum
from spectheory.programs.solving.solution import Solution
from spectheory.results import Result


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
class Counterexample(PathDeviation):
    """The shortest prefix on which the output law is wrong, and the drafts that are most to blame for it.

    Attributes beyond ``PathDeviation``'s:
        drafts: K drafted paths, token names: those that move the law of the prefix furthest from the target's
            (``OutputLaw.cause``).
        given_drafts: the probability that the completed output starts with the path, given these drafts.
    """

    drafts: tuple[tuple[str, ...], ...]
    given_drafts: Any


@dataclass(frozen=True)
class AntichainViolation:
    """A set of prefixes that the output passes through more often than some draft does.

    Attributes:
        antichain: contexts, as tuples of token names.
        excess: sum of D(a) p(a) over it, minus P(some draft passes through it).
    """

    antichain: tuple[tuple[str, ...], ...]
    excess: Any


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Result):
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
        counterexample: the shortest prefix on which the law is wrong, of those the worst, with its cause.
        antichain_violation: the most violated antichain; ``None`` if there is none.
        best: the optimum over all valid verifiers of the pair, whoever is judged: a ``Solution`` or a
            ``CertifiedInterval``; ``None`` where it was not asked for or is out of reach.
        optimum_note: why ``best`` is ``None``, or how it was obtained.
        assumed: what of a user's verifier was taken at its word and checked on a sample only.
        row_defect: how far the sum of a float row of the pair that was given is from 1; where that is more
            than rounding, all rows were divided by their sums before anything was computed.
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
    counterexample: Counterexample | None
    antichain_violation: AntichainViolation | None
    best: Solution | CertifiedInterval | None
    optimum_note: str
    assumed: str
    row_defect: float
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
    def optimum(self) -> Any:
        """The value of ``best``: a Fraction, or a float; ``None`` if there is none."""
        return None if self.best is None else self.best.value

    @property
    def gap_float(self) -> float | None:
        """Optimum minus block efficiency, in tokens per target call; at most this much for an interval."""
        if self.best is None:
            return None
        optimum = self.best.upper if isinstance(self.best, CertifiedInterval) else self.best.value
        return float(optimum - self.block_efficiency)

    @property
    def is_valid(self) -> bool:
        """Target-matching and prefix-matching: the verifier is lossless on this pair."""
        return self.target_matching and self.prefix_matching is not False

    def headline(self) -> str:
        """The verdict."""
        return f"{self.verifier}: {'lossless on this pair' if self.is_valid else 'NOT lossless'}"

    def facts(self) -> list[tuple[str, str]]:
        """The numbers, and for an invalid verifier the counterexample in words."""
        drafts = "1 draft" if self.num_drafts == 1 else f"{self.num_drafts} drafts"
        facts = [
            ("algorithm", self.source),
            (
                "pair",
                f"{self.vocab_size} tokens, draft length {self.draft_length}, {drafts}, "
                f"{self.arithmetic} arithmetic",
            ),
            ("block efficiency", number_text(self.block_efficiency) + " tokens per target call"),
        ]
        if self.best is None:
            facts.append(("optimum", f"not computed: {self.optimum_note}"))
        else:
            exact_gap = isinstance(self.best, Solution)
            gap = (
                number_text(self.optimum - self.block_efficiency)
                if exact_gap
                else f"at most {self.gap_float:.3g}"
            )
            facts.append(("optimum", f"{number_text(self.optimum)} ({self.optimum_note})"))
            facts.append(("gap to the optimum", gap))
        if self.undefined:
            facts.append(("undefined output", f"with probability {_short(self.undefined)} it is 0/0"))
        matching = f"{_YES[self.target_matching]}, total variation {_short(self.total_variation)}"
        facts.append(("target-matching", matching))
        facts.append(("prefix-matching", _YES[self.prefix_matching]))
        if self.assumed:
            facts.append(
                ("assumed", f"{self.assumed}, as the verifier declares; checked on a sample of drafts")
            )
        if self.row_defect > ROUNDING_OF_A_ROW:
            off = f"sums off 1 by up to {self.row_defect:.3g}; every row was divided by its sum"
            facts.append(("rows of the pair", off))
        law = zip(self.vocab, self.first_token_law, strict=True)
        facts.append(
            ("law of the first token", ", ".join(f"{name!r} {_short(value)}" for name, value in law))
        )
        if not self.is_valid:
            facts.append(("counterexample", self.in_words()))
        return facts

    def __eq__(self, other: object) -> bool:
        """The same document of the same models and drafts."""
        return super().__eq__(other) and isinstance(other, Certificate) and other.law == self.law

    __hash__ = Result.__hash__

    def in_words(self) -> str:
        """The smallest counterexample of an invalid verifier as a sentence; ``"none"`` for a valid one."""
        found = self.counterexample
        if found is not None:
            numbers = (found.law, found.target, found.given_drafts)
            law, target, given = (_short(number) for number in numbers)
            drafts = " and ".join(f"({_words(path)})" for path in found.drafts)
            return (
                f"the completed output starts with {_words(found.path)} with probability {law}; the target "
                f"gives {target}. Most to blame are the drafts {drafts}: given them the probability is "
                f"{given}"
            )
        violation = self.antichain_violation
        if violation is None:
            return "none"
        nodes = ", ".join(_words(context) or "the empty prefix" for context in violation.antichain)
        return (
            f"the output passes through {{{nodes}}} more often than any draft does, "
            f"by probability {_short(violation.excess)}: no verifier can do that"
        )

    def to_document(self) -> dict[str, Any]:
        """The JSON object of ``spectheory certify --json``.

        Rationals are strings such as ``"20/9"``.  Quantities computed in float64 are null there and
        stand in their ``_float`` fields; the optimum of an exact pair is exact even where the
        verifier's law is not.
        """
        best = {} if self.best is None else self.best.to_document()
        return {
            "verifier": self.verifier,
            "vocab_size": self.vocab_size,
            "draft_length": self.draft_length,
            "num_drafts": self.num_drafts,
            "draft_process": self.draft_process,
            "arithmetic": self.arithmetic,
            **both("block_efficiency", self.block_efficiency),
            "target_matching": self.target_matching,
            "total_variation": plain(self.total_variation),
            "undefined": plain(self.undefined),
            "prefix_matching": self.prefix_matching,
            "optimum": best.get("value"),
            "optimum_float": best.get("value_float"),
            "optimum_lower": best.get("lower"),
            "optimum_upper": best.get("upper"),
            "optimum_note": self.optimum_note,
            "gap_float": self.gap_float,
            "first_token_law": {
                name: plain(value) for name, value in zip(self.vocab, self.first_token_law, strict=True)
            },
            "worst_path": plain(self.worst_path),
            "counterexample": plain(self.counterexample),
            "antichain_violation": plain(self.antichain_violation),
        }


def certify(
    verifier: str | Any,
    pair: ModelPair,
    drafts: int | DraftProcess = 1,
    *,
    tolerance: float = 1e-9,
    with_optimum: bool = True,
    max_tuples: int = DEFAULT_MAX_TUPLES,
    progress: Callable[[int, int], None] | None = None,
) -> Certificate:
    """The certificate of a verifier on an enumerated pair.

    Args:
        verifier: a name, or any object with ``outcome(paths, target_rows, draft_rows)``.
        pair: the models; exact pairs give exact certificates.
        drafts: K, for paths drafted i.i.d., or another draft process.
        tolerance: in float64, the total variation and the antichain excess that still count as zero.
        with_optimum: also solve the linear program over all valid verifiers.
        max_tuples: the largest number of tuples of drafted paths that is enumerated.
        progress: called with (steps done, steps in all): one per tuple, and V^L for each of the checks that
            follow.

    Raises:
        EnumerationTooLargeError: the law itself is too large to enumerate.
        InvalidOutcomeError: the verifier does not return conditional laws.

    Example:
        >>> from spectheory import instances
        >>> certificate = certify("token", instances.two_token(2))
        >>> print(certificate.block_efficiency, certificate.optimum, certificate.total_variation)
        19/9 20/9 0
    """
    process = draft_process(drafts)
    row_defect, pair = check_pair(pair).row_defect, pair.normalised()
    steps = _Steps(progress, pair.vocab_size**pair.draft_length, 3)
    law = output_law(
        verifier, pair, drafts=process, max_tuples=max_tuples, tolerance=tolerance, progress=steps.enumerated
    )
    slack = float_tolerance(law.pair, tolerance)
    target_matching = bool(law.total_variation <= slack)
    steps.next()
    violation = _violation(law, slack)
    steps.next()
    best, note = _optimum(pair, process) if with_optimum else (None, "not asked for")
    steps.next()
    return Certificate(
        verifier=law.verifier.name,
        source=law.verifier.source,
        vocab=pair.vocab,
        draft_length=pair.draft_length,
        num_drafts=law.num_drafts,
        draft_process=law.process.name,
        arithmetic=law.pair.arithmetic,
        block_efficiency=law.block_efficiency,
        target_matching=target_matching,
        total_variation=law.total_variation,
        undefined=law.undefined,
        prefix_matching=None if law.largest_excess is None else violation is None,
        first_token_law=tuple(law.prefix_law(1)),
        worst_path=_worst_path(law, slack),
        counterexample=_counterexample(law, slack),
        antichain_violation=violation,
        best=best,
        optimum_note=note,
        assumed=law.assumed,
        row_defect=row_defect,
        law=law,
    )


class _Steps:
    """Progress through the tuples, then through ``checks`` steps of ``weight`` each."""

    def __init__(self, progress: Callable[[int, int], None] | None, weight: int, checks: int) -> None:
        self.progress, self.weight, self.checks = progress, weight, checks
        self.done = self.tuples = 0

    def enumerated(self, done: int, total: int) -> None:
        """So many tuples are summed."""
        self.done, self.tuples = done, total
        self._report()

    def next(self) -> None:
        """One check is made."""
        self.done += self.weight
        self._report()

    def _report(self) -> None:
        if self.progress is not None:
            self.progress(self.done, self.tuples + self.checks * self.weight)


def _optimum(pair: ModelPair, process: DraftProcess) -> tuple[Solution | CertifiedInterval | None, str]:
    try:
        best = optimum(pair, drafts=process)
    except EnumerationTooLargeError as error:
        return None, str(error)
    beyond_exact = pair.is_exact and isinstance(best, CertifiedInterval)
    return best, ("too large for the exact program; " if beyond_exact else "") + best.method


def _worst_at(law: OutputLaw, depth: int, slack: Any) -> tuple[Context, Any, Any] | None:
    """(prefix, its probability, the target's) where a probability at this depth is most wrong, if any is."""
    difference = np.abs(law.deviations(depth))
    worst = int(np.argmax(difference))
    if difference[worst] <= slack:
        return None
    return (
        law.pair.context(depth, worst),
        law.prefix_law(depth)[worst],
        law.pair.target_path_probs(depth)[worst],
    )


def _worst_path(law: OutputLaw, slack: Any) -> PathDeviation | None:
    found = _worst_at(law, law.pair.draft_length + 1, slack)
    return None if found is None else PathDeviation(_names(law, found[0]), *found[1:])


def _counterexample(law: OutputLaw, slack: Any) -> Counterexample | None:
    for depth in range(1, law.pair.draft_length + 2):
        found = _worst_at(law, depth, slack)
        if found:
            drafts, given = law.cause(found[0])
            named = tuple(_names(law, path) for path in drafts)
            return Counterexample(_names(law, found[0]), *found[1:], named, given)
    return None


_YES = {True: "yes", False: "NO", None: "not checked"}


def _short(value: Any) -> str:
    """A probability without its decimal, as a list of them is read."""
    return number_text(value, decimal=False)


def _words(names: tuple[str, ...]) -> str:
    """Token names as they are written in quotes, so that spaces and line breaks in them show."""
    return " ".join(repr(name) for name in names)


def _names(law: OutputLaw, context: Context) -> tuple[str, ...]:
    return tuple(law.pair.vocab[token] for token in context)


def _violation(law: OutputLaw, slack: Any) -> AntichainViolation | None:
    """The most violated antichain, if one is violated."""
    excess, antichain = law.largest_excess or (0, ())
    if not excess > slack:
        return None
    return AntichainViolation(tuple(_names(law, context) for context in antichain), excess)
