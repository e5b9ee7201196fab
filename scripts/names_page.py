"""Write the page of all public names: ``python scripts/names_page.py``.

The names are those of the stubs of the face and of its modules, and the public functions of ``arrays``.
"""

import inspect
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "names.md"
MODULES = (
    "spectheory",
    "spectheory.optima",
    "spectheory.pairs.drafts",
    "spectheory.models",
    "spectheory.foundation.arrays",
)
"""The face, and its modules ``optima``, ``drafts``, ``models`` and ``arrays``."""
TITLES = ("spectheory", "spectheory.optima", "spectheory.drafts", "spectheory.models", "spectheory.arrays")
HEAD = """# All public names

Every name that a user imports, with the first sentence of its docstring. All else is internal
([what is stable](stability.md)). `python scripts/names_page.py` writes this page.
"""
REGISTRIES = {"verifiers": "The published verifiers, by name.", "defects": "Known-wrong verifiers, by name."}
"""Names of objects without a docstring of their own."""


def names_of(module: ModuleType) -> list[str]:
    """The public names of a module: those of its stub, or the functions that it defines."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__, key=str.lower)
    return sorted(
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    )


def first_sentence(name: str, value: Any) -> str:
    """The first sentence of a docstring, on one line."""
    if name in REGISTRIES:
        return REGISTRIES[name]
    text = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    return text.replace("``", "`").replace("|", r"\|")


def page() -> str:
    parts = [HEAD]
    for module, title in zip(map(import_module, MODULES), TITLES, strict=True):
        rows = [f"| `{name}` | {first_sentence(name, getattr(module, name))} |" for name in names_of(module)]
        parts.append("\n".join([f"\n## `{title}`\n", "| name | |", "|---|---|", *rows, ""]))
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.exit(0)
