"""What changed between two audits: the verdict, the reason, the file and the shapes."""

from collections.abc import Mapping
from typing import Any

import pytest

from audits.specimens.samplers import token_verification
from spectheory import audit, instances
from spectheory.auditing.verdicts.audit_certificate import RELAXATION
from spectheory.auditing.verdicts.audit_changes import (
    LOST,
    MENDED,
    NEW_DEFECT,
    AuditChange,
    audit_changes,
    audits_of,
)
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, UNDECIDED

FOUND = audit(token_verification, {"thirds": instances.two_token(1)}, drafts=[1])


def document(verdict: str, *reasons: str, sha256: str = "1", **fields: Any) -> Mapping[str, Any]:
    """The document of an audit with another verdict."""
    own = FOUND.to_document()
    return {**own, "verdict": verdict, "reasons": reasons, "provenance": {"sha256": sha256}, **fields}


def change(before: Mapping[str, Any], after: Mapping[str, Any]) -> AuditChange:
    (found,) = audit_changes([before], [after]).changes
    return found


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ((LOSSLESS,), (NOT_LOSSLESS, "its law"), NEW_DEFECT),
        ((NOT_LOSSLESS, "its law"), (LOSSLESS,), MENDED),
        ((NOT_LOSSLESS, "its law"), (RELAXATION,), MENDED),
        ((NOT_LOSSLESS, "its law"), (UNDECIDED, "a seed"), LOST),
        ((LOSSLESS,), (UNDECIDED, "a seed"), LOST),
        ((UNDECIDED, "a seed"), (LOSSLESS,), "undecided before"),
        ((UNDECIDED, "a seed"), (NOT_LOSSLESS, "its law"), NEW_DEFECT),
        ((NOT_LOSSLESS, "its law"), (NOT_LOSSLESS, "randomness"), "the same verdict for another reason"),
        ((NOT_LOSSLESS, "its law"), (NOT_LOSSLESS, "its law"), "none"),
        ((LOSSLESS,), (LOSSLESS,), "none"),
    ],
)
def test_changes_are_named(before: tuple[str, ...], after: tuple[str, ...], what: str) -> None:
    """Nothing is called mended or unchanged that is not decided."""
    found = change(document(*before), document(*after, sha256="2"))
    assert (found.before, found.after, found.what) == (before[0], after[0], what)
    assert (found.code, found.because) == ("changed file", after[1] if len(after) > 1 else "")
    assert change(document(*before), document(*after)).code == "same file"


def test_verdicts_on_other_shapes_are_told_apart() -> None:
    """The defect of the base can be missing because nobody asked about its pair."""
    scope = {**FOUND.to_document()["scope"], "shapes_text": "(2-4, 1-2, 1)"}
    found = change(document(NOT_LOSSLESS, "its law", scope=scope), document(LOSSLESS))
    assert (
        found.what
        == f"{MENDED}; the base was asked about (V, L, K) = (2-4, 1-2, 1), and this is about (2, 1, 1)"
    )


def test_verdicts_on_other_drafts_are_told_apart() -> None:
    """A tree needs another residual than independent paths, at the same (V, L, K)."""
    scope = {**FOUND.to_document()["scope"], "processes": ["without_replacement:2"]}
    found = change(document(NOT_LOSSLESS, "its law", scope=scope), document(LOSSLESS))
    assert (
        found.what
        == f"{MENDED}; the base was asked with without_replacement:2, and this with 1 independent path"
    )


def test_samplers_of_one_name_are_told_apart() -> None:
    """By their files, and in one file by their order: none answers for another."""

    def of(file: str, verdict: str = LOSSLESS) -> Mapping[str, Any]:
        return document(verdict, "its law", sampler="verify", provenance={"sha256": "1", "file": file})

    base, later = (
        [of("a.py"), of("b.py"), of("b.py")],
        [of("a.py", NOT_LOSSLESS), of("b.py"), of("b.py", NOT_LOSSLESS)],
    )
    assert [(each.sampler, each.what) for each in audit_changes(base, later).changes] == [
        ("verify of a.py", NEW_DEFECT),
        ("verify of b.py", "none"),
        ("verify of b.py, number 2", NEW_DEFECT),
    ]
    (moved,) = audit_changes(base[:1], later[1:2]).changes
    assert (moved.sampler, moved.what) == ("verify", "none")


def test_samplers_are_matched_by_their_names() -> None:
    """Versions in names are left out; what only one side has is said."""
    base = [document(LOSSLESS, sampler="vllm==0.31.0"), document(LOSSLESS, sampler="old")]
    found = audit_changes(base, [document(NOT_LOSSLESS, "its law", sampler="vllm"), FOUND])
    assert [(each.sampler, each.what) for each in found.changes] == [
        ("vllm", NEW_DEFECT),
        ("token_verification", "not in the base"),
        ("old", "audited in the base only"),
    ]
    assert found.headline() == "against the base: vllm, token_verification, old changed"
    assert audit_changes([FOUND.to_document()], [FOUND]).headline() == "against the base: no verdict changed"
    assert found.to_document()["changes"] == found.rows()


@pytest.mark.parametrize(
    "wrong", [[], {}, {"audits": []}, {"audits": {}}, {"audits": [3]}, {"verdict": LOSSLESS}, "text", None]
)
def test_what_is_not_a_result_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"base\.json is not a result of spectheory audit --json"):
        audits_of(wrong, "base.json")
    broken = {**FOUND.to_document(), "scope": wrong}
    with pytest.raises(InvalidInputError, match="is not a result"):
        audits_of({"audits": [FOUND.to_document(), broken]}, "base.json")


def test_one_result_and_several_are_read() -> None:
    one = FOUND.to_document()
    assert audits_of(one, "") == audits_of({"audits": [one], "changes": []}, "") == [one]
