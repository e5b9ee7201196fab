"""The exact law of every released sampler beside draws of the same code with numbers of its own.

    PYTHONPATH=. python benchmarks/audit_sampled.py [SAMPLES] [CACHE] [SAMPLER ...]

One drafted path of a pair of three tokens with unequal residuals, two drafted tokens, or three where block
verification starts there; where a library drafts as well, its drafts are drawn too.  Draws come from the
generators of torch; kernels run in the same interpreter.  Every draw has a seed of its own, so that the draws
are independent whatever a call leaves to the next one.

Prints a Markdown table: the p-value of a χ² test of the draws against the law that the audit computes, and
against that law after a tenth of the mass has moved from the likeliest output to the others, which a test of
this size sees.  Where boxes are undecided the law is known within bounds: then the p-value is that of the
output that is the furthest outside of its bounds, times the number of bounds, and a tenth more is moved than
the bounds allow.
"""

import sys
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import binom, chisquare

from audits.forms.drafted import Drafted
from audits.registry import SUBJECTS, load_subject
from spectheory import instances
from spectheory.auditing.following.triton_kernels import interpreting
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.pairs.contexts import prefix_numbers, rows_along
from spectheory.pairs.pair import ModelPair

DRAFT_LENGTHS = {"vllm-ascend-block": 3}
"""Of samplers that verify token by token below; the others are given two drafted tokens."""
BOX_BITS = 12
"""So finely are products of three random numbers enclosed, on the one path that is looked at."""


class Drawn(NamedTuple):
    """What is compared.

    Attributes:
        law: of the outcomes that ``draw`` makes, off by no more than ``undecided`` in each of them.
        draw: one outcome, given a seed.
    """

    law: Mapping[Hashable, Fraction]
    undecided: Fraction
    draw: Callable[[int], Hashable]


def verified(sampler: Shipped, pair: ModelPair) -> Drawn:
    """The tokens given the path of zeros."""
    paths = np.zeros((1, pair.draft_length), dtype=int)
    prefixes = prefix_numbers(paths, pair.vocab_size)
    rows = rows_along(pair.target, prefixes), rows_along(pair.draft, prefixes)
    sampler.box_bits = BOX_BITS  # read where random numbers are multiplied
    call = sampler.on_drafts(paths, *rows)
    return Drawn(*sampler.follow(call, ()), sampler.by_seed(call, ()))


def drafted_and_verified(sampler: Drafted, pair: ModelPair) -> Drawn:
    """The drafts and the tokens."""
    told, measured = sampler.prepared(pair)
    law: dict[Hashable, Fraction] = {}
    undecided = Fraction(0)
    for leaf, prob in enumerate(measured.draft_path_probs(pair.draft_length)):
        if prob:
            paths = np.array([pair.context(pair.draft_length, leaf)])
            prefixes = prefix_numbers(paths, pair.vocab_size)
            rows = rows_along(pair.target, prefixes), rows_along(told.reported, prefixes)
            masses, undecided_here = told.follow(told.on_drafts(paths, *rows), ())
            undecided += prob * undecided_here
            law |= {(tuple(paths[0]), output): prob * mass for output, mass in masses.items()}
    generate = sampler.generator_of(pair)

    def draw(seed: int) -> Hashable:
        drafts, logits = generate()
        paths = np.array([drafts])
        target = rows_along(pair.target, prefix_numbers(paths, pair.vocab_size))
        call = sampler.on_drafts(paths, target, logits.softmax(-1).double().numpy()[None])
        return tuple(drafts), sampler.by_seed(call, ())(seed)

    return Drawn(law, undecided, draw)


def p_value(counts: np.ndarray, probs: np.ndarray, undecided: float) -> float:
    """Of a χ² test; of one binomial test per bound where the probabilities are off by up to ``undecided``."""
    if not undecided:
        return float(chisquare(counts, probs / probs.sum() * counts.sum()).pvalue)
    few = binom.cdf(counts, counts.sum(), np.clip(probs - undecided, 0, 1))
    many = binom.sf(counts - 1, counts.sum(), np.clip(probs + undecided, 0, 1))
    return float(min(1.0, 2 * len(probs) * min(few.min(), many.min())))


def main() -> None:
    """One row per sampler."""
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    cache = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    print(
        "| sampler | draws | law off by up to | p-value | of a law off by 1/10 more |\n|---|---|---|---|---|"
    )
    for name in sys.argv[3:] or [each for each, subject in SUBJECTS.items() if subject.in_all]:
        sampler = load_subject(name, cache)
        pair = instances.two_residual_tokens(DRAFT_LENGTHS.get(name, 2))
        both = isinstance(sampler, Drafted)
        law, undecided, draw = (drafted_and_verified if both else verified)(sampler, pair)
        torch.manual_seed(0)
        seeds = np.random.default_rng(0).integers(2**29, size=samples)
        with interpreting():
            counts = Counter(draw(int(seed)) for seed in seeds)
        outcomes = [outcome for outcome, mass in law.items() if samples * mass >= 1]
        observed = np.array([counts[outcome] for outcome in outcomes])
        exact = np.array([float(law[outcome]) for outcome in outcomes])
        moved = 0.1 + float(undecided)
        off = exact + moved / (len(exact) - 1)
        off[exact.argmax()] = exact.max() - moved
        found, control = (p_value(observed, probs, float(undecided)) for probs in (exact, off))
        print(f"| `{name}` | {samples} | {float(undecided):.2g} | {found:.2g} | {control:.2g} |", flush=True)


if __name__ == "__main__":
    main()
