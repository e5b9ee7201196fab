"""Verifiers that verify only some of the drafted tokens, for pairs and for decoding with language models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from itertools import product
from typing import Any, NamedTuple, Self

from spectheory.foundation.arrays import Array, namespace, prefix_products, take_token, zero_where
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import fractions_if_exact
from spectheory.foundation.validation import is_whole
from spectheory.pairs.drafts import DraftProcess, Shortened, draft_defect
from spectheory.pairs.drafts.defect import DraftDefect
from spectheory.pairs.drafts.shortened import LengthRule, ask, is_stopping_point
from spectheory.pairs.instances import random_rational, tiny_probabilities
from spectheory.pairs.pair import ModelPair
from spectheory.verification.kept_lengths import AtKeptLengths
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import find_verifier
from spectheory.verification.verifier import Verifier


class Coherence(NamedTuple):
    """Whether the completed law is a martingale (theory.md Statement 8.2); ``None`` if nobody has decided it.

    Attributes:
        in_length: in the common number of tokens of all drafts.
        in_drafts: in the number of drafts.
    """

    in_length: bool | None
    in_drafts: bool | None

    @property
    def adaptive_lengths(self) -> str:
        """Say which length rules keep the verifier lossless, as ``spectheory verifiers`` prints it."""
        return {True: "yes", False: "per path only", None: "not decided"}[self.in_length]


_BOTH, _IN_LENGTH, _NEITHER = Coherence(True, True), Coherence(True, False), Coherence(False, False)

COHERENCE: Mapping[str, Coherence] = {
    "token": _BOTH,
    "block": _BOTH,
    # Its later calls have another target, which depends on the length.  Further drafts are not read.
    "greedy_block": Coherence(False, True),
    # Only because their division factors depend on the number of drafts (Statement 8.2).
    "kseq": _IN_LENGTH,
    "spectr": _IN_LENGTH,
    "multi_round": _BOTH,
    "multi_round_without_replacement": Coherence(None, None),
    "otm": _IN_LENGTH,
    # They weigh the selected path by a law that the length discloses (Statement 8.13).
    "greedy_multipath": _NEITHER,
    "mixed_multipath": _NEITHER,
    "scored_multipath": _NEITHER,
    "optimal_multipath": _NEITHER,
    "traversal": _BOTH,
    "spectr_gbv": _NEITHER,
    "naive_sampling": _BOTH,
    "conditional_transport": _IN_LENGTH,
}
"""Name of a published verifier -> its coherence.  The tests recompute it on pairs."""
PROBES = ((3, 2), (2, 4), (2, 2))
"""(V, L) of the random pairs on which a rule is tried.

Three tokens tell drops from merges, and four depths look-ahead from lags.  Several paths use smaller shapes.
"""
MOST_PROBED = 1_000
"""The most tuples of whole paths of a pair on which a rule is tried: some hundredths of a second."""
PROBED_PAIRS = 4
"""Number of random pairs of each shape and kind: thresholds need rows on both sides of them."""


class WithLengthRule(AtKeptLengths):
    """Verify as many drafted tokens as a length rule says, and no more.

    The paths of a text are drafted whole, and then cut to a common length.  ``certify`` of it on a pair is
    ``certify`` of the verifier with ``Shortened`` drafts.  ``decode`` and ``simulate`` take it too.

    Args:
        verifier: a name or an object.
        rule: ``rule(tokens, rows)`` as in ``Shortened``, and the result one length.  With language models
            ``rows`` are tensors [L, V], or [K, L, V] for K paths.
        across: True for one rule of all texts that are decoded together, such as survival ranking.  It is
            called with the paths of the texts and their rows [B, L, V], and returns B lengths.
        allow_lossy: False to refuse, when the verifier is set up for the drafts, a rule that reads a token
            before it decides whether to verify it, and a verifier that is not coherent in the length.  We try
            the rule on small random pairs.

    Attributes:
        rows, calls: as in ``AtKeptLengths``.

    Raises:
        InvalidInputError: the output would not follow the target (theory.md Statements 8.5, 8.7 and 8.13).

    Example:
        >>> from spectheory import certify, instances
        >>> def stop_after_zero(tokens, rows):
        ...     return next((i + 1 for i, token in enumerate(tokens) if token == 0), len(tokens))
        >>> certify(WithLengthRule("block", stop_after_zero), instances.two_token(2)).verdict
        'lossless'
    """

    def __init__(
        self, verifier: str | Any, rule: LengthRule, *, across: bool = False, allow_lossy: bool = False
    ) -> None:
        super().__init__(find_verifier(verifier), words=" (adaptive length)")
        self.rule, self.across, self.allow_lossy = rule, across, allow_lossy
        self._reasons: dict[int, str | None] = {}  # K -> why it is lossy on K paths; trying a rule takes time

    def allowing_lossy(self) -> WithLengthRule:
        """Return the verifier with ``allow_lossy``; it counts rows and calls together with this one."""
        allowing = copy(self)
        allowing.allow_lossy = True
        return allowing

    def draft_defect(self, num_drafts: int, pair: ModelPair) -> DraftDefect:
        """Compute the draft defect of the rule on independent paths, ``across`` of two requests."""
        return draft_defect(Shortened(2 if self.across else num_drafts, self.rule), pair)

    def bind(self, process: DraftProcess, pair: ModelPair | None = None) -> Self:
        if self.across and (pair is not None or process.num_drafts > 1):
            raise InvalidInputError(
                "a rule across texts needs language models and one path per text; exact.batches.batch_law "
                "has the joint law of requests"
            )
        paths = process.num_drafts
        if paths not in self._reasons:
            self._reasons[paths] = _why_lossy(self.base, self.rule, paths, self.across)
        reason = self._reasons[paths]
        if reason is not None and not self.allow_lossy:
            raise InvalidInputError(reason)
        self.lossless = self.lossless and reason is None  # type: ignore[misc]
        return super().bind(process, pair)

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        kept, tuples = paths + 0, [tuple(map(tuple, each)) for each in paths.tolist()]
        if self.across:
            lengths = self.rule(tuple(path for (path,) in tuples), draft_rows[:, 0])
        else:
            rows = map(fractions_if_exact, draft_rows)
            lengths = [ask(self.rule, *given) for given in zip(tuples, rows, strict=True)]  # type: ignore[arg-type]
        if len(lengths) != len(tuples):
            raise InvalidInputError(f"a length rule returned {len(lengths)} lengths of {len(tuples)} texts")
        for number, length in enumerate(lengths):
            if not is_whole(length) or not 0 <= length <= paths.shape[-1]:
                raise InvalidInputError(
                    f"a length rule returned {length!r}; expected one length from 0 to {paths.shape[-1]}"
                )
            kept[number, :, int(length) :] = -1
        return super().outcome(kept, target_rows, draft_rows)


def _why_lossy(verifier: Verifier, rule: LengthRule, num_drafts: int, across: bool) -> str | None:
    """Say why a verifier with a length rule does not follow the target, or return ``None``."""
    coherence = COHERENCE.get(verifier.name)
    if coherence is not None and coherence.in_length is False and (num_drafts > 1 or verifier.single_path):
        statement = "8.13" if num_drafts > 1 else "8.3"
        others = "multi_round or traversal, or one draft" if num_drafts > 1 else "block"
        return (
            f"{verifier.name} may be lossy with a length rule: it is lossy if the length of its drafts "
            f"depends on them (theory.md Statement {statement}); use {others}"
        )
    paths = 2 if across else num_drafts
    for vocab_size, draft_length in PROBES:
        if vocab_size ** (draft_length * paths) > MOST_PROBED:
            continue
        for seed, drawn in product(range(PROBED_PAIRS), (random_rational, tiny_probabilities)):
            pair = drawn([seed, 8], vocab_size, draft_length)
            if not is_stopping_point(Shortened(paths, rule).laws(pair), pair):
                statement = "8.7" if across else "8.5"
                return (
                    "the length rule reads a token before it decides whether to verify it (theory.md "
                    f"Statement {statement}): decide from earlier tokens, keep the token and stop after it, "
                    "or count a dropped draft as rejected (DroppedAsRejected)"
                )
    return None


class DroppedAsRejected(AtKeptLengths):
    """Drop drafted tokens by their own row, and count a dropped draft as rejected: repair B (Statement 8.10).

    A path is cut at its first dropped token.  The verifier then sees one more token, to which the target
    gives probability 0.  The output is lossless for every verifier that is lossless on whole drafts.

    Args:
        verifier: a name or an object.
        keep: a function row [..., V] -> which tokens are kept, truth values [..., V].

    Attributes:
        rows, calls: as in ``AtKeptLengths``.

    Example:
        >>> from spectheory import ModelPair, certify
        >>> pair = ModelPair.context_free_pair(["1/2", "1/2"], ["9/10", "1/10"], 1)
        >>> certificate = certify(DroppedAsRejected("block", lambda row: row * 0 + (row > 1 / 2)), pair)
        >>> print(certificate.verdict, certificate.block_efficiency)
        lossless 3/2
    """

    def __init__(self, verifier: str | Any, keep: Callable[[Array], Array]) -> None:
        super().__init__(find_verifier(verifier), words=" (dropped as rejected)")
        self.keep = keep

    def bind(self, process: DraftProcess, pair: ModelPair | None = None) -> Self:
        return super().bind(process)  # the pair lacks the extra token

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        xp, vocab_size = namespace(target_rows), target_rows.shape[-1]
        kept = zero_where(self.keep(fractions_if_exact(draft_rows)) == 0, draft_rows)
        # True at i if the first i tokens are kept.
        goes_on = prefix_products(xp.astype(take_token(kept, paths) != 0, xp.int64)) == 1
        self._count(goes_on[:, 0, 1:].sum(), len(paths))
        targets = xp.concat([target_rows, target_rows[..., :1] * 0], axis=-1)
        rows = xp.concat([kept, 1 - xp.sum(kept, axis=-1)[..., None]], axis=-1)
        # After the end the path is the extra token, and the row has all its mass there.
        is_extra = xp.arange(vocab_size + 1, device=paths.device) == vocab_size
        rows = xp.where(goes_on[..., :-1, None], rows, zero_where(~is_extra, rows * 0 + 1))
        padded = xp.where(goes_on[..., 1:], paths, xp.zeros_like(paths) + vocab_size)
        found = self._of(paths.shape[-1]).outcome(padded, targets, rows)

        def correction(path_index: Array, length: Array) -> Array:
            return found.correction(path_index, length)[..., :vocab_size]

        return Outcome(found.stop_probs, correction)
