"""Parameters of exhibits: every one is explained and reads back as it is written; wrong ones are refused."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from spectheory.command_line.main import main
from spectheory.foundation.errors import InvalidInputError
from spectheory.paper import EXHIBITS, read_exhibit, reproduce
from spectheory.paper.parameters import Parameter, parse_settings


@pytest.mark.parametrize("name", EXHIBITS)
def test_every_parameter_is_explained_and_reads_back(name: str) -> None:
    """Only the exhibit that shows one measurement has none."""
    assert bool(EXHIBITS[name].parameters) == (name not in ("latency", "paired_gains", "equal_rows"))
    for parameter in EXHIBITS[name].parameters:
        assert parameter.about.endswith("."), parameter
        assert parameter.parse(parameter.default_text) == parameter.default


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["probability"], "takes NAME=VALUE, got 'probability'"),
        (["probabilty=1/4"], "did you mean 'probability'"),
        (["probability=1/4", "probability=1/4"], "set twice"),
        (["probability=1/0"], "probability is a rational such as 1/3, got '1/0'"),
        (["draft_lengths=1,0"], "a whole number of at least 1, or several separated by commas, got '0'"),
        (["draft_lengths="], "got ''"),
    ],
)
def test_wrong_settings_are_one_line(settings: list[str], says: str) -> None:
    with pytest.raises(InvalidInputError, match=says) as raised:
        parse_settings(EXHIBITS["two_token_table"].parameters, settings)
    assert "\n" not in str(raised.value)


def test_values_have_the_type_of_the_default() -> None:
    """Numbers, rationals, pairs, and names out of the known ones; a seed may be 0."""
    assert parse_settings(
        EXHIBITS["two_token_table"].parameters, ["probability=0.25", "draft_lengths=2"]
    ) == {
        "probability": Fraction(1, 4),
        "draft_lengths": (2,),
    }
    assert Parameter("seed", 3, "").parse("0") == 0
    shapes = Parameter("shapes", ((2, 2),), "")
    assert shapes.parse("3x2, 4x1") == ((3, 2), (4, 1))
    for wrong in ("3", "3x0", "3x2x1", "axb"):
        with pytest.raises(InvalidInputError, match="joined by x"):
            shapes.parse(wrong)
    with pytest.raises(InvalidInputError, match="did you mean 'two_token'"):
        Parameter("names", ("two_token", "sticky_chain"), "").parse("twotoken")


def test_other_parameters_do_not_overwrite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither the defaults by others nor the other way round; a rerun and a redraw keep what was given."""
    settings = ["probability=1/4", "draft_lengths=1,2"]
    asked = ["reproduce", "two_token_table", "--out", str(tmp_path)]
    first = [*asked, *(word for setting in settings for word in ("--set", setting))]
    assert main(first) == 0
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    found = read_exhibit("two_token_table", tmp_path)
    assert found is not None
    assert found.findings.settings == {"draft_lengths": [1, 2], "probability": "1/4"}
    assert [str(value) for value in found.findings.tables[0].column("optimum")] == ["3/2", "15/8"]
    for other in (asked, [*first, "--set", "probability=1/4"], [*asked, "--set", "probability=1/5"]):
        capsys.readouterr()
        assert main(other) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
    assert main(first) == main([*asked, "--redraw"]) == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == written
    for names, options in (([], {}), (["two_token_table"], {"redraw": True})):
        with pytest.raises(InvalidInputError, match="--set changes one figure or table"):
            reproduce(names, tmp_path, settings=settings, **options)


def test_parameters_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "two_token_table", "--list", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["exhibits"]
    assert [one["name"] for one in listed["parameters"]] == ["draft_lengths", "probability"]
    assert main(["reproduce", "one_path_optimum", "--list"]) == 0
    assert "2x2,2x3,3x2" in capsys.readouterr().out
    assert main(["reproduce", "one_path_optimun", "--list"]) == 2


def test_divisors_are_asked_for() -> None:
    with pytest.raises(InvalidInputError, match="divisors of 120, got 50"):
        EXHIBITS["otm_uniform"](target_supports=(50,))
