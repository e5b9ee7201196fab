"""Scored selection: how many exact laws are lossless, and what is left to any verifier on language models.

- ``certify``: exact output laws of ``scored_multipath``, of the family's other rules and of ``traversal`` on
  random rational pairs with zeros, ties and equal rows; every one must have total variation 0.
- ``table``: the exhibit ``frontier`` with 30 pairs per cell and drafts of up to 4 tokens.
- ``models``: verifiers on the bundled models at full vocabulary, all on the same drafts, beside the upper
  bound on every valid verifier from scores with a cap (``bounds.on_path_scores``).  The cap is chosen on
  other drafts.  The continuations come from the target.

Run: ``python benchmarks/scored_selection.py certify`` or ``... models --out benchmarks/results/mine.json``.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from timing import machine

from spectheory.algorithms import verifiers
from spectheory.algorithms.path_selection.score_couplings import intervals, tilted_cuts
from spectheory.algorithms.path_selection.score_levels import lazy_levels, proportional_levels
from spectheory.algorithms.path_selection.scored_multipath import ScoredMultipath
from spectheory.bounds import sampled_bound, sampled_path_scores
from spectheory.bounds.on_path_scores import Continuations
from spectheory.instances import NAMED, random_rational
from spectheory.law import output_law
from spectheory.pair import ModelPair
from spectheory.paper import frontier

if TYPE_CHECKING:
    import torch

    from spectheory.models.drafting import DraftedBatch
    from spectheory.models.language_model import LanguageModelPair

NAMES = ("block", "spectr", "greedy_multipath", "mixed_multipath", "scored_multipath")
CAPS = (0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5)
SMALL = ((2, 1), (2, 2), (3, 1))
SHAPES = ((2, 1), (2, 2), (2, 3), (2, 4), (3, 1), (3, 2), (3, 3), (4, 1), (4, 2))


@click.group()
def main() -> None:
    """Measure scored selection."""


# ------------------------------------------------------------------------------- exact laws


@main.command()
@click.option("--seeds", default=12, help="Random pairs of every shape and number of drafts.")
@click.option("--most-tuples", default=4000, help="Larger enumerations are left out.")
def certify(seeds: int, most_tuples: int) -> None:
    """Count exact laws, and fail if one of them is not lossless."""
    rules = {
        "scored_multipath": ScoredMultipath(),
        "lazy levels": ScoredMultipath(lazy_levels, tilted_cuts),
        "proportional levels": ScoredMultipath(proportional_levels, tilted_cuts),
        "intervals": ScoredMultipath(coupling=intervals),
        "traversal": verifiers["traversal"],
    }
    for name, rule in rules.items():
        laws, lossy = 0, []
        pairs = _pairs(seeds if name == "scored_multipath" else max(1, seeds // 6), most_tuples)
        for where, pair, drafts in itertools.chain(pairs, _small_pairs(35 * seeds)):
            laws += 1
            if output_law(rule, pair, drafts).total_variation != 0:
                lossy.append(where)
        click.echo(f"{name}: {laws} exact laws, {len(lossy)} not lossless {lossy[:3] or ''}")
        if lossy:
            raise SystemExit(1)


def _pairs(seeds: int, most_tuples: int) -> Iterator[tuple[str, ModelPair, int]]:
    for name, drafts in itertools.product(NAMED, (1, 2, 3, 4)):
        yield f"{name} K={drafts}", NAMED[name](1), drafts
    for (size, length), drafts, seed in itertools.product(SHAPES, (2, 3, 4), range(seeds)):
        leaves = size**length
        multisets = np.prod([(leaves + i) / (i + 1) for i in range(drafts)])
        if multisets <= most_tuples:
            pair = random_rational([81, size, length, drafts, seed], size, length, equal_row_probability=0.3)
            yield f"V={size} L={length} K={drafts} seed={seed}", pair, drafts


def _small_pairs(count: int) -> Iterator[tuple[str, ModelPair, int]]:
    """Many pairs that cost little, with zeros of both models."""
    for seed in range(count):
        (size, length), drafts = SMALL[seed % len(SMALL)], 2 + seed % 2
        pair = random_rational([82, seed], size, length, zero_probability=0.3, equal_row_probability=0.2)
        yield f"V={size} L={length} K={drafts} small seed={seed}", pair, drafts


# ------------------------------------------------------------------------------- random pairs


@main.command()
@click.option("--pairs", default=30, help="Random pairs per cell.")
@click.option("--out", type=click.Path(path_type=Path), help="Where to write the table as CSV.")
def table(pairs: int, out: Path | None) -> None:
    """The table of ``paper.frontier`` with more pairs and longer drafts, and its checks."""
    found = frontier(draft_lengths=(2, 3, 4), num_pairs=pairs)
    text = found.tables[0].to_csv()
    click.echo(text)
    if out is not None:
        out.write_text(text, encoding="utf-8")
    if not found.passed:
        raise SystemExit("\n".join(found.failures))


# ------------------------------------------------------------------------- language models


@main.command()
@click.option("--num-drafts", "drafts", multiple=True, default=(2, 3, 4), type=int)
@click.option("--draft-length", "lengths", multiple=True, default=(4, 8), type=int)
@click.option("--prompts", default=32, help="How many of the bundled prompts.")
@click.option("--draws", default=16, help="Tuples of drafts per prompt; a quarter as many choose the cap.")
@click.option("--seed", default=5)
@click.option("--out", type=click.Path(path_type=Path), help="Where to write the numbers as JSON.")
def models(
    drafts: tuple[int, ...], lengths: tuple[int, ...], prompts: int, draws: int, seed: int, out: Path | None
) -> None:
    """Block efficiencies and the upper bound on the bundled models, all tokens allowed."""
    import torch

    from spectheory.models import LanguageModelPair, bundled_prompts

    torch.set_num_threads(1)
    pair = LanguageModelPair.load("bundled", "bundled", device="cpu")
    texts = bundled_prompts()[:prompts]
    rows: list[dict[str, Any]] = []
    for length in lengths:
        fitting, _ = _measure(pair, texts, drafts, length, max(1, draws // 4), seed + 1)
        fresh, earned = _measure(pair, texts, drafts, length, draws, seed)
        for number in drafts:
            bound = sampled_bound(fitting[number], fresh[number], CAPS, length)
            scored = earned[number]["scored_multipath"]
            left = fresh[number][:, CAPS.index(bound.cap)] - scored
            row = {"draft_length": length, "num_drafts": number, "samples": bound.samples}
            for name, values in earned[number].items():
                row |= {name: values.mean(), f"{name}_error": values.std(ddof=1) / len(values) ** 0.5}
            row |= {"bound": bound._asdict(), "headroom": left.mean() / scored.mean()}
            row["headroom_error"] = left.std(ddof=1) / len(left) ** 0.5 / scored.mean()
            rows.append(row)
            click.echo(json.dumps(row, default=float))
    if out is not None:
        settings = {"prompts": len(texts), "draws": draws, "seed": seed, "caps": CAPS}
        document = {"settings": settings, "rows": rows, "machine": machine()}
        out.write_text(json.dumps(document, indent=1, default=float) + "\n", encoding="utf-8")


def _measure(
    pair: LanguageModelPair, texts: list[str], drafts: tuple[int, ...], length: int, draws: int, seed: int
) -> tuple[dict[int, np.ndarray], dict[int, dict[str, np.ndarray]]]:
    """max_k ĉ by number of drafts, [tuples, caps], and E[τ+1 | drafts] by verifier, [tuples]."""
    from spectheory.models import draft_and_score, prefill

    generator = pair.generator(seed)
    maxima: dict[int, list[np.ndarray]] = {number: [] for number in drafts}
    earned: dict[int, dict[str, list[np.ndarray]]] = {n: {name: [] for name in NAMES} for n in drafts}
    for start in range(0, len(texts), 8):
        some = texts[start : start + 8]
        prefilled = prefill(pair, some)
        for _ in range(draws):
            batch = draft_and_score(prefilled, max(drafts), length, generator)
            behind = continuations(pair, some, batch, generator)
            for number in drafts:
                first = (batch.paths[:, :number], batch.target_rows[:, :number], batch.draft_rows[:, :number])
                for name in NAMES:
                    earned[number][name].append(verifiers[name].outcome(*first).expected_tokens().numpy())
                parts = Continuations(*(array[:, :number] for array in behind))
                scores = [sampled_path_scores(*first, parts, cap).amax(-1).numpy() for cap in CAPS]
                maxima[number].append(np.stack(scores, axis=-1))
    joined = {n: {name: np.concatenate(v) for name, v in by_name.items()} for n, by_name in earned.items()}
    return {n: np.concatenate(parts) for n, parts in maxima.items()}, joined


def continuations(
    pair: LanguageModelPair, texts: list[str], batch: DraftedBatch, generator: torch.Generator
) -> Continuations:
    """One continuation by the target of every prefix of every drafted path.

    The target drafts and the draft model scores: the same route with the models exchanged.
    """
    import torch

    from spectheory.models import draft_and_score, prefill
    from spectheory.models.prompts import encode_prompts

    exchanged = replace(pair, target_model=pair.draft_model, draft_model=pair.target_model)
    prompts = encode_prompts(pair, texts, draft_length=0)
    size, number, length, vocab = batch.draft_rows.shape
    tokens = torch.zeros((size, number, length, length - 1), dtype=torch.int64)
    rows = batch.draft_rows.new_zeros((2, size, number, length, length - 1, vocab))
    for depth in range(length - 1):
        steps = length - 1 - depth
        prefixes = batch.token_ids[:, :, :depth].reshape(size * number, depth).tolist()
        read = [[*prompts[i // number], *prefix] for i, prefix in enumerate(prefixes)]
        drawn = draft_and_score(prefill(exchanged, read), 1, steps + 1, generator)
        tokens[:, :, depth, :steps] = drawn.paths[:, 0, :steps].reshape(size, number, steps)
        for side, found in enumerate((drawn.draft_rows, drawn.target_rows)):
            kept = found[:, 0, 1 : steps + 1].reshape(size, number, steps, vocab)
            rows[side, :, :, depth, :steps] = kept
    return Continuations(tokens, rows[0], rows[1])


if __name__ == "__main__":
    main()
