"""Without the extras: everything on enumerated pairs works, and what needs a library says what to install."""

import importlib.util
import json
import tomllib
from pathlib import Path

import pytest

import spectheory
from deep import first_is_quick
from fresh_interpreter import run_commands, run_python
from spectheory import instances
from spectheory.foundation.errors import InvalidInputError, MissingDependencyError
from spectheory.foundation.extras import EXTRA_OF, installed

MODELS = 'in the folder of the clone, run: pip install ".[models]"'


THEORY: list[tuple[list[str], dict[str, object]]] = [
    (["certify", "PAIR", "--verifier", "block"], {"block_efficiency": "20/9", "optimum": "20/9"}),
    (["certify", "PAIR", "--verifier", "token", "-k", "2"], {"block_efficiency": "19/9"}),
    (["certify", "PAIR", "--verifier", "spectr", "-k", "2"], {"optimum": "212/81"}),
    (["certify", "PAIR", "--verifier", "greedy_multipath", "-k", "2"], {"block_efficiency": "212/81"}),
    (["certify", "PAIR", "--verifier", "otm", "-k", "2"], {"target_matching": True}),
    (["certify", "PAIR", "--verifier", "optimal_multipath", "-k", "2"], {"optimum": "212/81"}),
    (["optimum", "PAIR", "-k", "2"], {"value": "212/81", "status": "optimal"}),
    (["optimum", "PAIR", "--drafts", "without_replacement:2,1"], {"status": "optimal"}),
    (["acceptance", "1/3,2/3", "2/3,1/3", "-k", "2"], {"optimal": "8/9"}),
    (["verifiers"], {}),
]


HELP: list[list[str]] = [[], ["certify"], ["simulate"], ["decode"]]


def test_theory_and_help_need_no_extra(tmp_path: Path) -> None:
    """All commands in an interpreter in which no optional library can be imported."""
    pair_file = str(tmp_path / "pair.json")
    instances.two_token(2).save(pair_file)
    given = [[pair_file if word == "PAIR" else word for word in words] for words, _ in THEORY]
    commands = [*([*words, "--json"] for words in given), *given, *([*words, "--help"] for words in HELP)]
    found = run_commands(commands, without=EXTRA_OF)
    for words, done in zip(commands, found, strict=True):
        assert (done.code, done.err) == (0, ""), words
        assert done.out, words
    for (words, expected), done in zip(THEORY, found[: len(THEORY)], strict=True):
        document = json.loads(done.out)
        assert {key: document[key] for key in expected} == expected, words
    assert all("Usage: spectheory" in done.out for done in found[-len(HELP) :])


@first_is_quick(
    ("without", "cases"),
    [
        (
            ["torch"],
            [
                (["simulate"], "torch", MODELS),
                (["audit", "my_sampler:verify", "--as", "sampler"], "torch", MODELS),
                (["audit", "vllm"], "torch", MODELS),
                (["audit", "history", "vllm"], "torch", MODELS),
                (["models", "list"], "torch", MODELS),
                (["plan", "--target-rows", "2"], "torch", MODELS),
                (["decode"], "torch", MODELS),
                (["restrict"], "torch", MODELS),
            ],
        ),
        (
            ["transformers"],
            [(["simulate", "gpt2", "gpt2"], "transformers", MODELS)],  # the bundled pair needs none
        ),
    ],
)
def test_a_missing_library_is_one_line(without: list[str], cases: list[tuple[list[str], str, str]]) -> None:
    commands = [[*words, "--json"] for words, _, _ in cases]
    for done, (_, library, advice) in zip(run_commands(commands, without), cases, strict=True):
        assert done == (2, "", f"error: {library} is not installed; {advice}\n")


def test_a_missing_library_in_python() -> None:
    cases = {
        "from spectheory.models import LanguageModelPair": "torch",
        "import spectheory; spectheory.models.restrict": "torch",
        "from spectheory.optima import transport as t; t.largest_coupling([1], [1], [(0, 0)])": "networkx",
        "import spectheory; spectheory.simulate(None, ['x'], ['token'])": "torch",
        "from spectheory import audit": "torch",
        "from spectheory.testing import assert_sampler_lossless as a; a(print)": "torch",
        "from spectheory.testing import strategies": "hypothesis",
        "from spectheory.simulation.parallel import on_cluster as s\nwith s('x'): pass": "distributed",
    }
    done = run_python(
        f"from spectheory.foundation.errors import MissingDependencyError\nfor code in {list(cases)!r}:\n"
        "    try:\n        exec(code)\n    except MissingDependencyError as error:\n        print(error)\n",
        without=EXTRA_OF,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f'{library} is not installed; in the folder of the clone, run: pip install ".[{EXTRA_OF[library]}]"'
        for library in cases.values()
    ]
    assert issubclass(MissingDependencyError, ImportError)
    assert issubclass(MissingDependencyError, InvalidInputError)


STAR = """
from spectheory import *
assert certify("token", instances.two_token(2)) and not {"audit", "decode"} & set(dir())
import spectheory
assert {"audit", "decode"} < set(dir(spectheory))
"""


def test_all_names_at_once() -> None:
    """Those that need an extra are left out where it is missing; the partner: with it they are there."""
    without = run_python(STAR, without=EXTRA_OF)
    assert (without.returncode, without.stderr) == (0, "")
    assert {"audit", "decode", "certify"} < set(spectheory.__all__)


def test_blocker_partner_only_the_named_libraries_are_missing() -> None:
    """The blocker blocks: a library is there without it.  Other failing imports keep their own error."""
    assert run_python("import networkx").returncode == 0
    assert run_python("import networkx", without=["networkx"]).returncode == 1
    with pytest.raises(ModuleNotFoundError, match="no_such_library"), installed():
        import no_such_library  # type: ignore[import-not-found]  # noqa: F401


PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_extras_are_those_of_the_project() -> None:
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


def test_an_import_error_without_a_name_stays_what_it_is() -> None:
    with pytest.raises(ModuleNotFoundError, match="it is not here"), installed():
        raise ModuleNotFoundError("it is not here")
