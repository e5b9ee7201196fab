"""Outcome, what a verifier returns, and the contract a verifier fulfils.

A verifier is not asked for a sample but for its conditional law given the drafted paths.
Everything else in the package follows from that law: the exact output law on an enumerated
pair, the Rao-Blackwell estimate of the block efficiency, and the samples of a decoding loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from spectheory.arrays import Array, namespace, take_path, take_row
from spectheory.drafts import ALL_PROCESSES, DraftProcess
from spectheory.errors import InvalidInputError, InvalidOutcomeError
from spectheory.pair import ModelPair


@dataclass(frozen=True)
class Outcome:
    """The law of (X_{1:tau}, Y) given K drafted paths, batched over leading axes.

    Attributes:
        stop_probs: [..., K, L+1]; entry (k, i) is the probability that the accepted prefix is the
            first i tokens of path k.  A prefix that several paths share is credited to the first
            of them.  Sums to 1 over the last two axes.
        correction: a function (path_index [...], length [...]) -> [..., V], the law of the
            correction token Y given a stop at that prefix, one row per batch element.  Rows are
            computed only when asked for.  Where the stop has probability zero the row may be zero.

    Example:
        >>> import numpy as np
        >>> half = np.full((1, 2), 0.5)
        >>> outcome = Outcome(np.array([[[0.25, 0.75]]]), lambda path_index, length: half)
        >>> outcome.expected_tokens()
        array([1.75])
    """

    stop_probs: Array
    correction: Callable[[Array, Array], Array]

    @staticmethod
    def from_rows(stop_probs: Array, correction_rows: Array) -> Outcome:
        """An outcome whose correction rows are all at hand, ``correction_rows`` [..., K, L+1, V]."""
        return Outcome(
            stop_probs,
            lambda path_index, length: take_row(take_path(correction_rows, path_index), length),
        )

    def length_probs(self) -> Array:
        """P(tau = i | drafts) for i = 0..L, [..., L+1]."""
        return namespace(self.stop_probs).sum(self.stop_probs, axis=-2)

    def expected_tokens(self) -> Array:
        """E[tau + 1 | drafts], tokens per target call given these drafts, [...].

        Averaged over drafts this is the Rao-Blackwell estimate of the block efficiency.
        """
        total = self.stop_probs[..., 0, 0] - self.stop_probs[..., 0, 0]
        for length in range(self.stop_probs.shape[-1]):
            total = total + self.length_probs()[..., length] * (length + 1)
        return total

    def sample(self, generator: Any) -> Sample:
        """Draw (path, length, correction token), one per batch element.

        Args:
            generator: a ``numpy.random.Generator`` for numpy outcomes, a ``torch.Generator`` on
                the same device for torch outcomes.

        Raises:
            InvalidOutcomeError: a stop was drawn whose correction row has no mass: what the verifier
                gave is not a law.
        """
        lengths = self.stop_probs.shape[-1]
        flat = self.stop_probs.reshape((*self.stop_probs.shape[:-2], -1))
        stop = sample_rows(flat, generator)
        path_index, length = stop // lengths, stop % lengths
        return Sample(path_index, length, sample_rows(self.correction(path_index, length), generator))


@dataclass(frozen=True)
class Sample:
    """One draw from an ``Outcome`` per batch element; all fields have shape [...]."""

    path_index: Array
    length: Array
    token: Array


def sample_rows(rows: Array, generator: Any) -> Array:
    """One index per row, drawn with probability proportional to the entries.  [..., N] -> [...]

    By inversion of the cumulative sum in float64.  An entry of zero is never drawn: the search runs
    over entries with mass only, for the first whose share of the total exceeds u in [0, 1); the
    largest share is exactly 1.

    Raises:
        InvalidOutcomeError: a row has no mass.

    Example:
        >>> sample_rows(np.array([[0.0, 1.0, 0.0]]), np.random.default_rng(0))
        array([1])
    """
    xp = namespace(rows)
    rows = xp.astype(rows, xp.float64)
    # A parallel cumulative sum may differ in the last bits even across a zero, so entries without
    # mass are masked rather than trusted to repeat their neighbour.
    cumulative = xp.where(rows > 0, xp.cumulative_sum(rows, axis=-1), xp.zeros_like(rows))
    total = xp.max(cumulative, axis=-1)[..., None]
    if not bool(xp.all(total > 0)):
        raise InvalidOutcomeError("cannot sample from a row without mass")
    # The share, not u * total: that product can round to 0 or to the total itself.
    beyond = cumulative / total > _uniform(generator, rows)
    return xp.argmax(xp.astype(beyond, xp.int64), axis=-1)


def _uniform(generator: Any, like: Array) -> Array:
    """Uniform numbers in [0, 1), shape [..., 1], of the type and device of ``like``."""
    shape = (*like.shape[:-1], 1)
    if isinstance(like, np.ndarray):
        return generator.random(shape)
    import torch

    return torch.rand(shape, generator=generator, device=like.device, dtype=torch.float64)


@runtime_checkable
class SupportsOutcome(Protocol):
    """The whole contract: an object with ``outcome(paths, target_rows, draft_rows)``."""

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome: ...


class Verifier(ABC):
    """A verification algorithm: one definition, run on exact rationals, float64 and torch.

    Class attributes:
        name: the name in tables and on the command line.
        source: paper and algorithm or equation.
        single_path: only the first drafted path is looked at.
        exact: the law is rational for rational rows; otherwise it is computed in float64.
        exchangeable: permuting the drafts leaves the law of the accepted prefix and the
            correction unchanged, so that multisets of drafts can be enumerated, not tuples.
        draft_processes: names of the draft processes the algorithm is meant for (``drafts.py``).
        lossless: what is claimed, for one iteration on its own; a certificate decides it.
        max_draft_length: the longest drafted path it takes, ``None`` for any.

    A verifier that changes the target of the following tokens also has a method
    ``modified_target_rows``, see ``iteration.py``.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    single_path: ClassVar[bool] = False
    exact: ClassVar[bool] = True
    exchangeable: ClassVar[bool] = False
    draft_processes: ClassVar[frozenset[str]] = frozenset({"iid"})
    lossless: ClassVar[bool] = True
    max_draft_length: ClassVar[int | None] = None

    def for_pair(self, pair: ModelPair, process: DraftProcess) -> Verifier:
        """The verifier set up for one pair and draft process; most need the process only.

        Raises:
            InvalidInputError: the algorithm is not meant for the process.
        """
        return self.for_drafts(process)

    def for_drafts(self, process: DraftProcess) -> Verifier:
        """The verifier set up for a draft process.

        Raises:
            InvalidInputError: the algorithm is not meant for it.
        """
        if process.name not in self.draft_processes:
            known = ", ".join(sorted(self.draft_processes))
            raise InvalidInputError(
                f"verifier {self.name!r} is not valid for {process.name!r} drafts; it takes {known}"
            )
        return self

    @abstractmethod
    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        """The conditional law of the output given the drafted paths.

        Args:
            paths: [..., K, L] token ids, K drafted paths of length L.
            target_rows: [..., K, L+1, V] target conditionals p(. | a_{1:i}) along each path,
                depths 0..L; paths that share a prefix carry the same row there.
            draft_rows: [..., K, L, V] draft conditionals q(. | a_{1:i}), depths 0..L-1.

        Returns:
            The ``Outcome``, with the leading axes of ``paths``.
        """

    def __repr__(self) -> str:
        return f"<verifier {self.name}>"


class _Adapted(Verifier):
    """A user's own object with ``outcome``; what it does not say of itself takes the safe default."""

    def __init__(self, user_object: SupportsOutcome) -> None:
        self.user_object = user_object
        for attribute in ("single_path", "exact", "exchangeable"):
            setattr(self, attribute, getattr(user_object, attribute, getattr(Verifier, attribute)))
        # Whatever the user asks to have judged is judged; the certificate says what comes out.
        self.draft_processes = getattr(user_object, "draft_processes", ALL_PROCESSES)  # type: ignore[misc]
        self.name = getattr(user_object, "name", type(user_object).__name__)  # type: ignore[misc]
        self.source = getattr(user_object, "source", "user-defined")  # type: ignore[misc]

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        try:
            outcome = self.user_object.outcome(paths, target_rows, draft_rows)
        except InvalidInputError:
            raise
        except Exception as error:
            raise InvalidOutcomeError(
                f"verifier {self.name!r} failed: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(outcome, Outcome):
            raise InvalidOutcomeError(
                f"verifier {self.name!r} returned {type(outcome).__name__}, expected an Outcome"
            )
        return outcome


def as_verifier(candidate: Any) -> Verifier:
    """``candidate`` itself when it is a ``Verifier``, otherwise a user's object adapted to one.

    Raises:
        InvalidInputError: it has no ``outcome`` method.
    """
    if isinstance(candidate, Verifier):
        return candidate
    if isinstance(candidate, type) or not isinstance(candidate, SupportsOutcome):
        raise InvalidInputError(
            f"{candidate!r} is not a verifier; expected an object with "
            "outcome(paths, target_rows, draft_rows) -> Outcome"
        )
    return _Adapted(candidate)


def is_users_own(verifier: Verifier) -> bool:
    """Whether ``as_verifier`` adapted a user's object, which then meets Fractions, not fmpq."""
    return isinstance(verifier, _Adapted)


def first_path_with_prefix(paths: Array) -> Array:
    """For each path k and length i, the first path that shares the prefix a_{1:i}.

    [..., K, L] -> [..., K, L+1]; entry (k, 0) is 0, because all paths share the empty prefix.

    Example:
        >>> import numpy as np
        >>> first_path_with_prefix(np.array([[0, 1], [1, 0], [0, 0]]))
        array([[0, 0, 0],
               [0, 1, 1],
               [0, 0, 2]])
    """
    xp = namespace(paths)
    return xp.argmax(xp.astype(shared_prefixes(paths), xp.int64), axis=-2)


def shared_prefixes(paths: Array) -> Array:
    """Whether paths k and j agree on their first i tokens.  [..., K, L] -> bool [..., K, K, L+1]

    Indexed [..., k, j, i]; symmetric in k and j.
    """
    xp = namespace(paths)
    agree = xp.astype(paths[..., :, None, :] == paths[..., None, :, :], xp.int64)
    empty = xp.ones_like(agree[..., :1])
    return xp.cumulative_prod(xp.concat([empty, agree], axis=-1), axis=-1) == 1


def credit_to_first(paths: Array, path_index: Array, length_probs: Array) -> Array:
    """Stop probabilities of one chosen path, credited to the first path with each prefix.

    Args:
        paths: [..., K, L].
        path_index: [...], the chosen path.
        length_probs: [..., L+1], the law of tau on it.

    Returns:
        [..., K, L+1].
    """
    xp = namespace(length_probs)
    holder = take_path(first_path_with_prefix(paths), path_index)[..., None, :]
    num_drafts = paths.shape[-2]
    numbers = namespace(paths).arange(num_drafts, device=paths.device)[:, None]
    spread = length_probs[..., None, :] + xp.zeros_like(numbers)
    return xp.where(holder == numbers, spread, spread - spread)
