"""Where the time of the decoding loop goes, and its speed against plain decoding in the same run.

CPU seconds on one thread, bundled pair, a batch of prompts: forward passes of the target and of the draft
model, rows (from logits to probabilities, and drawing the drafts from them), verification (the verifier's
answer and the drawing from it), and the loop itself, which is the rest.

    PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/decoding_speed.py
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from timing import machine

from spectheory.decoding import decode
from spectheory.models import LanguageModelPair, bundled_prompts, drafting, reading
from spectheory.outcome import Outcome
from spectheory.paper.measured import Measurement
from spectheory.resolve import find_verifier

TOKENS, DRAFT_LENGTH = 48, 8
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
    pair: LanguageModelPair, prompts: list[Any], verifier: str, num_drafts: int
) -> dict[str, Any]:
    """One run of the loop: its seconds by part, and what it decoded."""
    seconds: Seconds = defaultdict(float)

    def side(model: Any, *_: Any) -> str:
        return "target" if model is pair.target_model else "draft"

    kind = type(find_verifier(verifier))
    with (
        timed(reading, "run_model", seconds, side),
        timed(drafting, "_rows", seconds, lambda *_: "rows"),
        timed(drafting, "_draw", seconds, lambda *_: "rows"),
        timed(kind, "outcome", seconds, lambda *_: "verification"),
        timed(Outcome, "sample", seconds, lambda *_: "verification"),
    ):
        start = time.process_time()
        texts = decode(
            pair, prompts, verifier, num_drafts=num_drafts, draft_length=DRAFT_LENGTH, max_new_tokens=TOKENS,
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


def plain(pair: LanguageModelPair, prompts: list[list[int]]) -> float:
    """Tokens per second of transformers' own sampling from the target."""
    start, ids = time.process_time(), torch.tensor(prompts)
    found = pair.target_model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=True,
        max_new_tokens=TOKENS,
        top_k=0,
        pad_token_id=0,
    )
    return found[:, ids.shape[1] :].numel() / (time.process_time() - start)


def main(sizes: tuple[int, ...] = (1, 32)) -> None:
    """Print a line per verifier and size of the batch and write them to results/."""
    torch.set_num_threads(1)
    pair = LanguageModelPair.load("bundled", "bundled", device="cpu")
    documents = [measured(pair, [pair.encode(text)[:40] for text in bundled_prompts()[:n]]) for n in sizes]
    path = Path(__file__).parent / "results" / "decoding_speed-epyc-2core.json"
    path.write_text(json.dumps(documents, indent=2) + "\n", encoding="utf-8")
    walltimes(documents[-1]).write("walltimes")


def walltimes(document: dict[str, Any]) -> Measurement:
    """Milliseconds per token and the share of every part, for the exhibit ``whole_texts``."""
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


def measured(pair: LanguageModelPair, prompts: list[list[int]]) -> dict[str, Any]:
    """Plain decoding and every verifier on one batch."""
    decode(pair, prompts[:2], max_new_tokens=4)  # warm
    plain(pair, prompts[:2])
    speeds = [plain(pair, prompts) for _ in range(3)]
    rows = [speculative(pair, prompts, *wanted) for wanted in WANTED]
    print(f"{len(prompts)} prompts: plain decoding {sorted(speeds)[1]:.0f} tokens per second")
    for row in rows:
        row["speed_up"] = row["tokens_per_second"] / sorted(speeds)[1]
        total = row["seconds"]["total"]
        shares = ", ".join(f"{name} {100 * value / total:.0f} %" for name, value in row["seconds"].items())
        print(
            f"{row['verifier']:17} K={row['num_drafts']}  {row['tokens_per_second']:.0f} tokens per second, "
            f"{row['speed_up']:.2f} times plain; {row['block_efficiency']:.2f} tokens per call; {shares}"
        )
    return {"tokens": TOKENS, "prompts": len(prompts), "plain_tokens_per_second": speeds, "rows": rows}


if __name__ == "__main__":
    main()
