#!/usr/bin/env python3
"""Judge of the conformance suite for draft verification: does a sampler keep the law that it claims?

    judge.py cases.jsonl answers.jsonl --control wrong.jsonl [--claims token] [--profiles core,many]
    judge.py cases.jsonl --self-test

Answers are JSON lines, {"case": ID, "answers": [[answer of every request] of every call]}, calls in order; a
case may have several lines.  `-` reads them from standard input.  The control is a sampler that is known to
be wrong: if it is not found, the run says nothing.

The verdict rests on one e-value: under every sampler whose law is within RELATIVE and ABSOLUTE of the right
one its mean is at most 1, so that a right sampler fails at most once in a million runs (Markov's inequality).
Exit codes: 0 conforms, 1 does not conform, 2 bad input, 4 undecided, or the control was not found.
This file needs Python 3.9 and its standard library only; copy it where you like.
"""

import argparse
import json
import math
import os
import random
import sys
from collections import Counter
from fractions import Fraction
from itertools import product

VERSION = "1.0"
FORMAT = "draft-verification-cases/1"
LIMIT = 6 * math.log(10)  # one false alarm in a million runs
RELATIVE = 2.0**-12  # rounding may change a probability by this factor: float32 rows stay far below
ABSOLUTE = 2.0**-16  # rounding may give this to a block that should not occur: softmax in float32 leaks 1e-7
SELDOM = 2.0**-14  # blocks below are counted together over all requests, where one is too rare to be seen
LOGPROB = 2.0**-8  # a reported log probability may be off by this: rows are exact in float32
CLAIMS = ("token", "block", "lossless", "multi_round", "greedy_multipath")
SEPARATOR = -1  # in a flat answer, between drafts and block or between two blocks


class Part:
    """One e-value: cells with the largest probabilities that the null allows, and what counts into them.

    A stream is (request, request or None, lag, table): the table leads from an answer's cell to the part's.
    For pairs, `lag` calls apart, it is indexed by both cells; its end is the second's number of cells.
    """

    def __init__(self, about, null, streams):
        self.about, self.null, self.streams = about, null, streams

    def log_e(self, columns):
        counts = [0] * len(self.null)
        for first, second, lag, table in self.streams:
            own = columns[first]
            if second is None:
                for cell, number in Counter(own).items():
                    counts[table[cell]] += number
                continue
            width, other = table[-1], columns[second]
            for t in pair_starts(len(own), lag):
                counts[table[own[t] * width + other[t + lag]]] += 1
        return log_mixture(counts) - sum(n * math.log(p) for n, p in zip(counts, self.null) if n)


def pair_starts(calls, lag):
    """First calls of pairs that do not overlap."""
    return [t for t in range(calls - lag) if not lag or t // lag % 2 == 0]


def log_mixture(counts):
    """log of the Krichevsky-Trofimov mixture of all laws on these cells, at these counts."""
    cells, total = len(counts), sum(counts)
    seen = sum(math.lgamma(n + 0.5) - math.lgamma(0.5) for n in counts if n)
    return math.lgamma(cells / 2) - math.lgamma(total + cells / 2) + seen


def loosened(probability):
    """The largest probability within the null."""
    return float(probability) * (1 + RELATIVE) + ABSOLUTE


def log_mean(logs, count):
    """log of the mean of `count` numbers; those that are not given are 0."""
    top = max(logs, default=-math.inf)
    if top == -math.inf:
        return top
    return top + math.log(sum(math.exp(value - top) for value in logs) / count)


class Law:
    """The exact law of an answer: cell k is block k, and the last cell is any other block."""

    def __init__(self, pairs):
        self.blocks = [tuple(block) for block, _ in pairs]
        self.masses = [Fraction(mass) for _, mass in pairs]
        if sum(self.masses) != 1:
            raise ValueError("a law does not sum to 1")
        self.place = {block: k for k, block in enumerate(self.blocks)}
        self.null = [loosened(mass) for mass in self.masses] + [ABSOLUTE]

    def cell(self, block):
        return self.place.get(block, len(self.blocks))


def whole(about, law, *requests):
    """The part with the cells of a law, over requests that have this law."""
    return Part(about, law.null, [(r, None, 0, range(len(law.null))) for r in requests])


def merged(about, law, *requests):
    """The part whose cells are equally likely blocks: many rare blocks are one; none where few are equal."""
    kinds = sorted(set(law.masses))
    if len(kinds) >= len(law.masses) - 2:
        return []
    table = [kinds.index(mass) for mass in law.masses] + [len(kinds)]
    null = [loosened(kind * law.masses.count(kind)) for kind in kinds] + [ABSOLUTE]
    return [Part(f"{about}, equally likely blocks together", null, [(r, None, 0, table) for r in requests])]


def parts_of(case, laws):
    """The parts of a case, first every request; `laws` has a law, or None, for each."""
    judged = [r for r, law in enumerate(laws) if law]
    parts = [whole(f"request {r}", laws[r], r) for r in judged]
    for r in judged:
        parts += merged(f"request {r}", laws[r], r)
    tables = {r: [int(mass < SELDOM) for mass in laws[r].masses] + [1] for r in judged}
    rare = max(sum(p for p, is_rare in zip(laws[r].null, tables[r]) if is_rare) for r in judged)
    streams = [(r, None, 0, tables[r]) for r in judged]
    parts.append(Part("blocks that hardly occur", [1.0, rare], streams))
    for group in case.get("alike", []):
        if laws[group[0]]:
            about = f"requests {group[0]} to {group[-1]}, which are equal"
            parts += [whole(about, laws[group[0]], *group), *merged(about, laws[group[0]], *group)]
    few = judged if len(judged) <= 12 else [judged[0], judged[-1]]
    parts += [pair_part(laws, a, b, 0) for a, b in case.get("pairs", []) if laws[a] and laws[b]]
    return parts + [pair_part(laws, r, r, lag) for lag in case.get("lags", []) for r in few]


def pair_part(laws, a, b, lag):
    """Two independent answers together; a pair with a cell outside has at most 3 ABSOLUTE."""
    about = f"request {a}, {lag} calls apart" if lag else f"requests {a} and {b} together"
    first, second = laws[a].null[:-1], laws[b].null[:-1]
    null = [p * q for p in first for q in second] + [3 * ABSOLUTE]
    inside = {(i, j): i * len(second) + j for i in range(len(first)) for j in range(len(second))}
    cells = product(range(len(first) + 1), range(len(second) + 1))
    table = [*(inside.get(pair, len(null) - 1) for pair in cells), len(second) + 1]
    return Part(about, null, [(a, b, lag, table)])


# Answers
def blocks_of(answer):
    """The lists of a flat answer, which SEPARATOR divides."""
    found = [[]]
    for token in answer:
        found.append([]) if token == SEPARATOR else found[-1].append(token)
    return found


def wrong_block(block, drafts, size):
    """Why this cannot be emitted after so many drafts, or None."""
    if not block:
        return "no token"
    if len(block) > drafts + 1:
        return f"{len(block)} tokens for {drafts} drafts"
    return wrong_tokens(block, size)


def wrong_tokens(tokens, size):
    for token in tokens:
        if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token < size:
            return f"token {token} outside the vocabulary of {size}"
    return None


def wrong_form(answer, request, case):
    """Why this is not an answer to the request, or None."""
    if not isinstance(answer, (list, tuple)):
        return f"no list of tokens: {answer}"
    size, blocks = case["vocab"], blocks_of(answer)
    expected = {"drafted": 2, "calls": 2}.get(case["kind"], 1)
    if len(blocks) != expected:
        return f"{len(blocks)} lists where {expected} are due"
    if case["kind"] == "drafted":
        if len(blocks[0]) != request["length"]:
            return f"{len(blocks[0])} drafts where {request['length']} are due"
        return wrong_tokens(blocks[0], size) or wrong_block(blocks[1], request["length"], size)
    if case["kind"] == "calls":
        first = wrong_block(blocks[0], len(request["drafts"]), size)
        return first or wrong_block(blocks[1], len(request["then"][len(blocks[0]) - 1]["drafts"]), size)
    drafts = request["paths"][0] if "paths" in request else request["drafts"]
    return wrong_block(blocks[0], len(drafts), size)


def wrong_logprobs(answer, request):
    """Why the reported log probabilities are not the target's, or None."""
    tokens, logprobs = answer["tokens"], answer["logprobs"]
    if len(tokens) != len(logprobs):
        return f"{len(logprobs)} log probabilities for {len(tokens)} tokens"
    for i, (token, value) in enumerate(zip(tokens, logprobs)):
        mass = float(Fraction(dict(map(tuple, request["target"][i])).get(token, 0)))
        right = math.log(mass) if mass else -math.inf
        if not (isinstance(value, (int, float)) and (value == right or abs(value - right) <= LOGPROB)):
            return f"position {i}: token {token} has log probability {right:.4f}, reported {value}"
    return None


def completed(answer, request, rng):
    """A block with tokens that the target draws after it: every lossless algorithm has the target's law."""
    block = list(answer)
    while len(block) < len(request["target"]):
        tokens, masses = zip(*request["target"][len(block)])
        block.append(rng.choices(tokens, [float(Fraction(mass)) for mass in masses])[0])
    return tuple(block)


class Judged:
    """What a case says: log e-value, faults of form, and the parts with their values."""

    def __init__(self, case, parts=(), faults=(), findings=()):
        self.case, self.parts, self.faults, self.findings = case, list(parts), list(faults), list(findings)
        self.log_e = log_mean([value for _, value in self.parts], max(len(self.parts), 1)) if parts else 0.0


def judge_law(case, answers, claims):
    """A case whose requests have a law each: fixed, drafted, calls and logprobs."""
    laws = [Law(r["law"][claims]) if claims in r["law"] else None for r in case["requests"]]
    rng, columns, faults = random.Random(case["id"]), {}, []
    for r, request in enumerate(case["requests"]):
        own = [call[r] for call in answers]
        if case["kind"] == "logprobs":
            faults += [f"request {r}: {why}" for why in (wrong_logprobs(a, request) for a in own) if why][:1]
            own = [answer["tokens"] for answer in own]
        wrong = ((wrong_form(answer, request, case), answer) for answer in own)
        faults += [f"request {r}: {why}: {answer}" for why, answer in wrong if why][:1]
        if laws[r] and not faults:
            done = [completed(a, request, rng) for a in own] if claims == "lossless" else map(tuple, own)
            columns[r] = [laws[r].cell(block) for block in done]
    if faults:
        return Judged(case, faults=faults)
    parts = parts_of(case, laws)
    values = {part.about: part.log_e(columns) for part in parts}
    if len(columns) > 1:
        values["all requests"] = sum(list(values.values())[: len(columns)])
    return Judged(case, values.items(), findings=explained(case, laws, columns, answers, claims))


def explained(case, laws, columns, answers, claims):
    """The requests whose answers are least likely, each with its blocks that occur too often."""
    found = []
    for r, cells in columns.items():
        law, total = laws[r], len(cells)
        expected, seen = {b: total * float(mass) for b, mass in zip(law.blocks, law.masses)}, Counter()
        for call, cell in zip(answers, cells):
            answer = call[r]["tokens"] if case["kind"] == "logprobs" else call[r]
            seen[tuple(answer) if cell == len(law.blocks) or claims != "lossless" else law.blocks[cell]] += 1
        excess = sorted(((n - expected.get(b, 0), n, b) for b, n in seen.items()), reverse=True)[:3]
        lines = [
            f"{list(block)} (position {len(block) - 1}) {n} times, expected {n - more:.1f} of {total}"
            for more, n, block in excess
            if more > 0
        ]
        text = f"request {r}{rarity(case['requests'][r])}: " + "; ".join(lines)
        found.append((whole("", law, r).log_e(columns), text))
    return [text for _, text in sorted(found, reverse=True)[:2]]


def rarity(request):
    """How likely a draft model draws these drafts: forced drafts may be rare."""
    drafts, mass = request.get("drafts", []), Fraction(1)
    for token, row in zip(drafts, request.get("draft", [])):
        mass *= Fraction(dict(map(tuple, row)).get(token, 0)) if token >= 0 else 1
    return "" if not mass or mass == 1 else f", drafts {drafts} drawn once in {float(1 / mass):.0f}"


def judge_pooled(case, answers, _claims):
    """Any lossless algorithm: drafts in the proportions of their law, blocks completed by the target's rows.

    Strata differ and their average is the target's law: by the inequality of arithmetic and geometric means
    the e-value's mean is at most 1 (see the page on statistics).
    """
    request = {"target": case["target"], "draft": case["draft"], "drafts": case["draft"]}
    rng, blocks = random.Random(case["id"]), []
    for call in answers:
        why = wrong_form(call[0], request, case)
        if why:
            return Judged(case, faults=[f"{why}: {call[0]}"])
        blocks.append(completed(call[0], request, rng))
    law, parts = Law(case["law"]), []
    for depth in range(1, len(case["target"]) + 1):
        masses = Counter()
        for block, mass in zip(law.blocks, law.masses):
            masses[block[:depth]] += mass
        shorter = Law(sorted(masses.items()))
        column = [shorter.cell(block[:depth]) for block in blocks]
        parts.append((f"the first {depth} tokens", whole("", shorter, 0).log_e([column])))
    return Judged(case, parts)


def judge_grid(case, answers, _claims):
    """Given coins: over the whole grid every block occurs exactly as often as it must; no statistics."""
    want = {tuple(block): number for block, number in case["counts"]}
    seen = Counter(tuple(call[0]) for call in answers)
    wrong = [block for block in sorted({*want, *seen}) if want.get(block, 0) != seen[block]]
    texts = [f"{list(b)}: {seen[b]} of {len(answers)} coins, must be {want.get(b, 0)}" for b in wrong]
    return Judged(case, faults=texts[:1])


def judge_range(case, answers, _claims):
    """Rows that are no laws: the engine may refuse (null); what it emits is a token and not forbidden."""
    for call in answers:
        for r, request in enumerate(case["requests"]):
            if call[r] is None and request.get("may_refuse"):
                continue
            why = wrong_form(call[r], request, case)
            if why or call[r] in request.get("forbidden", []):
                return Judged(case, faults=[f"request {r}: {why or 'forbidden'}: {call[r]}"])
    return Judged(case)


JUDGES = {"pooled": judge_pooled, "grid": judge_grid, "range": judge_range}


def expected_calls(case, times):
    if case["kind"] == "grid":
        return case["points"] ** case["coins"]
    return times * (case["draws"] if "draws" in case else sum(call["times"] for call in case["calls"]))


def applies(case, claims, profiles):
    if case["kind"] in JUDGES:
        return case["profile"] in profiles and claims in case.get("claims", [claims])
    return case["profile"] in profiles and any(claims in request["law"] for request in case["requests"])


def judge_case(case, answers, claims):
    width = 1 if case["kind"] == "pooled" else len(case["requests"])
    if any(not isinstance(call, list) or len(call) != width for call in answers):
        return Judged(case, faults=["a call has not one answer for every request"])
    return JUDGES.get(case["kind"], judge_law)(case, answers, claims)


def judge(cases, results, claims="token", profiles=("core",), times=1, known=None):
    """The report on {case: answers}: verdict, log10 of the e-value, cases.

    The e-value is the mean over all cases; a case without all of its answers counts as 1, which is where its
    e-value starts.  It is valid whenever one stops.  `known` keeps what was judged, {case: Judged}.
    """
    chosen = [case for case in cases if applies(case, claims, profiles)]
    known = {} if known is None else known
    for case in chosen:
        answers, calls = results.get(case["id"], []), expected_calls(case, times)
        if case["id"] not in known and len(answers) >= calls:
            known[case["id"]] = judge_case(case, answers[:calls], claims)
    done = [known[case["id"]] for case in chosen if case["id"] in known]
    missing = [case["id"] for case in chosen if case["id"] not in known]
    logs = [each.log_e for each in done] + [0.0] * len(missing)
    total = log_mean(logs, max(len(chosen), 1)) if chosen else 0.0
    wrong = total >= LIMIT or any(each.faults for each in done)
    verdict = "does not conform" if wrong else "undecided" if missing or not done else "conforms"
    head = {"format": "draft-verification-report/1", "verdict": verdict, "claims": claims, "missing": missing}
    rows = [row(each) for each in done]
    return {**head, "profiles": sorted(profiles), "log10_e": total / math.log(10), "cases": rows}


def row(judged):
    where = max(judged.parts, key=lambda part: part[1], default=("", 0))[0]
    head = {"case": judged.case["id"], "about": judged.case["about"], "log10_e": judged.log_e / math.log(10)}
    return {**head, "where": where, "faults": judged.faults, "findings": judged.findings}


def screen(report):
    """The report in words."""
    verdict = report["verdict"] + (f" to {report['claims']}" if report["verdict"] != "undecided" else "")
    lines = [f"{verdict}: {len(report['cases'])} cases, e-value 10^{report['log10_e']:.1f}, limit 10^6"]
    if report["verdict"] == "does not conform":
        worst = sorted(report["cases"], key=lambda each: (not each["faults"], -each["log10_e"]))
        for each in [e for e in worst if e["faults"] or e["log10_e"] > 3][:3]:
            why = each["faults"] or [f"e-value 10^{each['log10_e']:.1f} at {each['where']}"]
            lines += [f"  {each['case']}: {why[0]}", f"    {each['about']}"]
            lines += [f"    {text}" for text in each["findings"]]
        if report["claims"] != "lossless":
            lines.append("  A sampler can be lossless by another rule: then use --claims lossless.")
    if report["missing"]:
        lines.append(f"  no or too few answers: {', '.join(report['missing'])}")
    return "\n".join(lines)


# Self-test: a right sampler conforms, wrong ones do not
def pure_sampler(fault, rng):
    def draw(masses):
        return rng.choices(list(masses), list(masses.values()))[0]

    def verify(drafts, target, draft):
        for i, token in enumerate(drafts):
            p, q = target[i], draft[i]
            if token >= 0 and rng.random() * q[token] < p.get(token, 0.0):
                continue
            left = {y: m - q.get(y, 0.0) for y, m in p.items() if m > q.get(y, 0.0)}
            return [*drafts[:i], draw(p if token < 0 or fault == "target" else left)]
        return [*drafts, draw(draft[-1] if fault == "bonus" and draft else target[-1])]

    return verify


def play(case, verify):  # all answers of a sampler to a fixed case
    def floats(rows):
        return [{token: float(Fraction(mass)) for token, mass in row} for row in rows]

    inputs = [(own["drafts"], floats(own["target"]), floats(own["draft"])) for own in case["requests"]]
    return [[verify(*own) for own in inputs] for _ in range(case["draws"])]


def self_test(cases):
    """A right sampler conforms, and two wrong ones do not: (text, exit code)."""
    fixed = [case for case in cases if case["kind"] == "fixed" and applies(case, "token", ("core",))]
    good, lines = True, []
    for fault, want in {"": "conforms", "target": "does not conform", "bonus": "does not conform"}.items():
        results = {case["id"]: play(case, pure_sampler(fault, random.Random(1))) for case in fixed}
        report = judge(fixed, results)
        good &= report["verdict"] == want
        lines.append(f"{fault or 'right'}: {report['verdict']}, 10^{report['log10_e']:.1f}; must be: {want}")
    return "\n".join(lines), 0 if good else 1


# Command line
def read_cases(path):
    with open(path, encoding="utf-8") as lines:
        header, *cases = [json.loads(line) for line in lines if line.strip()]
    if header.get("format") != FORMAT:
        raise ValueError(f"{path} is not of the format {FORMAT}")
    return cases


def read_answers(path, stop=None):
    """{case: answers}; `stop` is asked after every line, and ends the reading."""
    results = {}
    with sys.stdin if path == "-" else open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                answer = json.loads(line)
                results.setdefault(answer["case"], []).extend(answer["answers"])
                if stop and stop(results):
                    break
    return results


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases")
    parser.add_argument("answers", nargs="?", help="of the sampler; - for standard input")
    parser.add_argument("--control", help="answers of a sampler that is known to be wrong")
    parser.add_argument("--claims", default="token", choices=CLAIMS)
    parser.add_argument("--profiles", default="core", help="what the engine has, with commas")
    parser.add_argument("--times", type=int, default=1, help="every case was played so many times")
    parser.add_argument("--stop", action="store_true", help="stop reading as soon as the sampler has failed")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


def run(options):
    """(text to print, exit code)."""
    cases, profiles = read_cases(options.cases), options.profiles.split(",")
    unknown = set(profiles) - {case["profile"] for case in cases}
    if unknown:
        raise ValueError(f"no such profile: {', '.join(sorted(unknown))}")
    if options.self_test:
        return self_test(cases)
    if not options.answers:
        raise ValueError("give the answers of a sampler, or --self-test")

    def report_on(results, known=None):
        return judge(cases, results, options.claims, profiles, options.times, known)

    def has_failed(results, known={}):  # noqa: B006 - kept from line to line
        return report_on(results, known)["verdict"] == "does not conform"

    report = report_on(read_answers(options.answers, has_failed if options.stop else None))
    control = report_on(read_answers(options.control))["verdict"] if options.control else "missing"
    report["control"] = {"missing": control, "does not conform": "found"}.get(control, "NOT FOUND")
    code = {"conforms": 0, "does not conform": 1, "undecided": 4}[report["verdict"]]
    code = 4 if report["control"] == "NOT FOUND" or (report["control"] == "missing" and code == 0) else code
    nothing = "; the run says nothing" if code == 4 and report["control"] != "found" else ""
    text = f"{screen(report)}\ncontrol: {report['control']}{nothing}"
    return (json.dumps(report) if options.json else text), code


def main(arguments=None):
    try:
        text, code = run(parsed(arguments))
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        print(f"bad input: {error!r} {getattr(error, 'doc', '')[:60]}", file=sys.stderr)
        return 2
    try:
        print(text, flush=True)
    except BrokenPipeError:  # the reader has seen enough; the verdict stays
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


if __name__ == "__main__":
    sys.exit(main())
