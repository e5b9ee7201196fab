"""Which mistakes do the tests find that engines have for their verification?

    PYTHONPATH=. python benchmarks/engine_tests.py [--out FILE] [--repeats 2] [--table]

The protocols are written after the engines' test files as they were read in November 2026: rows, numbers of
draws, statistic and threshold, in our words.  They are favourable to the tests: draws and rows are exact, and
a unit test on one-hot rows counts as if the random path were the same code.  A mistake counts as found if the
test fails in every repetition.  Settings, masks and wide vocabularies are left out.
"""

import argparse
import json
import math
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import chi2 as chi2_law

import audits.specimens.batch_index_mistakes
import audits.specimens.batch_settings_mistakes  # noqa: F401  both add to MISTAKES
from audits.specimens.batch_engine import NOTHING, Array, BatchEngine, BatchRequest
from audits.specimens.batch_mistakes import BELOW_RESOLUTION, MISTAKES, PROFILES

RESULT = Path("benchmarks/results/engine_tests-xeon-2core.json")
POWERS = Path("benchmarks/results/conformance_power-xeon-2core.json")
SHARED = {
    "one_coin_per_batch": ("first", None, None),
    "one_coin_per_position": ("positions", None, None),
    "one_noise_per_batch": (None, "first", None),
    "one_bonus_noise": (None, None, "first"),
}
"""Mistakes that share numbers within a batch -> what trials share: accepting, correcting, bonus."""
OF_CALLS = ("seed_replayed", "seed_every_second", "seed_cycle_of_8", "seeds_by_request")
GROUPS = {
    "corrections": "correction_from_target",
    "acceptance": "accepts_q_over_p",
    "bonus": "bonus_squared",
    "rows read": "stale_correction",
    "random numbers": "coin_rejects_and_corrects",
    "tokens emitted": "bonus_always",
    "rows stored": "draft_truncated",
    "placeholders": "placeholder_is_last_token",
}
"""Group -> its first mistake, in the order of the list of mistakes."""
Passes = Callable[[type[BatchEngine], np.random.Generator], bool]


def softmax(logits: Array) -> Array:
    masses = np.exp(logits - logits.max())
    return masses / masses.sum()


def one_hot(token: int, size: int) -> Array:
    return np.eye(size)[token]


def trials(
    engine: type[BatchEngine],
    target: Sequence[Array],
    draft: Sequence[Array],
    calls: int,
    batch: bool,
    rng: Any,
) -> Array:
    """Answers [calls, n + 2] of a request whose drafts are drawn from the rows anew in every trial.

    Args:
        engine: under test.
        target, draft: n+1 and n rows, the same in all trials.
        calls: the number of trials.
        batch: whether all trials are requests of one call: numbers may be shared, and nothing is replayed.
        rng: of everything.
    """
    size, length = len(target[0]), len(draft)
    paths = np.stack([rng.choice(size, calls, p=row / row.sum()) for row in draft], 1)
    paths = paths[np.lexsort(paths.T)]
    kinds, counts = np.unique(paths, axis=0, return_counts=True)
    shared = rng.random((3, 1, length + 1))
    found = []
    for path, number in zip(kinds, counts, strict=True):
        own = _with_numbers(engine, batch, shared)(size, [BatchRequest(path.tolist(), target, draft)])
        found.append(own.run(int(number), rng)[:, 0])
    return np.concatenate(found)


def _with_numbers(engine: type[BatchEngine], batch: bool, shared: Array) -> type[BatchEngine]:
    """The engine with the numbers that it shares between the trials of one call, or replays between calls."""
    name = engine.__name__
    if batch and name in OF_CALLS:
        return type(name, (engine,), {"coins": BatchEngine.coins})  # one call: nothing is replayed
    if name in SHARED and batch:

        def coins(self: BatchEngine, rng: np.random.Generator, calls: int) -> Any:
            own = BatchEngine.coins(self, rng, calls)
            kinds = zip(own, SHARED[name], shared, strict=True)
            return tuple(
                each if kind is None else _broadcast(row[:, : None if kind == "positions" else 1], each)
                for each, kind, row in kinds
            )

        return type(name, (engine,), {"coins": coins})
    if name == "seed_replayed":  # every call starts anew, and every trial is a call

        def replayed(self: BatchEngine, rng: np.random.Generator, calls: int) -> Any:
            own = BatchEngine.coins(self, rng, calls)
            pairs = zip(own, shared, strict=True)
            return tuple(_broadcast(row, each) for each, row in pairs)

        return type(name, (engine,), {"coins": replayed})
    return engine


def _broadcast(row: Array, like: Array) -> Array:
    return np.broadcast_to(row[:, : like.shape[1]], like.shape)


def chi2_passes(tokens: Array, row: Array, most: Callable[[int], float]) -> bool:
    """A chi-squared test with cells of at least five expected tokens."""
    if not len(tokens):
        return True
    if ((tokens < 0) | (tokens >= len(row))).any():
        return False
    seen, expected = np.bincount(tokens, minlength=len(row)).astype(float), row * len(tokens)
    large = expected >= 5
    seen = np.append(seen[large], seen[~large].sum()) if expected[~large].sum() >= 5 else seen[large]
    if len(seen) < 2:
        return True
    rest = [expected[~large].sum()] if len(seen) > large.sum() else []
    expected = np.append(expected[large], rest)
    return bool(((seen - expected) ** 2 / expected).sum() < most(len(seen) - 1))


def distances_shrink(drafts: int) -> Passes:
    """vLLM, runner 1: the distance to the target falls 20 times as fast as that to random rows."""

    def passes(engine: type[BatchEngine], rng: Any) -> bool:
        size = 10
        q, p = softmax(rng.random(size)), softmax(rng.random(size))
        others = [softmax(rng.random(size)) for _ in range(100)]
        own, reference = [], []
        for calls in (10, 1000, 100_000):
            tokens = trials(engine, [p] * drafts + [one_hot(0, size)], [q] * drafts, calls, True, rng)[
                :, :drafts
            ]
            tokens = tokens[(tokens >= 0) & (tokens < size)]
            seen = np.bincount(tokens, minlength=size) / max(len(tokens), 1)
            own.append(float(np.linalg.norm(p - seen)))
            reference.append(float(np.mean([np.linalg.norm(row - seen) for row in others])))
        return own[0] / max(own[-1], 1e-12) > 20 * reference[0] / reference[-1]

    return passes


def chi2_of_positions(size: int, drafts: int, calls: int, deviations: float) -> Passes:
    """vLLM, runner 2: chi-squared of every position below its mean and some deviations."""

    def passes(engine: type[BatchEngine], rng: Any) -> bool:
        logits = rng.standard_normal(size)
        p, q = softmax(logits), softmax(-logits)
        out = trials(engine, [p] * (drafts + 1), [q] * drafts, calls, True, rng)
        columns = [out[out[:, i] != NOTHING, i] for i in range(drafts + 1)]
        return all(
            chi2_passes(own, p, lambda free: free + deviations * math.sqrt(2 * free)) for own in columns
        )

    return passes


def chi2_with_rows_of_their_own(engine: type[BatchEngine], rng: Any) -> bool:
    """DeepSpec: 20 000 calls, two drafts, rows that differ between positions, chi-squared at 1e-9."""
    p = [softmax(rng.standard_normal(8)) for _ in range(3)]
    q = [softmax(rng.standard_normal(8)) for _ in range(2)]
    out = trials(engine, p, q, 20_000, False, rng)
    columns = [out[out[:, i] != NOTHING, i] for i in range(3)]
    pairs = zip(columns, p, strict=True)
    return all(chi2_passes(own, row, lambda free: float(chi2_law.isf(1e-9 / 3, free))) for own, row in pairs)


def first_token_near(p: Sequence[float], q: Sequence[float], drafts: int, calls: int, most: float) -> Passes:
    """Ports: the frequencies of the first token differ by less than a number that was set by hand."""
    target, draft = np.array(p), np.array(q)

    def passes(engine: type[BatchEngine], rng: Any) -> bool:
        out = trials(engine, [target] * (drafts + 1), [draft] * drafts, calls, False, rng)[:, 0]
        if ((out < 0) | (out >= len(target))).any():
            return False
        return bool(abs(np.bincount(out, minlength=len(target)) / calls - target).max() < most)

    return passes


def exact_batches(*batches: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Passes:
    """Greedy unit tests: drafts and the target's tokens of each request; the answer is certain."""

    def passes(engine: type[BatchEngine], rng: Any) -> bool:
        for batch in batches:
            requests = [
                BatchRequest(drafts, [one_hot(t, 12) for t in tokens], [one_hot(x, 12) for x in drafts])
                for drafts, tokens in batch
            ]
            out = engine(12, requests).run(1, rng)[0]
            for (drafts, tokens), row in zip(batch, out, strict=True):
                agree = next((i for i, x in enumerate(drafts) if x != tokens[i]), len(drafts))
                if [t for t in row.tolist() if t != NOTHING] != list(tokens[: agree + 1]):
                    return False
        return True

    return passes


GREEDY = (
    [([1, 2, 3], [1, 2, 3, 4])], [([1, 2, 3], [1, 5, 3, 4])], [([1, 2], [1, 2, 5]), ([3], [3, 4])],
    [([1], [1, 2])], [([], [5])], [([1, 2, 3], [1, 2, 7, 6]), ([4, 5, 6], [4, 8, 6, 9])],
)  # fmt: skip
SAMPLED = softmax(np.array([0.2, 1.1, -0.4])).tolist(), softmax(np.array([1.4, -0.2, 0.3])).tolist()
PROTOCOLS: Mapping[str, Passes] = {
    "vLLM, runner 1, distribution (10 tokens, 2 drafts, 101 010 requests)": distances_shrink(2),
    "vLLM, runner 1, greedy unit tests (6 exact batches)": exact_batches(*GREEDY),
    "vLLM, runner 2 (16 tokens, 1 draft, 200 000 requests)": chi2_of_positions(16, 1, 200_000, 10),
    "DeepSpec (8 tokens, 2 drafts, 20 000 calls)": chi2_with_rows_of_their_own,
    "a port (2 tokens, 1 draft, 20 000 calls, 0.02)": first_token_near(
        [0.7, 0.3], [0.1, 0.9], 1, 20_000, 0.02
    ),
    "a port (3 tokens, 1 draft, 6 000 calls, 0.025)": first_token_near(*SAMPLED, 1, 6_000, 0.025),
    "a port (3 tokens, 4 drafts, 10 000 calls, 0.025)": first_token_near(*SAMPLED, 4, 10_000, 0.025),
}
"""What is tested -> (engine, generator) -> whether the test passes."""


def table(repeats: int) -> dict[str, Any]:
    """Protocol -> the mistakes that it finds, and whether the right engine passes."""
    names = [
        n
        for n in MISTAKES
        if PROFILES[n] in ("core", "precision", "placeholders") and n not in BELOW_RESOLUTION
    ]
    found: dict[str, Any] = {"mistakes": names}
    for title, passes in PROTOCOLS.items():
        seeds = range(repeats)
        right = all(passes(BatchEngine, np.random.default_rng(seed)) for seed in seeds)
        own = [
            n for n in names if not any(passes(MISTAKES[n], np.random.default_rng(seed)) for seed in seeds)
        ]
        found[title] = {"right_passes": right, "found": own}
        print(f"{title}: {len(own)} of {len(names)}; right engine passes: {right}", flush=True)
    return found


def group_sizes(names: Sequence[str], chosen: Container[str]) -> list[int]:
    """How many of the chosen mistakes are in each group; ``names`` are all, in their order."""
    starts = [names.index(first) for first in GROUPS.values()]
    ends = [*starts[1:], len(names)]
    return [sum(name in chosen for name in names[start:end]) for start, end in zip(starts, ends, strict=True)]


def page_table(stored: Mapping[str, Any], powers: Mapping[str, Any]) -> str:
    """The table of the page *What your test cannot see*.

    Args:
        stored: what ``table`` returned.
        powers: mistake -> its row of ``conformance_power.py``.
    """
    names = stored["mistakes"]
    rows = {title: set(own["found"]) for title, own in stored.items() if title != "mistakes"}
    rows["all of them together"] = set().union(*rows.values())
    rows["**the conformance suite**"] = {name for name in names if powers[name]["found"] >= 0.999}
    sizes = group_sizes(names, names)
    head = [f"{group} ({size})" for group, size in zip(GROUPS, sizes, strict=True)]
    lines = [["what is tested", *head, f"of {len(names)}"], ["---"] * (len(head) + 2)]
    lines += [[title, *group_sizes(names, own), f"**{len(own)}**"] for title, own in rows.items()]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--table", action="store_true", help="print the page's table from stored results")
    options = parser.parse_args()
    if options.table:
        powers = json.loads(POWERS.read_text(encoding="utf-8"))["mistakes"]
        print(page_table(json.loads(options.out.read_text(encoding="utf-8")), powers))
        return
    np.seterr(all="ignore")
    options.out.write_text(json.dumps(table(options.repeats), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
