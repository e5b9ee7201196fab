"""What a machine with a GPU should be asked first, in order of worth, within a few minutes.

1. ``kernels``: the row operators on the device beside the loops of the host, on the same rows.
2. ``laws``: the law of every verifier, enumerated in torch on the device in float64 and float32, on cases of
   the standard suite, against the target's.
3. ``texts``: texts of tiny language models on the device, decoded, against the target's law by chi-square.
4. ``rounds``: one round at V = 32 000 beside a copy of its rows; how often the host waits for the device
   in it (known on CUDA only), and how many operators torch starts; on CUDA also replayed from a graph.
5. ``models``: the gains of all verifiers over block verification on common drafts, with the weights in
   float32 and in bfloat16.  SmolLM2 if it is fetched, else the bundled models.
6. ``costs``: what calls cost, and the speed-up that three tokens per call would bring.
7. ``speed``: whole texts behind one prompt, measured against plain decoding.

On a CUDA device with Triton residuals, draws and scored selection's cuts are Triton kernels
(``foundation/kernels/triton_*.py``, ``coupling_kernel.py``), so that all parts judge them.  In the first two
a known-wrong verifier stands beside the others, and must be found.  Every part has a share of the time.  What
does not fit is left out, and the page says how much was done.  With ``--part`` the other parts stay as they
were measured before.

Run: ``make gpu``, or ``OMP_NUM_THREADS=1 python benchmarks/gpu.py --minutes 9``.  It writes a page and its
numbers, named after the device, as they come.  On a CPU it does the same, with less of each.  Exit
status 1 if a kernel, a law or a replayed round is off, a host waits, a text has another law, or a wrong
verifier is not found.
"""

import json
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from inspect import cleandoc
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from call_costs import call_costs
from timing import exit_status, median_seconds, write
from torch.utils._python_dispatch import TorchDispatchMode
from verifiers import NOT_RUN, Shape, described_machine, drafted, finished, one_round, runnable
from verifiers import measure as measure_rounds

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from audits.own_rounds import interpreted_kernels  # noqa: E402
from decoding_support import PROMPTS, decoded_counts, p_value, target_law, tiny_pair  # noqa: E402
from random_nodes import random_node  # noqa: E402
from spectheory.auditing.following.triton_kernels import interpreting  # noqa: E402
from spectheory.decoding import decode  # noqa: E402
from spectheory.exact.rounded import DoesNotRunError, certify_rounded  # noqa: E402
from spectheory.exact.suite_cases import standard_suite  # noqa: E402
from spectheory.foundation.arrays import Array, take_path, take_row  # noqa: E402
from spectheory.foundation.kernels import knot_kernels, row_kernels, triton_knots, triton_rows  # noqa: E402
from spectheory.models import LanguageModelPair, bundled_prompts  # noqa: E402
from spectheory.models.known_models import model_folder  # noqa: E402
from spectheory.pairs.drafts import DraftProcess, Iid, PrefixTree, WithoutReplacement  # noqa: E402
from spectheory.simulation import simulate  # noqa: E402
from spectheory.verification.algorithms import verifiers  # noqa: E402
from spectheory.verification.algorithms.path_selection import coupling_kernel  # noqa: E402
from spectheory.verification.algorithms.path_selection.score_couplings import RESOLUTION  # noqa: E402
from spectheory.verification.algorithms.path_selection.score_levels import ScoreNode, lazy_levels  # noqa: E402
from spectheory.verification.captured_rounds import CapturedOutcome, captured_outcome  # noqa: E402
from spectheory.verification.outcome import Outcome, Sample  # noqa: E402
from spectheory.verification.resolve import find_verifier  # noqa: E402
from spectheory.verification.verifier import Verifier  # noqa: E402


class CorrectsFromTarget:
    """Not lossless: ``token`` with its correction token from the target's row, not from the residual."""

    name = "corrects_from_target"

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        found = verifiers["token"].outcome(paths, target_rows, draft_rows)
        return Outcome(found.stop_probs, lambda path, length: take_row(take_path(target_rows, path), length))


WRONG = CorrectsFromTarget()
SHARES = {
    "kernels": 0.05,
    "laws": 0.2,
    "texts": 0.15,
    "rounds": 0.2,
    "models": 0.25,
    "costs": 0.1,
    "speed": 0.05,
}
"""Of the minutes that are left, among the parts that are left."""
FEWEST_CASES = 4
"""Of every verifier, whatever the time; the wrong one is found on them."""
SIZES = ((2, 4), (8, 8), (16, 16), (64, 64))
"""Prompts and tokens of the texts of the last part; the largest that fit."""
PRECISIONS = 16
"""How far an operator on the device may be from the loop of the host, over the precision of the rows."""
OTHER_TOKENS = 0.1
"""The share of draws that may be others than on the host."""
SMALLEST_P_VALUE = 1e-6
TEXTS: tuple[tuple[Any, DraftProcess], ...] = (
    (WRONG, Iid(1)), ("block", Iid(1)), ("multi_round", Iid(2)), ("greedy_multipath", Iid(2)),
    ("scored_multipath", Iid(2)), ("traversal", Iid(2)), ("token", Iid(1)), ("greedy_block", Iid(1)),
    ("spectr", Iid(2)), ("mixed_multipath", Iid(2)), ("multi_round", PrefixTree((2, 2))),
    ("multi_round_without_replacement", WithoutReplacement((2, 2))),
)  # fmt: skip


def kernels(device: str, ends: float) -> Iterator[dict[str, Any]]:
    """Per operator, number type and V: the largest difference from the loops of the host, over the precision.

    Of ``draw`` the share of other tokens: sums in another order may move one.  Of ``cut_and_tilt`` the
    differences are those of its laws and means from what they must be.
    """
    here = interpreting if device == "cpu" else nullcontext
    row_module, knot_module, coupling_module = (
        interpreted_kernels(module.__name__) if device == "cpu" else module
        for module in (triton_rows, triton_knots, coupling_kernel)
    )
    generator = torch.Generator().manual_seed(0)
    with here():
        off = _off_of_cuts(coupling_module, device)
    yield {"kernel": "cut_and_tilt", "size": 24, "rows": "float64", "off_by_precisions": off}
    sizes = (3, 700, 32_000, 128_256) if device == "cuda" else (3, 700)
    for size, dtype in product(sizes, (torch.float64, torch.float32, torch.bfloat16, torch.float16)):
        if time.monotonic() > ends:
            return
        batch, paths, depths = 16, 3, 4
        weights = torch.rand((batch, paths, 2 * depths - 1, size), generator=generator, dtype=torch.float64)
        rows = (weights / weights.sum(dim=-1, keepdim=True)).to(dtype)
        target, draft = rows[..., :depths, :], rows[..., depths:, :]
        stops = [torch.randint(most, (batch,), generator=generator) for most in (paths, depths)]
        scales = [torch.rand(batch, generator=generator).to(dtype) for _ in range(2)]
        uniform = torch.rand(batch, generator=generator, dtype=torch.float64)
        one = target[:, 1, 1], draft[:, 1, 1]
        asked: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
            "residual_mass": (row_kernels, row_module, (*one, *scales)),
            "residual_at_stops": (row_kernels, row_module, (target, draft, *stops, *scales)),
            "draw": (row_kernels, row_module, (target[:, 0, 0], uniform, 256)),
        }
        if dtype.itemsize > 2:
            knots = torch.linspace(0, 2, 24, dtype=dtype)
            asked["between_knots"] = knot_kernels, knot_module, (*one, scales[0], knots)
        for name, (of_host, of_device, given) in asked.items():
            expected = getattr(of_host, name)(*given)
            there = [part.to(device) if isinstance(part, torch.Tensor) else part for part in given]
            with here():
                found = getattr(of_device, name)(*there)
            row = {"kernel": name, "size": size, "rows": str(dtype).removeprefix("torch.")}
            if name == "draw":
                yield row | {"other_tokens": float((found[0].cpu() != expected[0]).double().mean())}
            else:
                pairs = zip(found, expected, strict=True) if name == "between_knots" else ((found, expected),)
                off = max(
                    float((one.cpu().double() - other.double()).abs().max() / other.abs().max())
                    for one, other in pairs
                )
                yield row | {"off_by_precisions": off / torch.finfo(dtype).eps}


def _off_of_cuts(module: Any, device: str) -> float:
    """Of four random contexts, one per program: how far laws and means are off, over the precision."""
    few = (part[:4].copy() for part in random_node(0, 0.5))
    node = ScoreNode(*(torch.from_numpy(part).to(device) for part in few))
    levels = lazy_levels(node)
    plan = module.cut_and_tilt(node, levels, RESOLUTION)
    weighted = node.draft_masses[..., None] * plan
    law = (weighted.sum(1) - node.masses).abs().max()
    means = ((weighted * node.win_rates[:, None]).sum(-1) - node.draft_masses * levels).abs().max()
    return float(max(law, means)) / float(np.finfo(float).eps)


def laws(device: str, ends: float) -> Iterator[dict[str, Any]]:
    """Per verifier and arithmetic: cases, the largest total variation, on how many the law is off."""
    judged = {name: find_verifier(name) for name, entry in verifiers.items() if entry.lossless}
    judged["corrects_from_target"] = find_verifier(WRONG)
    rows, cases = {}, {}
    for name, verifier in judged.items():
        of_it = standard_suite(verifier.draft_processes, quick=True)
        cases[name] = [of_it[place] for place in np.random.default_rng(0).permutation(len(of_it))]
        for arithmetic in ("torch float64", "torch float32"):
            about = {"verifier": name, "lossless": name != "corrects_from_target", "arithmetic": arithmetic}
            rows[name, arithmetic] = about | {"cases": 0, "largest": 0.0, "off": 0}
    for place in range(max(map(len, cases.values()))):
        for name, arithmetic in rows:
            if time.monotonic() > ends and place >= FEWEST_CASES:
                yield from rows.values()
                return
            if place >= len(cases[name]):
                continue
            case, row = cases[name][place], rows[name, arithmetic]
            try:
                found = certify_rounded(judged[name], case.pair, case.process, arithmetic, device)
            except DoesNotRunError as refusal:
                row["refused"] = str(refusal)
                continue
            row["cases"] += 1
            row["largest"] = max(row["largest"], float(found.total_variation))
            row["off"] += not found
    yield from rows.values()


def texts(device: str, ends: float) -> Iterator[dict[str, Any]]:
    """Per verifier and draft process: how probable so large a deviation of the decoded texts is."""
    here = tiny_pair()
    target = np.stack([target_law(here, prompt) for prompt in PROMPTS])
    pair = LanguageModelPair.of(here.target_model.to(device), here.draft_model.to(device))
    runs = 25_000 if device == "cuda" else 1_500
    for verifier, process in TEXTS:
        if time.monotonic() > ends:
            return
        found = p_value(decoded_counts(pair, verifier, runs, process=process, seed=1), target)
        yield {
            "verifier": getattr(verifier, "name", verifier), "lossless": verifier is not WRONG,
            "drafts": str(process), "texts": runs * len(PROMPTS), "p_value": found,
        }  # fmt: skip


def rounds(device: str, ends: float) -> Iterator[dict[str, Any]]:
    """Per verifier: time beside a copy, waits of the host, and operators, for a large and a small batch.

    On CUDA also replayed from a graph, as decoding and simulation do.
    """
    vocab_size = 32_000 if device == "cuda" else 4_000
    for batch in (16, 1):
        if time.monotonic() > ends:
            return
        shape = Shape(vocab_size, 8, 4, batch)
        bound, placed = runnable(shape), {}
        for row in measure_rounds(shape, "float32", device, 5, seed=0):
            verifier = bound[row["verifier"]]
            distinct = "iid" not in verifier.draft_processes
            if distinct not in placed:
                placed[distinct] = drafted(shape, "float32", 0, distinct).on(device)

            def run(verifier: Any = verifier, given: Any = placed[distinct]) -> Any:
                return one_round(verifier, given, 0)

            timed = {name: row[name] for name in ("verifier", "seconds", "time_over_copy", "peak_over_input")}
            waits = waits_for_device(run) if device == "cuda" else None
            row = timed | {"batch": batch, "waits": waits, "operators": operators_of(run)}
            if device == "cuda":
                row |= replayed(verifier, placed[distinct], row["seconds"] / row["time_over_copy"])
            yield row


def replayed(verifier: Verifier, given: Any, copy_seconds: float) -> dict[str, Any]:
    """The same round from a graph: its time, operators beside its two replays, whether it is the same."""

    def run() -> tuple[Outcome, Sample]:
        outcome = captured_outcome(verifier, *given)
        return outcome, outcome.sample(torch.Generator("cuda").manual_seed(1))

    eager, drawn = one_round(verifier, given, 1)
    for _ in range(2):
        outcome, found = run()
    seconds = median_seconds({"replayed": finished(run, "cuda")}, 20)["replayed"]
    fields = ("path_index", "length", "token")
    same = all(torch.equal(getattr(drawn, name), getattr(found, name)) for name in fields)
    return {
        "from_a_graph": isinstance(outcome, CapturedOutcome), "replay_over_copy": seconds / copy_seconds,
        "replay_operators": operators_of(run), "replay_waits": waits_for_device(run),
        "same": same and torch.equal(outcome.stop_probs, eager.stop_probs),
    }  # fmt: skip


class Operators(TorchDispatchMode):
    """Counts the operators that torch starts inside the ``with`` block, but for views and empty tensors."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += not func.is_view and "empty" not in func.overloadpacket.__name__
        return func(*args, **(kwargs or {}))


def operators_of(run: Callable[[], Any]) -> int:
    """How many operators torch starts in a run."""
    with Operators() as counter:
        run()
    return counter.count


def waits_for_device(run: Callable[[], Any]) -> int:
    """How often the host waits for CUDA in a run."""
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run()
    finally:
        torch.cuda.set_sync_debug_mode(before)
    return sum("synchroniz" in str(entry.message) for entry in caught)


def models(device: str, ends: float) -> Iterator[dict[str, Any]]:
    """Per number type and verifier: the gain over block verification on common drafts, and its interval."""
    usual = [name for name, entry in verifiers.items() if entry.lossless and "iid" in entry.draft_processes]
    judged = [name for name in usual if name not in NOT_RUN]
    for left, dtype in ((2, torch.float32), (1, torch.bfloat16)):
        pair, about = _models(device, dtype)
        part_ends = time.monotonic() + (ends - time.monotonic()) / left
        # A GPU reads prompts side by side, and new sizes cost it more than large ones.
        sizes = SIZES if device == "cpu" else SIZES[-1:]
        for number, (num_prompts, tokens) in enumerate(sizes):
            start = time.monotonic()
            found = simulate(
                pair, bundled_prompts()[:num_prompts], judged, drafts=4, draft_length=4,
                max_new_tokens=tokens, max_prompt_tokens=32, common_texts=True, against="block", jobs=1,
                batch_size=num_prompts,
            )  # fmt: skip
            took = time.monotonic() - start
            larger = np.prod(np.divide(sizes[min(number + 1, len(sizes) - 1)], (num_prompts, tokens)))
            if time.monotonic() + took * larger > part_ends:
                break
        for entry in found.estimates:
            yield about | {"prompts": num_prompts, "tokens": tokens, "seconds": took} | {
                "verifier": entry.verifier, "block_efficiency": entry.block_efficiency, "gain": entry.gain,
                "interval": entry.gain_interval,
            }  # fmt: skip


def _models(device: str, dtype: torch.dtype) -> tuple[LanguageModelPair, dict[str, str]]:
    """SmolLM2 if it is here, else the bundled models, and what they are."""
    fetched = (model_folder("smollm2") / "config.json").is_file()
    target, draft = ("smollm2", "target:29-layers") if fetched else ("bundled", "bundled")
    about = {"target": target, "draft": draft, "weights": str(dtype).removeprefix("torch.")}
    return LanguageModelPair.load(target, draft, device=device, dtype=dtype), about


def costs(device: str, ends: float) -> Iterator[dict[str, Any]]:
    """Per draft model and number of paths of 4 tokens: milliseconds of calls, and what they come to."""
    fetched = (model_folder("smollm2") / "config.json").is_file()
    drafts = ("smollm2-draft", "target:last-4", "prompt:lookup-3") if fetched else ("bundled",)
    for draft in drafts:
        pair = LanguageModelPair.load("smollm2" if fetched else "bundled", draft, device=device)
        for num_drafts in (2, 4, 8, 16) if draft != "prompt:lookup-3" else (1,):
            if time.monotonic() > ends:
                return
            found = call_costs(pair, bundled_prompts()[0], num_drafts, 4)
            yield {
                "draft": draft, "drafts": num_drafts, "plain_ms": 1e3 * found.plain,
                "draft_ms": 1e3 * found.draft, "target_ms": 1e3 * found.target,
                "cost_ratio": found.cost_ratio(4), "row_cost": found.row_cost(4 * num_drafts),
                "speed_up_at_3": found.speed_up(3.0),
            }  # fmt: skip


def speed(device: str, ends: float) -> Iterator[dict[str, Any]]:
    """Per verifier, of 4 paths of 4 tokens: tokens per second, beside plain decoding in the same run."""
    fetched = (model_folder("smollm2") / "config.json").is_file()
    models = ("smollm2", "smollm2-draft") if fetched else ("bundled", "bundled")
    pair = LanguageModelPair.load(*models, device=device)
    asked = {"draft_length": 4, "max_new_tokens": 128 if device == "cuda" else 16, "seed": 1}
    prompt, length = bundled_prompts()[0], asked["max_new_tokens"]
    ids = torch.tensor([pair.encode(prompt)], device=device)

    def plainly() -> int:
        found = pair.target_model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=True, top_k=0, max_new_tokens=length,
            pad_token_id=0,
        )  # fmt: skip
        return found.shape[1] - ids.shape[1]

    plain = tokens_per_second(plainly, device)
    for verifier, num_drafts in (("block", 1), ("multi_round", 4), ("scored_multipath", 4)):
        if time.monotonic() > ends:
            return

        def by_drafts(verifier: str = verifier, num_drafts: int = num_drafts) -> int:
            return len(decode(pair, [prompt], verifier, drafts=num_drafts, **asked)[0].token_ids)

        found = tokens_per_second(by_drafts, device)
        yield {
            "target": models[0], "draft": models[1], "verifier": verifier, "drafts": num_drafts,
            "tokens_per_second": found, "speed_up": found / plain,
        }  # fmt: skip


def tokens_per_second(write_text: Callable[[], int], device: str) -> float:
    """Of the second text that is written; the first warms up."""
    run = finished(write_text, device)
    run()
    begun = time.perf_counter()
    return run() / (time.perf_counter() - begun)


PARTS: Mapping[str, Callable[[str, float], Iterator[dict[str, Any]]]] = {
    "kernels": kernels, "laws": laws, "texts": texts, "rounds": rounds, "models": models, "costs": costs,
    "speed": speed,
}  # fmt: skip


def complaints(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """One line for every verifier that is off, and for every wrong one that is not found."""
    kernels_off = [
        f"{row['kernel']}, V = {row['size']}, {row['rows']}: not as on the host"
        for row in found.get("kernels", ())
        if row.get("off_by_precisions", 0) > PRECISIONS or row.get("other_tokens", 0) > OTHER_TOKENS
    ]
    laws_off = [
        f"{row['verifier']}, {row['arithmetic']}: off on {row['off']} of {row['cases']} cases"
        for row in found.get("laws", ())
        if row["cases"] and row["lossless"] == (row["off"] > 0)
    ]
    rounds_off = [
        f"{row['verifier']}, batch {row['batch']}: {fault}"
        for row in found.get("rounds", ())
        for fault, is_off in (
            ("the host waits for the device", row.get("waits") or row.get("replay_waits")),
            ("a replayed round differs", not row.get("same", True)),
        )
        if is_off
    ]
    texts_off = [
        f"{row['verifier']}, {row['drafts']}: texts with p = {row['p_value']:.1e}"
        for row in found.get("texts", ())
        if row["lossless"] == (row["p_value"] < SMALLEST_P_VALUE)
    ]
    return [*kernels_off, *laws_off, *rounds_off, *texts_off]


def page(document: Mapping[str, Any]) -> str:
    """The numbers as tables in Markdown."""
    described = document["machine"]
    lines = [
        f"# {described['device']}",
        "",
        f"torch {described['torch']}, {described['processor']}. `make gpu`.",
    ]
    for name, rows in document["parts"].items():
        lines += ["", f"## {name.capitalize()}", "", cleandoc(PARTS[name].__doc__ or ""), ""]
        columns = list(dict.fromkeys(column for row in rows for column in row))
        lines += [_line(columns), _line(["---"] * len(columns))]
        lines += [_line([_cell(row.get(column)) for column in columns]) for row in rows]
    lines += ["", *(f"**{line}**" for line in document["complaints"])]
    return "\n".join(lines).rstrip() + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: Any) -> str:
    if isinstance(value, tuple | list):
        return " to ".join(map(_cell, value))
    return "–" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


@click.command()
@click.option("--minutes", default=9.0, help="For all parts together.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto")
@click.option("--part", "wanted", type=click.Choice(list(PARTS)), multiple=True, help="By default all.")
@click.option("--folder", type=click.Path(path_type=Path), default=ROOT / "benchmarks" / "results")
def main(minutes: float, device: str, wanted: Sequence[str], folder: Path) -> None:
    """Run the parts one after another, and write after each."""
    automatic = "cuda" if torch.cuda.is_available() else "cpu"
    device = automatic if device == "auto" else device
    if device == "cpu":
        torch.set_num_threads(1)
    described = described_machine(device)
    named = described["device"] if device == "cuda" else f"cpu {described['processor']}"
    stem = re.sub(r"[^a-z0-9]+", "-", named.lower()).strip("-")
    file = folder / f"{stem}.json"
    before = json.loads(file.read_text(encoding="utf-8"))["parts"] if wanted and file.is_file() else {}
    document: dict[str, Any] = {"machine": described, "minutes": minutes, "complaints": [], "parts": before}
    chosen = [name for name in PARTS if name in wanted or not wanted]
    ends = time.monotonic() + 60 * minutes
    for place, name in enumerate(chosen):
        start = time.monotonic()
        share = SHARES[name] / sum(SHARES[other] for other in chosen[place:])
        document["parts"][name] = rows = []
        for row in PARTS[name](device, start + (ends - start) * share):
            rows.append(row)
            document["complaints"] = complaints(document["parts"])
            write(file, document)
            (folder / f"{stem}.md").write_text(page(document), encoding="utf-8")
        click.echo(
            f"{name}: {len(document['parts'][name])} rows in {time.monotonic() - start:.0f} s", err=True
        )
    click.echo(folder / f"{stem}.md")
    sys.exit(exit_status(document["complaints"]))


if __name__ == "__main__":
    main()
