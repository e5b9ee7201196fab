"""One JSON object on one line, and one line that says what is wrong."""

import json
import math

import pytest

from spectheory.command_line.output import fail, print_json


def test_json_is_one_line_without_infinities(capsys: pytest.CaptureFixture[str]) -> None:
    """A bound that certifies nothing is null, wherever it stands; everything else is unchanged."""
    document = {"a": [1.5, math.inf, {"b": -math.inf}], "c": (math.nan, "π = 3\n"), "d": None, "e": True}
    print_json(document)
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out) == {"a": [1.5, None, {"b": None}], "c": [None, "π = 3\n"], "d": None, "e": True}
    assert "π" in out
    with pytest.raises(ValueError, match="not JSON compliant"):  # why: json refuses what is not finite
        json.dumps(document, allow_nan=False)


def test_an_error_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert fail("the row\n  is wrong", 2) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "error: the row is wrong\n")
