"""The command that recommends drafts and a verifier: plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from spectheory.command_line.options import csv_option, json_option, load_pair, verifier_names, was_given
from spectheory.command_line.output import check_form, echo_line, print_results
from spectheory.command_line.simulation_commands import takes_models

if TYPE_CHECKING:
    from spectheory.command_line.simulation_commands import Models

OF_MODELS = (
    "target", "draft", "tokenizer", "prompts", "temperature", "top_k", "top_p", "device", "dtype",
    "max_new_tokens", "max_prompt_tokens", "confidence", "seed", "jobs", "checkpoint",
)  # fmt: skip
"""Options that have no meaning on an enumerated pair."""


def _jobs(_: click.Context, __: click.Parameter, text: str) -> Any:
    return int(text) if text.isdecimal() else text


@click.command(short_help="Recommend drafts and a verifier, and predict their speed.")
@click.argument("pair_file", metavar="[PAIR.json]", type=click.Path(), required=False)
@click.option(
    "--target-rows", "-n", type=int, default=8, show_default=True, metavar="N",
    help="The most drafted tokens that a call of the target scores.",
)  # fmt: skip
@click.option(
    "--draft-length", "-l", type=int, default=8, show_default=True, metavar="L", help="The longest path."
)
@click.option("--verifier", "-v", "listed", metavar="NAME,..", help="Verifiers to try; default: the best.")
@click.option(
    "--draft-cost", type=float, metavar="C",
    help="A drafted token takes C times a call of the target.  Default: measured; with PAIR.json 0.15.",
)  # fmt: skip
@click.option(
    "--row-cost", type=float, metavar="R",
    help="One more drafted token adds R times a call of the target.  Default: measured; with PAIR.json 0.01.",
)  # fmt: skip
@click.option("--max-new-tokens", type=int, default=32, show_default=True, metavar="N", help="Of every text.")
@click.option("--max-prompt-tokens", type=int, metavar="N", help="Keep the last N tokens of every prompt.")
@click.option(
    "--confidence", type=float, default=0.95, show_default=True, help="Level of all intervals together."
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed decodes the same texts.")
@click.option(
    "--jobs", "-j", default="auto", show_default=True, metavar="N", callback=_jobs,
    help="Processes that decode; auto starts more as soon as they pay.",
)  # fmt: skip
@click.option(
    "--checkpoint", type=click.Path(), metavar="FILE",
    help="Keep finished measurements in this file; the same command goes on from it.",
)  # fmt: skip
@csv_option
@json_option
@takes_models
def plan(
    models: Models,
    pair_file: str | None,
    listed: str | None,
    target_rows: int,
    draft_length: int,
    draft_cost: float | None,
    row_cost: float | None,
    as_csv: bool,
    as_json: bool,
    **of_models: Any,
) -> int:
    """Recommend drafts and a verifier, and predict how much faster they are than plain decoding.

    With a pair file all values are exact.  Else the costs of calls are measured here.  All candidates decode
    texts behind half of the prompts, which chooses; the numbers printed are those behind the other half.

    Example: spectheory plan --target-rows 8 --verifier block,scored_multipath
    """
    from spectheory.command_line.progress import progress_bar
    from spectheory.simulation import plan as find_plan

    check_form(as_json, as_csv)
    if pair_file is not None and (given := [name for name in OF_MODELS if was_given(name)]):
        raise click.UsageError(f"PAIR.json was given, and {given[0]} is of language models; leave one out")
    asked: dict[str, Any] = {
        "verifiers": None if listed is None else verifier_names(listed),
        "target_rows": target_rows, "draft_length": draft_length, "draft_cost": draft_cost,
        "row_cost": row_cost,
    }  # fmt: skip
    if pair_file is not None:
        found = find_plan(load_pair(pair_file), **asked)
    else:
        with progress_bar("measuring") as progress:
            found = find_plan(
                models.find(), models.texts(), options=models.options, progress=progress, **asked, **of_models
            )
    if not (as_json or as_csv):
        echo_line(found.headline())
    print_results([found], as_json, as_csv)
    return 0
