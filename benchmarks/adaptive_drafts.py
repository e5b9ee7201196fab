"""Draft defects of length rules on the bundled models, and laws of texts: exact and by Monte Carlo.

    python -m benchmarks.adaptive_drafts --texts 2000 --out benchmarks/results/adaptive_drafts.md

The models are restricted to the likeliest tokens after a prompt.  δ and the law of the first three tokens of
a text, over several calls, are computed from the enumerated rows.  The texts are decoded with the models'
own caches.  Both share the verifier and the rule only.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from scipy.stats import chi2

from spectheory.exact.iteration import first_tokens_law
from spectheory.models import LanguageModelPair, Restriction, restrict
from spectheory.models.device import cpu_threads
from spectheory.models.drafting import draft_and_score, prefill
from spectheory.pairs.drafts import Iid, Shortened, draft_defect
from spectheory.verification.length_rules import DroppedAsRejected, WithLengthRule

TOKENS, DRAFT_LENGTH, NEW_TOKENS, LIKELY = 3, 2, 3, 0.3
"""m, L, the tokens of a text, and the probability below which a drafted token is unlikely."""
PROMPT = "import os\n"
FEWEST = 5.0
"""Outcomes with a smaller expected number are one cell of the test."""


def before_unlikely(tokens: Sequence[int], rows: Any) -> int:
    """Drop the first unlikely token, and all after it."""
    return [*[bool(row[token] < LIKELY) for token, row in zip(tokens, rows, strict=True)], True].index(True)


RULES: dict[str, Callable[[Any, Any], int]] = {
    "drop the first unlikely token": before_unlikely,
    "keep it and stop after it": lambda tokens, rows: min(len(tokens), 1 + before_unlikely(tokens, rows)),
    "all or nothing": lambda tokens, rows: len(tokens) * (before_unlikely(tokens, rows) == len(tokens)),
    "verify a token if the next is likely": lambda tokens, rows: max(0, before_unlikely(tokens, rows) - 1),
}


def decoded(
    models: LanguageModelPair, prompt: list[int], kept: Restriction, verifier: Any, texts: int, seed: int
) -> Counter[tuple[int, ...]]:
    """Count the first tokens of texts, numbered 0..m-1.  Texts that agree so far are decoded together."""
    generator, bound = models.generator(seed), verifier.bind(Iid(1))
    waiting, done = Counter({(): texts}), Counter[tuple[int, ...]]()
    while waiting:
        text = min(waiting)
        count = min(waiting[text], 500)
        waiting -= Counter({text: count})
        ids = [*prompt, *(kept.token_ids[token] for token in text)]
        drafted = draft_and_score(
            prefill(models, [ids] * count), 1, DRAFT_LENGTH, generator, restriction=kept
        )
        outcome = bound.outcome(drafted.paths, drafted.target_rows, drafted.draft_rows).sample(generator)
        for path, length, token in zip(drafted.paths[:, 0], outcome.length, outcome.token, strict=True):
            longer = (*text, *path[: int(length)].tolist(), int(token))[:NEW_TOKENS]
            (done if len(longer) == NEW_TOKENS else waiting)[longer] += 1
    return done


def fit(counts: Counter[tuple[int, ...]], law: Any, texts: int) -> tuple[float, int, float]:
    """Test counts of texts against a law: χ², degrees of freedom and the p-value."""
    cells = product(range(TOKENS), repeat=NEW_TOKENS)
    found = [(counts[cell], float(prob) * texts) for cell, prob in zip(cells, law, strict=True)]
    common = [cell for cell in found if cell[1] >= FEWEST]
    rare = [cell for cell in found if cell[1] < FEWEST]
    common += [(sum(n for n, _ in rare), sum(x for _, x in rare))] if rare else []
    squares = sum((n - x) ** 2 / x for n, x in common if x > 0)
    return squares, len(common) - 1, float(chi2.sf(squares, len(common) - 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=2_000)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    models = LanguageModelPair.load("bundled", "bundled", device="cpu")
    lines = [
        f"Every row has {asked.texts} texts of {NEW_TOKENS} tokens after {PROMPT!r}, L = {DRAFT_LENGTH}, "
        f"m = {TOKENS}. Tokens are unlikely below {LIKELY}. Seeds are 1, 2, ... in the order of the rows. "
        f"`python -m benchmarks.adaptive_drafts --texts {asked.texts}`",
        "",
        "A text has several calls, so its error can exceed δ, which is about one call.",
        "",
        "| rule | verifier | δ | total variation of texts | χ² from this law | degrees | p "
        "| χ² from the target | degrees | p |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    repair = {"repair B": lambda row: row * 0 + (row >= LIKELY)}
    seed = 0
    with cpu_threads(1):
        prompt = models.encode(PROMPT)
        kept = Restriction.at_prompt(models, prompt, TOKENS)
        pair = restrict(models, prompt, kept, DRAFT_LENGTH + NEW_TOKENS - 1)
        for name, way in [*RULES.items(), *repair.items()]:
            for base in ("token", "block"):
                is_rule, seed = name in RULES, seed + 1
                verifier: Any = (
                    WithLengthRule(base, way, allow_lossy=True) if is_rule else DroppedAsRejected(base, way)
                )
                exact = first_tokens_law(verifier, pair, NEW_TOKENS, draft_length=DRAFT_LENGTH)
                counts = decoded(models, prompt, kept, verifier, asked.texts, seed)
                tests = [fit(counts, law, asked.texts) for law in (exact.law, exact.target)]
                delta = (
                    float(draft_defect(Shortened(1, way), pair.truncate(DRAFT_LENGTH)).total_variation)
                    if is_rule
                    else 0.0
                )
                lines.append(
                    f"| {name} | {base} | {delta:.4f} | {float(exact.total_variation):.4f} | "
                    + " | ".join(f"{squares:.1f} | {degrees} | {p:.2g}" for squares, degrees, p in tests)
                    + " |"
                )
                print(lines[-1], flush=True)
    if asked.out is not None:
        asked.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
