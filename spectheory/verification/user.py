"""Users' verifiers: wrap any object with ``outcome``, and check its answers at every call.

We assume that user code is honest but may have bugs.  This module checks its arrays, shapes and types.
``user_checks`` checks that it is a function of its inputs.
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
    """An array lent to user code: a read-only numpy array, or a copied tensor that is compared afterwards."""

    name: str
    ours: Array
    theirs: Array


class UserVerifier(Verifier):
    """Wrap a user's object with ``outcome``, which may or may not subclass ``Verifier``.

    We check the types of its declared attributes and forward them.  Defaults are as in ``Verifier``, except
    that without ``draft_processes`` it accepts all ``SAMPLED_PROCESSES``.  A subclass of ``Verifier`` gets
    python-flint rationals, and another object gets ``Fraction``.  A verifier must not write into its inputs:
    numpy arrays are lent read-only, and tensors are compared after the call.  Each exception or wrong answer
    of user code is reported in one line.

    Attributes:
        user_object: the object.
        has_own_bind: True if ``bind`` is user code, which may return different verifiers for different pairs.
        anew: calls the user's ``bind`` again and returns the new verifier, or returns this verifier if it
            does not come from such a ``bind``.
    """

    def __init__(self, user_object: Any, name: str | None = None) -> None:
        self.user_object = user_object
        self.anew: Callable[[], Verifier] = lambda: self
        self.has_own_bind = inspect.getattr_static(user_object, "bind", None) not in _BINDS
        self.name = type(user_object).__name__  # type: ignore[misc]
        own = self._declared("name", self.name, _is_text, "a printable text")
        self.name = name or (f"{own} (user-defined)" if is_registered(own) else own)  # type: ignore[misc]
        self.source = self._declared("source", "user-defined", _is_text, "a printable text")  # type: ignore[misc]
        for attribute in _BOOLEANS:
            default = getattr(Verifier, attribute)
            value = self._declared(attribute, default, lambda value: isinstance(value, bool), "True or False")
            setattr(self, attribute, value)
        names = self._declared(
            "draft_processes", SAMPLED_PROCESSES, _are_processes, f"a set of names out of {_PROCESSES}"
        )
        self.draft_processes = names if names is ANY_PROCESS else frozenset(names)  # type: ignore[misc]
        limit = getattr(user_object, "max_draft_length", None)
        if limit is not None:
            limit = check_count(f"max_draft_length of verifier {self.name!r}", limit)
        self.max_draft_length = limit  # type: ignore[misc]
        for method in ("bind", "modified_target_rows"):
            self._declared(method, None, lambda value: value is None or callable(value), "a method")
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
        given = self._lend(paths=paths, target_rows=target_rows, draft_rows=draft_rows)
        answer = self._called("outcome", self.user_object.outcome, given)
        if not isinstance(answer, Outcome):
            raise self._wrong(type(answer).__name__, "an Outcome")
        shape = tuple(target_rows.shape[:-1])
        stop_probs = self._checked("stop_probs", answer.stop_probs, target_rows, shape)
        if not callable(answer.correction):
            found = f"an Outcome whose correction is {type(answer.correction).__name__}"
            raise self._wrong(found, "a function (path_index, length) -> rows")

        def correction(path_index: Array, length: Array) -> Array:
            stop = self._lend(path_index=path_index, length=length)
            rows = self._called("correction", answer.correction, stop)
            self._check_unchanged(given)
            shape, made = (*path_index.shape, target_rows.shape[-1]), None
            if is_exact(target_rows) and not holds_formal_numbers(target_rows):
                made = take_token(take_path(stop_probs, path_index), length) != 0
            return self._checked("correction rows", rows, target_rows, shape, made)

        return Outcome(stop_probs, correction)

    def _modified_target_rows(self, *given: Any) -> Array:
        names = ("target_rows", "draft_rows", "target_path_probs", "draft_path_probs")
        lent = self._lend(**dict(zip(names, given[:-1], strict=True)))
        rows = self._called("modified_target_rows", self.user_object.modified_target_rows, lent, given[-1])
        rows = self._checked("modified target rows", rows, given[0], tuple(given[0].shape))
        return rows if holds_formal_numbers(rows) else fractions_if_exact(rows)

    def _lend(self, **arrays: Array) -> list[_Lent]:
        return [_Lent(name, array, self._lent(array)) for name, array in arrays.items()]

    def _lent(self, array: Array) -> Array:
        if is_torch_array(array):
            return array.detach().clone()
        in_fractions = is_exact(array) and not isinstance(self.user_object, Verifier)
        lent = _in_fractions(array) if in_fractions else array.view()
        lent.flags.writeable = False
        return lent

    def _called(self, what: str, function: Callable[..., Any], given: list[_Lent], *others: Any) -> Any:
        """Call user code, and raise ``InvalidOutcomeError`` if it writes into its arrays."""
        with users_code(f"{what} of verifier {self.name!r}", function):
            try:
                found = function(*(one.theirs for one in given), *others)
            except ValueError as error:
                if "read-only" not in str(error):
                    raise
                raise InvalidOutcomeError(f"{self._writes('arguments')}{users_line(error)}") from None
        self._check_unchanged(given)
        return found

    def _check_unchanged(self, given: list[_Lent]) -> None:
        for name, ours, theirs in given:
            # NaN is not equal to itself, so NaN entries count as unchanged.
            if is_torch_array(ours) and on_host(ours) and not ((ours == theirs) | (ours != ours)).all():
                raise InvalidOutcomeError(self._writes(f"input {name}"))

    def _writes(self, place: str) -> str:
        return f"verifier {self.name!r} writes into its {place}; let it work on a copy"

    def _wrong(
        self, found: str, expected: str, kind: type[InvalidOutcomeError] = InvalidOutcomeError
    ) -> InvalidOutcomeError:
        return kind(f"verifier {self.name!r} returned {found}; expected {expected}")

    def _checked(
        self, what: str, array: Any, like: Array, shape: tuple[int, ...], made: Array | None = None
    ) -> Array:
        """Copy an array that user code returned, after checking its library, shape and precision.

        Rationals are converted to python-flint.  If the mask ``made`` is given, rows outside it become 0.
        """
        if type(array) is not type(like):
            is_known = type(array) is np.ndarray or is_torch_array(array)
            expected = f"{type(like).__name__}, the kind of array that it was given"
            kind = OtherArithmeticError if is_known else InvalidOutcomeError
            raise self._wrong(f"{what} as {type(array).__name__}", expected, kind)
        if tuple(array.shape) != shape:
            entry = "path and length" if what == "stop_probs" else "token"
            expected = f"{shape}, the leading axes it was given and one entry per {entry}"
            raise self._wrong(f"{what} of shape {tuple(array.shape)}", expected)
        if not holds_numbers(array):
            kinds = {type(entry).__name__ for entry in array.flat} if is_exact(array) else {array.dtype}
            raise self._wrong(f"{what} with entries of type {', '.join(map(str, kinds))}", "probabilities")
        if is_exact(like):
            return self._rationals(what, array, like, made)
        if is_exact(array) or namespace(array).isdtype(array.dtype, "integral"):
            return array.astype(like.dtype) if is_exact(array) else namespace(array).astype(array, like.dtype)
        if array.dtype != like.dtype:
            expected = f"{like.dtype}, the type of the rows it was given"
            raise self._wrong(f"{what} of type {array.dtype}", expected, OtherArithmeticError)
        return namespace(array).asarray(array.detach() if is_torch_array(array) else array, copy=True)

    def _rationals(self, what: str, array: np.ndarray, like: np.ndarray, made: Array | None) -> np.ndarray:
        if set(map(type, array.flat)) == {fmpq} and made is None:
            return array.copy()
        numbers = without_whole_floats(array.astype(object))
        if holds_formal_numbers(like):  # formal numbers compute with the rational type lent to user code
            return numbers if isinstance(self.user_object, Verifier) else _in_fractions(numbers)
        if made is not None:  # at a stop of probability 0 the row may be anything, and need not be rational
            numbers = np.where(made[..., None], numbers, 0)
        try:
            return to_flint(numbers.astype(object))
        except TypeError as error:
            raise OtherArithmeticError(
                f"verifier {self.name!r} left exact arithmetic on an exact pair: its {what} have a float "
                f"that is rounded ({error}); compute with the entries it is given, divide no integers by "
                "integers, or set its attribute exact = False"
            ) from None

    def _declared(self, attribute: str, default: Any, is_right: Callable[[Any], bool], expected: str) -> Any:
        value = getattr(self.user_object, attribute, default)
        if not is_right(value):
            raise InvalidInputError(
                f"{attribute} of verifier {self.name!r} must be {expected}, got {value!r}"
            )
        return value


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != "" and value.isprintable()


def _are_processes(names: Any) -> bool:
    is_collection = isinstance(names, Collection) and not isinstance(names, str)
    return is_collection and ALL_PROCESSES.issuperset(names)


_PROCESSES = ", ".join(sorted(ALL_PROCESSES))
_BINDS = (None, Verifier.bind, TreeVerifier.bind)


def as_verifier(candidate: Any) -> Verifier:
    """Return a verifier of this package unchanged, and wrap any other object with ``outcome``."""
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


_STREAMS: list[Any] = []
"""Streams that user code put in place of stdout."""


@contextmanager
def users_code(
    what: str, called: Callable[..., Any] | None = None, *, may_refuse: bool = False
) -> Iterator[None]:
    """Run user code: report an exception in one line with its file and line, and send prints to stderr.

    Args:
        what: what ran, for the error message.
        called: the user's function.  If none of its lines was reached, the message gives its definition.
        may_refuse: True if the code may refuse its input with an ``InvalidInputError``, such as ``bind``,
            imports and samplers.

    Raises:
        InvalidOutcomeError: the code raised an exception, which is set as the cause.  If ``may_refuse``, it
            is the subclass ``NotJudgedError``.
        InvalidInputError: the package raised it, or the code did and ``may_refuse`` is True.
    """
    try:
        with redirect_stdout(sys.stderr) as stream, gradients_off():
            yield
            if sys.stdout is not stream:  # a stream over the buffer of stderr closes it when it is deleted
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


def gradients_off() -> AbstractContextManager[Any]:
    """Return ``torch.no_grad()`` if torch is imported, otherwise a context that does nothing."""
    torch = sys.modules.get("torch")
    return nullcontext() if torch is None else torch.no_grad()


def users_line(error: BaseException) -> str:
    """Format `` (FILE, line N)``, the innermost line of a traceback outside this package and libraries."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}, line {error.lineno})"
    frames = [frame for frame in extract_tb(error.__traceback__) if is_users_file(frame.filename)]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def is_users_file(name: str) -> bool:
    """Whether a file of code is outside this package and libraries."""
    return not name.startswith((PACKAGE, sys.prefix, sys.base_prefix, "<frozen"))


def defined_at(function: Any) -> str:
    """Format `` (FILE, line N)``, where a user's function begins.  Empty if it is not written in Python."""
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return "" if code is None else f" ({code.co_filename}, line {code.co_firstlineno})"


def _in_fractions(array: np.ndarray) -> np.ndarray:
    """Convert python-flint rationals to Fractions.  Formal numbers of a proof are kept."""
    found = np.empty(array.shape, dtype=object)
    found.ravel()[:] = [
        Fraction(int(entry.p), int(entry.q)) if type(entry) is fmpq else entry
        for entry in array.ravel().tolist()
    ]
    return found
