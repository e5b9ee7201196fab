"""Every harness whose tools are here compiles, conforms, and is found wrong where it is made wrong."""

import pytest

from conformance.harness_runs import HARNESSES, HERE, missing_tools, run_harness, verdicts

QUICK = ("c", "javascript")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.deep) for name in HARNESSES]
)
def test_harness_conforms_and_its_control_is_found(name, tmp_path):
    harness = HARNESSES[name]
    if missing_tools(harness):
        pytest.skip(f"there is no {missing_tools(harness)}")
    for report in verdicts(harness, run_harness(harness, tmp_path)):
        assert (report["verdict"], report["control"], report["exit"]) == ("conforms", "found", 0), report


def test_every_harness_is_short_and_is_run():
    files = {path.name for path in (HERE / "harness").iterdir() if path.is_file()}
    assert files == {harness.file for harness in HARNESSES.values()}
    for file in files:
        assert len((HERE / "harness" / file).read_text().splitlines()) <= 160, file


def test_missing_tools_are_named():
    harness = HARNESSES["c"]._replace(tools=["no-such-compiler", "module:no_such_module", "python3"])
    assert missing_tools(harness) == ["no-such-compiler", "no_such_module"]
