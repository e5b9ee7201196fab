"""Compiled loops as Python runs them: indices are checked, and coverage sees their lines."""

import sys
from inspect import getattr_static

import pytest


def run_in_python(monkeypatch: pytest.MonkeyPatch, *modules: str) -> int:
    """Put the Python functions in place of the loops of these modules, wherever they were imported to.

    Returns:
        How many names were replaced.
    """
    count = 0
    for module in [module for name, module in sys.modules.items() if name.startswith("spectheory")]:
        for name, loop in list(vars(module).items()):
            function = getattr_static(loop, "py_func", None)
            if function is not None and function.__module__ in modules:
                monkeypatch.setattr(module, name, function)
                count += 1
    return count
