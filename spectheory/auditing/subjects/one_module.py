"""Import one module of a library that is not installed, byte for byte; its own imports are stand-ins.

A serving engine needs a device and a hundred other packages; its sampler needs torch.  So only the modules
that hold the sampler are executed.  Names that they import from the rest of the library, or from a package
that is not installed, are stand-ins: they can be passed around, and using one is an error.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from spectheory.errors import InvalidInputError


class StandIn:
    """The result of importing a missing name, which is given with dots."""

    is_loading = False
    """Whether a module is being executed: decorators and type expressions may then use stand-ins."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        """A class that derives from a stand-in drops this base."""
        return ()

    def _use(self, what: str) -> StandIn:
        if not StandIn.is_loading:
            raise InvalidInputError(f"the sampler {what} {self._name}, which is not part of what is audited")
        return StandIn(self._name)

    def __getattr__(self, name: str) -> StandIn:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{self._name}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> StandIn:
        return self._use("calls")

    def __getitem__(self, key: Any) -> StandIn:
        return self._use("indexes")

    def __or__(self, other: Any) -> StandIn:
        return self._use("combines")

    __ror__ = __or__

    def __bool__(self) -> bool:
        raise InvalidInputError(f"the sampler depends on {self._name}, which is not part of what is audited")


class _StandInModule(ModuleType):
    """A module of stand-ins, except for the names it is given."""

    def __getattr__(self, name: str) -> StandIn:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{self.__name__}.{name}")


def _package(name: str) -> str:
    return name.partition(".")[0]


class _Finder:
    """Finds the modules of one library, the given modules and those that are not installed."""

    def __init__(self, files: Mapping[str, Path], given: Mapping[str, Mapping[str, Any]]) -> None:
        self.files, self.given = files, given
        self.packages = {_package(name) for name in (*files, *given)}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name in self.files:
            return importlib.util.spec_from_file_location(name, self.files[name])
        package = _package(name)
        is_known = package in self.packages or isinstance(sys.modules.get(package), _StandInModule)
        if not is_known and (
            package in sys.modules or package in sys.stdlib_module_names or PathFinder.find_spec(package)
        ):
            return None
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.update(self.given.get(module.__name__, {}))


def file_of(module: str) -> str:
    """The path of a module in its library.

    Example:
        >>> file_of("a.b")
        'a/b.py'
    """
    return f"{module.replace('.', '/')}.py"


def module_alone(
    root: Path, modules: Sequence[str], given: Mapping[str, Mapping[str, Any]] | None = None
) -> ModuleType:
    """Import a module of a library with no other modules of the library than those named.

    Args:
        root: the folder that contains the library's package.
        modules: dotted names; the first is returned, the others may be imported by it.
        given: module -> name -> the object to import instead of a stand-in.

    Raises:
        InvalidInputError: a file is missing, or a module needs more of its library.
    """
    files = {name: root / file_of(name) for name in modules}
    for file in files.values():
        if not file.is_file():
            raise InvalidInputError(f"{file} is missing")
    finder: Any = _Finder(files, given or {})
    before = dict(sys.modules)
    for name in before:
        if _package(name) in finder.packages:
            del sys.modules[name]
    sys.meta_path.insert(0, finder)
    StandIn.is_loading = True
    try:
        return importlib.import_module(modules[0])
    finally:
        StandIn.is_loading = False
        sys.meta_path.remove(finder)
        for name, module in list(sys.modules.items()):
            if _package(name) in finder.packages or isinstance(module, _StandInModule):
                del sys.modules[name]
        sys.modules.update(before)
