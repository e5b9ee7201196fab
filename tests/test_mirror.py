"""The tests mirror the package: a test file for every module with code, none longer than 500 lines.

A module of a registered verifier or defect needs none: tests that run over the registries judge it.
"""

import ast
from pathlib import Path

import pytest

from shared import GROUPS, scope_of
from spectheory.verification.algorithms import verifiers
from spectheory.verification.defective import defects

ROOT = Path(__file__).parent.parent
MOST_LINES = 500

ELSEWHERE = {
    "exact/position_acceptance": "command_line/test_theory_commands",
    "auditing/rounds/joint_laws": "auditing/rounds/test_two_calls",
    "auditing/rounds/rounding": "auditing/verdicts/test_sampler_audit",
    "auditing/subjects/round_specimens": "auditing/subjects/test_drafting_rounds",
    "auditing/subjects/adapters/lmdeploy": "auditing/subjects/adapters/test_flat_batch",
    "auditing/subjects/adapters/transformers": "auditing/subjects/test_libraries",
    "auditing/subjects/adapters/vllm": "auditing/subjects/adapters/test_flat_batch",
    "auditing/subjects/adapters/vllm_ascend": "auditing/subjects/adapters/test_flat_batch",
    "auditing/tape/coins": "auditing/tape/test_decisions",
    "auditing/tape/races": "auditing/tape/test_atoms",
    "auditing/verdicts/audit_certificate": "auditing/verdicts/test_sampler_audit",
    "exact/proof": "exact/proof/test_search",
    "foundation/formal_number": "exact/proof/test_search",
    "foundation/errors": "optima/bounds/test_skewed_draft",
    "models/device": "models/test_loading",
    "models/language_model": "models/test_loading",
    "models/quiet": "models/test_loading",
    "models/restriction": "models/test_restricting",
    "paper/drawing": "paper/test_exhibits",
    "paper/figures": "paper/test_exhibits",
    "pairs/drafts": "pairs/test_drafts",
    "optima/budgets": "optima/test_pair_optimum",
    "testing/assertions": "exact/test_suite",
}
"""Modules and folders without test files of their own, and the file that tests them through their uses."""


def has_code(path: Path) -> bool:
    definitions = (ast.FunctionDef, ast.ClassDef)
    return any(
        isinstance(node, definitions) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def untested(package: Path, tests: Path, elsewhere: dict[str, str]) -> list[str]:
    """Modules with code that have no test file, and entries of the list that are wrong or idle."""
    complaints = []
    registered = {type(verifier).__module__ for verifier in (*verifiers.values(), *defects.values())}
    modules = {str(path.relative_to(package).with_suffix("")): path for path in package.rglob("*.py")}
    for module, path in modules.items():
        own = (tests / module).with_name(f"test_{path.stem}.py")
        if module.rpartition("/")[0] in elsewhere:
            continue
        if module in elsewhere:
            if own.exists():
                complaints.append(f"{module} is listed, but has a test file of its own")
        elif (
            has_code(path) and not own.exists() and f"spectheory.{module.replace('/', '.')}" not in registered
        ):
            complaints.append(f"{module} has no test file {own.relative_to(tests)}")
    for module, test in elsewhere.items():
        if module not in modules and not (package / module).is_dir():
            complaints.append(f"{module} is listed, but is not a module")
        if not (tests / f"{test}.py").exists():
            complaints.append(f"{module} is listed with {test}.py, which does not exist")
    return sorted(complaints)


def too_long(tests: Path) -> list[str]:
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in tests.rglob("*.py")}
    return sorted(f"{path.name} has {count} lines" for path, count in lines.items() if count > MOST_LINES)


def test_every_module_has_a_test_file() -> None:
    """Of its name, in the folder that mirrors its own, or in the list."""
    assert untested(ROOT / "spectheory", ROOT / "tests", ELSEWHERE) == []


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
    assert untested(package, tests, {}) == ["room/two has no test file room/test_two.py"]
    assert untested(package, tests, {"room/two": "room/test_other"}) == []
    wrong = {"one": "test_one", "room/two": "room/test_none", "three": "test_one"}
    assert untested(package, tests, wrong) == [
        "one is listed, but has a test file of its own",
        "room/two is listed with room/test_none.py, which does not exist",
        "three is listed, but is not a module",
    ]
    assert too_long(tests) == []
    (tests / "test_one.py").write_text("x = 1\n" * (MOST_LINES + 1))
    assert too_long(tests) == ["test_one.py has 501 lines"]


def test_partner_the_list_is_needed() -> None:
    """Without it every module on it is missed, and every module of a folder on it."""
    found = [line.split()[0] for line in untested(ROOT / "spectheory", ROOT / "tests", {})]
    assert {name.rpartition("/")[0] if name not in ELSEWHERE else name for name in found} == set(ELSEWHERE)
