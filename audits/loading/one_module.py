"""Import a few modules of a library that is not installed, byte for byte; their other imports are stand-ins.

A serving engine needs a device and a hundred other packages; its sampler needs torch.  So only the modules
that hold the sampler are executed.  Names that they import from the rest of the library, or from a package
that is not installed, are stand-ins: they can be passed around, and using one is an error.  An import that is
prepared to fail does fail without its package, and nothing is compiled.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

import torch

from spectheory.foundation.errors import InvalidInputError


class Given(NamedTuple):
    """What is imported instead of a module of the library's surroundings.

    Attributes:
        words: what it is, for the certificate.
        names: makes the objects, by the names they are imported by.
        has_kernels: whether the objects need Triton's interpreter.
    """

    words: str
    names: Callable[[], Mapping[str, Any]]
    has_kernels: bool = False


class StandIn:
    """The result of importing a missing name, which is given with dots."""

    is_loading = False
    """Whether a module is being executed: decorators and type expressions may then use stand-ins."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        """A class that derives from a stand-in has an empty base instead."""
        return (_Base,)

    def _use(self, what: str) -> StandIn:
        if not StandIn.is_loading:
            raise InvalidInputError(f"the sampler {what} {self._name}, which is not in the audited code")
        return StandIn(self._name)

    def __getattr__(self, name: str) -> StandIn:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{self._name}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> StandIn:
        return self._use("calls")

    def __getitem__(self, key: Any) -> StandIn:
        return self._use("indexes")

    def __iter__(self) -> Iterator[Any]:
        return iter([self._use("iterates over")])

    def __or__(self, other: Any) -> StandIn:
        return self._use("combines")

    __ror__ = __or__

    def __bool__(self) -> bool:
        """While modules are executed: what is not here is not available."""
        if StandIn.is_loading:
            return False
        raise InvalidInputError(f"the sampler depends on {self._name}, which is not part of what is audited")


class _Base:
    """The base of classes that derive from a stand-in, with whatever settings."""

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__()


class _StandInModule(ModuleType):
    """A module of stand-ins, except for the names it is given."""

    _inside: Collection[str] = ()
    """The modules that are executed or given."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        return importlib.import_module(full) if full in self._inside else StandIn(full)


def _package(name: str) -> str:
    return name.partition(".")[0]


class _FromSource(SourceFileLoader):
    """Compiles the file itself.

    Byte code that is kept is taken for that of a file of the same length, changed within the same second.
    """

    def path_stats(self, path: Any) -> Any:
        raise OSError("byte code is neither read nor written")


class _Finder:
    """Finds the modules of one library, the given modules and those that are not installed."""

    def __init__(self, files: Mapping[str, Path], given: Mapping[str, Mapping[str, Any]]) -> None:
        self.files, self.given = files, given
        self.packages = {_package(name) for name in (*files, *given)}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name in self.files:
            inside: list[str] | None = [] if self.files[name].name == "__init__.py" else None
            return importlib.util.spec_from_file_location(
                name,
                self.files[name],
                loader=_FromSource(name, str(self.files[name])),
                submodule_search_locations=inside,
            )
        package = _package(name)
        is_known = package in self.packages or isinstance(sys.modules.get(package), _StandInModule)
        if not is_known and (
            package in sys.modules
            or package in sys.stdlib_module_names
            or PathFinder.find_spec(package)
            or not self._needs(_importing())
        ):
            return None
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def _needs(self, frame: FrameType) -> bool:
        """Whether an import is by a module of the library, and not prepared to fail."""
        return _package(frame.f_globals.get("__name__", "")) in self.packages and not _may_fail(frame)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["_inside"] = (*self.files, *self.given)
        module.__dict__.update(self.given.get(module.__name__, {}))


def _importing() -> FrameType:
    """The frame with the import statement that is executed."""
    frame: Any = sys._getframe(2)
    while frame.f_back is not None and "importlib" in frame.f_globals.get("__name__", ""):
        frame = frame.f_back
    return frame


def _may_fail(frame: FrameType) -> bool:
    """Whether the statement is in a ``try`` with a handler of import errors."""
    try:
        tree = ast.parse(Path(frame.f_code.co_filename).read_bytes())
    except (OSError, SyntaxError):
        return False
    return any(
        tried.body[0].lineno <= frame.f_lineno <= (tried.body[-1].end_lineno or 0)
        and any(each.type and "ImportError" in ast.unparse(each.type) for each in tried.handlers)
        for tried in ast.walk(tree)
        if isinstance(tried, ast.Try)
    )


def _not_compiled(function: Any = None, **_: Any) -> Any:
    return _not_compiled if function is None else function


def modules_alone(
    files: Mapping[str, Path], given: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, ModuleType]:
    """Import modules of a library, and no other modules of it.

    A module other than the first that fails without the rest of its library is left out: what it defines is a
    stand-in, like everything that is not here.

    Args:
        files: dotted name -> file; the first is what is wanted, the others may be imported by it.
        given: module -> name -> the object to import instead of a stand-in.
    """
    for file in files.values():
        if not file.is_file():
            raise InvalidInputError(f"{file} is missing")
    left, first = dict(files), next(iter(files))
    while True:
        try:
            return _executed(left, given or {})
        except Exception as error:  # whatever a library does at import
            failed = _failed(error, left)
            if failed in (None, first):
                raise InvalidInputError(
                    f"{files[first]} cannot be executed without the rest of its library: "
                    f"{type(error).__name__}: {error}"
                ) from error
            del left[failed]


def _failed(error: Exception, files: Mapping[str, Path]) -> Any:
    """The module of these files in which the error was raised."""
    names = {str(file): name for name, file in files.items()}
    frames = traceback.extract_tb(error.__traceback__)
    return next((names[frame.filename] for frame in reversed(frames) if frame.filename in names), None)


def _executed(files: Mapping[str, Path], given: Mapping[str, Mapping[str, Any]]) -> dict[str, ModuleType]:
    finder: Any = _Finder(files, given)
    before = dict(sys.modules)
    for name in before:
        if _package(name) in finder.packages:
            del sys.modules[name]
    sys.meta_path.insert(0, finder)
    StandIn.is_loading = True
    compiled, torch.compile = torch.compile, _not_compiled  # type: ignore[assignment]
    try:
        importlib.import_module(next(iter(files)))
        return {name: sys.modules[name] for name in files if name in sys.modules}
    finally:
        StandIn.is_loading = False
        torch.compile = compiled
        sys.meta_path.remove(finder)
        for name, module in list(sys.modules.items()):
            if _package(name) in finder.packages or isinstance(module, _StandInModule):
                del sys.modules[name]
        sys.modules.update(before)
