"""The verdicts on a library's sampler, release by release."""

import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from audits.registry import SUBJECTS, subject_of_release
from spectheory.auditing.verdicts.sampler_audit import audit
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, UNDECIDED, Result, Templates, no_verdict
from spectheory.foundation.validation import check_count, unknown_name
from spectheory.foundation.wheels import Release, default_cache, parsed
from spectheory.pairs.pair import ModelPair

NOT_THERE = "not audited"
"""The verdict on a release without the sampler, or with one that the adapter does not fit."""


def released_versions(package: str) -> list[str]:
    """List the released versions on the package index, newest first, without pre-releases."""
    command = (sys.executable, "-m", "pip", "index", "versions", package)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    listed = re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE)
    if done.returncode or listed is None:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["no answer"]
        raise InvalidInputError(f"pip lists no versions of {package}: {said[-1].removeprefix('ERROR: ')}")
    return [version for version in listed[1].split(", ") if not re.search(r"[a-z]", version)]


@dataclass(frozen=True)
class AuditedRelease:
    """The verdict on one release.

    Attributes:
        version: of the library.
        verdict: of the audit, or ``NOT_THERE``, also for a release that pip does not find.
        because: the first reason, or why there is no audit.
        file, sha256: the file of the sampler; empty where there is no audit.
        total_variation: the largest, as a float; ``None`` where no case was judged.
    """

    version: str
    verdict: str
    because: str
    file: str = ""
    sha256: str = ""
    total_variation: float | None = None

    @property
    def is_decided(self) -> bool:
        return self.verdict not in (NOT_THERE, UNDECIDED)

    def __bool__(self) -> bool:
        return self.verdict in LOSSLESS


@dataclass(frozen=True, eq=False, repr=False)
class History(Result):
    """The verdicts on a sampler, the newest release first.

    Attributes:
        sampler: its name.
        releases: the newest first.
    """

    sampler: str
    releases: tuple[AuditedRelease, ...]

    def __bool__(self) -> bool:
        raise no_verdict(self, ".releases, .first_bad or .first_good")

    columns: ClassVar[Templates] = {
        "release": "{version}",
        "verdict": "{verdict}",
        "total variation": "{total_variation:.3g}",
        "because": "{because}",
    }

    @property
    def first_bad(self) -> str | None:
        """The oldest of these releases with a defect."""
        return next((each.version for each in reversed(self.releases) if each.verdict == NOT_LOSSLESS), None)

    @property
    def first_good(self) -> str | None:
        """The oldest release without a defect after the last one with a defect; ``None`` without either."""
        good = None
        for each in self.releases:
            if each.verdict == NOT_LOSSLESS:
                return good
            good = each.version if each.is_decided else good
        return None

    def headline(self) -> str:
        """The range of releases, with the first bad one and the first good one after it."""
        found = f"{self.sampler}: {self.releases[-1].version} to {self.releases[0].version}"
        if self.first_bad is not None:
            found += f", first bad {self.first_bad}, first good after it {self.first_good or 'none'}"
        return found

    def rows(self) -> list[dict[str, Any]]:
        """One per release."""
        return [{"sampler": self.sampler, **asdict(each)} for each in self.releases]

    def to_document(self) -> dict[str, Any]:
        return {
            "sampler": self.sampler,
            "first_bad": self.first_bad,
            "first_good": self.first_good,
            "releases": [asdict(each) for each in self.releases],
        }


def history(
    sampler: str,
    versions: int | Sequence[str] = 6,
    pairs: Mapping[str, ModelPair] | None = None,
    *,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> History:
    """Audit a library's sampler in several releases; wheels that are not in the cache are downloaded.

    Args:
        sampler: a name of ``SUBJECTS``.
        versions: the number of newest releases, or the versions.
        pairs: of every audit, as in ``audit``.
        cache: the folder of fetched files; by default in the user's cache.
        progress: called with (releases done, number of releases).

    Raises:
        UnknownNameError: no sampler has this name.
        InvalidInputError: pip does not list the releases.
    """
    name, version = parsed(sampler)
    if name not in SUBJECTS:
        raise unknown_name("sampler", name, SUBJECTS)
    if version:
        raise InvalidInputError(f"a history has several versions; leave out {version}")
    library = SUBJECTS[name].library
    package = library.package
    if library.repository and isinstance(versions, int):
        raise InvalidInputError(f"{package} has no releases; name the commits, or audit each with --from")
    if isinstance(versions, int):
        versions = released_versions(package)[: check_count("versions", versions)]
    found = []
    for done, each in enumerate(versions):
        if progress is not None:
            progress(done, len(versions))
        try:
            release = library.fetch(each, cache or default_cache())
        except InvalidInputError as error:
            found.append(AuditedRelease(each, NOT_THERE, str(error)))
        else:
            found.append(audited_release(name, release, pairs))
    return History(name, tuple(found))


def audited_release(
    name: str, release: Release, pairs: Mapping[str, ModelPair] | None = None
) -> AuditedRelease:
    """The verdict on a release; one line where its sampler cannot be called."""
    try:
        found = audit(subject_of_release(name, release), pairs)
    except InvalidInputError as error:
        return AuditedRelease(release.version, NOT_THERE, str(error))
    code = found.provenance
    return AuditedRelease(
        release.version,
        found.verdict,
        next(iter(found.reasons), found.relaxation),
        code.file,
        code.sha256,
        None if found.total_variation is None else float(found.total_variation),
    )
