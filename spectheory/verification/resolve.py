"""Resolve a verifier, pair and draft process from user input."""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from spectheory.foundation.errors import InvalidOutcomeError, UnknownNameError
from spectheory.foundation.validation import nearest_name, unknown_name
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.drafts.iid import draft_process
from spectheory.pairs.drafts.kept import AdaptiveDrafts
from spectheory.pairs.drafts.process import ANY_PROCESS
from spectheory.pairs.pair import ModelPair, check_pair
from spectheory.verification.algorithms import verifiers
from spectheory.verification.kept_lengths import AtKeptLengths
from spectheory.verification.user import as_verifier, users_code
from spectheory.verification.verifier import Verifier


class Problem(NamedTuple):
    """One verifier on one pair with one draft process.

    Attributes:
        verifier: the verifier, bound to the process and the pair.
        pair: the models in the verifier's arithmetic, with normalised rows.
        process: the draft process in the same arithmetic.
    """

    verifier: Verifier
    pair: ModelPair
    process: DraftProcess


def resolve(
    verifier: str | Any,
    pair: ModelPair,
    drafts: int | DraftProcess = 1,
) -> Problem:
    """Find the verifier, bring pair and draft process into its arithmetic, and bind it to both.

    Args:
        verifier: a name, ``"package.module:attribute"``, or any object with ``outcome``.
        pair: the models.
        drafts: K for i.i.d. paths, or a draft process.

    Raises:
        UnknownNameError: there is no verifier of that name.
        InvalidInputError: the object is not a verifier, the verifier does not accept the process or the pair,
            or the process does not fit the pair.

    Example:
        >>> from spectheory import instances
        >>> resolve("spectr", instances.two_token(1), 2).pair.arithmetic
        'float64'
    """
    check_pair(pair)
    found = find_verifier(verifier)
    pair, process = in_arithmetic_of(
        found,
        pair,
        draft_process(drafts),
    )
    process, pair = process.normalised(), pair.normalised()
    process.check(pair)
    if isinstance(process, AdaptiveDrafts) and found.draft_processes is not ANY_PROCESS:
        whole, rows = process.base(), process.drafter(pair, 0)
        return Problem(AtKeptLengths(found).bind(whole, rows), pair, process)
    return Problem(found.bind(process, pair), pair, process)


def in_arithmetic_of(
    verifier: Verifier, pair: ModelPair, process: DraftProcess
) -> tuple[ModelPair, DraftProcess]:
    """Return the pair and the process: unchanged for an exact verifier, otherwise converted to float64."""
    return (pair, process) if verifier.exact else (pair.to_float(), process.to_float())


def find_verifier(verifier: str | Any) -> Verifier:
    """Find a verifier by registered name or by ``"package.module:attribute"``, or wrap a given object.

    The attribute is a verifier or a class of verifiers.  The current directory is searched too.

    Raises:
        UnknownNameError: nothing has that name; the error suggests the nearest name.
        InvalidInputError: the object found is not a verifier.

    Example:
        >>> find_verifier("block")
        <verifier block>
    """
    if not isinstance(verifier, str):
        return as_verifier(verifier)
    if verifier in verifiers:
        return verifiers[verifier]
    if ":" in verifier:
        return _user_verifier(verifier)
    raise unknown_name("verifier", verifier, verifiers, ", or your own as package.module:name")


_TAKEN = sys.stdlib_module_names | {
    *("array_api_compat", "click", "cvxpy", "flint", "highspy", "matplotlib", "networkx", "numpy", "rich"),
    *("safetensors", "scipy", "sympy", "tokenizers", "torch", "transformers", "triton"),
}


_MISSING = object()


def imported(name: str, what: str, method: str = "") -> Any:
    """Import the object named ``"package.module:attribute"``, or a method ``"package.module:Class.method"``.

    The current directory is searched too.

    ``what`` is the noun for messages, such as "verifier".  If the attribute does not exist, the message
    suggests names of objects with the method ``method``.
    """
    module_name, _, attribute = name.partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    if module_name.endswith(".py") or not all(
        map(str.isidentifier, (*module_name.split("."), *attribute.split(".")))
    ):
        raise UnknownNameError(
            f"{name!r} names no {what}; expected package.module:name, an importable module (without .py, "
            "in or below the current directory or installed) and a name in it"
        )
    top = module_name.partition(".")[0]
    if top in _TAKEN and any(Path(top).with_suffix(suffix).exists() for suffix in (".py", "")):
        raise UnknownNameError(
            f"{name!r} is not found: {top} in the current directory has the name of a module of Python or of "
            "a library that is used here; give it another one"
        )
    try:
        with users_code(f"importing {module_name}", may_refuse=True):
            module = import_module(module_name)
    except InvalidOutcomeError as error:
        if isinstance(error.__cause__, ImportError):
            hint = nearest_name(top, [file.stem for file in Path().glob("*.py")])
            raise UnknownNameError(
                f"cannot import the {what} {name!r}: {error.__cause__}{hint and ';'}{hint}"
            ) from error
        raise
    found: Any = module
    for part in attribute.split("."):
        found = getattr(found, part, _MISSING)
    if found is _MISSING:
        own = [
            known
            for known, value in vars(module).items()
            if callable(getattr(value, method, None) if method else value)
        ]
        raise unknown_name(f"attribute of module {module_name!r}", attribute, own)
    return found


def _user_verifier(name: str) -> Verifier:
    found = imported(name, "verifier", "outcome")
    if isinstance(found, type):
        with users_code(f"making {name}", may_refuse=True):
            found = found()
    return as_verifier(found)
