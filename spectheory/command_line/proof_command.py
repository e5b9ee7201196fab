"""The command that speaks of every pair of a shape: prove."""

from __future__ import annotations

import click

from spectheory.command_line.options import json_option, num_drafts_option, process_of, tree_option
from spectheory.command_line.output import (
    EXIT_DEFECT,
    EXIT_NOT_DECIDED,
    note,
    print_results,
)


@click.command(short_help="Prove that a verifier is lossless on every pair of a shape.")
@click.argument("verifier")
@click.option("--vocab", type=int, required=True, metavar="V", help="Number of tokens.")
@click.option("--draft-length", "-l", type=int, required=True, metavar="L", help="Drafted tokens per path.")
@num_drafts_option
@tree_option
@click.option(
    "--statement",
    default="lossless",
    metavar="NAME",
    help="lossless, optimal, at_least:OTHER[@K], prefix_matching, exchangeable, single_path, completed "
    "or law.",
)
@click.option("--show", is_flag=True, help="Add the block efficiency as formulas.")
@click.option("--positive", is_flag=True, help="Leave out pairs with zeros.")
@click.option("--time-limit", type=float, metavar="SECONDS", help="Stop after this time, undecided.")
@click.option(
    "--out",
    type=click.Path(),
    metavar="FILE",
    help="Write the proof, pair or search that was found; holds the search meanwhile.",
)
@click.option("--resume", type=click.Path(), metavar="FILE", help="Go on with an undecided search.")
@click.option("--jobs", "-j", type=int, default=1, show_default=True, help="Processes that share the walk.")
@json_option
def prove(
    verifier: str,
    vocab: int,
    draft_length: int,
    num_drafts: int,
    tree: str | None,
    statement: str,
    show: bool,
    positive: bool,
    time_limit: float | None,
    out: str | None,
    resume: str | None,
    jobs: int,
    as_json: bool,
) -> int:
    """Prove that a verifier is lossless on every pair with V tokens and draft length L, or refute it.

    VERIFIER is a published one, or your own as package.module:attribute.  --statement proves something else
    about it: at_least:OTHER@K says that no block efficiency is below that of OTHER with K drafts.  The exit
    status is 0 if it is proved, 1 if a pair refutes it, and 4 if it is undecided or rests on the word of a
    solver.  Of an undecided proof --out writes the search, and --resume goes on with it.
    While it goes on, the file is written once a minute, so that Ctrl-C and a kill lose no more than that.
    """
    from spectheory.command_line.progress import progress_bar
    from spectheory.exact.proof.search import prove as search
    from spectheory.exact.proof.verdict import PROVED, REFUTED

    process = process_of(num_drafts, tree)
    with progress_bar(verifier) as progress:
        found = search(
            verifier,
            vocab,
            draft_length,
            process,
            statement=statement,
            positive=positive,
            show=show,
            time_limit=time_limit,
            resume=resume,
            jobs=jobs,
            keep=out,
            progress=progress,
        )
    print_results([found], as_json, False)
    said = ""
    if out is not None and found.pair is not None:
        found.pair.save(out)
        judged = _judged(verifier, statement)
        said = f"the pair is in {out}; spectheory certify {out} --verifier {judged} confirms it"
    elif out is not None and found.tree is not None:
        said = f"the proof is in {out}, {found.save(out)} bytes; spectheory check {out} checks it"
    elif out is not None:
        said = (
            f"the search is in {out}, {found.save(out)} bytes; the same command with --resume {out} goes on"
        )
    if said and not as_json:
        note(said)
    return 0 if found.verdict == PROVED else EXIT_DEFECT if found.verdict == REFUTED else EXIT_NOT_DECIDED


def _judged(verifier: str, statement: str) -> str:
    """The verifiers whose certificates show what refutes a statement."""
    other = statement.partition(":")[2].partition("@")[0]
    return f"{verifier},{other}" if other not in ("", verifier) else verifier
