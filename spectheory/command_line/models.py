"""Commands on language models: simulate."""

from __future__ import annotations

from typing import Any

import click

from spectheory.command_line.options import json_option, num_drafts_option, verifier_names
from spectheory.command_line.output import EXIT_INTERRUPTED, fail, print_csv, print_json
from spectheory.errors import InvalidInputError


@click.command(short_help="Monte Carlo estimates on language models.")
@click.option(
    "--target", default="bundled", show_default=True, help="Folder or hub name of the target model."
)
@click.option("--draft", default="bundled", show_default=True, help="Folder or hub name of the draft model.")
@click.option(
    "--verifier", "-v", "verifiers", default="token,block", show_default=True, metavar="NAME,..",
    help="Verifiers to compare on the same drafts.",
)  # fmt: skip
@num_drafts_option
@click.option(
    "--draft-length", "-l", type=int, default=8, show_default=True, metavar="L", help="Tokens per path."
)
@click.option(
    "--prompts", type=click.Path(), metavar="FILE",
    help="One prompt per line, JSON Lines or a JSON array, told apart by how the file begins; a prompt with "
    "line breaks is a JSON string.  Default: the bundled prompts.",
)  # fmt: skip
@click.option("--max-prompt-tokens", type=int, metavar="N", help="Keep the last N tokens of every prompt.")
@click.option("--samples", type=int, default=16, show_default=True, help="Draws per prompt.")
@click.option("--temperature", type=float, default=1.0, show_default=True)
@click.option("--top-k", type=int, help="Keep the k most likely tokens of both models.")
@click.option("--top-p", type=float, help="Keep the most likely tokens up to this mass.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:N.")
@click.option(
    "--dtype", metavar="TYPE",
    help="Weights in float16, bfloat16, float32 or float64; default: float32 on a CPU, as stored on a GPU.",
)  # fmt: skip
@click.option(
    "--threads", type=int, metavar="N", help="CPU threads; default: 1 for small models, else as torch is set."
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--batch-size", type=int, default=8, show_default=True, help="Prompts drafted for at a time.")
@click.option(
    "--checkpoint",
    type=click.Path(),
    metavar="FILE",
    help="Keep finished batches; the same command goes on from them.",
)
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Level of the intervals.")
@click.option(
    "--tolerance",
    type=float,
    help="How far an answer of a verifier may be from a law.  [default: by number type]",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, a line per verifier, instead of a table.")
@json_option
def simulate(
    target: str,
    draft: str,
    verifiers: str,
    prompts: str | None,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    device: str,
    dtype: str | None,
    as_csv: bool,
    as_json: bool,
    **settings: Any,
) -> int:
    """Estimate the block efficiency of verifiers by Monte Carlo on language models.

    Verifiers, prompts and all numbers are checked before weights are loaded.
    """
    from spectheory import models
    from spectheory.command_line import tables
    from spectheory.command_line.progress import progress_bar
    from spectheory.montecarlo import simulate as run_simulation

    if as_csv and as_json:
        raise InvalidInputError("--csv and --json were both given; ask for one of them")
    models.quiet_loading()
    names = verifier_names(verifiers)
    options = models.SamplingOptions(temperature=temperature, top_k=top_k, top_p=top_p)
    texts = models.bundled_prompts() if prompts is None else models.read_prompts(prompts)
    pair = models.UnloadedPair.find(target, draft, device=device, dtype=dtype)
    with progress_bar("drafting") as progress:
        simulation = run_simulation(pair, texts, names, options=options, progress=progress, **settings)
    document = {"target": target, "draft": draft, **simulation.to_document()}
    if as_json:
        print_json(document)
    elif as_csv:
        print_csv(simulation.rows())
    else:
        tables.print_simulation(document)
    if simulation.interrupted:
        finished = simulation.estimates[0].samples
        kept = f", which are kept in {settings['checkpoint']}" if settings["checkpoint"] else ""
        return fail(
            f"interrupted; the estimates rest on the {finished} draws that were finished{kept}",
            EXIT_INTERRUPTED,
        )
    return 0
