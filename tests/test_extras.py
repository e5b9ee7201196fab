"""Without the extras: everything on enumerated pairs works, and what needs a library says what to install."""

from __future__ import annotations

import importlib.util
import json
import sys
import tomllib
from pathlib import Path

import pytest

from fresh_interpreter import run_command, run_python
from spectheory import instances
from spectheory.errors import InvalidInputError, MissingDependencyError
from spectheory.extras import EXTRA_OF, installed

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"
MODELS = 'pip install "spectheory[models]"'
PAPER = 'pip install "spectheory[paper]"'


@pytest.fixture(scope="module")
def pair_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("extras") / "pair.json"
    instances.two_token(2).save(path)
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["certify", "PAIR", "--verifier", "block"], {"block_efficiency": "20/9", "optimum": "20/9"}),
        (["certify", "PAIR", "--verifier", "token", "-k", "2"], {"block_efficiency": "19/9"}),
        (["certify", "PAIR", "--verifier", "spectr", "-k", "2"], {"optimum": "212/81"}),
        (["certify", "PAIR", "--verifier", "greedy_multipath", "-k", "2"], {"block_efficiency": "212/81"}),
        (["certify", "PAIR", "--verifier", "otm", "-k", "2"], {"target_matching": True}),
        (["certify", "PAIR", "--verifier", "optimal_multipath", "-k", "2"], {"optimum": "212/81"}),
        (["optimum", "PAIR", "-k", "2"], {"value": "212/81", "status": "optimal"}),
        (["optimum", "PAIR", "--tree", "without_replacement:2,1"], {"status": "optimal"}),
        (["acceptance", "--target", "1/3,2/3", "--draft", "2/3,1/3", "-k", "2"], {"optimal": "8/9"}),
        (["verifiers"], {}),
    ],
)
def test_theory_needs_no_extra(pair_file: str, arguments: list[str], expected: dict[str, object]) -> None:
    """Each command in an interpreter in which no optional library can be imported."""
    given = [pair_file if argument == "PAIR" else argument for argument in arguments]
    done = run_command([*given, "--json"], without=EXTRA_OF)
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert {key: document[key] for key in expected} == expected
    table = run_command(given, without=EXTRA_OF)
    assert (table.returncode, table.stderr) == (0, "")


@pytest.mark.parametrize("command", [[], ["certify"], ["simulate"], ["reproduce"]])
def test_help_needs_no_extra(command: list[str]) -> None:
    done = run_command([*command, "--help"], without=EXTRA_OF)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: spectheory" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "without", "advice"),
    [
        (["simulate"], ["torch"], MODELS),
        (["simulate"], ["transformers"], MODELS),
        (["reproduce"], ["matplotlib"], PAPER),
        (["reproduce", "real_pair"], ["torch"], MODELS),
    ],
)
def test_a_missing_library_is_one_line(
    tmp_path: Path, arguments: list[str], without: list[str], advice: str
) -> None:
    """Exit code 2, the library and what installs it, nothing on stdout."""
    out = ["--out", str(tmp_path)] if arguments[0] == "reproduce" else []
    done = run_command([*arguments, *out, "--json"], without=without)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"error: {without[0]} is not installed; run: {advice}\n"


@pytest.mark.parametrize(
    ("code", "library"),
    [
        ("from spectheory.models import LanguageModelPair", "torch"),
        ("import spectheory; spectheory.models.restrict", "torch"),
        ("from spectheory.paper import reproduce", "matplotlib"),
        ("from spectheory.programs import transport_feasibility as t; t([1], [1], [(0, 0)])", "networkx"),
        (
            "from spectheory import instances, montecarlo\n"
            "montecarlo.simulate_enumerated(instances.two_token(1), ['token'], device='cuda')",
            "torch",
        ),
        ("import spectheory; spectheory.simulate(None, ['x'], ['token'])", "torch"),
    ],
)
def test_a_missing_library_in_python(code: str, library: str) -> None:
    """The exception is an ImportError, and its text what to install."""
    done = run_python(code, without=EXTRA_OF)
    assert done.returncode == 1
    last = f'{library} is not installed; run: pip install "spectheory[{EXTRA_OF[library]}]"'
    assert done.stderr.splitlines()[-1] == f"spectheory.errors.MissingDependencyError: {last}"
    assert issubclass(MissingDependencyError, ImportError)
    assert issubclass(MissingDependencyError, InvalidInputError)


def test_blocker_partner_only_the_named_libraries_are_missing() -> None:
    """The blocker blocks: torch is there without it.  Other failing imports keep their own error."""
    assert run_python("import torch").returncode == 0
    assert run_python("import torch", without=["torch"]).returncode == 1
    with pytest.raises(ModuleNotFoundError, match="no_such_library"), installed():
        import no_such_library  # type: ignore[import-not-found]  # noqa: F401


def test_transformers_missing_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    from spectheory.models.loading import import_transformers

    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingDependencyError, match=r'run: pip install "spectheory\[models\]"'):
        import_transformers()


def test_extras_are_those_of_the_project() -> None:
    """Every optional library stands in its extra of pyproject.toml, and none in the core dependencies."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    extras = {
        extra: {requirement.partition(">=")[0] for requirement in requirements}
        for extra, requirements in project["optional-dependencies"].items()
    }
    for library, extra in EXTRA_OF.items():
        assert library in extras[extra]
        assert importlib.util.find_spec(library) is not None
    assert set(EXTRA_OF) == set().union(*(extras[extra] for extra in set(EXTRA_OF.values()))) - {
        "spectheory[models]"
    }
    assert not {requirement.partition(">=")[0] for requirement in project["dependencies"]} & set(EXTRA_OF)
