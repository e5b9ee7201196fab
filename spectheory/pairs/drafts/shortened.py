"""Drafts that a length rule shortens: how many of the drafted tokens are verified."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, ClassVar, NamedTuple

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import float_tolerance
from spectheory.foundation.validation import is_whole
from spectheory.pairs.contexts import Context
from spectheory.pairs.drafts.defect import draft_defect
from spectheory.pairs.drafts.iid import Iid, draft_process
from spectheory.pairs.drafts.kept import AdaptiveDrafts, KeptDrafts, Paths
from spectheory.pairs.drafts.per_path import PerPath
from spectheory.pairs.drafts.process import DraftProcess, whole_paths
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.rows import parse_entry

LengthRule = Callable[[Any, Any], Any]
"""rule(tokens, rows) -> a length from 0 to L, K lengths, or a law of them: length(s) -> probability."""


@dataclass(frozen=True, eq=False)
class Shortened(AdaptiveDrafts):
    """Whole paths are drafted, and a length rule decides how many tokens of each are verified.

    The rule is called with all drafted tokens and with the draft rows along them.  It may ignore what it
    should not read.  ``length_flags`` says which tokens it reads, and ``draft_defect`` whether this matters.

    Attributes:
        drafts: K, for independent paths, or ``PerPath``.  With K paths the verifier is called once on all of
            them, or they are K requests of a batch (``exact.batches``).
        rule: ``rule(tokens, rows)``.  With K = 1, ``tokens`` is one path and ``rows`` its draft rows [L, V];
            otherwise both are tuples of K.  It returns a length, with several paths the common length or K
            lengths, or a law of them: a mapping to probabilities.

    Raises:
        InvalidInputError: the rule returns no length from 0 to L, or the paths are not independent.

    Example:
        >>> from spectheory import ModelPair, certify
        >>> pair = ModelPair.context_free_pair(["1/2", "1/2"], ["9/10", "1/10"], 1)
        >>> drop_unlikely = Shortened(1, lambda tokens, rows: int(rows[0][tokens[0]] > 1 / 2))
        >>> print(certify("token", pair, drop_unlikely).total_variation)
        1/20
    """

    drafts: int | DraftProcess
    rule: LengthRule
    name: ClassVar[str] = "shortened"

    def __post_init__(self) -> None:
        process = draft_process(self.drafts)
        if type(process) not in (Iid, PerPath):
            raise InvalidInputError(
                f"a length rule shortens independent paths, not {process.name}; use a number of drafts, "
                "PerPath, or KeptDrafts with the law of the kept tokens"
            )
        object.__setattr__(self, "drafts", process)
        object.__setattr__(self, "num_drafts", process.num_drafts)

    def base(self) -> DraftProcess:
        return draft_process(self.drafts)

    def laws(self, pair: ModelPair) -> Iterator[tuple[Paths, Any, dict[Paths, Any]]]:
        """Yield (K whole paths, their probability, the law of the kept tokens given them)."""
        models = [self.drafter(pair, number) for number in range(self.num_drafts)]
        for drawn in product(*map(whole_paths, reversed(models))):  # path 0 changes fastest, as in ``Iid``
            paths, probs, rows = zip(*reversed(drawn), strict=True)
            answer = ask(self.rule, paths, rows)
            answer = tuple(answer) if isinstance(answer, list) else answer
            given = answer if isinstance(answer, Mapping) else {answer: 1}
            kept = Counter[Paths]()
            for length, share in given.items():
                kept[cut(paths, length)] += parse_entry(share)  # type: ignore[assignment]
            try:
                yield paths, prod(probs), KeptDrafts(kept).kept_law(pair)
            except InvalidInputError as error:
                raise InvalidInputError(f"a length rule returned {answer!r}: {error}") from None

    def kept_law(self, pair: ModelPair) -> dict[Paths, Any]:
        law: dict[Paths, Any] = {}
        for _, prob, given in self.laws(pair):
            for kept, share in given.items():
                law[kept] = law.get(kept, 0) + prob * share
        return law


def cut(paths: Paths, length: Any) -> Paths:
    """Cut K paths to one length, or to K lengths.  Refuse another answer of a length rule."""
    given = (length,) * len(paths) if is_whole(length) else length
    lengths = tuple(given) if isinstance(given, Iterable) else ()
    most = len(paths[0])
    if len(lengths) != len(paths) or any(not is_whole(n) or not 0 <= n <= most for n in lengths):
        raise InvalidInputError(
            f"a length rule returned {length!r}; expected a number of tokens from 0 to {most}, or "
            f"{len(paths)} of them"
        )
    return tuple(path[:number] for path, number in zip(paths, lengths, strict=True))


def ask(rule: LengthRule, paths: Sequence[Context], rows: Sequence[Any]) -> Any:
    """Call a rule with K paths and their rows, or with the only one."""
    return rule(paths, rows) if len(paths) > 1 else rule(paths[0], rows[0])


class LengthFlags(NamedTuple):
    """Which tokens a length rule reads, found by enumeration (theory.md §8).

    Attributes:
        predictable: for every path by itself, whether token i is verified depends on its tokens before i.
            The other paths count as coins.
        pseudo_stopping: the draft defect is 0 for the rows that the tokens were drawn from.
        stopping_point: the lengths are decided by the kept tokens of all paths together.
    """

    predictable: bool
    pseudo_stopping: bool
    stopping_point: bool


def length_flags(process: Shortened, pair: ModelPair) -> LengthFlags:
    """Find by enumeration which tokens a length rule reads.

    Example:
        >>> from spectheory import instances
        >>> length_flags(Shortened(1, lambda tokens, rows: 1 + (tokens[0] == 0)), instances.two_token(2))
        LengthFlags(predictable=True, pseudo_stopping=True, stopping_point=True)
    """
    drawn, is_right = list(process.laws(pair)), bool(draft_defect(process, pair))
    is_predictable = all(is_stopping_point(_of_path(drawn, k), pair) for k in range(process.num_drafts))
    return LengthFlags(is_predictable, is_right, is_stopping_point(drawn, pair))


Laws = Iterable[tuple[Paths, Any, Mapping[Paths, Any]]]
"""Whole paths, their probability, and the law of the kept tokens given them."""


def _of_path(drawn: Laws, number: int) -> Laws:
    """Take one path by itself, as if the other paths were coins of its length rule.

    P(N >= i | path) is a function of the first i - 1 tokens for every i if and only if P(N = n | path) is a
    function of the first n tokens for every n.  So the rule is predictable if the kept tokens decide.
    """
    masses: dict[Context, Counter[Paths]] = defaultdict(Counter)
    for paths, prob, law in drawn:
        for kept, share in law.items():
            masses[paths[number]][kept[number : number + 1]] += prob * share
    for path, mass in masses.items():
        total = sum(mass.values())
        yield (path,), total, {kept: part / total for kept, part in mass.items()}


def is_stopping_point(drawn: Laws, pair: ModelPair) -> bool:
    """Whether the kept tokens of all paths together decide the lengths (theory.md Statement 8.7).

    Then P(these kept tokens | paths) is equal for all paths that start with them.
    """
    laws = [(paths, law) for paths, _, law in drawn]
    every = {tuple(map(len, kept)) for _, law in laws for kept in law}
    shares: dict[Paths, list[Any]] = defaultdict(list)
    for (paths, law), lengths in product(laws, every):
        kept = cut(paths, lengths)
        shares[kept].append(law.get(kept, 0))
    return all(max(each) - min(each) <= float_tolerance(pair, 1e-9) for each in shares.values())
