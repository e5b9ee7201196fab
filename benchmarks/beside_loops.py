"""What compiled loops, selection and memos save: CPU time before and after, in turns in one process.

Each case runs on one thread.  "before" is the same code with the new way switched off, or what stood there;
"beside" is a yardstick.  Results are compared first, those of a loop written by hand too; exit status 1 where
they differ.  At the end stand exponents in V, K and the number of texts, fitted to the times of this run.

- ``round``: ``outcome()`` and one ``sample()`` of verifiers without a sort, with torch alone and with numbers
  of numpy beside rows of torch.  Beside ``token`` and ``block`` stands a loop by hand that does the whole
  round and reads rows once, beside the others a copy
- ``scored``: the same of scored selection, with torch alone and with its loops
- ``decode``: milliseconds per token behind one prompt, beside assisted generation of transformers
- ``sort``: ``outcome()`` and one ``sample()`` of verifiers that sort rows, with torch's sort and with the
  radix sort of ``row_kernels``, beside a copy of the target's rows into memory that is there
- ``coarse``: the same in the ranking by the first bits of p/q, whose classes are summed without a sort
- ``half``: the same on rows in bfloat16, beside a round on float32
- ``select``: the 50 most likely tokens, and the order of all as for top-p, by torch's stable sort and by
  ``most_likely``, beside a copy
- ``laws``: exact laws, optima, and what a new process pays first (``laws_and_optima.py``)

Without ``--only`` everything is measured, and a table says of each goal what a loop costs, what was measured
before the work on it, and what it is now.

    PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/beside_loops.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

import laws_and_optima
import numpy as np
import torch
from timing import argument_parser, exit_status, machine, median_seconds, write

from spectheory.foundation.kernels import choice
from spectheory.models.sampling import most_likely
from spectheory.optima.bounds.rankings import coarse_ratio_ranking
from spectheory.pairs.drafts import Iid
from spectheory.verification.algorithms import verifiers
from spectheory.verification.algorithms.path_selection import score_couplings
from spectheory.verification.algorithms.path_selection.greedy_multipath import GreedyMultipath
from spectheory.verification.algorithms.path_selection.mixed_multipath import MixedMultipath

ROUNDS = (
    ("token", 1, ((32_000, 1), (32_000, 8), (32_000, 32))),
    ("block", 1, ((32_000, 1), (32_000, 8), (32_000, 32), (8_192, 8), (128_256, 8), (262_144, 8))),
    ("greedy_block", 1, ((32_000, 1), (32_000, 8))),
    ("multi_round", 4, ((32_000, 1), (32_000, 8), (128_256, 1), (8_192, 8), (128_256, 8), (262_144, 8))),
    ("traversal", 4, ((32_000, 1), (32_000, 8), (128_256, 1), (8_192, 8), (128_256, 8), (262_144, 8))),
    ("multi_round", 2, ((32_000, 8),)),
    ("multi_round", 8, ((32_000, 8),)),
    ("traversal", 2, ((32_000, 8),)),
    ("traversal", 8, ((32_000, 8),)),
    ("scored_multipath", 4, ((32_000, 1), (32_000, 8), (8_192, 8), (128_256, 8))),
    ("scored_multipath", 2, ((32_000, 8),)),
    ("scored_multipath", 8, ((32_000, 8),)),
)
"""Verifier, K, (V, texts); four drafted tokens, float32."""
SHAPES = ((32_000, 1, 4), (32_000, 8, 4), (128_256, 1, 4), (128_256, 8, 4), (8_192, 8, 2), (262_144, 1, 8))
"""V, batch size and K; four drafted tokens, float32."""
NAMES = ("greedy_multipath", "mixed_multipath", "spectr")
COARSE = {
    "greedy_multipath": GreedyMultipath(coarse_ratio_ranking),
    "mixed_multipath": MixedMultipath(ranking=coarse_ratio_ranking),
}


def round_of(
    name: str,
    vocab_size: int,
    batch_size: int,
    num_drafts: int,
    dtype: torch.dtype = torch.float32,
    read_as: torch.dtype | None = None,
    known: Mapping[str, Any] = verifiers,
) -> tuple[Callable[[], Any], Any]:
    """A round on random rows of a type, which can be read as another one, and what it is given."""
    generator = torch.Generator().manual_seed(0)

    def rows(depths: int) -> torch.Tensor:
        logits = 2 * torch.randn(batch_size, num_drafts, depths, vocab_size, generator=generator)
        found = logits.softmax(-1).to(dtype).to(read_as or dtype)
        found[:, :, 0] = found[:, :1, 0]  # all paths begin at one context
        return found

    target, draft = rows(5), rows(4)
    paths = torch.randint(vocab_size, (batch_size, num_drafts, 4), generator=generator)
    verifier = known[name].bind(Iid(num_drafts))

    def run() -> list[Any]:
        drawn = verifier.outcome(paths, target, draft).sample(torch.Generator().manual_seed(1))
        return [drawn.path_index.tolist(), drawn.length.tolist(), drawn.token.tolist()]

    return run, (paths, target, draft)


def by_hand(name: str, given: Any) -> Callable[[], Any]:
    """``token`` or ``block`` on one path as one compiled loop, with the same random numbers."""
    paths, target, draft = (array[:, 0].numpy() for array in given)

    def run() -> list[Any]:
        generator = torch.Generator().manual_seed(1)
        shape = (len(paths), 1)
        coins = [torch.rand(shape, generator=generator, dtype=torch.float64).numpy() for _ in range(2)]
        lengths, tokens = np.empty(len(paths), np.int64), np.empty(len(paths), np.int64)
        whole_round()(paths, target, draft, *coins, name == "block", lengths, tokens)
        return [[0] * len(paths), lengths.tolist(), tokens.tolist()]

    return run


@cache
def whole_round() -> Any:
    """Rows are read once; what a library would add is left out: no checks, no law, nothing but the draw."""
    import numba

    @numba.njit(fastmath={"reassoc"})
    def residual(target: Any, draft: Any, weight: float, out: Any) -> float:
        total = np.float32(0)
        for x in range(len(target)):
            excess = weight * target[x] - draft[x]
            out[x] = excess if excess > 0 else np.float32(0)
            total += out[x]
        return total

    @numba.njit(fastmath={"reassoc"})
    def copied(target: Any, out: Any) -> float:
        total = 0.0  # 262 144 numbers of single precision lose too much in a sum of the same
        for x in range(len(target)):
            out[x] = target[x]
            total += out[x]
        return total

    @numba.njit(fastmath={"reassoc"})
    def mass(target: Any, draft: Any, weight: float) -> float:
        total = np.float32(0)
        for x in range(len(target)):
            excess = weight * target[x] - draft[x]
            total += excess if excess > 0 else np.float32(0)
        return total

    @numba.njit
    def run(
        paths: Any,
        target: Any,
        draft: Any,
        for_stop: Any,
        for_token: Any,
        block: bool,
        lengths: Any,
        tokens: Any,
    ) -> None:
        batch, length = paths.shape
        size = target.shape[-1]
        weights, stops = np.ones(length + 1, np.float32), np.empty(length + 1)
        accept, row = np.empty(length + 1, np.float32), np.empty(size, np.float32)
        for n in range(batch):
            for i in range(length):
                x = paths[n, i]
                ratio = target[n, i, x] / draft[n, i, x]
                weights[i + 1] = min(np.float32(1), (weights[i] if block else np.float32(1)) * ratio)
            stops[:] = 0
            if block:
                accept[0] = 1
                for i in range(1, length):
                    s = mass(target[n, i], draft[n, i], weights[i])
                    accept[i] = s / (1 - weights[i] + s)
                accept[length] = weights[length]
                longer = 1.0
                for i in range(length, -1, -1):
                    stops[i] = longer * accept[i]
                    longer *= 1 - accept[i]
            else:
                reached = 1.0
                for i in range(length):
                    stops[i] = reached * (1 - weights[i + 1])
                    reached *= weights[i + 1]
                stops[length] = reached
            left, stop = for_stop[n, 0] * stops.sum(), 0
            while stop < length and left >= stops[stop]:
                left -= stops[stop]
                stop += 1
            if stop == length:
                total = copied(target[n, length], row)
            else:
                total = residual(
                    target[n, stop], draft[n, stop], weights[stop] if block else np.float32(1), row
                )
            left, token = for_token[n, 0] * total, 0
            while token < size - 1 and left >= row[token]:
                left -= row[token]
                token += 1
            lengths[n], tokens[n] = stop, token

    return run


@contextmanager
def switched_off(module: Any, constant: str) -> Any:
    """What is worth it from this size on is worth it nowhere."""
    usual = getattr(module, constant)
    setattr(module, constant, float("inf"))
    try:
        yield
    finally:
        setattr(module, constant, usual)


def without(run: Callable[[], Any], module: Any, constant: str) -> Callable[[], Any]:
    def run_without() -> Any:
        with switched_off(module, constant):
            return run()

    return run_without


def with_torch_alone(run: Callable[[], Any]) -> Callable[[], Any]:
    """No number is numpy's where rows are torch's, and no context drops out of the cuts."""

    def run_alone() -> Any:
        with ExitStack() as stack:
            for name in ("rows_for_loops", "plain_on_host"):
                stack.enter_context(patch.object(choice, name, lambda *arrays: False))
            stack.enter_context(patch.object(score_couplings, "_going_on", lambda weight: None))
            stack.enter_context(patch.object(choice, "DRAW_WORTH_A_LOOP", 1 / 8))
            return run()

    return run_alone


def copy_of(rows: torch.Tensor) -> Callable[[], Any]:
    room = torch.empty_like(rows)
    return lambda: room.copy_(rows)


def cases() -> Any:
    """(what, shape, before, after, beside), functions without arguments; ``beside`` may be missing."""
    for name, num_drafts, shapes in ROUNDS:
        for vocab_size, batch_size in shapes:
            shape = vocab_size, batch_size, num_drafts
            run, given = round_of(name, *shape)
            beside = by_hand(name, given) if name in ("token", "block") else copy_of(given[1])
            kind = "scored" if name == "scored_multipath" else "round"
            yield f"{kind}: {name}", shape, with_torch_alone(run), run, beside
    for name in ("token", "block"):
        run, _ = round_of(name, 32_000, 8, 1, torch.bfloat16)
        beside, _ = round_of(name, 32_000, 8, 1)
        yield f"half: {name}", (32_000, 8, 1), with_torch_alone(run), run, beside
    for name in NAMES:
        for shape in SHAPES:
            run, given = round_of(name, *shape)
            yield f"sort: {name}", shape, without(run, choice, "SORT_WORTH_A_LOOP"), run, copy_of(given[1])
    for name in COARSE:
        for shape in SHAPES:
            run, given = round_of(name, *shape, known=COARSE)
            yield f"coarse: {name}", shape, without(run, choice, "SORT_WORTH_A_LOOP"), run, copy_of(given[1])
    for name in NAMES:
        for shape in SHAPES[:2]:
            run, _ = round_of(name, *shape, torch.bfloat16)
            beside, _ = round_of(name, *shape)
            yield f"half: {name}", shape, without(run, choice, "SORT_WORTH_A_LOOP"), run, beside
    for vocab_size, batch_size, _ in SHAPES[1:4:2]:
        scores = torch.randn(batch_size, vocab_size, generator=torch.Generator().manual_seed(0)).double()
        for count in (50, vocab_size):
            yield (
                f"select: {'top-k' if count == 50 else 'top-p'}",
                (vocab_size, batch_size, 1),
                lambda scores=scores, count=count: (
                    scores.sort(dim=-1, descending=True, stable=True).indices[..., :count]
                ).tolist(),
                lambda scores=scores, count=count: most_likely(scores, count).tolist(),
                copy_of(scores),
            )


def decoding() -> dict[str, Callable[[], int]]:
    """Decode 48 tokens behind each of four prompts, one after the other; returns the number of tokens."""
    from spectheory.decoding import decode
    from spectheory.models import LanguageModelPair, bundled_prompts

    pair = LanguageModelPair.load("bundled", "bundled", device="cpu")
    prompts = [pair.encode(text)[:40] for text in bundled_prompts()][:4]
    settings = pair.draft_model.generation_config
    settings.num_assistant_tokens, settings.num_assistant_tokens_schedule = 8, "constant"
    settings.assistant_confidence_threshold = 0.0

    def ours(verifier: str) -> int:
        texts = decode(pair, prompts, verifier, draft_length=8, max_new_tokens=48, batch_size=1)
        return sum(len(text.token_ids) for text in texts)

    def theirs() -> int:
        torch.manual_seed(0)
        found = 0
        for prompt in map(torch.tensor, prompts):
            ids = prompt[None]
            text = pair.target_model.generate(
                ids, attention_mask=torch.ones_like(ids), assistant_model=pair.draft_model, do_sample=True,
                top_k=0, max_new_tokens=48, pad_token_id=0,
            )  # fmt: skip
            found += text.shape[1] - ids.shape[1]
        return found

    return {"token": lambda: ours("token"), "block": lambda: ours("block"), "transformers": theirs}


def exponents(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The slope of log time in the log of each size, of the cases that differ in that size alone."""
    sizes = ("V", "texts", "K")
    slopes = []
    for what in dict.fromkeys(row["what"] for row in found):
        rows = [(tuple(row["sizes"]), row["after_ms"]) for row in found if row["what"] == what]
        for place, size in enumerate(sizes):
            groups: dict[Any, list[Any]] = {}
            for shape, milliseconds in rows:
                groups.setdefault(shape[:place] + shape[place + 1 :], []).append((shape[place], milliseconds))
            group = max(groups.values(), key=len)
            if len(group) > 2:
                slope = np.polyfit(*np.log(group).T, 1)[0]
                slopes.append({"what": what, "in": size, "from": len(group), "exponent": round(slope, 2)})
    return slopes


GOALS = (
    # work, beside, what was measured before, asked, (what, shape, number) of this run
    (
        "greedy_multipath, V = 128 256, 8 texts",
        "copy",
        "47",
        "12",
        ("sort: greedy_multipath", "128256 × 8 × 4"),
    ),
    ("mixed_multipath, the same", "copy", "92", "22", ("sort: mixed_multipath", "128256 × 8 × 4")),
    ("spectr, the same", "copy", "14", "6", ("sort: spectr", "128256 × 8 × 4")),
    ("block, 1 text", "loop", "30", "4", ("round: block", "32000 × 1 × 1")),
    ("block, 8 texts", "loop", "3.4", "1.5", ("round: block", "32000 × 8 × 1")),
    ("block, 32 texts", "loop", "1.4", "1.2", ("round: block", "32000 × 32 × 1")),
    ("traversal, 1 text", "copy", "21", "5", ("round: traversal", "32000 × 1 × 4")),
    ("multi_round, 1 text", "copy", "13", "5", ("round: multi_round", "32000 × 1 × 4")),
    ("scored_multipath, 1 text", "copy", "340", "60", ("scored: scored_multipath", "32000 × 1 × 4")),
    ("scored_multipath, 8 texts", "copy", "73 to 100", "15", ("scored: scored_multipath", "32000 × 8 × 4")),
    ("block in bfloat16", "float32", "2", "1", ("half: block", "32000 × 8 × 1")),
    ("greedy_multipath in bfloat16", "float32", "2", "1", ("half: greedy_multipath", "32000 × 8 × 4")),
    ("law of greedy_multipath", "memo", "58 to 110", "3", ("greedy law", "V = 3, L = 4, K = 2")),
    ("law of block", "walk", "1.7 to 6.3", "1.5", ("law", "V = 4, L = 5")),
    ("certify of block", "walk", "4 to 12", "3", ("certify", "V = 4, L = 5")),
    ("optimum, L = 16, seconds", "", "63", "", ("tree, 1e-6", "V = 2, L = 16")),
    ("context-free, one path, L = 120, seconds", "", "", "", ("one path", "V = 2, L = 120")),
    ("first optimum, no cache, seconds", "", "3.5 more", "1 more", ("first optimum", "cache: empty")),
    ("first optimum, cached, seconds", "", "", "1 more", ("first optimum", "cache: full")),
    ("decode with token, 1 text", "transformers", "1.36", "1", ("decode", "token")),
    ("decode with block, 1 text", "transformers", "1.19", "1", ("decode", "block")),
)
"""Ratios of CPU time, but where seconds are said."""


def table(found: dict[tuple[str, str], float]) -> list[dict[str, Any]]:
    """The goals, with the number of this run."""
    columns = ("work", "beside", "before", "asked")
    return [{**dict(zip(columns, goal, strict=False)), "now": round(found[goal[-1]], 3)} for goal in GOALS]


def main() -> int:
    parser = argument_parser(__doc__)
    parser.add_argument("--only", default="", help="cases whose names start so, with commas between")
    given = parser.parse_args()
    asked = tuple(given.only.split(","))
    torch.set_num_threads(1)
    found, complaints = [], list[str]()
    for what, shape, before, after, beside in cases():
        if not what.startswith(asked):
            continue
        right = before
        if what in ("half: token", "half: block"):
            # torch's operators round residuals to half precision, and the loops do not: a round on the same
            # rows in single precision draws the same.
            right, _ = round_of(what.removeprefix("half: "), *shape, torch.bfloat16, torch.float32)
        if right() != after():
            complaints.append(f"{what}, {shape}: the two ways give different results")
        if what in ("round: token", "round: block") and beside() != after():
            complaints.append(f"{what}, {shape}: the loop by hand gives different results")
        runs = {"before": before, "after": after} | ({} if beside is None else {"beside": beside})
        seconds = median_seconds(runs, given.repeats, time.process_time)
        row: dict[str, Any] = {"what": what, "shape": " × ".join(map(str, shape)), "sizes": list(shape)}
        row |= {f"{name}_ms": round(1e3 * value, 3) for name, value in seconds.items()}
        row["before_to_after"] = round(seconds["before"] / seconds["after"], 2)
        if beside is not None:
            row["after_to_beside"] = round(seconds["after"] / seconds["beside"], 2)
        found.append(row)
        print(*(f"{key} {value}" for key, value in row.items()), sep=", ", flush=True)
    document: dict[str, Any] = {"machine": machine(), "repeats": given.repeats, "results": found}
    document["exponents"] = exponents(found)
    numbers = {
        (row["what"], row["shape"]): row["after_to_beside"] for row in found if "after_to_beside" in row
    }
    if "laws".startswith(asked):
        document["laws"] = list(laws_and_optima.rows(given.repeats, complaints))
        document["exponents"] += laws_and_optima.exponents(document["laws"])
        for row in document["laws"]:
            numbers[row["what"], row["shape"]] = row.get("to_beside", row["seconds"])
            if "certify_to_beside" in row:
                numbers["certify", row["shape"]] = row["certify_to_beside"]
        print("simulate, wall seconds:", seconds)
    if "decode".startswith(asked):
        runs = decoding()
        tokens = {name: run() for name, run in runs.items()}
        seconds = median_seconds(runs, given.repeats, time.process_time)
        each = document["decode"] = {name: round(1e3 * seconds[name] / tokens[name], 2) for name in runs}
        print("milliseconds per token:", each)
        numbers |= {("decode", name): each[name] / each["transformers"] for name in ("token", "block")}
    if not given.only:
        document["table"] = table(numbers)
        for row in document["table"]:
            print(*(f"{key} {value}" for key, value in row.items() if value != ""), sep=", ")
    for slope in document["exponents"]:
        print(*(f"{key} {value}" for key, value in slope.items()), sep=", ")
    write(given.out, document)
    return exit_status(complaints)


if __name__ == "__main__":
    sys.exit(main())
