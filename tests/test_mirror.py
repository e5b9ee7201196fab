"""The tests stand in folders as what they test does, and no file is longer than 500 lines."""

from pathlib import Path

from shared import GROUPS, scope_of

ROOT = Path(__file__).parent.parent
MOST_LINES = 500


def too_long(tests: Path) -> list[str]:
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in tests.rglob("*.py")}
    return sorted(f"{path.name} has {count} lines" for path, count in lines.items() if count > MOST_LINES)


def test_files_that_share_a_process_exist() -> None:
    """And no two groups claim one; a file of no group is run by itself."""
    stems = [stem for group in GROUPS.values() for stem in group]
    assert len(stems) == len(set(stems))
    assert set(stems) <= {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    assert scope_of("tests/decoding/test_fake_devices.py::test_a[b]") == "forks"
    assert scope_of("tests/test_mirror.py::test_a[b::c]") == "tests/test_mirror.py"


def test_no_test_file_is_long() -> None:
    assert too_long(ROOT / "tests") == []


def test_every_test_stands_in_a_folder_of_what_it_tests() -> None:
    tests = ROOT / "tests"
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    assert {
        str(folder)
        for folder in folders
        if not any((ROOT / parent / folder).is_dir() for parent in ("spectheory", "."))
    } == {"theory"}  # the claims of the papers, docs/claims


def test_partner_a_long_file_is_named(tmp_path: Path) -> None:
    for lines, complaints in ((MOST_LINES, []), (MOST_LINES + 1, ["test_one.py has 501 lines"])):
        (tmp_path / "test_one.py").write_text("x = 1\n" * lines)
        assert too_long(tmp_path) == complaints
