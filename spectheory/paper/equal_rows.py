"""The study: draft models, draft processes and verifiers at equal numbers of target rows.

The target writes texts behind prompts of several domains.  At every n-th token of them each draft model
drafts by each process, and the target scores these drafts once.  All verifiers of a process judge the same
drafts, and every process drafts behind the same tokens, so that all differences are paired.

- *independent*: N / L paths sampled from the draft model; the first tokens of a path belong to it alone.
- *distinct*: N / L paths whose first tokens are sampled without replacement.
- *branching*: first tokens with two independent ones behind each, and a path behind each of these; as many as
  make at most N nodes.
- *delayed*: one first token, with as many independent paths behind it.
- *hubs*: pairs of next tokens with SpecHub's joint law at as many depths as give at most N nodes.
- *likeliest*: the N nodes of the draft model's tree with the highest confidence (EAGLE-2).

The trees in the middle are drafted anew for every budget, the others serve all budgets.

Beside them stand ceilings.  Of the likeliest nodes no lossless verifier earns more than 1 + Σ p over them
(theory.md Statement 5.27), and ``naive_sampling`` earns it.  Of independent paths the bound is that of
scores with a cap (Statement 5.14), sampled on the same drafts.  Its cap is chosen on the other
half of the prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.settings import Settings, read_numbers, setting
from spectheory.foundation.validation import check_confidence, check_count
from spectheory.optima.bounds import sampled_path_scores
from spectheory.pairs.drafts import (
    ConfidenceTree,
    DraftProcess,
    HubTree,
    Iid,
    PrefixTree,
    WithoutReplacement,
)
from spectheory.simulation.continuations import continued
from spectheory.simulation.estimates import Tally
from spectheory.simulation.judging import Judge
from spectheory.simulation.protocol import DraftedPaths, Stream
from spectheory.simulation.work import Task
from spectheory.verification.outcome import sample_rows
from spectheory.verification.resolve import find_verifier

if TYPE_CHECKING:
    import torch

    from spectheory.models import LanguageModelPair, PrefilledPrompts, Texts, UnloadedPair

TOKEN = "token"
INDEPENDENT, DISTINCT, LIKELIEST = "independent", "distinct", "likeliest"
BRANCHING, DELAYED, HUBS = "branching", "delayed", "hubs"
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
BEAM = 8
"""Nodes that are expanded at every depth of the tree of likeliest nodes."""
LOOK_UPS = "prompt:"


@dataclass(frozen=True, kw_only=True)
class StudySettings(Settings):
    """What a study computes.

    Attributes:
        nodes: Budgets of drafted tokens, multiples of L.
        draft_length: Drafted tokens per path.
        temperatures: Of both models.
        first: The first N prompts of every domain only.
        max_new_tokens: Tokens of every text.
        every: Judge drafts at every N-th token.
        batch_size: Texts at a time.
        max_prompt_tokens: Keep the last N tokens of every prompt.
        confidence: Level of the intervals.
        seed: Of texts and drafts.
    """

    nodes: tuple[int, ...] = setting(
        (8, 16, 32, 64), "--nodes", command_default="8,16,32,64", metavar="N,..",
        read=partial(read_numbers, "--nodes", int),
    )  # fmt: skip
    draft_length: int = setting(4, "--draft-length", "-l", metavar="L")
    temperatures: tuple[float, ...] = setting(
        (0.6, 1.0), "--temperature", command_default="0.6,1", metavar="T,..",
        read=partial(read_numbers, "--temperature", float),
    )  # fmt: skip
    first: int | None = setting(None, "--first", metavar="N")
    max_new_tokens: int = setting(64, "--tokens", "-n", metavar="N")
    every: int = setting(8, "--every", metavar="N")
    batch_size: int = setting(4, "--batch-size", metavar="N")
    max_prompt_tokens: int = setting(48, "--max-prompt-tokens", metavar="N")
    confidence: float = setting(0.95, "--confidence", metavar="C")
    seed: int = setting(0, "--seed")

    def __post_init__(self) -> None:
        self._check(
            check_count,
            "draft_length",
            "max_new_tokens",
            "every",
            "batch_size",
            "max_prompt_tokens",
            "first",
        )
        self._check(partial(check_count, at_least=0), "seed")
        self._check(lambda name, value: check_confidence(value, name), "confidence")
        for name in ("nodes", "temperatures"):
            if len({*getattr(self, name)}) < len(getattr(self, name)):
                raise InvalidInputError(f"{name} must differ, got {getattr(self, name)}")
        if not self.temperatures or not all(0 < heat < inf for heat in self.temperatures):
            raise InvalidInputError(f"temperatures must be positive numbers, got {self.temperatures}")
        if self.max_new_tokens <= self.every // 2:
            raise InvalidInputError(
                f"no token of a text is judged: the first would be number {self.every // 2 + 1} of "
                f"{self.max_new_tokens}; ask for more tokens, or every={self.max_new_tokens} at most"
            )
        wrong = [number for number in self.nodes if number < 1 or number % self.draft_length]
        if wrong or not self.nodes:
            raise InvalidInputError(
                f"budgets of nodes must be multiples of the draft length {self.draft_length}, "
                f"got {wrong or 'none'}"
            )

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
                    found += [
                        Key(draft, drafts, verifier, number)
                        for number in budgets
                        if settings.process(drafts, number) is not None
                    ]
                if drafts == INDEPENDENT:
                    found += [Key(draft, drafts, bound_name(cap), n) for cap in CAPS for n in settings.nodes]
        return found

    @cached_property
    def streams(self) -> dict[Key, Stream]:
        """The verifiers, bound to their drafts."""
        found = {}
        for key in self.keys:
            if key.drafts != LIKELIEST and not key.is_bound:
                process, given = self.settings.process(key.drafts, key.nodes), find_verifier(key.verifier)
                assert process is not None
                found[key] = Stream(given, given.bind(process, None), process)
        return found

    @cached_property
    def batches(self) -> list[tuple[float, list[int]]]:
        """The temperature and the prompts of every task; a batch is of one domain, and domains take turns."""
        domains: dict[str, list[int]] = {}
        for number, prompt in enumerate(self.prompts):
            domains.setdefault(prompt.domain, []).append(number)
        size, most = self.settings.batch_size, self.settings.first
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
        tokens = encode_prompts(some, asked, 0, settings.max_prompt_tokens, settings.max_new_tokens)
        texts = Texts.of(tokens, some.device)
        writer = _Writer(self.loaded, texts)
        sums = _Sums(self, len(numbers), task.batch, options)
        seeds = np.random.SeedSequence([settings.seed, task.batch]).spawn(2)
        generator, drafting = (some.generator(int(seed.generate_state(1)[0])) for seed in seeds)
        ends = torch.tensor(sorted(end_of_sequence(some.target_model)), device=some.device)
        goes_on = torch.ones(len(numbers), dtype=torch.bool, device=some.device)
        for token in range(settings.max_new_tokens):
            if token % settings.every == settings.every // 2:
                for name, prefilled in writer.prefilled.items():
                    sums.judge(name, prefilled, drafting, goes_on)
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

    def judge(self, draft: str, prefilled: PrefilledPrompts, generator: Any, counted: torch.Tensor) -> None:
        """What all verifiers earn at one token of the texts, with all drafts of one draft model."""
        from spectheory.models import draft_and_score, likeliest_nodes

        settings, keys = self._work.settings, [key for key in self._work.keys if key.draft == draft]
        length, most = settings.draft_length, max(settings.nodes)
        asked = [(key.drafts, most if key.drafts in FOR_ALL_BUDGETS else key.nodes) for key in keys]
        for drafts, budget in dict.fromkeys(asked):
            process = settings.process(drafts, budget)
            assert process is not None
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
                here = key.drafts == drafts and (drafts in FOR_ALL_BUDGETS or key.nodes == budget)
                if here and key in self._judges:
                    first = seen.first(self._work.streams[key].num_drafts)
                    self._judges[key].judge(first, prefilled.pair.generator(int(state[0])))
            if drafts == INDEPENDENT:
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
