"""Certifying a pair file needs neither torch nor transformers; each check in a fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spectheory import instances

REPORT = "\nimport json as _json, sys as _sys; print(_json.dumps(sorted(_sys.modules)), file=_sys.stderr)"


def modules_after(code: str) -> set[str]:
    """Top-level names of the modules a fresh interpreter has loaded after running the code."""
    done = subprocess.run([sys.executable, "-c", code + REPORT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in json.loads(done.stderr.splitlines()[-1])}


@pytest.fixture
def pair_file(tmp_path: Path) -> Path:
    """The two-token example on disk."""
    path = tmp_path / "pair.json"
    instances.two_token(2).save(path)
    return path


@pytest.mark.parametrize("name", ["token", "block", "spectr", "greedy_multipath"])
def test_certify_loads_no_model_library(name: str, pair_file: Path) -> None:
    """``spectheory.certify`` of a pair file, with the optimum, on two drafts."""
    loaded = modules_after(
        "import spectheory\n"
        f"pair = spectheory.ModelPair.load({str(pair_file)!r})\n"
        f"assert spectheory.certify({name!r}, pair, num_drafts=2).is_valid\n"
    )
    assert "spectheory" in loaded
    assert not loaded & {"torch", "transformers", "tokenizers"}


def test_command_line_loads_no_model_library(pair_file: Path) -> None:
    """``spectheory certify PAIR.json --verifier block`` through the command line's entry point."""
    loaded = modules_after(
        "import sys\nfrom spectheory.command_line.main import main\n"
        f"sys.argv = ['spectheory', 'certify', {str(pair_file)!r}, '--verifier', 'block', '--json']\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code, stop.code\n"
    )
    assert "spectheory" in loaded
    assert not loaded & {"torch", "transformers", "tokenizers"}


def test_plain_import_is_light() -> None:
    """``import spectheory`` loads nothing heavy: names are resolved on first use."""
    loaded = modules_after("import spectheory; dir(spectheory)")
    heavy = {"numpy", "scipy", "cvxpy", "highspy", "flint", "sympy", "networkx", "matplotlib", "torch"}
    assert not loaded & heavy


def test_import_partner_the_check_sees_torch() -> None:
    """The check is not vacuous: a program that does use torch is seen to."""
    assert "torch" in modules_after("import torch")


def test_public_names() -> None:
    """Every name in ``__all__`` but those of optional parts resolves; unknown names raise AttributeError."""
    loaded = modules_after(
        "import spectheory\n"
        "for name in spectheory.__all__:\n    assert getattr(spectheory, name) is not None\n"
        "assert dir(spectheory) == sorted(spectheory.__all__)\n"
        "assert not hasattr(spectheory, 'nonsense')\n"
    )
    assert "spectheory" in loaded
