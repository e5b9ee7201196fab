"""One module of a library that is not there: what it may do at import, and what not afterwards."""

import os
import sys
from pathlib import Path

import pytest

from audits.loading.one_module import modules_alone
from spectheory.foundation.errors import InvalidInputError

SAMPLER = """
from __future__ import annotations
import no_such_package.deep as deep
from made_up.logger import init_logger
from made_up.constants import LIMIT
from made_up.helpers import half, helper
from .. import elsewhere
from ..base import Base, traced

logger = init_logger(__name__)

class Sampler(Base[int]):
    stream: deep.Stream | None = None

    def right(self):
        return half(LIMIT)

    def logs(self):
        logger.info("x")

    def helped(self):
        return helper(1)

    def branches(self):
        return 1 if elsewhere.IS_FAST else 2

@traced
def decorated():
    return 1
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "made_up" / "deep" / "er"
    folder.mkdir(parents=True)
    (folder / "sampler.py").write_text(SAMPLER)
    (tmp_path / "made_up" / "helpers.py").write_text("def half(x):\n    return x / 2\n")
    (tmp_path / "made_up" / "__init__.py").write_text("raise RuntimeError('the package is imported')")
    return tmp_path


def load(root: Path) -> object:
    files = {
        "made_up.deep.er.sampler": root / "made_up/deep/er/sampler.py",
        "made_up.helpers": root / "made_up/helpers.py",
    }
    return modules_alone(files, {"made_up.constants": {"LIMIT": 3}})["made_up.deep.er.sampler"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("logs", r"the sampler calls made_up\.logger\.init_logger"),
        ("branches", r"depends on made_up\.deep\.elsewhere\.IS_FAST"),
        ("helped", "helper"),
    ],
)
def test_a_stand_in_is_an_error_once_it_is_used(root: Path, call: str, says: str) -> None:
    """A name of a file that is there must be in it."""
    if call == "helped":
        with pytest.raises(InvalidInputError, match=f"cannot be executed .*{says}"):
            load(root)
        return
    (root / "made_up" / "helpers.py").write_text(
        "def half(x):\n    return x / 2\ndef helper(x):\n    return x\n"
    )
    module = load(root)
    assert module.Sampler().right() == 1.5  # type: ignore[attr-defined]
    with pytest.raises(InvalidInputError, match=says):
        getattr(module.Sampler(), call)()  # type: ignore[attr-defined]
    with pytest.raises(InvalidInputError, match=r"calls made_up\.deep\.base\.traced"):
        module.decorated()  # type: ignore[attr-defined]


def test_nothing_is_left_behind(root: Path) -> None:
    """No module of the library, no stand-in, no finder."""
    (root / "made_up" / "helpers.py").write_text("half = helper = abs\n")
    before, finders = set(sys.modules), list(sys.meta_path)
    load(root)
    assert set(sys.modules) == before
    assert sys.meta_path == finders
    with pytest.raises(InvalidInputError, match=r"nothing\.py is missing"):
        modules_alone({"made_up.nothing": root / "made_up/nothing.py"})


def test_a_module_that_needs_its_library_is_a_stand_in(root: Path) -> None:
    """Only the first module must be executed; of another that fails, what it defines is not here."""
    (root / "made_up" / "helpers.py").write_text("import made_up.device\nhalf = helper = abs\n1 / 0\n")
    module = load(root)
    with pytest.raises(InvalidInputError, match=r"the sampler calls made_up\.helpers\.half"):
        module.Sampler().right()  # type: ignore[attr-defined]


def test_a_module_inside_a_package_that_is_not_here(root: Path) -> None:
    """It is imported, and not taken for one more name of the package."""
    (root / "made_up" / "helpers.py").write_text(
        "from . import constants\nhalf = helper = lambda x: constants.LIMIT\n"
    )
    assert load(root).Sampler().right() == 3  # type: ignore[attr-defined]


def test_conditions_and_bases_at_import(root: Path) -> None:
    """What is not here is not available; a class may give a base that is not here its settings."""
    (root / "made_up" / "helpers.py").write_text(
        "from .base import Base, is_there\n"
        "class Settings(Base, frozen=True):\n    pass\n"
        "half = helper = None if is_there() else abs\n"
    )
    assert load(root).Sampler().right() == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("handler", ["ImportError", "(KeyError, ImportError)", "ValueError"])
def test_an_import_that_may_fail(root: Path, handler: str) -> None:
    """It fails, as where the package is not installed; without a handler for it a stand-in is imported."""
    (root / "made_up" / "helpers.py").write_text(
        f"try:\n    import no_such_thing\nexcept {handler}:\n    no_such_thing = None\n"
        "half = helper = lambda x: no_such_thing\n"
    )
    is_there = load(root).Sampler().right() is not None  # type: ignore[attr-defined]
    assert is_there is (handler == "ValueError")


def test_a_file_of_the_same_length_changed_at_the_same_time_is_read_anew(tmp_path: Path) -> None:
    """The time stamps are equal, as they may be within a second; byte code would be that of the first."""
    file = tmp_path / "engine_sampler.py"
    for value in ("1", "2"):
        file.write_text(f"VALUE = {value}\n")
        os.utime(file, (1, 1))
        found = modules_alone({"engine_sampler": file})
        assert str(found["engine_sampler"].VALUE) == value
