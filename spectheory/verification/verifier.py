"""The interface of a verifier, the registry of verifiers, and user objects as verifiers.

A verifier is an object with ``outcome(paths, target_rows, draft_rows) -> Outcome``.  A user's object needs
nothing else.  It may have any other attribute or method of ``Verifier``, and these are used too.
"""

from __future__ import annotations

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from copy import copy
from importlib import import_module
from pathlib import Path
from traceback import extract_tb
from typing import Any, ClassVar, Self

from spectheory.foundation.arrays import Array, holds_numbers, namespace, without_machine_integers
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.foundation.exact_numbers import is_exact
from spectheory.foundation.validation import check_count
from spectheory.pairs.drafts import ALL_PROCESSES, DraftProcess
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
            self._check_draft_length(pair.draft_length)
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

    def _check_draft_length(self, draft_length: int) -> None:
        if self.max_draft_length is not None and draft_length > self.max_draft_length:
            raise InvalidInputError(
                f"verifier {self.name!r} takes drafted paths of at most {self.max_draft_length} tokens, "
                f"got draft_length {draft_length}; truncate the pair"
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
        """Whether path k draws its own token at depth i, booleans [K, L]; all do where no process was bound.

        Raises:
            InvalidInputError: the process that was bound draws another number of paths.
        """
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
        return xp.asarray(draws, device=paths.device)


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
        self._made: dict[str, Verifier] = {}

    def __getitem__(self, name: str) -> Verifier:
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


# ------------------------------------------------------------------------------- user verifiers

_BOOLEANS = ("single_path", "exact", "exchangeable", "lossless")
_METHODS = ("bind", "modified_target_rows")


class UserVerifier(Verifier):
    """A user's object with ``outcome``, a subclass of ``Verifier`` or not.

    Declared attributes are forwarded once their type is right.  The defaults are those of ``Verifier``, but
    an object that declares no draft processes takes all.  Wrong types and exceptions give one clear line.

    Attributes:
        user_object: the object.
    """

    def __init__(self, user_object: Any) -> None:
        self.user_object = user_object
        kind = type(user_object).__name__
        self.name = _text(user_object, "name", kind)  # type: ignore[misc]
        self.source = _text(user_object, "source", "user-defined")  # type: ignore[misc]
        for attribute in _BOOLEANS:
            setattr(self, attribute, self._declared(attribute, bool, "True or False"))
        self.draft_processes = self._processes()  # type: ignore[misc]
        limit = getattr(user_object, "max_draft_length", None)
        if limit is not None:
            limit = check_count(f"max_draft_length of verifier {self.name!r}", limit)
        self.max_draft_length = limit  # type: ignore[misc]
        for method in _METHODS:
            found = getattr(user_object, method, None)
            if found is not None and not callable(found):
                raise self._refused(method, "a method")
        if getattr(user_object, "modified_target_rows", None) is not None:
            self.modified_target_rows = self._modified_target_rows

    def bind(self, process: DraftProcess, pair: ModelPair | None = None) -> Verifier:
        super().bind(process, pair)
        bind = getattr(self.user_object, "bind", None)
        if bind is None:
            return self
        with users_code(f"bind of verifier {self.name!r}", bind):
            bound = bind(process, pair)
        if bound is None:
            raise InvalidInputError(f"bind of verifier {self.name!r} returned None; expected a verifier")
        return self if bound is self.user_object else as_verifier(bound)

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        self._check_draft_length(paths.shape[-1])
        function = self.user_object.outcome
        with users_code(f"outcome of verifier {self.name!r}", function, may_refuse=False):
            outcome = function(paths, target_rows, draft_rows)
        if not isinstance(outcome, Outcome):
            raise InvalidOutcomeError(
                f"verifier {self.name!r} returned {type(outcome).__name__}, expected an Outcome"
                f"{defined_at(function)}"
            )
        shape = tuple(target_rows.shape[:-1])
        stop_probs = self._checked("stop_probs", outcome.stop_probs, target_rows, shape, function)
        if not callable(outcome.correction):
            raise InvalidOutcomeError(
                f"verifier {self.name!r} returned an Outcome whose correction is "
                f"{type(outcome.correction).__name__}; expected a function (path_index, length) -> rows"
                f"{defined_at(function)}"
            )

        def correction(path_index: Array, length: Array) -> Array:
            what = f"correction of verifier {self.name!r}"
            with users_code(what, outcome.correction, may_refuse=False):
                rows = outcome.correction(path_index, length)
            shape = (*path_index.shape, target_rows.shape[-1])
            return self._checked("correction rows", rows, target_rows, shape, outcome.correction)

        return Outcome(stop_probs, correction)

    def _modified_target_rows(self, target_rows: Array, *others: Any) -> Array:
        function = self.user_object.modified_target_rows
        with users_code(f"modified_target_rows of verifier {self.name!r}", function, may_refuse=False):
            rows = function(target_rows, *others)
        return self._checked("modified target rows", rows, target_rows, tuple(target_rows.shape), function)

    def _checked(
        self, what: str, array: Any, like: Array, shape: tuple[int, ...], returned_by: Callable[..., Any]
    ) -> Array:
        """The array, checked for kind, shape and precision, with its integers as numbers that do not wrap."""
        if type(array) is not type(like):  # a subclass may compute as it likes
            raise InvalidOutcomeError(
                f"verifier {self.name!r} returned {what} as {type(array).__name__}; expected "
                f"{type(like).__name__}, the kind of array that it was given{defined_at(returned_by)}"
            )
        if tuple(array.shape) != shape:
            raise InvalidOutcomeError(
                f"verifier {self.name!r} returned {what} of shape {tuple(array.shape)}; expected {shape}, "
                "the leading axes it was given and one entry per "
                + ("path and length" if what == "stop_probs" else "token")
                + defined_at(returned_by)
            )
        if not holds_numbers(array):
            kind = array.dtype if array.dtype != object else type(array.ravel()[0]).__name__
            raise InvalidOutcomeError(
                f"verifier {self.name!r} returned {what} with entries of type {kind}; expected probabilities"
                f"{defined_at(returned_by)}"
            )
        numbers = without_machine_integers(array, like)
        if not is_exact(like) and numbers.dtype != like.dtype:
            raise InvalidOutcomeError(
                f"verifier {self.name!r} returned {what} of type {array.dtype}; expected {like.dtype}, "
                f"the type of the rows it was given{defined_at(returned_by)}"
            )
        return numbers

    def _declared(self, attribute: str, kind: type, expected: str) -> Any:
        value = getattr(self.user_object, attribute, getattr(Verifier, attribute))
        if not isinstance(value, kind):
            raise self._refused(attribute, expected)
        return value

    def _processes(self) -> frozenset[str]:
        named = getattr(self.user_object, "draft_processes", ALL_PROCESSES)
        if isinstance(named, str) or not isinstance(named, Collection) or not ALL_PROCESSES.issuperset(named):
            raise self._refused(
                "draft_processes", f"a set of names out of {', '.join(sorted(ALL_PROCESSES))}"
            )
        return frozenset(named)

    def _refused(self, attribute: str, expected: str) -> InvalidInputError:
        return InvalidInputError(
            f"{attribute} of verifier {self.name!r} must be {expected}, "
            f"got {getattr(self.user_object, attribute)!r}"
        )


@contextmanager
def users_code(
    what: str, called: Callable[..., Any] | None = None, *, may_refuse: bool = True
) -> Iterator[None]:
    """Turn an exception of user code into one line with its place, and send its output to stderr.

    Args:
        what: the noun for the error.
        called: the user's function; its place is named if no line of it was reached.
        may_refuse: whether ``InvalidInputError`` passes through, as from ``bind``.

    Raises:
        InvalidOutcomeError: the code raised anything but Ctrl-C; the original is the cause.
        InvalidInputError: the code raised it.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit and whatever else people raise
        place = users_line(error) or defined_at(called)
        if isinstance(error, InvalidInputError):
            if may_refuse:
                raise
            raise type(error)(f"{what} failed: {error}{place}") from error
        try:
            said = f": {error}" if str(error) else ""
        except Exception:  # its text is a user's code too
            said = ""
        raise InvalidOutcomeError(f"{what} failed: {type(error).__name__}{said}{place}") from error


def users_line(error: BaseException) -> str:
    """`` (FILE, line N)``, the innermost line of a traceback that is not this package's or a library's."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}, line {error.lineno})"
    package = str(Path(__file__).parents[1])
    frames = [
        frame
        for frame in extract_tb(error.__traceback__)
        if not frame.filename.startswith((package, sys.prefix, sys.base_prefix, "<frozen"))
    ]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def defined_at(function: Any) -> str:
    """`` (FILE, line N)``, where a user's function begins; nothing for what is not written in Python."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f" ({code.co_filename}, line {code.co_firstlineno})" if code else ""


def as_verifier(candidate: Any) -> Verifier:
    """A verifier of this package itself, and any other object as a ``UserVerifier``.

    Raises:
        InvalidInputError: the object has no ``outcome`` method, or an attribute of the wrong type.
    """
    if isinstance(candidate, Verifier) and type(candidate).__module__.startswith("spectheory."):
        return candidate
    with users_code(f"reading the verifier {type(candidate).__name__}"):
        if isinstance(candidate, type) or not callable(getattr(candidate, "outcome", None)):
            raise InvalidInputError(
                f"{candidate!r} is not a verifier; expected an object with "
                "outcome(paths, target_rows, draft_rows) -> Outcome"
            )
        return UserVerifier(candidate)


def _text(user_object: Any, attribute: str, default: str) -> str:
    value = getattr(user_object, attribute, default)
    if not isinstance(value, str) or not value or not value.isprintable():
        raise InvalidInputError(
            f"{attribute} of verifier {type(user_object).__name__} must be a printable text, got {value!r}"
        )
    return value
