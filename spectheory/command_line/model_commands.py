"""Commands on language models: simulate, generate, restrict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from spectheory.command_line.options import (
    csv_option,
    given,
    json_option,
    num_drafts_option,
    numbers,
    process_of,
    shard_of,
    tree_option,
    verifier_names,
)
from spectheory.command_line.output import EXIT_INTERRUPTED, check_form, fail, print_found, print_json
from spectheory.foundation.errors import InvalidInputError

if TYPE_CHECKING:
    from spectheory.pairs.drafts import DraftProcess

target_option = click.option(
    "--target", default="bundled", show_default=True, help="Folder or hub name of the target model."
)
draft_option = click.option(
    "--draft", default="bundled", show_default=True, help="Folder or hub name of the draft model."
)
time_option = click.option(
    "--time", "with_time", is_flag=True,
    help="Decode plainly too, and say how fast it is and where the time goes.",
)  # fmt: skip
another_draft_option = click.option(
    "--another-draft", "other_drafts", multiple=True, metavar="TEXT",
    help="Another draft model; may be repeated.  Each draft model then drafts a path of its own.",
)  # fmt: skip
prompts_option = click.option(
    "--prompts", type=click.Path(), metavar="FILE",
    help="One prompt per line, JSON Lines or a JSON array, told apart by how the file begins; a prompt with "
    "line breaks is a JSON string.  Default: the bundled prompts.",
)  # fmt: skip
max_prompt_tokens_option = click.option(
    "--max-prompt-tokens", type=int, metavar="N", help="Keep the last N tokens of every prompt."
)
temperature_option = click.option("--temperature", type=float, default=1.0, show_default=True)
top_k_option = click.option("--top-k", type=int, help="Keep the k most likely tokens of both models.")
top_p_option = click.option("--top-p", type=float, help="Keep the most likely tokens up to this mass.")
device_option = click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:N.")
dtype_option = click.option(
    "--dtype", metavar="TYPE",
    help="Weights in float16, bfloat16, float32 or float64; default: float32 on a CPU, as stored on a GPU.",
)  # fmt: skip


@click.command(short_help="Monte Carlo estimates on language models.")
@target_option
@draft_option
@another_draft_option
@click.option(
    "--verifier", "-v", "verifiers", default="token,block,spectr,greedy_multipath", show_default=True,
    metavar="NAME,..", help="Verifiers to compare.",
)  # fmt: skip
@click.option(
    "--num-drafts", "-k", default="1-4", show_default=True, metavar="K,..",
    help="Paths drafted i.i.d.: a number, or several as 1,2,4 or 1-4.",
)  # fmt: skip
@click.option(
    "--draft-length", "-l", type=int, default=8, show_default=True, metavar="L", help="Tokens per path."
)
@prompts_option
@max_prompt_tokens_option
@click.option(
    "--samples", type=int, help="Texts per prompt, by default 1; draws per prompt with --one-call, 16."
)
@click.option(
    "--tokens", "max_new_tokens", type=int, default=32, show_default=True, metavar="N",
    help="Decode whole texts of N tokens and count all their calls.",
)  # fmt: skip
@click.option(
    "--one-call", is_flag=True, help="Look at one call after each prompt, all verifiers at the same drafts."
)
@click.option(
    "--ceilings", "with_ceilings", is_flag=True,
    help="Add the most that any rule could earn at the positions met, for position-by-position verifiers.",
)  # fmt: skip
@click.option("--width", type=float, metavar="W", help="Stop when every interval is at most that wide.")
@temperature_option
@top_k_option
@top_p_option
@device_option
@dtype_option
@click.option(
    "--threads", type=int, metavar="N", help="CPU threads; default: 1 for small models, else as torch is set."
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--batch-size", type=int, metavar="N",
    help="Prompts drafted for at a time; by default 16, and 8 with --one-call.",
)  # fmt: skip
@click.option(
    "--checkpoint",
    type=click.Path(),
    metavar="FILE",
    help="Keep finished batches; the same command goes on from them.",
)
@click.option(
    "--out", type=click.Path(), metavar="FOLDER",
    help="Write rows.jsonl, a line per estimate, and manifest.json, all that they came from.",
)  # fmt: skip
@click.option(
    "--jobs", "-j", default="auto", show_default=True, metavar="N",
    help="Processes; auto: for small models on a CPU as many as there are cores.",
)  # fmt: skip
@click.option(
    "--shard", metavar="I/N", help="Take the I-th of N parts of the prompts; merge puts them together."
)
@click.option(
    "--cost-ratio", type=float, metavar="C",
    help="Predict speed-ups too, where a call of the draft takes C times one of the target.",
)  # fmt: skip
@time_option
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Level of the intervals.")
@click.option(
    "--tolerance",
    type=float,
    help="How far an answer of a verifier may be from a law.  [default: by number type]",
)
@csv_option
@json_option
def simulate(
    target: str,
    draft: str,
    other_drafts: tuple[str, ...],
    verifiers: str,
    num_drafts: str,
    max_new_tokens: int,
    one_call: bool,
    batch_size: int | None,
    jobs: str,
    shard: str | None,
    cost_ratio: float | None,
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
    """Estimate the block efficiency of verifiers over whole texts of language models.

    Verifiers, prompts and all numbers are checked before weights are loaded.
    """
    from spectheory import models
    from spectheory.command_line.progress import progress_bar
    from spectheory.simulation import predicted_speed_up
    from spectheory.simulation import simulate as run_simulation

    check_form(as_json, as_csv)
    drafts = [draft, *other_drafts]
    if one_call and given("max_new_tokens"):
        raise InvalidInputError("--one-call and --tokens were both given; ask for one of them")
    settings |= {
        "num_drafts": list(range(1, len(drafts) + 1))
        if other_drafts and not given("num_drafts")
        else numbers("--num-drafts", num_drafts),
        "max_new_tokens": None if one_call else max_new_tokens,
        "batch_size": batch_size if batch_size is not None else 8 if one_call else 16,
        "jobs": int(jobs) if jobs.isdecimal() else jobs,
        "shard": None if shard is None else shard_of(shard),
    }
    if cost_ratio is not None:
        predicted_speed_up(1.0, settings["draft_length"], cost_ratio)  # refuses what is no ratio
    models.quiet_loading()
    names = verifier_names(verifiers)
    options = models.SamplingOptions(temperature=temperature, top_k=top_k, top_p=top_p)
    texts = models.bundled_prompts() if prompts is None else models.read_prompts(prompts)
    pair = models.UnloadedPair.find(target, drafts, device=device, dtype=dtype)
    with progress_bar("drafting") as progress:
        simulation = run_simulation(pair, texts, names, options=options, progress=progress, **settings)
    simulation = replace(simulation, cost_ratio=cost_ratio)
    document = {"target": target, "draft": _one_or_all(drafts), **simulation.to_document()}
    print_found(document, simulation.tables(), simulation.rows(), as_json, as_csv)
    if simulation.interrupted:
        finished = simulation.estimates[0].samples
        kept = f", which are kept in {settings['checkpoint']}" if settings["checkpoint"] else ""
        what = "draws" if one_call else "calls"
        return fail(
            f"interrupted; the estimates rest on the {finished} {what} that were finished{kept}",
            EXIT_INTERRUPTED,
        )
    return 0


@click.command(short_help="One checkpoint out of those of the shards of a run.")
@click.argument("files", nargs=-1, required=True, metavar="FILE..", type=click.Path())
@click.option("--out", required=True, type=click.Path(), metavar="FILE", help="Write it there.")
@json_option
def merge(files: tuple[str, ...], out: str, as_json: bool) -> int:
    """Put the checkpoints of simulate --shard together.

    The command of simulate without --shard then goes on from it: it computes what is missing, and prints.
    """
    from spectheory.simulation import merge_checkpoints

    batches = merge_checkpoints(files, out)
    if as_json:
        print_json({"out": out, "files": list(files), "batches": batches})
    else:
        click.echo(f"{len(batches)} batches of prompts, written to {out}")
    return 0


@click.command(short_help="Text, decoded by any verifier.")
@target_option
@draft_option
@another_draft_option
@click.option(
    "--prompt", "texts", multiple=True, metavar="TEXT", help="A text to go on from; may be repeated."
)
@prompts_option
@max_prompt_tokens_option
@click.option("--verifier", "-v", default="block", show_default=True, metavar="NAME")
@num_drafts_option
@tree_option
@click.option(
    "--draft-length", "-l", type=int, default=8, show_default=True, metavar="L", help="Tokens per path."
)
@click.option(
    "--max-new-tokens", "-n", type=int, default=128, show_default=True, metavar="N", help="Longest text."
)
@click.option(
    "--stop", "stop_strings", multiple=True, metavar="TEXT", help="A text ends there; may be repeated."
)
@temperature_option
@top_k_option
@top_p_option
@device_option
@dtype_option
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--batch-size", type=int, default=8, show_default=True, help="Prompts decoded at a time.")
@click.option(
    "--time",
    "with_time",
    is_flag=True,
    help="Decode plainly too, and say where the time goes and how fast it is.",
)
@json_option
def generate(
    target: str,
    draft: str,
    other_drafts: tuple[str, ...],
    texts: tuple[str, ...],
    prompts: str | None,
    verifier: str,
    num_drafts: int,
    tree: str | None,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    device: str,
    dtype: str | None,
    with_time: bool,
    as_json: bool,
    **settings: Any,
) -> int:
    """Decode texts from language models, the drafted and accepted parts marked.

    Without --prompt and --prompts it goes on from the first bundled prompt.  --temperature 0 is greedy.
    """
    from spectheory import models
    from spectheory.command_line import tables
    from spectheory.decoding import decode, timed_decode

    if texts and prompts is not None:
        raise InvalidInputError("--prompt and --prompts were both given; ask for one of them")
    models.quiet_loading()
    (name,) = verifier_names(verifier) if "," not in verifier else (verifier,)
    options = models.SamplingOptions(temperature=temperature, top_k=top_k, top_p=top_p)
    asked, drafts = _asked_process(num_drafts, tree), [draft, *other_drafts]
    chosen = list(texts) or (models.read_prompts(prompts) if prompts else models.bundled_prompts()[:1])
    unloaded = models.UnloadedPair.find(target, drafts, device=device, dtype=dtype)
    process = unloaded.draft_process(*asked)
    with models.one_thread():
        speed, asked_of = None, {"process": process, "options": options, **settings}
        if with_time:
            found, speed = timed_decode(unloaded.loaded(), chosen, name, **asked_of)
        else:
            found = decode(unloaded, chosen, name, **asked_of)
    document = {
        "target": target,
        "draft": _one_or_all(drafts),
        "verifier": name,
        "draft_process": process.name,
        "num_drafts": process.num_drafts,
        "draft_length": settings["draft_length"],
        "seed": settings["seed"],
        "texts": [text.to_document(unloaded.decode) for text in found],
    }
    if as_json:
        print_json(document | ({"speed": speed.to_document()} if speed else {}))
    else:
        tables.print_texts(document)
        if speed:
            click.echo(f"{speed}")
    return 0


def _asked_process(num_drafts: int, tree: str | None) -> tuple[int | None, DraftProcess | None]:
    """The number of paths and the tree, as far as they were asked for."""
    if tree is not None:
        return None, process_of(num_drafts, tree)
    return num_drafts if given("num_drafts") else None, None


def _one_or_all(drafts: list[str]) -> str | list[str]:
    """The name of the one draft model, or the names of one per path."""
    return drafts[0] if len(drafts) == 1 else drafts


@click.command(short_help="A pair file out of two language models.")
@target_option
@draft_option
@click.option("--prompt", metavar="TEXT", help="The text that both models continue.")
@prompts_option
@click.option(
    "--prompt-number", type=int, default=1, show_default=True, metavar="N",
    help="Which prompt of --prompts or of the bundled ones.",
)  # fmt: skip
@max_prompt_tokens_option
@click.option(
    "--tokens", "-m", "num_tokens", type=int, default=3, show_default=True, metavar="M",
    help="Condition the next token on being one of M.",
)  # fmt: skip
@click.option(
    "--draft-length", "-l", type=int, default=2, show_default=True, metavar="L", help="Tokens per path."
)
@click.option(
    "--per-context", is_flag=True,
    help="The draft's M most likely tokens at every context, not the target's at the prompt.",
)  # fmt: skip
@temperature_option
@top_k_option
@top_p_option
@device_option
@dtype_option
@click.option(
    "--out", type=click.Path(), metavar="PAIR.json", help="Write the pair there; default: print it."
)
@json_option
def restrict(
    target: str,
    draft: str,
    prompt: str | None,
    prompts: str | None,
    prompt_number: int,
    max_prompt_tokens: int | None,
    num_tokens: int,
    draft_length: int,
    per_context: bool,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    device: str,
    dtype: str | None,
    out: str | None,
    as_json: bool,
) -> int:
    """Enumerate two language models on a few tokens after a prompt, as a pair file for certify and optimum.

    Without --out the pair file itself is printed: spectheory restrict | spectheory certify - -v block.
    """
    from spectheory import models
    from spectheory.foundation.results import Table
    from spectheory.foundation.validation import check_count

    if prompt is not None and prompts is not None:
        raise InvalidInputError("--prompt and --prompts were both given; ask for one of them")
    if out is not None and (Path(out).is_dir() or not Path(out).absolute().parent.is_dir()):
        raise InvalidInputError(f"--out {out} is a folder, or lies in one that does not exist; name a file")
    models.quiet_loading()
    options = models.SamplingOptions(temperature=temperature, top_k=top_k, top_p=top_p)
    numbered = click.get_current_context().get_parameter_source("prompt_number")
    if prompt is not None and numbered is ParameterSource.COMMANDLINE:
        raise InvalidInputError("--prompt and --prompt-number were both given; ask for one of them")
    if prompt is None:
        texts = models.bundled_prompts() if prompts is None else models.read_prompts(prompts)
        if check_count("prompt_number", prompt_number) > len(texts):
            raise InvalidInputError(f"there are {len(texts)} prompts, got --prompt-number {prompt_number}")
        chosen = texts[prompt_number - 1]
    else:
        chosen = prompt
    unloaded = models.UnloadedPair.find(target, draft, device=device, dtype=dtype)
    models.check_sizes(unloaded, models.Restriction.per_context(num_tokens), draft_length)
    (ids,) = models.encode_prompts(unloaded, [chosen], draft_length, max_prompt_tokens)
    with models.one_thread():
        pair = models.restrict(unloaded.loaded(), ids, num_tokens, draft_length, per_context, options)
    if out is not None:
        pair.save(out)
    summary = {
        "out": out,
        "target": target,
        "draft": draft,
        "prompt": unloaded.decode(ids),
        "vocab": list(pair.vocab),
        "draft_length": pair.draft_length,
        "target_row": pair.target[0][0].tolist(),
        "draft_row": pair.draft[0][0].tolist(),
    }
    if out is None:
        print_json(pair.to_document())
    else:
        names = summary["vocab"], summary["target_row"], summary["draft_row"]
        rows = [{"token": repr(a), "target": p, "draft": q} for a, p, q in zip(*names, strict=True)]
        prompt = summary["prompt"]
        title = f"after {prompt if len(prompt) <= 60 else '...' + prompt[-57:]!r}"
        note = f"{len(rows)} tokens, draft length {draft_length}, written to {out}"
        print_found(summary, [Table(title, rows, note=note)], rows, as_json, False)
    return 0
