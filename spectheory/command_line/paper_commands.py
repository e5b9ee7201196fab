"""Commands on the papers: reproduce their figures and tables, list their claims."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spectheory.command_line.options import csv_option, json_option
from spectheory.command_line.output import (
    EXIT_DEFECT,
    EXIT_INTERRUPTED,
    check_form,
    fail,
    print_found,
)

if TYPE_CHECKING:
    from spectheory.paper.exhibits import Exhibit


@click.command(short_help="Recompute the figures and tables.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--out", type=click.Path(), default="reproduced", show_default=True, help="Folder for the results."
)
@click.option(
    "--list", "listed", is_flag=True, help="List the names, or the parameters of the named exhibits."
)
@click.option(
    "--format",
    "formats",
    default="pdf,png",
    show_default=True,
    metavar="pdf,png,svg",
    help="Formats of the pictures.",
)
@click.option("--style", metavar="NAME|FILE", help="A matplotlib style on top of the default look.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the exhibit that is named; NAME --list shows all.",
)
@click.option("--redraw", is_flag=True, help="Draw the pictures again from the numbers in the folder.")
@click.option("--resume", is_flag=True, help="Skip exhibits that are finished in the folder.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Exhibits computed at a time.")
@json_option
def reproduce(
    names: tuple[str, ...], out: str, listed: bool, formats: str, as_json: bool, **options: Any
) -> int:
    """Recompute all figures and tables, or the named ones.

    Writes figures, their numbers as JSON, and report.md, which keeps the sections of what was
    written to the folder before.  Exits with 1 where two routes to the same number disagree.
    """
    from spectheory import models
    from spectheory.command_line.progress import progress_bar
    from spectheory.foundation.results import Table
    from spectheory.paper.reproduction import EXHIBITS, find_exhibits, reproduce_each

    if listed:
        exhibits = [_listed(exhibit) for exhibit in find_exhibits(names)]
        columns = {"name": "{name}", "title": "{title}", "source": "{source}"}
        hint = "spectheory reproduce NAME --list shows the parameters of one."
        shown = [Table("figures and tables", exhibits, columns, hint)]
        if names:
            columns = {"parameter": "{name}", "default": "{default}", "what it is": "{about}"}
            shown = [
                Table(f"{exhibit['name']}: {exhibit['title']}", exhibit["parameters"], columns)
                for exhibit in exhibits
            ]
            hint = "Change them with --set NAME=VALUE; several values are separated by commas."
            shown[-1] = replace(shown[-1], note=hint)
        print_found({"exhibits": exhibits}, shown, exhibits, as_json, False)
        return 0
    models.quiet_loading()
    wanted_formats = [ending.strip() for ending in formats.split(",") if ending.strip()]
    written, interrupted = [], False
    with progress_bar("reproducing") as progress:
        try:
            for found in reproduce_each(
                names, Path(out), formats=wanted_formats, progress=progress, **options
            ):
                written.append(found)  # noqa: PERF402 - what is finished stays when this is interrupted
        except KeyboardInterrupt:
            interrupted = True
    written.sort(key=lambda found: list(EXHIBITS).index(found.name))
    document: dict[str, Any] = {
        "out": out,
        "passed": _all_passed([found.passed for found in written]),
        "results": [found.to_document() for found in written],
    }
    if interrupted:
        finished = ", ".join(found.name for found in written) or "nothing"
        return fail(
            f"interrupted; written to {out}: {finished}; --resume goes on from there", EXIT_INTERRUPTED
        )
    rows = [
        {
            "name": result["name"],
            "what": result["title"],
            "checks": CHECKS[result["passed"]] + "; ".join(result["failures"]),
            "files": result["files"],
        }
        for result in document["results"]
    ]
    verdict = VERDICTS[document["passed"]]
    print_found(document, [Table(f"results in {out}", rows, note=verdict)], rows, as_json, False)
    return EXIT_DEFECT if document["passed"] is False else 0


CHECKS = {True: "passed", False: "FAILED: ", None: "kept"}
VERDICTS = {
    True: "All checks passed.",
    False: "Some checks FAILED.",
    None: "No check failed; what was kept was not checked again.",
}


def _all_passed(passed: Collection[bool | None]) -> bool | None:
    """None where none failed and not all are known to have passed."""
    return False if False in passed else None if None in passed else True


def _listed(shown: Exhibit) -> dict[str, Any]:
    return {
        "name": shown.name,
        "title": shown.title,
        "source": shown.source,
        "parameters": [
            {"name": one.name, "default": one.default_text, "about": one.about} for one in shown.parameters
        ],
    }


@click.command(short_help="List the claims of the papers, with verdicts.")
@click.option(
    "--paper", metavar="KEY", help="Claims of one paper: spectr2023, block2024, greedy2026, spectrgbv2026."
)
@click.option("--verdict", metavar="VERDICT", help="Claims with one verdict, such as refuted or misprint.")
@csv_option
@json_option
def claims(paper: str | None, verdict: str | None, as_csv: bool, as_json: bool) -> int:
    """List the claims of the papers: verdict, note, and the tests behind each verdict.

    N is how many instances the counted tests among the evidence run.  "Every pair" is followed by the shapes
    for which a stored proof is among the evidence.
    """
    from spectheory.foundation.results import Table
    from spectheory.paper.claims.statements import count_verdicts, counts_text, select_claims

    check_form(as_json, as_csv)
    found = select_claims(paper, verdict)
    documents = [claim.to_document() for claim in found]
    columns = {
        "id": "{id}",
        "place": "{place}",
        "claim": "{claim}\n{note}",
        "verdict": "{verdict}\nN = {counted}\nevery pair: {shapes}",
        "evidence": "{evidence}",
    }
    rows = [
        row | {"counted": row["instances"] or None, "shapes": "; ".join(row["proved_for"]) or None}
        for row in documents
    ]
    table = Table("claims of the papers", rows, columns, counts_text(found))
    print_found({"claims": documents, "counts": count_verdicts(found)}, [table], documents, as_json, as_csv)
    return 0
