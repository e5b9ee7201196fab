"""Every example in a docstring of the package, the figures or the audits runs and prints what it says."""

import doctest
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import spectheory

MODULES = sorted(
    ["spectheory"]
    + [
        found.name
        for found in walk_packages(spectheory.__path__, "spectheory.")
        if "__main__" not in found.name
    ]
)
ROOT = Path(__file__).parent.parent
BESIDE = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder in ("figures", "audits")
    for path in sorted(ROOT.glob(f"{folder}/**/*.py"))
    if path.name != "__init__.py"
]


@pytest.mark.parametrize("name", [*MODULES, *BESIDE])
def test_examples_of_the_module(name: str) -> None:
    results = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.failed == 0


def test_examples_partner_there_are_examples() -> None:
    for name in (
        "spectheory",
        "spectheory.pairs.pair",
        "spectheory.exact.certificate",
        "spectheory.pairs.instances",
        "figures.common.lossless",
        "audits.subject",
    ):
        finder = doctest.DocTestFinder()
        assert sum(len(found.examples) for found in finder.find(import_module(name))) > 0, name
