"""docs/errors.md has every error and warning, its bases and its exit status; logging is quiet by default."""

import logging
import re
from importlib import import_module
from pathlib import Path

import click
import pytest

import spectheory
from spectheory.command_line.main import group, main
from spectheory.exact.suite import certify_suite
from spectheory.exact.suite_cases import standard_suite
from spectheory.foundation import errors

PAGE = (Path(__file__).parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([\w.]*\.)?(\w+)` \| ((?:`\w+`(?:, )?)+) \| [^|]+ \|(?: (\d+) \|)?$", re.MULTILINE)
ROWS = {name: (module, bases, status) for module, name, bases, status in ROW.findall(PAGE)}


def test_all_classes_of_the_source_are_seen() -> None:
    """The page has every class of an error that the package defines."""
    text = "\n".join(
        path.read_text(encoding="utf-8") for path in Path(spectheory.__file__).parent.rglob("*.py")
    )
    names = set(
        re.findall(
            r"^class (\w+(?:Error|Notice))\((?:\w*Input|\w*Computation|Not\w+|Notice|User)", text, re.M
        )
    )
    of_an_audit = {
        "BudgetSpentError",
        "NotHandedError",
        "TimeIsUpError",
        "UnstableAnswerError",
    }  # none leaves it
    assert names - {"UserWarning", "UndecidedError"} - of_an_audit <= set(ROWS)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row[2]])
def test_the_exit_status_of_a_command(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module, _, status = ROWS[name]
    kind = getattr(import_module(f"spectheory.{module or 'foundation.errors.'}"[:-1]), name)

    @click.command()
    def fails() -> None:
        raise kind("said", (), 0.0) if kind is errors.InfeasiblePointError else kind("said")

    monkeypatch.setitem(group.commands, "fails", fails)
    assert main(["fails"]) == int(status)
    printed = capsys.readouterr().err
    assert printed.startswith("error: ")
    assert printed.endswith("said\n")
    assert printed.count("\n") == 1


def test_partner_another_exception_is_a_fault_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def fails() -> None:
        raise ArithmeticError

    monkeypatch.setitem(group.commands, "fails", fails)
    assert main(["fails"]) == 70


def test_logging_is_quiet_until_it_is_asked_for(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = standard_suite()[:1]
    certify_suite("block", cases)
    assert ("".join(capsys.readouterr()), caplog.records) == ("", [])
    with caplog.at_level(logging.INFO, "spectheory"):
        certify_suite("block", cases)
    [record] = caplog.records
    assert (record.name, record.getMessage()) == (
        "spectheory.exact.suite",
        "block: case 1 of 1, bernoulli_one_half-L1",
    )


def test_every_warning_has_a_category_of_the_package() -> None:
    for path in Path(spectheory.__file__).parent.rglob("*.py"):
        for said in re.findall(
            r"warnings\.warn\((.*?)stacklevel", path.read_text(encoding="utf-8"), re.DOTALL
        ):
            [category] = re.findall(r"^\s*(\w+),$", said, re.MULTILINE)
            kind = getattr(errors, category)
            assert kind is not errors.Notice
            assert issubclass(kind, errors.Notice)
