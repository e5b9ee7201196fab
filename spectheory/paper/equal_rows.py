"""The study: draft models, draft processes and verifiers at equal numbers of target rows.

The target writes texts behind prompts of several domains.  At every n-th token of them each draft model
drafts by each process, and the target scores these drafts once: the first N drafted tokens serve every
budget N, and all verifiers of a process judge the same drafts.

- *independent*: N / L paths sampled from the draft model; the first tokens of a path belong to it alone.
- *distinct*: N / L paths whose first tokens are sampled without replacement.
- *likeliest*: the N nodes of the draft model's tree with the highest confidence (EAGLE-2).

Beside them stand ceilings.  Of the likeliest nodes no lossless verifier earns more than 1 + Σ p over them
(theory.md Statement 5.27), and ``naive_sampling`` earns it.  Of independent paths the bound is that of
scores with a cap (Statement 5.14), sampled at some of these tokens.  Its cap is chosen on the other
half of the prompts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.results import Result, Table
from spectheory.foundation.validation import check_count
from spectheory.optima.bounds import sampled_path_scores
from spectheory.pairs.drafts import ConfidenceTree, DraftProcess, Iid, WithoutReplacement
from spectheory.simulation.checkpoint import open_checkpoint
from spectheory.simulation.continuations import continued
from spectheory.simulation.estimates import Estimate, Tally, estimate_over_texts, paired_gain
from spectheory.simulation.identity import identity_before_loading, identity_of_weights, verifier_identity
from spectheory.simulation.judging import Judge
from spectheory.simulation.parallel import on_cluster, results
from spectheory.simulation.sources import DraftedPaths
from spectheory.simulation.work import Stream, Task
from spectheory.verification.outcome import sample_rows
from spectheory.verification.resolve import find_verifier

if TYPE_CHECKING:
    import torch
    from matplotlib.figure import Figure

    from spectheory.models import LanguageModelPair, PrefilledPrompts, Texts, UnloadedPair

TOKEN = "token"
INDEPENDENT, DISTINCT, LIKELIEST = "independent", "distinct", "likeliest"
VERIFIERS: Mapping[str, Sequence[str]] = {
    INDEPENDENT: (
        TOKEN, "block", "multi_round", "traversal", "greedy_multipath", "mixed_multipath", "scored_multipath",
    ),
    DISTINCT: ("naive_sampling", "multi_round_without_replacement"),
    LIKELIEST: ("naive_sampling",),
}  # fmt: skip
"""The verifiers of each process."""
CAPS = (1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
BOUND = "bound "
BEAM = 8
"""Nodes that are expanded at every depth of the tree of likeliest nodes."""
LOOK_UPS = "prompt:"
PROMPTS = Path(__file__).parent / "study_prompts.jsonl"
EVERYWHERE = "all"
"""All domains together."""


@dataclass(frozen=True)
class StudySettings:
    """What a study computes.

    Attributes:
        nodes: budgets of drafted tokens, multiples of ``draft_length``.
        draft_length: L of all drafts.
        temperatures: of both models.
        prompts: how many of every domain; None: all.
        max_new_tokens: tokens of a text.
        every: drafts are judged at every n-th token.
        bound_every: and the bound at every n-th of these; 0: never.
        batch_size: prompts at a time.
        max_prompt_tokens: the last tokens of a prompt that are kept.
        confidence: of the intervals.
        seed: of texts and drafts.
    """

    nodes: tuple[int, ...] = (8, 16, 32, 64)
    draft_length: int = 4
    temperatures: tuple[float, ...] = (0.6, 1.0)
    prompts: int | None = None
    max_new_tokens: int = 64
    every: int = 8
    bound_every: int = 2
    batch_size: int = 4
    max_prompt_tokens: int = 48
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("draft_length", "max_new_tokens", "every", "batch_size", "max_prompt_tokens"):
            check_count(name, getattr(self, name))
        wrong = [number for number in self.nodes if number < 1 or number % self.draft_length]
        if wrong or not self.nodes:
            raise InvalidInputError(
                f"budgets of nodes must be multiples of the draft length {self.draft_length}, "
                f"got {wrong or 'none'}"
            )

    def process(self, name: str, nodes: int) -> DraftProcess:
        """The process of this name that drafts so many tokens."""
        if name == LIKELIEST:
            return ConfidenceTree(nodes, BEAM)
        paths = nodes // self.draft_length
        return (
            Iid(paths) if name == INDEPENDENT else WithoutReplacement((paths, *[1] * (self.draft_length - 1)))
        )


class Key(NamedTuple):
    """A column of sums: what one verifier earns, or the bound of one cap, at one budget."""

    draft: str
    drafts: str
    verifier: str
    nodes: int

    @property
    def name(self) -> str:
        return "|".join(map(str, self))

    @property
    def is_bound(self) -> bool:
        return self.verifier.startswith(BOUND)


def bound_name(cap: float) -> str:
    return f"{BOUND}{cap}"


class StudyPrompt(NamedTuple):
    domain: str
    text: Any


@dataclass(eq=False)
class StudyWork:
    """All that a task needs; its numbers depend on the seed and on the task's number alone."""

    pairs: dict[str, UnloadedPair]
    prompts: list[StudyPrompt]
    settings: StudySettings
    threads: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Another process loads the weights by itself."""
        return {name: value for name, value in vars(self).items() if name not in ("loaded", "streams")}

    @cached_property
    def loaded(self) -> dict[str, LanguageModelPair]:
        """The pairs, whose target is read once."""
        from spectheory.models import LanguageModelPair
        from spectheory.models.draft_names import DerivedDraft

        first = next(iter(self.pairs.values()))
        target, found = first.loaded().target_model, {}
        for name, pair in self.pairs.items():
            placed = pair.device, pair.weights_dtype
            derived = isinstance(pair.draft, DerivedDraft)
            model = pair.draft.model(target, *placed) if derived else pair.draft.model(*placed)  # type: ignore[call-arg,arg-type]
            found[name] = LanguageModelPair.of(target, model, pair.tokenizer)
        return found

    @cached_property
    def keys(self) -> list[Key]:
        """All sums, in the order of tables."""
        settings, found = self.settings, []
        for draft in self.pairs:
            for drafts, verifiers in VERIFIERS.items():
                if drafts != LIKELIEST and draft.startswith(LOOK_UPS):
                    continue  # a deterministic list
                for verifier in verifiers:
                    single = find_verifier(verifier).single_path
                    budgets = (settings.draft_length,) if single else settings.nodes
                    found += [Key(draft, drafts, verifier, number) for number in budgets]
                if drafts == INDEPENDENT and settings.bound_every:
                    found += [Key(draft, drafts, bound_name(cap), n) for cap in CAPS for n in settings.nodes]
        return found

    @cached_property
    def streams(self) -> dict[Key, Stream]:
        """The verifiers, bound to their drafts."""
        found = {}
        for key in self.keys:
            if key.drafts != LIKELIEST and not key.is_bound:
                process, given = self.settings.process(key.drafts, key.nodes), find_verifier(key.verifier)
                found[key] = Stream(given, given.bind(process, None), process)
        return found

    @cached_property
    def batches(self) -> list[tuple[float, list[int]]]:
        """The temperature and the prompts of every task; a batch is of one domain, and domains take turns."""
        domains: dict[str, list[int]] = {}
        for number, prompt in enumerate(self.prompts):
            domains.setdefault(prompt.domain, []).append(number)
        size, most = self.settings.batch_size, self.settings.prompts
        of_domains = [
            [numbers[:most][first : first + size] for first in range(0, len(numbers[:most]), size)]
            for numbers in domains.values()
        ]
        rounds = range(max(map(len, of_domains)))
        turns = [batches[turn] for turn in rounds for batches in of_domains if turn < len(batches)]
        return [(heat, batch) for batch in turns for heat in self.settings.temperatures]

    def draws(self, task: Task) -> int:
        return len(self.batches[task.batch][1]) * self.settings.max_new_tokens

    def do(self, task: Task, step: Callable[[int], None]) -> dict[str, Tally]:
        """The sums of all keys over the texts of a batch."""
        import torch

        from spectheory.decoding import end_of_sequence
        from spectheory.models import SamplingOptions, Texts, encode_prompts

        settings, (temperature, numbers) = self.settings, self.batches[task.batch]
        options = SamplingOptions(temperature=temperature)
        some = next(iter(self.loaded.values()))
        asked = [self.prompts[number].text for number in numbers]
        tokens = encode_prompts(some, asked, settings.max_new_tokens, settings.max_prompt_tokens)
        texts = Texts.of(tokens, some.device)
        writer = _Writer(self.loaded, texts)
        sums = _Sums(self, len(numbers), task.batch, options)
        seeds = np.random.SeedSequence([settings.seed, task.batch]).spawn(2)
        generator, drafting = (some.generator(int(seed.generate_state(1)[0])) for seed in seeds)
        ends = torch.tensor(sorted(end_of_sequence(some.target_model)), device=some.device)
        goes_on = torch.ones(len(numbers), dtype=torch.bool, device=some.device)
        for token in range(settings.max_new_tokens):
            if token % settings.every == settings.every // 2:
                with_bound = settings.bound_every and token // settings.every % settings.bound_every == 0
                for name, prefilled in writer.prefilled.items():
                    sums.judge(name, prefilled, drafting, goes_on, bool(with_bound))
            written = writer.write(options, generator)
            goes_on = goes_on & ~torch.isin(written, ends)
            step(len(numbers))
        return sums.tallies(lambda text: f"after prompt {numbers[text] + 1}")


class _Writer:
    """The texts, read by the target once and by every draft model, and lengthened by the target."""

    def __init__(self, pairs: Mapping[str, LanguageModelPair], texts: Texts) -> None:
        from spectheory.models import prefill_texts

        found = {name: prefill_texts(pair, texts) for name, pair in pairs.items()}
        target = next(iter(found.values())).target
        self.prefilled = {name: replace(one, target=target) for name, one in found.items()}

    def write(self, options: Any, generator: Any) -> torch.Tensor:
        """Draw the next token of every text, [B]."""
        import torch

        from spectheory.models import scaled_logits
        from spectheory.models.reading import RecomputedReading

        some = next(iter(self.prefilled.values()))
        texts, pair = some.texts, some.pair
        nothing, first = texts.token_ids.new_zeros((texts.num_texts, 1, 0)), texts.ends * 0
        logits = some.target.follow(texts, nothing, first=0)[:, 0, 0]
        row = torch.softmax(scaled_logits(pair.logits(logits), options, dtype=pair.probs_dtype), dim=-1)
        written = sample_rows(row, generator)
        readings = [some.target, *(one.draft for one in self.prefilled.values())]
        for reading in readings[1:]:
            if not isinstance(reading, RecomputedReading):  # which keeps nothing between calls
                reading.follow(texts, nothing, first=0)
        for reading in readings:
            reading.accept(texts, first, 0)
        texts.append(written[:, None], first + 1, texts.width + 1)
        return written


class _Sums:
    """The sums of all keys over the texts of a batch."""

    def __init__(self, work: StudyWork, texts: int, batch: int, options: Any) -> None:
        self._work, self._options, self._batch, self._count = work, options, batch, 0
        length = work.settings.draft_length
        self._judges = {key: Judge(of.verifier, texts, length, None) for key, of in work.streams.items()}
        self._plain = {key: Tally.zeros(texts, length) for key in work.keys if key not in work.streams}

    def judge(
        self, draft: str, prefilled: PrefilledPrompts, generator: Any, counted: torch.Tensor, with_bound: bool
    ) -> None:
        """What all verifiers earn at one token of the texts, with all drafts of one draft model."""
        from spectheory.models import draft_and_score, likeliest_nodes

        settings, keys = self._work.settings, [key for key in self._work.keys if key.draft == draft]
        length, most = settings.draft_length, max(settings.nodes)
        for drafts in dict.fromkeys(key.drafts for key in keys):
            process = settings.process(drafts, most)
            if drafts == LIKELIEST:
                paths = likeliest_nodes(prefilled, process, length, self._options)  # type: ignore[arg-type]
                prefilled.draft.forget_drafts()
                values = 1 + node_probs(prefilled, paths, self._options).cumsum(-1)
                for key in keys:
                    if key.drafts == drafts:
                        self._add(key, values[:, key.nodes - 1], counted)
                continue
            drafted = draft_and_score(prefilled, process, length, generator, self._options)
            seen = DraftedPaths(drafted.paths, drafted.target_rows, drafted.draft_rows, counted)
            self._count += 1
            state = np.random.SeedSequence([settings.seed, self._batch, self._count]).generate_state(1)
            for key in keys:
                if key.drafts == drafts and key in self._judges:
                    first = seen.first(self._work.streams[key].num_drafts)
                    self._judges[key].judge(first, prefilled.pair.generator(int(state[0])))
            if drafts == INDEPENDENT and with_bound:
                behind = continued(prefilled, drafted, generator, self._options)
                for cap in CAPS:
                    scores = sampled_path_scores(*seen[:3], behind, cap)
                    for number in settings.nodes:
                        key = Key(draft, drafts, bound_name(cap), number)
                        self._add(key, scores[:, : number // length].amax(-1), counted)

    def _add(self, key: Key, values: torch.Tensor, counted: torch.Tensor) -> None:
        """Values without a stop, which have no law of lengths: all stops are entered as 0."""
        import torch

        stops = torch.zeros_like(counted, dtype=torch.int64)
        law = torch.nn.functional.one_hot(stops, self._work.settings.draft_length + 1).double()
        arrays = (array[None].cpu().numpy() for array in (values.double(), stops, law, counted))
        self._plain[key].add(*arrays)

    def tallies(self, place: Callable[[int], str]) -> dict[str, Tally]:
        found = {key: judge.tally(place) for key, judge in self._judges.items()} | self._plain
        return {key.name: found[key] for key in self._work.keys}


def node_probs(prefilled: PrefilledPrompts, paths: torch.Tensor, options: Any) -> torch.Tensor:
    """The target's probability of every node of a tree.

    The target reads the paths to the leaves alone.

    Args:
        paths: [B, n, L] to the nodes, -1 behind their ends, with all their parents.

    Returns:
        [B, n]
    """
    import torch

    from spectheory.models import scaled_logits

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


@dataclass(frozen=True, eq=False, repr=False)
class Study(Result):
    """What every draft model, process and verifier earns at every budget.

    Attributes:
        settings: of the study, with its models and the number of texts.
        found: the rows, see ``rows``.
        interrupted: stopped by Ctrl-C; the rows are those of the batches that were finished.
    """

    settings: dict[str, Any]
    found: list[dict[str, Any]]
    interrupted: bool = False

    def headline(self) -> str:
        settings = self.settings
        return (
            f"tokens per target call of {', '.join(settings['drafts'])} for {settings['target']}, "
            f"{settings['texts']} texts of {settings['max_new_tokens']} tokens"
        )

    def to_document(self) -> dict[str, Any]:
        return {**self.settings, "interrupted": self.interrupted, "rows": self.found}

    def rows(self) -> list[dict[str, Any]]:
        """A row per domain, temperature, draft model, process, verifier and budget.

        ``block_efficiency`` with ``low`` and ``high``; ``gain`` over ``block`` on the first path of
        the draft model, with its interval, where there is one; ``ceiling``, which no lossless verifier
        exceeds with these drafts, and ``missed``, by how much less is earned, with its interval;
        ``contexts``; ``acceptance`` of
        ``token``, the probability that the drafted token at position 1..L is accepted if those before it are.
        """
        return self.found

    def tables(self) -> list[Table]:
        """All domains together, a table per temperature, a column per budget; and acceptance by domain."""
        tables = [self.table(heat) for heat in self.settings["temperatures"]]
        rows = [
            {"draft model": row["draft"], "domain": row["domain"], "temperature": f"{row['temperature']:g}"}
            | {"accepted": " ".join(f"{value:.3f}" for value in row["acceptance"])}
            for row in self.found
            if row["acceptance"] is not None
        ]
        title = "probability that token verification accepts a drafted token, at positions 1 to L"
        return [*tables, Table(title, rows)] if rows else tables

    def table(self, temperature: float, domain: str = EVERYWHERE) -> Table:
        lines: dict[tuple[str, ...], dict[str, Any]] = {}
        for row in self.found:
            if (row["temperature"], row["domain"]) != (temperature, domain):
                continue
            key = row["draft"], row["drafts"], row["verifier"]
            line = lines.setdefault(key, dict(zip(("draft model", "drafts", "verifier"), key, strict=True)))
            half = (row["high"] - row["low"]) / 2
            line[f"{row['nodes']} nodes"] = f"{row['block_efficiency']:.2f} ± {half:.2f}"
            if row["missed"] is not None:
                line["misses the ceiling by"] = f"{row['missed']:.2f}"
        columns = [f"{nodes} nodes" for nodes in sorted({row["nodes"] for row in self.found})]
        columns = ["draft model", "drafts", "verifier", *columns, "misses the ceiling by"]
        rows = [{name: line.get(name, "") for name in columns} for line in lines.values()]
        level = f"{100 * self.settings['confidence']:g} %"
        title = f"tokens per target call at temperature {temperature:g}, {domain} domains"
        if domain != EVERYWHERE:
            title = f"tokens per target call at temperature {temperature:g}, {domain}"
        note = (
            f"± half of the {level} interval, clustered by prompt; the ceiling is that of the largest budget"
        )
        return Table(title, rows, note=note)

    def picture(self, domain: str = EVERYWHERE) -> Figure:
        """Tokens per call against target rows, a panel per temperature."""
        return draw(self.found, domain)


def draw(rows: Sequence[Mapping[str, Any]], domain: str = EVERYWHERE) -> Figure:
    """A panel per temperature; of every draft model and process the verifier that earns most.

    That is at the largest budget, at all temperatures together.
    The broken lines are ceilings of independent paths.
    """
    from spectheory.paper.drawing import BROKEN, legend_below, panels
    from spectheory.paper.style import PALETTE, VERIFIER_STYLES

    rows = [row for row in rows if row["domain"] == domain]
    heats, drafts = (list(dict.fromkeys(row[name] for row in rows)) for name in ("temperature", "draft"))
    most = max(row["nodes"] for row in rows)
    budgets = sorted({row["nodes"] for row in rows if row["drafts"] == LIKELIEST})
    earned: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        if row["nodes"] == most:
            sums = earned.setdefault((row["draft"], row["drafts"]), {})
            sums[row["verifier"]] = sums.get(row["verifier"], 0) + row["block_efficiency"]
    lines = {INDEPENDENT: "-", DISTINCT: ":", LIKELIEST: "-"}
    with panels(1, len(heats), sharey=True, width=4.2, height=3.8) as (figure, all_axes):
        for (axes, heat), (number, ((draft, drafted), sums)) in product(
            zip(all_axes, heats, strict=True), enumerate(earned.items())
        ):
            verifier = max(sums, key=lambda name: sums[name])
            wanted = heat, draft, drafted, verifier
            names = "temperature", "draft", "drafts", "verifier"
            curve = [row for row in rows if tuple(row[name] for name in names) == wanted]
            colour, _ = PALETTE[drafts.index(draft) % len(PALETTE)]
            places = np.array([row["nodes"] for row in curve]) * 1.02 ** (number - len(earned) / 2)
            values = [row["block_efficiency"] for row in curve]
            below, above = (
                [abs(row[end] - row["block_efficiency"]) for row in curve] for end in ("low", "high")
            )
            axes.errorbar(
                places, values, yerr=[below, above], color=colour, linestyle=lines[drafted],
                marker="D" if drafted == LIKELIEST else "o", markersize=4, markerfacecolor="white", capsize=2,
                linewidth=1.4, elinewidth=0.8, label=f"{draft}, {drafted}: {VERIFIER_STYLES[verifier].label}",
            )  # fmt: skip
            if drafted == INDEPENDENT and curve[0]["ceiling"] is not None:
                look = BROKEN | {"color": colour, "label": f"{draft}, {drafted}: ceiling"}
                axes.plot(places, [row["ceiling"] for row in curve], **look)
        for axes, heat in zip(all_axes, heats, strict=True):
            axes.set_xscale("log", base=2)
            axes.set_xticks(budgets, map(str, budgets))
            axes.minorticks_off()
            axes.set_title(f"temperature {heat:g}")
            axes.set_xlabel("drafted tokens that a call of the target scores")
        all_axes[0].set_ylabel("tokens per call of the target")
        legend_below(figure, 2)
    return figure


def read_study_prompts(path: str | Path = PROMPTS) -> list[StudyPrompt]:
    """Prompts with their domains: JSON Lines with ``text`` and ``domain``; other files are one domain.

    Raises:
        InvalidInputError: the file cannot be read or has no prompts.

    Example:
        >>> sorted({prompt.domain for prompt in read_study_prompts()})
        ['chat', 'code', 'prose']
    """
    from spectheory.models import read_prompts

    texts, path = read_prompts(path), Path(path)
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    try:
        domains = [str(json.loads(line)["domain"]) for line in lines if line.strip()]
    except (ValueError, KeyError, TypeError):
        domains = []
    if len(domains) != len(texts):
        domains = ["prompts"] * len(texts)
    return [StudyPrompt(domain, text) for domain, text in zip(domains, texts, strict=True)]


def study(
    target: str | Path,
    drafts: Sequence[str],
    prompts: Sequence[StudyPrompt],
    settings: StudySettings | None = None,
    *,
    checkpoint: str | Path | None = None,
    jobs: int | str | None = None,
    cluster: str | None = None,
    threads: int | None = 1,
    device: str = "auto",
    progress: Callable[[int, int], None] | None = None,
    **changes: Any,
) -> Study:
    """Compare draft models, draft processes and verifiers at equal numbers of target rows.

    Args:
        target, drafts: as in ``LanguageModelPair.load``.
        prompts: with their domains.
        settings, changes: as in ``StudySettings``.
        checkpoint: keeps finished batches; the same study goes on from it.
        jobs: as in ``SimulationSettings``.
        cluster: the address of a dask scheduler, whose workers do the tasks.
        threads: of the CPU, in every process.
        progress: called with the tokens written and all tokens.

    Raises:
        InvalidInputError: a setting is out of range, a model is not there, or the checkpoint is of another
            study.

    Example:
        ``study("smollm2", ["smollm2-draft", "prompt:ngram-3"], read_study_prompts(), prompts=8)``
    """
    from spectheory.models import UnloadedPair, cpu_threads

    settings = replace(settings or StudySettings(), **changes)
    if not prompts or not drafts:
        raise InvalidInputError("a study needs at least one prompt and one draft model")
    pairs = {str(draft): UnloadedPair.find(target, draft, device=device) for draft in drafts}
    on_cpu = all(pair.device.type == "cpu" for pair in pairs.values())
    work = StudyWork(pairs, list(prompts), settings, threads if on_cpu else None)
    sizes = [len(numbers) for _, numbers in work.batches]
    names = [key.name for key in work.keys]
    identity: dict[str, Any] = {}
    with cpu_threads(threads or 1), on_cluster(cluster):
        if checkpoint is not None:
            texts = [prompt.text for prompt in prompts]
            of_pairs = {
                draft: identity_before_loading(pair, [pair.encode(text) for text in texts], [])
                | identity_of_weights(work.loaded[draft])
                for draft, pair in pairs.items()
            }
            verifiers = {key.verifier: verifier_identity(of.given) for key, of in work.streams.items()}
            identity = {"study": asdict(settings), "pairs": of_pairs, "verifier": verifiers}
            identity |= {"domains": [prompt.domain for prompt in prompts]}
        interrupted = False
        with open_checkpoint(checkpoint, identity, names, sizes, settings.draft_length) as kept:
            missing = [Task(batch, tuple(names)) for batch in range(len(sizes)) if batch not in kept.tallies]
            done, total = 0, sum(work.draws(Task(batch, ())) for batch in range(len(sizes)))

            def step(draws: int) -> None:
                nonlocal done
                done += draws
                if progress:
                    progress(done, total)

            step(total - sum(map(work.draws, missing)))
            try:
                with closing(results(work, missing, None if cluster else jobs, step)) as found:
                    for task, sums in zip(missing, found, strict=True):
                        kept.add(task.batch, sums)
            except KeyboardInterrupt:
                if not kept.tallies:
                    raise
                interrupted = True
            tallies = dict(sorted(kept.tallies.items()))
    finished = sum(sizes[batch] for batch in tallies)
    document = {"target": str(target), "drafts": list(pairs), "texts": finished, **asdict(settings)}
    return Study(document, list(_rows(work, tallies)), interrupted)


def _rows(work: StudyWork, tallies: Mapping[int, Mapping[str, Tally]]) -> Iterator[dict[str, Any]]:
    """The rows of ``Study`` from the sums of the batches."""
    domain_of = {batch: work.prompts[numbers[0]].domain for batch, (_, numbers) in enumerate(work.batches)}
    domains = [EVERYWHERE, *dict.fromkeys(domain_of.values())]
    confidence, length = work.settings.confidence, work.settings.draft_length
    for temperature in work.settings.temperatures:
        for domain in domains:
            used = [
                sums for batch, sums in tallies.items()
                if work.batches[batch][0] == temperature and domain in (EVERYWHERE, domain_of[batch])
            ]  # fmt: skip
            if sum(len(next(iter(sums.values())).expected) for sums in used) < 2:
                continue

            def sums_of(key: Key, used: Any = used) -> list[Tally]:
                return [sums[key.name] for sums in used]

            for key in work.keys:
                if key.is_bound:
                    continue
                found = estimate_over_texts((key.verifier, True, 0), sums_of(key), confidence)
                row = {"domain": domain, "temperature": temperature, **key._asdict()}
                row |= {"block_efficiency": found.block_efficiency}
                row |= dict(zip(("low", "high"), found.interval, strict=True)) | {"contexts": found.samples}
                base = Key(key.draft, INDEPENDENT, "block", length)
                gain = paired_gain(sums_of(key), sums_of(base), confidence) if base in work.keys else None
                row |= _with_ends("gain", gain if key != base else None)
                missed = None
                if key.drafts == LIKELIEST:
                    row |= {"ceiling": found.block_efficiency}
                elif (
                    key.drafts == INDEPENDENT
                    and work.settings.bound_every
                    and key.nodes in work.settings.nodes
                ):
                    bound = [sums_of(key._replace(verifier=bound_name(cap))) for cap in CAPS]
                    chosen = least_of_halves(bound)
                    missed = paired_gain(chosen, sums_of(key), confidence)
                    row |= {
                        "ceiling": estimate_over_texts(("", None, 0), chosen, confidence).block_efficiency
                    }
                else:
                    row |= {"ceiling": None}
                row |= {"acceptance": _by_position(found) if key.verifier == TOKEN else None}
                yield row | _with_ends("missed", missed)


def _by_position(found: Estimate) -> list[float]:
    """P(τ >= i | τ >= i - 1) for i = 1..L."""
    reached = np.cumsum(found.length_probs[::-1])[::-1]
    return np.divide(
        reached[1:], reached[:-1], out=np.zeros(len(reached) - 1), where=reached[:-1] > 0
    ).tolist()


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
