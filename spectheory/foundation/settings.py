"""Settings of long computations: each setting is declared, described and checked in one place.

A settings class is a frozen dataclass derived from ``Settings``.  The command line turns its fields into
options, with help from the docstring of the class.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

Progress = Callable[[int, int], None]
"""A callback for progress, called with (steps done, total steps)."""
Function = TypeVar("Function", bound=Callable[..., Any])


def setting(default: Any, **about: Any) -> Any:
    """Declare a field of a settings class.

    Args:
        default: the default value.
        about: ``record`` is the attribute that results record, by default the field itself; None if no
            number depends on the setting.  ``texts_only`` is True if the setting applies to whole texts.
    """
    return field(default=default, metadata=about)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The base of settings classes."""

    def _check(self, check: Callable[[str, Any], Any], *names: str) -> None:
        """Replace each named setting by the value that ``check`` returns; a default of None stays."""
        defaults = {entry.name: entry.default for entry in fields(self)}
        for name in names:
            value = getattr(self, name)
            if value is not None or defaults[name] is not None:
                object.__setattr__(self, name, check(name, value))


def shows_settings(settings: type[Settings]) -> Callable[[Function], Function]:
    """Decorate a function that passes ``**settings`` to a settings class: show all settings as parameters."""

    def shown(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [entry for entry in signature.parameters.values() if entry.kind is not entry.VAR_KEYWORD]
        more = inspect.signature(settings).parameters.values()
        function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        return function

    return shown
