"""Losslessness on SmolLM2: exact laws of real rows on few tokens, and deviations at full vocabulary.

*Exact laws.*  Behind texts that the target writes, every context keeps the 6 likeliest tokens of the target
and a rest, the sum of all others.  Behind the rest the text goes on with the 7th likeliest token.  These
pairs of 7 tokens have exact laws.  A lossless verifier is off by rounding alone, in total variation.

*Optima.*  On the same pairs: the mean tokens per call of every verifier, exactly, beside the optimum of all
verifiers on the same drafts, and what as many likeliest nodes of the draft's tree earn.

*Deviations.*  At full vocabulary let g(x | a) = 1 where the draft model says x more often than the target,
and behind L tokens where x is the target's likeliest token.  The output of a lossless verifier, continued by
the target, follows the target, so that

    E Σ_{i ≤ τ+1} ( g(Y_i | Y_{<i}) - Σ_x p(x | Y_{<i}) g(x | Y_{<i}) ) = 0.

``deviation`` is the mean of this sum over the correction token, and over the accepted prefix but for its last
term.  It measures how much more often than the target a verifier says what the draft model prefers.

Run: ``OMP_NUM_THREADS=1 PYTHONPATH=. python benchmarks/smollm2_laws.py --out FILE``.  Exit
status 1 if a lossless verifier is off, or a wrong verifier is not.
"""

import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from timing import exit_status, machine, write

from spectheory.exact.law import output_law
from spectheory.foundation.arrays import Array, take_path, take_row, take_token
from spectheory.models import LanguageModelPair, bundled_prompts
from spectheory.optima import optimum
from spectheory.pairs.drafts import ConfidenceTree, Iid
from spectheory.pairs.pair import ModelPair
from spectheory.simulation.common_texts import CommonTextSource, TargetTexts
from spectheory.simulation.settings import SimulationSettings
from spectheory.verification.algorithms import verifiers
from spectheory.verification.outcome import Outcome

KEPT, TOLERANCE = 6, 1e-6
LIKELIEST = "likeliest nodes"
ONE_PATH = ("token", "block")
LOSSLESS = (
    *ONE_PATH, "naive_sampling", "multi_round", "spectr", "otm", "traversal", "greedy_multipath",
    "mixed_multipath", "scored_multipath",
)  # fmt: skip
SHAPES = ((1, 1), (1, 2), (1, 3), (2, 1), (2, 2))
"""(L, K)."""
OPTIMA = ((1, 2), (1, 4), (2, 2), (2, 3))
"""(L, K) of the means beside the optimum."""


class CorrectsFromTarget:
    """Not lossless: ``token`` with its correction token from the target's row, not from the residual."""

    name = "corrects_from_target"

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        found = verifiers["token"].outcome(paths, target_rows, draft_rows)
        return Outcome(found.stop_probs, lambda path, length: take_row(take_path(target_rows, path), length))


def deviation(outcome: Outcome, paths: Array, target_rows: Array, draft_rows: Array, generator: Any) -> Array:
    """The mean of the sum above given the drafts and one sampled stop.  [B, K, L], .. -> [B]"""
    likeliest = torch.nn.functional.one_hot(target_rows[:, :, -1].argmax(-1), target_rows.shape[-1])
    preferred = draft_rows > target_rows[:, :, :-1]
    preferred = torch.cat([preferred, likeliest[:, :, None].bool()], dim=2)  # g, [B, K, L+1, V]
    means = (target_rows * preferred).sum(-1)
    terms = take_token(preferred[:, :, :-1].to(means.dtype), paths) - means[..., :-1]
    accepted = torch.nn.functional.pad(terms.cumsum(-1), (1, 0))  # over the first i tokens, [B, K, L+1]
    stop = outcome.sample_stop(generator)
    rows = outcome.correction(stop.path_index, stop.length)
    here = take_row(take_path(preferred, stop.path_index), stop.length)
    last = (rows * here).sum(-1) - take_row(take_path(means[..., None], stop.path_index), stop.length)[..., 0]
    return (outcome.stop_probs * accepted).sum((1, 2)) + last


def restricted_pairs(
    pair: LanguageModelPair, settings: SimulationSettings, prompts: list[Any], length: int, contexts: int
) -> list[ModelPair]:
    """Pairs of 7 tokens at the first contexts of texts that the target writes, text after text in turn."""
    source, found = CommonTextSource(pair, prompts, Iid(1), settings), []
    for batch in range(len(source.strata_per_batch)):
        texts = TargetTexts(source, batch)
        for _ in range(contexts // len(prompts)):
            pairs, root = _pairs(pair, texts.prefilled, length)
            found += pairs
            texts.write(root, 0)
        click.echo(f"L = {length}: {len(found)} of {contexts} contexts", err=True)
    return found


def _pairs(pair: LanguageModelPair, prefilled: Any, length: int) -> tuple[list[ModelPair], torch.Tensor]:
    """The pairs behind the texts of a batch, and the target's rows behind them, [B, V]."""

    def rows(reading: Any, paths: torch.Tensor) -> torch.Tensor:
        logits = reading.follow(prefilled.texts, paths, first=0)[:, :, -1]
        return torch.softmax(pair.logits(logits).to(torch.float64), dim=-1)

    size = prefilled.num_prompts
    paths, target_levels, draft_levels, root = torch.zeros((size, 1, 0), dtype=torch.int64), [], [], None
    for depth in range(length + 1):
        target = rows(prefilled.target, paths)
        root = target[:, 0] if root is None else root
        tokens = target.topk(KEPT + 1).indices  # [B, V^depth, 7], the last stands for the rest
        target_levels.append(_lumped(target, tokens))
        if depth < length:
            draft_levels.append(_lumped(rows(prefilled.draft, paths), tokens))
            before = paths[:, :, None].expand(-1, -1, KEPT + 1, -1)
            paths = torch.cat([before, tokens[..., None]], dim=-1).flatten(1, 2)
    # Both models read the last token again, alone, so that the texts can be lengthened behind it.
    for reading in (prefilled.target, prefilled.draft):
        reading.follow(prefilled.texts, paths[:, :1, :0], first=0)
    pairs = [
        ModelPair(
            tuple(level[text] for level in target_levels),
            tuple(level[text] for level in draft_levels),
            (*map(str, range(1, KEPT + 1)), "rest"),
        )
        for text in range(size)
    ]
    return pairs, root


def _lumped(rows: torch.Tensor, tokens: torch.Tensor) -> np.ndarray:
    """The probabilities of the first 6 tokens and of all others together.  [.., V], [.., 7] -> [.., 7]"""
    kept = rows.gather(-1, tokens[..., :KEPT])
    return torch.cat([kept, (rows.sum(-1) - kept.sum(-1))[..., None].clamp(min=0)], dim=-1).numpy()


def largest_deviations(pairs: list[ModelPair], length: int, num_drafts: int) -> dict[str, dict[str, Any]]:
    """By verifier: the largest total variation over the pairs, and on how many it exceeds the tolerance."""
    values = defaultdict(list)
    wrong = ["spectr_gbv", *(["greedy_block"] if length > 1 else [])] if num_drafts > 1 or length > 1 else []
    for name in (*LOSSLESS, *wrong, CorrectsFromTarget.name):
        verifier = CorrectsFromTarget() if name == CorrectsFromTarget.name else name
        if num_drafts > 1 and name in (*ONE_PATH, "greedy_block", CorrectsFromTarget.name):
            continue
        for one in pairs:
            values[name].append(float(output_law(verifier, one, num_drafts).total_variation))
    return {
        name: {
            "lossless": name in LOSSLESS,
            "largest": max(found),
            "beyond_tolerance": sum(value > TOLERANCE for value in found),
        }
        for name, found in values.items()
    }


def mean_tokens(pairs: list[ModelPair], num_drafts: int) -> dict[str, float]:
    """Tokens per target call by verifier, the mean over the pairs; the optimum; and the likeliest nodes."""
    found = defaultdict(list)
    likeliest = ConfidenceTree(num_drafts * pairs[0].draft_length, num_drafts)
    for one in pairs:
        for name in LOSSLESS:
            law = output_law(name, one, 1 if name in ONE_PATH else num_drafts)
            found[name].append(float(law.block_efficiency))
        found["optimum"].append(optimum(one, num_drafts).value_float)
        found[LIKELIEST].append(float(output_law("naive_sampling", one, likeliest).block_efficiency))
    return {name: float(np.mean(values)) for name, values in found.items()}


@click.command()
@click.option("--target", default="smollm2", help="As in spectheory simulate.")
@click.option("--draft", default="target:29-layers")
@click.option("--contexts", default=1024, help="At L = 1.")
@click.option("--contexts-of-two", default=1024, help="At L = 2, 57 rows of the target each.")
@click.option("--out", type=click.Path(path_type=Path), help="Where to write the numbers as JSON.")
def main(target: str, draft: str, contexts: int, contexts_of_two: int, out: Path | None) -> None:
    """Print a line per verifier, L and K."""
    torch.set_num_threads(1)
    pair, prompts = LanguageModelPair.load(target, draft, device="cpu"), bundled_prompts()
    settings = SimulationSettings(
        draft_length=2, max_new_tokens=64, common_texts=True, max_prompt_tokens=32, seed=2
    )
    rows, complaints, start = [], [], time.process_time()
    pairs = {
        length: restricted_pairs(pair, settings, prompts, length, number)
        for length, number in ((1, contexts), (2, contexts_of_two))
    }
    seconds = {"rows": time.process_time() - start}
    for length, num_drafts in SHAPES:
        start = time.process_time()
        for name, found in largest_deviations(pairs[length], length, num_drafts).items():
            shape = {"draft_length": length, "num_drafts": num_drafts, "contexts": len(pairs[length])}
            rows.append({"verifier": name} | shape | found)
            click.echo(rows[-1])
            if found["lossless"] == (found["beyond_tolerance"] > 0):
                complaints.append(f"{name}, L = {length}, K = {num_drafts}: {found}")
        seconds[f"laws, L = {length}, K = {num_drafts}"] = time.process_time() - start
    optima = [
        {"draft_length": length, "num_drafts": num_drafts, "contexts": len(pairs[length])}
        | {"tokens_per_call": mean_tokens(pairs[length], num_drafts)}
        for length, num_drafts in OPTIMA
    ]
    for row in optima:
        click.echo(row)
        earned = row["tokens_per_call"]
        above = max(LOSSLESS, key=lambda name: earned[name])
        if earned[above] > earned["optimum"] + TOLERANCE:
            complaints.append(f"{above} earns more than the optimum: {row}")
    document = {
        "settings": {"target": target, "draft": draft, "kept": KEPT, "tolerance": TOLERANCE},
        "machine": machine(), "cpu_seconds": seconds, "rows": rows, "optima": optima,
    }  # fmt: skip
    write(out, document)
    sys.exit(exit_status(complaints))


if __name__ == "__main__":
    main()
