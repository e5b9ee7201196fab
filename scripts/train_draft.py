"""Train the draft of SmolLM2 that the package ships, on SmolLM2's own conditionals.

The draft has the embeddings and the output layer of the target, the latter on the likeliest tokens alone.
Its own are two decoder layers, which begin as the first two of the target, the final norm, a matrix behind it,
and a bias of the output layer.  So 7 million numbers are trained.

1. *Texts* in shards: the target writes prose, code and chat at temperature 1 behind prompts made of templates
   and topics, and it reads sources and docstrings of the standard library and licenses.  A shard keeps
   the target's last hidden states, so that its rows are computed again without the other layers.
2. *Training*: the matrix begins as the least-squares map to the target's last hidden states.  Then the loss goes from the forward KL divergence to the total variation of the two rows.
3. *Store*: one byte per weight, with a scale per row.

Every stage continues where it stopped.  Run it with ``make draft``, or

    python scripts/train_draft.py --work build/draft --out spectheory/models/smollm2_draft

after ``spectheory models fetch smollm2``.  It takes about half an hour on a core.
"""

# ruff: noqa: E501 (templates of texts)

import ast
import json
import math
import os
import platform
import random
import sysconfig
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import click
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from spectheory.models.known_models import fetched_folder
from spectheory.models.loading import BUNDLED_FOLDER, find_model
from spectheory.models.trained_drafts import PROJECTION, WEIGHTS

WINDOW = 128
TEXTS = {"written": 96, "read": 192}
"""Texts of a shard."""
KINDS = ("prose", "chat", "code", "sources", "docstrings")
"""What shards hold, in turn: the first three are written, the last two are read."""
KEPT_TOKENS, LAYERS = 8192, 2
BATCH, LEARNING_RATE, WARM_UP = 16, 5e-4, 15
HELD_OUT = 16
"""Every 16th text is not trained on."""
RIDGE = 1e-2
SEED = 20260726

TOPICS = """rivers; the moon; bread; bicycles; volcanoes; chess; bees; glaciers; the printing press; coffee;
the human heart; bridges; jazz; earthquakes; libraries; whales; the Roman Empire; vaccines; clocks; forests;
taxes; photosynthesis; trains; dreams; maps; the stock market; wolves; architecture; salt; satellites;
democracy; painting; gravity; insects; schools; wine; the French Revolution; batteries; deserts; cooking;
sleep; football; the ocean floor; language; bacteria; gardens; mathematics; the steam engine; friendship;
rain; museums; sugar; the Silk Road; birds; computers; poverty; theatre; comets; exercise; paper; horses;
electricity; memory; islands; ballet; the immune system; winter; plastics; elections; lighthouses""".replace(
    "\n", " "
)
PROSE = """The history of {} begins; {} are often; In recent years, researchers who study {}; When I was a child, {};
According to a new report on {},; Few subjects are as old as {}.; My grandfather knew everything about {}. One evening;
The most important fact about {} is; Once upon a time there was a village that was known for {}.; This chapter is about {}.;
Abstract. We study {} and show; Dear editor, your article on {}; The economics of {}:; A short guide to {}. First,;
It was late, and the talk had turned to {}. "I""".replace("\n", " ")
CHAT = """What is interesting about {}?; Explain {} to a child.; Write a short poem about {}.; Give me three facts about {}.;
How did {} change the world?; I have to give a talk about {}. Where do I start?; Write an email to a colleague about {}.;
Summarize what is known about {} in one paragraph.; What are common mistakes people make about {}?; Tell me a story about {}.;
Make a list of questions for a quiz on {}.; Why do people care about {}?; Compare {} with something else.""".replace(
    "\n", " "
)
TASKS = """sort a list; count words; find primes; read a file; parse dates; merge dictionaries; reverse a string; compute an average;
draw a tree; remove duplicates; convert units; check a password; download a page; play a game; find a path; simulate a queue;
format a table; compress text; search a list; multiply matrices; validate an address; rotate an image; shuffle cards; plan a route;
split a bill; schedule jobs; parse arguments; draw a histogram; balance brackets; store a cache""".replace(
    "\n", " "
)
CODE = """# Python program to {}|import; def main():|    # {}|; class Solver:|    '''Can {}.'''|; Here is a function to {}:||```python|def;
#include <stdio.h>|// {}|int; import os|import sys||def run(args):|    '''{}'''|; function solve(items) {|  // {}|;
def test():|    # first {}|    assert; SELECT * FROM items -- {}|WHERE; ```python|# {}|for; #!/bin/bash|# {}|set -e|;
import numpy as np||def solve(x, n):|    '''{}.|""".replace("\n", " ").replace("|", "\n")  # fmt: skip


def pieces(text: str) -> list[str]:
    return [piece.strip(" ") for piece in text.split(";")]


def attend(
    module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any, scaling: float, **_: Any
) -> Any:
    """Attention without copies of keys and values: the queries of a group are read as positions."""
    groups, each = key.shape[1], query.shape[1] // key.shape[1]
    attention = torch.nn.functional.scaled_dot_product_attention
    if query.shape[2] == 1:
        found = attention(query.reshape(len(query), groups, each, -1), key, value, scale=scaling)
        return found.reshape(len(query), 1, groups * each, -1), None
    key, value = (states.repeat_interleave(each, dim=1) for states in (key, value))
    return attention(query, key, value, is_causal=True, scale=scaling).transpose(1, 2), None


class Target:
    """SmolLM2 in bfloat16, with the two ways to its rows: reading and writing."""

    def __init__(self) -> None:
        source = find_model("target", "smollm2")
        self.tokenizer = source.tokenizer()
        self.model = source.model(torch.device("cpu"), torch.float32).to(torch.bfloat16)
        ALL_ATTENTION_FUNCTIONS.register("grouped", attend)
        ALL_MASK_ATTENTION_FUNCTIONS.register("grouped", lambda *args, **kwargs: None)
        self.model.config._attn_implementation = "grouped"

    def shard(self, kind: str, seed: int, step: Callable[[int], None]) -> dict[str, Tensor]:
        """Tokens [N, 128], the hidden states behind them, their log normalizers, and the mass of tokens."""
        with torch.inference_mode():
            rows = self._write(kind, seed, step) if kind in KINDS[:3] else self._read(kind, seed, step)
            tokens, hidden, normalizers, mass = rows
        return {
            "tokens": tokens.to(torch.uint16), "hidden": hidden, "normalizers": normalizers, "mass": mass
        }  # fmt: skip

    def _rows(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[n, 576] -> logits, their log normalizers, and the sum of the probabilities."""
        logits = self.model.lm_head(hidden).float()
        normalizers = logits.logsumexp(-1)
        return logits, normalizers, (logits - normalizers[:, None]).exp().sum(0)

    def _read(self, kind: str, seed: int, step: Callable[[int], None]) -> tuple[Tensor, ...]:
        tokens = windows(self.tokenizer, kind, seed, TEXTS["read"])
        parts = []
        for batch in tokens.split(16):
            hidden = self.model.model(batch, use_cache=False).last_hidden_state
            found = [self._rows(text)[1:] for text in hidden]
            parts.append(
                (
                    hidden,
                    torch.stack([row[0] for row in found]),
                    torch.stack([row[1] for row in found]).sum(0),
                )
            )
            step(batch.numel())
        hidden, normalizers, mass = zip(*parts, strict=True)
        return tokens, torch.cat(hidden), torch.cat(normalizers), torch.stack(mass).sum(0)

    def _write(self, kind: str, seed: int, step: Callable[[int], None]) -> tuple[Tensor, ...]:
        rng, generator = random.Random(f"{SEED} {kind} {seed}"), torch.Generator().manual_seed(SEED + seed)
        count, end = TEXTS["written"], self.model.config.eos_token_id
        given = [self.tokenizer(prompt(kind, rng))["input_ids"] for _ in range(count)]
        tokens = torch.zeros((count, WINDOW), dtype=torch.int64)
        cache: Any = DynamicCache()
        hidden, normalizers, mass = [], [], torch.zeros(self.model.config.vocab_size)
        for position in range(WINDOW):
            for text in range(count):
                if given[text]:
                    tokens[text, position] = given[text].pop(0)
                elif tokens[text, position] == end:  # another question, as in a longer conversation
                    given[text] = self.tokenizer("\n" + prompt("chat", rng))["input_ids"]
            read = self.model.model(tokens[:, position, None], cache=cache).last_hidden_state[:, 0]
            logits, normalizer, probs = self._rows(read)
            hidden.append(read)
            normalizers.append(normalizer)
            mass += probs
            if position + 1 < WINDOW:
                races = torch.empty_like(logits).exponential_(generator=generator).log_()
                tokens[:, position + 1] = (logits - races).argmax(-1)
            step(count)
        return tokens, torch.stack(hidden, 1), torch.stack(normalizers, 1), mass


def save_trained_draft(folder: Path, own: Mapping[str, Tensor], bias: Tensor, tokens: Tensor) -> None:
    """Write what was trained.

    Args:
        own: parameters of layers and final norm by their names below the base model, as
            ``"layers.0.mlp.up_proj.weight"``; and ``PROJECTION``, square, behind the norm.
        bias, tokens: [n], of the output layer, and the ids of its tokens.
    """
    stored = {"tokens": tokens.to(torch.int32), "bias": bias.half()}
    for name, value in own.items():
        if value.dim() < 2:
            stored[name] = value.half()
            continue
        scale = (value.abs().amax(1) / 127).clamp(min=1e-7).half()
        stored[f"{name}.scale"] = scale
        stored[name] = (value / scale.float()[:, None]).round().clamp(-127, 127).to(torch.int8)
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: value.contiguous() for name, value in stored.items()}, folder / WEIGHTS)


def prompt(kind: str, rng: random.Random) -> str:
    if kind == "code":
        return rng.choice(pieces(CODE)).replace("{}", rng.choice(pieces(TASKS)))
    text = rng.choice(pieces(PROSE if kind == "prose" else CHAT)).replace("{}", rng.choice(pieces(TOPICS)))
    text = text[0].upper() + text[1:]
    if kind == "prose":
        return text
    return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


def windows(tokenizer: Any, kind: str, seed: int, count: int) -> Tensor:
    """Windows of the texts that are on the machine, [count, 128]."""
    rng, found = random.Random(f"{SEED} {kind} {seed}"), list[list[int]]()
    texts = sources() if kind == "sources" else docstrings()
    while len(found) < count:
        text = rng.choice(texts)
        start = rng.randrange(max(1, len(text) - 1000))
        ids = tokenizer(text[start : start + 1000])["input_ids"][:WINDOW]
        if len(ids) == WINDOW:
            found.append(ids)
    return torch.tensor(found)


@cache
def sources() -> list[str]:
    """Sources of the standard library, without the files that the bundled prompts are from."""
    root = Path(sysconfig.get_paths()["stdlib"])
    held_out = json.loads((BUNDLED_FOLDER / "training.json").read_text())["held_out_files"]
    left_out = {"site-packages", "test", "tests", "idle_test", "encodings", "__pycache__"}
    return [
        path.read_text(encoding="utf-8", errors="ignore")
        for path in sorted(root.rglob("*.py"))
        if not left_out & set(path.relative_to(root).parts)
        and path.relative_to(root).as_posix() not in held_out
        and path.stat().st_size > 2000
    ]


@cache
def docstrings() -> list[str]:
    """Docstrings of the standard library, and the licenses on the machine."""
    found = []
    for text in sources():
        try:
            nodes = list(ast.walk(ast.parse(text)))
        except (SyntaxError, ValueError):
            continue
        kinds = (ast.FunctionDef, ast.ClassDef, ast.Module)
        docs = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, kinds)]
        found += [text for text in docs if len(text) > 500]
    licenses = sorted(Path("/usr/share/common-licenses").glob("*"))
    return found + [path.read_text(errors="ignore") for path in licenses if path.is_file()] * 10


def claimed(place: Path) -> bool:
    """Whether this process may write a shard: no other that runs on this machine does."""
    try:
        os.kill(int(place.read_text()), 0)
    except (OSError, ValueError):
        place.write_text(str(os.getpid()))
        return True
    return False


class Student(torch.nn.Module):
    """The draft while it is trained."""

    head: Tensor
    kept: Tensor

    def __init__(self, kept: Tensor) -> None:
        super().__init__()
        self.seconds, self.acceptance = 0.0, dict[str, float]()
        self.register_buffer("kept", kept)  # with the checkpoint: more shards may have other likeliest tokens
        config = LlamaConfig.from_pretrained(fetched_folder("smollm2"))
        config.num_hidden_layers = LAYERS
        weights = load_file(fetched_folder("smollm2") / "model.safetensors")
        del config.quantization_config
        config._attn_implementation = "sdpa"
        model = LlamaForCausalLM(config)
        model.load_state_dict(weights, strict=False)  # later layers are left out
        self.body = model.model
        self.body.embed_tokens.weight.requires_grad_(False)
        self.register_buffer("head", weights["model.embed_tokens.weight"][kept].clone())
        self.bias = torch.nn.Parameter(torch.zeros(len(kept)))
        self.projection = torch.nn.Parameter(torch.eye(config.hidden_size))

    def forward(self, tokens: Tensor) -> Tensor:
        """[N, n] -> log-probabilities of the kept tokens, [N, n, 8192]."""
        hidden = self.body(tokens, use_cache=False).last_hidden_state @ self.projection.T
        return torch.log_softmax((hidden @ self.head.T).float() + self.bias, dim=-1)

    def own(self) -> dict[str, Tensor]:
        """What is trained, by name."""
        found = {name: value.detach() for name, value in self.body.named_parameters() if value.requires_grad}
        return found | {PROJECTION: self.projection.detach()}

    @torch.no_grad()
    def fit(self, batches: list[dict[str, Tensor]]) -> None:
        """Least squares: the target's last hidden states from the draft's, with a constant."""
        size = len(self.projection) + 1
        square, mixed = torch.zeros(size, size), torch.zeros(size, size - 1)
        for batch in batches:
            hidden = (
                self.body(batch["tokens"].long(), use_cache=False).last_hidden_state.float().flatten(0, 1)
            )
            hidden = torch.nn.functional.pad(hidden, (0, 1), value=1.0)
            square += hidden.T @ hidden
            mixed += hidden.T @ batch["hidden"].float().flatten(0, 1)
        square += RIDGE * square.diagonal().mean() * torch.eye(size)
        found = torch.linalg.solve(square, mixed)  # [577, 576]
        self.projection.copy_(found[:-1].T)
        self.bias.copy_(self.head @ found[-1])


def losses(student: Student, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Mean forward KL divergence, up to a constant, and mean total variation."""
    log_draft = student(batch["tokens"].long())
    with torch.no_grad():
        logits = (batch["hidden"] @ student.head.T.to(batch["hidden"].dtype)).float()
        target = (logits - batch["normalizers"][..., None]).exp()
    divergence = -(target * log_draft).sum(-1).mean()
    return divergence, 1 - torch.minimum(target, log_draft.exp()).sum(-1).mean()


def stacked(texts: list[tuple[dict[str, Tensor], int]]) -> dict[str, Tensor]:
    """A batch of some texts of shards."""
    names = ("tokens", "hidden", "normalizers")
    return {name: torch.stack([part[name][text] for part, text in texts]) for name in names}


def train(shards: list[Path], work: Path, steps: int, minutes: float, progress: Progress) -> Student | None:
    """The trained draft, or None where time ran out."""
    parts = [load_file(path) for path in shards]
    kept = torch.stack([part["mass"] / part["tokens"].numel() for part in parts]).mean(0)
    kept = kept.topk(KEPT_TOKENS).indices.sort().values
    texts = [(part, text) for part in parts for text in range(len(part["tokens"])) if text % HELD_OUT]
    torch.manual_seed(SEED)
    student = Student(kept)
    trained = [value for value in student.parameters() if value.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=LEARNING_RATE, betas=(0.9, 0.95), weight_decay=0.01)
    began, started = time.monotonic(), time.process_time()
    checkpoint, first, seconds = work / "training.pt", 0, 0.0
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        student.load_state_dict(state["student"])
        optimizer.load_state_dict(state["optimizer"])
        first, seconds = state["step"], state["seconds"]
    else:
        some = random.Random(SEED).sample(texts, min(len(texts), 320))
        student.fit([stacked(some[start : start + BATCH]) for start in range(0, len(some), BATCH)])
    started -= seconds
    task = progress.add_task("training", total=steps, completed=first, shown="")
    for step in range(first, steps):
        batch = stacked(random.Random(f"{SEED} {step}").sample(texts, BATCH))
        phase = max(step - WARM_UP, 0) / (steps - WARM_UP)
        for group in optimizer.param_groups:
            group["lr"] = (
                LEARNING_RATE * min(1, (step + 1) / WARM_UP) * (0.02 + 0.49 * (1 + math.cos(math.pi * phase)))
            )
        with torch.autocast("cpu", dtype=torch.bfloat16):
            divergence, variation = losses(student, batch)
        weight = step / steps
        optimizer.zero_grad(set_to_none=True)
        ((1 - weight) * divergence + 2 * weight * variation).backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        progress.update(task, completed=step + 1, shown=f"α {1 - variation.item():.3f}")
        late = time.monotonic() - began > 60 * minutes
        if (step + 1) % 25 == 0 or step + 1 == steps or late:
            print(
                f"step {step + 1} α {1 - variation.item():.4f} CPU {time.process_time() - started:.0f} s",
                flush=True,
            )
            state = {
                "student": student.state_dict(), "optimizer": optimizer.state_dict(),
                "step": step + 1, "seconds": time.process_time() - started,
            }  # fmt: skip
            torch.save(state, checkpoint.with_suffix(".part"))
            os.replace(checkpoint.with_suffix(".part"), checkpoint)
        if late and step + 1 < steps:
            return None
    student.seconds = time.process_time() - started
    for path, part in zip(shards, parts, strict=True):
        batch = stacked([(part, text) for text in range(0, len(part["tokens"]), HELD_OUT)])
        with torch.no_grad():
            student.acceptance[path.stem] = round(1 - losses(student, batch)[1].item(), 4)
    return student


def card(record: dict[str, Any]) -> str:
    """The model card."""
    accepted = "".join(
        f"| {name.partition('-')[2]} | {value:.3f} |\n"
        for name, value in record["held_out_acceptance"].items()
    )
    return f"""---
license: apache-2.0
base_model: HuggingFaceTB/SmolLM2-135M-Instruct
---

# Model card: a draft of SmolLM2

License: Apache-2.0. Derived from SmolLM2-135M-Instruct (Apache-2.0), in the 4-bit file of `spectheory models fetch smollm2`.

It drafts for SmolLM2 in speculative decoding: `spectheory simulate smollm2 smollm2-draft`. It does not work without
the fetched model, whose embeddings and output layer it takes. Stored are two decoder layers of SmolLM2's sizes, the final norm, a matrix of
576 x 576 behind it, and the ids and biases of {record["kept_tokens"]} tokens, which are all that it drafts: 7.4 million numbers, a byte
each with a scale per row.

**Training.** The layers begin as the first two of SmolLM2, the matrix as the least-squares map to its last hidden states. Then
{record["steps"]} steps of {record["batch"]} x {record["window"]} tokens, {record["training_cpu_seconds"]} CPU seconds on one thread, with a loss from the forward KL divergence to the total
variation. The {record["tokens"]} tokens of text are those that SmolLM2 wrote behind prompts made of templates (prose, chat, code), and windows
of the sources, docstrings and licenses of a Python installation. `make draft` does all of it again; it can be resumed, and more texts and
steps make a better draft. `training.json` is the record.

**Agreement with the target**, the mean of the sum over the vocabulary of min(p, q) at temperature 1, on texts of the same kinds that were left
out of the training, with the target in bfloat16:

| texts | agreement |
|---|---|
{accepted}
By domain and position of the drafted token behind prompts of other kinds: `python benchmarks/study.py`.

**Limits.** Trained on texts of {record["window"]} tokens at temperature 1. No token outside of the kept ones is ever drafted. It is an
instrument for measuring verifiers, not a language model to be used alone.
"""


@click.command(help=__doc__.split("\n")[0])
@click.option(
    "--work", type=click.Path(path_type=Path), required=True, help="Folder of shards and checkpoint."
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the draft.  Without: only the texts.")
@click.option("--shards", default=15, help="How many shards of texts.")
@click.option("--steps", default=500, help="Steps of training, 16 texts of 128 tokens each.")
@click.option("--minutes", default=math.inf, help="Stop after so long, with what is done kept.")
def main(work: Path, out: Path | None, shards: int, steps: int, minutes: float) -> None:
    torch.set_num_threads(1)
    work.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    paths = [work / f"{number:03}-{KINDS[number % len(KINDS)]}.safetensors" for number in range(shards)]
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[shown]}"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as progress:
        target = None
        for number, path in enumerate(paths):
            if path.exists() or not claimed(path.with_suffix(".claim")):
                continue
            if time.monotonic() - began > 60 * minutes:
                return
            target = target or Target()
            kind, start = KINDS[number % len(KINDS)], time.process_time()
            task = progress.add_task(
                path.stem, total=TEXTS["written" if kind in KINDS[:3] else "read"] * WINDOW, shown=""
            )
            shard = target.shard(kind, number, partial(progress.advance, task))
            seconds = time.process_time() - start
            save_file(shard, path.with_suffix(".part"), metadata={"seconds": f"{seconds:.1f}"})
            os.replace(path.with_suffix(".part"), path)
            print(f"{path.stem}: {shard['tokens'].numel() / seconds:.0f} tokens per CPU second", flush=True)
        del target
        if out is None:
            return
        student = train([path for path in paths if path.exists()], work, steps, minutes, progress)
    if student is None:
        return
    save_trained_draft(out, student.own(), student.bias.detach(), student.kept)
    record = {
        "seed": SEED, "shards": [path.stem for path in paths], "steps": steps, "batch": BATCH, "window": WINDOW,
        "tokens": sum(load_file(path)["tokens"].numel() for path in paths), "layers": LAYERS,
        "kept_tokens": KEPT_TOKENS, "training_cpu_seconds": round(student.seconds), "held_out_acceptance": student.acceptance,
        "torch": torch.__version__, "python": platform.python_version(),
    }  # fmt: skip
    (out / "training.json").write_text(json.dumps(record, indent=1) + "\n")
    (out / "README.md").write_text(card(record), encoding="utf-8")


if __name__ == "__main__":
    main()
