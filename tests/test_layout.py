"""docs/layout.md is true: every module stands in a row of its table, and imports point one way."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
Rooms = list[list[str]]


def rooms_of_the_page() -> Rooms:
    """The rows of the table of docs/layout.md, each a list of rooms."""
    page = (ROOT / "docs" / "layout.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    return [re.findall(r"`([a-z_.]+)`", row) for row in rows]


def imports_of_the_package() -> dict[str, set[str]]:
    """Module -> the modules of the package it imports, anywhere in it; names without ``spectheory.``."""
    found = {}
    for path in sorted((ROOT / "spectheory").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT / "spectheory").with_suffix("").parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [
            alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
        ]
        inside = {name.removeprefix("spectheory.") for name in names if name.startswith("spectheory.")}
        found[module.removesuffix(".__init__")] = inside - {"__version__"}
    return {module: names for module, names in found.items() if module not in ("__init__", "__main__")}


def upward_imports(rooms: Rooms, imports: dict[str, set[str]]) -> list[str]:
    """What is imported from a later row, and what stands in no row."""
    order = {room: number for number, row in enumerate(rooms) for room in row}

    def row_of(module: str) -> int | None:
        parts = module.split(".")
        known = [room for n in range(len(parts), 0, -1) if (room := ".".join(parts[:n])) in order]
        return order[known[0]] if known else None

    complaints = [f"{module} stands in no row" for module in imports if row_of(module) is None]
    for module, names in imports.items():
        for name in names:
            here, there = row_of(module), row_of(name)
            if here is not None and there is not None and there > here:
                complaints.append(f"{module} imports {name} from a later row")
    return sorted(complaints)


def test_imports_point_one_way() -> None:
    """Every module stands in a row of docs/layout.md and imports from rows above it or from its own."""
    rooms = rooms_of_the_page()
    assert len(rooms) > 8
    for room in (room for row in rooms for room in row):
        path = ROOT / "spectheory" / room.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").exists(), f"docs/layout.md names {room}"
    assert upward_imports(rooms, imports_of_the_package()) == []


def test_imports_partner_an_upward_import_and_a_homeless_module_are_seen() -> None:
    """The page's own rows in reverse order, and without one of them."""
    rooms, imports = rooms_of_the_page(), imports_of_the_package()
    assert "pair imports errors.InvalidPairError from a later row" in upward_imports(rooms[::-1], imports)
    assert "drafts stands in no row" in upward_imports([row for row in rooms if row != ["drafts"]], imports)
