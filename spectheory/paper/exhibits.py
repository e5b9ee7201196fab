"""An exhibit is a function that computes ``Findings``, with a function that draws them.

The numbers are written first, and the pictures read what was written.  So a restyled picture needs no
computation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import update_wrapper
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectheory import __version__
from spectheory.foundation.documents import installed_versions, replace_file, to_json
from spectheory.foundation.errors import InvalidInputError
from spectheory.paper.findings import Findings, lines_of_rows
from spectheory.paper.parameters import Parameter, parameters_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SECTIONS = ("spectr2023", "block2024", "greedy2026", "spectrgbv2026", "language models")
"""The parts of the report, in order."""
FORMATS = ("pdf", "png", "svg")
DEFAULT_FORMATS = ("pdf", "png")


@dataclass(eq=False)
class Exhibit:
    """One figure or table: call it with its parameters to compute, ``draw`` what it found.

    Attributes:
        section: one of ``SECTIONS``.
        source: the paper's figure, table or equation.
        plot: draws what was found, in plain values; ``None`` for a table without a picture.
        small: parameters of a version that takes seconds, used by the tests of all exhibits.
    """

    compute: Callable[..., Findings]
    section: str
    title: str
    source: str
    plot: Callable[[Findings], Figure] | None
    small: Mapping[str, Any]

    def __post_init__(self) -> None:
        update_wrapper(self, self.compute)

    @property
    def name(self) -> str:
        """As on the command line; the stem of its files."""
        return self.compute.__name__

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return parameters_of(self.compute)

    def settings(self, *arguments: Any, **parameters: Any) -> dict[str, Any]:
        """All arguments of a call, the default ones too, in plain values."""
        bound = signature(self.compute).bind(*arguments, **parameters)
        bound.apply_defaults()
        return {name: to_json(value) for name, value in bound.arguments.items()}

    def __call__(self, *arguments: Any, **parameters: Any) -> Findings:
        """Compute, with other parameters than the default ones if they are given.

        Raises:
            InvalidInputError: the exhibit tested no claim.
        """
        found = self.compute(*arguments, **parameters)
        if not found.checks:
            raise InvalidInputError(f"{self.name} tested no claim; call checks.expect(claim, holds, where)")
        return replace(found, settings=self.settings(*arguments, **parameters))

    def draw(self, findings: Findings) -> Figure | None:
        """The figure of what was found, as it is drawn from the file of these findings."""
        as_written = Findings.from_document(json.loads(json.dumps(findings.to_document())))
        return None if self.plot is None else self.plot(as_written)


def exhibit(
    section: str,
    *,
    title: str,
    source: str,
    plot: Callable[[Findings], Figure] | None = None,
    small: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Findings]], Exhibit]:
    """Decorate the function that computes an exhibit; its name is the exhibit's.

    A new exhibit is a file in ``spectheory/paper/figures`` with a decorated function; CONTRIBUTING.md names
    the commands that write its picture and numbers.  The arguments are the attributes of ``Exhibit``.
    """
    if section not in SECTIONS:
        raise InvalidInputError(f"section is one of {', '.join(SECTIONS)}, got {section!r}")
    return lambda compute: Exhibit(compute, section, title, source, plot, small or {})


@dataclass(frozen=True)
class Written:
    """An exhibit as it lies in a folder.

    Attributes:
        name, title, source: of the exhibit.
        made_with: versions of this package and of the libraries that computed it.
        pictures: names of its files but the data file.
        findings: in plain values.
        computed: whether they were computed now; otherwise they were read from the folder.
    """

    name: str
    title: str
    source: str
    made_with: Mapping[str, str]
    pictures: Sequence[str]
    findings: Findings
    computed: bool = False

    @property
    def passed(self) -> bool | None:
        """Whether all checks passed; None where only a file says so, which may have been changed."""
        return self.findings.passed if self.computed or self.findings.failures else None

    @property
    def files(self) -> list[str]:
        """Names of all its files."""
        return [*self.pictures, f"{self.name}.json"]

    def to_document(self) -> dict[str, Any]:
        """Name, verdict and files, for ``spectheory reproduce --json``."""
        return {
            "name": self.name,
            "title": self.title,
            "passed": self.passed,
            "failures": self.findings.failures,
            "files": self.files,
        }


HEAD = ("name", "title", "source", "made_with", "pictures")
"""The fields of a data file before the findings."""


def write_exhibit(
    shown: Exhibit,
    findings: Findings,
    folder: Path,
    formats: Collection[str] = DEFAULT_FORMATS,
    made_with: Mapping[str, str] | None = None,
) -> Written:
    """Write the pictures, then the numbers as JSON; every file is replaced whole.

    The JSON file comes last: where it lies in the folder, the exhibit is finished.  The same findings
    give the same bytes.

    Args:
        shown, findings, folder, formats: what, and where.
        made_with: versions that computed the findings; by default those that are installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    figure = shown.draw(findings)
    pictures = [] if figure is None else [f"{shown.name}.{ending}" for ending in formats]
    if figure is not None:
        from spectheory.paper.style import figure_bytes
    for file in pictures:
        replace_file(folder / file, figure_bytes(figure, file.rpartition(".")[2]))  # type: ignore[arg-type]
    computed = made_with is None
    if made_with is None:
        made_with = {"spectheory": __version__} | installed_versions("numpy", "scipy", "matplotlib", "torch")
    written = Written(shown.name, shown.title, shown.source, made_with, pictures, findings, computed)
    head = {key: to_json(getattr(written, key)) for key in HEAD}
    replace_file(folder / f"{shown.name}.json", lines_of_rows(head | findings.to_document()) + "\n")
    return written


def read_exhibit(name: str, folder: Path) -> Written | None:
    """Read the files of ``write_exhibit``; ``None`` where there are none.

    Raises:
        InvalidInputError: the file is not one of this exhibit, has no claim, or names files elsewhere.
    """
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        findings = Findings.from_document(document)
        head = {key: document[key] for key in HEAD}
        if head["name"] == name and findings.checks and all(map(_is_name, head["pictures"])):
            return Written(**head, findings=findings)
        error: Exception | None = None
    except (ValueError, KeyError, TypeError) as failure:
        error = failure
    raise InvalidInputError(
        f"{path} is not a file that reproduce wrote; remove it, or compute {name} anew"
    ) from error


def _is_name(file: str) -> bool:
    return Path(file).name == file
