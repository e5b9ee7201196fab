"""The interface of a verifier, the registry of verifiers, and user objects as verifiers.

A verifier is an object with ``outcome(paths, target_rows, draft_rows) -> Outcome``.  A user's object needs
nothing else.  It may have any other attribute or method of ``Verifier``, and these are used too.
"""

from __future__ import annotations

import inspect
import pickle
import sys
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from copy import copy, deepcopy
from fractions import Fraction
from importlib import import_module
from inspect import getattr_static
from itertools import count
from pathlib import Path
from traceback import extract_tb
from types import CodeType
from typing import Any, ClassVar, Self

import numpy as np
from flint import fmpq

from spectheory.foundation.arrays import (
    Array,
    holds_formal_numbers,
    holds_numbers,
    namespace,
    on_device_of,
    take_path,
    take_token,
)
from spectheory.foundation.beside import printed_beside
from spectheory.foundation.documents import count_text
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError, NotJudgedError, text_of
from spectheory.foundation.exact_numbers import (
    fractions_if_exact,
    is_exact,
    to_flint,
    to_fraction,
    without_whole_floats,
)
from spectheory.foundation.private_copies import PrivateCopy
from spectheory.foundation.validation import check_count, unknown_name
from spectheory.pairs.drafts import ALL_PROCESSES, ANY_PROCESS, SAMPLED_PROCESSES, DraftProcess
from spectheory.pairs.pair import ModelPair
from spectheory.verification.outcome import Outcome
from spectheory.verification.trust import is_packages_own, remember_as_written

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

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        remember_as_written(cls)

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

    def check_draft_length(self, draft_length: int) -> None:
        """Refuse drafted paths that are longer than the algorithm takes."""
        if self.max_draft_length is not None and draft_length > self.max_draft_length:
            raise InvalidInputError(
                f"verifier {self.name!r} takes drafted paths of at most "
                f"{count_text(self.max_draft_length, 'token')}, got draft_length {draft_length}; draft fewer"
            )

    def __repr__(self) -> str:
        return f"<verifier {self.name}>"


remember_as_written(Verifier)


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
        """Whether path k draws its own token at depth i, [K, L]; all do where no process was bound."""
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
        return on_device_of(paths, draws)


_NAMES_TAKEN: set[str] = set()
"""The letters and digits of the names in all registries."""


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
        _NAMES_TAKEN.update(map(_letters, entries))
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


# ------------------------------------------------------------------------------- user verifiers


def _has_own_bind(user_object: Any) -> bool:
    return getattr_static(user_object, "bind", None) not in (None, Verifier.bind, TreeVerifier.bind)


def _attributes_of_classes(user_object: Any) -> dict[tuple[type, str], int]:
    """(class, attribute) -> which object it is, for the classes of an object."""
    return {
        (kind, name): id(value)
        for kind in type(user_object).__mro__
        for name, value in vars(kind).items()
        if not name.startswith("__")
    }


def _copied(user_object: Any) -> Any:
    """A copy that shares what a deep copy fails on; the object itself if it cannot be copied."""
    for copied in (deepcopy, copy):
        with suppress(InvalidInputError), users_code("copying a verifier"):
            return copied(user_object)
    return user_object


def _tensors() -> tuple[type, ...]:
    torch = sys.modules.get("torch")
    return () if torch is None else (torch.Tensor,)


_BOOLEANS = ("single_path", "exact", "exchangeable", "lossless")
_METHODS = ("bind", "modified_target_rows")


PACKAGE = str(Path(__file__).parents[1])


class OtherArithmeticError(NotJudgedError):
    """A verifier returned an array of another library or precision than the rows, or floats for rationals."""


class UserVerifier(Verifier):
    """A user's object with ``outcome``, a subclass of ``Verifier`` or not.

    Declared attributes are forwarded once their type is right.  The defaults are those of ``Verifier``, but
    an object that declares no draft processes takes all.  Wrong types and exceptions give one clear line.

    The object shares no memory with the caller: it is given copies of all arrays, and what it returns is
    copied.  Writing into an argument, or into stop probabilities that were returned, is an error (on an
    accelerator, where a comparison would wait for the device, it has no effect).  Copies and comparisons take
    less time than the outcome itself: docs/your_own_verifier.md has the numbers.

    Attributes:
        user_object: the object.
        unbound: the verifier whose ``bind`` this is the result of; ``None`` where user code has none.
        process: the draft process of that ``bind``.
        on_models: what ``bind`` returned without a pair, of the object and of a copy that has seen none.
        asked_sizes: how many checks have asked it about batches of other sizes, shared with its copies.
    """

    unbound: UserVerifier | None = None
    process: DraftProcess | None = None
    on_models: Sequence[Verifier] = ()

    def __init__(self, user_object: Any, name: str | None = None) -> None:
        self.user_object = user_object
        self.asked_sizes = count()
        self._as_it_was = _copied(user_object) if _has_own_bind(user_object) else None
        self._number = fmpq if issubclass(type(user_object), Verifier) else Fraction
        self.name = (  # type: ignore[misc]
            check_name(name, "a verifier", 3 * LONGEST_NAME) if name else _own_name(user_object)
        )
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
        with users_code(f"reading bind of verifier {self.name!r}"):
            bind = getattr(self.user_object, "bind", None)
        if bind is None:
            return self
        on_models = []
        for asked in () if pair is None else (self.before_bind(), self):
            with suppress(InvalidInputError):
                on_models.append(asked.bind(process))
        given, process, pair = process, copies_of(process), copies_of(pair)
        with users_code(f"bind of verifier {self.name!r}", bind):
            before = _attributes_of_classes(self.user_object)
            bound = bind(process, pair)
            changed = _attributes_of_classes(self.user_object).items() - before.items()
        if changed:
            name = sorted(str(attribute) for _, attribute in dict(changed))[0]
            raise NotJudgedError(
                f"bind of verifier {self.name!r} changes {name} of its class, for all verifiers that are "
                f"bound later; keep it in the object that bind returns{defined_at(bind)}"
            )
        if bound is None:
            raise InvalidInputError(f"bind of verifier {self.name!r} returned None; expected a verifier")
        found = as_verifier(bound)
        named = self.name if found.name == self.name else f"{self.name} (bound to {found.name})"
        judged = found.user_object if type(found) is UserVerifier else found
        result = self if bound is self.user_object else UserVerifier(judged, named)
        if _has_own_bind(self.user_object):
            result.unbound, result.process = self, given
            result.on_models = [found for found in on_models if found is not self]
        return result

    def bound_anew(self) -> Verifier:
        """The same, bound once more without a pair, so that it was not asked; itself without ``bind``."""
        if self.unbound is None or self.process is None:
            return self
        return self.unbound.before_bind().bind(self.process)

    @property
    def may_need_pair(self) -> bool:
        """Whether user code is bound to a pair."""
        return self._as_it_was is not None

    def before_bind(self) -> UserVerifier:
        """The verifier with a copy of the object as it was, where it has a ``bind``, which may change it."""
        if self._as_it_was is None:
            return self
        found = UserVerifier(_copied(self._as_it_was), self.name)
        found.asked_sizes = self.asked_sizes
        return found

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        return self.ask(self.lend(paths, target_rows, draft_rows))

    def sizes_to_ask(self, first: int, most: int) -> Sequence[int]:
        """Sizes of batches to compare now: all up to ``first``, and then one after the other to ``most``."""
        asked = next((self if self.unbound is None else self.unbound).asked_sizes)
        return range(1, first + 1) if not asked else [(first + asked - 1) % most + 1]

    def lend(self, *arrays: Array) -> tuple[PrivateCopy, ...]:
        """Copies of arrays for user code, with the rationals that it computes with."""
        return tuple(PrivateCopy.lent(array, self._number) for array in arrays)

    def ask(self, lent: Sequence[PrivateCopy]) -> Outcome:
        """``outcome`` of paths, target rows and draft rows, as they were lent to user code."""
        paths, target_rows, _ = (copy.ours for copy in lent)
        self.check_draft_length(paths.shape[-1])
        with users_code(f"reading outcome of verifier {self.name!r}"):
            function = self.user_object.outcome
        with users_code(f"outcome of verifier {self.name!r}", function, may_refuse=False):
            outcome = function(*(copy.theirs for copy in lent))
            returned = (outcome.stop_probs, outcome.correction) if isinstance(outcome, Outcome) else ()
        if not returned:
            raise InvalidOutcomeError(
                f"verifier {self.name!r} returned {type(outcome).__name__}, expected an Outcome"
                f"{defined_at(function)}"
            )
        self.check_unchanged(lent)
        stops, rows_at = returned
        kept = self._copied("stop_probs", stops, target_rows, tuple(target_rows.shape[:-1]), function)
        stop_probs = self._checked("stop_probs", kept.ours, target_rows, function)
        if not callable(rows_at):
            raise InvalidOutcomeError(
                f"verifier {self.name!r} returned an Outcome whose correction is "
                f"{type(rows_at).__name__}; expected a function (path_index, length) -> rows"
                f"{defined_at(function)}"
            )

        def correction(path_index: Array, length: Array) -> Array:
            stop = self.lend(path_index, length)
            with users_code(f"correction of verifier {self.name!r}", rows_at, may_refuse=False):
                rows = rows_at(*(copy.theirs for copy in stop))
            names = (
                "correction's argument path_index",
                "correction's argument length",
                "returned stop_probs",
            )
            self.check_unchanged((*stop, kept), names)
            self.check_unchanged(lent)
            shape, made = (*path_index.shape, target_rows.shape[-1]), None
            rows = self._copied("correction rows", rows, target_rows, shape, rows_at).ours
            if is_exact(target_rows) and not holds_formal_numbers(target_rows):
                made = take_token(take_path(stop_probs, path_index), length) != 0
            return self._checked("correction rows", rows, target_rows, rows_at, made)

        return Outcome(stop_probs, correction)

    def check_unchanged(
        self,
        copies: Iterable[PrivateCopy],
        names: Sequence[str] = ("input paths", "input target_rows", "input draft_rows"),
    ) -> None:
        for name, lent in zip(names, copies, strict=True):
            if not lent.is_unchanged():
                raise InvalidOutcomeError(
                    f"verifier {self.name!r} writes into its {name}; let it work on a copy"
                )

    def _modified_target_rows(self, *given: Any) -> Array:
        with users_code(f"reading modified_target_rows of verifier {self.name!r}"):
            function = self.user_object.modified_target_rows
        target_rows = given[0]
        lent = self.lend(*given[:-1])
        with users_code(f"modified_target_rows of verifier {self.name!r}", function, may_refuse=False):
            rows = function(*(copy.theirs for copy in lent), given[-1])
        what = "modified target rows"
        rows = self._copied(what, rows, target_rows, tuple(target_rows.shape), function).ours
        rows = self._checked(what, rows, target_rows, function)
        return rows if holds_formal_numbers(rows) else fractions_if_exact(rows)

    def _copied(
        self, what: str, array: Any, like: Array, shape: tuple[int, ...], returned_by: Callable[..., Any]
    ) -> PrivateCopy:
        """A copy of an array that user code returned, if it is of the right kind and shape."""
        if type(array) is not type(like):  # a subclass may compute as it likes
            kind = OtherArithmeticError if type(array) in (np.ndarray, *_tensors()) else InvalidOutcomeError
            raise kind(
                f"verifier {self.name!r} returned {what} as {type(array).__name__}; expected "
                f"{type(like).__name__}, the kind of array that it was given{self._place(returned_by)}"
            )
        dense = getattr(array, "layout", None) in (None, getattr(like, "layout", None))
        if not dense or getattr(array, "device", None) != getattr(like, "device", None):
            raise InvalidOutcomeError(
                f"verifier {self.name!r} returned {what} as a tensor of layout {array.layout} on device "
                f"{array.device}; expected those of the rows{self._place(returned_by)}"
            )
        if tuple(array.shape) != shape:
            entry = "path and length" if what == "stop_probs" else "token"
            raise InvalidOutcomeError(
                f"verifier {self.name!r} returned {what} of shape {tuple(array.shape)}; expected {shape}, "
                f"the leading axes it was given and one entry per {entry}{self._place(returned_by)}"
            )
        with users_code(f"copying the {what} of verifier {self.name!r}", returned_by):
            return PrivateCopy.returned(array)

    def _checked(
        self,
        what: str,
        numbers: Array,
        like: Array,
        returned_by: Callable[..., Any],
        made: Array | None = None,
    ) -> Array:
        """The array, checked for its precision; rationals are python-flint's, 0 where not ``made``."""

        def refused(found: str, expected: str, kind: type[Exception] = InvalidOutcomeError) -> Exception:
            place = self._place(returned_by)
            return kind(f"verifier {self.name!r} returned {what} {found}; expected {expected}{place}")

        if not holds_numbers(numbers):
            kinds = {type(entry).__name__ for entry in numbers.flat} if is_exact(numbers) else {numbers.dtype}
            raise refused(f"with entries of type {', '.join(map(str, kinds))}", "probabilities")
        if is_exact(like):
            if (
                is_exact(numbers)
                and set(map(type, numbers.flat)) <= {fmpq}
                and not holds_formal_numbers(like)
            ):
                return numbers
            numbers = without_whole_floats(numbers.astype(object))
            if holds_formal_numbers(like):  # which compute with the rationals that user code is given
                return numbers if self._number is fmpq else _without_flint(numbers)
            if made is not None:  # elsewhere the row may be anything, and need not be rational
                numbers = np.where(made[..., None], numbers, 0)
            try:
                return to_flint(numbers.astype(object))
            except TypeError as error:
                raise OtherArithmeticError(
                    f"verifier {self.name!r} left exact arithmetic on an exact pair: its {what} have a float "
                    f"that is rounded ({error}); compute with the entries it is given, divide no integers by "
                    f"integers, or set its attribute exact = False{self._place(returned_by)}"
                ) from None
        if is_exact(numbers):
            return numbers.astype(like.dtype)
        if namespace(numbers).isdtype(numbers.dtype, "integral"):
            return namespace(numbers).astype(numbers, like.dtype)
        if numbers.dtype != like.dtype:
            found, expected = f"of type {numbers.dtype}", f"{like.dtype}, the type of the rows it was given"
            raise refused(found, expected, OtherArithmeticError)
        return numbers

    def _place(self, returned_by: Callable[..., Any]) -> str:
        """Where the user's function begins that an answer is from; ``outcome`` for one of the package."""
        own = getattr(self.user_object, "function", None)  # of ``per_sample``
        for function in (returned_by, own, self.user_object.outcome):
            place = defined_at(function)
            if place and not place.startswith(f" ({PACKAGE}"):
                return place
        return ""

    def _declared(self, attribute: str, kind: type, expected: str) -> Any:
        value = getattr(self.user_object, attribute, getattr(Verifier, attribute))
        if type(value) is not kind:
            raise self._refused(attribute, expected)
        return value

    def _processes(self) -> frozenset[str]:
        named = getattr(self.user_object, "draft_processes", SAMPLED_PROCESSES)
        if isinstance(named, str) or not isinstance(named, Collection) or not ALL_PROCESSES.issuperset(named):
            raise self._refused(
                "draft_processes", f"a set of names out of {', '.join(sorted(ALL_PROCESSES))}"
            )
        return ANY_PROCESS if named is ANY_PROCESS else frozenset(named)

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
        InvalidOutcomeError: the code raised anything but Ctrl-C; the original is the cause.  Where it may
            refuse, it was not asked about drafts, and the error is a ``NotJudgedError``.
        InvalidInputError: the code raised it.
    """
    try:
        with printed_beside(), gradients_off():
            yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit and whatever else people raise
        place = users_line(error) or defined_at(called)
        if isinstance(error, InvalidInputError):
            if may_refuse:
                raise
            raise own_kind(error)(f"{what} failed: {text_of(error)}{place}") from error
        said = text_of(error)
        raise (NotJudgedError if may_refuse else InvalidOutcomeError)(
            f"{what} failed: {type(error).__name__}{said and ': '}{said}{place}"
        ) from error


def own_kind(error: InvalidInputError) -> type[InvalidInputError]:
    """The first class of an error that is this package's own and made from a text alone."""
    return next(
        kind
        for kind in type(error).__mro__
        if str(kind.__module__).startswith("spectheory.") and "__init__" not in vars(kind)
    )


def gradients_off() -> AbstractContextManager[Any]:
    """torch without gradients, as texts are decoded, where it is imported."""
    torch = sys.modules.get("torch")
    return nullcontext() if torch is None else torch.no_grad()


def users_line(error: BaseException) -> str:
    """`` (FILE, line N)``, the innermost line of a traceback that is not this package's or a library's."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}, line {error.lineno})"
    frames = [
        frame
        for frame in extract_tb(error.__traceback__)
        if not frame.filename.startswith((PACKAGE, sys.prefix, sys.base_prefix, "<frozen"))
    ]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def defined_at(function: Any) -> str:
    """`` (FILE, line N)``, where a user's function begins; empty if it is not written in Python."""
    try:
        code = getattr(inspect.unwrap(function), "__code__", None)
    except KeyboardInterrupt:
        raise
    except BaseException:  # attributes of a user's object are user code
        return ""
    return f" ({code.co_filename}, line {code.co_firstlineno})" if type(code) is CodeType else ""


def as_verifier(candidate: Any) -> Verifier:
    """A verifier that is this package's own throughout itself, any other object as a ``UserVerifier``."""
    with users_code(f"reading the verifier {type(candidate).__name__}"):
        if type(candidate) is UserVerifier:
            return UserVerifier(candidate.user_object, candidate.name)
        if issubclass(type(candidate), Verifier) and is_packages_own(candidate):
            return candidate
        if isinstance(candidate, type) or not callable(getattr(candidate, "outcome", None)):
            is_function = callable(candidate) and not isinstance(candidate, type)
            raise InvalidInputError(
                f"{candidate!r} is not a verifier; expected an object with "
                "outcome(paths, target_rows, draft_rows) -> Outcome"
                + (", and black_box or per_sample makes one of a function" if is_function else "")
            )
        return UserVerifier(candidate)


def copies_of(given: Any) -> Any:
    """A draft process or a pair as user code may have it; equal, and nothing of it is shared."""
    with users_code(f"copying {type(given).__name__}"):
        try:
            return pickle.loads(pickle.dumps(given))
        except (AttributeError, TypeError, pickle.PicklingError):
            return copied(given)  # of a class that was made inside a function


def copied(given: Any) -> Any:
    """A deep copy, of a user's object too."""
    with users_code(f"copying {type(getattr(given, 'user_object', given)).__name__}"):
        return deepcopy(given)


LONGEST_NAME = 80
"""The characters of a name, with which verdicts begin."""


def check_name(name: str, whose: str, longest: int = LONGEST_NAME) -> str:
    """A name that cannot be read as a verdict."""
    has_colon = any({"COLON", "RATIO"} & set(unicodedata.name(letter, "").split()) for letter in name)
    marked = name != name.strip() or name[:1] in "=+-@"  # of a spreadsheet's formula, or nothing at all
    if has_colon or marked or len(name) > longest or not name.isprintable():
        raise InvalidInputError(
            f"the name of {whose} must be printable, of 1 to {longest} characters, without a colon, a space "
            f"at an end and =, +, - or @ in front, since verdicts begin with it; got {name[: 2 * longest]!r}"
        )
    return name


def _without_flint(array: np.ndarray) -> np.ndarray:
    return np.frompyfunc(lambda value: to_fraction(value) if type(value) is fmpq else value, 1, 1)(array)


def _own_name(user_object: Any) -> str:
    """The name of a user's object, marked where it is that of a verifier in a registry."""
    name = _text(user_object, "name", type(user_object).__name__)
    return f"{name} (user-defined)" if _letters(name) in _NAMES_TAKEN else name


def _letters(name: str) -> str:
    """What is left of a name where case, spaces and signs are not looked at."""
    return "".join(filter(str.isalnum, name)).casefold()


def _text(user_object: Any, attribute: str, default: str) -> str:
    value = getattr(user_object, attribute, default)
    if not issubclass(type(value), str) or not value or not str.isprintable(value):
        raise InvalidInputError(
            f"{attribute} of verifier {type(user_object).__name__} must be a printable text, got {value!r}"
        )
    text = str.__str__(value)
    return check_name(text, f"verifier {type(user_object).__name__}") if attribute == "name" else text
