"""The tests mirror the package: tests near every module with code, no file longer than 500 lines.

Near are the file that mirrors a module, and those that ``scripts/mutants.toml`` names for it or its folder.
"""

import ast
import tomllib
from pathlib import Path

import pytest

from scripts import load
from shared import GROUPS, scope_of

script = load("scripts", "mutants")
ROOT = Path(__file__).parent.parent
MOST_LINES = 500

ELSEWHERE = tomllib.loads(script.TABLE.read_text(encoding="utf-8"))["tests"]
"""The tests near modules and folders, beside the files that mirror them."""


def has_code(path: Path) -> bool:
    definitions = (ast.FunctionDef, ast.ClassDef)
    return any(
        isinstance(node, definitions) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def untested(package: Path, elsewhere: dict[str, list[str]]) -> list[str]:
    """Modules with code that have no tests near them, and entries of the list that are wrong."""
    root, complaints = package.parent, []
    modules = {".".join(path.relative_to(root).with_suffix("").parts): path for path in package.rglob("*.py")}
    for module, path in modules.items():
        if has_code(path) and not script.nearest_tests(module, elsewhere, root):
            complaints.append(f"{module} has no tests near it")
    for module, tests in elsewhere.items():
        if module not in modules and not root.joinpath(*module.split(".")).is_dir():
            complaints.append(f"{module} is listed, but is not a module")
        complaints += [
            f"{module} is listed with {test}, which does not exist"
            for test in tests
            if not (root / test.partition("::")[0]).is_file()
        ]
    return sorted(complaints)


def too_long(tests: Path) -> list[str]:
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in tests.rglob("*.py")}
    return sorted(f"{path.name} has {count} lines" for path, count in lines.items() if count > MOST_LINES)


def test_every_module_has_tests_near_it() -> None:
    assert untested(ROOT / "spectheory", ELSEWHERE) == []


def test_files_that_share_a_process_exist() -> None:
    """And no two groups claim one; a file of no group is run by itself."""
    stems = [stem for group in GROUPS.values() for stem in group]
    assert len(stems) == len(set(stems))
    assert set(stems) <= {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    assert scope_of("tests/decoding/test_fake_devices.py::test_a[b]") == "forks"
    assert scope_of("tests/test_mirror.py::test_a[b::c]") == "tests/test_mirror.py"


def test_no_test_file_is_long() -> None:
    assert too_long(ROOT / "tests") == []


def test_every_test_stands_in_a_folder_of_the_package() -> None:
    tests = ROOT / "tests"
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    assert {str(folder) for folder in folders if not (ROOT / "spectheory" / folder).is_dir()} == set()


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A package of three modules, one of them without code, and the tests of one."""
    for name, text in {
        "package/one.py": "def f():\n    return 1\n",
        "package/room/two.py": "class Two:\n    pass\n",
        "package/room/__init__.py": "",
        "tests/test_one.py": "x = 1\n" * MOST_LINES,
        "tests/room/test_other.py": "x = 1\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_partner_what_is_missing_is_named(small: Path) -> None:
    package, tests = small / "package", small / "tests"
    assert untested(package, {}) == ["package.room.two has no tests near it"]
    other = "tests/room/test_other.py"
    assert (
        untested(package, {"package.room.two": [other]}) == untested(package, {"package.room": [other]}) == []
    )
    assert untested(package, {"package.room.two": ["test_none.py"], "package.three": [other]}) == [
        "package.room.two is listed with test_none.py, which does not exist",
        "package.three is listed, but is not a module",
    ]
    assert too_long(tests) == []
    (tests / "test_one.py").write_text("x = 1\n" * (MOST_LINES + 1))
    assert too_long(tests) == ["test_one.py has 501 lines"]
