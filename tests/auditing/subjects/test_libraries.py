"""Samplers of installed libraries by name."""

import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from transformers.generation import utils as transformers_utils

from audited import CACHE, fetched
from spectheory.auditing.subjects import libraries
from spectheory.auditing.subjects.libraries import LIBRARIES, SUBJECTS, Fetched, Installed, load_subject
from spectheory.foundation.errors import InvalidInputError, UnknownNameError
from spectheory.foundation.wheels import parsed


@pytest.mark.parametrize(
    "name", [name for name, subject in SUBJECTS.items() if isinstance(subject, Installed)]
)
def test_the_shipped_function_itself_is_loaded(name: str) -> None:
    found = load_subject(name)
    inner = getattr(found.sampler, "func", found.sampler)
    assert inner is transformers_utils._speculative_sampling
    assert found.name == name
    assert (found.provenance.package, found.provenance.file) == (
        "transformers",
        "transformers/generation/utils.py",
    )


def test_what_the_adapters_of_transformers_add() -> None:
    """The weight that the relaxation states; the file of the draft generator."""
    ensemble: Any = load_subject("transformers-ensemble")
    assert ensemble.sampler.keywords == {"assistant_ensemble_weight": 0.5}
    assert ensemble.relaxation.weight == Fraction(1, 2)
    note = load_subject("transformers-gemma4").note
    assert "drafted by transformers/generation/candidate_generator.py, sha256 " in note


def test_a_file_that_was_not_tested_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hash decides, not the version; a known one has nothing to say."""
    subject = SUBJECTS["transformers"]
    for known, says in (
        ({load_subject("transformers").provenance.sha256: "1.2"}, ""),
        ({"0": "1.2"}, "(1.2)"),
    ):
        monkeypatch.setattr(libraries, "SUBJECTS", {"transformers": subject._replace(known=known)})
        assert load_subject("transformers").note.endswith(says)
        assert bool(load_subject("transformers").note) is bool(says)


def test_an_unknown_library() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'transformers'"):
        load_subject("transformer")


def test_every_fetched_sampler_has_its_file_and_its_version() -> None:
    """What is fetched holds the file; the version of the library is among those that are known."""
    for name, subject in SUBJECTS.items():
        if isinstance(subject, Fetched):
            package, version = parsed(subject.library.requirement)
            assert LIBRARIES[package] is subject.library, name
            assert subject.file in subject.library.files, name
            assert version in subject.known.values(), name
            assert subject.options["stand_ins"], name


def test_fetched_code_has_a_provenance_and_another_version_says_so(tmp_path: Path) -> None:
    """A copy under another version runs all the same; its bytes decide whether it is known."""
    fetched("sglang-0.5.23")
    known = load_subject("sglang-block", CACHE)
    assert (known.provenance.package, known.provenance.version, known.note) == ("sglang", "0.5.23", "")
    assert known.provenance.file == "sglang/kernels/ops/speculative/reject_sampling.py"
    shutil.copytree(CACHE / "sglang-0.5.23", tmp_path / "sglang-0.6.0")
    copied = load_subject("sglang-block==0.6.0", tmp_path)
    assert (copied.provenance.version, copied.note) == ("0.6.0", "")
    with (tmp_path / "sglang-0.6.0" / copied.provenance.file).open("a") as file:
        file.write("\n")
    assert "not one that the adapter was tested with (0.5.23)" in load_subject("sglang==0.6.0", tmp_path).note


def test_what_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"run: spectheory audit fetch sglang==0\.5\.23 --cache"):
        load_subject("sglang", tmp_path)
    with pytest.raises(InvalidInputError, match="give no version"):
        load_subject("transformers==5")
