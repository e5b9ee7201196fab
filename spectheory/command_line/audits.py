"""The command on shipped samplers: audit."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spectheory.command_line.options import csv_option, json_option, load_pair
from spectheory.command_line.output import EXIT_DEFECT, note, print_csv, print_json
from spectheory.errors import InvalidInputError

if TYPE_CHECKING:
    from spectheory.auditing.subjects.shipped import Shipped

ALL = "all"
FETCH = "fetch"


@click.command(short_help="The exact law of a sampler that somebody ships, and a verdict on it.")
@click.argument("names", metavar="SAMPLER...", nargs=-1, required=True)
@click.option("--as", "signature", metavar="SIGNATURE", help="How package.module:function is called.")
@click.option(
    "--pair", "pair_file", type=click.Path(), metavar="PAIR.json", help="Audit on this pair instead."
)
@click.option(
    "--mix", "mixes", multiple=True, metavar="KIND", help="What batches mix: ragged, greedy, padded."
)
@click.option("--cache", type=click.Path(path_type=Path), help="The folder of fetched files.")
@click.option("--page", "as_page", is_flag=True, help="Print a Markdown page instead of a table.")
@click.option("--sarif", "as_sarif", is_flag=True, help="Print findings in the SARIF format.")
@csv_option
@json_option
def audit(
    names: tuple[str, ...],
    signature: str | None,
    pair_file: str | None,
    mixes: tuple[str, ...],
    cache: Path | None,
    as_page: bool,
    as_sarif: bool,
    as_csv: bool,
    as_json: bool,
) -> int:
    """Audit samplers as they are shipped: their random numbers are replaced, their code is not.

    SAMPLER is a library's (transformers, sglang, sglang-block, vllm), "all" that are there, or your own as
    package.module:function with --as SIGNATURE: speculative_sampling, evaluate_posterior, coins, batch or
    sampler.  Exits with 1 where a defect was found.

    "audit fetch sglang==0.5.23" downloads the wheel of a library with pip and keeps the few files that hold
    its samplers; nothing is installed.  "audit fetch all" takes every library, each in the tested version.
    """
    forms = {"--page": as_page, "--sarif": as_sarif, "--csv": as_csv, "--json": as_json}
    if sum(forms.values()) > 1:
        given = " and ".join(form for form, is_given in forms.items() if is_given)
        raise InvalidInputError(f"{given} were given; ask for one of them")
    from spectheory import auditing

    if names[0] == FETCH:
        return _fetch(names[1:], cache)
    from spectheory.command_line import audit_reports, tables
    from spectheory.command_line.progress import progress_bar

    samplers = _samplers(names, signature, mixes, cache)
    pairs = None if pair_file is None else {pair_file: load_pair(pair_file)}
    found = []
    for sampler in samplers:
        with progress_bar(sampler.name) as progress:
            found.append(auditing.audit(sampler, pairs, progress=progress))
    documents = [certificate.to_document() for certificate in found]
    if as_csv:
        print_csv(documents)
    elif as_json:
        print_json(documents[0] if len(documents) == 1 else {"audits": documents})
    elif as_page:
        click.echo(audit_reports.page(found, datetime.date.today()), nl=False)
    elif as_sarif:
        print_json(audit_reports.sarif(found))
    elif len(found) == 1:
        tables.print_result(found[0])
    else:
        tables.print_audits(found)
    return EXIT_DEFECT if any(certificate.is_defective for certificate in found) else 0


def _fetch(names: tuple[str, ...], cache: Path | None) -> int:
    """Keep the files of these libraries."""
    from spectheory.auditing.subjects.libraries import LIBRARIES
    from spectheory.auditing.subjects.wheels import default_cache, fetch, parsed
    from spectheory.validate import unknown_name

    wanted = [name for given in names for name in (LIBRARIES if given == ALL else [given])]
    if not wanted:
        raise InvalidInputError(
            f"say what to fetch: {ALL}, or one of {', '.join(LIBRARIES)}, with ==version or without"
        )
    for requirement in wanted:
        package, version = parsed(requirement)
        if package not in LIBRARIES:
            raise unknown_name("library", package, LIBRARIES)
        library = LIBRARIES[package]
        release = fetch(
            requirement if version else library.requirement, library.files, cache or default_cache()
        )
        click.echo(f"{release.package} {release.version}: {release.folder}")
    return 0


def _samplers(
    names: tuple[str, ...], signature: str | None, mixes: tuple[str, ...], cache: Path | None
) -> list[Shipped]:
    """The samplers of these names, each found before the first is audited."""
    from spectheory.auditing.subjects.libraries import SUBJECTS, load_subject
    from spectheory.auditing.subjects.shipped import Shipped
    from spectheory.auditing.subjects.signatures import SIGNATURES
    from spectheory.resolve import imported

    wanted = [(name, given == ALL) for given in names for name in (SUBJECTS if given == ALL else [given])]
    if (signature is not None or mixes) and not any(":" in name for name, _ in wanted):
        raise InvalidInputError(
            "--as and --mix say how package.module:function is called; a library's sampler knows"
        )
    found = []
    for name, is_optional in wanted:
        if ":" not in name:
            try:
                found.append(load_subject(name, cache))
            except InvalidInputError as error:
                if not is_optional:
                    raise
                note(f"{name} is left out: {error}")
        elif signature is None:
            forms = "; ".join(f"{known}: {how.form}" for known, how in SIGNATURES.items())
            raise InvalidInputError(f"say how {name} is called, with --as SIGNATURE: {forms}")
        else:
            function = imported(name, "sampler")
            if not callable(function):
                raise InvalidInputError(f"{name} is {type(function).__name__}, expected a function")
            found.append(Shipped(function, signature, name.partition(":")[2], mixes=mixes))
    return found
