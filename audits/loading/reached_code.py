"""The modules of a library that one of its functions needs, read from the source without importing it.

A function needs the module-level names that it mentions, those need others, and a name that is imported leads
to another module.  Every other import of these modules is left to a stand-in (``one_module``), so that a file
without a part in the function is never required.
"""

import ast
import builtins
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from spectheory.foundation.errors import InvalidInputError


class Function(NamedTuple):
    """A function or class of a library, and how it is recognised in releases that were never seen.

    Attributes:
        name: of the function, at the top level of its module.
        modules: where releases keep it, the newest first, by dotted names.
        parameters: the parameters that the adapter knows, by names of all releases; empty
            where nothing is asked of them.
        options: parameters that the function must have.
    """

    name: str
    modules: tuple[str, ...]
    parameters: frozenset[str] = frozenset()
    options: frozenset[str] = frozenset()

    def misfit(self, node: ast.stmt) -> str:
        """Why a definition is not this function, in words; empty if it is."""
        if isinstance(node, ast.ClassDef):
            inside = [each for each in node.body if getattr(each, "name", "") == "__init__"]
            return self.misfit(inside[0]) if inside else ""
        if not isinstance(node, ast.FunctionDef) or not self.parameters:
            return ""
        args = node.args
        positional = [arg.arg for arg in (*args.posonlyargs, *args.args) if arg.arg != "self"]
        named = [arg.arg for arg in args.kwonlyargs]
        required = positional[: len(positional) - len(args.defaults)]
        required += [name for name, value in zip(named, args.kw_defaults, strict=True) if value is None]
        lacking = [] if args.kwarg else sorted(self.options - {*positional, *named})
        unknown = [name for name in required if name not in self.parameters | self.options]
        if lacking:
            return f"has no parameter {', '.join(lacking)}"
        return f"requires {', '.join(unknown)}, which the adapter does not know" if unknown else ""


class Found(NamedTuple):
    """Where a function is, and what it needs.

    Attributes:
        modules: dotted name -> file; the function's own module comes first.
        stops: the given modules that are reached, with the names that are asked for.
        line: of the definition.
        is_elsewhere: whether it is in a module that no tested release has it in.
    """

    modules: Mapping[str, Path]
    stops: Mapping[str, Collection[str]]
    line: int
    is_elsewhere: bool


def file_of(module: str) -> str:
    """The path of a module in its library."""
    return f"{module.replace('.', '/')}.py"


def module_file(root: Path, module: str) -> Path | None:
    """The file that Python imports for a name: of a package, else of a module; ``None`` where it has neither.

    A compiled extension comes before a module of the same name, and cannot be followed.
    """
    package, file = root / module.replace(".", "/") / "__init__.py", root / file_of(module)
    if package.is_file():
        return package
    compiled = [*file.parent.glob(f"{file.stem}.*.so"), *file.parent.glob(f"{file.stem}.*.pyd")]
    return file if file.is_file() and not compiled else None


def find_function(root: Path, top: str, function: Function, stops: Collection[str] = ()) -> Found:
    """Find a function in a tree of files, where releases keep it or by its name and signature."""
    for module in function.modules:
        file = module_file(root, module)
        if file is not None and function.name in _module(file, module).statements:
            why = _misfit(file, module, function)
            if why:
                raise InvalidInputError(f"{file.relative_to(root)}: {why}")
            return _reached(root, module, function, stops, is_elsewhere=False)
    having = [
        (file, module)
        for file, module in _mentioning(root, top, function.name)
        if function.name in _module(file, module).statements
    ]
    fitting = [module for file, module in having if not _misfit(file, module, function)]
    if len(fitting) == 1:
        return _reached(root, fitting[0], function, stops, is_elsewhere=True)
    if fitting:
        places = ", ".join(map(file_of, fitting))
        raise InvalidInputError(f"several files have a {function.name} that fits: {places}")
    if having:
        misfits = (f"{file.relative_to(root)}: {_misfit(file, module, function)}" for file, module in having)
        raise InvalidInputError("; ".join(misfits))
    near = "".join(f"; {place} has {', '.join(names)}" for place, names in _alike(root, function))
    raise InvalidInputError(f"no file of {root / top} has {function.name}{near}")


def _alike(root: Path, function: Function) -> Iterator[tuple[Path, list[str]]]:
    """Names like that of a function, in the files where releases keep it."""
    for module in function.modules:
        file = module_file(root, module)
        names = get_close_matches(function.name, _module(file, module).statements) if file else []
        if file is not None and names:
            yield file.relative_to(root), names


def _misfit(file: Path, module: str, function: Function) -> str:
    why = function.misfit(_module(file, module).statements[function.name][-1])
    return f"{function.name} {why}" if why else ""


def _mentioning(root: Path, top: str, name: str) -> Iterator[tuple[Path, str]]:
    definitions = tuple(f"{word} {name}{end}".encode() for word in ("def", "class") for end in "(:")
    for file in sorted((root / top).rglob("*.py")):
        content = file.read_bytes()
        if any(definition in content for definition in definitions):
            parts = file.relative_to(root).with_suffix("").parts
            yield file, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class _Module(NamedTuple):
    """A module's top-level names.

    Attributes:
        statements: name -> the statements that bind it.
        imports: name -> (module, name in it, or None for the module itself).
    """

    statements: Mapping[str, list[ast.stmt]]
    imports: Mapping[str, tuple[str, str | None]]


def _reached(
    root: Path, module: str, function: Function, stops: Collection[str], is_elsewhere: bool
) -> Found:
    """Follow names from the function on, inside its library."""
    top = module.partition(".")[0]
    modules: dict[str, Path] = {}
    stopped: dict[str, dict[str, None]] = {}
    asked, open_names = set(), [(module, function.name)]
    while open_names:
        place = open_names.pop(0)
        if place in asked:
            continue
        asked.add(place)
        module, name = place
        if module in stops:
            stopped.setdefault(module, {})[name] = None
            continue
        file = module_file(root, module) if module.partition(".")[0] == top else None
        if file is None:
            continue
        parsed = _module(file, module)
        if name in parsed.statements:
            for statement in parsed.statements[name]:
                open_names += _mentions(statement, module, parsed)
        elif name in parsed.imports:
            open_names += _import_of(parsed.imports[name], None)
        else:
            continue
        modules.setdefault(module, file)
    first = next(iter(modules))
    line = _module(modules[first], first).statements[function.name][-1].lineno
    return Found(modules, stopped, line, is_elsewhere)


def _mentions(statement: ast.stmt, module: str, parsed: _Module) -> Iterator[tuple[str, str]]:
    """The (module, name) that a statement mentions outside of annotations."""
    for node in _without_annotations(statement):
        attribute = None
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            attribute, node = node.attr, node.value
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        if node.id in parsed.statements:
            yield module, node.id
        elif node.id in parsed.imports:
            yield from _import_of(parsed.imports[node.id], attribute)


def _import_of(target: tuple[str, str | None], attribute: str | None) -> Iterator[tuple[str, str]]:
    module, name = target
    if name is not None:
        yield module, name
        if attribute is not None:  # ``name`` may be a module of the package
            yield f"{module}.{name}", attribute
    elif attribute is not None:
        yield module, attribute


def _without_annotations(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _without_annotations(child)


@lru_cache(maxsize=64)
def _parsed(file: Path, changed: int, module: str) -> _Module:
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise InvalidInputError(f"{file} is not Python of this version: {error}") from None
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    statements: dict[str, list[ast.stmt]] = {}
    imports: dict[str, tuple[str, str | None]] = {}
    for statement in _top_level(tree.body):
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                imports[alias.asname or name] = (name, None)
        elif isinstance(statement, ast.ImportFrom):
            parts = package.split(".") if statement.level else []
            parts = [*parts[: len(parts) - statement.level + 1], statement.module or ""]
            for alias in statement.names:
                imports[alias.asname or alias.name] = (".".join(filter(None, parts)), alias.name)
        else:
            for name in _bound(statement):
                if not hasattr(builtins, name):
                    statements.setdefault(name, []).append(statement)
    return _Module(statements, imports)


def _module(file: Path, module: str) -> _Module:
    return _parsed(file, file.stat().st_mtime_ns, module)


def _top_level(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, with those inside conditions, but not those for type checkers."""
    for statement in body:
        if isinstance(statement, ast.If):
            if "TYPE_CHECKING" not in ast.unparse(statement.test):
                yield from _top_level(statement.body)
            yield from _top_level(statement.orelse)
        elif isinstance(statement, ast.Try):
            parts = [statement.body, *(handler.body for handler in statement.handlers)]
            for part in (*parts, statement.orelse, statement.finalbody):
                yield from _top_level(part)
        elif isinstance(statement, ast.With):
            yield from _top_level(statement.body)
        else:
            yield statement


def _bound(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
