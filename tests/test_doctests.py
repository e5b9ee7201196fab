"""Every example in a docstring of the package, the figures or the audits runs and prints what it says."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def has_examples(path: Path) -> bool:
    return ">>> " in path.read_text(encoding="utf-8")


MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for folder in ("spectheory", "figures", "audits")
    for path in sorted(ROOT.glob(f"{folder}/**/*.py"))
    if has_examples(path)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_module(name: str) -> None:
    results = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.failed == 0
    assert results.attempted > 0
