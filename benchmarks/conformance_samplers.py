"""Samplers of other rooms: public reports, faulty batches, specimens of the audits, and their right partners.

    PYTHONPATH=.:tests/support python benchmarks/conformance_samplers.py [--out FILE]

The suite's cases were not chosen by them.  The right forms must conform; a wrong form that a fixed draft can
show must not.  Rows that the file has are kept: delete it after a change of the cases.
"""

import argparse
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from timing import machine

import batch_faults
import public_batches
import public_reports
from audits.specimens.samplers import BATCH_SPECIMENS, LOSSLESS_SPECIMENS, SPECIMENS
from conformance import judge
from conformance.case_forms import Case, batch_of
from conformance.suite import suite
from spectheory.auditing.subjects.signatures import Row

RESULT = Path("benchmarks/results/conformance_samplers-xeon-2core.json")


class Held(NamedTuple):
    """A sampler.

    Attributes:
        group: whose it is.
        is_wrong: whether it breaks the law that it claims.
        answers: case -> answers.
        profiles: of cases that it can be called with.
        claims: what it would claim.
    """

    group: str
    is_wrong: bool
    answers: Callable[[Case], Any]
    profiles: Sequence[str] = ("core",)
    claims: str = "token"


def of_one_path(sampler: Callable[..., Any], case: Case) -> Any:
    """Answers of the signature "sampler" to a case without placeholders, request by request."""
    generator = torch.Generator().manual_seed(5)
    rows = _rows(case)

    def answer(row: Row) -> list[int]:
        if not len(row.draft_tokens):
            return [int(torch.multinomial(row.target_probs[0], 1, generator=generator))]
        tokens, target, draft = (each[None] for each in row[:3])
        return [int(t) for t in sampler(tokens, target.clone(), draft.clone(), generator)]

    return [[answer(row) for row in rows] for _ in range(case["draws"])]


def of_two_calls(sampler: Callable[..., Any], case: Case) -> Any:
    """Answers to a case of two calls, with one generator for both."""
    generator = torch.Generator().manual_seed(5)

    def tokens(request: Any) -> list[int]:
        (row,) = _rows({**case, "requests": [request]})
        paths, target, draft = (each[None] for each in row[:3])
        return [int(token) for token in sampler(paths, target, draft, generator)]

    def answer(request: Any) -> list[int]:
        first = tokens(request)
        return [*first, -1, *tokens(request["then"][len(first) - 1])]

    return [[answer(request) for request in case["requests"]] for _ in range(case["draws"])]


def of_coins(sampler: Callable[..., Any], case: Case) -> Any:
    """Answers of the signature "coins"."""
    rows = _rows(case)
    return [
        [
            [int(token) for token in sampler(*row[:3], torch.rand(len(row.draft_tokens)), torch.rand(1))]
            for row in rows
        ]
        for _ in range(case["draws"])
    ]


def of_batch(sampler: Callable[..., Any], case: Case) -> Any:
    """Answers of the signature "batch"."""
    generator = torch.Generator().manual_seed(5)
    rows = _rows(case)
    return [[list(map(int, own)) for own in sampler(rows, generator)] for _ in range(case["draws"])]


def of_batches_of_one(sampler: Callable[..., Any], case: Case) -> Any:
    """As ``of_batch``, one request with drafts in a batch; a request without drafts is drawn here."""
    generator = torch.Generator().manual_seed(5)
    rows = _rows(case)

    def answer(row: Row) -> list[int]:
        if not len(row.draft_tokens):
            return [int(torch.multinomial(row.target_probs[0], 1, generator=generator))]
        return [int(token) for token in sampler([row], generator)[0]]

    return [[answer(row) for row in rows] for _ in range(case["draws"])]


def _rows(case: Case) -> list[Row]:
    found = []
    for own in batch_of(case["requests"], case["vocab"]):
        real = [token for token in own.drafts if token >= 0]
        target = torch.tensor(np.array(own.target), dtype=torch.float32)
        draft = torch.tensor(np.array(own.draft), dtype=torch.float32).reshape(-1, case["vocab"])
        is_greedy = bool(own.parameters) and own.parameters.get("temperature") == 0
        target = (target / target.sum(-1, keepdim=True))[: len(real) + 1]
        tokens = torch.tensor(real, dtype=torch.int64)
        found.append(Row(tokens, target, draft[: len(real)], is_greedy, len(own.drafts) - len(real)))
    return found


REPORTS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    name: [{"right": False}, {"right": True}]
    for name in (
        "shared_coin", "point_residual", "next_row", "seeded_coins", "raises_on_a_token",
        "temperature_dropped", "filter_on_bonus",
    )
}  # fmt: skip
"""Faults of public reports -> arguments of the wrong and the right form."""
FLAT_FAULTS = (
    "offset of one length", "offset of equal lengths", "no residual", "absolute residual", "noise of tokens",
    "draft rows of the first", "a thousandth more", "coins of places", "winner of the start", "bonus always",
)  # fmt: skip
GREEDY = ("core", "placeholders", "greedy")


def held() -> Iterator[tuple[str, Held]]:
    """Name -> sampler, wrong ones and their right partners."""
    for name, forms in REPORTS.items():
        for form in forms:
            if name != "filter_on_bonus" or not form["right"]:
                sampler = partial(getattr(public_reports, name), **form)
                yield (
                    f"{name}, {form}",
                    Held("public reports", not form["right"], partial(of_one_path, sampler)),
                )
    for place in (2, 3):
        deep = partial(public_reports.deep_rows, right_until=place)
        yield f"deep_rows from {place}", Held("public reports", True, partial(of_one_path, deep))
    offsets = partial(public_reports.small_offsets, wraps_at=8)
    yield "small_offsets", Held("public reports", True, partial(of_one_path, offsets))
    match = partial(public_reports.match_rule, right=False)
    yield "match_rule, wrong", Held("public reports", True, partial(of_one_path, match), claims="lossless")
    match = partial(public_reports.match_rule, right=True)
    yield "match_rule, right", Held("public reports", False, partial(of_one_path, match), claims="lossless")
    for fault in FLAT_FAULTS:
        engine = partial(public_batches.flat_engine, fault=fault)
        yield f"flat engine: {fault}", Held("public batches", True, partial(of_batch, engine))
    half = partial(public_batches.flat_engine, fault="half precision")
    yield "flat engine: half precision", Held("public batches", True, partial(of_batch, half), ("precision",))
    right = partial(public_batches.flat_engine, fault="")
    yield "flat engine", Held("public batches", False, partial(of_batch, right))
    for name in ("placeholder_is_last_token", "only_placeholders", "first_unchecked", "zero_temperature"):
        for is_right in (False, True):
            engine = partial(getattr(public_batches, name), right=is_right)
            profiles = ("placeholders",) if "placeholder" in name else ("greedy",)
            wrong = Held("public batches", not is_right, partial(of_batch, engine), profiles)
            if "placeholder" in name or not is_right:  # the others verify greedy requests only
                yield f"{name}, right={is_right}", wrong
    for name, sampler in batch_faults.FAULTS.items():
        claims = "block" if name == "weight_not_reset" else "token"
        profiles = ("block",) if claims == "block" else GREEDY
        yield name, Held("batch faults", True, partial(of_batch, sampler), profiles, claims)
    for name, sampler in batch_faults.RIGHT.items():
        claims, profiles = ("block", ("block",)) if name == "blocks" else ("token", GREEDY)
        yield name, Held("batch faults", False, partial(of_batch, sampler), profiles, claims)
    yield from _specimens()


def _specimens() -> Iterator[tuple[str, Held]]:
    lossless = ("seeds_the_global_generator", "residual_in_place")
    for name, (sampler, signature) in SPECIMENS.items():
        if signature in ("sampler", "coins"):
            of = of_coins if signature == "coins" else of_one_path
            block = name in ("product_of_uniforms", "uncapped_joint_ratio")
            profiles, claims = (("block",), "block") if block else (("core",), "token")
            if name == "coins_of_positions":  # its state is wrong from call to call
                of, profiles = of_two_calls, ("calls",)
            yield name, Held("specimens", name not in lossless, partial(of, sampler), profiles, claims)
    for name, sampler in BATCH_SPECIMENS.items():
        yield name, Held("specimens", True, partial(of_batch, sampler), GREEDY)
    for name, (sampler, _) in LOSSLESS_SPECIMENS.items():
        claims = {"sample_and_compare": "lossless", "block_verification": "block"}.get(name, "token")
        profiles = ("block",) if claims == "block" else ("core",)
        yield name, Held("specimens", False, partial(of_one_path, sampler), profiles, claims)


def cases_for(own: Held) -> list[Case]:
    def is_in(case: Case) -> bool:
        profile = "greedy" if case["id"] == "greedy-mix" else case["profile"]
        return profile in own.profiles and case["kind"] in ("fixed", "calls")

    return [{**case, "profile": "core"} for case in suite() if is_in(case)]


def verdict_on(own: Held) -> dict[str, Any]:
    """Whether the suite finds the sampler, and by what; an exception on ordinary rows counts."""
    torch.manual_seed(11)
    cases = sorted(cases_for(own), key=lambda case: case["draws"] * len(case["requests"]))
    results: dict[str, Any] = {}
    known: dict[str, Any] = {}
    for case in cases:  # the e-value is valid at any stop
        try:
            results[case["id"]] = own.answers(case)
            report = judge.judge(cases, results, own.claims, known=known)
        except Exception as error:
            return {"verdict": "does not conform", "by": type(error).__name__, "raised": str(error)[:200]}
        if report["verdict"] == "does not conform":
            break
    worst = max(report["cases"], key=lambda row: (bool(row["faults"]), row["log10_e"]))
    return {"verdict": report["verdict"], "log10_e": round(report["log10_e"], 1), "by": worst["case"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # a fault divides by zero
    kept = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    rows = kept.get("samplers", {})
    for name, own in held():
        if name in rows:
            continue
        rows[name] = {"of": own.group, "is_wrong": own.is_wrong, "claims": own.claims, **verdict_on(own)}
        print(name, rows[name], flush=True)
        report = {"machine": machine(), "samplers": rows}
        options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
