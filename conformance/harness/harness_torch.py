"""Harness of the conformance suite for a sampler of one request on torch tensors.

    python harness_torch.py ../cases.jsonl > answers.jsonl
    python harness_torch.py ../cases.jsonl wrong > wrong.jsonl

Replace `verify` by a call of your own, and `settled` if your engine has settings; everything else stays.
DEVICE=cuda puts the rows on a GPU.
"""

import json
import os
import sys
from fractions import Fraction

import torch

TIMES = int(os.environ.get("TIMES", "1"))  # play every case so many times
WRONG = len(sys.argv) > 2  # play the sampler that must be found
DEVICE = os.environ.get("DEVICE", "cpu")


def pick(row, coin=None):
    """One token by a multinomial draw, or by inversion where a coin is given."""
    if coin is None:
        return int(torch.multinomial(row, 1))
    return int(torch.searchsorted(row.cumsum(0), coin * row.sum(), right=True))


def verify(drafts, target, draft, coins=None):
    """n drafts, target [n+1, V], draft [n, V] -> the emitted tokens.

    coins: nothing, or n acceptance numbers and one for the token after them.
    """
    accepting = torch.rand(len(drafts)).tolist() if coins is None else coins[:-1]
    last = None if coins is None else coins[-1]
    for i, token in enumerate(drafts):
        if token < 0:  # a placeholder: no draft is here
            return [*drafts[:i], pick(target[i], last)]
        if accepting[i] * draft[i, token] < target[i, token]:
            continue
        left = target[i] if WRONG else (target[i] - draft[i]).clamp(min=0)
        return [*drafts[:i], pick(left if left.sum() > 0 else target[i], last)]
    return [*drafts, pick(target[-1], last)]


def settled(weights, settings, before, position):
    """A target row from weights (exponentials of logits) and settings, in the order of the file."""
    row = weights.double()
    if "allowed" in settings:
        kept = torch.zeros_like(row)
        kept[settings["allowed"][position]] = 1
        row = row * kept
    for token in [*settings.get("past", []), *before]:
        row[token] *= 2.718281828459045 ** -settings.get("frequency_penalty", 0)
    temperature = settings.get("temperature", 1)
    row = (row == row.max()).double() if temperature == 0 else row ** (1 / temperature)
    if "min_p" in settings:
        row = torch.where(row >= settings["min_p"] * row.max(), row, 0.0)
    if "top_k" in settings:
        row[row.argsort(descending=True)[settings["top_k"] :]] = 0
    if "top_p" in settings:
        order = row.argsort(descending=True)
        before_it = row[order].cumsum(0) - row[order]
        row[order[before_it >= settings["top_p"] * row.sum()]] = 0
    return (row / row.sum()).float()


# Reading and writing
def dense(rows, size):
    out = torch.zeros(len(rows), size)
    for row, masses in zip(out, rows):
        for token, mass in masses:
            row[slice(None) if token == "*" else token] = float(mass if mass == "nan" else Fraction(mass))
    return out.to(DEVICE)


def prepared(request, size):
    target = dense(request.get("weights", request["target"]), size)
    if "parameters" in request:
        drafts = request["drafts"]
        rows = [settled(row, request["parameters"], drafts[:i], i) for i, row in enumerate(target)]
        target = torch.stack(rows)
    then = [prepared(each, size) for each in request.get("then", [])]
    return {**request, "target": target, "draft": dense(request["draft"], size), "then": then}


def answer(kind, request, coins=None):
    target, draft = request["target"], request["draft"]
    if kind == "drafted":
        drawn = [pick(row) for row in draft]
        return [*drawn, -1, *verify(drawn, target, draft)]
    block = (
        refusing(request["drafts"], target, draft)
        if kind == "range"
        else verify(request["drafts"], target, draft, coins)
    )
    if kind == "calls":
        following = request["then"][len(block) - 1]
        return [*block, -1, *verify(following["drafts"], following["target"], following["draft"])]
    if kind == "logprobs":
        return {"tokens": block, "logprobs": [float(target[i, t].log()) for i, t in enumerate(block)]}
    return block


def refusing(*arguments):
    """An exception on rows that are no laws is a refusal."""
    try:
        return verify(*arguments)
    except RuntimeError:
        return None


def play(case):
    size, kind = case["vocab"], case["kind"]
    if kind == "pooled":
        own = prepared(case, size)
        for call in case["calls"]:
            for _ in range(call["times"] * TIMES):
                yield [verify(call["drafts"], own["target"], own["draft"])]
        return
    requests = [prepared(request, size) for request in case["requests"]]
    if kind == "grid":
        points, coins = case["points"], case["coins"]
        for call in range(points**coins):
            given = [(call // points**k % points + 0.5) / points for k in range(coins)]
            yield [answer(kind, request, given) for request in requests]
        return
    for _ in range(case["draws"] * TIMES):
        yield [answer(kind, request) for request in requests]


if __name__ == "__main__":
    with open(sys.argv[1]) as lines:
        _, *cases = map(json.loads, lines)
    for case in cases:
        if case["profile"] != "paths":
            print(json.dumps({"case": case["id"], "answers": list(play(case))}), flush=True)
