"""Results of the command line as tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from spectheory.documents import number_text

if TYPE_CHECKING:
    from spectheory.acceptance import Acceptance
    from spectheory.auditing.verdicts.audit_certificate import AuditCertificate
    from spectheory.certificate import Certificate
    from spectheory.paper.claims.statements import Claim
    from spectheory.results import Result


def _console() -> Console:
    """Stdout; a file or pipe has no width of its own and gets a wide one."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=120)


def print_result(result: Result, title: str | None = None) -> None:
    """The facts of any result under its headline, or another title."""
    table = Table(title=escape(title or result.headline()), show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for what, text in result.facts():
        table.add_row(what, escape(text))
    _console().print(table)


def print_certificates(certificates: Sequence[Certificate]) -> None:
    """Several verifiers on one pair side by side, the best first."""
    table = Table(title="verifiers on this pair")
    for column in ("verifier", "lossless on it", "block efficiency", "gap to the optimum", "total variation"):
        table.add_column(column, justify="left" if column.startswith(("verifier", "lossless")) else "right")
    for found in sorted(certificates, key=lambda certificate: -certificate.block_efficiency_float):
        gap = "-" if found.gap_float is None else f"{found.gap_float:.6f}"
        verdict = "yes" if found.is_valid else "NO"
        efficiency = number_text(found.block_efficiency)
        variation = number_text(found.total_variation, decimal=False)
        table.add_row(escape(found.verifier), verdict, efficiency, gap, variation)
    _console().print(table)


def print_audits(audits: Sequence[AuditCertificate]) -> None:
    """Several shipped samplers side by side."""
    table = Table(title="audits of shipped samplers")
    for column in ("sampler", "code", "verdict", "total variation", "forbidden", "because"):
        table.add_column(column)
    for found in audits:
        code = f"{found.provenance.package} {found.provenance.version}".strip() or found.provenance.file
        numbers = [f"{float(value):.3g}" for value in (found.total_variation, found.forbidden)]
        because = found.reasons[0] if found.reasons else found.relaxation
        table.add_row(escape(found.sampler), escape(code), found.verdict, *numbers, escape(because))
    _console().print(table)


def print_acceptance(found: Acceptance) -> None:
    """One row per rule or bound."""
    table = Table(title=escape(found.headline()))
    table.add_column("rule")
    table.add_column("acceptance", justify="right")
    table.add_column("note")
    for rule, value, note in found.rules():
        table.add_row(rule, number_text(value), note)
    _console().print(table)


def print_simulation(document: dict[str, Any]) -> None:
    """Block efficiency of every verifier, Rao-Blackwellised and counted; of several K, by K."""
    from spectheory.montecarlo.simulation import drafts_text

    level = f"{100 * document['confidence']:g}% interval"
    tokens = document.get("max_new_tokens")
    samples, prompts = document["samples_per_prompt"], document.get("prompts_used", document["prompts"])
    what = ("draw" if tokens is None else "text") + ("" if samples == 1 else "s")
    what += "" if tokens is None else f" of {tokens} tokens"
    table = Table(
        title="block efficiency in tokens per target call\n"
        f"{drafts_text(document['num_drafts'])} x {document['draft_length']} drafted tokens, "
        f"{prompts} prompts, {samples} {what} each"
    )
    console = _console()
    if isinstance(document["num_drafts"], list):
        _add_by_drafts(table, document, "block_efficiency", "interval")
        console.print(table)
        _print_ceilings(console, document)
        _print_speed_ups(console, document)
        _print_speeds(console, document)
        _print_not_lossless(console, document)
        return
    for column in ("verifier", "estimate", level, "counted", level, "draws" if tokens is None else "calls"):
        table.add_column(column, justify="left" if column == "verifier" else "right")
    for estimate in document["estimates"]:
        table.add_row(
            escape(estimate["verifier"]) + ("" if estimate["lossless"] is not False else " *"),
            f"{estimate['block_efficiency']:.4f}",
            _interval(estimate["interval"]),
            f"{estimate['counted']:.4f}",
            _interval(estimate["counted_interval"]),
            str(estimate["samples"]),
        )
    console.print(table)
    _print_ceilings(console, document)
    _print_speed_ups(console, document)
    _print_speeds(console, document)
    _print_not_lossless(console, document)


def _print_ceilings(console: Console, document: dict[str, Any]) -> None:
    """Where ceilings were asked for, those of the verifiers that have one, verifier by K."""
    found = [estimate for estimate in document["estimates"] if estimate["ceiling"] is not None]
    if found:
        table = Table(title="the most that any rule could earn at the positions met")
        _add_by_drafts(table, _by_drafts(document) | {"estimates": found}, "ceiling", "ceiling_interval")
        console.print(table)


def _by_drafts(document: dict[str, Any]) -> dict[str, Any]:
    """The document with its number of drafts as a list."""
    drafts = document["num_drafts"]
    return document | {"num_drafts": drafts if isinstance(drafts, list) else [drafts]}


def _print_speed_ups(console: Console, document: dict[str, Any]) -> None:
    """Where a cost ratio was given, what the estimates predict with it, verifier by K."""
    if "cost_ratio" in document:
        table = Table(
            title=f"predicted speed-up over plain decoding, a draft call at {document['cost_ratio']:g} of a "
            "target call"
        )
        _add_by_drafts(table, _by_drafts(document), "speed_up", "speed_up_interval")
        console.print(table)


def _print_speeds(console: Console, document: dict[str, Any]) -> None:
    """Where the time was taken, how fast every verifier was and with what."""
    timed = [estimate for estimate in document["estimates"] if "speed" in estimate]
    if timed:
        plain = timed[0]["speed"]["plain_tokens_per_second"]
        table = Table(title=f"time on {document['device']}, plain decoding {plain:.0f} tokens per second")
        for column in ("verifier", "K", "tokens per second", "times plain", *timed[0]["speed"]["seconds"]):
            table.add_column(column, justify="left" if column == "verifier" else "right")
        for estimate in timed:
            speed, total = estimate["speed"], sum(estimate["speed"]["seconds"].values())
            numbers = f"{speed['tokens_per_second']:.0f}", f"{speed['speed_up']:.2f}"
            shares = [f"{seconds / total:.0%}" for seconds in speed["seconds"].values()]
            table.add_row(escape(estimate["verifier"]), str(estimate["num_drafts"]), *numbers, *shares)
        console.print(table)


def _add_by_drafts(table: Table, document: dict[str, Any], value: str, interval: str) -> None:
    """A row per verifier and a column per K; a verifier of one path has one value, in the first column."""
    estimates = document["estimates"]
    table.add_column("verifier")
    for drafts in document["num_drafts"]:
        table.add_column(f"K = {drafts}", justify="right")
    for name in dict.fromkeys(estimate["verifier"] for estimate in estimates):
        found = [estimate for estimate in estimates if estimate["verifier"] == name]
        mark = "" if found[0]["lossless"] is not False else " *"
        cells = [
            "{:.3f} ({:.3f} to {:.3f})".format(estimate[value], *estimate[interval]) for estimate in found
        ]
        table.add_row(escape(name) + mark, *cells)
    table.caption = f"with {100 * document['confidence']:g}% intervals; one value: of one path, for every K"


def _print_not_lossless(console: Console, document: dict[str, Any]) -> None:
    if any(estimate["lossless"] is False for estimate in document["estimates"]):
        console.print("* not lossless on its own: its output differs from the target's")


def print_texts(document: dict[str, Any]) -> None:
    """Every text behind its prompt, what was drafted and accepted underlined; in a file, within ‹ and ›."""
    console = _console()
    marks = ("", "") if console.is_terminal else ("‹", "›")
    for text in document["texts"]:
        line = Text(text["prompt"], style="dim")
        for piece in text["pieces"]:
            if piece["accepted"]:
                line.append(marks[0] + piece["text"] + marks[1], style="green underline")
            else:
                line.append(piece["text"], style="not dim")
        console.print(line, soft_wrap=True)
        beyond = sum(text["accepted_per_call"]) + text["calls"] - text["tokens"]
        console.print(
            f"\n{text['tokens']} tokens, {text['calls']} calls of the target, "
            f"{text['tokens_per_call']:.2f} tokens per call"
            + (f" with {beyond} beyond the end" if beyond else "")
            + f"; ended by {text['finished']}\n",
            style="bold",
        )


def print_reproduction(document: dict[str, Any]) -> None:
    """One row per figure or table, its checks and files."""
    table = Table(title=f"results in {document['out']}")
    for column in ("name", "what", "checks", "files"):
        table.add_column(column)
    for result in document["results"]:
        checks = "passed" if result["passed"] else "FAILED: " + "; ".join(result["failures"])
        table.add_row(result["name"], escape(result["title"]), escape(checks), "\n".join(result["files"]))
    console = _console()
    console.print(table)
    console.print("All checks passed." if document["passed"] else "Some checks FAILED.")


def print_restriction(summary: dict[str, Any]) -> None:
    """The rows at the prompt, and where the pair was written."""
    prompt = summary["prompt"]
    shown = prompt if len(prompt) <= 60 else "..." + prompt[-57:]
    table = Table(title=escape(f"after {shown!r}"))
    for column in ("token", "target", "draft"):
        table.add_column(column, justify="left" if column == "token" else "right")
    for name, target, draft in zip(
        summary["vocab"], summary["target_row"], summary["draft_row"], strict=True
    ):
        table.add_row(escape(repr(name)), f"{target:.6f}", f"{draft:.6f}")
    console = _console()
    console.print(table)
    length = summary["draft_length"]
    console.print(
        escape(f"{len(summary['vocab'])} tokens, draft length {length}, written to {summary['out']}")
    )


def print_exhibits(rows: list[dict[str, Any]]) -> None:
    """One row per figure or table."""
    table = Table(title="figures and tables")
    for column in ("name", "title", "source"):
        table.add_column(column, overflow="fold", no_wrap=column == "name")
    for row in rows:
        table.add_row(row["name"], escape(row["title"]), escape(row["source"]))
    _console().print(table)
    _console().print("spectheory reproduce NAME --list shows the parameters of one.")


def print_parameters(rows: list[dict[str, Any]]) -> None:
    """One table per figure or table, a row per parameter."""
    for row in rows:
        table = Table(title=f"{row['name']}: {escape(row['title'])}")
        for column in ("parameter", "default", "what it is"):
            table.add_column(column, overflow="fold", no_wrap=column == "parameter")
        for parameter in row["parameters"]:
            table.add_row(parameter["name"], escape(parameter["default"]), escape(parameter["about"]))
        _console().print(table)
    _console().print("Change them with --set NAME=VALUE; several values are separated by commas.")


def print_claims(claims: Sequence[Claim], summary: str) -> None:
    """One row per statement, its note below it; then how many there are of each verdict."""
    table = Table(title="claims of the papers", show_lines=True, expand=True)
    table.add_column("id", no_wrap=True)
    for column, ratio in (("place", 3), ("claim", 9), ("verdict", 3), ("evidence", 7)):
        table.add_column(column, overflow="fold", ratio=ratio)
    for claim in claims:
        verdict = claim.verdict + (f"\nN = {claim.instances}" if claim.instances else "")
        text = escape(claim.claim) + (f"\n[dim]{escape(claim.note)}[/dim]" if claim.note else "")
        table.add_row(claim.id, escape(claim.place), text, verdict, escape("\n".join(claim.evidence)))
    console = _console()
    console.print(table)
    console.print(summary)


def print_verifiers(rows: list[dict[str, Any]]) -> None:
    """One row per verifier."""
    table = Table(title="verifiers")
    table.add_column("name", no_wrap=True)
    for column in ("source", "drafts", "lossless", "arithmetic", "draft processes"):
        table.add_column(column, overflow="fold")
    for row in rows:
        limit = f", L = {row['max_draft_length']}" if row["max_draft_length"] else ""
        processes = "all" if len(row["draft_processes"]) == 4 else ", ".join(row["draft_processes"])
        lossless = "yes" if row["lossless"] else "NO"
        table.add_row(
            row["name"], row["source"], row["num_drafts"] + limit, lossless, row["arithmetic"], processes
        )
    _console().print(table)


def _interval(interval: Any) -> str:
    low, high = interval
    return f"{low:.4f} to {high:.4f}"
