"""Samplers of installed libraries by name."""

from __future__ import annotations

import pytest
from transformers.generation import utils as transformers_utils

from spectheory.audit import libraries
from spectheory.audit.libraries import SUBJECTS, load_subject
from spectheory.errors import UnknownNameError


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_shipped_function_itself_is_loaded(name: str) -> None:
    found = load_subject(name)
    inner = getattr(found.sampler, "func", found.sampler)
    assert inner is transformers_utils._speculative_sampling
    assert found.name == name
    assert found.provenance.package == "transformers"


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
