"""The one file to copy: it passes right samplers, fails wrong ones, and shows the smallest counterexample."""

import runpy
import subprocess
import sys
import time

import pytest

from conformance.harness_runs import HERE
from conformance.judge import VERSION
from conformance.one_file import DATE

FILE = HERE / "test_draft_verification.py"


@pytest.fixture(scope="module")
def module():
    return runpy.run_path(str(FILE))


def test_head_has_version_and_date():
    assert f"Version {VERSION} of {DATE}" in FILE.read_text()


def test_a_right_sampler_passes_within_ten_seconds(module):
    start = time.process_time()
    assert module["findings"](module["reference"](), module["as_lists"]) == []
    assert time.process_time() - start < 10


def test_a_wrong_sampler_fails_with_the_smallest_counterexample(module):
    found = module["findings"](module["reference"]("no residual"), module["as_lists"])
    assert any(text.startswith("laws: ") and "drafts [0]" in text and "expected" in text for text in found)


@pytest.mark.parametrize("arrays", ["numpy", "torch"])
def test_rows_are_handed_as_arrays(module, arrays):
    rows = {**module["rows_of"].__globals__, "ARRAYS": arrays}
    namespace = module["arrays"].__globals__
    before = namespace["ARRAYS"]
    namespace["ARRAYS"] = arrays
    try:
        found = module["arrays"](module["rows_of"]("0:1/4 2:3/4; 1:1"), 3)
    finally:
        namespace["ARRAYS"] = before
    assert rows["ARRAYS"] in type(found).__module__
    assert found.tolist() == [[0.25, 0.0, 0.75], [0.0, 1.0, 0.0]]


@pytest.mark.deep
def test_runs_where_only_pytest_is(tmp_path):
    """The file as a user runs it: the adapter's engine is missing, all partners pass."""
    copy = tmp_path / FILE.name
    copy.write_text(FILE.read_text())
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", copy],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 5 passed" in done.stdout
    assert "my_engine" in done.stdout
