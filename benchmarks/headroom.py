"""What is left to any lossless verifier on language models at full vocabulary.

Every lossless verifier that decodes from i.i.d. drafts, on the same drafts behind the bundled prompts, and
beside them the upper bound on all verifiers from scores with a cap (``bounds.on_path_scores``).  The cap is
chosen on other drafts.  The continuations come from the target, one for each prefix: the mean of eight
lowers the bound by a thousandth only.

- The standard error of a mean is that over drafts behind these prompts.
- A difference is taken draft by draft; its interval has one cluster per prompt, and so speaks of other
  prompts too.
- ``--recoupled`` measures what recoupling adds to scored selection, draft by draft, and what is left above it
  up to the bound, in place of the other verifiers.
- ``otm`` solves a transport program at every context and gets fewer of the drafts; its difference is taken
  on these.

Run: ``OMP_NUM_THREADS=1 python benchmarks/headroom.py --draft-length 4 --out benchmarks/results/mine.json``.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import torch
from continuations import continued
from scipy.stats import t as student_t
from timing import machine, write

from spectheory.models import LanguageModelPair, bundled_prompts
from spectheory.models.drafting import draft_and_score, prefill
from spectheory.optima.bounds import sampled_bound
from spectheory.optima.bounds.on_path_scores import Continuations, sampled_path_scores
from spectheory.simulation.estimates import clustered, stratified
from spectheory.verification.algorithms import verifiers
from spectheory.verification.algorithms.recoupling_gain import recoupling_gain

OTHERS = (
    "token",
    "block",
    "multi_round",
    "otm",
    "spectr",
    "traversal",
    "greedy_multipath",
    "mixed_multipath",
)
SCORED, RECOUPLED = "scored_multipath", "scored_multipath recoupled"
CAPS = (0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0)
PROMPTS_AT_ONCE = 16


@click.command()
@click.option("--target", default="bundled", help="As in spectheory simulate.")
@click.option("--draft", default="bundled", help="As in spectheory simulate.")
@click.option("--num-drafts", "drafts", multiple=True, default=(2, 3, 4), type=int)
@click.option("--draft-length", "length", default=4)
@click.option("--prompts", default=64, help="How many of the bundled prompts.")
@click.option("--draws", default=80, help="Tuples of drafts per prompt; an eighth as many choose the cap.")
@click.option("--otm-draws", default=1, help="Of these, how many otm gets; slow over a large vocabulary.")
@click.option("--recoupled", is_flag=True, help="Only what recoupling adds, beside the bound.")
@click.option("--seed", default=5)
@click.option("--out", type=click.Path(path_type=Path), help="Where to write the numbers as JSON.")
def main(
    target: str,
    draft: str,
    drafts: tuple[int, ...],
    length: int,
    prompts: int,
    draws: int,
    otm_draws: int,
    recoupled: bool,
    seed: int,
    out: Path | None,
) -> None:
    """Print one JSON object per number of drafts."""
    torch.set_num_threads(1)
    pair = LanguageModelPair.load(target, draft, device="cpu")
    texts = bundled_prompts()[:prompts]
    settings = {"target": target, "draft": draft, "draft_length": length}
    settings |= {"prompts": len(texts), "draws": draws, "seed": seed}
    names = (SCORED, RECOUPLED) if recoupled else (*OTHERS, SCORED)
    rows = _beside_the_bound(pair, texts, drafts, length, draws, otm_draws, seed, names)
    settings |= {"otm_draws": otm_draws, "caps": CAPS}
    for row in rows:
        click.echo(json.dumps(row))
    write(out, {"settings": settings, "rows": rows, "machine": machine()})


def _beside_the_bound(
    pair: LanguageModelPair,
    texts: list[str],
    drafts: tuple[int, ...],
    length: int,
    draws: int,
    otm_draws: int,
    seed: int,
    names: tuple[str, ...],
) -> list[dict[str, Any]]:
    every_cap = dict.fromkeys(drafts, CAPS)
    fitting = _measure(pair, texts, every_cap, length, max(1, draws // 8), None, seed + 1)
    best = {
        number: (CAPS[int(np.argmin([fitting.maxima[number, cap].mean() for cap in CAPS]))],)
        for number in drafts
    }
    fresh = _measure(pair, texts, best, length, draws, otm_draws, seed, names)
    return [_row(fitting, fresh, number, best[number][0], length) for number in drafts]


class Measured(NamedTuple):
    """What was found on some drafts, by number of drafts.

    Attributes:
        earned: (K, verifier) -> E[τ+1 | drafts], [draws, prompts].
        maxima: (K, cap) -> max_k ĉ(X^k), [draws, prompts].
    """

    earned: dict[tuple[int, str], np.ndarray]
    maxima: dict[tuple[int, float], np.ndarray]


def _measure(
    pair: LanguageModelPair,
    texts: list[str],
    caps: dict[int, tuple[float, ...]],
    length: int,
    draws: int,
    otm_draws: int | None,
    seed: int,
    names: tuple[str, ...] = (),
) -> Measured:
    """The bounds of these caps, by number of drafts, and what the verifiers earn."""
    generator = pair.generator(seed)
    earned, maxima = defaultdict(list), defaultdict(list)
    prefilled = [
        prefill(pair, texts[start : start + PROMPTS_AT_ONCE])
        for start in range(0, len(texts), PROMPTS_AT_ONCE)
    ]
    for draw in range(draws):
        for some in prefilled:
            batch = draft_and_score(some, max(caps), length, generator)
            behind = continued(some, batch, generator) if any(caps.values()) else ()
            for number in caps:
                first = batch.paths[:, :number], batch.target_rows[:, :number], batch.draft_rows[:, :number]
                for name in names:
                    if name == RECOUPLED:  # behind scored selection
                        earned[number, name].append(earned[number, SCORED][-1] + _gains(*first))
                    elif name != "otm" or draw < (otm_draws or 0):
                        found = verifiers[name].outcome(*first).expected_tokens()
                        earned[number, name].append(found.numpy())
                for cap in caps[number]:
                    parts = Continuations(*(array[:, :number] for array in behind))
                    maxima[number, cap].append(sampled_path_scores(*first, parts, cap).amax(-1).numpy())
        click.echo(f"L = {length}: {draw + 1} of {draws}", err=True)

    def by_draw(parts: list[np.ndarray]) -> np.ndarray:
        return np.concatenate(parts).reshape(-1, len(texts))

    return Measured(*({key: by_draw(parts) for key, parts in found.items()} for found in (earned, maxima)))


def _gains(*drafted: torch.Tensor) -> np.ndarray:
    """What recoupling adds to scored selection, the mean over the last tokens given those before them."""
    tuples = zip(*(array.numpy() for array in drafted), strict=True)
    return np.array([recoupling_gain(verifiers[SCORED], *one) for one in tuples])


def _row(fitting: Measured, fresh: Measured, number: int, cap: float, length: int) -> dict[str, Any]:
    """All that is said of one number of drafts."""
    scored, values = fresh.earned[number, SCORED], fresh.maxima[number, cap]
    candidates = fitting.maxima[number, cap].reshape(-1, 1)
    bound = sampled_bound(candidates, values.reshape(-1, 1), [cap], length)
    found = {}
    for own_number, name in fresh.earned:
        if own_number != number:
            continue
        own = fresh.earned[number, name]
        difference, error = _clustered(scored[: len(own)] - own)
        half = error * student_t.ppf(0.975, own.shape[1] - 1)
        found[name] = {
            "mean": own.mean(),
            "standard_error": _standard_error(own) if len(own) > 1 else None,
            "scored_is_ahead_by": difference,
            "interval": [difference - half, difference + half],
            "tuples": own.size,
        }
    row = {
        "draft_length": length,
        "num_drafts": number,
        "verifiers": found,
        "bound": bound._asdict() | {"standard_error_on_these_prompts": _standard_error(values)},
        "headroom": _left(values, scored, bound.confidence),
    }
    if RECOUPLED in found:
        row["headroom_recoupled"] = _left(values, fresh.earned[number, RECOUPLED], bound.confidence)
    return row


def _left(values: np.ndarray, earned: np.ndarray, confidence: float) -> dict[str, float]:
    """What the bound leaves above a verifier on the same drafts."""
    left, error = _clustered(values - earned)
    most = left + error * student_t.ppf(confidence, earned.shape[1] - 1)
    return {
        "tokens": left,
        "standard_error": error,
        "relative": left / earned.mean(),
        "at_most": most,
        "relative_at_most": most / earned.mean(),
        "confidence": confidence,
    }


def _clustered(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard error, the draws behind one prompt being one cluster.  [draws, prompts]"""
    return clustered(values.sum(axis=0), np.full(values.shape[1], float(len(values))))


def _standard_error(values: np.ndarray) -> float:
    """Of the mean over draws behind these prompts, [draws, prompts]."""
    return stratified(values.sum(axis=0), (values**2).sum(axis=0), len(values))[1]


if __name__ == "__main__":
    main()
