"""Commands from signatures: every parameter has a help, every help has an example, and options are few."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cli_support import write_pair
from spectheory.command_line.main import group, main
from spectheory.command_line.signatures import REQUIRED, Parameter, command, described, parameters_of

MOST_OPTIONS = 94
QUICK = ("certify", "prove", "optimum", "acceptance", "verifiers", "plan", "models")
"""Commands whose example takes a second; the others are parsed."""


def options(found: click.Command) -> Iterator[click.Option]:
    """The options of a command and of those below it, without ``--help``."""
    for each in found.get_params(click.Context(found)):
        if isinstance(each, click.Option) and each.name != "help":
            yield each
    for below in getattr(found, "commands", {}).values():
        yield from options(below)


def test_the_commands_and_their_options() -> None:
    assert list(group.commands) == [
        "certify", "prove", "optimum", "acceptance", "verifiers", "audit", "simulate", "decode", "plan",
        "restrict", "models",
    ]  # fmt: skip
    found = [each for each in options(group) if "--help" not in each.opts]
    assert len(found) <= MOST_OPTIONS, (
        "options are kept few: take one away, or raise MOST_OPTIONS with a reason"
    )
    assert [each.opts for each in found if not each.help] == []


@pytest.mark.parametrize("name", group.commands)
def test_help_ends_with_an_example_that_works(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([name, "--help"]) == 0
    example = capsys.readouterr().out.rstrip().splitlines()[-1].strip()
    program, *words = shlex.split(example)
    assert (program, words[0]) == ("spectheory", name)
    write_pair(tmp_path)
    monkeypatch.chdir(tmp_path)
    if name in QUICK:
        assert main(words) == 0
    else:
        group.commands[name].make_context(name, words[1:], resilient_parsing=False)


def test_a_new_option_is_one_name(capsys: pytest.CaptureFixture[str]) -> None:
    """Type, default and help are those of the library function; the command may have its own."""

    @command("exact.suite:certify_suite", passed="quick seed", defaults={"seed": 3}, example="none")
    def mine(pair_file: str, *, cases: int = 2, **settings: object) -> int:
        """Do something.

        Args:
            cases: How many.
        """
        print(pair_file, cases, settings)
        return 0

    context = click.Context(mine)
    assert [each.opts[-1] for each in mine.get_params(context)][:-1] == [
        "pair_file", "--cases", "--quick", "--seed",
    ]  # fmt: skip
    shown = mine.get_help(context)
    assert "How many." in shown
    assert "[default: 3]" in shown
    mine.main(["x", "--quick"], standalone_mode=False)
    assert capsys.readouterr().out == "x 2 {'quick': True, 'seed': 3}\n"
    with pytest.raises(click.BadParameter):
        mine.main(["x", "--seed", "one"], standalone_mode=False)


def test_functions_and_classes_are_read() -> None:
    """With the fields of bases, constants as defaults, and without an import."""
    simulated = parameters_of("simulation.settings:SimulationSettings")
    assert (simulated["draft_length"].default, simulated["seed"].default) == (8, 0)
    assert simulated["checkpoint"].annotation == "str | Path | None"
    assert simulated["cluster"].about.startswith("The address of a dask scheduler")
    proved = parameters_of("exact.proof.search:prove")
    assert proved["verifier"].default is REQUIRED
    assert proved["statement"].default == "lossless"
    assert described("No arguments.") == {}


def test_partner_a_type_that_no_option_has_is_refused() -> None:
    with pytest.raises(KeyError):
        Parameter("pair", "ModelPair", None, "").option()
