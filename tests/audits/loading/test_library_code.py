"""One function of a release: what it is called with, and what is replaced around it."""

from pathlib import Path

import pytest

from audited import released
from audits.loading.library_code import Code, load_code
from audits.loading.one_module import Given
from audits.loading.reached_code import Function
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.wheels import Release

SAMPLER = """
from made_up.noise import draw
from made_up.rest import unused
from made_up.settings import limit

LIMIT = 7

def sampler(rows, option=0):
    return draw(), limit, rows, option
"""


def code(root: Path, **options: int) -> Code:
    released(root, "made_up.sampler", SAMPLER)
    released(root, "made_up.noise", "def draw():\n    return _inner()\ndef _inner():\n    return 1\n")
    given = {
        "made_up.settings": Given("settings of our own", lambda: {"limit": 3}),
        "made_up.other": Given("never asked for", lambda: {}),
    }
    function = Function("sampler", ("made_up.sampler",), frozenset({"rows", "draft"}))
    return load_code(Release("made-up", "1", root), "made_up", function, given, options)


def test_it_is_called_with_what_it_has_parameters_for(tmp_path: Path) -> None:
    """And with its options; the stand-ins are those that it reaches."""
    (tmp_path / "made_up").mkdir()
    found = code(tmp_path)
    assert found.call(rows=2, draft=5) == (1, 3, 2, 0)
    assert code(tmp_path, option=4).call(rows=2) == (1, 3, 2, 4)
    assert found.stand_ins == ["settings of our own"]
    assert list(found.modules) == ["made_up.sampler", "made_up.noise"]
    assert (found.file, found.line, found.release) == ("made_up/sampler.py", 8, "made-up 1")
    with pytest.raises(
        InvalidInputError, match=r"^made-up 1: made_up/sampler\.py: sampler has no parameter new$"
    ):
        code(tmp_path, new=1)
    assert str(found.refused("is old")) == "made-up 1: made_up/sampler.py: sampler is old"


def test_objects_are_replaced_wherever_they_are_imported(tmp_path: Path) -> None:
    """Both or none of them; what is replaced is said."""
    (tmp_path / "made_up").mkdir()
    found = code(tmp_path)
    found.replace(("draw", "missing"), lambda *_: (len, len), "never")
    assert found.call(rows=2)[0] == 1
    found.replace(("_inner",), lambda inner: (lambda: inner() + 1,), "one more")
    assert found.call(rows=2)[0] == 2
    found.replace(("draw",), lambda draw: (lambda: 10 * draw(),), "ten times")
    assert found.call(rows=2)[0] == 20
    assert found.stand_ins == ["settings of our own", "_inner: one more", "draw: ten times"]


def test_constants_of_its_module(tmp_path: Path) -> None:
    """A stand-in is not a number."""
    (tmp_path / "made_up").mkdir()
    found = code(tmp_path)
    assert [found.constant(name, 5) for name in ("LIMIT", "missing", "unused", "limit")] == [7, 5, 5, 3]
