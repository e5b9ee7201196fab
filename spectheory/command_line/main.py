"""The command line: ``spectheory certify | optimum | acceptance | simulate | reproduce``.

Results go to stdout, a table or with ``--json`` one JSON object; progress and errors go to stderr.
Exit codes: 0 fine, 1 a defect was found, 2 the input cannot be used, 3 `optimum` stopped before the gap it
was asked for, 130 interrupted.
Only click is imported here, so that ``--help`` answers at once; every command imports what it needs.
"""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spectheory.errors import ComputationError, InvalidInputError

if TYPE_CHECKING:
    from spectheory.drafts import DraftProcess

EXIT_DEFECT, EXIT_BAD_INPUT, EXIT_SHORT_OF_THE_GAP, EXIT_INTERRUPTED = 1, 2, 3, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; a user's mistake is one line on stderr."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # solvers and model loaders warn; stderr is for the user
    sys.set_int_max_str_digits(0)  # exact results may be long; what is read from files has a limit of its own
    try:
        result = group.main(args=arguments, prog_name="spectheory", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        return _fail(error.format_message(), EXIT_BAD_INPUT)
    except (InvalidInputError, ComputationError) as error:
        return _fail(str(error), EXIT_BAD_INPUT)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            # The reader of stdout went away, as in `spectheory ... | head -1`.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return 0
        return _fail(f"{error.filename or 'a file'}: {error.strerror or error}", EXIT_BAD_INPUT)
    except (KeyboardInterrupt, click.Abort):
        return _fail("interrupted before anything was finished", EXIT_INTERRUPTED)


def _fail(message: str, code: int) -> int:
    click.echo("error: " + " ".join(message.split()), err=True)
    return code


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="spectheory", prog_name="spectheory", message="%(prog)s %(version)s")
@click.pass_context
def group(context: click.Context) -> None:
    """A referee for the verification algorithms of speculative decoding.

    It says exactly what an algorithm outputs, whether that is lossless, how many tokens per target
    call it earns, and how far that is from the best any algorithm could do.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object instead of a table."
)
num_drafts_option = click.option(
    "--num-drafts", "-k", type=int, default=1, show_default=True, metavar="K", help="Paths drafted i.i.d."
)
tree_option = click.option(
    "--tree",
    metavar="NAME:K1,K2,..",
    help="Draft a tree instead: prefix_tree or without_replacement, with its width at every depth.",
)


@group.command(short_help="Certify a verifier on an enumerated pair.")
@click.argument("pair_file", metavar="PAIR.json", type=click.Path())
@click.option(
    "--verifier",
    "-v",
    required=True,
    metavar="NAME",
    help="A published verifier, or package.module:attribute.",
)
@num_drafts_option
@tree_option
@json_option
def certify(pair_file: str, verifier: str, num_drafts: int, tree: str | None, as_json: bool) -> int:
    """Certify a verifier on an enumerated pair: lossless or not, and how good.

    Exits with 1 where the verifier is not lossless and prints the smallest counterexample.
    """
    from spectheory.certificate import certify as make_certificate
    from spectheory.command_line import tables

    certificate = make_certificate(verifier, _load_pair(pair_file), process=_drafts(num_drafts, tree))
    if as_json:
        _print_json(certificate.to_document())
    else:
        tables.print_certificate(certificate)
    return 0 if certificate.is_valid else EXIT_DEFECT


@group.command(short_help="The best block efficiency of any lossless verifier.")
@click.argument("pair_file", metavar="PAIR.json", type=click.Path())
@num_drafts_option
@tree_option
@click.option("--gap", type=float, default=1e-6, show_default=True, help="Relative gap, on large pairs.")
@click.option("--time-limit", type=float, metavar="SECONDS", help="Stop earlier, on large pairs.")
@json_option
def optimum(
    pair_file: str, num_drafts: int, tree: str | None, gap: float, time_limit: float | None, as_json: bool
) -> int:
    """The best block efficiency that any lossless verifier can reach on a pair.

    Exact where the program is small enough; on larger pairs an interval that certifies the value from
    both sides and closes to --gap.  --time-limit and Ctrl-C stop it and print the interval so far; it then
    exits with 3 or 130.
    """
    from spectheory.command_line import tables
    from spectheory.programs import optimum as solve

    solution = solve(
        _load_pair(pair_file),
        process=_drafts(num_drafts, tree),
        relative_gap=gap,
        time_limit=time_limit,
        progress=tables.report_interval,
    )
    document = solution.to_document()
    if as_json:
        _print_json(document)
    else:
        tables.print_optimum(document)
    if solution.status == "interrupted":
        return EXIT_INTERRUPTED
    return 0 if solution.reached else EXIT_SHORT_OF_THE_GAP


@group.command(short_help="List the published verifiers.")
@json_option
def verifiers(as_json: bool) -> int:
    """List the published verifiers: source, losslessness, arithmetic, and the drafts they take."""
    from spectheory.algorithms import verifiers as known
    from spectheory.command_line import tables

    rows = [
        {
            "name": verifier.name,
            "source": verifier.source,
            "num_drafts": "1" if verifier.single_path else "any",
            "max_draft_length": verifier.max_draft_length,
            "lossless": verifier.lossless,
            "arithmetic": "exact" if verifier.exact else "float64",
            "draft_processes": sorted(verifier.draft_processes),
        }
        for verifier in known.values()
    ]
    if as_json:
        _print_json({"verifiers": rows})
    else:
        tables.print_verifiers(rows)
    return 0


@group.command(short_help="Acceptance probabilities at one position.")
@click.option("--target", required=True, metavar="P1,P2,..", help="Target probabilities, such as 1/3,2/3.")
@click.option("--draft", required=True, metavar="Q1,Q2,..", help="Draft probabilities, such as 2/3,1/3.")
@num_drafts_option
@json_option
def acceptance(target: str, draft: str, num_drafts: int, as_json: bool) -> int:
    """Acceptance probabilities at one position: the optimum, K-SEQ, multi-round and bounds."""
    from spectheory.acceptance import acceptance as at_one_position
    from spectheory.command_line import tables

    document = at_one_position(target.split(","), draft.split(","), num_drafts).to_document()
    if as_json:
        _print_json(document)
    else:
        tables.print_acceptance(document)
    return 0


@group.command(short_help="Monte Carlo estimates on language models.")
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
    "--prompts", type=click.Path(), metavar="FILE", help="A .jsonl or text file; default: bundled prompts."
)
@click.option("--samples", type=int, default=16, show_default=True, help="Draws per prompt.")
@click.option("--temperature", type=float, default=1.0, show_default=True)
@click.option("--top-k", type=int, help="Keep the k most likely tokens of both models.")
@click.option("--top-p", type=float, help="Keep the most likely tokens up to this mass.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--batch-size", type=int, default=8, show_default=True, help="Prompts drafted for at a time.")
@click.option(
    "--checkpoint", type=click.Path(), metavar="FILE", help="Keep finished batches; go on from them."
)
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Level of the intervals.")
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
    as_json: bool,
    **settings: Any,
) -> int:
    """Estimate the block efficiency of verifiers by Monte Carlo on language models."""
    _quiet_model_loading()
    from spectheory.command_line import tables
    from spectheory.montecarlo import simulate as run_simulation

    names = _verifier_names(verifiers)
    models = _import_models()
    options = models.SamplingOptions(temperature=temperature, top_k=top_k, top_p=top_p)
    texts = models.bundled_prompts() if prompts is None else models.read_prompts(prompts)
    pair = models.LanguageModelPair.load(target, draft, device=device)
    with tables.progress_bar("drafting") as progress:
        simulation = run_simulation(pair, texts, names, options=options, progress=progress, **settings)
    document = {"target": target, "draft": draft, **simulation.to_document()}
    if as_json:
        _print_json(document)
    else:
        tables.print_simulation(document)
    if simulation.interrupted:
        finished = simulation.estimates[0].samples
        return _fail(
            f"interrupted; the estimates rest on the {finished} draws that were finished", EXIT_INTERRUPTED
        )
    return 0


@group.command(short_help="Recompute the figures and tables.")
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
    _quiet_model_loading()
    from spectheory.command_line import tables
    from spectheory.paper import reproduce as run_reproduction

    with tables.progress_bar("reproducing") as progress:
        artifacts = run_reproduction(names, Path(out), progress=progress)
    document = {
        "out": out,
        "passed": all(artifact.passed for artifact in artifacts),
        "results": [artifact.to_document() for artifact in artifacts],
    }
    if as_json:
        _print_json(document)
    else:
        tables.print_reproduction(document)
    return 0 if document["passed"] else EXIT_DEFECT


def _drafts(num_drafts: int, tree: str | None) -> DraftProcess:
    """The draft process of ``--num-drafts`` or ``--tree``."""
    from spectheory.drafts import Iid, PrefixTree, WithoutReplacement
    from spectheory.errors import InvalidInputError

    if tree is None:
        return Iid(num_drafts)
    trees = {"prefix_tree": PrefixTree, "without_replacement": WithoutReplacement}
    name, _, widths = tree.partition(":")
    try:
        return trees[name](tuple(int(width) for width in widths.split(",")))
    except (KeyError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(
            f"--tree {tree!r} is not prefix_tree:K1,K2,.. or without_replacement:K1,K2,.. with whole numbers"
        ) from error


def _load_pair(path: str) -> Any:
    from spectheory.pair import ModelPair

    return ModelPair.load(path)


def _verifier_names(listed: str) -> list[str]:
    """The names of a comma-separated list, each looked up before models are loaded."""
    from spectheory.resolve import find_verifier

    names = [name.strip() for name in listed.split(",") if name.strip()]
    for name in names:
        find_verifier(name)
    return names


def _import_models() -> Any:
    from importlib import import_module

    return import_module("spectheory.models")


def _quiet_model_loading() -> None:
    """Keep the progress bars and notices of model libraries off stderr (unless the user set them)."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if "transformers" in sys.modules:  # imported before: it has read the environment already
        from transformers.utils import logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()


def _print_json(document: dict[str, Any]) -> None:
    click.echo(json.dumps(_finite(document), ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    """JSON has no infinity: a bound that certifies nothing is null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, (list, tuple)) else value
