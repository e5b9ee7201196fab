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

    To add a verifier, write a file with a subclass and add a line to a registry: ``verification.algorithms``
    for published algorithms, ``verification.defective`` for known-wrong ones.

    Attributes:
        name: the name in tables and on the command line.
        source: paper and algorithm or equation, the paper by its key in ``docs/references.bib``.
        single_path: True if the law depends on the first drafted path only.
        exact: True if the law is rational for rational rows.  If False, the law is computed in float64.
        exchangeable: True if permuting the drafts leaves the law of the accepted prefix and the correction
            unchanged.  Then multisets of drafts are enumerated, not tuples.
        draft_processes: names of the draft processes the algorithm is meant for (``pairs/drafts``).
        lossless: the claim that one iteration is lossless; a certificate decides whether it holds.
        max_draft_length: the longest drafted path, ``None`` for any.
        modified_target_rows: a method, for an algorithm that is lossless only if the tokens that follow an
            iteration are drawn from a changed target; ``None`` for all others.  Its signature is
            (target_rows [..., V], draft_rows [..., V], target_path_probs [...], draft_path_probs [...],
            num_drafts) -> [..., V].  It returns the target's row at a context beyond the accepted prefix,
            from both models' rows and path probabilities there.  Path probabilities are counted from the
            start of the iteration.  See ``modification.py``.
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
        """Set the verifier up for a draft process and, if given, for an enumerated pair.

        The default returns the verifier itself.  Some algorithms need more than the rows on the drafted
        paths: which paths share a draw, or the models at every context.  They return a copy that holds these.

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
        """Compute the conditional law of the output given the drafted paths.

        Args:
            paths: [..., K, L] token ids, K drafted paths of length L.
            target_rows: [..., K, L+1, V] target conditionals p(. | a_{1:i}) along each path,
                depths 0..L.  Paths that share a prefix hold the same row there.
            draft_rows: [..., K, L, V] draft conditionals q(. | a_{1:i}), depths 0..L-1.

        Returns:
            The ``Outcome``, with the leading axes of ``paths``.
        """

    def compiled(self, **options: Any) -> Verifier:
        """Return this verifier with its torch code compiled by ``torch.compile``.

        Outcome and sample are one graph, without breaks: rows are read once, and no intermediate array is
        written.  The graph runs when the outcome is used, not before.  Laws, and samples of a given seed,
        equal the original verifier's up to rounding.  Numpy arrays, rationals too, go to the original one.

        The first call compiles, which takes from seconds to a minute.  The second batch size compiles once
        more, and later sizes do not.  The default backend "inductor" needs a C++ compiler on the CPU and
        Triton on a GPU.  torch refuses ``scored_multipath`` and verifiers that enumerate the vocabulary.

        Args:
            options: keyword arguments of ``torch.compile``, such as ``backend`` or ``mode``.

        Example:
            >>> import torch
            >>> from spectheory import verifiers
            >>> paths = torch.tensor([[[0, 1]]])
            >>> rows = torch.full((1, 1, 3, 2), 0.5, dtype=torch.float64)
            >>> block = verifiers["block"].compiled(backend="eager")
            >>> block.outcome(paths, rows, rows[:, :, :2]).expected_tokens()
            tensor([3.], dtype=torch.float64)
        """
        # Import by name, because the module imports this one for a subclass.
        compilation = import_module("spectheory.verification.compilation")
        return compilation.compiled(self, options)

    def check_draft_length(self, draft_length: int) -> None:
        """Raise ``InvalidInputError`` if the drafted paths are longer than ``max_draft_length``."""
        if self.max_draft_length is not None and draft_length > self.max_draft_length:
            raise InvalidInputError(
                f"verifier {self.name!r} takes drafted paths of at most "
                f"{count_text(self.max_draft_length, 'token')}, got draft_length {draft_length}; draft fewer"
            )

    def __repr__(self) -> str:
        return f"<verifier {self.name}>"


class TreeVerifier(Verifier):
    """A verifier of drafts that may form a tree.  ``bind`` tells it which tokens each path draws itself.

    On a tree, paths that repeat an earlier path's draw count as one draft.  If they counted as several
    drafts, these would not be independent, and the output would not follow the target.
    """

    _process: DraftProcess | None = None

    def bind(self, process: DraftProcess, pair: ModelPair | None = None) -> Self:
        super().bind(process, pair)
        configured = copy(self)
        configured._process = process
        return configured

    def draws(self, paths: Array) -> Array:
        """Mask [K, L]: True if path k draws its own token.  If no process is bound, all entries are True."""
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
    """A mapping from names to verifiers.  Each verifier is imported and created on first use.

    Args:
        package: the package that holds the modules.
        entries: name -> ``"module:Class"``; the class is called without arguments.

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
