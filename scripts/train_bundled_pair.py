"""Train the bundled language-model pair on the Python standard library's own sources.

Two decoder-only Llama-architecture transformers and one byte-level BPE tokenizer are trained
from nothing on text that every machine with Python has: the ``.py`` files of the standard
library, tests and generated tables left out.  One file in sixteen, chosen by a hash of its
path, is held out: neither the tokenizer nor the models see it, the reported loss is measured
on it, and the bundled prompts are taken from it.

The script is seeded, shows progress on stderr, saves a checkpoint every ``--checkpoint-every``
steps and continues from it when it is started again with the same ``--work`` folder.

    python scripts/train_bundled_pair.py --out spectheory/models/bundled --work /tmp/pair

On two CPU cores it takes about half an hour; with CUDA a few minutes.
"""

import argparse
import hashlib
import json
import math
import platform
import sysconfig
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

END_OF_TEXT = "<|endoftext|>"
WINDOW = 256
LEFT_OUT_FOLDERS = {"site-packages", "test", "tests", "idle_test", "encodings", "__pycache__"}


@dataclass(frozen=True)
class Recipe:
    """Size of one model and the schedule it is trained with."""

    hidden_size: int
    num_layers: int
    intermediate_size: int
    num_heads: int
    steps: int
    learning_rate: float


RECIPES = {
    "draft": Recipe(96, 2, 256, 2, steps=3000, learning_rate=4e-3),
    "target": Recipe(256, 5, 704, 4, steps=2400, learning_rate=2e-3),
}


def read_corpus(root: Path) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """(training, held-out) lists of (relative path, text), sorted by path."""
    training, held_out = [], []
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        if LEFT_OUT_FOLDERS & set(relative.parts) or relative.parts[0].startswith("config-"):
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        digest = hashlib.blake2b(relative.as_posix().encode(), digest_size=4).digest()
        part = held_out if int.from_bytes(digest, "big") % 16 == 0 else training
        part.append((relative.as_posix(), text))
    return training, held_out


def train_tokenizer(texts: list[str], vocab_size: int) -> Tokenizer:
    """Byte-level BPE: every string can be encoded, no unknown token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def encode(tokenizer: Tokenizer, texts: list[str]) -> np.ndarray:
    end = tokenizer.token_to_id(END_OF_TEXT)
    ids: list[int] = []
    for encoding in tokenizer.encode_batch(texts):
        ids.append(end)
        ids.extend(encoding.ids)
    return np.asarray(ids, dtype=np.int64)


def build_model(recipe: Recipe, vocab_size: int) -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocab_size,
            hidden_size=recipe.hidden_size,
            intermediate_size=recipe.intermediate_size,
            num_hidden_layers=recipe.num_layers,
            num_attention_heads=recipe.num_heads,
            num_key_value_heads=recipe.num_heads,
            max_position_embeddings=2 * WINDOW,
            tie_word_embeddings=True,
            bos_token_id=0,
            eos_token_id=0,
        )
    )


def learning_rate_at(step: int, recipe: Recipe, warmup: int = 100) -> float:
    if step < warmup:
        return recipe.learning_rate * (step + 1) / warmup
    phase = (step - warmup) / max(1, recipe.steps - warmup)
    return recipe.learning_rate * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * phase)))


@torch.no_grad()
def held_out_loss(model: LlamaForCausalLM, ids: np.ndarray, device: torch.device) -> float:
    """Mean next-token cross-entropy in nats over all held-out windows, in float32."""
    model.eval()
    windows = torch.from_numpy(ids[: len(ids) // WINDOW * WINDOW].reshape(-1, WINDOW))
    total, count = 0.0, 0
    for batch in windows.split(32):
        batch = batch.to(device)
        logits = model(batch).logits[:, :-1].float()
        loss = torch.nn.functional.cross_entropy(
            logits.reshape(-1, logits.shape[-1]), batch[:, 1:].reshape(-1), reduction="sum"
        )
        total += float(loss)
        count += batch[:, 1:].numel()
    return total / count


def train(
    name: str,
    recipe: Recipe,
    ids: np.ndarray,
    vocab_size: int,
    args: argparse.Namespace,
    device: torch.device,
    progress: Progress,
) -> tuple[LlamaForCausalLM, float]:
    """Train one model; returns it with the seconds this process spent on it."""
    torch.manual_seed(args.seed)
    model = build_model(recipe, vocab_size).to(device)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.95), weight_decay=0.05
    )
    checkpoint = args.work / f"{name}.pt"
    first_step, seconds = 0, 0.0
    if checkpoint.exists():
        state = torch.load(checkpoint, map_location=device, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first_step, seconds = state["step"], state["seconds"]
    started = time.monotonic() - seconds
    task = progress.add_task(name, total=recipe.steps, completed=first_step, loss=float("nan"))
    model.train()
    for step in range(first_step, recipe.steps):
        # A generator per step: a continued run draws the batches an unbroken one would have.
        rng = np.random.default_rng([args.seed, step])
        starts = rng.integers(0, len(ids) - WINDOW, size=args.batch_size)
        batch = torch.from_numpy(np.stack([ids[s : s + WINDOW] for s in starts])).to(device)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate_at(step, recipe)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = model(batch, labels=batch).loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0:
            progress.update(task, loss=float(loss))
        progress.update(task, completed=step + 1)
        if (step + 1) % args.checkpoint_every == 0 or step + 1 == recipe.steps:
            state = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "step": step + 1,
                "seconds": time.monotonic() - started,
            }
            torch.save(state, checkpoint.with_suffix(".part"))
            checkpoint.with_suffix(".part").replace(checkpoint)
            print(f"{name} step {step + 1} loss {float(loss):.3f}", flush=True)
    return model, time.monotonic() - started


def held_out_prompts(
    tokenizer: Tokenizer, held_out: list[tuple[str, str]], count: int, length: int
) -> list[dict[str, str]]:
    """One prompt from the middle of each of the largest held-out files, then round again."""
    files = sorted(held_out, key=lambda item: (-len(item[1]), item[0]))
    prompts = []
    for round_number in range(1, 100):
        for path, text in files:
            ids = tokenizer.encode(text).ids
            start = round_number * 997
            if start + length <= len(ids):
                prompts.append({"source": path, "text": tokenizer.decode(ids[start : start + length])})
            if len(prompts) == count:
                return prompts
    return prompts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder the pair is written to")
    parser.add_argument("--work", type=Path, required=True, help="folder for checkpoints")
    parser.add_argument("--stdlib", type=Path, default=Path(sysconfig.get_paths()["stdlib"]))
    parser.add_argument("--vocab-size", type=int, default=2048)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--seed", type=int, default=20240917)
    parser.add_argument("--checkpoint-every", type=int, default=200)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    args.out.mkdir(parents=True, exist_ok=True)
    device = torch.device(args.device)

    training, held_out = read_corpus(args.stdlib)
    tokenizer = train_tokenizer([text for _, text in training], args.vocab_size)
    training_ids = encode(tokenizer, [text for _, text in training])
    held_out_ids = encode(tokenizer, [text for _, text in held_out])
    fast_tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=END_OF_TEXT, eos_token=END_OF_TEXT
    )
    report: dict[str, object] = {
        "python": platform.python_version(),
        "seed": args.seed,
        "batch_size": args.batch_size,
        "window": WINDOW,
        "vocab_size": tokenizer.get_vocab_size(),
        "training_files": len(training),
        "training_characters": sum(len(text) for _, text in training),
        "training_tokens": len(training_ids),
        "held_out_files": [path for path, _ in held_out],
        "held_out_characters": sum(len(text) for _, text in held_out),
        "held_out_tokens": len(held_out_ids),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else platform.machine(),
        "torch": torch.__version__,
        "models": {},
    }
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.3f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        for name, recipe in RECIPES.items():
            model, seconds = train(
                name, recipe, training_ids, tokenizer.get_vocab_size(), args, device, progress
            )
            folder = args.out / name
            model.to(torch.float16).save_pretrained(folder)  # half the size on disk
            fast_tokenizer.save_pretrained(folder)
            stored = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).to(device)
            loss = held_out_loss(stored, held_out_ids, device)
            report["models"][name] = {  # type: ignore[index]
                **asdict(recipe),
                "parameters": sum(p.numel() for p in stored.parameters()),
                "held_out_loss_nats_per_token": round(loss, 4),
                "training_seconds": round(seconds),
            }
            print(f"{name}: held-out loss {loss:.4f} nats per token", flush=True)
    prompts = held_out_prompts(tokenizer, held_out, count=64, length=48)
    with (args.out / "prompts.jsonl").open("w", encoding="utf-8") as file:
        for prompt in prompts:
            file.write(json.dumps(prompt) + "\n")
    (args.out / "training.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
