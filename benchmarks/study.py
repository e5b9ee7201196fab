"""Draft models, draft processes and verifiers at equal numbers of target rows: the numbers of ``equal_rows``.

The target writes texts after prompts of several domains.  At every n-th token of them each draft model drafts
by each process, and the target scores these drafts once.  All verifiers of a process judge the same drafts,
and every process drafts after the same tokens, so that all differences are paired.

- *independent*: N / L paths sampled from the draft model; the first tokens of a path belong to it alone.
- *distinct*: N / L paths whose first tokens are sampled without replacement.
- *branching*: first tokens with two independent ones after each, and a path after each of these; as many as
  make at most N nodes.
- *delayed*: one first token, with as many independent paths after it.
- *hubs*: pairs of next tokens with SpecHub's joint law at as many depths as give at most N nodes.
- *likeliest*: the N nodes of the draft model's tree with the highest confidence (EAGLE-2).

The trees in the middle are drafted anew for every budget, the others serve all budgets.

Two ceilings stand beside them.  No lossless verifier of the likeliest nodes earns more than 1 + Σ p over them
(theory.md Statement 5.27), and ``naive_sampling`` earns it.  The bound of independent paths is that of
scores with a cap (Statement 5.14), sampled on the same drafts.  Its cap is chosen on the other half of the
prompts.

48 prompts, 16 of prose, code and chat each; texts of 64 tokens, judged at every 32nd; three draft models,
four budgets, two temperatures.  It takes about an hour and a half of CPU on an AMD EPYC.

Run: ``spectheory models fetch smollm2``, then
``PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/study.py FOLDER``.
FOLDER keeps finished batches; the same command goes on from them.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import torch
from call_costs import call_costs
from continuations import continued, sampled_path_scores
from timing import machine

from figures.common.measured import Measurement
from figures.equal_rows import EVERYWHERE, INDEPENDENT, LIKELIEST, best_verifiers
from spectheory.decoding import end_of_sequence
from spectheory.models import LanguageModelPair, SamplingOptions
from spectheory.models.device import cpu_threads
from spectheory.models.drafting import PrefilledPrompts, draft_and_score, likeliest_nodes, prefill_texts
from spectheory.models.growing_texts import Texts
from spectheory.models.language_model import encode_prompts
from spectheory.models.reading import RecomputedReading
from spectheory.models.sampling import scaled_logits
from spectheory.pairs.drafts import ConfidenceTree, DraftProcess, HubTree, Iid, PrefixTree, WithoutReplacement
from spectheory.simulation.estimates import Estimate, Tally, estimate_over_texts, paired_gain
from spectheory.simulation.judging import DraftedPaths, Judge
from spectheory.verification.outcome import sample_rows
from spectheory.verification.resolve import find_verifier

PROMPTS = Path(__file__).with_name("study_prompts.jsonl")
DRAFTS = ("smollm2-draft", "target:last-4", "prompt:ngram-3")
FIRST = 16
"""Prompts of every domain."""
TOKEN, DISTINCT, BRANCHING, DELAYED, HUBS = "token", "distinct", "branching", "delayed", "hubs"
VERIFIERS: Mapping[str, Sequence[str]] = {
    INDEPENDENT: (
        TOKEN, "block", "multi_round", "traversal", "greedy_multipath", "mixed_multipath", "scored_multipath",
    ),
    DISTINCT: ("naive_sampling", "multi_round_without_replacement"),
    BRANCHING: ("multi_round", "traversal"),
    DELAYED: ("multi_round", "traversal"),
    HUBS: ("naive_sampling",),
    LIKELIEST: ("naive_sampling",),
}  # fmt: skip
"""The verifiers of each process."""
FOR_ALL_BUDGETS = (INDEPENDENT, DISTINCT, LIKELIEST)
"""Processes whose first N drafted tokens are those of the budget N."""
CAPS = (1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
BOUND = "bound "
"""The name of the column of a cap begins with this word."""
BEAM = 8
"""Nodes that are expanded at every depth of the tree of likeliest nodes."""
COLUMNS = (
    "domain", "temperature", "draft", "drafts", "verifier", "nodes", "block_efficiency", "low", "high",
    "gain", "gain_low", "gain_high", "lead", "lead_low", "lead_high", "contexts",
    "ceiling", "missed", "missed_low", "missed_high",
    "cost_ratio", "row_cost", "speed_up", "acceptance",
)  # fmt: skip


class Key(NamedTuple):
    """A column of sums: what one verifier earns, or the bound of one cap, at one budget."""

    draft: str
    drafts: str
    verifier: str
    nodes: int

    @property
    def is_bound(self) -> bool:
        return self.verifier.startswith(BOUND)


Sums = Mapping[Key, Tally]
"""The sums of a batch of texts."""


@dataclass
class Study:
    """What is compared; its numbers depend on the seed and on the number of the batch alone.

    Attributes:
        pairs: the target with each draft model, by the name of the draft model.
        prompts: (domain, text); a batch of texts is of one domain.
        nodes: budgets of drafted tokens, multiples of L.
        draft_length: L.
        temperatures: of both models.
        tokens: of every text.
        every: drafts are judged at every n-th token.
        max_prompt_tokens: the last tokens of a prompt that are read.
    """

    pairs: Mapping[str, LanguageModelPair]
    prompts: Sequence[tuple[str, str]]
    nodes: Sequence[int] = (8, 16, 32, 64)
    draft_length: int = 4
    temperatures: Sequence[float] = (0.6, 1.0)
    tokens: int = 64
    every: int = 32
    batch_size: int = 4
    max_prompt_tokens: int = 48
    confidence: float = 0.95
    seed: int = 0

    def process(self, name: str, nodes: int) -> DraftProcess | None:
        """The process of this name that drafts so many tokens, or up to two paths fewer; None without one."""
        length = self.draft_length
        one_each, paths = [1] * (length - 1), nodes // length
        if name == LIKELIEST:
            return ConfidenceTree(nodes, BEAM)
        if name == INDEPENDENT:
            return Iid(paths)
        if name == DISTINCT:
            return WithoutReplacement((paths, *one_each))
        if name == HUBS:
            pairs = [(*[2] * depths, *[1] * (length - depths)) for depths in range(1, length + 1)]
            fitting = [tree for tree in map(HubTree, pairs) if tree.draws(length).sum() <= nodes]
            return fitting[-1] if fitting else None
        widths = (nodes // (2 * length - 1), 2, *one_each[1:])
        if name == DELAYED:
            widths = (1, (nodes - 1) // max(1, length - 1), *one_each[1:])
        return PrefixTree(widths) if length > 1 and min(widths) > 0 else None

    def drafted(self, name: str, nodes: int) -> int:
        """How many tokens the process drafts within the budget."""
        process = self.process(name, nodes)
        if process is None or name == LIKELIEST:
            return 0 if process is None else nodes
        return int(process.draws(self.draft_length).sum())

    @cached_property
    def keys(self) -> list[Key]:
        """All columns of sums, in the order of the rows."""
        found = []
        for draft in self.pairs:
            for drafts, verifiers in VERIFIERS.items():
                if drafts != LIKELIEST and draft.startswith("prompt:"):
                    continue  # a look-up is a deterministic list
                for verifier in verifiers:
                    single = find_verifier(verifier).single_path
                    budgets = (self.draft_length,) if single else self.nodes
                    found += [Key(draft, drafts, verifier, n) for n in budgets if self.process(drafts, n)]
                if drafts == INDEPENDENT:
                    found += [Key(draft, drafts, f"{BOUND}{cap}", n) for cap in CAPS for n in self.nodes]
        return found

    @cached_property
    def batches(self) -> list[tuple[float, list[int]]]:
        """The temperature and the numbers of the prompts of every batch; domains take turns."""
        domains: dict[str, list[int]] = {}
        for number, (domain, _) in enumerate(self.prompts):
            domains.setdefault(domain, []).append(number)
        size = self.batch_size
        of_domains = [
            [numbers[n : n + size] for n in range(0, len(numbers), size)] for numbers in domains.values()
        ]
        rounds = range(max(map(len, of_domains)))
        turns = [batches[turn] for turn in rounds for batches in of_domains if turn < len(batches)]
        return [(heat, batch) for batch in turns for heat in self.temperatures]

    def encoded(self, numbers: Sequence[int]) -> list[list[int]]:
        pair = next(iter(self.pairs.values()))
        texts = [self.prompts[number][1] for number in numbers]
        return encode_prompts(pair, texts, 0, self.max_prompt_tokens, self.tokens)

    def sums(self, batch: int) -> Sums:
        """The sums of all keys over the texts of a batch."""
        temperature, numbers = self.batches[batch]
        options, pair = SamplingOptions(temperature=temperature), next(iter(self.pairs.values()))
        texts = Texts.of(self.encoded(numbers), pair.device)
        prefilled = {name: prefill_texts(one, texts) for name, one in self.pairs.items()}
        target = next(iter(prefilled.values())).target  # the texts are read by the target once
        prefilled = {name: replace(one, target=target) for name, one in prefilled.items()}
        seeds = np.random.SeedSequence([self.seed, batch]).spawn(2)
        generator, drafting = (pair.generator(int(seed.generate_state(1)[0])) for seed in seeds)
        ends = torch.tensor(sorted(end_of_sequence(pair.target_model)), device=pair.device)
        goes_on = torch.ones(len(numbers), dtype=torch.bool, device=pair.device)
        found = BatchSums(self, len(numbers), batch, options)
        for token in range(self.tokens):
            if token % self.every == self.every // 2:
                for name, one in prefilled.items():
                    found.judge(name, one, drafting, goes_on)
            goes_on = goes_on & ~torch.isin(write(prefilled, options, generator), ends)
        return found.tallies(lambda text: f"after prompt {numbers[text] + 1}")

    def costs(self) -> dict[tuple[str, str, int], Any]:
        """The costs of calls after the first prompt, at the first temperature, by draft, process, budget."""
        options, (prompt,) = SamplingOptions(temperature=self.temperatures[0]), self.encoded([0])
        return {
            asked: call_costs(
                self.pairs[asked[0]],
                prompt,
                self.process(*asked[1:]),
                self.draft_length,
                options,  # type: ignore[arg-type]
            )
            for asked in dict.fromkeys((key.draft, key.drafts, key.nodes) for key in self.keys)
        }


def write(
    prefilled: Mapping[str, PrefilledPrompts], options: SamplingOptions, generator: Any
) -> torch.Tensor:
    """Draw the next token of every text from the target, [B], and let all models read it."""
    some = next(iter(prefilled.values()))
    texts, pair = some.texts, some.pair
    nothing, first = texts.token_ids.new_zeros((texts.num_texts, 1, 0)), texts.ends * 0
    logits = some.target.follow(texts, nothing, first=0)[:, 0, 0]
    row = torch.softmax(scaled_logits(pair.logits(logits), options, dtype=pair.probs_dtype), dim=-1)
    written = sample_rows(row, generator)
    readings = [some.target, *(one.draft for one in prefilled.values())]
    for reading in readings[1:]:
        if not isinstance(reading, RecomputedReading):  # which keeps nothing between calls
            reading.follow(texts, nothing, first=0)
    for reading in readings:
        reading.accept(texts, first, 0)
    texts.append(written[:, None], first + 1, texts.width + 1)
    return written


class BatchSums:
    """The sums of all keys over the texts of a batch."""

    def __init__(self, study: Study, texts: int, batch: int, options: SamplingOptions) -> None:
        self._study, self._options, self._batch, self._count = study, options, batch, 0
        self._judges: dict[Key, tuple[Judge, int]] = {}
        for key in study.keys:
            if key.drafts != LIKELIEST and not key.is_bound:
                process = study.process(key.drafts, key.nodes)
                assert process is not None
                bound = find_verifier(key.verifier).bind(process, None)
                self._judges[key] = Judge(bound, texts, study.draft_length, None), process.num_drafts
        plain = [key for key in study.keys if key not in self._judges]
        self._plain = {key: Tally.zeros(texts, study.draft_length) for key in plain}

    def judge(self, draft: str, prefilled: PrefilledPrompts, generator: Any, counted: torch.Tensor) -> None:
        """Add what all verifiers earn at one token of the texts, with all drafts of one draft model."""
        study, keys = self._study, [key for key in self._study.keys if key.draft == draft]
        length, most = study.draft_length, max(study.nodes)
        asked = [(key.drafts, most if key.drafts in FOR_ALL_BUDGETS else key.nodes) for key in keys]
        for drafts, budget in dict.fromkeys(asked):
            process = study.process(drafts, budget)
            assert process is not None
            here = [
                key
                for key in keys
                if key.drafts == drafts and (drafts in FOR_ALL_BUDGETS or key.nodes == budget)
            ]
            if isinstance(process, ConfidenceTree):
                paths = likeliest_nodes(prefilled, process, length, self._options)
                prefilled.draft.forget_drafts()
                values = 1 + node_probs(prefilled, paths, self._options).cumsum(-1)
                for key in here:
                    self._add(key, values[:, key.nodes - 1], counted)
                continue
            drafted = draft_and_score(prefilled, process, length, generator, self._options)
            seen = DraftedPaths(drafted.paths, drafted.target_rows, drafted.draft_rows, counted)
            self._count += 1
            state = np.random.SeedSequence([study.seed, self._batch, self._count]).generate_state(1)
            for judge, num_drafts in (self._judges[key] for key in here if key in self._judges):
                judge.judge(seen.first(num_drafts), prefilled.pair.generator(int(state[0])))
            if drafts == INDEPENDENT:
                after = continued(prefilled, drafted, generator, self._options)
                for cap in CAPS:
                    scores = sampled_path_scores(*seen[:3], after, cap)
                    for nodes in study.nodes:
                        key = Key(draft, drafts, f"{BOUND}{cap}", nodes)
                        self._add(key, scores[:, : nodes // length].amax(-1), counted)

    def _add(self, key: Key, values: torch.Tensor, counted: torch.Tensor) -> None:
        """Values without a stop, which have no law of lengths: all stops are entered as 0."""
        stops = torch.zeros_like(counted, dtype=torch.int64)
        law = torch.nn.functional.one_hot(stops, self._study.draft_length + 1).double()
        arrays = (array[None].cpu().numpy() for array in (values.double(), stops, law, counted))
        self._plain[key].add(*arrays)

    def tallies(self, place: Any) -> Sums:
        found = {key: judge.tally(place) for key, (judge, _) in self._judges.items()} | self._plain
        return {key: found[key] for key in self._study.keys}


def node_probs(prefilled: PrefilledPrompts, paths: torch.Tensor, options: SamplingOptions) -> torch.Tensor:
    """The target's probability of every node of a tree; the target reads the paths to the leaves alone.

    Args:
        prefilled: the texts that the tree continues.
        paths: [B, n, L] to the nodes, -1 after their ends, with all their parents.
        options: of the target's rows.

    Returns:
        [B, n]
    """
    inside = paths >= 0
    depth = inside.sum(-1)  # [B, n]
    agree = (paths[:, :, None] == paths[:, None]) | ~inside[:, :, None]
    begins = agree.all(-1)  # [B, i, j]: node i lies on the path to node j
    leaf = (begins & (depth[:, :, None] < depth[:, None])).any(-1).logical_not()
    order = leaf.int().sort(dim=1, descending=True, stable=True).indices
    order = order[:, : int(leaf.sum(1).max())]
    leaves = paths.gather(1, order[..., None].expand(-1, -1, paths.shape[-1]))
    ids, pair = leaves.clamp(min=0), prefilled.pair
    with torch.no_grad():
        logits = prefilled.target.follow(prefilled.texts, ids[:, :, :-1], first=0)
    log_probs = torch.log_softmax(scaled_logits(pair.logits(logits), options, dtype=torch.float32), dim=-1)
    along = log_probs.gather(-1, ids[..., None])[..., 0].double().cumsum(-1).exp()  # [B, leaves, L]
    holder = begins.gather(2, order[:, None].expand(-1, paths.shape[1], -1)).int().argmax(-1)  # a leaf below
    along = along.gather(1, holder[..., None].expand(-1, -1, paths.shape[-1]))
    return along.gather(2, depth[..., None] - 1)[..., 0]


def rows(study: Study, sums: Sequence[Sums], costs: Mapping[Any, Any]) -> Iterator[dict[str, Any]]:
    """A row per domain, temperature, draft model, process, verifier and budget, as ``COLUMNS``.

    ``gain`` is over ``block`` on the first path of the draft model; ``lead`` over independent drafts with the
    verifier that is best there, at the same budget; ``missed`` is the ceiling less what is earned.
    ``acceptance`` of ``token`` is the probability that the drafted token at position 1..L is accepted if
    those before it are; ``cost_ratio``, ``row_cost`` and ``speed_up`` are those of ``CallCosts``.
    """
    domain_of = [study.prompts[numbers[0]][0] for _, numbers in study.batches]
    best = _best_on_independent(study, sums)
    confidence, length = study.confidence, study.draft_length
    for temperature in study.temperatures:
        for domain in [EVERYWHERE, *dict.fromkeys(domain_of)]:
            used = [
                one for one, (heat, _), of in zip(sums, study.batches, domain_of, strict=True)
                if heat == temperature and domain in (EVERYWHERE, of)
            ]  # fmt: skip
            if sum(int((next(iter(one.values())).draws > 0).sum()) for one in used) < 2:
                continue  # an interval needs two texts that did not end before their first judged token
            for key in study.keys:
                if key.is_bound:
                    continue
                own = [one[key] for one in used]
                found = estimate_over_texts((key.verifier, True, 0), own, confidence)
                base = Key(key.draft, INDEPENDENT, "block", length)
                leader = key._replace(drafts=INDEPENDENT, verifier=best.get(key.draft, ""))
                ceiling, missed = None, None
                if key.drafts == LIKELIEST:
                    ceiling = found.block_efficiency
                elif key.drafts == INDEPENDENT and key.nodes in study.nodes:
                    bounds = [key._replace(verifier=f"{BOUND}{cap}") for cap in CAPS]
                    chosen = least_of_halves([[one[bound] for one in used] for bound in bounds])
                    missed = paired_gain(chosen, own, confidence)
                    ceiling = estimate_over_texts(("", None, 0), chosen, confidence).block_efficiency
                cost, tokens = costs.get((key.draft, key.drafts, key.nodes)), found.block_efficiency
                yield {
                    "domain": domain, "temperature": temperature, **key._asdict(), "block_efficiency": tokens,
                    **dict(zip(("low", "high"), found.interval, strict=True)), "contexts": found.samples,
                    **_difference("gain", used, key, base, confidence),
                    **_difference("lead", used, key, leader, confidence),
                    "ceiling": ceiling, **_with_ends("missed", missed),
                    "cost_ratio": None if cost is None else cost.cost_ratio(length),
                    "row_cost": None if cost is None else cost.row_cost(study.drafted(key.drafts, key.nodes)),
                    "speed_up": None if cost is None else cost.speed_up(tokens),
                    "acceptance": _by_position(found) if key.verifier == TOKEN else None,
                }  # fmt: skip


def _by_position(found: Estimate) -> list[float]:
    """P(τ >= i | τ >= i - 1) for i = 1..L; 0 where nothing is accepted that far."""
    reached = np.cumsum(found.length_probs[::-1])[::-1]
    at_least = np.zeros(len(reached) - 1)
    return np.divide(reached[1:], reached[:-1], out=at_least, where=reached[:-1] > 0).tolist()


def _best_on_independent(study: Study, sums: Sequence[Sums]) -> dict[str, str]:
    """By draft model: who earns most on independent drafts at the largest budget, of all that was judged."""
    earned: dict[str, dict[str, float]] = {}
    for key in study.keys:
        if key.drafts == INDEPENDENT and key.nodes == max(study.nodes) and not key.is_bound:
            total = sum(float(one[key].expected.sum()) for one in sums)
            earned.setdefault(key.draft, {})[key.verifier] = total
    return {draft: max(values, key=values.__getitem__) for draft, values in earned.items()}


def _difference(name: str, used: Sequence[Sums], key: Key, other: Key, confidence: float) -> dict[str, Any]:
    """What a key earns over another one, paired; nothing over itself or over one that was not judged."""
    if key == other or other not in used[0]:
        return _with_ends(name, None)
    return _with_ends(name, paired_gain([one[key] for one in used], [one[other] for one in used], confidence))


def _with_ends(name: str, found: Any) -> dict[str, Any]:
    value, low, high = (None, None, None) if found is None else (found.value, *found.interval)
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def least_of_halves(candidates: Sequence[Sequence[Tally]]) -> list[Tally]:
    """For each half of the strata the sums of the candidate that is least on the other half.

    So no candidate is chosen on the numbers that it is then judged by.
    """
    joined = [Tally.join(sums) for sums in candidates]
    halves = np.array_split(np.arange(len(joined[0].expected)), 2)
    parts = []
    for half, other in (halves, halves[::-1]):
        least = min(joined, key=lambda sums: float(sums.expected[other].sum()))
        parts.append(Tally(*(getattr(least, entry.name)[half] for entry in fields(Tally))))
    return parts


def kept(study: Study, batch: int, folder: Path) -> Sums:
    """The sums of a batch, from the folder or computed and kept there."""
    path, names = folder / f"{batch}.npz", [entry.name for entry in fields(Tally)]
    if not path.exists():
        found = study.sums(batch)
        arrays = {name: np.stack([getattr(found[key], name) for key in study.keys]) for name in names}
        part = path.with_name(f"part-{path.name}")
        np.savez(part, **arrays)
        part.replace(path)
    with np.load(path) as arrays:
        stacked = [arrays[name] for name in names]
    return {key: Tally(*(array[place] for array in stacked)) for place, key in enumerate(study.keys)}


def study_prompts(path: Path = PROMPTS, first: int = FIRST) -> list[tuple[str, str]]:
    """(domain, text) of the first prompts of every domain, in the order of the file."""
    found: dict[str, list[int]] = {}
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for place, entry in enumerate(entries):
        found.setdefault(entry["domain"], []).append(place)
    places = sorted(place for of_domain in found.values() for place in of_domain[:first])
    return [(entries[place]["domain"], entries[place]["text"]) for place in places]


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def main(folder: Path) -> None:
    """Print the best verifiers, and write the measurement; by domain it has the best verifiers only."""
    folder.mkdir(parents=True, exist_ok=True)
    with cpu_threads(1):
        pairs = {draft: LanguageModelPair.load("smollm2", draft, device="cpu") for draft in DRAFTS}
        target = pairs[DRAFTS[0]].target_model
        pairs = {
            name: LanguageModelPair.of(target, one.draft_model, one.tokenizer) for name, one in pairs.items()
        }
        study, sums = Study(pairs, study_prompts()), []
        for batch in range(len(study.batches)):
            sums.append(kept(study, batch, folder))
            click.echo(f"batch {batch + 1} of {len(study.batches)}", err=True)
        found = list(rows(study, sums, study.costs()))
    everywhere = [row for row in found if row["domain"] == EVERYWHERE]
    best = best_verifiers(everywhere)
    for row in everywhere:
        if row["verifier"] == best.get((row["draft"], row["drafts"])):
            ends = f"{row['block_efficiency']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
            names = (str(row[name]) for name in ("temperature", "draft", "drafts", "verifier", "nodes"))
            click.echo(f"{' '.join(names)}: {ends}")
    some = [row for row in found if row["domain"] != EVERYWHERE]
    some = [row for row in some if row["verifier"] in (TOKEN, best.get((row["draft"], row["drafts"])))]
    told = f"tokens per target call of {', '.join(DRAFTS)} for smollm2, {len(sums) * study.batch_size} texts "
    told += f"of {study.tokens} tokens, {machine()['processor']}"
    cells = [tuple(_rounded(row[name]) for name in COLUMNS) for row in (*everywhere, *some)]
    command = "PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/study.py FOLDER"
    Measurement(command, told, COLUMNS, cells).write("study")


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return " ".join(f"{number:.4f}" for number in value)
    return round(value, 4) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
