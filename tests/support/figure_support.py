"""Small versions of all figures, and what a figure is told when its checks must fail."""

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import pytest

from figures.results import Findings, Result
from scripts import load

NAMES = load("scripts", "reproduce").names()

Lie = Callable[[Callable[..., Any]], Callable[..., Any]]
"""A function in place of another one, made of it."""


def figure(name: str) -> Result:
    return getattr(import_module(f"figures.{name}"), name)


def small(name: str, **changes: Any) -> Findings:
    return figure(name)(**{**figure(name).small, **changes})


@cache
def small_once(name: str) -> Findings:
    """The small version of a figure, computed once per process."""
    return small(name)


class Changed:
    """An object of which some attributes are told otherwise."""

    def __init__(self, found: Any, **changes: Callable[[Any], Any]) -> None:
        self._found, self._changes = found, changes

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._found, name)
        return self._changes[name](value) if name in self._changes else value


def told(**changes: Callable[[Any], Any]) -> Lie:
    """The lie of a function whose result has changed attributes."""
    return told_of(lambda *_, **__: True, **changes)


def told_of(wanted: Callable[..., bool], **changes: Callable[[Any], Any]) -> Lie:
    return lambda original: (
        lambda *arguments, **options: Changed(
            original(*arguments, **options), **(changes if wanted(*arguments, **options) else {})
        )
    )


def instead(answer: Any) -> Lie:
    """The lie of a function that gives the same answer whatever it is asked."""
    return lambda original: lambda *arguments, **options: answer


def after(change: Callable[..., Any]) -> Lie:
    return lambda original: lambda *given, **options: change(original(*given, **options), *given)


def assert_seen(
    patch: pytest.MonkeyPatch, name: str, called: str, lie: Lie, claims: Sequence[str], **parameters: Any
) -> None:
    """The checks that start with these words fail when what the figure calls is replaced by a lie.

    Args:
        patch: undone after the test.
        name: of the figure.
        called: what its function calls; ``"module.function"`` where another module of ``figures`` calls it.
        lie: makes the replacement from the original.
        claims: first words, each of one check.
        parameters: changes of the small version.
    """
    module, _, function = called.rpartition(".")
    file = import_module(f"figures.{module or name}")
    patch.setattr(file, function, lie(getattr(file, function)))
    findings = small(name, **parameters)
    for claim in claims:
        about = [check for check in findings.checks if check.claim.startswith(claim)]
        assert len(about) == 1, (claim, [check.claim for check in findings.checks])
        assert not about[0].passed, claim
