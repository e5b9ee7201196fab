"""All verifiers on SmolLM2: every paired difference, the sampled bound beside them, and whole texts.

1. At every token of one text per prompt, written by the target, all verifiers judge the same drafts.  The
   differences of all pairs of lossless verifiers have intervals clustered by prompt.
2. At every eighth token of the same texts: the upper bound on all verifiers from scores with a cap
   (``bounds.on_path_scores``) beside ``scored_multipath`` on the same drafts.  The cap of each
   half of the prompts is chosen on the other half.  There too: how far verifiers deviate from the target
   (``smollm2_laws``).
3. Over whole texts every verifier writes its own, so that drafts are not common.

The prompts are the 64 bundled ones, pieces of code, then those of ``study.py`` and of
``smollm2_prompts.jsonl``: 256 of code, prose and chat.  With ``--code`` they are pieces of the standard
library of Python behind the bundled ones.  Half-widths fall with the number of prompts far more than with
the length of their texts.  Each part is kept in ``--folder`` as soon as it is finished, and the same command
goes on from there.

Run: ``spectheory models fetch smollm2`` and ``OMP_NUM_THREADS=1 PYTHONPATH=. python benchmarks/smollm2.py``.
"""

import json
import time
from collections.abc import Iterator
from itertools import chain, combinations
from pathlib import Path
from sysconfig import get_path
from typing import Any

import click
import numpy as np
import torch
from continuations import continued
from scipy.stats import t as student_t
from smollm2_laws import CorrectsFromTarget, deviation
from study import PROMPTS as STUDY_PROMPTS
from timing import machine, write

from figures.common.measured import Measurement
from spectheory.models import LanguageModelPair, bundled_prompts, read_prompts
from spectheory.models.drafting import draft_and_score
from spectheory.optima.bounds.on_path_scores import sampled_path_scores
from spectheory.pairs.drafts import Iid
from spectheory.simulation import simulate
from spectheory.simulation.common_texts import CommonTextSource, TargetTexts
from spectheory.simulation.estimates import clustered
from spectheory.simulation.settings import SimulationSettings
from spectheory.verification.algorithms import verifiers
from spectheory.verification.resolve import find_verifier

LOSSLESS = [
    "token", "block", "naive_sampling", "multi_round", "spectr", "traversal", "greedy_multipath",
    "mixed_multipath", "scored_multipath",
]  # fmt: skip
LOSSY = ["greedy_block", "spectr_gbv"]
JUDGED = [*LOSSLESS, *LOSSY, CorrectsFromTarget()]
"""Verifiers whose deviation from the target is measured."""
OVER_TEXTS = ["token", "block", "multi_round", "spectr", "traversal", "greedy_multipath", "scored_multipath"]
NUM_DRAFTS, DRAFT_LENGTH, CONFIDENCE = 4, 4, 0.95
CAPS = (1.5, 2.0, 2.5, 3.0, 4.0)
OTHER_PROMPTS = (STUDY_PROMPTS, Path(__file__).parent / "smollm2_prompts.jsonl")


@click.command()
@click.option("--target", default="smollm2", help="As in spectheory simulate.")
@click.option("--draft", default="target:29-layers", help="As in spectheory simulate.")
@click.option("--code", is_flag=True, help="Behind the bundled prompts, pieces of Python's standard library.")
@click.option("--prompts", default=256, help="The first N prompts only.")
@click.option("--tokens", default=16, help="The length of the texts.")
@click.option("--bound-every", default=8, help="The bound is sampled at every N-th token.")
@click.option("--text-prompts", default=32, help="Prompts of the part over whole texts.")
@click.option("--text-tokens", default=32, help="Their length.")
@click.option("--folder", default=Path("build/smollm2"), type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Where to write the numbers as JSON.")
def main(
    target: str,
    draft: str,
    code: bool,
    prompts: int,
    tokens: int,
    bound_every: int,
    text_prompts: int,
    text_tokens: int,
    folder: Path,
    out: Path | None,
) -> None:
    """Print the three parts as JSON."""
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    pair = LanguageModelPair.load(target, draft, device="cpu")
    others = (
        dict.fromkeys(library_pieces()) if code else chain.from_iterable(map(read_prompts, OTHER_PROMPTS))
    )
    texts = [*bundled_prompts(), *others][:prompts]
    shared = {"drafts": NUM_DRAFTS, "draft_length": DRAFT_LENGTH, "max_prompt_tokens": 32, "threads": 1}
    common = shared | {"max_new_tokens": tokens, "common_texts": True}
    found: dict[str, Any] = {
        "settings": {"target": target, "draft": draft, "code": code, "prompts": len(texts), "tokens": tokens}
        | {"num_drafts": NUM_DRAFTS, "draft_length": DRAFT_LENGTH, "max_prompt_tokens": 32, "seed": 0}
        | {"confidence": CONFIDENCE},
        "machine": machine(),
    }
    start = time.process_time()
    found["common_texts"] = _differences(pair, texts, common | {"checkpoint": folder / "common_texts"})
    found["cpu_seconds"] = {"common_texts": time.process_time() - start}
    kept = folder / "bound.json"
    if not kept.is_file():
        start = time.process_time()
        sampled = _at_texts(pair, texts, SimulationSettings(**common), bound_every)
        bound = _bound(sampled) | {"every": bound_every}
        write(kept, bound | {"cpu_seconds": time.process_time() - start})
    found["bound"] = json.loads(kept.read_text(encoding="utf-8"))
    start = time.process_time()
    some = texts[:: max(1, len(texts) // text_prompts)][:text_prompts]
    over = simulate(
        pair, some, OVER_TEXTS, max_new_tokens=text_tokens, jobs=1,
        checkpoint=folder / "whole_texts", **shared,
    )  # fmt: skip
    found["whole_texts"] = {"prompts": len(some), "tokens": text_tokens, "rows": _rows(over)}
    found["cpu_seconds"]["whole_texts"] = time.process_time() - start
    click.echo(json.dumps(found, indent=1))
    if out is not None:
        write(out, found)
        paired_gains(found).write("smollm2")


def library_pieces() -> Iterator[str]:
    """Of every source of the standard library, the first function behind its middle: 160 characters."""
    library = Path(get_path("stdlib"))
    for file in sorted(library.rglob("*.py")):
        source = file.read_text(encoding="utf-8", errors="ignore")
        start = source.find("\ndef ", len(source) // 2) + 1
        if start and not {"site-packages", "test", "tests", "idlelib", "lib2to3"} & {*file.parts}:
            yield source[start : start + 160]


def paired_gains(found: dict[str, Any]) -> Measurement:
    """Tokens per call and the gains over block verification, for the figure of this name."""
    settings = found["settings"]
    texts = f"{settings['prompts']} prompts, texts of {settings['tokens']} tokens"
    models = f"{settings['target']} with the draft {settings['draft']}"
    return Measurement(
        "OMP_NUM_THREADS=1 PYTHONPATH=. python benchmarks/smollm2.py --out FILE",
        f"{models}, K = {NUM_DRAFTS}, L = {DRAFT_LENGTH}, {texts}, {found['machine']['processor']}",
        ("verifier", "lossless", "tokens_per_call", "gain", "low", "high"),
        [
            (row["verifier"], row["lossless"], row["block_efficiency"][0], *(row["gain"] or [0.0] * 3))
            for row in found["common_texts"]["rows"]
        ],
    )


def _differences(pair: LanguageModelPair, texts: list[Any], settings: dict[str, Any]) -> dict[str, Any]:
    """The means, and the difference of every pair of lossless verifiers.

    The first run draws; the others take what it kept, and compare with another verifier.
    """
    runs = {
        name: simulate(pair, texts, [*LOSSLESS, *LOSSY], against=name, jobs=1, **settings)
        for name in LOSSLESS
    }
    gains = {
        (entry.verifier, name): (entry.gain, *entry.gain_interval)
        for name, run in runs.items()
        for entry in run.estimates
        if entry.gain_interval is not None
    }
    listed = {f"{two} - {one}": _rounded(gains[two, one]) for one, two in combinations(LOSSLESS, 2)}
    halves = {name: round((high - low) / 2, 4) for name, (_, low, high) in listed.items()}
    widest = max(halves, key=lambda name: halves[name])
    return {
        "rows": _rows(runs["block"]),
        "differences": listed,
        "largest_half_width": {"of": widest, "tokens": halves[widest]},
    }


def _rows(run: Any) -> list[dict[str, Any]]:
    return [
        {
            "verifier": entry.verifier,
            "lossless": entry.lossless,
            "block_efficiency": _rounded((entry.block_efficiency, *entry.interval)),
            "gain": None if entry.gain is None else _rounded((entry.gain, *(entry.gain_interval or ()))),
            "draws": entry.samples,
        }
        for entry in run.estimates
    ]


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 4) for value in values]


def _at_texts(
    pair: LanguageModelPair,
    prompts: list[Any],
    settings: SimulationSettings,
    every: int,
) -> dict[str, np.ndarray]:
    """At every N-th token of texts of the target, on the same drafts.

    Returns:
        "scores": max_k ĉ(X^k) by cap, [prompts, tokens, caps]; "earned": by ``scored_multipath``, [prompts,
        tokens];
        "deviations" of ``JUDGED``, [prompts, tokens, verifiers]; "counted": whether the text went
        on until there, [prompts, tokens].
    """
    source = CommonTextSource(pair, prompts, Iid(NUM_DRAFTS), settings)
    parts = []
    for batch in range(len(source.strata_per_batch)):
        texts, generator, rows = TargetTexts(source, batch), pair.generator(settings.seed + 2 + batch), []
        nothing = torch.zeros((texts.prefilled.num_prompts, 1, 0), dtype=torch.int64)
        for token in range(source.max_new_tokens):
            found = {}
            if token % every == every // 2:
                drafted = draft_and_score(texts.prefilled, NUM_DRAFTS, DRAFT_LENGTH, generator)
                arrays = drafted.paths, drafted.target_rows, drafted.draft_rows
                behind = continued(texts.prefilled, drafted, generator)
                scores = [sampled_path_scores(*arrays, behind, cap).amax(-1) for cap in CAPS]
                deviations = [
                    deviation(find_verifier(name).bind(source.process).outcome(*arrays), *arrays, generator)
                    for name in JUDGED
                ]
                found = {
                    "scores": torch.stack(scores, dim=-1),
                    "earned": verifiers["scored_multipath"].outcome(*arrays).expected_tokens(),
                    "deviations": torch.stack(deviations, dim=-1),
                }
            logits = texts.prefilled.target.follow(texts.prefilled.texts, nothing, first=0)[:, 0, 0]
            texts.prefilled.draft.follow(texts.prefilled.texts, nothing, first=0)
            counted = texts.write(torch.softmax(pair.logits(logits).to(pair.probs_dtype), dim=-1), 0)
            if found:
                rows.append(found | {"counted": counted})
        parts.append({name: torch.stack([row[name] for row in rows], dim=1) for name in rows[0]})
        click.echo(f"bound: batch {batch + 1} of {len(source.strata_per_batch)}", err=True)
    return {name: torch.cat([part[name] for part in parts]).numpy() for name in parts[0]}


def _bound(found: dict[str, np.ndarray]) -> dict[str, Any]:
    """Means over the contexts with two-sided intervals clustered by prompt."""
    counted, earned = found["counted"], found["earned"]
    half_of = np.arange(len(counted)) % 2
    sums = [(found["scores"] * counted[..., None])[half_of == half].sum(axis=(0, 1)) for half in (0, 1)]
    chosen = [int(sums[1 - half].argmin()) for half in (0, 1)]
    scores = np.where(half_of[:, None], *(found["scores"][..., chosen[half]] for half in (1, 0)))

    def mean(values: np.ndarray) -> list[float]:
        value, error = clustered((values * counted).sum(axis=1), counted.sum(axis=1))
        half = error * float(student_t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))
        return _rounded((value, value - half, value + half))

    return {
        "caps": [CAPS[cap] for cap in chosen],
        "contexts": int(counted.sum()),
        "bound": mean(scores),
        "scored_multipath": mean(earned),
        "left": mean(scores - earned),
        "deviations": {
            getattr(name, "name", name): mean(found["deviations"][..., number])
            for number, name in enumerate(JUDGED)
        },
    }


if __name__ == "__main__":
    main()
