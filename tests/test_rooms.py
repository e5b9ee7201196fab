"""The rooms of the package: few at the top, and no name that hides another."""

import ast
from importlib import import_module
from pathlib import Path

from scripts import load

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "spectheory"
MOST_ROOMS = 11
BESIDE_THE_ROOMS = {"__init__.py", "__init__.pyi", "__main__.py", "py.typed"}


def modules_of(package: Path) -> list[str]:
    files = (path.relative_to(package.parent).with_suffix("") for path in package.rglob("*.py"))
    names = {".".join(path.parts).removesuffix(".__init__") for path in files}
    return sorted(names - {package.name, f"{package.name}.__main__"})


def public_functions(package: Path) -> set[str]:
    """The names in lower case that the stubs of a package hand out, its own modules excluded."""
    found = set()
    for stub in package.rglob("__init__.pyi"):
        for node in ast.parse(stub.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom):
                folder = stub.parent.joinpath(*(node.module or "").split("."))
                names = [alias.name for alias in node.names]
                found |= {
                    name
                    for name in names
                    if name.islower()
                    and not (folder / name).is_dir()
                    and not (folder / f"{name}.py").exists()
                }
    return found


def hidden_names(package: Path) -> list[str]:
    """Modules and folders with the name of a public function or registry."""
    public = public_functions(package)
    return [module for module in modules_of(package) if module.rpartition(".")[2] in public]


def test_there_are_at_most_twelve_rooms() -> None:
    entries = {path.name for path in PACKAGE.iterdir()} - {"__pycache__"}
    folders = {name for name in entries if (PACKAGE / name).is_dir()}
    assert len(folders) <= MOST_ROOMS
    assert entries - folders == BESIDE_THE_ROOMS


def test_no_module_has_the_name_of_a_public_function() -> None:
    assert hidden_names(PACKAGE) == []


def test_partner_a_hidden_module_is_named(tmp_path: Path) -> None:
    """A folder behind a registry, a module behind a function; a module that is itself public is fine."""
    for name, text in {
        "__init__.py": "",
        "__init__.pyi": "from . import pairs as pairs\nfrom .pairs.wrong import wrong as wrong\n",
        "pairs/__init__.py": "",
        "pairs/wrong/__init__.py": "",
        "pairs/law.py": "",
    }.items():
        (tmp_path / "package" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "package" / name).write_text(text)
    assert hidden_names(tmp_path / "package") == ["package.pairs.wrong"]


def test_the_map_is_drawn_from_the_contract() -> None:
    script = load("scripts", "layout_map")
    drawn = script.PICTURE.read_text(encoding="utf-8")
    assert drawn == script.picture(script.rooms())
    assert drawn != script.picture(script.rooms()[::-1])
    assert len(script.rooms()) == MOST_ROOMS


FACE = {
    "Certificate", "ModelPair", "Outcome", "OutputLaw", "Proof", "Verifier", "acceptance", "arrays", "audit",
    "certify", "certify_suite", "compare", "decode", "defects", "drafts", "from_loop", "from_sampler",
    "instances", "models", "optima", "optimum", "output_law", "plan", "prove", "sampled_verdict", "simulate",
    "testing", "verifiers",
}  # fmt: skip
"""The names of the face."""
MOST_NAMES = {"spectheory.optima": 35, "spectheory.pairs.drafts": 14, "spectheory.models": 8}


def test_the_face_has_these_names() -> None:
    assert {*import_module("spectheory").__all__} == FACE
    for module, most in MOST_NAMES.items():
        assert len(import_module(module).__all__) <= most
    assert len(load("scripts", "names_page").names_of(import_module("spectheory.foundation.arrays"))) <= 30


def test_all_public_names_are_on_one_page() -> None:
    """With a sentence each; the page is that of the docstrings as they are."""
    script = load("scripts", "names_page")
    text = script.page()
    assert script.PAGE.read_text(encoding="utf-8") == text
    assert not [line for line in text.splitlines() if line.endswith("|  |")]
