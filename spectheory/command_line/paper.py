"""Commands on the papers' figures and tables: reproduce."""

from __future__ import annotations

from pathlib import Path

import click

from spectheory.command_line.options import json_option
from spectheory.command_line.output import EXIT_DEFECT, print_json


@click.command(short_help="Recompute the figures and tables.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--out", type=click.Path(), default="figures", show_default=True, help="Folder for the results."
)
@json_option
def reproduce(names: tuple[str, ...], out: str, as_json: bool) -> int:
    """Recompute the figures and tables; all of them, or those that are named.

    Writes PDF and PNG figures, every plotted number as CSV and JSON, and report.md.  Exits with 1
    where two routes to the same number disagree.
    """
    from spectheory import models
    from spectheory.command_line import tables
    from spectheory.command_line.progress import progress_bar
    from spectheory.paper import reproduce as run_reproduction

    models.quiet_loading()
    with progress_bar("reproducing") as progress:
        artifacts = run_reproduction(names, Path(out), progress=progress)
    document = {
        "out": out,
        "passed": all(artifact.passed for artifact in artifacts),
        "results": [artifact.to_document() for artifact in artifacts],
    }
    if as_json:
        print_json(document)
    else:
        tables.print_reproduction(document)
    return 0 if document["passed"] else EXIT_DEFECT
