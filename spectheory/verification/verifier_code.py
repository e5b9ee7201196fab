"""A digest of the code that a proof is of: the classes of a verifier and of its draft process."""

import ast
import inspect
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from hashlib import sha256
from textwrap import dedent
from types import FunctionType
from typing import Any

from spectheory.pairs.drafts import DraftProcess
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier


def code_digest(*subjects: Verifier | DraftProcess) -> str:
    """The digest of the classes of verifiers and draft processes, and of their parameters.

    It is the same on every machine, whatever the comments and docstrings are.  The array functions that the
    classes call are not in it: the tests check stored proofs with the code as it is.

    Example:
        >>> from spectheory import verifiers
        >>> code_digest(verifiers["token"]) == code_digest(verifiers["block"])
        False
    """
    return sha256("\n".join(text for subject in subjects for text in _texts(subject)).encode()).hexdigest()


def _texts(subject: Any) -> Iterator[str]:
    """The syntax trees of a subject's classes, but for the abstract ones, and its parameters."""
    value = subject.user_object if isinstance(subject, UserVerifier) else subject
    if isinstance(value, FunctionType):
        yield _tree(value)
        return
    yield from (_tree(kind) for kind in type(value).__mro__ if kind not in (Verifier, DraftProcess, object))
    for name, entry in sorted(getattr(value, "__dict__", {}).items()):
        if isinstance(entry, FunctionType):
            yield _tree(entry)
        elif all(isinstance(one, _CONSTANTS) for one in (entry if isinstance(entry, tuple) else [entry])):
            yield f"{name} = {entry!r}"


_CONSTANTS = (int, float, str, Fraction)


@cache
def _tree(code: Any) -> str:
    try:
        tree = ast.parse(dedent(inspect.getsource(code)))
    except (OSError, TypeError, SyntaxError):  # typed in, of Python itself, or in the middle of a line
        return f"{code.__module__}:{code.__qualname__}"
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):  # texts that stand alone, as docstrings do, say nothing
            node.body = [one for one in body if not _is_text(one)] or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(tree)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
