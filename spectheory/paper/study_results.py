"""The study at equal numbers of target rows, and its results: rows, tables and a picture."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spectheory.foundation.documents import count_text
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.results import Result, Table, no_verdict
from spectheory.foundation.validation import nearest_name
from spectheory.paper.equal_rows import (
    BRANCHING,
    CAPS,
    DISTINCT,
    INDEPENDENT,
    LIKELIEST,
    TOKEN,
    Key,
    StudyPrompt,
    StudySettings,
    StudyWork,
    bound_name,
)
from spectheory.simulation.estimates import Estimate, Tally, estimate_over_texts, paired_gain
from spectheory.simulation.finished_lines import open_lines
from spectheory.simulation.first_line import first_line, of_models
from spectheory.simulation.parallel import on_cluster, results
from spectheory.simulation.settings import check_jobs
from spectheory.simulation.work import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from spectheory.decoding import CallCosts

PROMPTS = Path(__file__).parent / "study_prompts.jsonl"
EVERYWHERE = "all"
"""All domains together."""


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

    def __bool__(self) -> bool:
        raise no_verdict(self, ".rows()")

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
        the draft model, with its interval, where there is one; ``lead`` over independent drafts with the
        verifier that is best there, at the same budget, with its interval; ``ceiling``, which no lossless
        verifier exceeds with these drafts, and ``missed``, by how much less is earned, with its interval;
        ``contexts``, which are shared by all rows of a domain and temperature; ``acceptance`` of
        ``token``, the probability that the drafted token at position 1..L is accepted if those before it are;
        ``cost_ratio``, ``row_cost`` and ``speed_up``, see ``CallCosts``, if costs were measured.
        """
        return self.found

    def tables(self) -> list[Table]:
        """All domains together: the best verifiers; a table per temperature; and acceptance by domain."""
        tables = [self.best(), *(self.table(heat) for heat in self.settings["temperatures"])]
        tables += [self.speed_ups(heat) for heat in self.settings["temperatures"]]
        tables = [table for table in tables if table.rows]
        rows = [
            {"draft model": row["draft"], "domain": row["domain"], "temperature": f"{row['temperature']:g}"}
            | {"accepted": " ".join(f"{value:.3f}" for value in row["acceptance"])}
            for row in self.found
            if row["acceptance"] is not None
        ]
        title = "probability that token verification accepts a drafted token, at positions 1 to L"
        return [*tables, Table(title, rows)] if rows else tables

    def best(self, domain: str = EVERYWHERE) -> Table:
        """Of every draft model and process the verifier that earns most, see ``best_verifiers``."""
        best = best_verifiers([row for row in self.found if row["domain"] == domain])
        lines = [
            {"temperature": f"{heat:g}", **line}
            for heat in self.settings["temperatures"]
            for line in self.table(heat, domain).rows
            if best[line["draft model"], line["drafts"]] == line["verifier"]
        ]
        unused = {name for name in lines[0] if not any(line[name] for line in lines)} if lines else set()
        lines = [{name: cell for name, cell in line.items() if name not in unused} for line in lines]
        return Table(f"the best verifiers, tokens per target call, {_said(domain)}", lines, note=self._note)

    def table(self, temperature: float, domain: str = EVERYWHERE) -> Table:
        """What is earned at every budget, and by how much it misses the ceiling."""

        def shown(row: Mapping[str, Any]) -> dict[str, str]:
            value = row["block_efficiency"]
            half = max(value - row["low"], row["high"] - value)
            differences = {LEAD: "lead", MISSED: "missed"}
            return {f"{row['nodes']} nodes": f"{value:.2f} ± {half:.2f}"} | {
                column: f"{row[name]:+.2f} ({row[f'{name}_low']:+.2f} to {row[f'{name}_high']:+.2f})"
                for column, name in differences.items()
                if row[name] is not None
            }

        title = f"tokens per target call at temperature {temperature:g}, {_said(domain)}"
        lines = self._lines(temperature, domain, shown, LEAD, MISSED)
        return Table(title, lines, note=self._note)

    @property
    def _note(self) -> str:
        level = f"{100 * self.settings['confidence']:g} %"
        contexts = max((row["contexts"] for row in self.found), default=0)
        return (
            f"± the larger half of the {level} interval, clustered by prompt, at up to {contexts} contexts; "
            "lead: over independent drafts with the verifier that is best there; it and what is missed are "
            "paired and of the largest budget"
        )

    def speed_ups(self, temperature: float, domain: str = EVERYWHERE) -> Table:
        """Tokens per second over those of plain decoding, by the measured costs of calls."""

        def shown(row: Mapping[str, Any]) -> dict[str, str]:
            if row["speed_up"] is None:
                return {}
            costs = {"c": f"{row['cost_ratio']:.2f}", "r": f"{row['row_cost']:.3f}"}
            return {f"{row['nodes']} nodes": f"{row['speed_up']:.2f}"} | costs

        title = f"predicted speed-up at temperature {temperature:g}, {_said(domain)}"
        note = "c: a step of drafting, r: a drafted token, at the largest budget, in calls of the target"
        return Table(title, self._lines(temperature, domain, shown, "c", "r"), note=note)

    def _lines(
        self,
        temperature: float,
        domain: str,
        shown: Callable[[Mapping[str, Any]], dict[str, str]],
        *further: str,
    ) -> list[dict[str, str]]:
        """A line per draft model, process and verifier of which something is shown."""
        lines: dict[tuple[str, ...], dict[str, str]] = {}
        for row in self.found:
            if (row["temperature"], row["domain"]) == (temperature, domain) and (cells := shown(row)):
                lines.setdefault((row["draft"], row["drafts"], row["verifier"]), {}).update(cells)
        budgets = [f"{nodes} nodes" for nodes in sorted({row["nodes"] for row in self.found})]
        names = "draft model", "drafts", "verifier"
        return [
            dict(zip(names, key, strict=True)) | {name: cells.get(name, "") for name in (*budgets, *further)}
            for key, cells in lines.items()
        ]

    def picture(self, domain: str = EVERYWHERE) -> Figure:
        """Tokens per call against target rows, a panel per temperature."""
        return draw(self.found, domain)


def _said(domain: str) -> str:
    return f"{domain} domains" if domain == EVERYWHERE else domain


def best_verifiers(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """By draft model and process: who earns most at the largest budget, at all temperatures together."""
    most = max((row["nodes"] for row in rows), default=0)
    earned: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        if row["nodes"] == most:
            sums = earned.setdefault((row["draft"], row["drafts"]), {})
            sums[row["verifier"]] = sums.get(row["verifier"], 0) + row["block_efficiency"]
    return {key: max(sums, key=lambda name: sums[name]) for key, sums in earned.items()}


def draw(rows: Sequence[Mapping[str, Any]], domain: str = EVERYWHERE) -> Figure:
    """A panel per temperature and draft model: of ``PROCESSES`` the best verifiers (``best_verifiers``).

    The best process of a panel is thick, with its interval.  The broken lines are the upper ends of the
    ceilings of independent paths (``most_on_independent``).
    """
    from spectheory.paper.drawing import panels

    rows = [row for row in rows if row["domain"] == domain]
    heats, drafts = (list(dict.fromkeys(row[name] for row in rows)) for name in ("temperature", "draft"))
    budgets = sorted({row["nodes"] for row in rows if row["drafts"] == LIKELIEST})
    best = best_verifiers(rows)
    with panels(len(heats), len(drafts), sharey=True, sharex=True, height=2.9) as (figure, all_axes):
        shown = [*product(heats, drafts)]
        for axes, (heat, draft) in zip(all_axes, shown, strict=True):
            curves = {
                drafted: [
                    row for row in rows
                    if (row["temperature"], row["draft"], row["drafts"], row["verifier"])
                    == (heat, draft, drafted, best[draft, drafted])
                ]
                for drafted in PROCESSES if (draft, drafted) in best
            }  # fmt: skip
            axes.set_xscale("log", base=2)
            _draw_panel(axes, curves)
            axes.set_xticks(budgets, map(str, budgets))
            axes.set_xlim(budgets[0] / 1.15, budgets[-1] * 20)
            axes.minorticks_off()
            if heat == heats[0]:
                axes.set_title(_draft_in_words(draft))
            if heat == heats[-1]:
                axes.set_xlabel("drafted tokens per call of the target", x=0.35)
            if draft == drafts[0]:
                axes.set_ylabel(f"temperature {heat:g}\ntokens per call of the target")
        figure.supxlabel(
            f"thick: most tokens per call with {budgets[-1]} drafted tokens; shaded: its interval; "
            "broken: upper end of the estimate of what no lossless verifier of independent paths exceeds",
            fontsize=8,
        )
        figure.draw_without_rendering()  # so that the limits that all panels share are known
        for axes in all_axes:
            _spread(axes)
    return figure


def most_on_independent(row: Mapping[str, Any]) -> Any:
    """The upper end of the ceiling of independent paths, from what the row's verifier misses of it.

    The estimate of the ceiling alone can be below what a verifier earns on the same drafts.
    """
    return None if row["missed_high"] is None else row["block_efficiency"] + row["missed_high"]


PROCESSES = {
    INDEPENDENT: "independent paths",
    DISTINCT: "distinct first tokens",
    BRANCHING: "branching trees",
    LIKELIEST: "likeliest nodes",
}
DRAFTS_IN_WORDS = (
    (r"target:last-(\d+)", r"draft: target on its last \1 tokens"),
    (r"target:(\d+)-layers", r"draft: \1 layers of the target"),
    (r"prompt:\w+-(\d+)", r"draft: look-up of \1-grams"),
)
"""Names of drafts as patterns, and how they are called in the picture."""


def _draft_in_words(draft: str) -> str:
    found = (
        re.sub(pattern, words, draft) for pattern, words in DRAFTS_IN_WORDS if re.fullmatch(pattern, draft)
    )
    return next(found, f"draft: {draft}")


def _draw_panel(axes: Axes, curves: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """The curves of one draft model at one temperature, by process, named where they end."""
    from spectheory.paper.drawing import BROKEN, label_point
    from spectheory.paper.style import BLACK, VERIFIER_STYLES

    first = max(curves, key=lambda drafted: curves[drafted][-1]["block_efficiency"])
    ceiling = [most_on_independent(row) for row in curves.get(INDEPENDENT, ())]
    for drafted, curve in curves.items():
        style, leads = VERIFIER_STYLES[curve[0]["verifier"]], drafted == first
        places, values = ([row[name] for row in curve] for name in ("nodes", "block_efficiency"))
        if leads:
            low, high = ([row[end] for row in curve] for end in ("low", "high"))
            axes.fill_between(places, low, high, color=style.colour, alpha=0.12, linewidth=0)
        axes.plot(
            places, values, color=style.colour, marker=style.marker, markersize=5 if leads else 3.5,
            linewidth=2.6 if leads else 1.1, zorder=3 if leads else 2,
        )  # fmt: skip
        label_point(
            axes, f"{style.label}\n({PROCESSES[drafted]})", (places[-1], values[-1]), (8, 0), va="center",
            fontsize=7.5, color=style.colour, fontweight="bold" if leads else "normal",
        )  # fmt: skip
    if ceiling and None not in ceiling:
        places = [row["nodes"] for row in curves[INDEPENDENT]]
        axes.plot(places, ceiling, **BROKEN)
        end = places[-1], ceiling[-1]
        label_point(
            axes,
            "ceiling of independent paths,\nupper end of its interval",
            end,
            (8, 0),
            va="center",
            fontsize=7.5,
            color=BLACK,
        )


def _spread(axes: Axes) -> None:
    """Move the names of the curves apart where they would overlap, as little as possible."""
    from scipy.optimize import isotonic_regression

    names = sorted(axes.texts, key=lambda text: text.xy[1])  # type: ignore[attr-defined]
    low, high = axes.get_ylim()
    points_per_unit = 72 * axes.get_window_extent().height / axes.figure.dpi / (high - low)
    steps = LINE_GAP * np.arange(len(names))
    at = np.array([text.xy[1] * points_per_unit for text in names])  # type: ignore[attr-defined]
    for text, offset in zip(names, isotonic_regression(at - steps).x + steps - at, strict=True):
        text.set_position((8, offset))


LINE_GAP = 23
"""Points between the names of two curves, of two lines each."""


def read_study_prompts(path: str | Path = PROMPTS) -> list[StudyPrompt]:
    """Prompts with their domains: JSON with ``text`` and ``domain``; other files are one domain.

    Raises:
        InvalidInputError: the file cannot be read or has no prompts, a domain is missing beside others or is
            not a text, or a key is nearly "domain".

    Example:
        >>> sorted({prompt.domain for prompt in read_study_prompts()})
        ['chat', 'code', 'prose']
    """
    from spectheory.models import read_prompts
    from spectheory.models.prompts import read_entries

    texts = read_prompts(path)
    domains = {where: _domain(where, entry) for where, entry in read_entries(path)}
    missing = [where for where, domain in domains.items() if domain is None]
    if 0 < len(missing) < len(domains):
        raise InvalidInputError(f"{missing[0]} has no domain, and others have one; give each one, or none")
    found = zip(domains.values(), texts, strict=True)
    return [StudyPrompt("prompts" if domain is None else domain, text) for domain, text in found]


def _domain(where: str, entry: Any) -> str | None:
    """The domain of an entry of a file of prompts; a line of a table begins with it."""
    keys = entry if isinstance(entry, dict) else {}
    for key in keys.keys() - {"domain"}:
        if hint := nearest_name(key, ["domain"], 0.8):
            raise InvalidInputError(f"{where} has the key {key!r};{hint}")
    if "domain" not in keys:
        return None
    domain = keys["domain"]
    if not isinstance(domain, str) or not domain.isprintable() or domain.strip()[:1] in "=+-@":
        raise InvalidInputError(
            f"{where} has the domain {domain!r}; expected a printable text that begins with none of = + - @"
        )
    return domain


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
    measure_costs: bool = False,
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
        measure_costs: time the calls of the models in this process at the end, for ``speed_up``.

    Raises:
        InvalidInputError: a setting is out of range, a model is not there, or the checkpoint is of another
            study.

    Example:
        ``study("smollm2", ["smollm2-draft", "prompt:ngram-3"], read_study_prompts(), first=8)``
    """
    from spectheory.models import UnloadedPair, cpu_threads, encode_prompts

    settings = replace(settings or StudySettings(), **changes)
    if len(prompts) < 2 or not drafts:  # an interval needs two texts
        raise InvalidInputError(
            "a study needs two prompts and a draft model at least, "
            f"got {count_text(len(prompts), 'prompt')} and {count_text(len(drafts), 'draft model')}"
        )
    if any(prompt.domain == EVERYWHERE for prompt in prompts):
        raise InvalidInputError(f"a domain is called {EVERYWHERE!r}, which stands for all of them; rename it")
    pairs = {str(draft): UnloadedPair.find(target, draft, device=device) for draft in drafts}
    any_pair, asked = next(iter(pairs.values())), [prompt.text for prompt in prompts]
    read = encode_prompts(any_pair, asked, 0, settings.max_prompt_tokens, settings.max_new_tokens)
    if len(set(map(tuple, read))) < len(read):
        raise InvalidInputError(
            "prompts must differ in the tokens that are read: intervals count every prompt as a cluster"
        )
    jobs = jobs if jobs is None else check_jobs("jobs", jobs)
    on_cpu = all(pair.device.type == "cpu" for pair in pairs.values())
    work = StudyWork(pairs, list(prompts), settings, threads if on_cpu else None)
    sizes = [len(numbers) for _, numbers in work.batches]
    names = [key.name for key in work.keys]
    first: dict[str, Any] = {}
    if checkpoint is not None:
        given = list({key.verifier: of.given for key, of in work.streams.items()}.values())
        first = first_line(any_pair, read, given, {"study": asdict(settings)})
        first["pairs"] = {draft: of_models(pair) for draft, pair in pairs.items()}
        first["domains"] = [prompt.domain for prompt in prompts]
    with open_lines(checkpoint, first) as kept, cpu_threads(threads or 1), on_cluster(cluster):
        tallies = [{name: Tally.from_document(sums) for name, sums in line.items()} for line in kept.lines]
        interrupted = False
        missing = [Task(batch, tuple(names)) for batch in range(len(tallies), len(sizes))]
        done, total = 0, sum(work.draws(Task(batch, ())) for batch in range(len(sizes)))

        def step(draws: int) -> None:
            nonlocal done
            done += draws
            if progress:
                progress(done, total)

        step(total - sum(map(work.draws, missing)))
        try:
            with closing(results(work, missing, None if cluster else jobs, step)) as found:
                for _, sums in zip(missing, found, strict=True):
                    kept.add({name: tally.to_document() for name, tally in sums.items()})
                    tallies.append(sums)
        except KeyboardInterrupt:
            if not tallies:
                raise
            interrupted = True
        costs = measured(work) if measure_costs and not interrupted else {}
    finished = sum(sizes[: len(tallies)])
    document = {"target": str(target), "drafts": list(pairs), "texts": finished, **asdict(settings)}
    return Study(document, list(_rows(work, dict(enumerate(tallies)), costs)), interrupted)


LEAD, MISSED = "lead", "misses the ceiling by"
"""Columns of paired differences."""
Drafting = tuple[str, str, int]
"""A draft model, a process and a budget."""


def measured(work: StudyWork) -> dict[Drafting, CallCosts]:
    """The costs of calls behind the first prompt, at the first temperature."""
    from spectheory.decoding import call_costs
    from spectheory.models import SamplingOptions, encode_prompts

    settings = work.settings
    options = SamplingOptions(temperature=settings.temperatures[0])
    prompt = encode_prompts(
        next(iter(work.loaded.values())), [work.prompts[0].text], 0, settings.max_prompt_tokens
    )[0]
    return {
        (key.draft, key.drafts, key.nodes): call_costs(
            work.loaded[key.draft], prompt, settings.process(key.drafts, key.nodes),  # type: ignore[arg-type]
            settings.draft_length, options,
        )
        for key in {(key.draft, key.drafts, key.nodes): key for key in work.keys}.values()
    }  # fmt: skip


def _rows(
    work: StudyWork, tallies: Mapping[int, Mapping[str, Tally]], costs: Mapping[Drafting, CallCosts]
) -> Iterator[dict[str, Any]]:
    """The rows of ``Study`` from the sums of the batches."""
    domain_of = {batch: work.prompts[numbers[0]].domain for batch, (_, numbers) in enumerate(work.batches)}
    domains = [EVERYWHERE, *dict.fromkeys(domain_of.values())]
    best = _best_on_independent(work, tallies)
    confidence, length = work.settings.confidence, work.settings.draft_length
    for temperature in work.settings.temperatures:
        for domain in domains:
            used = [
                sums for batch, sums in tallies.items()
                if work.batches[batch][0] == temperature and domain in (EVERYWHERE, domain_of[batch])
            ]  # fmt: skip
            if sum(int((next(iter(sums.values())).draws > 0).sum()) for sums in used) < 2:
                continue  # texts that ended before their first judged token say nothing

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
                leader = key._replace(drafts=INDEPENDENT, verifier=best.get(key.draft, ""))
                lead = paired_gain(sums_of(key), sums_of(leader), confidence) if leader in work.keys else None
                row |= _with_ends("lead", lead if key != leader else None)
                missed = None
                if key.drafts == LIKELIEST:
                    row |= {"ceiling": found.block_efficiency}
                elif key.drafts == INDEPENDENT and key.nodes in work.settings.nodes:
                    bound = [sums_of(key._replace(verifier=bound_name(cap))) for cap in CAPS]
                    chosen = least_of_halves(bound)
                    missed = paired_gain(chosen, sums_of(key), confidence)
                    row |= {
                        "ceiling": estimate_over_texts(("", None, 0), chosen, confidence).block_efficiency
                    }
                else:
                    row |= {"ceiling": None}
                row |= {"acceptance": _by_position(found) if key.verifier == TOKEN else None}
                cost = costs.get((key.draft, key.drafts, key.nodes))
                row |= {
                    "cost_ratio": cost and cost.cost_ratio(length),
                    "row_cost": cost and cost.row_cost(work.settings.drafted(key.drafts, key.nodes)),
                    "speed_up": cost and cost.speed_up(found.block_efficiency),
                }
                yield row | _with_ends("missed", missed)


def _best_on_independent(work: StudyWork, tallies: Mapping[int, Mapping[str, Tally]]) -> dict[str, str]:
    """By draft model: who earns most on independent drafts at the largest budget, of all that was judged."""
    earned: dict[str, dict[str, float]] = {}
    for key in work.keys:
        if key.drafts == INDEPENDENT and key.nodes == max(work.settings.nodes) and not key.is_bound:
            total = sum(float(sums[key.name].expected.sum()) for sums in tallies.values())
            earned.setdefault(key.draft, {})[key.verifier] = total
    return {draft: max(sums, key=lambda name: sums[name]) for draft, sums in earned.items()}


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
