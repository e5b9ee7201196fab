"""Results of the command line as tables for people (rich), and its progress bars."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from spectheory.certificate import Certificate
from spectheory.programs.interval.interval import CertifiedInterval


def _console() -> Console:
    """Stdout; a file or pipe has no width of its own and gets a wide one."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=120)


def number(value: Any) -> str:
    """``20/9 = 2.222222`` for a rational, six decimals for a float.

    Example:
        >>> number(Fraction(20, 9)), number(Fraction(2)), number(0.5), number(None)
        ('20/9 = 2.222222', '2', '0.500000', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, Fraction):
        return str(value) if value.denominator == 1 else f"{value} = {float(value):.6f}"
    return f"{float(value):.6f}"


def counterexample_in_words(certificate: Certificate) -> str:
    """The smallest counterexample of an invalid verifier as a sentence."""
    found = certificate.counterexample
    if found is not None:
        return (
            f"the completed output starts with {' '.join(found.path)} with probability {short(found.law)}; "
            f"the target gives {short(found.target)}"
        )
    violation = certificate.antichain_violation
    if violation is None:
        return "none"
    nodes = ", ".join(" ".join(context) or "the empty prefix" for context in violation.antichain)
    return (
        f"the output passes through {{{nodes}}} more often than any draft does, "
        f"by probability {short(violation.excess)}: no verifier can do that"
    )


def short(value: Any) -> str:
    """A rational as it is, a float with six significant digits.

    Example:
        >>> short(Fraction(31, 120)), short(0.25)
        ('31/120', '0.25')
    """
    return str(value) if isinstance(value, Fraction) else f"{float(value):.6g}"


def print_certificate(certificate: Certificate) -> None:
    """The verdict, the numbers, and for an invalid verifier the counterexample in words."""
    table = _facts(f"{certificate.verifier}: {'lossless' if certificate.is_valid else 'NOT lossless'}")
    table.add_row("algorithm", escape(certificate.source))
    table.add_row(
        "pair",
        f"{certificate.vocab_size} tokens, draft length {certificate.draft_length}, "
        f"{certificate.num_drafts} {'draft' if certificate.num_drafts == 1 else 'drafts'}, "
        f"{certificate.arithmetic} arithmetic",
    )
    table.add_row("block efficiency", number(certificate.block_efficiency) + " tokens per target call")
    if certificate.optimum is None:
        table.add_row("optimum", "not computed: " + escape(certificate.optimum_note))
    else:
        table.add_row("optimum", f"{number(certificate.optimum)} ({escape(certificate.optimum_note)})")
        if isinstance(certificate.best, CertifiedInterval):
            table.add_row("gap to the optimum", f"at most {certificate.gap_float:.3g}")
        else:
            table.add_row("gap to the optimum", number(certificate.optimum - certificate.block_efficiency))
    if certificate.undefined:
        share = f"with probability {short(certificate.undefined)} its correction token is 0/0"
        table.add_row("undefined output", share)
    table.add_row("target-matching", f"{_yes(certificate.target_matching)}, total variation "
                  + short(certificate.total_variation))  # fmt: skip
    table.add_row("prefix-matching", _yes(certificate.prefix_matching))
    if certificate.assumed:
        table.add_row(
            "assumed", f"{certificate.assumed}, as the verifier declares; checked on a sample of drafts"
        )
    law = zip(certificate.vocab, certificate.first_token_law, strict=True)
    table.add_row(
        "law of the first token", escape(", ".join(f"{name} {short(value)}" for name, value in law))
    )
    if not certificate.is_valid:
        table.add_row("counterexample", escape(counterexample_in_words(certificate)))
    _console().print(table)


def print_optimum(document: dict[str, Any]) -> None:
    """Value, bounds and method."""
    table = _facts("optimum over all lossless verifiers")
    exact = document["value"]
    value = Fraction(exact) if exact is not None else document["value_float"]
    table.add_row("block efficiency", number(value) + " tokens per target call")
    table.add_row("certified between", f"{document['lower']:.15g} and {document['upper']:.15g}")
    table.add_row("method", escape(document["method"]))
    if document["status"] != "optimal":
        table.add_row("status", f"{document['status']}: the gap asked for was not reached")
    _console().print(table)


def print_acceptance(document: dict[str, Any]) -> None:
    """One row per rule or bound."""
    drafts = document["num_drafts"]
    table = Table(title=f"acceptance at one position, {drafts} {'draft' if drafts == 1 else 'drafts'}")
    table.add_column("rule")
    table.add_column("acceptance", justify="right")
    table.add_column("note")
    tokens = ", ".join(str(token) for token in document["minimising_set"])
    rows = [
        ("upper bound", "upper_bound", "Lemma 3, always attained"),
        ("optimal (OTM)", "optimal", f"min cut at the tokens {{{tokens}}}"),
        ("K-SEQ", "kseq", f"division factor {document['kseq_division_factor']:.6f}"),
        ("multi-round", "multi_round", "recursive rejection"),
        ("lower bound", "lower_bound", "Lemma 3, the upper bound times 1 - (1 - 1/K)^K"),
        ("Bound(K)", "spectr_gbv_bound", "spectrgbv2026 Eq. 5 as printed: no bound on lossless verifiers"),
    ]
    for rule, key, note in rows:
        exact = document[key] if isinstance(document[key], str) else None
        value = Fraction(exact) if exact is not None else document.get(f"{key}_float", document[key])
        table.add_row(rule, number(value), note)
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


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr, driven by progress(done, total); silent where stderr is not a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield progress


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


def report_interval(rounds: int, lower: float, upper: float) -> None:
    """One line on stderr that follows the interval as it closes; nothing where stderr is no terminal."""
    if sys.stderr.isatty():
        print(f"\rstep {rounds}: the optimum lies in [{lower:.9f}, {upper:.9f}]", end="", file=sys.stderr)
