"""Verdicts by release, on a library of our own: first bad, first good after it, and those not audited."""

from pathlib import Path
from typing import Any

import pytest

from audited import FLAT, released
from spectheory import instances
from spectheory.auditing.verdicts import release_history as histories
from spectheory.auditing.verdicts.release_history import history
from spectheory.foundation.errors import InvalidInputError, UnknownNameError
from spectheory.foundation.wheels import Release

PAIR = {"two residual tokens": instances.two_residual_tokens(1)}
WRONG = FLAT.replace("* q[token] < p[token]", "* q[token] > p[token]")
RELEASES = {
    "5": FLAT,
    "4": FLAT.replace("draft_probs,", "rows,"),
    "3": FLAT,
    "2": WRONG,
    "1": FLAT,
    "0": "x = 1\n",
}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(requirement: str, patterns: Any, cache: Path) -> Release:
        package, _, version = requirement.partition("==")
        released(cache / version, "vllm_ascend.sample.rejection_sampler", RELEASES[version])
        return Release(package, version, cache / version)

    monkeypatch.setattr(histories, "fetch", fetch)
    monkeypatch.setattr(histories, "released_versions", lambda package: list(RELEASES))


@pytest.mark.usefixtures("index")
def test_a_history(tmp_path: Path) -> None:
    found = history("vllm-ascend", 6, PAIR, cache=tmp_path)
    assert [(each.version, each.verdict) for each in found.releases] == [
        ("5", "lossless up to arithmetic"),
        ("4", "not audited"),
        ("3", "lossless up to arithmetic"),
        ("2", "defect"),
        ("1", "lossless up to arithmetic"),
        ("0", "not audited"),
    ]
    assert (found.first_bad, found.first_good) == ("2", "3")
    assert found.headline() == "vllm-ascend: 0 to 5, first bad 2, first good after it 3"
    assert "requires rows, which the adapter does not know" in found.releases[1].because
    assert found.releases[3].because.startswith("its law is not the target's")
    assert found.to_document()["releases"][0]["file"] == "vllm_ascend/sample/rejection_sampler.py"
    newest = history("vllm-ascend", ["2"], PAIR, cache=tmp_path)
    assert (newest.first_bad, newest.first_good) == ("2", None)
    good = history("vllm-ascend", ["1"], PAIR, cache=tmp_path)
    assert (good.first_bad, good.first_good, good.headline()) == (None, None, "vllm-ascend: 1 to 1")


def test_what_has_no_history() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'vllm-ascend'"):
        history("vllm-ascent")
    with pytest.raises(InvalidInputError, match="leave out 1"):
        history("vllm-ascend==1")
