"""Results of the command line as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from spectheory.documents import number_text

if TYPE_CHECKING:
    from spectheory.acceptance import Acceptance
    from spectheory.certificate import Certificate
    from spectheory.programs.interval.interval import CertifiedInterval
    from spectheory.programs.solving.solution import Solution


def _console() -> Console:
    """Stdout; a file or pipe has no width of its own and gets a wide one."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=120)


def print_certificate(certificate: Certificate) -> None:
    """The verdict, the numbers, and for an invalid verifier the counterexample in words."""
    from spectheory.programs.solving.solution import Solution

    table = _facts(
        f"{certificate.verifier}: {'lossless on this pair' if certificate.is_valid else 'NOT lossless'}"
    )
    table.add_row("algorithm", escape(certificate.source))
    table.add_row(
        "pair",
        f"{certificate.vocab_size} tokens, draft length {certificate.draft_length}, "
        f"{certificate.num_drafts} {'draft' if certificate.num_drafts == 1 else 'drafts'}, "
        f"{certificate.arithmetic} arithmetic",
    )
    table.add_row("block efficiency", number_text(certificate.block_efficiency) + " tokens per target call")
    if certificate.optimum is None:
        table.add_row("optimum", "not computed: " + escape(certificate.optimum_note))
    else:
        table.add_row("optimum", f"{number_text(certificate.optimum)} ({escape(certificate.optimum_note)})")
        if isinstance(certificate.best, Solution):
            gap = number_text(certificate.optimum - certificate.block_efficiency)
        else:
            gap = f"at most {certificate.gap_float:.3g}"
        table.add_row("gap to the optimum", gap)
    if certificate.undefined:
        share = f"with probability {_short(certificate.undefined)} its correction token is 0/0"
        table.add_row("undefined output", share)
    table.add_row("target-matching", f"{_yes(certificate.target_matching)}, total variation "
                  + _short(certificate.total_variation))  # fmt: skip
    table.add_row("prefix-matching", _yes(certificate.prefix_matching))
    if certificate.assumed:
        table.add_row(
            "assumed", f"{certificate.assumed}, as the verifier declares; checked on a sample of drafts"
        )
    law = zip(certificate.vocab, certificate.first_token_law, strict=True)
    table.add_row(
        "law of the first token", escape(", ".join(f"{name} {_short(value)}" for name, value in law))
    )
    if not certificate.is_valid:
        table.add_row("counterexample", escape(certificate.in_words()))
    _console().print(table)


def print_optimum(best: Solution | CertifiedInterval) -> None:
    """Value, bounds and method, and where the gap was not reached the status."""
    table = _facts("optimum over all lossless verifiers")
    table.add_row("block efficiency", number_text(best.value) + " tokens per target call")
    # All digits: the bounds are certified, and rounding could part them from their proofs.
    table.add_row("certified between", f"{float(best.lower)!r} and {float(best.upper)!r}")
    table.add_row("method", escape(best.method))
    if not best.reached:
        table.add_row("status", f"{best.status}: the gap asked for was not reached")
    _console().print(table)


def print_acceptance(found: Acceptance) -> None:
    """One row per rule or bound."""
    drafts = "1 draft" if found.num_drafts == 1 else f"{found.num_drafts} drafts"
    table = Table(title=f"acceptance at one position, {drafts}")
    table.add_column("rule")
    table.add_column("acceptance", justify="right")
    table.add_column("note")
    tokens = ", ".join(str(token) for token in found.minimising_set)
    for rule, value, note in (
        ("upper bound", found.upper_bound, "Lemma 3, always attained"),
        ("optimal (OTM)", found.optimal, f"min cut at the tokens {{{tokens}}}"),
        ("K-SEQ", found.kseq, f"division factor {found.kseq_division_factor:.6f}"),
        ("multi-round", found.multi_round, "recursive rejection"),
        ("lower bound", found.lower_bound, "Lemma 3, the upper bound times 1 - (1 - 1/K)^K"),
        (
            "Bound(K)",
            found.spectr_gbv_bound,
            "spectrgbv2026 Eq. 5 as printed: no bound on lossless verifiers",
        ),
    ):
        table.add_row(rule, number_text(value), note)
    _console().print(table)


def print_simulation(document: dict[str, Any]) -> None:
    """Block efficiency of every verifier, Rao-Blackwellised and counted."""
    level = f"{100 * document['confidence']:g}% interval"
    table = Table(
        title="block efficiency in tokens per target call\n"
        f"{document['num_drafts']} x {document['draft_length']} drafted tokens, "
        f"{document['prompts']} prompts, {document['samples_per_prompt']} draws each"
    )
    for column in ("verifier", "estimate", level, "counted", level, "draws"):
        table.add_column(column, justify="left" if column == "verifier" else "right")
    for estimate in document["estimates"]:
        table.add_row(
            escape(estimate["verifier"]),
            f"{estimate['block_efficiency']:.4f}",
            _interval(estimate["interval"]),
            f"{estimate['counted']:.4f}",
            _interval(estimate["counted_interval"]),
            str(estimate["samples"]),
        )
    _console().print(table)


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


def _facts(title: str) -> Table:
    table = Table(title=escape(title), show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    return table


def _interval(interval: Any) -> str:
    low, high = interval
    return f"{low:.4f} to {high:.4f}"


def _yes(value: bool | None) -> str:
    return {True: "yes", False: "NO", None: "not checked"}[value]


def _short(value: Any) -> str:
    """A probability without its decimal, as a list of them is read."""
    return number_text(value, decimal=False)
