"""Does draft verification keep the target's law?  One file to copy into your tests; it needs pytest.

Write `verify` below: one batch in, the emitted tokens out.  Nothing else is to be changed.
Version 1.0 of 2026-11-28, generated from the conformance suite of spectheory, which has more cases.

A right sampler fails at most once in a million runs (Markov's inequality for an e-value).  Each of 91
known mistakes is found with a probability of 0.999 or more.  Rounding is allowed for: 2^-12 relative, 2^-16
absolute.
"""

import math
import random
from collections import Counter
from fractions import Fraction

import pytest

ARRAYS = "numpy"  # what rows are handed as: "numpy", "torch", or "list"


def verify(drafts, target, draft):
    """The adapter: drafts [B][n] -> [B] lists of emitted tokens, with new random numbers in every call.

    `target` has for each of the B requests n+1 rows, `draft` n rows, of V float32 probabilities.  An engine
    that takes one request at a time loops over them.
    """
    from my_engine import rejection_sample

    return rejection_sample(drafts, target, draft)


# Name, vocabulary, calls, pairs of requests that must be independent, distances between calls that must be
# independent, groups of equal requests, requests as "drafts / target rows / draft rows".  A row is
# token:probability; 1-32:1/64 gives 1/64 to each of 1 to 32.
CASES = [
    ('laws', 40, 144, [], [1, 2, 4, 8, 16, 32], [], [
        '0 / 0:1/2 1:1/2; 2:1/2 3:1/2 / 0:1',
        '0 0 / 0:1/2 1:1/2; 0:1/2 1:1/2; 2:1 / 0:1; 0:1',
        '0 / 0:1/2 1:1/4 2:1/4; 1:1/2 2:1/2 / 0:1',
        '39 / 39:1; 0:1/2 1-32:1/64 / 39:1',
        '39 / 0:1/2 1-32:1/64; 39:1 / 39:1',
        '0 / 0:1/524288 1:524287/524288; 2:1 / 0:1/262144 1:262143/262144',
        '0 / 0:1/1048576 1:1048575/1048576; 2:1 / 0:1/1048576 1:1048575/1048576',
        '0 / 1:1025/4096 2:3071/4096; 3:1 / 0:1/4096 1:1/4 2:3071/4096',
        '0 1 / 1:1/2 2:1/2; 0:1; 3:1 / 0:1/2 1:1/2; 1:1',
        '0 1 2 3 4 5 / 0:1; 1:1; 2:1; 3:1; 4:1; 6:1/2 7:1/2; 8:1 / 0:1; 1:1; 2:1; 3:1; 4:1; 5:1',
        '0 / 0:1; 0:1/2 1:1/2 / 0:1',
        '3 / 0:1/4 3:3/4; 1:1 / 0:1/4 3:3/4',
        '0 0 0 0 0 / 0:15/16 1:1/16; 0:15/16 1:1/16; 0:15/16 1:1/16; 0:15/16 1:1/16; 0:15/16 1:1/16; 2:1 / 0:1; 0:1; 0:1; 0:1; 0:1',
        '0 1 2 / 0:1/2 1:1/2; 1:1/2 2:1/2; 2:1; 0:1/2 3:1/2 / 0:1/2 1:1/2; 1:1/2 2:1/2; 2:1',
    ]),
    ('independence', 4, 64, [[0, 1], [0, 2], [1, 2], [3, 4], [3, 5], [4, 5], [6, 7], [6, 8], [7, 8]], [], [], [
        '0 / 0:1/2 1:1/2; 2:1 / 0:1',
        '0 / 0:1/2 2:1/2; 3:1 / 0:1',
        '0 / 0:1/2 3:1/2; 1:1 / 0:1',
        '0 / 1:1/2 2:1/2; 3:1 / 0:1',
        '0 / 1:1/2 2:1/2; 3:1 / 0:1',
        '0 / 1:1/2 2:1/2; 3:1 / 0:1',
        '0 / 0:1; 1:1/2 2:1/2 / 0:1',
        ' / 1:1/2 2:1/2 / ',
        '0 / 0:1; 1:1/2 2:1/2 / 0:1',
    ]),
    ('full-rows', 3, 64, [], [], [], [
        '0 / 0:1/32 1:15/32 2:1/2; 1:1 / 0:1/16 1:7/16 2:1/2',
        '1 / 0:1/8 1:1/4 2:5/8; 0:1/2 1:1/8 2:3/8 / 0:3/8 1:1/2 2:1/8',
        '2 0 / 0:1/16 1:7/8 2:1/16; 0:1/8 1:1/8 2:3/4; 0:1/2 2:1/2 / 0:1/4 1:11/16 2:1/16; 0:1/2 1:1/4 2:1/4',
        '0 / 0:1/32 1:5/8 2:11/32; 0:1/8 1:5/8 2:1/4 / 0:3/4 1:1/8 2:1/8',
    ]),
    ('ladder', 5, 24, [], [], [], [
        '3 4 / 0:17/32 1:1/4 2:1/8 3:1/16 4:1/32; 0:17/32 1:1/4 2:1/8 3:1/16 4:1/32; 0:1 / 0:1/4 1:17/32 2:1/8 3:1/16 4:1/32; 0:1/4 1:17/32 2:1/8 3:1/16 4:1/32',
    ]),
    ('copies', 4, 112, [], [], [list(range(0, 16)), list(range(16, 40)), list(range(40, 80))],
        ['0 / 0:1/16 1:15/16; 2:1 / 0:1'] * 16 + ['0 / 1:1/2 2:1/2; 3:1 / 0:1/4 1:7/16 2:5/16'] * 24 + ['0 / 0:5/512 1:5/512 2:251/256; 3:1 / 0:1'] * 40),
    ('sixty-four', 12, 64, [], [], [],
        [f"{b % 4} / {b % 4}:1/1048576 {4 + b % 8}:1048575/1048576; 4:1 / {b % 4}:1" for b in range(64)]),
    ('ragged-1', 4, 16, [], [], [], [
        '2 0 1 3 / 1:3/8 2:1/4 3:3/8; 0:1/4 1:7/16 2:5/16; 0:1/16 1:11/16 2:1/4; 1:1/16 2:13/16 3:1/8; 0:1/2 1:3/16 3:5/16 / 0:9/16 1:3/16 2:1/4; 0:1/16 1:9/16 3:3/8; 0:7/16 1:1/2 3:1/16; 0:7/16 1:1/2 3:1/16',
        '3 / 1:1/8 2:3/8 3:1/2; 0:1/8 2:7/16 3:7/16 / 1:1/8 2:1/4 3:5/8',
        ' / 0:3/4 1:3/16 3:1/16 / ',
        '2 3 / 0:11/16 1:1/8 3:3/16; 0:1/4 2:5/16 3:7/16; 0:3/16 1:3/4 2:1/16 / 1:11/16 2:1/16 3:1/4; 0:1/8 1:3/16 3:11/16',
        '1 / 0:5/16 1:5/8 3:1/16; 0:1/2 1:1/8 2:3/8 / 1:1/2 2:1/4 3:1/4',
        '1 1 3 / 0:1/16 1:11/16 2:1/4; 0:1/2 2:3/8 3:1/8; 0:1/4 1:1/16 3:11/16; 0:3/8 1:7/16 2:3/16 / 0:13/16 1:1/8 3:1/16; 1:3/8 2:9/16 3:1/16; 0:3/16 2:5/16 3:1/2',
    ]),
    ('ragged-2', 4, 24, [], [], [], [
        '3 / 1:1/4 2:3/8 3:3/8; 1:5/8 2:1/8 3:1/4 / 1:3/4 2:1/8 3:1/8',
    ]),
    ('ragged-3', 8, 8, [], [], [], [
        '4 / 2:9/16 3:11/32 7:3/32; 0:21/32 2:7/32 3:1/8 / 0:9/32 3:3/16 4:17/32',
        '5 7 1 / 0:3/16 1:17/32 5:9/32; 2:1/4 4:3/16 7:9/16; 1:29/32 5:1/32 7:1/16; 0:3/16 3:1/16 6:3/4 / 4:7/32 5:9/32 6:1/2; 3:1/8 6:17/32 7:11/32; 1:13/16 4:5/32 5:1/32',
        ' / 0:5/16 1:1/8 3:9/16 / ',
        '1 6 / 1:3/8 5:9/32 7:11/32; 3:1/16 5:15/32 6:15/32; 4:15/32 6:5/32 7:3/8 / 0:11/32 1:3/32 6:9/16; 3:9/16 5:11/32 6:3/32',
        '3 0 6 6 / 1:5/16 3:9/32 6:13/32; 0:1/16 3:1/8 7:13/16; 0:11/32 5:19/32 6:1/16; 2:11/16 3:5/32 6:5/32; 2:5/32 4:23/32 6:1/8 / 3:1/8 4:15/32 7:13/32; 0:11/16 1:1/4 7:1/16; 3:13/32 4:9/16 6:1/32; 0:7/8 1:3/32 6:1/32',
    ]),
    ('ragged-4', 6, 16, [], [], [], [
        '3 3 / 0:7/8 1:1/8; 1:1/8 4:7/8; 2:21/32 5:11/32 / 0:1/16 3:15/16; 3:19/32 5:13/32',
        '3 0 / 3:19/32 4:13/32; 0:23/32 1:9/32; 0:31/32 4:1/32 / 3:3/16 4:13/16; 0:15/32 1:17/32',
    ]),
    ('ragged-5', 4, 8, [], [], [], [
        '3 1 / 2:5/8 3:3/8; 0:1/8 1:7/8; 0:1/4 3:3/4 / 1:7/8 3:1/8; 0:7/8 1:1/8',
        '1 0 / 1:7/8 2:1/8; 0:5/8 1:3/8; 1:3/8 3:5/8 / 1:1/4 2:3/4; 0:3/8 2:5/8',
    ]),
    ('ragged-6', 8, 8, [], [], [], [
        ' / 2:3/4 4:1/4 / ',
        '7 / 4:1/8 7:7/8; 1:3/8 7:5/8 / 3:15/16 7:1/16',
        '5 / 1:1/4 7:3/4; 4:1/8 6:7/8 / 0:1/8 5:7/8',
        '7 2 / 1:1/2 7:1/2; 2:1/2 4:1/2; 0:3/8 7:5/8 / 6:1/8 7:7/8; 0:5/8 2:3/8',
        '4 1 4 / 3:1/2 7:1/2; 1:13/16 5:3/16; 4:9/16 5:7/16; 1:7/16 4:9/16 / 3:1/16 4:15/16; 1:5/16 2:11/16; 1:7/16 4:9/16',
    ]),
]
LIMIT, RELATIVE, ABSOLUTE, SELDOM = 6 * math.log(10), 2.0**-12, 2.0**-16, 2.0**-14


def rows_of(text):
    rows = []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        rows.append({})
        for tokens, mass in (item.split(":") for item in part.split()):
            first, _, last = tokens.partition("-")
            rows[-1].update({token: Fraction(mass) for token in range(int(first), int(last or first) + 1)})
    return rows


def read(text):
    drafts, target, draft = text.split("/ ")
    return [int(token) for token in drafts.split()], rows_of(target), rows_of(draft)


def law_of(drafts, target, draft):
    """The exact law of the emitted block under token verification of these drafts."""
    law, reach = Counter(), Fraction(1)
    for i, token in enumerate(drafts):
        p, q = target[i], draft[i]
        chance = min(Fraction(1), p.get(token, Fraction(0)) / q[token])
        left = {y: m - q.get(y, 0) for y, m in p.items() if m > q.get(y, 0)}
        for y, m in left.items() if chance < 1 else ():
            law[(*drafts[:i], y)] += reach * (1 - chance) * m / sum(left.values())
        reach *= chance
    for y, m in target[-1].items():
        law[(*drafts, y)] += reach * m
    return {block: m for block, m in law.items() if m}


def log_e(counts, null, other=ABSOLUTE):
    """log e-value: a mixture of all laws against the largest probabilities that are allowed."""
    cells, total = len(null) + 1, sum(counts.values())
    mixture = math.lgamma(cells / 2) - math.lgamma(total + cells / 2)
    mixture += sum(math.lgamma(n + 0.5) - math.lgamma(0.5) for n in counts.values())
    return mixture - sum(n * math.log(null.get(cell, other)) for cell, n in counts.items())


def loosened(law):
    return {cell: float(m) * (1 + RELATIVE) + ABSOLUTE for cell, m in law.items()}


def together(first, second):
    return {(a, b): p * q for a, p in first.items() for b, q in second.items()}


def arrays(rows, size):
    dense = [[float(row.get(token, 0)) for token in range(size)] for row in rows]
    if ARRAYS == "numpy":
        import numpy

        return numpy.array(dense, dtype=numpy.float32).reshape(len(rows), size)
    if ARRAYS == "torch":
        import torch

        return torch.tensor(dense, dtype=torch.float32).reshape(len(rows), size)
    return dense


def answers_of(sampler, requests, size, calls, laws, convert):
    """For every request the cells of its answers; an answer of a wrong form raises AssertionError."""
    columns = [[] for _ in requests]
    inputs = [(drafts, convert(target, size), convert(draft, size)) for drafts, target, draft in requests]
    for _ in range(calls):
        answer = sampler(
            [list(own) for own, _, _ in inputs], [p for _, p, _ in inputs], [q for _, _, q in inputs]
        )
        assert len(answer) == len(requests), f"{len(answer)} answers to {len(requests)} requests"
        for r, tokens in enumerate(answer):
            block = tuple(int(token) for token in tokens)
            drafts = requests[r][0]
            assert 0 < len(block) <= len(drafts) + 1, (
                f"request {r}: {len(block)} tokens for {len(drafts)} drafts"
            )
            assert all(0 <= token < size for token in block), (
                f"request {r}: a token outside the vocabulary: {block}"
            )
            columns[r].append(block if block in laws[r] else "other")
    return columns


def parts_of(columns, laws, pairs, lags, alike):
    """log e-values of a case: every request, blocks that hardly occur, equal requests, pairs, calls apart."""
    nulls, calls = [loosened(law) for law in laws], len(columns[0])
    singles = [log_e(Counter(column), null) for column, null in zip(columns, nulls, strict=True)]
    yield from singles
    if len(singles) > 1:
        yield sum(singles)
    for column, law in zip(columns, laws, strict=True):
        if len(set(law.values())) < len(law) - 2:
            groups = Counter()
            for m in law.values():
                groups[m] += m
            yield log_e(Counter(law.get(block, "other") for block in column), loosened(groups))
    seldom = [{"other"} | {block for block, m in law.items() if m < SELDOM} for law in laws]
    most = max(
        ABSOLUTE + sum(null[b] for b in some - {"other"}) for some, null in zip(seldom, nulls, strict=True)
    )
    rare = sum(block in some for some, column in zip(seldom, columns, strict=True) for block in column)
    yield log_e(+Counter({"rare": rare, "usual": calls * len(columns) - rare}), {"usual": 1.0}, most)
    for group in alike:
        yield log_e(Counter(block for r in group for block in columns[r]), nulls[group[0]])
    for a, b in pairs:
        both = Counter(zip(columns[a], columns[b], strict=True))
        yield log_e(both, together(nulls[a], nulls[b]), 3 * ABSOLUTE)
    for lag in lags:
        for r in range(len(columns)) if len(columns) <= 12 else (0, len(columns) - 1):
            starts = [t for t in range(calls - lag) if t // lag % 2 == 0]
            both = Counter((columns[r][t], columns[r][t + lag]) for t in starts)
            yield log_e(both, together(nulls[r], nulls[r]), 3 * ABSOLUTE)


def counterexample(requests, columns, laws):
    """The request that is wrong by itself and has the fewest drafts, or the one that is most likely wrong."""
    alone = [log_e(Counter(column), loosened(law)) for column, law in zip(columns, laws, strict=True)]
    sure = [r for r, value in enumerate(alone) if value >= LIMIT] or [alone.index(max(alone))]
    r = min(sure, key=lambda each: (len(requests[each][0]), len(laws[each])))
    drafts, target, draft = requests[r]
    rows = [[{token: str(mass) for token, mass in row.items()} for row in some] for some in (target, draft)]
    seen = {block: columns[r].count(block) for block in {*laws[r], *columns[r]}}
    lines = [
        f"{block}: {n}, expected {len(columns[r]) * float(laws[r].get(block, 0)):.1f}"
        for block, n in seen.items()
    ]
    return f"request {r}, drafts {drafts}, target {rows[0]}, draft {rows[1]}: " + "; ".join(lines)


def findings(sampler, convert=arrays):
    """Cases that are evidence against the sampler: for a right one, one in a million over all cases."""
    found = []
    for name, size, calls, pairs, lags, alike, texts in CASES:
        requests = [read(text) for text in texts]
        laws = [law_of(*request) for request in requests]
        try:
            columns = answers_of(sampler, requests, size, calls, laws, convert)
        except AssertionError as error:
            found.append(f"{name}: {error}")
            continue
        values = list(parts_of(columns, laws, pairs, lags, alike))
        value = max(values) + math.log(sum(math.exp(each - max(values)) for each in values) / len(values))
        if value >= LIMIT + math.log(len(CASES)):
            found.append(
                f"{name}: e-value 10^{value / math.log(10):.0f}; {counterexample(requests, columns, laws)}"
            )
    return found


def reference(fault=None):
    """Token verification on lists, with a mistake or without."""
    rng = random.Random()

    def pick(row):
        return rng.choices(range(len(row)), row)[0]

    def sampler(drafts, target, draft):
        shared, out = rng.random(), []
        for b, (path, p, q) in enumerate(zip(drafts, target, draft, strict=True)):
            block = []
            for i, token in enumerate(path):
                coin = shared if fault == "one coin per batch" else rng.random()
                if coin * q[i][token] < p[i][token]:
                    block.append(token)
                    continue
                own = draft[0] if fault == "first draft rows" and b > 1 and i < len(draft[0]) else q
                left = [max(x - y, 0) for x, y in zip(p[i], own[i], strict=True)]
                block.append(pick(p[i] if fault == "no residual" or not any(left) else left))
                break
            else:
                block.append(pick(q[-1] if fault == "bonus from draft" and q else p[-1]))
            out.append(block)
        return out

    return sampler


def as_lists(rows, size):
    return [[float(row.get(token, 0)) for token in range(size)] for row in rows]


def test_draft_verification_keeps_the_law():
    found = findings(verify)
    assert not found, "\n" + "\n".join(found)


def test_a_right_sampler_is_right():
    assert not findings(reference(), as_lists)


@pytest.mark.parametrize(
    "fault", ["no residual", "bonus from draft", "one coin per batch", "first draft rows"]
)
def test_a_wrong_sampler_is_found(fault):
    assert findings(reference(fault), as_lists)
