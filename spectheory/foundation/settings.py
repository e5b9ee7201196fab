"""Settings of long computations: each is declared, described and checked in one place.

A settings class is a frozen dataclass with ``Settings`` as its base.  The command line makes options of the
fields, and takes their help from the docstring of the class.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

Progress = Callable[[int, int], None]
"""Called with (steps done, steps in all)."""
Function = TypeVar("Function", bound=Callable[..., Any])


def setting(default: Any, **about: Any) -> Any:
    """A field of a settings class.

    Args:
        default: its value.
        about: ``record``, the attribute that is recorded, by default the field itself, and None where no
            number depends on it; ``texts_only``, whether the setting is for whole texts.
    """
    return field(default=default, metadata=about)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The base of settings classes."""

    def _check(self, check: Callable[[str, Any], Any], *names: str) -> None:
        """Replace each of these settings by what its check returns; None passes where it is the default."""
        defaults = {entry.name: entry.default for entry in fields(self)}
        for name in names:
            value = getattr(self, name)
            if value is not None or defaults[name] is not None:
                object.__setattr__(self, name, check(name, value))


def shows_settings(settings: type[Settings]) -> Callable[[Function], Function]:
    """Give a function that passes ``**changes`` on to a settings class the signature with all settings."""

    def shown(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [entry for entry in signature.parameters.values() if entry.kind is not entry.VAR_KEYWORD]
        more = inspect.signature(settings).parameters.values()
        function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        return function

    return shown
