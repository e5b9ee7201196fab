"""Small wrong changes of a function, made on its syntax tree: what a mutation check tries.

An edit has a text and a number: ``"unwrap at_most_one"`` is the first call of that function replaced by its
argument, ``"< to <= #2"`` the second comparison of that kind.  Nothing depends on layout, comments or
docstrings.
"""

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Replace = Callable[[], None]
COMPARISONS: dict[type[ast.cmpop], tuple[str, type[ast.cmpop]]] = {
    ast.Lt: ("< to <=", ast.LtE),
    ast.LtE: ("<= to <", ast.Lt),
    ast.Gt: ("> to >=", ast.GtE),
    ast.GtE: (">= to >", ast.Gt),
    ast.Eq: ("== to !=", ast.NotEq),
    ast.NotEq: ("!= to ==", ast.Eq),
    ast.Is: ("is to is not", ast.IsNot),
    ast.IsNot: ("is not to is", ast.Is),
    ast.In: ("in to not in", ast.NotIn),
    ast.NotIn: ("not in to in", ast.In),
}
OPERATORS: dict[type[ast.operator], tuple[str, type[ast.operator]]] = {
    ast.Add: ("+", ast.Sub),
    ast.Sub: ("-", ast.Add),
    ast.Mult: ("*", ast.Div),
    ast.Div: ("/", ast.Mult),
    ast.FloorDiv: ("//", ast.Mult),
    ast.Mod: ("%", ast.FloorDiv),
    ast.Pow: ("**", ast.Mult),
    ast.BitAnd: ("&", ast.BitOr),
    ast.BitOr: ("|", ast.BitAnd),
}
OPPOSITES = [
    ("min", "max"), ("minimum", "maximum"), ("any", "all"), ("argmin", "argmax"), ("floor", "ceil"),
    ("positive_part", "abs"), ("target", "draft"), ("target_rows", "draft_rows"), ("target_row", "draft_row"),
    ("target_probs", "draft_probs"), ("lower", "upper"), ("True", "False"), ("rows", "cols"),
]  # fmt: skip
OPPOSITE = {a: b for one, other in OPPOSITES for a, b in ((one, other), (other, one))}
COMMUTATIVE = {"min", "max", "minimum", "maximum", "gcd", "array_equal", "logical_and", "logical_or"}
"""Functions of two arguments in any order: to swap them is to change nothing."""
UNARY = {ast.Not: "not", ast.USub: "minus", ast.Invert: "~"}


class Edit(NamedTuple):
    """One change: its name, the line it is on, and what makes it."""

    name: str
    line: int
    apply: Replace


def function_of(tree: ast.Module, qualified: str) -> ast.AST:
    """The function or class of that qualified name.

    Raises:
        LookupError: there is none.
    """
    node: Any = tree
    for part in qualified.split("."):
        kinds = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)
        found = [child for child in ast.walk(node) if isinstance(child, kinds) and child.name == part]
        found = [child for child in found if not _is_overload(child)]
        if not found:
            raise LookupError(f"there is no {qualified}")
        node = found[0]
    return node


def functions_of(tree: ast.Module) -> Iterator[str]:
    """The qualified names of the functions of a module and of the methods of its classes."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not _is_overload(node):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            yield from (
                f"{node.name}.{method.name}"
                for method in node.body
                if hasattr(method, "decorator_list") and not _is_overload(method)
            )


def edits(function: ast.AST) -> list[Edit]:
    """All edits of a function in the order of its text; equal names are numbered from the second on."""
    found: list[tuple[int, int, str, Replace]] = []
    for owner in _code(function):
        for name, node, new in _of_node(owner):
            found.append((node.lineno, node.col_offset, name, new))
    seen: Counter[str] = Counter()
    numbered = []
    for line, _, name, replace in sorted(found, key=lambda entry: entry[:3]):
        seen[name] += 1
        numbered.append(Edit(name if seen[name] == 1 else f"{name} #{seen[name]}", line, replace))
    return numbered


def mutate(source: str, function: str, edit: str) -> str:
    """The source with one edit of one function, see ``mutated``."""
    return ast.unparse(mutated(source, function, edit))


def mutated(source: str, function: str, edit: str) -> ast.Module:
    """The syntax tree of a source with one edit of one function; every line keeps its number.

    Raises:
        LookupError: there is no such function, or no such edit of it.
    """
    tree = ast.parse(source)
    chosen = [found for found in edits(function_of(tree, function)) if found.name == edit]
    if not chosen:
        raise LookupError(f"{function} has no place for {edit!r}")
    chosen[0].apply()
    return ast.fix_missing_locations(tree)


def _code(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function that run: no annotations, no docstrings, no decorators, no error texts."""
    left = [function]
    while left:
        node = left.pop()
        if isinstance(node, ast.Assert):
            continue
        yield node
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "exc", "msg", "type_params"):
                continue
            children = value if isinstance(value, list) else [value]
            children = [child for child in children if not _is_idle(child)]
            left += [child for child in children if isinstance(child, ast.AST) and not _is_text(child)]


def _is_idle(node: Any) -> bool:
    """Keywords that change no result where the program is right.

    ``strict=True`` of ``zip`` is an assertion, as ``assert`` is; ``encoding="utf-8"`` is the default where
    the tests run; ``stacklevel`` says whose line a warning names.
    """
    return isinstance(node, ast.keyword) and node.arg in ("strict", "encoding", "stacklevel")


def _is_overload(node: Any) -> bool:
    """A signature for type checkers: its body and its defaults never run."""
    return any(getattr(found, "id", "") == "overload" for found in getattr(node, "decorator_list", []))


def _is_text(node: ast.AST) -> bool:
    inner = node.value if isinstance(node, ast.Expr) else node
    return isinstance(inner, ast.JoinedStr) or (
        isinstance(inner, ast.Constant) and isinstance(inner.value, str)
    )


def _of_node(node: ast.AST) -> Iterator[tuple[str, Any, Replace]]:
    """(name, the node whose place counts, how to make it) of the edits at one node."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        name, kind = COMPARISONS[type(node.ops[0])]
        yield name, node, lambda: node.ops.__setitem__(0, kind())
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in OPERATORS:
        sign, kind = OPERATORS[type(node.op)]
        new = OPERATORS.get(kind, ("?",))[0]
        yield f"{sign} to {new}", node, lambda: setattr(node, "op", kind())
        if isinstance(node, ast.BinOp):
            yield f"left of {sign}", node, lambda: _become(node, node.left)
            yield f"right of {sign}", node, lambda: _become(node, node.right)
    if isinstance(node, ast.BoolOp):
        word = "and" if isinstance(node.op, ast.And) else "or"
        yield f"first of {word}", node, lambda: _become(node, node.values[0])
        yield f"last of {word}", node, lambda: _become(node, node.values[-1])
    if (
        isinstance(node, ast.UnaryOp)
        and type(node.op) in UNARY
        and not isinstance(node.operand, ast.Constant)
    ):
        yield f"without {UNARY[type(node.op)]}", node, lambda: _become(node, node.operand)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        other = 1 if node.value == 0 else 0 if node.value == 1 else node.value - 1
        yield f"{node.value} to {other}", node, lambda: setattr(node, "value", other)
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield f"{node.value} to {not node.value}", node, lambda: setattr(node, "value", not node.value)
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        for value in (True, False):
            if not (isinstance(node, ast.While) and value):
                yield f"if to {value}", node, lambda value=value: setattr(node, "test", ast.Constant(value))
    if isinstance(node, ast.comprehension) and node.ifs:
        yield "comprehension without if", node.ifs[0], lambda: setattr(node, "ifs", [])
    if isinstance(node, ast.Call):
        called = _called(node)
        if node.args and not isinstance(node.args[0], ast.Starred):
            yield f"unwrap {called}", node, lambda: _become(node, node.args[0])
        elif isinstance(node.func, ast.Attribute) and not node.args:
            yield f"unwrap {called}", node, lambda: _become(node, node.func.value)
        if len(node.args) >= 2 and called not in COMMUTATIVE:
            yield f"swap in {called}", node, lambda: node.args.__setitem__(slice(0, 2), node.args[1::-1])
        for number, keyword in enumerate(node.keywords):
            if keyword.arg and not _is_idle(keyword):
                yield f"{called} without {keyword.arg}", node, lambda number=number: node.keywords.pop(number)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in OPPOSITE:
        yield f"{node.id} to {OPPOSITE[node.id]}", node, lambda: setattr(node, "id", OPPOSITE[node.id])
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr in OPPOSITE:
        yield (
            f".{node.attr} to .{OPPOSITE[node.attr]}",
            node,
            lambda: setattr(node, "attr", OPPOSITE[node.attr]),
        )
    if isinstance(node, ast.Slice) and (node.lower is not None or node.upper is not None):
        yield "slice to :", node, lambda: (setattr(node, "lower", None), setattr(node, "upper", None))  # type: ignore[func-returns-value]
        yield "slice turned", node, lambda: _turn(node)
    for field in ("body", "orelse"):
        statements = getattr(node, field, None)
        if isinstance(statements, list) and not isinstance(node, ast.ClassDef):
            for statement in statements:
                is_constant = isinstance(getattr(statement, "value", None), (ast.Constant, ast.JoinedStr))
                if isinstance(statement, ast.AugAssign) or (
                    isinstance(statement, ast.Expr) and not is_constant
                ):  # texts and ``...`` do nothing
                    yield (
                        "without a statement", statement,
                        lambda statement=statement, all_=statements: all_.__setitem__(
                            all_.index(statement), ast.copy_location(ast.Pass(), statement)
                        ),
                    )  # fmt: skip


def _called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "a call")


def _become(node: Any, other: ast.AST) -> None:
    """Make a node what another one is, in its place."""
    replacement = copy.copy(other)
    for field in node._fields:
        if field not in replacement._fields and hasattr(node, field):
            delattr(node, field)
    node.__class__ = replacement.__class__
    for field in replacement._fields:
        if hasattr(replacement, field):
            setattr(node, field, getattr(replacement, field))


def _turn(node: ast.Slice) -> None:
    """``a[:-1]`` as ``a[1:]``, and the other way round; ``a[i:]`` as ``a[:i]``."""
    lower, upper = node.lower, node.upper
    minus_one = ast.UnaryOp(ast.USub(), ast.Constant(1))
    if lower is None and upper is not None and ast.unparse(upper) == "-1":
        node.lower, node.upper = ast.Constant(1), None
    elif upper is None and lower is not None and ast.unparse(lower) == "1":
        node.lower, node.upper = None, minus_one
    else:
        node.lower, node.upper = upper, lower
