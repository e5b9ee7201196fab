"""The GitHub action and the file for an engine's tests, run as a repository with a sampler runs them."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "auditing.md").read_text(encoding="utf-8")
SAMPLER = PAGE.partition("`my_sampler.py`:")[2].partition("```python\n")[2].partition("```")[0]
WRONG = SAMPLER.replace("(target[place] - draft[place])", "target[place]")
TESTS = ROOT / "docs" / "examples" / "test_lossless_sampling.py"
PACKAGE = ("spectheory", "pyproject.toml", "README.md", "LICENSE", "constraints.txt")
"""What the action installs from."""
ACTION_PATH = {"github.action_path": str(ROOT)}
OFFLINE = {"PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1"}
"""Settings of pip with which it installs the package alone; pip reads a 0 here as no isolation."""


def command(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.run(words, cwd=cwd, env=known, capture_output=True, text=True, check=False)


def filled(text: str, values: Mapping[str, str]) -> str:
    """A value of the action with its expressions replaced."""
    return re.sub(r"\$\{\{ (\S+) \}\}", lambda found: values[found[1]], text)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the first step installs."""
    source, target = (tmp_path_factory.mktemp(name) for name in ("source", "target"))
    for name in PACKAGE:
        path = ROOT / name
        ignored = shutil.ignore_patterns("__pycache__", "*.safetensors")  # an audit needs no models
        shutil.copytree(path, source / name, ignore=ignored) if path.is_dir() else shutil.copy(path, source)
    first = ACTION["runs"]["steps"][0]
    environment = {
        name: filled(text, {"github.action_path": str(source)}) for name, text in first["env"].items()
    }
    done = run_step(first, source, {**environment, **OFFLINE, "PIP_TARGET": str(target)})
    assert done.returncode == 0, done.stderr
    assert (target / "spectheory" / "__main__.py").is_file()
    return target


def run_step(
    step: Mapping[str, Any], cwd: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """A step as a runner runs it, with the interpreter of the tests."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    words = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"])
    return command(*words, cwd=cwd, **{**environment, "PATH": path})


@pytest.mark.deep
@pytest.mark.parametrize(
    ("sampler", "status", "says"),
    [
        (WRONG, 1, "| `verify` | not lossless |"),
        (SAMPLER, 0, "| `verify` | lossless |"),
        (SAMPLER.replace("verify", "check"), 2, ""),
    ],
)
def test_the_steps_of_the_action(
    sampler: str, status: int, says: str, tmp_path: Path, installed: Path
) -> None:
    """On a defect, on its mend, and on a name that is not there."""
    places = {name: tmp_path / name for name in ("sampler", "output", "summary", "temporary")}
    for name in ("sampler", "temporary"):
        places[name].mkdir()
    (places["sampler"] / "my_sampler.py").write_text(sampler, encoding="utf-8")
    (step,) = ACTION["runs"]["steps"][1:]
    given = {"samplers": "my_sampler:verify", "options": "--as sampler -k 1 --vocab 2 --draft-length 1"}
    values = {f"inputs.{name}": text for name, text in given.items()} | ACTION_PATH
    environment = {name: filled(text, values) for name, text in step["env"].items()}
    environment |= {"GITHUB_OUTPUT": str(places["output"]), "GITHUB_STEP_SUMMARY": str(places["summary"])}
    environment |= {"PYTHONPATH": str(installed), "TMPDIR": str(places["temporary"])}
    done = run_step(step, places["sampler"], environment)
    assert done.returncode == status, done.stderr
    outputs = dict(line.split("=", 1) for line in places["output"].read_text(encoding="utf-8").splitlines())
    assert outputs["status"] == str(status)
    assert places["summary"].exists() is (status < 2)
    if status < 2:
        assert says in places["summary"].read_text(encoding="utf-8")
        folder = Path(outputs["folder"])
        assert folder.is_relative_to(places["temporary"])
        audited = json.loads((folder / "audits.json").read_text(encoding="utf-8"))
        assert (audited["verdict"] == "not lossless") is (status == 1)
        assert "<testsuite " in (folder / "audits.xml").read_text(encoding="utf-8")


@pytest.mark.deep
def test_an_installed_wheel_loads_adapters_by_path(tmp_path: Path, installed: Path) -> None:
    """It has no adapters and says how to get them; with the action's folder it lists them."""
    assert not (installed / "audits").exists()
    words = (sys.executable, "-m", "spectheory", "audit", "list", "--json")
    known = {"PYTHONPATH": str(installed)}
    alone = command(*words, cwd=tmp_path, **known)
    assert (alone.returncode, alone.stderr.count("\n")) == (2, 1)
    assert "give --adapters FOLDER" in alone.stderr
    found = command(*words, "--adapters", str(ROOT / "audits"), cwd=tmp_path, **known)
    assert found.returncode == 0, found.stderr
    assert "transformers" in {each["sampler"] for each in json.loads(found.stdout)["samplers"]}


@pytest.mark.parametrize(
    ("sampler", "failed"), [(SAMPLER, 0), pytest.param(WRONG, 1, marks=pytest.mark.deep)]
)
def test_the_file_for_an_engine(sampler: str, failed: int, tmp_path: Path) -> None:
    """Copied beside a sampler it passes; beside a wrong one it fails, and only where that is asked about."""
    shutil.copy(TESTS, tmp_path)
    (tmp_path / "my_sampler.py").write_text(sampler, encoding="utf-8")
    asked = ("-m", "pytest", "-q", "-rP", "-p", "no:cacheprovider", "-p", "no:randomly")
    done = command(
        sys.executable, *asked, cwd=tmp_path, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTHONPATH=str(ROOT)
    )
    assert done.returncode == failed, done.stdout
    assert f"{2 - failed} passed" in done.stdout
    assert ("verify: lossless on 14 cases in float32" in done.stdout) is not failed
    assert ("its law is not the target's on" in done.stdout) is bool(failed)
    (seconds,) = re.findall(r" in ([\d.]+)s", done.stdout)
    assert float(seconds) < 60
    assert TESTS.read_text(encoding="utf-8").count("\n") < 45
