"""What is loaded when, in fresh interpreters: names are lazy, and certifying needs no model library."""

from pkgutil import iter_modules

import spectheory
from fresh_interpreter import modules_after, top_level

HEAVY = {"numpy", "scipy", "cvxpy", "highspy", "flint", "sympy", "networkx", "matplotlib", "torch"}
SUBMODULES = sorted(found.name for found in iter_modules(spectheory.__path__) if found.name != "__main__")
EVERY_NAME = (
    "import spectheory\nfrom types import ModuleType\n"
    "for name in spectheory.__all__:\n    assert getattr(spectheory, name) is not None\n"
    "assert dir(spectheory) == sorted(spectheory.__all__)\n"
    "assert not hasattr(spectheory, 'nonsense')\n"
    f"import importlib\nfor name in {SUBMODULES!r}:\n"
    "    assert isinstance(importlib.import_module(f'spectheory.{name}'), ModuleType), name\n"
    "assert spectheory.exact.iteration.__name__ == 'spectheory.exact.iteration'\n"
    "assert callable(spectheory.acceptance) and 'swapped_models' in spectheory.defects\n"
    "import pkgutil, sys\n"
    "modules = [found.name for found in pkgutil.walk_packages(spectheory.__path__, 'spectheory.')]\n"
    "for module in modules:\n"
    "    for name in getattr(sys.modules.get(module), '__all__', ()):\n"
    "        getattr(sys.modules[module], name)\n"
    "for module in modules:\n"
    "    if module != 'spectheory.__main__':\n"
    "        names = {}\n"
    "        exec(f'import {module} as m', names)\n"
    "        assert names['m'] is sys.modules[module], module\n"
)
"""``import a.b.c as m`` takes attributes: a public name that replaces a module would be taken for it."""
CERTIFYING = (
    "import sys, tempfile\nimport spectheory\nfrom spectheory import from_sampler, instances\n"
    "from spectheory.command_line.main import main\nfrom spectheory.testing import assert_lossless\n"
    "pair = instances.two_token(2)\n"
    "for name in ('token', 'block', 'spectr', 'greedy_multipath'):\n"
    "    assert spectheory.certify(name, pair, drafts=2)\n"
    "with tempfile.NamedTemporaryFile(suffix='.json') as file:\n"
    "    pair.save(file.name)\n"
    "    sys.argv = ['spectheory', 'certify', file.name, '--verifier', 'block', '--json']\n"
    "    assert main() == 0\n"
)


def test_certifying_loads_no_model_library() -> None:
    """From Python and from the command line."""
    loaded = modules_after(CERTIFYING)
    assert "spectheory.exact.certifying" in loaded
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
            "simulation",
            "verification",
        )
    ]
    loaded = modules_after("".join(f"import {name} as package; dir(package)\n" for name in packages))
    assert set(packages) <= loaded
    assert not top_level(loaded) & HEAVY


def test_every_name_and_then_every_module_is_imported() -> None:
    """The partner of the others: all names together use torch, and are seen to load it."""
    assert {"torch", "transformers", "numpy"} <= top_level(modules_after(EVERY_NAME))


def test_one_verifier_loads_what_it_needs() -> None:
    """Token verification is arrays and rows: no solver, no model library, two dozen modules of ours."""
    loaded = modules_after("import spectheory.verification.algorithms.one_path.token")
    ours = {name for name in loaded if name.partition(".")[0] == "spectheory"}
    assert {"spectheory.verification.algorithms.one_path.token", "spectheory.verification.outcome"} <= ours
    assert len(ours) <= 29
    assert not top_level(loaded) & {"scipy", "cvxpy", "highspy", "sympy", "torch", "rich"}
    assert "scipy" in top_level(modules_after(CERTIFYING))  # the partner: a certificate needs a solver


def test_every_room_is_reachable() -> None:
    assert {"exact", "pairs", "optima", "models"} <= set(SUBMODULES)
    assert {f"spectheory.{name}" for name in SUBMODULES} <= modules_after(EVERY_NAME)
