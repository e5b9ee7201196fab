"""The command that chooses drafts and a verifier: plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from spectheory.command_line.options import (
    SettingsCommand,
    csv_option,
    json_option,
    load_pair,
    verifier_names,
    was_given,
)
from spectheory.command_line.output import check_form, print_results
from spectheory.command_line.simulation_commands import takes_models

if TYPE_CHECKING:
    from spectheory.command_line.simulation_commands import Models

OF_MODELS = "target", "draft", "tokenizer", "prompts", "temperature", "top_k", "top_p", "device", "dtype"
"""Options that have no meaning without language models, beside the settings."""


@click.command(
    cls=SettingsCommand, settings="spectheory.simulation.planning:PlanSettings",
    short_help="Choose drafts and a verifier for a budget of target rows.",
)  # fmt: skip
@click.argument("pair_file", metavar="[PAIR.json]", type=click.Path(), required=False)
@click.option(
    "--profile", metavar="A1,A2,..",
    help="An acceptance profile instead: the probability that child j of a node is accepted.",
)  # fmt: skip
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    default=16,
    show_default=True,
    metavar="N",
    help="Drafted tokens per call.",
)
@click.option(
    "--cost-ratio", type=float, default=0.0, show_default=True, metavar="C",
    help="A call of the draft takes C times one of the target.",
)  # fmt: skip
@click.option(
    "--row-cost", type=float, default=0.0, show_default=True, metavar="R",
    help="Each drafted token that the target scores adds R times a call of the target.",
)  # fmt: skip
@click.option(
    "--draft-length", "-l", type=int, default=8, show_default=True, metavar="L", help="The largest L."
)
@click.option(
    "--verifier", "-v", "listed", metavar="NAME,..", help="Verifiers to try; default: the best known."
)
@csv_option
@json_option
@takes_models
def plan(
    models: Models,
    pair_file: str | None,
    profile: str | None,
    budget: int,
    cost_ratio: float,
    row_cost: float,
    draft_length: int,
    listed: str | None,
    as_csv: bool,
    as_json: bool,
    **settings: Any,
) -> int:
    """Choose the drafts and the verifier that earn the most tokens per unit of cost.

    One unit is a call of the target that scores no drafts.  With a pair file all values are exact.  With an
    acceptance profile the best shapes of trees are computed.  Else language models decode texts: all
    candidates behind half of the prompts, the finalists behind the other half, and the intervals are theirs.
    """
    from spectheory.command_line.progress import progress_bar
    from spectheory.simulation import planning

    check_form(as_json, as_csv)
    if pair_file is not None and profile is not None:
        raise click.UsageError("PAIR.json and --profile were both given; give one of them")
    enumerated = "PAIR.json" if pair_file is not None else "--profile" if profile is not None else None
    if enumerated and (given := [name for name in (*OF_MODELS, *settings) if was_given(name)]):
        raise click.UsageError(f"{enumerated} was given, and {given[0]} is of language models; leave one out")
    spent = planning.Budget(budget, cost_ratio, row_cost, draft_length)
    tried = planning.VERIFIERS if pair_file is None else planning.OF_PAIRS
    names = tried if listed is None else verifier_names(listed)
    if pair_file is not None:
        found = planning.plan_pair(load_pair(pair_file), spent, names)
    elif profile is not None:
        if listed is not None:
            raise click.UsageError("--profile is that of a verifier; leave out --verifier")
        found = planning.plan_profile([number.strip() for number in profile.split(",")], spent)
    else:
        with progress_bar("deciding") as progress:
            found = planning.plan(
                models.find(),
                models.texts(),
                spent,
                names,
                options=models.options,
                progress=progress,
                **settings,
            )
    print_results([found], as_json, as_csv)
    return 0
