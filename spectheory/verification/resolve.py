"""A question is settled once, here: which verifier, which draft process, which arithmetic."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any, NamedTuple

from spectheory.foundation.errors import InvalidOutcomeError, UnknownNameError
from spectheory.foundation.validation import unknown_name
from spectheory.pairs.drafts import DraftProcess, draft_process
from spectheory.pairs.pair import ModelPair, check_pair
from spectheory.verification.algorithms import verifiers
from spectheory.verification.verifier import Verifier, as_verifier, users_code


class Resolved(NamedTuple):
    """One verifier on one pair, ready to be asked.

    Attributes:
        verifier: bound to the process and the pair.
        pair: the models in the arithmetic the verifier computes in, their rows normalised.
        process: the draft process in that arithmetic.
    """

    verifier: Verifier
    pair: ModelPair
    process: DraftProcess


def resolve(
    verifier: str | Any,
    pair: ModelPair,
    num_drafts: int | None = None,
    process: DraftProcess | None = None,
) -> Resolved:
    """The verifier, pair and process that a question is about.

    Args:
        verifier: a name, ``"package.module:attribute"``, or any object with ``outcome``.
        pair: the models as given.
        num_drafts: K paths drafted i.i.d.; 1 if neither it nor ``process`` is given.
        process: another draft process, instead of ``num_drafts``.

    Raises:
        UnknownNameError: there is no verifier of that name.
        InvalidInputError: it is no verifier, not meant for the process or the pair, or the process does not
            fit the pair.

    Example:
        >>> from spectheory import instances
        >>> resolve("spectr", instances.two_token(1), 2).pair.arithmetic
        'float64'
    """
    check_pair(pair)
    found = find_verifier(verifier)
    pair, process = in_arithmetic_of(found, pair, draft_process(num_drafts, process))
    process, pair = process.normalised(), pair.normalised()
    process.check(pair)
    return Resolved(found.bind(process, pair), pair, process)


def in_arithmetic_of(
    verifier: Verifier, pair: ModelPair, process: DraftProcess
) -> tuple[ModelPair, DraftProcess]:
    """The pair and the process as they are for an exact verifier, in float64 for another."""
    return (pair, process) if verifier.exact else (pair.to_float(), process.to_float())


def find_verifier(verifier: str | Any) -> Verifier:
    """The verifier of that name, the user's own named ``"package.module:attribute"``, or the object given.

    The attribute is a verifier or a class of one; the current directory is searched too.

    Raises:
        UnknownNameError: there is none; the error suggests the nearest name.
        InvalidInputError: what was found is no verifier.

    Example:
        >>> find_verifier("block")
        <verifier block>
    """
    if not isinstance(verifier, str):
        return as_verifier(verifier)
    if verifier in verifiers:
        return verifiers[verifier]
    if ":" in verifier:
        return _users_own(verifier)
    raise unknown_name("verifier", verifier, verifiers, ", or your own as package.module:name")


def imported(name: str, what: str, method: str = "") -> Any:
    """The object named ``"package.module:attribute"``; the current directory is searched too.

    Args:
        name: what the user gave.
        what: the word for it in errors: "verifier".
        method: what objects of this kind have, to suggest one where the attribute does not exist.

    Raises:
        UnknownNameError: there is none.
        InvalidOutcomeError: importing it failed.
    """
    module_name, _, attribute = name.partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    if module_name.endswith(".py") or not all(map(str.isidentifier, (*module_name.split("."), attribute))):
        raise UnknownNameError(
            f"{name!r} names no {what}; expected package.module:name, an importable module (without .py, "
            "in or below the current directory or installed) and a name in it"
        )
    try:
        with users_code(f"importing {module_name}"):
            module = import_module(module_name)
    except InvalidOutcomeError as error:
        if isinstance(error.__cause__, ImportError):
            raise UnknownNameError(f"cannot import the {what} {name!r}: {error.__cause__}") from error
        raise
    with users_code(f"looking up {name}"):
        if not hasattr(module, attribute):
            own = [
                known
                for known, value in vars(module).items()
                if callable(getattr(value, method, None) if method else value)
            ]
            raise unknown_name(f"attribute of module {module_name!r}", attribute, own)
        return getattr(module, attribute)


def _users_own(name: str) -> Verifier:
    found = imported(name, "verifier", "outcome")
    if isinstance(found, type):
        with users_code(f"making {name}"):
            found = found()
    return as_verifier(found)
