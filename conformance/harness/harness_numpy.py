"""Harness of the conformance suite for a batch sampler on numpy arrays.

    python harness_numpy.py ../cases.jsonl > answers.jsonl
    python harness_numpy.py ../cases.jsonl wrong > wrong.jsonl

`verify` has the layout of serving engines: drafts and rows one request after the other, cumulative lengths,
one bonus row for each request.  Replace it by a call of your own, `settled` if your engine has settings, and
`verify_paths` if it takes several drafts; everything else stays.
"""

import json
import os
import sys
from fractions import Fraction

import numpy as np

TIMES = int(os.environ.get("TIMES", "1"))  # play every case so many times
WRONG = len(sys.argv) > 2  # play the sampler that must be found
RNG = np.random.default_rng(int(sys.argv[3]) if len(sys.argv) > 3 else None)


def pick(rows, coins):
    """One token per row by inversion of its cumulative sums."""
    sums = np.cumsum(rows, -1)
    found = (sums <= coins[:, None] * sums[:, -1:]).sum(-1)
    return np.minimum(found, rows.shape[-1] - 1 - np.argmax(rows[:, ::-1] > 0, -1))


def verify(drafts, ends, target, draft, bonus, coins=None):
    """drafts [N], ends [B] cumulative, target and draft [N, V], bonus [B, V] -> B lists of tokens."""
    size, batch = len(drafts), len(ends)
    real = drafts >= 0  # -1 is a placeholder: no draft is here
    x = np.where(real, drafts, 0)[:, None]
    p, q = np.take_along_axis(target, x, -1)[:, 0], np.take_along_axis(draft, x, -1)[:, 0]
    accepted = real & (q > 0) & ((RNG.random(size) if coins is None else coins[:-1]) * q < p)
    left = target if WRONG else np.maximum(target - draft, 0)
    left = np.where(real[:, None] & (left.sum(-1) > 0)[:, None], left, target)
    corrections = pick(left, RNG.random(size) if coins is None else np.full(size, coins[-1]))
    last = pick(bonus, RNG.random(batch) if coins is None else np.full(batch, coins[-1]))
    out, start = [], 0
    for b, end in enumerate(ends):
        rejected = np.flatnonzero(~accepted[start:end])
        stop = start + rejected[0] if len(rejected) else end
        out.append([*drafts[start:stop].tolist(), int(corrections[stop] if stop < end else last[b])])
        start = end
    return out


def settled(weights, settings, before, position):
    """A target row from weights (exponentials of logits) and settings, in the order of the file."""
    row = weights.astype(np.float64)
    if "allowed" in settings:
        row[np.setdiff1d(np.arange(len(row)), settings["allowed"][position])] = 0
    for token in [*settings.get("past", []), *before]:
        row[token] *= np.exp(-settings.get("frequency_penalty", 0))
    temperature = settings.get("temperature", 1)
    row = (row == row.max()).astype(float) if temperature == 0 else row ** (1 / temperature)
    if "min_p" in settings:
        row[row < settings["min_p"] * row.max()] = 0
    order = np.argsort(-row, kind="stable")
    if "top_k" in settings:
        row[order[settings["top_k"] :]] = 0
    if "top_p" in settings:
        sums = np.cumsum(row[order]) - row[order]
        row[order[sums >= settings["top_p"] * row.sum()]] = 0
    return (row / row.sum()).astype(np.float32)


def verify_paths(paths, target, draft):
    """Recursive rejection: the drafts at a depth in turn, each against the residual so far."""
    alive, block = list(range(len(paths))), []
    for depth, q in enumerate(draft):
        row = target[depth]
        for k in alive:
            token = paths[k][depth]
            if RNG.random() * q[token] * row.sum() < row[token]:
                alive = [other for other in alive if other >= k and paths[other][depth] == token]
                block.append(token)
                break
            left = target[depth] if WRONG else np.maximum(row / row.sum() - q, 0)
            row = left if left.sum() > 0 else row
        else:
            return [*block, int(pick(row[None], RNG.random(1))[0])]
    return [*block, int(pick(target[-1][None], RNG.random(1))[0])]


# Reading and writing
def dense(rows, size):
    out = np.zeros((len(rows), size), dtype=np.float32)
    for row, masses in zip(out, rows):
        for token, mass in masses:
            row[slice(None) if token == "*" else token] = float(mass if mass == "nan" else Fraction(mass))
    return out


def prepared(request, size):
    """The request with dense rows, settings applied."""
    target = dense(request.get("weights", request["target"]), size)
    if "parameters" in request:
        for i in range(len(target)):
            target[i] = settled(target[i], request["parameters"], request["drafts"][:i], i)
    then = [prepared(following, size) for following in request.get("then", [])]
    return {**request, "target": target, "draft": dense(request["draft"], size), "then": then}


def batch_of(requests):
    """The arguments of `verify`."""
    drafts = np.array([token for request in requests for token in request["drafts"]], dtype=np.int64)
    ends = np.cumsum([len(request["drafts"]) for request in requests])
    target = np.concatenate([request["target"][:-1] for request in requests])
    draft = np.concatenate([request["draft"] for request in requests])
    return drafts, ends, target, draft, np.stack([request["target"][-1] for request in requests])


def play(case):
    if case["kind"] == "pooled":
        own = prepared(case, case["vocab"])
        for call in case["calls"]:
            for _ in range(call["times"] * TIMES):
                yield answers("paths" if "paths" in call else "fixed", [{**own, **call}])
        return
    requests = [prepared(request, case["vocab"]) for request in case["requests"]]
    if case["kind"] == "grid":
        for index in np.ndindex(*[case["points"]] * case["coins"]):
            yield verify(*batch_of(requests), (np.array(index) + 0.5) / case["points"])
        return
    kind = "paths" if "paths" in requests[0] else case["kind"]
    for _ in range(case["draws"] * TIMES):
        yield answers(kind, requests)


def answers(kind, requests):
    """One answer for each request of a call."""
    if kind == "paths":
        return [verify_paths(request["paths"], request["target"], request["draft"]) for request in requests]
    if kind == "drafted":
        drawn = [pick(request["draft"], RNG.random(len(request["draft"]))).tolist() for request in requests]
        requests = [{**request, "drafts": path} for request, path in zip(requests, drawn)]
    blocks = verify(*batch_of(requests))
    if kind == "drafted":
        return [[*path, -1, *block] for path, block in zip(drawn, blocks)]
    if kind == "calls":
        then = [request["then"][len(block) - 1] for request, block in zip(requests, blocks)]
        return [[*a, -1, *b] for a, b in zip(blocks, verify(*batch_of(then)))]
    if kind == "logprobs":
        rows = [np.log(np.maximum(request["target"], 1e-300)) for request in requests]
        logs = [[float(p[i, t]) for i, t in enumerate(block)] for block, p in zip(blocks, rows)]
        return [{"tokens": block, "logprobs": own} for block, own in zip(blocks, logs)]
    return blocks


if __name__ == "__main__":
    with open(sys.argv[1]) as lines:
        _, *cases = map(json.loads, lines)
    for case in cases:
        print(json.dumps({"case": case["id"], "answers": list(play(case))}), flush=True)
