"""The command that compares draft models, processes and verifiers at equal numbers of target rows: study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spectheory.command_line.options import SettingsCommand, csv_option, json_option
from spectheory.command_line.output import EXIT_INTERRUPTED, check_form, fail, print_found
from spectheory.foundation.errors import InvalidInputError


@click.command(
    cls=SettingsCommand, settings="spectheory.paper.equal_rows:StudySettings",
    short_help="Compare drafts and verifiers at equal numbers of target rows.",
)  # fmt: skip
@click.option("--target", default="smollm2", show_default=True, metavar="MODEL", help="As of simulate.")
@click.option(
    "--draft", "drafts", multiple=True, default=("smollm2-draft", "target:last-4", "prompt:ngram-3"),
    show_default=True, metavar="MODEL", help="A draft model, as of simulate; may be repeated.",
)  # fmt: skip
@click.option(
    "--prompts", "file", type=click.Path(), metavar="FILE",
    help='As of simulate, or JSON Lines with "text" and "domain".  Default: prose, code and chat.',
)  # fmt: skip
@click.option("--device", default="auto", show_default=True, help="As of simulate.")
@click.option(
    "--checkpoint", type=click.Path(), metavar="FILE",
    help="Keep finished batches in this file; the same command goes on from it.",
)  # fmt: skip
@click.option(
    "--jobs", "-j", default="1", show_default=True, metavar="N", help="Processes, or auto, as of simulate."
)
@click.option("--cluster", metavar="ADDRESS", help="Of a dask scheduler, whose workers do the work.")
@click.option(
    "--measure-costs", is_flag=True,
    help="Time the calls of the models here at the end, and print the speed-ups that they predict.",
)  # fmt: skip
@click.option("--picture", type=click.Path(), metavar="FILE", help="Draw the study too: .png, .pdf or .svg.")
@click.option("--to", type=click.Choice(["latex"]), help="Print the tables in LaTeX.")
@csv_option
@json_option
def study(
    target: str,
    drafts: tuple[str, ...],
    file: str | None,
    picture: str | None,
    to: str | None,
    as_csv: bool,
    as_json: bool,
    **settings: Any,
) -> int:
    """Compare draft models, draft processes and verifiers at equal numbers of target rows.

    The target writes texts behind the prompts, and all drafts are judged at the same tokens of these texts.
    """
    from spectheory.command_line.progress import progress_bar
    from spectheory.models import quiet_loading
    from spectheory.paper.equal_rows import StudySettings
    from spectheory.paper.study_results import PROMPTS, read_study_prompts
    from spectheory.paper.study_results import study as run_study
    from spectheory.simulation.settings import read_jobs

    check_form(as_json, as_csv, to is not None)
    ending = Path(picture or "x.png").suffix[1:]
    if ending not in ("png", "pdf", "svg"):
        raise InvalidInputError(f"--picture {picture!r} must end in .png, .pdf or .svg")
    if picture is not None and not Path(picture).parent.is_dir():
        raise InvalidInputError(f"--picture {picture!r}: there is no folder {str(Path(picture).parent)!r}")
    quiet_loading()
    run = {name: settings.pop(name) for name in ("checkpoint", "jobs", "cluster", "device", "measure_costs")}
    run["jobs"] = read_jobs(run["jobs"])
    asked = StudySettings(**settings)
    with progress_bar("tokens") as progress:
        found = run_study(
            target, drafts, read_study_prompts(file or PROMPTS), asked, progress=progress, **run
        )
    print_found(found.to_document(), found.tables(), found.rows(), as_json, as_csv, to is not None)
    if picture is not None:
        from spectheory.paper.style import figure_bytes

        Path(picture).write_bytes(figure_bytes(found.picture(), ending))
    if found.interrupted:
        kept = f", and are kept in {run['checkpoint']}" if run["checkpoint"] else ""
        texts = found.settings["texts"]
        return fail(
            f"interrupted; the rows rest on the {texts} texts that were finished{kept}", EXIT_INTERRUPTED
        )
    return 0
