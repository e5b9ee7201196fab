"""Users' verifiers: any object with ``outcome``, and what of its answers is checked at every call.

User code is honest code that may have bugs.  Its arrays, shapes and types are checked here, and whether it is
a function of its inputs in ``user_checks``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from fractions import Fraction
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_torch_array
from flint import fmpq

from spectheory.foundation.arrays import (
    Array,
    namespace,
    on_host,
    take_path,
    take_token,
)
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError, NotJudgedError, text_of
from spectheory.foundation.exact_numbers import (
    fractions_if_exact,
    holds_formal_numbers,
    holds_numbers,
    is_exact,
    to_flint,
    without_whole_floats,
)
from spectheory.foundation.validation import check_count
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.drafts.process import ALL_PROCESSES, ANY_PROCESS, SAMPLED_PROCESSES
from spectheory.pairs.pair import ModelPair
from spectheory.verification.outcome import Outcome
from spectheory.verification.verifier import TreeVerifier, Verifier, is_registered

PACKAGE = str(Path(__file__).parents[1])
_BOOLEANS = ("single_path", "exact", "exchangeable", "lossless")


class OtherArithmeticError(NotJudgedError):
    """A verifier returned an array of another library or precision than the rows, or floats for rationals."""


class _Lent(NamedTuple):
    """An array as user code has it: read-only, or a tensor that is compared after the call."""

    name: str
    ours: Array
    theirs: Array


class UserVerifier(Verifier):
    """A user's object with ``outcome``, a subclass of ``Verifier`` or not.

    Declared attributes are forwarded once their type is right.  The defaults are those of ``Verifier``, but
    an object that declares no draft processes takes all.  A subclass is given python-flint's rationals, any
    other object ``Fraction``.  Arrays of numpy are lent read-only, and tensors are compared after the call:
    a verifier must not write into what it is given.  Exceptions and wrong answers give one clear line.

    Attributes:
        user_object: the object.
        has_own_bind: whether ``bind`` is user code, so that another verifier may judge another pair.
        anew: makes the verifier again that a ``bind`` returned; the verifier itself without one.
    """

    def __init__(self, user_object: Any, name: str | None = None) -> None:
        self.user_object = user_object
        self.anew: Callable[[], Verifier] = lambda: self
        self.has_own_bind = inspect.getattr_static(user_object, "bind", None) not in _BINDS
        own = _text(user_object, "name", type(user_object).__name__)
        self.name = name or (f"{own} (user-defined)" if is_registered(own) else own)  # type: ignore[misc]
        self.source = _text(user_object, "source", "user-defined")  # type: ignore[misc]
        for attribute in _BOOLEANS:
            value = getattr(user_object, attribute, getattr(Verifier, attribute))
            if not isinstance(value, bool):
                raise self._refused(attribute, "True or False")
            setattr(self, attribute, value)
        self.draft_processes = self._processes()  # type: ignore[misc]
        limit = getattr(user_object, "max_draft_length", None)
        if limit is not None:
            limit = check_count(f"max_draft_length of verifier {self.name!r}", limit)
        self.max_draft_length = limit  # type: ignore[misc]
        for method in ("bind", "modified_target_rows"):
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
        with users_code(f"bind of verifier {self.name!r}", bind, may_refuse=True):
            bound = bind(process, pair)
        if bound is self.user_object:
            return self
        if bound is None:
            raise InvalidInputError(f"bind of verifier {self.name!r} returned None; expected a verifier")
        found = as_verifier(bound)
        named = self.name if found.name == self.name else f"{self.name} (bound to {found.name})"
        judged = found.user_object if isinstance(found, UserVerifier) else found
        result = UserVerifier(judged, named)
        result.has_own_bind, result.anew = self.has_own_bind, partial(self.bind, process, pair)
        return result

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        self.check_draft_length(paths.shape[-1])
        function = self.user_object.outcome
        given = self._lend(paths=paths, target_rows=target_rows, draft_rows=draft_rows)
        answer = self._called("outcome", function, given)
        if not isinstance(answer, Outcome):
            raise InvalidOutcomeError(
                f"verifier {self.name!r} returned {type(answer).__name__}, expected an Outcome"
                f"{defined_at(function)}"
            )
        shape = tuple(target_rows.shape[:-1])
        stop_probs = self._checked("stop_probs", answer.stop_probs, target_rows, shape, function)
        rows_at = answer.correction
        if not callable(rows_at):
            raise InvalidOutcomeError(
                f"verifier {self.name!r} returned an Outcome whose correction is "
                f"{type(rows_at).__name__}; expected a function (path_index, length) -> rows"
                f"{defined_at(function)}"
            )

        def correction(path_index: Array, length: Array) -> Array:
            rows = self._called("correction", rows_at, self._lend(path_index=path_index, length=length))
            self._check_unchanged(given)
            shape, made = (*path_index.shape, target_rows.shape[-1]), None
            if is_exact(target_rows) and not holds_formal_numbers(target_rows):
                made = take_token(take_path(stop_probs, path_index), length) != 0
            return self._checked("correction rows", rows, target_rows, shape, rows_at, made)

        return Outcome(stop_probs, correction)

    def _modified_target_rows(self, *given: Any) -> Array:
        function, target_rows = self.user_object.modified_target_rows, given[0]
        names = ("target_rows", "draft_rows", "target_path_probs", "draft_path_probs")
        lent = self._lend(**dict(zip(names, given[:-1], strict=True)))
        rows = self._called("modified_target_rows", function, lent, given[-1])
        shape = tuple(target_rows.shape)
        rows = self._checked("modified target rows", rows, target_rows, shape, function)
        return rows if holds_formal_numbers(rows) else fractions_if_exact(rows)

    def _lend(self, **arrays: Array) -> list[_Lent]:
        return [_Lent(name, array, self._lent(array)) for name, array in arrays.items()]

    def _called(self, what: str, function: Callable[..., Any], given: list[_Lent], *others: Any) -> Any:
        """Call user code with arrays that it must not write into."""
        with users_code(f"{what} of verifier {self.name!r}", function):
            try:
                found = function(*(one.theirs for one in given), *others)
            except ValueError as error:
                if "read-only" not in str(error):
                    raise
                raise self._writes("arguments", error) from None
        self._check_unchanged(given)
        return found

    def _check_unchanged(self, given: list[_Lent]) -> None:
        for one in given:
            if is_torch_array(one.ours) and on_host(one.ours) and not _is_same(one.ours, one.theirs):
                raise self._writes(f"input {one.name}")

    def _writes(self, name: str, error: Exception | None = None) -> InvalidOutcomeError:
        place = "" if error is None else users_line(error)
        return InvalidOutcomeError(
            f"verifier {self.name!r} writes into its {name}; let it work on a copy{place}"
        )

    def _lent(self, array: Array) -> Array:
        if is_torch_array(array):
            return array.detach().clone()
        if is_exact(array) and not isinstance(self.user_object, Verifier):
            lent = _in_fractions(array)
        else:
            lent = array.view()
        lent.flags.writeable = False
        return lent

    def _checked(
        self,
        what: str,
        array: Any,
        like: Array,
        shape: tuple[int, ...],
        returned_by: Callable[..., Any],
        made: Array | None = None,
    ) -> Array:
        """A copy of an array that user code returned, if it is of the right kind, shape and precision.

        Rationals become python-flint's, and 0 where not ``made``.
        """

        def refused(found: str, expected: str, kind: type[Exception] = InvalidOutcomeError) -> Exception:
            place = self._place(returned_by)
            return kind(f"verifier {self.name!r} returned {what} {found}; expected {expected}{place}")

        if type(array) is not type(like):
            is_known = type(array) is np.ndarray or is_torch_array(array)
            kind = OtherArithmeticError if is_known else InvalidOutcomeError
            expected = f"{type(like).__name__}, the kind of array that it was given"
            raise refused(f"as {type(array).__name__}", expected, kind)
        if getattr(array, "layout", None) != getattr(like, "layout", None) or array.device != like.device:
            raise refused(
                f"as a tensor of layout {getattr(array, 'layout', None)} on device {array.device}",
                "those of the rows",
            )
        if tuple(array.shape) != shape:
            entry = "path and length" if what == "stop_probs" else "token"
            raise refused(
                f"of shape {tuple(array.shape)}",
                f"{shape}, the leading axes it was given and one entry per {entry}",
            )
        if not holds_numbers(array):
            kinds = {type(entry).__name__ for entry in array.flat} if is_exact(array) else {array.dtype}
            raise refused(f"with entries of type {', '.join(map(str, kinds))}", "probabilities")
        if is_exact(like):
            return self._rationals(what, array, like, returned_by, made)
        if is_exact(array) or namespace(array).isdtype(array.dtype, "integral"):
            return array.astype(like.dtype) if is_exact(array) else namespace(array).astype(array, like.dtype)
        if array.dtype != like.dtype:
            expected = f"{like.dtype}, the type of the rows it was given"
            raise refused(f"of type {array.dtype}", expected, OtherArithmeticError)
        return namespace(array).asarray(array.detach() if is_torch_array(array) else array, copy=True)

    def _rationals(
        self, what: str, array: np.ndarray, like: np.ndarray, returned_by: Callable[..., Any], made: Any
    ) -> np.ndarray:
        if set(map(type, array.flat)) == {fmpq} and made is None:
            return array.copy()
        numbers = without_whole_floats(array.astype(object))
        if holds_formal_numbers(like):  # which compute with the rationals that user code is given
            return numbers if isinstance(self.user_object, Verifier) else _in_fractions(numbers)
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

    def _place(self, returned_by: Callable[..., Any]) -> str:
        """The place where the user's function begins that an answer is from; else that of ``outcome``."""
        own = getattr(self.user_object, "function", None)  # of ``from_loop``
        for function in (returned_by, own, self.user_object.outcome):
            place = defined_at(function)
            if place and not place.startswith(f" ({PACKAGE}"):
                return place
        return ""

    def _processes(self) -> Collection[str]:
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


_BINDS = (None, Verifier.bind, TreeVerifier.bind)


def as_verifier(candidate: Any) -> Verifier:
    """A verifier of this package as it is, any other object with ``outcome`` as a ``UserVerifier``."""
    if isinstance(candidate, Verifier) and type(candidate).__module__.startswith("spectheory."):
        return candidate
    if isinstance(candidate, type) or not callable(getattr(candidate, "outcome", None)):
        is_function = callable(candidate) and not isinstance(candidate, type)
        raise InvalidInputError(
            f"{candidate!r} is not a verifier; expected an object with "
            "outcome(paths, target_rows, draft_rows) -> Outcome"
            + (", and from_sampler or from_loop makes one of a function" if is_function else "")
        )
    return UserVerifier(candidate)


@contextmanager
def users_code(
    what: str, called: Callable[..., Any] | None = None, *, may_refuse: bool = False
) -> Iterator[None]:
    """Turn an exception of user code into one line with its place, and send its output to stderr.

    Args:
        what: the noun for the error.
        called: the user's function; its place is named if no line of it was reached.
        may_refuse: whether the code was not asked about drafts, as ``bind`` and imports are not, and may
            refuse with an ``InvalidInputError``.

    Raises:
        InvalidOutcomeError: the code raised an exception, which is the cause; a ``NotJudgedError`` where it
            may refuse.
        InvalidInputError: the code raised it and may refuse, or the package did.
    """
    try:
        with redirect_stdout(sys.stderr) as stream, gradients_off():
            yield
            if sys.stdout is not stream:  # a stream over the buffer of stderr closes it when it is forgotten
                _STREAMS.append(sys.stdout)
    except InvalidInputError as error:
        place = users_line(error)
        if may_refuse or not place:
            raise
        kind = InvalidOutcomeError if "__init__" in vars(type(error)) else type(error)
        raise kind(f"{what} failed: {text_of(error)}{place}") from error
    except (Exception, SystemExit) as error:  # a script that is imported may end itself
        place, said = users_line(error) or defined_at(called), text_of(error)
        raise (NotJudgedError if may_refuse else InvalidOutcomeError)(
            f"{what} failed: {type(error).__name__}{said and ': '}{said}{place}"
        ) from error


_STREAMS: list[Any] = []
"""Streams that user code put in place of ``sys.stdout``."""


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
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return "" if code is None else f" ({code.co_filename}, line {code.co_firstlineno})"


def _is_same(one: Any, other: Any) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(((one == other) | (one != one)).all())  # NaN is not equal to itself


def _in_fractions(array: np.ndarray) -> np.ndarray:
    """python-flint's rationals as Python's; the formal numbers of a proof stay."""
    found = np.empty(array.shape, dtype=object)
    found.ravel()[:] = [
        Fraction(int(entry.p), int(entry.q)) if type(entry) is fmpq else entry
        for entry in array.ravel().tolist()
    ]
    return found


def _text(user_object: Any, attribute: str, default: str) -> str:
    value = getattr(user_object, attribute, default)
    if not isinstance(value, str) or not value or not value.isprintable():
        raise InvalidInputError(
            f"{attribute} of verifier {type(user_object).__name__} must be a printable text, got {value!r}"
        )
    return value
