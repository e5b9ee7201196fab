"""Verdicts by release, on a library of our own: first bad, first good after it, and those not audited."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import audits.subject
from audited import FLAT, released
from audits import release_history as histories
from audits.release_history import history
from spectheory import instances
from spectheory.foundation.errors import InvalidInputError, UnknownNameError
from spectheory.foundation.wheels import Release

PAIR = {"two residual tokens": instances.two_residual_tokens(1)}
WRONG = FLAT.replace("* q[token] < p[token]", "* q[token] > p[token]")
RELEASES = {"3": FLAT, "2": FLAT.replace("draft_probs,", "rows,"), "1": WRONG, "0": "x = 1\n"}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(requirement: str, patterns: Any, cache: Path) -> Release:
        package, _, version = requirement.partition("==")
        if version == "0.1":
            raise InvalidInputError("pip finds no wheel that fits")
        released(cache / version, "vllm_ascend.sample.rejection_sampler", RELEASES[version])
        return Release(package, version, cache / version)

    monkeypatch.setattr(audits.subject, "fetch", fetch)
    monkeypatch.setattr(histories, "released_versions", lambda package: list(RELEASES))


@pytest.mark.usefixtures("index")
@pytest.mark.deep
def test_a_history(tmp_path: Path) -> None:
    found = history("vllm-ascend", 6, PAIR, cache=tmp_path)
    assert [(each.version, each.verdict) for each in found.releases] == [
        ("3", "lossless"),
        ("2", "not audited"),
        ("1", "not lossless"),
        ("0", "not audited"),
    ]
    assert (found.first_bad, found.first_good) == ("1", "3")
    assert found.headline() == "vllm-ascend: 0 to 3, first bad 1, first good after it 3"
    assert "requires rows, which the adapter does not know" in found.releases[1].because
    assert found.releases[2].because.startswith("its law is not the target's")
    assert found.to_document()["releases"][0]["file"] == "vllm_ascend/sample/rejection_sampler.py"
    newest = replace(found, releases=found.releases[2:])
    assert (newest.first_bad, newest.first_good) == ("1", None)
    good = replace(found, releases=found.releases[:1])
    assert (good.first_bad, good.first_good, good.headline()) == (None, None, "vllm-ascend: 3 to 3")


@pytest.mark.usefixtures("index")
@pytest.mark.deep
def test_a_release_that_pip_does_not_find_is_not_audited(tmp_path: Path) -> None:
    """The others keep their verdicts."""
    found = history("vllm-ascend", ["3", "0.1"], PAIR, cache=tmp_path)
    assert [each.verdict for each in found.releases] == ["lossless", "not audited"]
    assert found.releases[1].because == "pip finds no wheel that fits"


def test_what_has_no_history() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'vllm-ascend'"):
        history("vllm-ascent")
    with pytest.raises(InvalidInputError, match="leave out 1"):
        history("vllm-ascend==1")
