"""What a function needs: its own modules' names, followed; everything else is left out."""

from pathlib import Path

import pytest

from audited import released
from audits.loading.reached_code import Function, find_function, module_file
from spectheory.foundation.errors import InvalidInputError

FUNCTION = Function("sampler", ("made_up.deep.sampler",), frozenset({"rows", "draft"}))
SAMPLER = """
from typing import TYPE_CHECKING
import made_up.whole as whole
import beside_it
from made_up.given import wanted
from made_up import part, unused_part
from .beside import helper as renamed, not_needed
from ..package import reexported
if TYPE_CHECKING:
    from made_up.types import Row
try:
    from made_up.tried import tried
except ImportError:
    tried = None

LIMIT = whole.limit

def other():
    return not_needed()

@renamed
def sampler(rows: Row, draft=None, *, option=1) -> Row:
    return second(rows)

def second(rows):
    return reexported(rows, LIMIT, beside_it.number, part.number, wanted, tried)
"""


def tree(root: Path, sampler: str = SAMPLER) -> Path:
    released(root, "made_up.deep.sampler", sampler)
    released(root, "made_up.whole", "limit = 3\n")
    released(root, "made_up.part", "number = 4\n")
    released(root, "made_up.deep.beside", "def helper(f):\n    return f\ndef not_needed():\n    pass\n")
    released(root, "made_up.package.__init__", "from .inside import reexported\n")
    released(root, "made_up.package.inside", "def reexported(*args):\n    pass\n")
    released(root, "beside_it", "number = 5\n")  # as where packages are installed
    for name in ("types", "unused_part", "__init__"):
        released(root, f"made_up.{name}", "raise RuntimeError\n")
    return root


def test_the_modules_that_a_function_needs(tmp_path: Path) -> None:
    """Through decorators, aliases, packages and constants; not for annotations, types or other functions."""
    found = find_function(tree(tmp_path), "made_up", FUNCTION, ("made_up.given",))
    assert set(found.modules) == {
        "made_up.deep.sampler", "made_up.deep.beside", "made_up.whole", "made_up.part", "made_up.package",
        "made_up.package.inside",
    }  # fmt: skip
    assert next(iter(found.modules)) == "made_up.deep.sampler"
    assert set(found.stops) == {"made_up.given"}
    assert (
        found.line
        == SAMPLER.splitlines().index("def sampler(rows: Row, draft=None, *, option=1) -> Row:") + 1
    )


def test_the_parameters_that_it_must_have(tmp_path: Path) -> None:
    tree(tmp_path)
    for options, says in (({"option"}, ""), ({"later"}, "sampler has no parameter later")):
        function = FUNCTION._replace(options=frozenset(options))
        if says:
            with pytest.raises(InvalidInputError, match=f"^made_up/deep/sampler.py: {says}$"):
                find_function(tmp_path, "made_up", function)
        else:
            assert not find_function(tmp_path, "made_up", function).is_elsewhere
    with pytest.raises(InvalidInputError, match="sampler requires rows, which the adapter does not know"):
        find_function(tmp_path, "made_up", FUNCTION._replace(parameters=frozenset({"draft"})))


def test_a_changed_file_is_read_again_and_a_broken_one_is_one_line(tmp_path: Path) -> None:
    find_function(tree(tmp_path), "made_up", FUNCTION)
    released(tmp_path, "made_up.deep.sampler", "def sampler(rows):\n    pass\n")
    assert len(find_function(tmp_path, "made_up", FUNCTION).modules) == 1
    released(tmp_path, "made_up.deep.sampler", "def sampler(:\n")
    with pytest.raises(InvalidInputError, match=r"sampler\.py is not Python of this version"):
        find_function(tmp_path, "made_up", FUNCTION)


def test_the_file_is_that_which_python_imports(tmp_path: Path) -> None:
    """A package before a module of its name, and no module that a compiled one hides."""
    released(tmp_path, "made_up.part", "")
    assert module_file(tmp_path, "made_up.part") == tmp_path / "made_up" / "part.py"
    (tmp_path / "made_up" / "part.cpython-311-x86_64-linux-gnu.so").touch()
    assert module_file(tmp_path, "made_up.part") is None
    released(tmp_path, "made_up.part.__init__", "")
    assert module_file(tmp_path, "made_up.part") == tmp_path / "made_up" / "part" / "__init__.py"
