"""Where the time of the decoding loop goes, and its speed against plain decoding in the same run.

CPU seconds on one thread, bundled pair, a batch of prompts: forward passes of the target and of the draft
model, rows (from logits to probabilities, and drawing the drafts from them), verification (the verifier's
answer and the drawing from it), and the loop itself, which is the rest.  The last run is on models of the
same kind with random weights and a hundred times the parameters.

    PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/decoding_speed.py
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from timing import machine, write
from transformers import LlamaConfig, LlamaForCausalLM

from figures.common.measured import Measurement
from spectheory.decoding import decode
from spectheory.models import LanguageModelPair, bundled_prompts, drafting, reading
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import find_verifier

TOKENS, TOKENS_OF_LARGE_MODELS, DRAFT_LENGTH = 48, 12, 8
WANTED = [("token", 1), ("block", 1), ("spectr", 2)]
WANTED += [("greedy_multipath", num_drafts) for num_drafts in (2, 3, 4)]
Seconds = dict[str, float]


@contextmanager
def timed(owner: Any, name: str, seconds: Seconds, label: Callable[..., str]) -> Iterator[None]:
    """Add the CPU seconds of every call of a method to its label."""
    right = getattr(owner, name)

    def method(*args: Any, **kwargs: Any) -> Any:
        start = time.process_time()
        try:
            return right(*args, **kwargs)
        finally:
            seconds[label(*args)] += time.process_time() - start

    setattr(owner, name, method)
    try:
        yield
    finally:
        setattr(owner, name, right)


def speculative(
    pair: LanguageModelPair, prompts: list[Any], verifier: str, num_drafts: int, tokens: int
) -> dict[str, Any]:
    """One run of the loop: its seconds by part, and what it decoded."""
    seconds: Seconds = defaultdict(float)

    def side(model: Any, *_: Any) -> str:
        return "target" if model is pair.target_model else "draft"

    kind = type(find_verifier(verifier))
    with (
        timed(reading, "run_model", seconds, side),
        timed(drafting._Rows, "of", seconds, lambda *_: "rows"),
        timed(drafting, "_draw", seconds, lambda *_: "rows"),
        timed(kind, "outcome", seconds, lambda *_: "verification"),
        timed(Outcome, "sample", seconds, lambda *_: "verification"),
    ):
        start = time.process_time()
        texts = decode(
            pair, prompts, verifier, drafts=num_drafts, draft_length=DRAFT_LENGTH, max_new_tokens=tokens,
            batch_size=len(prompts),
        )  # fmt: skip
        total = time.process_time() - start
    calls = sum(len(text.accepted) for text in texts)
    return {
        "verifier": verifier,
        "num_drafts": num_drafts,
        "tokens_per_second": sum(len(text.token_ids) for text in texts) / total,
        "block_efficiency": sum(length + 1 for text in texts for length in text.accepted) / calls,
        "seconds": {**seconds, "loop": total - sum(seconds.values()), "total": total},
    }


def plain(pair: LanguageModelPair, prompts: list[list[int]], tokens: int) -> float:
    """Tokens per second of transformers' own sampling from the target."""
    start, ids = time.process_time(), torch.tensor(prompts)
    found = pair.target_model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=True,
        max_new_tokens=tokens,
        top_k=0,
        pad_token_id=0,
    )
    return found[:, ids.shape[1] :].numel() / (time.process_time() - start)


def main(sizes: tuple[int, ...] = (1, 32)) -> None:
    """Print a line per verifier and size of the batch and write them to results/."""
    torch.set_num_threads(1)
    pair = LanguageModelPair.load("bundled", "bundled", device="cpu")
    prompts = [pair.encode(text)[:40] for text in bundled_prompts()]
    documents = [measured(pair, prompts[:size]) for size in sizes]
    walltimes(documents[-1]).write("walltimes")
    documents.append(measured(hundredfold(), prompts[:1], TOKENS_OF_LARGE_MODELS))
    write(Path(__file__).parent / "results" / "decoding_speed-epyc-2core.json", documents)


def hundredfold() -> LanguageModelPair:
    """Random models of the bundled ones' kind, of 100 times as many parameters each."""
    torch.manual_seed(0)
    models = [
        LlamaForCausalLM(
            LlamaConfig(
                vocab_size=2048, hidden_size=width, intermediate_size=inner, num_hidden_layers=layers,
                num_attention_heads=heads, tie_word_embeddings=True,
            )
        ).eval()
        for width, inner, layers, heads in ((2048, 5632, 9, 16), (768, 2048, 6, 12))
    ]  # fmt: skip
    return LanguageModelPair.of(*models)


def walltimes(document: dict[str, Any]) -> Measurement:
    """Milliseconds per token and the share of every part, for the figure ``whole_texts``."""
    parts = ("target", "draft", "rows", "verification", "loop")
    return Measurement(
        "PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/decoding_speed.py",
        f"{machine()['processor']}, one thread",
        ("verifier", "num_drafts", "prompts", "block_efficiency", "ms_per_token", *parts),
        [
            (
                row["verifier"], row["num_drafts"], document["prompts"], row["block_efficiency"],
                1000 / row["tokens_per_second"],
                *(row["seconds"][part] / row["seconds"]["total"] for part in parts),
            )
            for row in document["rows"]
        ],
    )  # fmt: skip


def measured(pair: LanguageModelPair, prompts: list[list[int]], tokens: int = TOKENS) -> dict[str, Any]:
    """Plain decoding and every verifier on one batch."""
    decode(pair, prompts[:2], max_new_tokens=4)  # warm
    plain(pair, prompts[:2], tokens)
    speeds = [plain(pair, prompts, tokens) for _ in range(3)]
    rows = [speculative(pair, prompts, *wanted, tokens) for wanted in WANTED]
    millions = pair.num_parameters / 1e6
    print(
        f"{len(prompts)} prompts, {millions:.0f} million parameters: plain decoding "
        f"{sorted(speeds)[1]:.0f} tokens per second"
    )
    for row in rows:
        row["speed_up"] = row["tokens_per_second"] / sorted(speeds)[1]
        total = row["seconds"]["total"]
        shares = ", ".join(f"{name} {100 * value / total:.1f} %" for name, value in row["seconds"].items())
        print(
            f"{row['verifier']:17} K={row['num_drafts']}  {row['tokens_per_second']:.0f} tokens per second, "
            f"{row['speed_up']:.2f} times plain; {row['block_efficiency']:.2f} tokens per call; {shares}"
        )
    return {
        "parameters": pair.num_parameters,
        "tokens": tokens,
        "prompts": len(prompts),
        "plain_tokens_per_second": speeds,
        "rows": rows,
    }


if __name__ == "__main__":
    main()
