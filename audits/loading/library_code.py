"""One function of a library, imported from its files and ready to be called."""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from hashlib import sha256
from types import ModuleType
from typing import Any, NamedTuple

from audits.loading.one_module import Given, modules_alone
from audits.loading.reached_code import Function, find_function
from spectheory.auditing.following.triton_kernels import interpreting
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.wheels import Release

NOISE = "exponential random numbers, one per seed, position and token"
"""The stand-in of functions that compute Gumbel numbers from a hash."""
_IMPORTS_TRITON = re.compile(rb"^\s*(import|from) triton\b", re.MULTILINE)


class Code(NamedTuple):
    """A function of a release, and the modules that were executed for it.

    Attributes:
        function: the function or class, unmodified.
        options: arguments that the subject sets.
        modules: dotted name -> module.
        stops: the given modules that the function reaches.
        stand_ins: replaced objects and given modules, in words.
        file: of the function, relative to the release's folder.
        line: its first line.
        sha256: of that file.
        release: in words.
        is_elsewhere: whether no tested release has it in this file.
    """

    function: Any
    options: Mapping[str, Any]
    modules: Mapping[str, ModuleType]
    stops: Collection[str]
    stand_ins: list[str]
    file: str
    line: int
    sha256: str
    release: str
    is_elsewhere: bool

    def call(self, **values: Any) -> Any:
        """Call the function with those of the values that it has parameters for, and with the options."""
        names = inspect.signature(self.function).parameters
        return self.function(
            **{name: value for name, value in values.items() if name in names}, **self.options
        )

    def constant(self, name: str, default: Any) -> Any:
        """A constant of the function's module; the default where it has none or imports a stand-in."""
        value = getattr(next(iter(self.modules.values())), name, default)
        value = getattr(value, "value", value)  # of a constant for kernels
        return value if isinstance(value, (int, float)) else default

    def replace(self, names: Sequence[str], make: Callable[..., Sequence[Any]], words: str) -> None:
        """Replace objects of the executed modules wherever they are imported; none where one is missing."""
        homes = [next((m for m in self.modules.values() if hasattr(m, name)), None) for name in names]
        if None in homes:
            return
        self.stand_ins.append(f"{' and '.join(names)}: {words}" if ":" not in words else words)
        made = make(*(getattr(home, name) for home, name in zip(homes, names, strict=True)))
        for name, new in zip(names, made, strict=True):
            for module in self.modules.values():
                if hasattr(module, name):
                    setattr(module, name, new)

    def refused(self, why: str) -> InvalidInputError:
        """The error of a release without what a subject needs."""
        return InvalidInputError(f"{self.release}: {self.file}: {self.function.__name__} {why}")


def load_code(
    release: Release,
    top: str,
    function: Function,
    given: Mapping[str, Given],
    options: Mapping[str, Any] | None = None,
) -> Code:
    """Import a function of a release; its kernels are interpreted."""
    words = f"{release.package} {release.version}".strip()
    wanted = function._replace(options=frozenset(options or ()))
    try:
        found = find_function(release.folder, top, wanted, tuple(given))
    except InvalidInputError as error:
        raise InvalidInputError(f"{words}: {error}") from None
    reached = {module: given[module] for module in found.stops}
    first = next(iter(found.modules.values()))
    has_kernels = any(_IMPORTS_TRITON.search(file.read_bytes()) for file in found.modules.values())
    has_kernels = has_kernels or any(each.has_kernels for each in reached.values())
    with interpreting() if has_kernels else nullcontext():
        modules = modules_alone(found.modules, {name: each.names() for name, each in reached.items()})
    return Code(
        getattr(modules[next(iter(found.modules))], function.name),
        dict(options or {}),
        modules,
        tuple(found.stops),
        [each.words for each in reached.values()],
        first.relative_to(release.folder).as_posix(),
        found.line,
        sha256(first.read_bytes()).hexdigest(),
        words,
        found.is_elsewhere,
    )
