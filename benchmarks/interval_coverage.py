"""Coverage and width of the 95 % intervals of simulations, in twelve settings.

A setting is a verifier on one or two context-free pairs.  The law of a draw, which is E[tau + 1 | drafts]
and tau, is enumerated, and 2 000 runs are drawn from it at once.  Every interval is then computed by the
code of ``simulate`` (``estimate``, ``estimate_over_texts``).  Two settings are repeated draw by draw with
``simulate``, which must agree.

The output has, for both ways of counting: the coverage, its lower limit at 99 % (Clopper and Pearson), the
mean width, and the coverage and width of the normal interval (of Student's t over prompts).  The exit
status is 1 if a lower limit is below 0.93, or if an interval is more than 1.5 times as wide as a normal
interval whose own lower limit is at least 0.93.

    PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/interval_coverage.py
"""

import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta, norm
from scipy.stats import t as student_t
from timing import exit_status, machine, write

from spectheory.pairs.drafts import Iid
from spectheory.pairs.pair import ModelPair
from spectheory.simulation import simulate
from spectheory.simulation.estimates import (
    Estimate,
    Subject,
    Tally,
    are_narrow,
    estimate,
    estimate_over_texts,
)
from spectheory.verification.algorithms import verifiers
from spectheory.verification.outcome import Outcome

RUNS, CONFIDENCE = 2_000, 0.95
LEAST_COVERAGE, MOST_WIDTH = 0.93, 1.5
REAL_RUNS = 1_000
"""Runs of ``simulate`` per setting that is repeated."""
Rows = tuple[tuple[float, ...], tuple[float, ...]]
"""The target row and the draft row of a pair whose rows do not depend on the context."""

EVEN: Rows = (1 / 3, 2 / 3), (2 / 3, 1 / 3)
SHIFTED: Rows = (0.5, 0.3, 0.2), (0.2, 0.3, 0.5)
CLOSE: Rows = (0.6, 0.4), (0.5, 0.5)
OVERCONFIDENT: Rows = (0.999, 0.001), (0.99, 0.01)
MORE_OVERCONFIDENT: Rows = (0.9999, 0.0001), (0.999, 0.001)
NEVER_EMITTED: Rows = (1.0, 0.0), (0.9997, 0.0003)
ALMOST_EQUAL: Rows = (0.9999, 0.0001), (0.9998, 0.0002)


@dataclass(frozen=True)
class Setting:
    """A simulation.

    Attributes:
        name: for the table.
        verifier, num_drafts, draft_length: the name, K and L.
        kinds: the pairs.  Prompts with draws take turns; the kind of a prompt with a text is random.
        prompts: their number.
        draws: per prompt.
        tokens: length of the text behind each prompt, in place of draws.
        stop_at: stop at an interval so narrow, after 16 prompts or a batch of 8 more; at ``prompts`` anyway.
    """

    name: str
    verifier: str
    num_drafts: int
    draft_length: int
    kinds: tuple[Rows, ...]
    prompts: int = 1
    draws: int = 0
    tokens: int = 0
    stop_at: float = 0.0


SETTINGS = (
    Setting("overconfident draft", "greedy_multipath", 2, 2, (OVERCONFIDENT,), draws=100),
    Setting("overconfident draft", "greedy_multipath", 2, 2, (OVERCONFIDENT,), draws=1_000),
    Setting("more so, one token", "greedy_multipath", 2, 1, (MORE_OVERCONFIDENT,), draws=1_000),
    Setting("drafts never emitted", "token", 1, 2, (NEVER_EMITTED,), draws=1_000),
    Setting("drafts never emitted", "token", 1, 2, (NEVER_EMITTED,), draws=10_000),
    Setting("rare, by prompt", "token", 1, 3, (NEVER_EMITTED, ALMOST_EQUAL), prompts=16, draws=16),
    Setting("rare, over texts", "block", 1, 2, (NEVER_EMITTED,), prompts=16, tokens=64),
    Setting("even", "block", 1, 2, (EVEN,), draws=100),
    Setting("shifted", "spectr", 2, 3, (SHIFTED,), draws=1_000),
    Setting("two kinds of prompts", "block", 1, 4, (EVEN, CLOSE), prompts=16, draws=16),
    Setting("two kinds, over texts", "block", 1, 4, (EVEN, CLOSE), prompts=24, tokens=32),
    Setting("two kinds, two prompts", "block", 1, 4, (EVEN, CLOSE), prompts=2, tokens=32),
)
REPEATED = (SETTINGS[0], SETTINGS[7])
STOPPED = tuple(
    Setting("two kinds, stopped", "block", 1, 4, (EVEN, CLOSE), prompts=512, tokens=32, stop_at=width)
    for width in (0.6, 0.45, 0.3, 0.2)
)
"""They are too narrow (docs/limits.md): no complaint is made of them."""


@dataclass(frozen=True)
class DrawLaw:
    """The law of one draw: atoms of drafted paths and a number of accepted tokens.

    Attributes:
        probs: [atoms].
        expected: E[tau + 1 | drafts], [atoms].
        lengths: tau, [atoms].
        length_probs: P(tau = i | drafts), [atoms, L+1].
    """

    probs: np.ndarray
    expected: np.ndarray
    lengths: np.ndarray
    length_probs: np.ndarray

    @property
    def block_efficiency(self) -> float:
        return float(self.probs @ self.expected)

    @property
    def rejection(self) -> float:
        """P(tau < L)."""
        return float(self.probs @ (self.lengths < self.length_probs.shape[1] - 1))

    def tally(self, counts: np.ndarray) -> Tally:
        """Sums of draws with the given counts of the atoms, [strata, atoms]."""
        numbers, wide = np.arange(self.length_probs.shape[1]), self.lengths + 1.0
        return Tally(
            expected=counts @ self.expected,
            expected_squared=counts @ self.expected**2,
            expected_cubed=counts @ self.expected**3,
            counted=counts @ wide,
            counted_squared=counts @ wide**2,
            length_probs=counts @ self.length_probs,
            counted_lengths=counts @ (self.lengths[:, None] == numbers).astype(float),
        )


def enumerated(setting: Setting, rows: Rows) -> DrawLaw:
    """The law of a draw, from the verifier's answers to all tuples of drafted paths."""
    pair = ModelPair.context_free_pair(*rows, setting.draft_length).to_float()
    process, length, size = Iid(setting.num_drafts), setting.draft_length, pair.vocab_size
    tuples = next(process.tuples(pair, 10**6))
    paths = tuples.leaves[..., None] // size ** np.arange(length - 1, -1, -1) % size
    target, draft = (
        np.tile(np.array(row), (*paths.shape[:2], depth, 1))
        for row, depth in zip(rows, (length + 1, length), strict=True)
    )
    outcome: Outcome = verifiers[setting.verifier].bind(process, pair).outcome(paths, target, draft)
    length_probs = outcome.length_probs()
    probs = np.maximum(tuples.probs[:, None] * length_probs, 0)
    atoms, lengths = np.indices(probs.shape).reshape(2, -1)
    return DrawLaw(
        (probs / probs.sum()).ravel(), outcome.expected_tokens()[atoms], lengths, length_probs[atoms]
    )


def runs(setting: Setting, rng: np.random.Generator) -> tuple[float, list[Estimate]]:
    """The exact mean, and the estimates of all runs."""
    laws = [enumerated(setting, rows) for rows in setting.kinds]
    subject = (setting.verifier, True, setting.num_drafts)
    if not setting.tokens:
        turns = [laws[prompt % len(laws)] for prompt in range(setting.prompts)]
        counts = [rng.multinomial(setting.draws, law.probs, size=RUNS) for law in turns]  # each [runs, atoms]
        exact = float(np.mean([law.block_efficiency for law in turns]))
        found = []
        for run in range(RUNS):
            tallies = [law.tally(count[run : run + 1]) for law, count in zip(turns, counts, strict=True)]
            found.append(estimate(subject, tallies, setting.draws, CONFIDENCE))
        return exact, found
    calls = [_calls(law, setting.tokens) for law in laws]
    exact = sum(law.block_efficiency * count for law, count in zip(laws, calls, strict=True)) / sum(calls)
    kinds = rng.integers(len(laws), size=(RUNS, setting.prompts))
    sums = [_texts(law, setting.tokens, kinds.size, rng) for law in laws]
    found = []
    for run in range(RUNS):
        rows = np.arange(run * setting.prompts, (run + 1) * setting.prompts)
        whole = [Tally(*(getattr(kind, entry.name)[rows] for entry in fields(Tally))) for kind in sums]
        chosen = kinds[run]
        tally = Tally(
            *(
                np.stack([getattr(kind, entry.name) for kind in whole])[chosen, np.arange(len(chosen))]
                for entry in fields(Tally)
            )
        )
        found.append(_until_narrow(setting, subject, tally))
    return exact, found


def _until_narrow(setting: Setting, subject: Subject, tally: Tally) -> Estimate:
    """Of all prompts, or of the first that give an interval as narrow as asked."""
    counts = range(16, setting.prompts, 8) if setting.stop_at else ()
    for count in (*counts, setting.prompts):
        first = Tally(*(getattr(tally, entry.name)[:count] for entry in fields(Tally)))
        found = estimate_over_texts(subject, [first], CONFIDENCE)
        if setting.stop_at and are_narrow([found], width=setting.stop_at):
            break
    return found


def _calls(law: DrawLaw, tokens: int) -> float:
    """The mean number of calls of a text: h(t) = 1 + Σ P(tau + 1 = i) h(t - i), and 0 for t <= 0."""
    steps = np.bincount(law.lengths + 1, weights=law.probs)
    mean = np.zeros(tokens + 1)
    for wanted in range(1, tokens + 1):
        mean[wanted] = 1 + sum(prob * mean[wanted - i] for i, prob in enumerate(steps) if 1 <= i <= wanted)
    return float(mean[tokens])


def _texts(law: DrawLaw, tokens: int, texts: int, rng: np.random.Generator) -> Tally:
    """Sums over the calls of texts, which end with the call that reaches so many tokens; one stratum each."""
    counts = np.zeros((texts, len(law.probs)))
    written, rows = np.zeros(texts, dtype=int), np.arange(texts)
    while len(rows):
        drawn = rng.choice(len(law.probs), size=len(rows), p=law.probs)
        counts[rows, drawn] += 1
        written[rows] += law.lengths[drawn] + 1
        rows = rows[written[rows] < tokens]
    return law.tally(counts)


def measured(setting: Setting, exact: float, found: list[Estimate]) -> dict[str, Any]:
    """Coverage and width of both ways of counting."""
    normal = norm.ppf((1 + CONFIDENCE) / 2)
    reach = student_t.ppf((1 + CONFIDENCE) / 2, setting.prompts - 1) if setting.tokens else normal
    entry: dict[str, Any] = {}
    for way, names in (
        ("expected", ("block_efficiency", "standard_error", "interval")),
        ("counted", ("counted", "counted_standard_error", "counted_interval")),
    ):
        value, error, ends = (np.array([getattr(one, name) for one in found]) for name in names)
        covered = int(((ends[:, 0] <= exact) & (exact <= ends[:, 1])).sum())
        by_normal = int((abs(value - exact) <= reach * error + 1e-12).sum())
        width, normal_width = float((ends[:, 1] - ends[:, 0]).mean()), float(2 * reach * error.mean())
        entry[way] = {
            "coverage": covered / len(found),
            "lower_limit": round(lower_limit(covered, len(found)), 4),
            "width": float(f"{width:.4g}"),
            "normal_coverage": by_normal / len(found),
            "normal_lower_limit": round(lower_limit(by_normal, len(found)), 4),
            "ratio": float(f"{width / normal_width:.3g}") if normal_width else None,
        }
    return entry


def lower_limit(covered: int, total: int) -> float:
    """At 99 %, by Clopper and Pearson."""
    return float(beta.ppf(0.01, covered, total - covered + 1)) if covered else 0.0


def repeated(setting: Setting, found: list[Estimate]) -> dict[str, float]:
    """By how many standard errors ``simulate`` differs in mean width and in coverage."""
    pair = ModelPair.context_free_pair(*setting.kinds[0], setting.draft_length)
    exact = enumerated(setting, setting.kinds[0]).block_efficiency
    real = [
        simulate(
            pair, verifiers=[setting.verifier], drafts=setting.num_drafts, samples=setting.draws, seed=seed,
            confidence=CONFIDENCE,
        ).estimates[0]
        for seed in range(REAL_RUNS)
    ]  # fmt: skip
    differences = {}
    for name in ("interval", "counted_interval"):
        ends = [np.array([getattr(one, name) for one in estimates]) for estimates in (real, found)]
        measures = {
            "width": [end[:, 1] - end[:, 0] for end in ends],
            "coverage": [(end[:, 0] <= exact) & (exact <= end[:, 1]) for end in ends],
            "middle": [end.mean(axis=1) for end in ends],
        }
        for measure, (ours, theirs) in measures.items():
            error = np.hypot(ours.std() / np.sqrt(len(ours)), theirs.std() / np.sqrt(len(theirs)))
            difference = abs(float(ours.mean()) - float(theirs.mean()))
            differences[f"{name}, {measure}"] = (
                round(float(difference / error), 2) if error > 0 else difference
            )
    return differences


def main() -> int:
    """Print a line per setting and way of counting, and write them to results/."""
    start, entries, complaints = time.process_time(), [], []
    for number, setting in enumerate((*SETTINGS, *STOPPED)):
        exact, found = runs(setting, np.random.default_rng([23, number]))
        rejection = float(np.mean([enumerated(setting, kind).rejection for kind in setting.kinds]))
        entry = measured(setting, exact, found)
        size = f"{setting.prompts} x {setting.draws or f'{setting.tokens} tokens'}"
        for way, line in entry.items():
            print(
                f"{setting.name:23} {setting.verifier:16} {size:16} rejects {rejection:.1e}  {way:8}  "
                f"covers {line['coverage']:.4f} (at least {line['lower_limit']:.4f})  "
                f"width {line['width']:.3g}  normal {line['normal_coverage']:.4f}  ratio {line['ratio']}",
                flush=True,
            )
            where = f"{setting.name}, {size}, {way}"
            if setting.stop_at:
                continue
            if line["lower_limit"] < LEAST_COVERAGE:
                complaints.append(f"{where}: coverage of at least {line['lower_limit']} only")
            if line["normal_lower_limit"] >= LEAST_COVERAGE and line["ratio"] > MOST_WIDTH:
                complaints.append(f"{where}: {line['ratio']} times as wide as a normal interval that covers")
        row = {
            "name": setting.name, "verifier": setting.verifier, "num_drafts": setting.num_drafts,
            "draft_length": setting.draft_length, "prompts": setting.prompts,
            "pairs": [" against ".join(" ".join(map(str, row)) for row in rows) for rows in setting.kinds],
            "draws": setting.draws, "tokens": setting.tokens, "stop_at": setting.stop_at,
            "block_efficiency": exact,
            "rejection": float(f"{rejection:.3g}"), **entry,
        }  # fmt: skip
        if setting in REPEATED:
            row["differences_from_simulate"] = found_differences = repeated(setting, found)
            print(f"    simulate differs by standard errors: {found_differences}")
            complaints += [
                f"{setting.name}: simulate differs in {what} by {value} standard errors"
                for what, value in found_differences.items()
                if value > 4
            ]
        entries.append(row)
    seconds = time.process_time() - start
    print(f"{seconds:.0f} CPU seconds")
    document = {
        "machine": machine(), "seconds": round(seconds, 1), "runs": RUNS, "confidence": CONFIDENCE,
        "settings": entries,
    }  # fmt: skip
    write(Path(__file__).parent / "results" / "interval_coverage.json", document)
    return exit_status(complaints)


if __name__ == "__main__":
    sys.exit(main())
