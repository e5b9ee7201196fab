"""The command that speaks of every pair of a shape: prove."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spectheory.command_line.options import (
    json_option,
    num_drafts_option,
    process_of,
    tree_option,
    was_given,
)
from spectheory.command_line.output import (
    EXIT_DEFECT,
    EXIT_NOT_DECIDED,
    echo_line,
    note,
    print_json,
    print_results,
)

OF_A_CHECK = ("verifier", "check", "statement", "as_json")
"""The parameters that go with ``--check``; all others describe a search."""


@click.command(short_help="Prove that a verifier is lossless on every pair of a shape.")
@click.argument("verifier", required=False)
@click.option("--vocab", type=int, metavar="V", help="Number of tokens.")
@click.option("--draft-length", "-l", type=int, metavar="L", help="Drafted tokens per path.")
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
@click.option(
    "--check",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Search nothing: check the proof that --out wrote to FILE.",
)
@json_option
def prove(
    verifier: str | None,
    vocab: int | None,
    draft_length: int | None,
    num_drafts: int,
    tree: str | None,
    statement: str,
    show: bool,
    positive: bool,
    time_limit: float | None,
    out: str | None,
    resume: str | None,
    jobs: int,
    check: Path | None,
    as_json: bool,
) -> int:
    """Prove that a verifier is lossless on every pair with V tokens and draft length L, or refute it.

    VERIFIER is a published one, or your own as package.module:attribute.  --statement proves something else
    about it: at_least:OTHER@K says that no block efficiency is below that of OTHER with K drafts.  The exit
    status is 0 if it is proved, 1 if a pair refutes it, and 4 if it is undecided or rests on the word of a
    solver.  Of an undecided proof --out writes the search, and --resume goes on with it.
    While it goes on, the file is written once a minute, so that Ctrl-C and a kill lose no more than that.

    --check FILE takes no shape.  VERIFIER is then the verifier of the proof, and is needed only for your own.
    The exit status is 0 if the proof holds, and 4 if it does not hold for the code as it is.
    """
    if check is not None:
        return _check(check, verifier, statement, as_json)
    if verifier is None:
        raise click.MissingParameter(param_hint="'VERIFIER'", param_type="argument")
    if vocab is None or draft_length is None:
        flag = "--vocab" if vocab is None else "--draft-length"
        raise click.MissingParameter(param_hint=f"'{flag}'", param_type="option")
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
        own = f" {verifier}" if ":" in str(verifier) else ""  # what is not the package's is named again
        own += f" --statement {statement}" if statement.count(":") > 1 else ""
        said = (
            f"the proof is in {out}, {found.save(out)} bytes; spectheory prove --check {out}{own} checks it"
        )
    elif out is not None:
        said = (
            f"the search is in {out}, {found.save(out)} bytes; the same command with --resume {out} goes on"
        )
    if said and not as_json:
        note(said)
    return 0 if found.verdict == PROVED else EXIT_DEFECT if found.verdict == REFUTED else EXIT_NOT_DECIDED


def _check(file: Path, verifier: str | None, statement: str, as_json: bool) -> int:
    """Check a stored proof; code outside of the package runs only if the command line names it."""
    from spectheory.exact.proof.check import check_proof, read
    from spectheory.exact.proof.check_numbers import RejectedProofError
    from spectheory.foundation.errors import InvalidInputError, UnknownNameError

    context = click.get_current_context()
    for option in context.command.params:
        if option.name not in OF_A_CHECK and was_given(option.name or ""):
            raise click.UsageError(
                f"--check takes no {option.opts[0]}; {file} says of what shape the proof is"
            )
    stored = str(read(file).get("statement"))
    if was_given("statement") and statement != stored:
        raise InvalidInputError(
            f"{file} is a proof of {stored!r}, not of {statement!r}; leave out --statement"
        )
    other = stored.partition(":")[2].partition("@")[0]
    if ":" in other and not other.startswith("spectheory.") and not was_given("statement"):
        raise InvalidInputError(f"{file} names {other}; if you trust that code, add --statement {stored}")
    found: dict[str, Any] = {"file": str(file), "verdict": "proved"}
    try:
        proved = check_proof(file, verifier)
    except RejectedProofError as error:
        found |= {"verdict": "undecided", "because": str(error)}
        said = "undecided: {because}"
    except UnknownNameError as error:
        error.add_note("name a verifier of your own after the file")
        raise
    else:
        found |= {name: entry for name, entry in proved.items() if name != "format"}
        drafts = ", ".join(f"{name} {entry}" for name, entry in proved["drafts"].items())
        said = "proved: {verifier} is {statement} on every pair with {vocab_size} tokens, draft length "
        said += f"{{draft_length}}, {{domain}}; drafts: {drafts}; {{regions}} regions"
    if as_json:
        print_json(found)
    else:
        echo_line(f"{file}: {said.format_map(found)}")
    return 0 if found["verdict"] == "proved" else EXIT_NOT_DECIDED


def _judged(verifier: str, statement: str) -> str:
    """The verifiers whose certificates show what refutes a statement."""
    other = statement.partition(":")[2].partition("@")[0]
    return f"{verifier},{other}" if other not in ("", verifier) else verifier
