"""The command on shipped samplers: audit."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import click

from spectheory.command_line.options import csv_option, json_option, load_pair
from spectheory.command_line.output import EXIT_DEFECT, print_csv, print_json, table_wanted
from spectheory.errors import InvalidInputError

if TYPE_CHECKING:
    from spectheory.audit.shipped import Shipped
    from spectheory.auditing import AuditCertificate

ALL = "all"


@click.command(short_help="The exact law of a sampler that somebody ships, and a verdict on it.")
@click.argument("names", metavar="SAMPLER...", nargs=-1, required=True)
@click.option("--as", "signature", metavar="SIGNATURE", help="How package.module:function is called.")
@click.option(
    "--pair", "pair_file", type=click.Path(), metavar="PAIR.json", help="Audit on this pair instead."
)
@click.option("--page", "as_page", is_flag=True, help="Print a Markdown page instead of a table.")
@csv_option
@json_option
def audit(
    names: tuple[str, ...],
    signature: str | None,
    pair_file: str | None,
    as_page: bool,
    as_csv: bool,
    as_json: bool,
) -> int:
    """Audit samplers as they are shipped: their random numbers are replaced, their code is not.

    SAMPLER is a library's (transformers, transformers-ensemble), "all" of them, or your own as
    package.module:function with --as SIGNATURE: speculative_sampling, evaluate_posterior, coins or sampler.
    Exits with 1 where a defect was found.
    """
    from spectheory.extras import installed

    if table_wanted(as_json, as_csv) is False and as_page:
        raise InvalidInputError("--page was given with --json or --csv; ask for one of them")
    with installed():
        from spectheory.auditing import audit_sampler
    from spectheory.command_line import tables
    from spectheory.command_line.progress import progress_bar

    samplers = _samplers(names, signature)
    pairs = None if pair_file is None else {pair_file: load_pair(pair_file)}
    found = []
    for sampler in samplers:
        with progress_bar(sampler.name) as progress:
            found.append(audit_sampler(sampler, pairs, progress=progress))
    documents = [certificate.to_document() for certificate in found]
    if as_csv:
        print_csv(documents)
    elif as_json:
        print_json(documents[0] if len(documents) == 1 else {"audits": documents})
    elif as_page:
        click.echo(page(found, datetime.date.today()), nl=False)
    elif len(found) == 1:
        tables.print_result(found[0])
    else:
        tables.print_audits(found)
    return EXIT_DEFECT if any(certificate.is_defective for certificate in found) else 0


def _samplers(names: tuple[str, ...], signature: str | None) -> list[Shipped]:
    """The samplers of these names, each found before the first is audited."""
    from spectheory.audit.libraries import SUBJECTS, load_subject
    from spectheory.audit.shipped import Shipped
    from spectheory.audit.signatures import SIGNATURES
    from spectheory.resolve import imported

    wanted = [name for given in names for name in (SUBJECTS if given == ALL else [given])]
    if signature is not None and not any(":" in name for name in wanted):
        raise InvalidInputError("--as says how package.module:function is called; a library's sampler knows")
    found = []
    for name in wanted:
        if ":" not in name:
            found.append(load_subject(name))
        elif signature is None:
            forms = "; ".join(f"{known}: {how.form}" for known, how in SIGNATURES.items())
            raise InvalidInputError(f"say how {name} is called, with --as SIGNATURE: {forms}")
        else:
            function = imported(name, "sampler")
            if not callable(function):
                raise InvalidInputError(f"{name} is {type(function).__name__}, expected a function")
            found.append(Shipped(function, signature, name.partition(":")[2]))
    return found


_INTRODUCTION = """\
# Audits of shipped samplers

This page is written by `spectheory audit all --page` ({date}). It speaks of the released code of the versions
named, run unmodified on a CPU with its random numbers replaced. The hash is of the file that holds the
sampler. How an audit works, and how to audit a sampler of your own: [Auditing](auditing.md).

| sampler | code | verdict | total variation | forbidden token | samples |
|---|---|---|---|---|---|
"""

_COLUMNS = """
The total variation is the largest over {pairs} pairs, between the output completed with the target and the
target. A forbidden token is one to which the target gives probability 0. The samples are what a χ² test at
99 % needs to see the difference with a power of 99 %, on the pair where it needs the fewest.
"""

_ASSUMED = """
## What is assumed

"""


def page(audits: list[AuditCertificate], date: datetime.date) -> str:
    """The audits as a Markdown page."""
    lines = [_INTRODUCTION.format(date=date.isoformat())]
    for found in audits:
        code = f"{found.provenance.package} {found.provenance.version}".strip()
        forbidden = str(found.forbidden) if found.forbidden else "no"
        samples = "never" if found.samples is None else f"{found.samples:.2g}"
        lines.append(
            f"| `{found.sampler}` | {code} | {found.verdict} | {float(found.total_variation):.3g} | "
            f"{forbidden} | {samples} |\n"
        )
    lines.append(_COLUMNS.format(pairs=len(audits[0].cases)))
    for found in audits:
        where = f"`{found.provenance.file}`, sha256 `{found.provenance.sha256}`"
        lines.append(f"\n## {found.sampler}\n\n{where}\n\n")
        lines += [f"- {text}\n" for text in (*found.reasons, found.note) if text]
        lines += [f"- stated: {found.relaxation}\n"] if found.relaxation else []
        lines += [f"- random numbers: {text}\n" for text in found.primitives]
    lines.append(_ASSUMED)
    lines += [f"- {text}\n" for text in audits[0].assumptions]
    return "".join(lines)
