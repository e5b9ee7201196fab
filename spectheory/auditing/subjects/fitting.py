"""The signatures that fit a function, by its parameters."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from spectheory.auditing.subjects.signatures import BY_NAME, SIGNATURES
from spectheory.foundation.errors import InvalidInputError


def signatures_of(function: Callable[..., Any]) -> list[str]:
    """The signatures with as many arguments as a function takes.

    If the argument names of one signature are the function's, return only this signature.

    Example:
        >>> signatures_of(lambda rows, generator: [])
        ['batch']
        >>> signatures_of(lambda requests_of_a_batch, random_numbers: [])
        ['batch', 'path_batch']
    """
    try:
        taken = inspect.signature(function)
    except (TypeError, ValueError):  # it does not say
        return list(SIGNATURES)
    called = {name: _arguments(name) for name in SIGNATURES if name not in BY_NAME}  # these have any order
    named = [name for name, arguments in called.items() if arguments == list(taken.parameters)]
    return named or [name for name, arguments in called.items() if _binds(taken, arguments)]


def _binds(taken: inspect.Signature, arguments: Sequence[str]) -> bool:
    try:
        taken.bind(*arguments)
    except TypeError:
        return False
    return True


def _arguments(signature: str) -> list[str]:
    """The names of the arguments in the form of a signature."""
    return SIGNATURES[signature].form[1:].partition(")")[0].split(", ")


def check_arguments(function: Callable[..., Any], called: str, signature: str) -> None:
    """Refuse a function that cannot be called with the arguments of a signature, and name those that fit.

    Raises:
        InvalidInputError: the function takes more or fewer arguments.  Or all its argument names belong to
            another signature, and none to this one.
    """
    fitting, given = signatures_of(function), _arguments(signature)
    if signature in fitting or signature in BY_NAME:
        return
    taken = inspect.signature(function)
    if len(fitting) == 1 and len(taken.parameters) == len(given) and {*taken.parameters} & {*given}:
        return  # as one that calls the requests of a batch its rows
    hint = f"; --as {' or '.join(fitting)} would fit (in Python signature=)" if fitting else ""
    raise InvalidInputError(
        f"sampler {called!r} takes ({', '.join(taken.parameters)}), and --as {signature} calls it with "
        f"({', '.join(given)}){hint}"
    )
