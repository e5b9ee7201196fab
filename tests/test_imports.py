"""What is loaded when, in fresh interpreters: names are lazy, and certifying needs no model library."""

from pathlib import Path
from pkgutil import iter_modules

import pytest

import spectheory
from fresh_interpreter import modules_after, top_level
from spectheory import instances

HEAVY = {"numpy", "scipy", "cvxpy", "highspy", "flint", "sympy", "networkx", "matplotlib", "torch"}
EVERY_NAME = (
    "import spectheory\n"
    "for name in spectheory.__all__:\n    assert getattr(spectheory, name) is not None\n"
    "assert dir(spectheory) == sorted(spectheory.__all__)\n"
    "assert not hasattr(spectheory, 'nonsense')\n"
)
SUBMODULES = sorted(found.name for found in iter_modules(spectheory.__path__) if found.name != "__main__")


@pytest.fixture
def pair_file(tmp_path: Path) -> Path:
    path = tmp_path / "pair.json"
    instances.two_token(2).save(path)
    return path


def test_certify_loads_no_model_library(pair_file: Path) -> None:
    loaded = modules_after(
        "import spectheory\nfrom spectheory import black_box\n"
        "from spectheory.testing import assert_lossless\n"
        f"pair = spectheory.ModelPair.load({str(pair_file)!r})\n"
        "for name in ('token', 'block', 'spectr', 'greedy_multipath'):\n"
        "    assert spectheory.certify(name, pair, drafts=2).is_valid\n"
    )
    assert "spectheory.exact.certificate" in loaded
    assert not top_level(loaded) & {"torch", "transformers", "tokenizers"}


def test_command_line_loads_no_model_library(pair_file: Path) -> None:
    loaded = modules_after(
        "import sys\nfrom spectheory.command_line.main import main\n"
        f"sys.argv = ['spectheory', 'certify', {str(pair_file)!r}, '--verifier', 'block', '--json']\n"
        "assert main() == 0\n"
    )
    assert "spectheory.exact.certificate" in loaded
    assert not top_level(loaded) & {"torch", "transformers", "tokenizers"}


def test_plain_imports_are_light() -> None:
    """A package whose names are resolved on first use loads nothing heavy, however it is listed."""
    packages = ["spectheory"]
    packages += [
        f"spectheory.{name}"
        for name in (
            "auditing",
            "decoding",
            "exact",
            "models",
            "optima",
            "pairs",
            "paper",
            "simulation",
            "verification",
        )
    ]
    loaded = modules_after("".join(f"import {name} as package; dir(package)\n" for name in packages))
    assert set(packages) <= loaded
    assert not top_level(loaded) & HEAVY


def test_import_partner_the_check_sees_what_is_loaded() -> None:
    """The checks are not vacuous: all names together use torch, and are seen to load it."""
    assert {"torch", "transformers", "numpy"} <= top_level(modules_after(EVERY_NAME))


def test_one_verifier_loads_what_it_needs() -> None:
    """Token verification is arrays and rows: no solver, no model library, two dozen modules of ours."""
    loaded = modules_after("import spectheory.verification.algorithms.one_path.token")
    ours = {name for name in loaded if name.partition(".")[0] == "spectheory"}
    assert {"spectheory.verification.algorithms.one_path.token", "spectheory.verification.outcome"} <= ours
    assert len(ours) <= 25
    assert not top_level(loaded) & {"scipy", "cvxpy", "highspy", "sympy", "torch", "rich"}
    more = modules_after("from spectheory import certify")  # the partner: a certificate needs a solver
    assert "scipy" in top_level(more)


def test_every_room_is_reachable() -> None:
    assert {"exact", "pairs", "optima", "models"} <= set(SUBMODULES)
    loaded = modules_after(
        "import spectheory\n"
        "from types import ModuleType\n"
        f"for name in {SUBMODULES!r}:\n"
        "    assert isinstance(getattr(spectheory, name), ModuleType), name\n"
        "assert spectheory.exact.iteration.__name__ == 'spectheory.exact.iteration'\n"
        "assert callable(spectheory.acceptance) and 'swapped_models' in spectheory.defects\n"
    )
    assert {f"spectheory.{name}" for name in SUBMODULES} <= loaded
