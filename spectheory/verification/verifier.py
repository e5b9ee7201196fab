"""The interface of a verifier, and the registry of verifiers.

A verifier is an object with ``outcome(paths, target_rows, draft_rows) -> Outcome``.  A user's object needs
nothing else.  It may have any other attribute or method of ``Verifier``, and these are used too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from copy import copy
from importlib import import_module
from typing import Any, ClassVar, Self

from spectheory.foundation.arrays import Array, namespace
from spectheory.foundation.documents import count_text
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.kernels import choice
from spectheory.foundation.validation import unknown_name
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.pair import ModelPair
from spectheory.verification.outcome import Outcome

ModifiedTargetRows = Callable[[Array, Array, Array, Array, int], Array]


class Verifier(ABC):
    """A verification algorithm: one definition, run on exact rationals, float64 and torch.

    A new one is a file with a subclass and a line in a registry: ``verification.algorithms`` for published
    algorithms, ``verification.defective`` for known-wrong ones.

    Attributes:
        name: the name in tables and on the command line.
        source: paper and algorithm or equation, the paper by its key in ``docs/references.bib``.
        single_path: the law depends on the first drafted path only.
        exact: the law is rational for rational rows; otherwise it is computed in float64.
        exchangeable: permuting the drafts leaves the law of the accepted prefix and the
            correction unchanged, so that multisets of drafts can be enumerated, not tuples.
        draft_processes: names of the draft processes the algorithm is meant for (``drafts.py``).
        lossless: the claim for a single iteration; a certificate decides it.
        max_draft_length: the longest drafted path, ``None`` for any.
        modified_target_rows: a method, for an algorithm that is lossless only if the tokens that follow an
            iteration are drawn from a changed target; ``None`` for all others.  Its signature is
            (target_rows [..., V], draft_rows [..., V], target_path_probs [...], draft_path_probs [...],
            num_drafts) -> [..., V]: the target's row at a context beyond the accepted prefix, from both
            models' rows and path probabilities there, counted from where the iteration started.  See
            ``iteration.py``.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    single_path: ClassVar[bool] = False
    exact: ClassVar[bool] = True
    exchangeable: ClassVar[bool] = False
    draft_processes: ClassVar[Collection[str]] = frozenset({"iid"})
    lossless: ClassVar[bool] = True
    max_draft_length: ClassVar[int | None] = None
    modified_target_rows: ModifiedTargetRows | None = None

    def bind(self, process: DraftProcess, pair: ModelPair | None = None) -> Verifier:
        """The verifier, set up for a draft process and, if given, for an enumerated pair.

        The default is the verifier itself.  An algorithm that needs more than the rows on the drafted paths
        (which paths share a draw, the models at every context) returns a copy that holds them.

        Raises:
            InvalidInputError: the algorithm is not meant for the process or the pair.
        """
        if process.name not in self.draft_processes:
            known = ", ".join(sorted(self.draft_processes))
            raise InvalidInputError(
                f"verifier {self.name!r} is not valid for {process.name!r} drafts; it takes {known}"
            )
        if self.max_draft_length is not None and pair is not None:
            self.check_draft_length(pair.draft_length)
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

    def compiled(self, **options: Any) -> Verifier:
        """The verifier with its torch code compiled by ``torch.compile``.

        Outcome and sample are one graph, without breaks: rows are read once, and no intermediate array is
        written.  It runs when the outcome is used, not before.  The laws are those of the verifier itself up
        to rounding, and so are the samples of a seed.  Numpy arrays and rationals go to the verifier itself.

        The first call compiles, which takes from seconds to a minute, the second size of the batch once more,
        and later ones do not.  The backend "inductor", the default, needs a C++ compiler on the CPU and
        Triton on a GPU.  torch refuses ``scored_multipath`` and verifiers that enumerate the vocabulary.

        Args:
            options: of ``torch.compile``, such as ``backend`` or ``mode``.

        Example:
            >>> import torch
            >>> from spectheory import verifiers
            >>> paths = torch.tensor([[[0, 1]]])
            >>> rows = torch.full((1, 1, 3, 2), 0.5, dtype=torch.float64)
            >>> block = verifiers["block"].compiled(backend="eager")
            >>> block.outcome(paths, rows, rows[:, :, :2]).expected_tokens()
            tensor([3.], dtype=torch.float64)
        """
        # By name, as the registries do: the module holds a subclass of this class.
        compilation = import_module("spectheory.verification.compilation")
        return compilation.compiled(self, options)

    def check_draft_length(self, draft_length: int) -> None:
        """Refuse drafted paths that are longer than the algorithm takes."""
        if self.max_draft_length is not None and draft_length > self.max_draft_length:
            raise InvalidInputError(
                f"verifier {self.name!r} takes drafted paths of at most "
                f"{count_text(self.max_draft_length, 'token')}, got draft_length {draft_length}; draft fewer"
            )

    def __repr__(self) -> str:
        return f"<verifier {self.name}>"


class TreeVerifier(Verifier):
    """A verifier of drafts that may branch.  ``bind`` gives it the draws of the process.

    On a tree, paths that repeat an earlier path's draw count as one draft.  Counted as several drafts they
    would not be independent, and the output would not follow the target.
    """

    _process: DraftProcess | None = None

    def bind(self, process: DraftProcess, pair: ModelPair | None = None) -> Self:
        super().bind(process, pair)
        configured = copy(self)
        configured._process = process
        return configured

    def draws(self, paths: Array) -> Array:
        """Mask of the tokens that a path draws itself, [K, L]; all where no process was bound."""
        num_drafts, length = paths.shape[-2:]
        xp = namespace(paths)
        if self._process is None:
            return xp.ones((num_drafts, length), dtype=xp.bool, device=paths.device)
        draws = self._process.draws(length)
        if draws.shape != (num_drafts, length):
            raise InvalidInputError(
                f"verifier {self.name!r} was set up for {self._process}, which draws "
                f"{self._process.num_drafts} paths, but got {num_drafts}; set it up with bind"
            )
        return choice.on_device_of(paths, draws)


_REGISTERED: set[str] = set()
"""The names in all registries."""


def is_registered(name: str) -> bool:
    """True if a verifier of the package has this name."""
    return name in _REGISTERED


class Registry(Mapping[str, Verifier]):
    """Names of verifiers, each imported and made on first use.

    Args:
        package: where the modules are.
        entries: name -> ``"module:Class"``, the class to be called without arguments.

    Example:
        >>> Registry("spectheory.verification.algorithms", {"token": "one_path.token:Token"})["token"]
        <verifier token>
    """

    def __init__(self, package: str, entries: Mapping[str, str]) -> None:
        self._package, self._entries = package, entries
        _REGISTERED.update(entries)
        self._made: dict[str, Verifier] = {}

    def __getitem__(self, name: str) -> Verifier:
        if name not in self._entries:
            raise unknown_name("verifier", name, self._entries)
        if name not in self._made:
            module, _, kind = self._entries[name].partition(":")
            self._made[name] = getattr(import_module(f"{self._package}.{module}"), kind)()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<verifiers {', '.join(self)}>"
