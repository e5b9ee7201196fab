"""Commands on language models: simulate, decode, restrict."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from spectheory.command_line.options import (
    SettingsCommand,
    csv_option,
    draft_length_of,
    json_option,
    num_drafts_option,
    process_of,
    refuse_both,
    tree_option,
    verifier_names,
    was_given,
)
from spectheory.command_line.output import (
    EXIT_INTERRUPTED,
    check_form,
    fail,
    print_found,
    print_json,
)
from spectheory.foundation.errors import InvalidInputError

if TYPE_CHECKING:
    from spectheory.decoding import DecodedText
    from spectheory.models import SamplingOptions
    from spectheory.models.language_model import UnloadedPair
    from spectheory.models.prompts import Prompt


class Models(NamedTuple):
    """The models, the sampling and the prompts that a command was asked for."""

    target: str
    drafts: list[str]
    device: str
    dtype: str | None
    options: SamplingOptions
    prompts: str | None
    tokenizer: str | None

    @property
    def names(self) -> dict[str, Any]:
        """The target and the draft, or one draft per path, as documents name them."""
        named = {"target": self.target, "draft": self.drafts[0] if len(self.drafts) == 1 else self.drafts}
        return named if self.tokenizer is None else named | {"tokenizer": self.tokenizer}

    def find(self) -> UnloadedPair:
        from spectheory.models.language_model import UnloadedPair

        return UnloadedPair.find(
            self.target, self.drafts, device=self.device, dtype=self.dtype, tokenizer=self.tokenizer
        )

    def texts(self) -> list[Prompt]:
        from spectheory.models import bundled_prompts, read_prompts

        return bundled_prompts() if self.prompts is None else read_prompts(self.prompts)


MODEL_OPTIONS = (
    click.option(
        "--target", default="bundled", show_default=True, metavar="MODEL",
        help="Folder, hub name or GGUF file of the target model, or a name of: spectheory models list.",
    ),
    click.option(
        "--draft", default="bundled", show_default=True, metavar="MODEL",
        help="The draft model, named like the target; or made of a model: target:20-layers, target:last-16, "
        "prompt:lookup-3, prompt:ngram-3.",
    ),
    click.option(
        "--tokenizer", metavar="TEXT",
        help="Folder or hub name of the tokenizer.  Default: the one beside the models.",
    ),
    click.option(
        "--prompts", type=click.Path(), metavar="FILE",
        help="One prompt per line, JSON Lines or a JSON array, told apart by how the file begins; a prompt "
        "with line breaks is a JSON string.  Default: the bundled prompts.",
    ),
    click.option("--temperature", type=float, default=1.0, show_default=True),
    click.option("--top-k", type=int, help="Keep the k most likely tokens of both models."),
    click.option("--top-p", type=float, help="Keep the most likely tokens up to this mass."),
    click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:N."),
    click.option(
        "--dtype", metavar="TYPE",
        help="Weights in float16, bfloat16, float32 or float64; default: float32 on a CPU, else as stored.",
    ),
)  # fmt: skip
another_draft_option = click.option(
    "--another-draft", "other_drafts", multiple=True, metavar="TEXT",
    help="Another draft model; may be repeated.  Each draft model then drafts a path.",
)  # fmt: skip


def takes_models(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options on models, sampling and prompts to a command, which gets them as ``Models``."""

    @wraps(command)
    def with_models(
        target: str,
        draft: str,
        device: str,
        dtype: str | None,
        prompts: str | None,
        tokenizer: str | None,
        other_drafts: tuple[str, ...] = (),
        **others: Any,
    ) -> int:
        from spectheory import models

        models.quiet_loading()
        sampling = {name: others.pop(name) for name in ("temperature", "top_k", "top_p")}
        options = models.SamplingOptions(**sampling)
        found = Models(target, [draft, *other_drafts], device, dtype, options, prompts, tokenizer)
        return command(found, **others)

    for option in reversed(MODEL_OPTIONS):
        with_models = option(with_models)
    return with_models


SECTIONS = {
    "Models and prompts": "target draft another-draft tokenizer prompts max-prompt-tokens",
    "Sampling": "temperature top-k top-p",
    "What is drafted and compared": "verifier num-drafts draft-length tree against ceilings",
    "Texts": "tokens one-call common-texts samples seed",
    "Precision": "confidence width gain-width tolerance",
    "The run": "device dtype threads batch-size jobs cluster checkpoint",
    "Output": "to csv json help",
}
"""The options of ``simulate`` under the headings of its help; those that are not here are of the run."""


class SimulateCommand(SettingsCommand):
    """With its options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        left = {max(entry.opts, key=len): entry.get_help_record(ctx) for entry in self.get_params(ctx)}
        parts = {
            heading: [left.pop(f"--{flag}") for flag in flags.split()] for heading, flags in SECTIONS.items()
        }
        parts["The run"] += left.values()
        for heading, records in parts.items():
            with formatter.section(heading):
                formatter.write_dl([record for record in records if record])


@click.command(
    cls=SimulateCommand, settings="spectheory.simulation.settings:SimulationSettings",
    short_help="Estimate tokens per call on language models.",
)  # fmt: skip
@click.option(
    "--verifier", "-v", "verifiers", default="token,block,spectr,greedy_multipath", show_default=True,
    metavar="NAME,..", help="Verifiers to compare.",
)  # fmt: skip
@click.option("--one-call", is_flag=True, help="Judge one call after each prompt, with common drafts.")
@another_draft_option
@tree_option
@click.option(
    "--to", type=click.Choice(["latex"]), help="Print the tables in LaTeX, with ± from the intervals."
)
@csv_option
@json_option
@takes_models
def simulate(
    models: Models,
    verifiers: str,
    one_call: bool,
    tree: str | None,
    to: str | None,
    as_csv: bool,
    as_json: bool,
    **settings: Any,
) -> int:
    """Estimate the block efficiency of verifiers over whole texts of language models.

    Verifiers, prompts and all numbers are checked before weights are loaded.
    """
    from spectheory.command_line.progress import progress_bar
    from spectheory.models.language_model import draft_process_of_models
    from spectheory.simulation import simulate as run_simulation
    from spectheory.simulation.runs import base_of, looked_up, streams_of
    from spectheory.simulation.settings import SimulationSettings

    check_form(as_json, as_csv, to is not None)
    refuse_both("--one-call", "--tokens")
    refuse_both("--tree", "--num-drafts")
    if one_call:
        settings["max_new_tokens"] = None
    if tree is not None:
        process = settings["drafts"] = process_of(1, tree)
        settings["draft_length"] = draft_length_of(process, settings["draft_length"])
    elif len(models.drafts) > 1 and not was_given("drafts"):
        settings["drafts"] = list(range(1, len(models.drafts) + 1))
    names, texts = verifier_names(verifiers), models.texts()
    checked = SimulationSettings(options=models.options, **settings)
    # What does not fit is refused before tokenizers are read.
    given = looked_up(names)
    base_of(given, checked)
    streams_of(given, checked, partial(draft_process_of_models, models=tuple(models.drafts)))
    with progress_bar("drafting") as progress:
        simulation = run_simulation(models.find(), texts, names, checked, progress=progress)
    document = models.names | simulation.to_document()
    print_found(document, simulation.tables(), simulation.rows(), as_json, as_csv, to is not None)
    if simulation.interrupted:
        finished, what = simulation.estimates[0].samples, "draws" if one_call else "calls"
        kept = f", which are kept in {settings['checkpoint']}" if settings["checkpoint"] else ""
        return fail(
            f"interrupted; the estimates rest on the {finished} {what} that were finished{kept}",
            EXIT_INTERRUPTED,
        )
    return 0


@click.command(
    cls=SettingsCommand, settings="spectheory.decoding.decoding_settings:DecodingSettings",
    short_help="Decode texts with any verifier.",
)  # fmt: skip
@click.option(
    "--prompt", "texts", multiple=True, metavar="TEXT", help="A text to go on from; may be repeated."
)
@click.option("--verifier", "-v", default="block", show_default=True, metavar="NAME")
@num_drafts_option
@tree_option
@click.option(
    "--time", "with_time", is_flag=True,
    help="Decode plainly too, and say where the time goes and how fast it is.",
)  # fmt: skip
@another_draft_option
@json_option
@takes_models
def decode(
    models: Models,
    texts: tuple[str, ...],
    verifier: str,
    num_drafts: int,
    tree: str | None,
    with_time: bool,
    as_json: bool,
    **settings: Any,
) -> int:
    """Decode texts from language models, the drafted and accepted parts marked.

    Without --prompt and --prompts it goes on from the first bundled prompt.  --temperature 0 is greedy.
    """
    from spectheory.command_line import tables
    from spectheory.decoding import decode as decode_texts
    from spectheory.decoding import timed_decode
    from spectheory.models.device import cpu_threads

    refuse_both("--prompt", "--prompts")
    (name,) = verifier_names(verifier) if "," not in verifier else (verifier,)
    if len(models.drafts) > 1 and not was_given("num_drafts"):
        num_drafts = len(models.drafts)
    prompts = list(texts) or (models.texts() if models.prompts else models.texts()[:1])
    asked = num_drafts if tree is None else process_of(num_drafts, tree)
    if tree is not None:
        settings["draft_length"] = draft_length_of(asked, settings["draft_length"])
    pair = models.find()
    process = pair.draft_process(asked)
    found: list[DecodedText] = []
    settings |= {"drafts": process, "options": models.options, "keep": found.extend}
    speed, interrupted = None, False
    try:
        with cpu_threads(1):
            if with_time:
                _, speed = timed_decode(pair.loaded(), prompts, name, **settings)
            else:
                decode_texts(pair, prompts, name, **settings)
    except KeyboardInterrupt:
        if not found:
            raise
        interrupted = True
    document = models.names | {
        "verifier": name,
        "draft_process": process.name,
        "num_drafts": process.num_drafts,
        "draft_length": settings["draft_length"],
        "seed": settings["seed"],
        "texts": [text.to_document(pair.decode) for text in found],
    }
    if as_json:
        print_json(document | ({} if speed is None else {"speed": speed.to_document()}))
    else:
        tables.print_texts(document)
        if speed is not None:
            click.echo(f"{speed}")
    if interrupted:
        return fail(f"interrupted; {len(found)} of {len(prompts)} texts were finished", EXIT_INTERRUPTED)
    return 0


@click.command(short_help="Make a pair file from two language models.")
@click.option("--prompt", metavar="TEXT", help="The text that both models continue.")
@click.option(
    "--prompt-number", type=int, default=1, show_default=True, metavar="N",
    help="Number of the prompt in --prompts or the bundled file.",
)  # fmt: skip
@click.option("--max-prompt-tokens", type=int, metavar="N", help="Keep the last N tokens of every prompt.")
@click.option(
    "--tokens", "-m", "num_tokens", type=int, default=3, show_default=True, metavar="M",
    help="Keep M tokens: the next token is one of them.",
)  # fmt: skip
@click.option(
    "--draft-length", "-l", type=int, default=2, show_default=True, metavar="L", help="Tokens per path."
)
@click.option(
    "--per-context", is_flag=True,
    help="Keep the draft's M likeliest tokens at every context, not the target's at the prompt.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(), metavar="PAIR.json", help="Write the pair there; default: print it."
)
@json_option
@takes_models
def restrict(
    models: Models,
    prompt: str | None,
    prompt_number: int,
    max_prompt_tokens: int | None,
    num_tokens: int,
    draft_length: int,
    per_context: bool,
    out: str | None,
    as_json: bool,
) -> int:
    """Enumerate two language models on a few tokens after a prompt, as a pair file for certify and optimum.

    Without --out the pair file itself is printed: spectheory restrict | spectheory certify - -v block.
    """
    from spectheory.foundation.results import Table
    from spectheory.foundation.validation import check_count
    from spectheory.models import Restriction
    from spectheory.models import restrict as restricted
    from spectheory.models.device import cpu_threads
    from spectheory.models.language_model import encode_prompts
    from spectheory.models.restricting import check_sizes

    refuse_both("--prompt", "--prompts")
    refuse_both("--prompt", "--prompt-number")
    if out is not None and (Path(out).is_dir() or not Path(out).absolute().parent.is_dir()):
        raise InvalidInputError(f"--out {out} is a folder, or lies in one that does not exist; name a file")
    if prompt is None:
        texts = models.texts()
        if check_count("prompt_number", prompt_number) > len(texts):
            raise InvalidInputError(f"there are {len(texts)} prompts, got --prompt-number {prompt_number}")
    chosen = texts[prompt_number - 1] if prompt is None else prompt
    unloaded = models.find()
    tokens = Restriction.per_context(num_tokens) if per_context else num_tokens
    check_sizes(unloaded, tokens, draft_length)
    (ids,) = encode_prompts(unloaded, [chosen], draft_length, max_prompt_tokens)
    with cpu_threads(1):
        pair = restricted(unloaded.loaded(), ids, tokens, draft_length, models.options)
    if out is None:
        print_json(pair.to_document())
        return 0
    pair.save(out)
    text, target_row, draft_row = unloaded.decode(ids), pair.target[0][0].tolist(), pair.draft[0][0].tolist()
    summary = {
        "out": out,
        **models.names,
        "prompt": text,
        "vocab": list(pair.vocab),
        "draft_length": pair.draft_length,
        "target_row": target_row,
        "draft_row": draft_row,
    }
    named = zip(pair.vocab, target_row, draft_row, strict=True)
    rows = [{"token": repr(token), "target": p, "draft": q} for token, p, q in named]
    title = f"after {text if len(text) <= 60 else '...' + text[-57:]!r}"
    note = f"{len(rows)} tokens, draft length {draft_length}, written to {out}"
    print_found(summary, [Table(title, rows, note=note)], rows, as_json, False)
    return 0
