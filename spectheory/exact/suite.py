"""From a verdict on one pair to a verdict on a verifier: a suite of pairs, every one certified exactly.

"Lossless" on one pair says little: with two tokens a wrong residual is normalised away, with one drafted
token no prefix is weighed, with context-free models no row is stale.  The standard suite tells every
known-wrong verifier of ``spectheory.defects`` from the lossless verifiers.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

from spectheory import instances
from spectheory.exact.certificate import Certificate, certify
from spectheory.exact.law import output_law
from spectheory.foundation.documents import count_text, to_json
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.foundation.results import Result, Templates
from spectheory.foundation.validation import unknown_name
from spectheory.pairs.drafts import ALL_PROCESSES, DraftProcess, Iid, PerPath, PrefixTree, WithoutReplacement
from spectheory.pairs.pair import ModelPair
from spectheory.verification.defective import defects
from spectheory.verification.resolve import find_verifier
from spectheory.verification.verifier import UserVerifier, Verifier

_NAMED: Mapping[str, tuple[int, ...]] = {
    "two_token": (1, 2),
    "three_token_reversed": (1, 2),
    "bernoulli_quarter_half": (2,),
    "bernoulli_quarter_one": (2,),
    "bernoulli_one_half": (1,),
    "uniform_4_2": (2,),
    "uniform_equal": (1,),
    "equal_models": (2,),
    "disjoint_supports": (2,),
    "partial_overlap": (2,),
    "sticky_chain": (2,),
    "two_residual_tokens": (1, 2),
}
"""Named instances and their draft lengths."""
_RANDOM: tuple[tuple[int, int, int], ...] = ((6, 3, 2), (5, 2, 1), (3, 3, 1), (4, 2, 2), (6, 3, 1))
"""(seed, V, L): random pairs that tell defects apart which the named ones do not."""


def standard_pairs() -> dict[str, ModelPair]:
    """The pairs of the kill matrix: short named instances and a few random ones, all exact.

    Labels end in the draft length, ``"two_token-L2"``; random ones begin with seed and vocabulary
    size.  Every defect is shown by one pair at least, and no two pairs show the same defects.

    Example:
        >>> standard_pairs()["two_token-L2"].draft_length
        2
    """
    named = [(name, length) for name, lengths in _NAMED.items() for length in lengths]
    pairs = {f"{name}-L{length}": instances.NAMED[name](length) for name, length in named}
    pairs |= {
        f"random_seed{seed}_V{vocab_size}-L{length}": instances.random_rational(seed, vocab_size, length)
        for seed, vocab_size, length in _RANDOM
    }
    return pairs


def kill_matrix(
    pairs: Mapping[str, ModelPair] | None = None,
    drafts: int | DraftProcess = 2,
    *,
    verifiers: Mapping[str, Any] | None = None,
) -> dict[str, dict[str, Any]]:
    """The defect of every known-wrong verifier on every pair, as a total variation.

    Between the output completed to L+1 tokens with the target and p_{L+1} (theory.md Statement 1.1).  A pair
    kills a defect where the entry is not zero; a lossless verifier has zeros only.

    Args:
        pairs: label -> pair; ``standard_pairs()`` if not given.
        drafts: K, for paths drafted i.i.d., or another draft process; verifiers of
            one path look at the first.
        verifiers: name -> verifier to judge; ``defects`` if not given.

    Returns:
        name -> label -> total variation: a Fraction for an exact pair and an exact verifier (all
        defects are), otherwise a float.

    Raises:
        InvalidInputError: ``drafts`` is neither a whole number of at least 1 nor a draft process.
        InvalidOutcomeError: a verifier returned something that is not a conditional law.

    Example:
        >>> from spectheory import instances
        >>> matrix = kill_matrix({"two_token-L1": instances.two_token(1)})
        >>> print(matrix["target_correction"]["two_token-L1"], matrix["shared_uniform"]["two_token-L1"])
        1/9 0
    """
    table = standard_pairs() if pairs is None else pairs
    judged = defects if verifiers is None else verifiers
    return {
        name: {label: output_law(verifier, pair, drafts).total_variation for label, pair in table.items()}
        for name, verifier in judged.items()
    }


# ------------------------------------------------------------------------- the standard suite


@dataclass(frozen=True)
class SuiteCase:
    """One pair of a suite and how its paths are drafted."""

    name: str
    pair: ModelPair
    process: DraftProcess

    def __str__(self) -> str:
        return f"{self.name}, {_in_words(self.process)}"


@dataclass(frozen=True)
class CaseVerdict:
    """The verdict on a verifier in one case.

    Attributes:
        case: the name of the case with its draft process.
        is_lossless: on this pair.
        total_variation: of the completed output from the target.
        block_efficiency: tokens per target call.
    """

    case: str
    is_lossless: bool
    total_variation: Any
    block_efficiency: Any


@dataclass(frozen=True, eq=False, repr=False)
class SuiteCertificate(Result):
    """The verdicts of a suite on one verifier.

    Attributes:
        verifier, source: its name and where it is from.
        verdicts: one per judged case.
        counterexample: the certificate of the first case on which the verifier is not lossless; the cases of
            the standard suite are sorted by size.
        refused: the reason of the verifier for every case that it refuses.
    """

    verifier: str
    source: str
    verdicts: tuple[CaseVerdict, ...]
    counterexample: Certificate | None
    refused: Mapping[str, str]

    @property
    def is_lossless(self) -> bool:
        """Whether the verifier is lossless on every judged case, and at least one case was judged."""
        return bool(self.verdicts) and all(verdict.is_lossless for verdict in self.verdicts)

    @property
    def failures(self) -> tuple[CaseVerdict, ...]:
        """The cases on which the verifier is not lossless."""
        return tuple(verdict for verdict in self.verdicts if not verdict.is_lossless)

    facts: ClassVar[Templates] = {
        "algorithm": "{algorithm}",
        "cases": "{cases} of a pair and its drafts, {failures} failed",
        "refused": "{refusals}, such as {first_refusal}",
        "smallest failure": "{smallest_failure}",
        "counterexample": "{in_words}",
    }

    def headline(self) -> str:
        """The verdict."""
        verdict = "lossless" if self.is_lossless else "NOT lossless"
        refused = f", {len(self.refused)} refused" if self.refused else ""
        return f"{self.verifier}: {verdict} on {count_text(len(self.verdicts), 'case')} of the suite{refused}"

    def shown(self) -> dict[str, Any]:
        """The source, one refusal and the smallest counterexample, in words."""
        found = self.counterexample
        return {
            "algorithm": self.source,
            "refusals": len(self.refused),
            "first_refusal": next((f"{case}: {reason}" for case, reason in self.refused.items()), None),
            "smallest_failure": None if found is None else self.failures[0].case,
            "in_words": None if found is None else found.in_words(),
        }

    def to_document(self) -> dict[str, Any]:
        """The JSON object of ``spectheory certify --suite --json``."""
        found = self.counterexample
        return {
            "verifier": self.verifier,
            "lossless": self.is_lossless,
            "cases": len(self.verdicts),
            "failures": len(self.failures),
            "refused": dict(self.refused),
            "counterexample": None if found is None else found.to_document(),
            "verdicts": [to_json(verdict) for verdict in self.verdicts],
        }


def certify_suite(
    verifier: str | Any,
    suite: Iterable[SuiteCase] | None = None,
    *,
    stop_at_first: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> SuiteCertificate:
    """Certify a verifier on every pair of a suite.

    Args:
        verifier: a name, ``"package.module:attribute"``, or any object with ``outcome``.
        suite: the cases; by default ``standard_suite`` for the draft processes the verifier is meant for.
        stop_at_first: whether to stop at the first pair on which it is not lossless.
        progress: called with (cases done, cases in all).

    Raises:
        InvalidInputError: the verifier is not one, or its ``bind`` refuses every case.
        InvalidOutcomeError: the verifier fails, or does not return conditional laws.

    Example:
        >>> from spectheory.verification.defective import defects
        >>> found = certify_suite(defects["shared_uniform"], stop_at_first=True)
        >>> found.is_lossless, found.verdicts[-1].case
        (False, 'random_seed6_V3-L1, 1 draft')
    """
    judged = find_verifier(verifier)
    cases = list(suite_for(judged) if suite is None else suite)
    for case in cases:
        if not isinstance(case, SuiteCase):
            raise InvalidInputError(
                f"a suite is made of SuiteCase objects, got {case!r}; see standard_suite()"
            )
    verdicts: list[CaseVerdict] = []
    refused: dict[str, str] = {}
    counterexample = None
    for number, case in enumerate(cases):
        if progress is not None:
            progress(number, len(cases))
        try:
            found = certify(judged, case.pair, drafts=case.process, with_optimum=False)
        except InvalidOutcomeError:
            raise
        except InvalidInputError:
            try:
                judged.bind(case.process, case.pair)  # asks again, since only a refusal to bind is recorded
            except InvalidInputError as error:
                refused[str(case)] = str(error)
                continue
            raise
        verdicts.append(CaseVerdict(str(case), found.is_valid, found.total_variation, found.block_efficiency))
        if not found.is_valid:
            counterexample = counterexample or found
            if stop_at_first:
                break
    if progress is not None:
        progress(len(cases), len(cases))
    if not verdicts:
        reason = next(iter(refused.values()), f"there are {len(cases)} cases for it")
        raise InvalidInputError(f"verifier {judged.name!r} was judged on no case of the suite: {reason}")
    return SuiteCertificate(judged.name, judged.source, tuple(verdicts), counterexample, refused)


def suite_for(verifier: Verifier) -> tuple[SuiteCase, ...]:
    """The standard suite for the draft processes and draft lengths that a verifier takes.

    A user's object that names no draft processes is judged on i.i.d. drafts.
    """
    silent = isinstance(verifier, UserVerifier) and not hasattr(verifier.user_object, "draft_processes")
    cases = standard_suite(("iid",) if silent else verifier.draft_processes)
    limit = verifier.max_draft_length
    return tuple(case for case in cases if limit is None or case.pair.draft_length <= limit)


MAX_TUPLES = 700
"""The most tuples of drafted paths of one case; a suite then takes seconds."""


def standard_suite(processes: Collection[str] = ("iid",)) -> tuple[SuiteCase, ...]:
    """Exact pairs with zeros, ties, equal models, disjoint supports, tiny probabilities and several residual
    tokens; up to 6 tokens, 4 drafted tokens and 4 drafts.

    Args:
        processes: the names of the draft processes; by default paths are drafted i.i.d.

    Returns:
        The cases, those with few tuples of drafted paths first.

    Example:
        >>> suite = standard_suite()
        >>> max(case.pair.vocab_size for case in suite), max(case.process.num_drafts for case in suite)
        (6, 4)
    """
    if isinstance(processes, str):
        processes = (processes,)
    for name in processes:
        if name not in ALL_PROCESSES:
            raise unknown_name("draft process", name, sorted(ALL_PROCESSES))
    return _suite_of(frozenset(processes))


@cache
def _suite_of(processes: frozenset[str]) -> tuple[SuiteCase, ...]:
    """The cases, cached, so that verifiers share the computations on a pair."""
    cases = [
        (process.count_tuples(pair), SuiteCase(name, pair, process))
        for name, pair in _suite_pairs().items()
        for process in _drafted(pair, processes)
        if process.count_tuples(pair) <= MAX_TUPLES
    ]
    return tuple(case for _, case in sorted(cases, key=lambda entry: entry[0]))


def _suite_pairs() -> dict[str, ModelPair]:
    shapes = (
        [(size, 1) for size in range(2, 7)] + [(size, 2) for size in range(2, 6)] + [(2, 3), (3, 3), (2, 4)]
    )
    pairs = standard_pairs()
    for number, shape in enumerate(shapes):
        random, tiny = (100 + number, *shape), (200 + number, *shape)
        pairs["random_seed{}_V{}-L{}".format(*random)] = instances.random_rational(*random)
        pairs["tiny_seed{}_V{}-L{}".format(*tiny)] = instances.tiny_probabilities(*tiny)
    return pairs


def _drafted(pair: ModelPair, processes: Collection[str]) -> Iterator[DraftProcess]:
    L = pair.draft_length
    if "iid" in processes:
        yield from (Iid(num_drafts) for num_drafts in (1, 2, 3, 4))
    for name, tree in (("prefix_tree", PrefixTree), ("without_replacement", WithoutReplacement)):
        if name not in processes:
            continue
        for widths in ((2, *[1] * (L - 1)), (*[1] * (L - 1), 2), (2,) * L, (3, *[1] * (L - 1))):
            process = tree(widths)
            try:
                process.check(pair)
            except InvalidInputError:  # fewer tokens with mass than a width asks for
                continue
            yield process
    if "per_path" in processes:
        # The second path has another draft model: that of the pair, mixed with the uniform row.
        levels = tuple((level + Fraction(1, pair.vocab_size)) / 2 for level in pair.draft)
        other = ModelPair(pair.target, levels, pair.vocab)
        yield from (PerPath((pair, other)), PerPath((other, pair)))


def _in_words(process: DraftProcess) -> str:
    number = process.num_drafts
    drafts = count_text(number, "draft")
    widths = getattr(process, "widths", None)
    shape = f" {','.join(map(str, widths))}" if widths else ""
    return drafts if process.name == "iid" else f"{drafts} ({process.name}{shape})"
