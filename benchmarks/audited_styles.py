"""The known-wrong verifiers as other people's samplers: ``python benchmarks/audited_styles.py [NAME ..]``.

Each verifier of ``spectheory.defects`` becomes the code of somebody else: a torch sampler, a numpy sampler, a
decoding loop with models, a sampler of a flattened batch (one path only), and a C program.  The audit sees
tokens and random numbers only.  Each is audited on the first of a few pairs on which its law is wrong.

Prints one row per verifier: the verdict and basis in each style, and CPU seconds.  ``lossless`` as first
argument audits the published verifiers in the same way: none whose exact law is right may be accused.
``benchmarks/results/audited_styles.txt`` holds what it printed.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from spectheory import audit, defects, instances, output_law, verifiers
from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.auditing.subjects.loop_forms import LoopForm
from spectheory.auditing.subjects.model_loops import ModelLoop
from spectheory.auditing.subjects.programs import Program
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import prefix_numbers, rows_along
from spectheory.pairs.drafts import Iid
from spectheory.pairs.pair import ModelPair

WITHIN, CLOSER = 0.01, 0.0005
"""By default, and for verifiers whose distance on all pairs is below ``WRONG``."""
PAIRS: Mapping[str, ModelPair] = {
    "two residual tokens": instances.two_residual_tokens(1),
    "dyadic, 2 drafted": random_dyadic(7, 2, 2),
    "dyadic, 3 tokens, 1 drafted": random_dyadic(16, 3, 1),
    "dyadic, 3 tokens": random_dyadic(3, 3, 2),
    "equal uniform rows": ModelPair.context_free_pair(["1/3"] * 3, ["1/3"] * 3, 1),
    "tiny probabilities": instances.tiny_probabilities(200, 2, 2),
}
"""One pair has equal rows, on which ties show."""
MOST_TUPLES = 36
"""The most tuples of drafts of a pair.  A loop of two steps has this factor more runs."""
WRONG = 0.02
"""We prefer a pair with at least this total variation, twice the bound of the audit."""


class Verified:
    """The laws of a verifier's outputs, given drafts and rows: the part of a sampler that has no style."""

    def __init__(self, verifier: Any, pair: ModelPair | None, num_drafts: int) -> None:
        self.bound = verifier.bind(Iid(num_drafts), pair and pair.to_float())
        self._known: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}

    def law(self, paths: Any, target: Any, draft: Any) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities of stops [K (L+1)], and the correction row of each [K (L+1), V]."""
        given = [np.asarray(each) for each in (paths, target, draft)]
        key = b"".join(each.tobytes() for each in given)
        if key not in self._known:
            target, draft = (rows.astype(float) / rows.sum(-1, keepdims=True) for rows in given[1:])
            outcome = self.bound.outcome(given[0][None], target[None], draft[None])
            stops = np.asarray(outcome.stop_probs)[0].ravel().astype(float)
            length = target.shape[1]
            rows = np.zeros((len(stops), target.shape[2]))
            for stop in np.flatnonzero(stops > 0):
                path, place = (np.array([number]) for number in divmod(int(stop), length))
                rows[stop] = np.asarray(outcome.correction(path, place))[0]
            stops[rows.sum(-1) == 0] = 0  # of rounding alone: there is nothing to draw
            self._known[key] = stops / stops.sum(), rows
        return self._known[key]

    @staticmethod
    def tokens(paths: Any, stop: int, token: int) -> list[int]:
        path, place = divmod(stop, len(paths[0]) + 1)
        return [*map(int, paths[path][:place]), token]


def torch_style(verified: Verified) -> Callable[..., Any]:
    def sampler(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
        stops, rows = verified.law(paths, target_rows, draft_rows)
        stop = int(torch.multinomial(torch.tensor(stops), 1, generator=generator))
        return verified.tokens(paths, stop, int(torch.multinomial(torch.tensor(rows[stop]), 1)))

    return sampler


def numpy_style(verified: Verified) -> Callable[..., Any]:
    def sampler(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
        stops, rows = verified.law(paths, target_rows, draft_rows)
        stop = int(np.random.choice(len(stops), p=stops))  # noqa: NPY002
        row = rows[stop]
        return verified.tokens(paths, stop, int(np.random.choice(len(row), p=row / row.sum())))  # noqa: NPY002

    return sampler


def loop_style(verified: Verified, num_drafts: int) -> Callable[..., Any]:
    def generate(
        input_ids: torch.Tensor, target_model: Any, draft_model: Any, max_new_tokens: int, gamma: int
    ) -> torch.Tensor:
        text = input_ids[0].tolist()
        while len(text) < input_ids.shape[1] + max_new_tokens:
            paths, targets, drafts = [], [], []
            for _ in range(num_drafts):
                path: list[int] = []
                rows = []
                for _ in range(gamma):
                    row = torch.softmax(draft_model(torch.tensor([[*text, *path]])).logits[0, -1], dim=-1)
                    rows.append(row.tolist())
                    path.append(int(torch.multinomial(row, 1)))
                logits = target_model(torch.tensor([[*text, *path]])).logits[0, -gamma - 1 :]
                paths.append(path)
                targets.append(torch.softmax(logits, dim=-1).tolist())
                drafts.append(rows)
            stops, corrections = verified.law(np.array(paths), np.array(targets), np.array(drafts))
            stop = int(torch.multinomial(torch.tensor(stops), 1))
            token = int(torch.multinomial(torch.tensor(corrections[stop]), 1))
            text += verified.tokens(paths, stop, token)
        return torch.tensor([text])

    return generate


def flattened_style(verified: Verified) -> Callable[..., Any]:
    def rejection_sample(
        draft_token_ids: Any, num_draft_tokens: Any, draft_probs: Any, target_probs: Any, bonus_probs: Any
    ) -> torch.Tensor:
        out = torch.full((len(num_draft_tokens), max(num_draft_tokens) + 1), -1)
        start = 0
        for request, length in enumerate(num_draft_tokens):
            here = slice(start, start + length)
            start += length
            drafted = draft_token_ids[here].long()
            kept = int((drafted >= 0).sum())  # the others are placeholders
            target = torch.cat([target_probs[here], bonus_probs[request][None]])[: kept + 1]
            if kept:
                paths = drafted[None, :kept]
                stops, rows = verified.law(paths, target[None], draft_probs[here][None, :kept])
                stop = int(torch.multinomial(torch.tensor(stops), 1))
                tokens = verified.tokens(paths, stop, int(torch.multinomial(torch.tensor(rows[stop]), 1)))
            else:
                tokens = [int(torch.multinomial(target[0], 1))]
            out[request, : len(tokens)] = torch.tensor(tokens)
        return out

    return rejection_sample


C_PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { TUPLES = @TUPLES, PLACES = @PLACES, STOPS = @STOPS, V = @V, LENGTH = @LENGTH };
static const int paths[TUPLES][PLACES] = {@PATHS};
static const double stops[TUPLES][STOPS] = {@STOP_PROBS};
static const double rows[TUPLES][STOPS][V] = {@ROWS};
static char line[1 << 20];
static int drawn(const double *weights, int count, double uniform) {
  double total = 0, below = 0;
  for (int i = 0; i < count; i++) total += weights[i];
  for (int i = 0; i < count; i++) if (uniform * total < (below += weights[i])) return i;
  for (int i = count - 1; i > 0; i--) if (weights[i] > 0) return i;
  return 0;
}
int main(void) {
  while (fgets(line, sizeof line, stdin)) {
    int given[PLACES], tuple = -1;
    double u[2];
    char *at = strstr(line, "\"paths\"");
    for (int i = 0; i < PLACES; i++) { at = strpbrk(at, "0123456789"); given[i] = strtol(at, &at, 10); }
    at = strstr(line, "\"uniforms\"");
    for (int i = 0; i < 2; i++) {
      if (at) { at = strpbrk(at, "0123456789"); u[i] = strtod(at, &at); }
      else u[i] = rand() / (RAND_MAX + 1.0);
    }
    for (int t = 0; t < TUPLES; t++) if (!memcmp(given, paths[t], sizeof given)) tuple = t;
    int stop = drawn(stops[tuple], STOPS, u[0]), token = drawn(rows[tuple][stop], V, u[1]);
    printf("{\"tokens\": [");
    for (int i = 0; i < stop % (LENGTH + 1); i++) printf("%d, ", given[stop / (LENGTH + 1) * LENGTH + i]);
    printf("%d], \"used\": 2}\n", token);
    fflush(stdout);
  }
}
"""
"""A sampler with a table of laws; the audit sees what it reads and writes."""


def c_style(verified: Verified, pair: ModelPair, num_drafts: int, folder: Path) -> Program:
    """Compile a C program with the laws for all tuples of drafts of a pair."""
    paths, laws = [], []
    for leaves, _ in Iid(num_drafts).tuples(pair, 4096):
        for numbers in leaves.tolist():
            drafted = np.array([pair.context(pair.draft_length, number) for number in numbers])
            prefixes = prefix_numbers(drafted, pair.vocab_size)
            target, draft = (
                rows_along(levels, prefixes).astype(float) for levels in (pair.target, pair.draft)
            )
            paths.append(drafted.ravel())
            laws.append(verified.law(drafted, target, draft))

    def written(array: Sequence[Any]) -> str:
        return ",".join(map(repr, np.array(array).ravel().tolist()))

    values = {
        "TUPLES": len(paths),
        "PLACES": paths[0].size,
        "STOPS": len(laws[0][0]),
        "V": pair.vocab_size,
        "LENGTH": pair.draft_length,
        "PATHS": written(paths),
        "STOP_PROBS": written([stops for stops, _ in laws]),
        "ROWS": written([rows for _, rows in laws]),
    }
    code = C_PROGRAM
    for name in sorted(values, key=len, reverse=True):
        code = code.replace(f"@{name}", str(values[name]))
    (folder / "sampler.c").write_text(code, encoding="utf-8")
    subprocess.run(["cc", "-O1", "-w", "-o", folder / "sampler", folder / "sampler.c"], check=True)
    return Program(str(folder / "sampler"))


def pair_for(verifier: Any, num_drafts: int) -> tuple[str, float]:
    """The first pair on which the law is clearly wrong, else the one on which it is most wrong."""
    distances: dict[str, float] = {}
    for name, pair in PAIRS.items():
        if len(pair.draft[0][0]) ** (pair.draft_length * num_drafts) > MOST_TUPLES:
            continue
        distances[name] = float(output_law(verifier, pair, num_drafts).total_variation)
        if distances[name] > WRONG:
            return name, distances[name]
    best = max(distances, key=lambda name: distances[name])
    return best, distances[best]


def subjects_of(
    verifier: Any, pair: ModelPair, num_drafts: int, folder: Path
) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Style -> the verifier as a sampler for a pair, and how it is audited."""
    verified = Verified(verifier, pair, num_drafts)
    step = Verified(verifier, None, num_drafts)  # the texts of a loop leave the pair's tree
    loop = ModelLoop(loop_style(step, num_drafts), "loop")
    loop._form = LoopForm("[1, T]", "answer", False, "tuple", 1.0, pair.draft_length, 0, 0)
    called = {"signature": "sampler", "drafts": num_drafts}
    subjects: dict[str, tuple[Any, dict[str, Any]]] = {
        "torch": (torch_style(verified), called),
        "numpy": (numpy_style(verified), called),
        "loop": (loop, {}),
    }
    if shutil.which("cc") is not None:
        program = c_style(verified, pair, num_drafts, folder)
        subjects["C"] = Shipped(program, "program", "C", num_drafts=[num_drafts]), {}
    if num_drafts == 1:
        subjects["flattened"] = flattened_style(verified), {"signature": "flattened_batch"}
    return subjects


def audited(verifier: Any, folder: Path, within: float) -> tuple[str, float, int, dict[str, str]]:
    """The pair, its exact total variation, the number of paths, and style -> verdict and basis."""
    num_drafts = 1 if verifier.single_path else 2
    name, distance = pair_for(verifier, num_drafts)
    found = {}
    for style, (subject, options) in subjects_of(verifier, PAIRS[name], num_drafts, folder).items():
        certificate = audit(
            subject, {name: PAIRS[name]}, within=within, stop_at_first=True, quick=True, **options
        )
        basis = "/".join(sorted({case.basis for case in certificate.cases})) or "-"
        found[style] = f"{certificate.verdict} ({basis})"
    return name, distance, num_drafts, found


def main(names: Sequence[str]) -> None:
    registry = verifiers if names[:1] == ["lossless"] else defects
    chosen = [name for name in names if name != "lossless"] or list(registry)
    counts: dict[str, list[int]] = {}
    print(f"within {WITHIN}; exact total variation in brackets", flush=True)
    for name in chosen:
        start = time.process_time()
        try:
            with tempfile.TemporaryDirectory() as folder:
                pair, distance, num_drafts, found = audited(registry[name], Path(folder), WITHIN)
                if 0 < distance < WRONG:
                    closer = audited(registry[name], Path(folder), CLOSER)[3]
                    found.update({f"{style} within {CLOSER}": verdict for style, verdict in closer.items()})
        except InvalidInputError as error:
            print(f"{name}: not asked: {str(error)[:90]}", flush=True)
            continue
        for style, verdict in found.items():
            count = counts.setdefault(style, [0, 0, 0])
            place = 0 if verdict.startswith("not lossless") else 1 if verdict.startswith("lossless") else 2
            count[place] += 1
        words = "; ".join(f"{style}: {verdict}" for style, verdict in found.items())
        seconds = time.process_time() - start
        print(f"{name}, K = {num_drafts}, {pair} [{distance:.4f}]: {words}; CPU {seconds:.1f} s", flush=True)
    for style, (wrong, right, unknown) in counts.items():
        print(f"{style}: {wrong} not lossless, {right} lossless, {unknown} undecided")


if __name__ == "__main__":
    main(sys.argv[1:])
