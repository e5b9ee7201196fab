"""Compare two audits of the same samplers, for example in a pull request.

The older audits are documents of ``spectheory audit --json``, so that a file can hold them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from spectheory.auditing.verdicts.audit_certificate import AuditCertificate
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.results import NOT_LOSSLESS, UNDECIDED, Result, Templates, no_verdict

NEW_DEFECT = "a defect that was not found in the base"
MENDED = "the defect of the base is not found any more"
LOST = "no longer decided"
"""What a change is called; other changes are named by both verdicts."""


@dataclass(frozen=True)
class AuditChange:
    """The audits of one sampler, before and after.

    Attributes:
        sampler: its name, with its file where several samplers have the name.
        before, after: the verdicts; ``None`` if there is no audit.
        what: the change in words.
        code: whether the file is the same: "same file", "changed file", or empty with one audit.
        because: the first reason of the later verdict.
    """

    sampler: str
    before: str | None
    after: str | None
    what: str
    code: str
    because: str

    def __bool__(self) -> bool:
        raise no_verdict(self, ".before and .after")


@dataclass(frozen=True, eq=False, repr=False)
class AuditChanges(Result):
    """The changes, in the order of the later audits.  Samplers that only the base has come last.

    Attributes:
        changes: one per sampler.
    """

    changes: tuple[AuditChange, ...]

    def __bool__(self) -> bool:
        raise no_verdict(self, ".changes")

    columns: ClassVar[Templates] = {
        "sampler": "{sampler}",
        "before": "{before}",
        "after": "{after}",
        "change": "{what}",
        "file": "{code}",
        "because": "{because}",
    }

    def headline(self) -> str:
        changed = [each.sampler for each in self.changes if each.before != each.after]
        return f"against the base: {', '.join(changed) if changed else 'no verdict'} changed"

    def rows(self) -> list[dict[str, Any]]:
        """One per sampler."""
        return [asdict(each) for each in self.changes]

    def to_document(self) -> dict[str, Any]:
        return {"changes": self.rows()}


def audit_changes(
    base: Sequence[Mapping[str, Any]], audits: Sequence[AuditCertificate | Mapping[str, Any]]
) -> AuditChanges:
    """Compare audits with older ones of the samplers of the same names.

    We distinguish samplers of one name by their files, and samplers of one name and file by their order.

    Args:
        base: the older documents, as ``audits_of`` reads them.
        audits: the later certificates, or their documents.
    """
    later = [each.to_document() if isinstance(each, AuditCertificate) else each for each in audits]
    counts = [Counter(map(name_of, documents)) for documents in (base, later)]
    shared = {name for count in counts for name, number in count.items() if number > 1}
    older, newer = _by_name(base, shared), _by_name(later, shared)
    keys = list(dict.fromkeys((*newer, *older)))
    return AuditChanges(tuple(_change(_label(*key), older.get(key), newer.get(key)) for key in keys))


Key = tuple[str, str, int]
"""The name of a sampler; if others have it too, its file and its number among those of the file."""


def _by_name(documents: Sequence[Mapping[str, Any]], shared: set[str]) -> dict[Key, Mapping[str, Any]]:
    found: dict[Key, Mapping[str, Any]] = {}
    for document in documents:
        name, number = name_of(document), 0
        file = str(document["provenance"].get("file", "")) if name in shared else ""
        while (name, file, number) in found:
            number += 1
        found[name, file, number] = document
    return found


def _label(name: str, file: str, number: int) -> str:
    return name + (f" of {file}" if file else "") + (f", number {number + 1}" if number else "")


def name_of(document: Mapping[str, Any]) -> str:
    """The name of the sampler, without a version.

    Example:
        >>> name_of({"sampler": "sglang==0.5.22"})
        'sglang'
    """
    return str(document["sampler"]).partition("==")[0]


def audits_of(document: Any, source: str) -> list[Mapping[str, Any]]:
    found = document.get("audits", [document]) if isinstance(document, Mapping) else None
    if not isinstance(found, list) or not found or not all(map(_is_audit, found)):
        raise InvalidInputError(f"{source} is not a result of spectheory audit --json")
    return found


def _is_audit(document: Any) -> bool:
    try:
        texts = (document["sampler"], document["verdict"], *document["reasons"])
        texts += (document["scope"]["shapes_text"], document["provenance"]["sha256"])
        texts += tuple(document["scope"].get("processes", ()))
    except (KeyError, TypeError):
        return False
    return all(isinstance(text, str) for text in texts)


def _change(name: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> AuditChange:
    old, new = (None if each is None else str(each["verdict"]) for each in (before, after))
    code = because = ""
    if before is not None and after is not None:
        is_same = before["provenance"]["sha256"] == after["provenance"]["sha256"]
        code = "same file" if is_same else "changed file"
    if after is not None:
        because = next(iter(after["reasons"]), "")
    return AuditChange(name, old, new, _in_words(before, after), code, because)


def _in_words(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    if before is None:
        return "not in the base"
    if after is None:
        return "audited in the base only"
    old, new = before["verdict"], after["verdict"]
    if old != new:
        named = {new: f"{old} before"} | {NOT_LOSSLESS: NEW_DEFECT, UNDECIDED: LOST}
        what = MENDED if old == NOT_LOSSLESS and new != UNDECIDED else named[new]
    elif before["reasons"] != after["reasons"]:
        what = "the same verdict for another reason"
    else:
        what = "none"
    asked = [each["scope"]["shapes_text"] for each in (before, after)]
    if asked[0] != asked[1]:  # then the verdicts have not seen the same
        what += f"; the base was asked about (V, L, K) = {asked[0]}, and this is about {asked[1]}"
    drafts = [", ".join(each["scope"].get("processes", ())) for each in (before, after)]
    if drafts[0] and drafts[0] != drafts[1]:
        what += f"; the base was asked with {drafts[0]}, and this with {drafts[1]}"
    return what
