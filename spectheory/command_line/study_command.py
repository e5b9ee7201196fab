"""The command that compares draft models, processes and verifiers at equal numbers of target rows: study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spectheory.command_line.options import csv_option, json_option
from spectheory.command_line.output import EXIT_INTERRUPTED, check_form, fail, print_found
from spectheory.foundation.errors import InvalidInputError


@click.command(short_help="Compare drafts and verifiers at equal numbers of target rows.")
@click.option("--target", default="smollm2", show_default=True, metavar="MODEL", help="As of simulate.")
@click.option(
    "--draft", "drafts", multiple=True, default=("smollm2-draft", "target:last-4", "prompt:ngram-3"),
    show_default=True, metavar="MODEL", help="A draft model, as of simulate; may be repeated.",
)  # fmt: skip
@click.option(
    "--prompts", "file", type=click.Path(), metavar="FILE",
    help='As of simulate, or JSON Lines with "text" and "domain".  Default: prose, code and chat.',
)  # fmt: skip
@click.option("--first", "prompts", type=int, metavar="N", help="The first N prompts of every domain only.")
@click.option("--nodes", default="8,16,32,64", show_default=True, metavar="N,..", help="Budgets of drafts.")
@click.option("--draft-length", "-l", type=int, default=4, show_default=True, metavar="L")
@click.option("--temperature", default="0.6,1", show_default=True, metavar="T,..", help="Of both models.")
@click.option(
    "--tokens", "-n", "max_new_tokens", type=int, default=64, show_default=True, metavar="N",
    help="Tokens of every text.",
)  # fmt: skip
@click.option(
    "--every", type=int, default=8, show_default=True, metavar="N", help="Judge drafts at every N-th token."
)
@click.option(
    "--bound-every", type=int, default=2, show_default=True, metavar="N",
    help="Sample the bound at every N-th of these; 0: never.",
)  # fmt: skip
@click.option("--batch-size", type=int, default=4, show_default=True, metavar="N", help="Texts at a time.")
@click.option(
    "--max-prompt-tokens", type=int, default=48, show_default=True, metavar="N",
    help="Keep the last N tokens of every prompt.",
)  # fmt: skip
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Level of the intervals.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--device", default="auto", show_default=True, help="As of simulate.")
@click.option(
    "--checkpoint", type=click.Path(), metavar="FILE",
    help="Keep finished batches in this file; the same command goes on from it.",
)  # fmt: skip
@click.option("--jobs", "-j", type=int, default=1, show_default=True, metavar="N", help="Processes.")
@click.option("--cluster", metavar="ADDRESS", help="Of a dask scheduler, whose workers do the work.")
@click.option("--picture", type=click.Path(), metavar="FILE", help="Draw the study too: .png, .pdf or .svg.")
@click.option("--to", type=click.Choice(["latex"]), help="Print the tables in LaTeX.")
@csv_option
@json_option
def study(
    target: str,
    drafts: tuple[str, ...],
    file: str | None,
    nodes: str,
    temperature: str,
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

    check_form(as_json, as_csv, to is not None)
    ending = Path(picture or "x.png").suffix[1:]
    if ending not in ("png", "pdf", "svg"):
        raise InvalidInputError(f"--picture {picture!r} must end in .png, .pdf or .svg")
    quiet_loading()
    run = {name: settings.pop(name) for name in ("checkpoint", "jobs", "cluster", "device")}
    budgets, heats = _numbers("--nodes", nodes, int), _numbers("--temperature", temperature, float)
    asked = StudySettings(nodes=budgets, temperatures=heats, **settings)
    with progress_bar("tokens") as progress:
        found = run_study(
            target, drafts, read_study_prompts(file or PROMPTS), asked, progress=progress, **run
        )
    if picture is not None:
        from spectheory.paper.style import figure_bytes

        Path(picture).write_bytes(figure_bytes(found.picture(), ending))
    print_found(found.to_document(), found.tables(), found.rows(), as_json, as_csv, to is not None)
    if found.interrupted:
        kept = f", and are kept in {run['checkpoint']}" if run["checkpoint"] else ""
        texts = found.settings["texts"]
        return fail(
            f"interrupted; the rows rest on the {texts} texts that were finished{kept}", EXIT_INTERRUPTED
        )
    return 0


def _numbers(flag: str, listed: str, kind: Any) -> tuple[Any, ...]:
    try:
        return tuple(kind(number) for number in listed.split(","))
    except ValueError:
        raise InvalidInputError(f"{flag} {listed!r} is not a list of numbers such as 8,16") from None
