"""Copies that share no memory with user code, and whether user code wrote into its side of them."""

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_torch_array
from flint import fmpq

from spectheory.foundation.arrays import Array, namespace, on_host
from spectheory.foundation.exact_numbers import is_exact, to_flint


class PrivateCopy(NamedTuple):
    """Equal numbers twice: in an array that user code can reach, and in one that it cannot.

    Rationals of both kinds can be changed in place, so that those of an array are made anew too.

    Attributes:
        theirs, ours: the arrays.
        pointers, couples: of exact arrays, where the entries of theirs lie, and every entry with its double.

    Example:
        >>> half = np.array([Fraction(1, 2)])
        >>> copy = PrivateCopy.lent(half)
        >>> copy.theirs[0]._numerator = 2
        >>> print(half[0], copy.is_unchanged())
        1/2 False
    """

    theirs: Array
    ours: Array
    pointers: bytes = b""
    couples: tuple[tuple[Any, Any], ...] = ()

    @classmethod
    def lent(cls, ours: Array, kind: type = Fraction) -> "PrivateCopy":
        """An array of ours, copied for user code; rationals are of the kind ``Fraction`` or ``fmpq``."""
        theirs, couples = _copy(ours, kind)
        pointers = theirs.tobytes() if is_exact(theirs) else b""
        return cls(theirs, ours, pointers, tuple((double, entry) for entry, double in couples))

    @classmethod
    def returned(cls, theirs: Array) -> "PrivateCopy":
        """An array that user code returned, copied; rationals are python-flint's."""
        pointers = theirs.tobytes() if is_exact(theirs) else b""
        ours, couples = _copy(theirs, fmpq)
        return cls(theirs, ours, pointers, couples)

    def now_in(self, theirs: Array) -> "PrivateCopy":
        """The same, where user code has another array with these entries."""
        return self._replace(theirs=theirs)

    def overwrite(self, entries: Array) -> None:
        """Put other entries into theirs, which user code may have locked against writing."""
        if not is_torch_array(self.theirs):
            self.theirs.flags.writeable = True
        # A tensor of torch may have been told to record gradients.
        (self.theirs.detach() if is_torch_array(self.theirs) else self.theirs)[...] = entries

    def is_unchanged(self) -> bool:
        """Whether theirs is as it was; not asked of an accelerator, which would have to be waited for."""
        theirs, ours = self.theirs, self.ours
        if not on_host(ours):
            return True
        if theirs.shape != ours.shape or theirs.dtype != ours.dtype:
            return False
        if not is_exact(ours):
            same = theirs.equal(ours) if is_torch_array(theirs) else bool((theirs == ours).all())
            return same or bool(((theirs == ours) | (ours != ours)).all())  # NaN is not equal to itself
        try:
            now, then = to_flint(np.array(self.couples, dtype=object).reshape(-1, 2)).T
        except Exception:  # user code wrote into a number, and may even have written its conversion
            return False
        return theirs.tobytes() == self.pointers and bool((now == then).all())


def _copy(array: Array, kind: type) -> tuple[Array, tuple[tuple[Any, Any], ...]]:
    """(the copy, every distinct entry of an exact array with its double, where it has one)."""
    if is_torch_array(array):
        array = array.detach()
    if not is_exact(array):
        return namespace(array).asarray(array, copy=True), ()
    entries = array.ravel().tolist()
    distinct = dict(zip(map(id, entries), entries, strict=True))
    doubles = {number: _double(entry, kind) for number, entry in distinct.items()}
    copy = np.empty(array.shape, dtype=object)
    copy.ravel()[:] = list(map(doubles.__getitem__, map(id, entries)))
    couples = zip(distinct.values(), doubles.values(), strict=True)
    return copy, tuple((entry, double) for entry, double in couples if entry is not double)


def _double(number: Any, kind: type) -> Any:
    if type(number) is fmpq:
        return fmpq(number) if kind is fmpq else Fraction(int(number.p), int(number.q))
    return kind(number.numerator, number.denominator) if type(number) is Fraction else number
