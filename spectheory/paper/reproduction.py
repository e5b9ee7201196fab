"""Every figure and table by name, and ``reproduce``, which recomputes them and writes their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from spectheory.paper.acceptance_length import acceptance_length
from spectheory.paper.artifact import Artifact, write_artifact
from spectheory.paper.full_vocabulary import full_vocabulary
from spectheory.paper.otm_bernoulli import otm_bernoulli
from spectheory.paper.real_pair import real_pair
from spectheory.paper.report import write_report
from spectheory.paper.two_token_table import two_token_table
from spectheory.validate import unknown_name

ARTIFACTS: Mapping[str, Callable[[], Artifact]] = {
    "two_token_table": two_token_table,
    "acceptance_length": acceptance_length,
    "otm_bernoulli": otm_bernoulli,
    "real_pair": real_pair,
    "full_vocabulary": full_vocabulary,
}
"""Every figure or table by name, in the order of the report."""


def reproduce(
    names: Sequence[str], folder: Path, progress: Callable[[int, int], None] | None = None
) -> list[Artifact]:
    """Recompute figures and tables and write them with report.md into a folder.

    Args:
        names: which; all of them when empty.
        folder: made if it is not there.
        progress: called with (results done, results in all).

    Raises:
        UnknownNameError: a name does not exist; the error suggests the nearest one.
    """
    for name in names:
        if name not in ARTIFACTS:
            raise unknown_name("figure or table", name, ARTIFACTS)
    wanted = [name for name in ARTIFACTS if not names or name in names]
    folder.mkdir(parents=True, exist_ok=True)
    artifacts = []
    for number, name in enumerate(wanted):
        if progress:
            progress(number, len(wanted))
        artifacts.append(ARTIFACTS[name]())
        write_artifact(artifacts[-1], folder)
    if progress:
        progress(len(wanted), len(wanted))
    write_report(artifacts, " ".join(["spectheory reproduce", *names]), folder)
    return artifacts
