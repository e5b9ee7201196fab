"""The command on shipped samplers: audit."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spectheory.command_line.options import csv_option, json_option, load_pair, process_of, was_given
from spectheory.command_line.output import (
    EXIT_DEFECT,
    EXIT_INTERRUPTED,
    EXIT_NOT_DECIDED,
    fail,
    note,
    print_json,
    print_results,
)
from spectheory.foundation.errors import InvalidInputError

if TYPE_CHECKING:
    from spectheory.auditing.subjects.shipped import Shipped
    from spectheory.auditing.verdicts.audit_certificate import AuditCertificate
    from spectheory.pairs.pair import ModelPair

ALL = "all"
FETCH = "fetch"
HISTORY = "history"


PARTS = {
    HISTORY: (
        "The verdicts on the newest releases of a library's sampler, the newest first.  The wheels are "
        "downloaded with pip; nothing is installed.  The exit status is that of the newest release.",
        {"names", "versions", "pair_file", "vocab", "draft_length", "cache", "as_csv", "as_json"},
    ),
    FETCH: (
        "Download the Python files of libraries, as sglang or sglang==0.5.23, with pip, or of a commit with "
        'git; nothing is installed.  "all" takes every library that is not installed.',
        {"names", "cache", "as_json"},
    ),
}
"""The first words of audit that are commands of their own: what --help says of them, and their parameters."""


class _Audit(click.Command):
    def parse_args(self, context: click.Context, words: list[str]) -> list[str]:
        if words and words[0] in PARTS and {"-h", "--help"} & {*words}:
            about, known = PARTS[words[0]]
            part = click.Command(
                words[0], help=about, params=[each for each in self.params if each.name in known]
            )
            click.echo(click.Context(part, context.parent, f"{context.info_name} {words[0]}").get_help())
            context.exit()
        return super().parse_args(context, words)


@click.command(cls=_Audit, short_help="Judge a sampler that a library ships, or your own, by its exact law.")
@click.argument("names", metavar="SAMPLER...", nargs=-1, required=True)
@click.option("--as", "signature", metavar="SIGNATURE", help="How package.module:function is called.")
@click.option(
    "--pair", "pair_file", type=click.Path(), metavar="PAIR.json", help="Audit on this pair instead."
)
@click.option("--num-drafts", "-k", metavar="K", help="Numbers of independent paths of a call, as 2 or 1-3.")
@click.option(
    "--tree", "trees", multiple=True, metavar="NAME:K1,K2,..", help="Draft trees, a width per depth."
)
@click.option("--vocab", metavar="V", help="Vocabulary sizes of the pairs, as 4 or 2-5.")
@click.option("--draft-length", metavar="L", help="Draft lengths of the pairs, as 2 or 1-3.")
@click.option("--cache", type=click.Path(path_type=Path), help="The folder of fetched files.")
@click.option(
    "--from",
    "checkout",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Audit the library's sampler in this checkout or these unpacked sources.",
)
@click.option(
    "--versions", type=click.IntRange(min=1), metavar="N", help="The number of releases of a history."
)
@click.option("--page", "as_page", is_flag=True, help="Print a Markdown page instead of a table.")
@click.option(
    "--resume",
    "kept",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="With --page: keep every audit here, and take it from here where code and pairs are the same.",
)
@click.option("--sarif", "as_sarif", is_flag=True, help="Print findings in the SARIF format.")
@click.option(
    "--junit", "junit_file", type=click.Path(path_type=Path), help="Write JUnit's XML to this file."
)
@click.option(
    "--markdown",
    "markdown_file",
    type=click.Path(path_type=Path),
    help="Write a table for a pull request to this file.",
)
@click.option(
    "--against",
    "base",
    metavar="BASE",
    help="Say what changed against a file of --json, a checkout or a version.",
)
@csv_option
@json_option
def audit(
    names: tuple[str, ...],
    signature: str | None,
    pair_file: str | None,
    num_drafts: str | None,
    trees: tuple[str, ...],
    vocab: str | None,
    draft_length: str | None,
    cache: Path | None,
    checkout: Path | None,
    versions: int | None,
    as_page: bool,
    kept: Path | None,
    as_sarif: bool,
    junit_file: Path | None,
    markdown_file: Path | None,
    base: str | None,
    as_csv: bool,
    as_json: bool,
) -> int:
    """Audit samplers as they are shipped: their random numbers are replaced, their code is not.

    SAMPLER is the name of a library (transformers, sglang, sglang-block, vllm), "all" for those that are
    installed or fetched, "ours" for rounds with this package's Triton kernels, or your own sampler as
    package.module:function with --as SIGNATURE: speculative_sampling, evaluate_posterior, coins, batch,
    path_batch, sampler, or round, which drafts too.  Exits with 1 where a defect was found, else with 4 where
    a sampler could not be followed and nothing is decided.

    Samplers that can carry several paths are asked with 1, 2 and 3 of them, or with --num-drafts; those whose
    drafts are not independent with --tree.  --vocab and --draft-length choose the pairs.

    "audit vllm" takes the installed version of the library or else the tested one, "audit vllm==0.31.0"
    another, and "audit vllm --from PATH" a checkout.  "audit history vllm --versions 6" takes the newest
    releases, which are downloaded.

    --against says what changed since BASE: a file that --json wrote, or for samplers of libraries a version
    or the folder of a checkout.  The exit status is that of the verdicts now.

    "audit fetch sglang==0.5.23" downloads the wheel of a library with pip and keeps its Python files; nothing
    is installed.  Of a repository without releases git fetches a commit.  "audit fetch all" takes every
    library that is not installed, each in the tested version.
    """
    forms = {"--page": as_page, "--sarif": as_sarif, "--csv": as_csv, "--json": as_json}
    if sum(forms.values()) > 1:
        given = " and ".join(form for form, is_given in forms.items() if is_given)
        raise InvalidInputError(f"{given} were given; ask for one of them")
    for file in filter(None, (junit_file, markdown_file)):
        if not file.parent.is_dir():
            raise InvalidInputError(f"{file} cannot be written: {file.parent} is not a folder")
    if names[0] in PARTS:
        _refuse_others(names[0])
    if names[0] == FETCH:
        return _fetch(names[1:], cache, as_json)
    if names[0] == HISTORY:
        pairs = _pairs(pair_file, vocab, draft_length)
        return _history(names[1:], versions or 6, pairs, cache, (as_json, as_csv))
    if versions is not None:
        raise InvalidInputError("--versions is of: spectheory audit history SAMPLER")
    from spectheory.auditing.verdicts.audit_changes import audit_changes
    from spectheory.command_line import audit_reports
    from spectheory.foundation.documents import replace_file

    asked_trees = [process_of(1, tree) for tree in trees]
    drafts = {"num_drafts": _listed("--num-drafts", num_drafts), "trees": asked_trees}
    samplers = _samplers(names, signature, drafts, cache, checkout)
    pairs = _pairs(pair_file, vocab, draft_length)
    if kept is not None:
        if not as_page or base or junit_file or markdown_file:
            raise InvalidInputError("--resume keeps the audits of a page: with --page, and no other report")
        asked = [signature, drafts["num_drafts"], [str(tree) for tree in asked_trees]]
        return _page(samplers, pairs, kept, asked)
    before = None if base is None else _base(base, samplers, pairs, cache)
    found: list[AuditCertificate] = []
    failure: BaseException | None = None
    try:
        _audited(samplers, pairs, found)
    except (InvalidInputError, KeyboardInterrupt) as error:
        if not found:
            raise
        failure = error
    changes = None if before is None else audit_changes(before, found)
    if junit_file is not None:
        replace_file(junit_file, audit_reports.junit(found))
    if markdown_file is not None:
        replace_file(markdown_file, audit_reports.markdown(found, changes))
    if as_page:
        entries = list(map(audit_reports.entry, found))
        click.echo(audit_reports.page(entries, datetime.date.today()), nl=False)
    elif as_sarif:
        print_json(audit_reports.sarif(found))
    else:
        title = "audits of shipped samplers" if len(found) > 1 else None
        beside = [] if changes is None else [changes]
        print_results(found, as_json, as_csv, name="audits", title=title, beside=beside)
    if isinstance(failure, KeyboardInterrupt):
        return fail(f"interrupted; finished and printed: {len(found)} of {len(samplers)}", EXIT_INTERRUPTED)
    if failure is not None:  # the audits before it are printed
        raise failure
    return _status([certificate.verdict for certificate in found])


def _status(verdicts: Sequence[str]) -> int:
    from spectheory.auditing.verdicts.audit_certificate import DEFECT, NOT_DECIDED

    return EXIT_DEFECT if DEFECT in verdicts else EXIT_NOT_DECIDED if NOT_DECIDED in verdicts else 0


def _page(samplers: list[Shipped], pairs: dict[str, ModelPair] | None, kept: Path, asked: list[Any]) -> int:
    """A page of audits, each kept in a file once it is finished, for the same code, pairs and options."""
    from spectheory.command_line.audit_reports import entry, page
    from spectheory.foundation.documents import json_sha256, replace_file

    kept.mkdir(parents=True, exist_ok=True)
    entries = []
    for sampler in samplers:
        file = kept / f"{sampler.name}.json"
        try:
            known = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = {}
        given = {name: pair.to_document() for name, pair in (pairs or {}).items()}
        question = json_sha256([sampler.provenance.sha256, given, asked, _code_of_audits()])
        is_finished = isinstance(known, dict) and {"sampler", "verdict", "cells", "details"} <= known.keys()
        if not is_finished or known.get("question") != question:
            (found,) = _audited([sampler], pairs)
            known = {**entry(found), "question": question}
            replace_file(file, json.dumps(known, ensure_ascii=False, indent=1) + "\n")
        entries.append(known)
    click.echo(page(entries, datetime.date.today()), nl=False)
    return _status([each["verdict"] for each in entries])


@cache
def _code_of_audits() -> list[str]:
    """The hashes of all files that audit."""
    from spectheory import auditing

    return [
        sha256(file.read_bytes()).hexdigest() for file in sorted(Path(auditing.__file__).parent.rglob("*.py"))
    ]


def _audited(
    samplers: list[Shipped], pairs: dict[str, ModelPair] | None, found: list[AuditCertificate] | None = None
) -> list[AuditCertificate]:
    """The audits, one after the other, added to ``found`` as they end."""
    from spectheory import auditing
    from spectheory.command_line.progress import progress_bar

    found = [] if found is None else found
    for sampler in samplers:
        with progress_bar(sampler.name) as progress:
            found.append(auditing.audit(sampler, pairs, progress=progress))
    return found


def _base(
    base: str, samplers: list[Shipped], pairs: dict[str, ModelPair] | None, cache: Path | None
) -> Sequence[Mapping[str, Any]]:
    """The older audits: those of a file, or of the same samplers of libraries in a version or a checkout."""
    from spectheory.auditing.subjects.libraries import SUBJECTS, load_subject
    from spectheory.auditing.verdicts.audit_changes import audits_of, name_of

    place = Path(base)
    if place.is_file():
        try:
            document = json.loads(place.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(f"{base} is not JSON: {error}") from None
        return audits_of(document, base)
    names = [name_of({"sampler": sampler.name}) for sampler in samplers]
    if not all(name in SUBJECTS for name in names):
        raise InvalidInputError(
            f"--against {base} is not a file; a function is compared with a result of spectheory audit --json"
        )
    is_folder = place.is_dir()
    older = [
        load_subject(name, cache, place) if is_folder else load_subject(f"{name}=={base}", cache)
        for name in names
    ]
    return [certificate.to_document() for certificate in _audited(older, pairs)]


def _listed(option: str, text: str | None) -> list[int]:
    """The numbers of an option; none where it is not given."""
    if text is None:
        return []
    from spectheory.simulation.settings import read_numbers

    try:
        found = read_numbers(text)
    except InvalidInputError as error:
        raise InvalidInputError(f"{option} {error}") from None
    return found if isinstance(found, list) else [found]


def _pairs(pair_file: str | None, vocab: str | None, draft_length: str | None) -> dict[str, ModelPair] | None:
    """The pairs that were asked for; ``None`` for those of every audit."""
    if pair_file is not None:
        if vocab or draft_length:
            raise InvalidInputError("--pair has its own vocabulary and draft length; leave out the options")
        return {pair_file: load_pair(pair_file)}
    if vocab is None and draft_length is None:
        return None
    from spectheory.auditing.rounds.battery import pairs_of_shapes

    return pairs_of_shapes(_listed("--vocab", vocab), _listed("--draft-length", draft_length))


def _refuse_others(part: str) -> None:
    for each in click.get_current_context().command.params:
        if each.name and each.name not in PARTS[part][1] and was_given(each.name):
            raise InvalidInputError(f"{each.opts[0]} is not an option of: spectheory audit {part}")


def _fetch(names: tuple[str, ...], cache: Path | None, as_json: bool) -> int:
    from spectheory.auditing.subjects.libraries import LIBRARIES
    from spectheory.auditing.subjects.sources import installed_release
    from spectheory.foundation.validation import unknown_name
    from spectheory.foundation.wheels import default_cache, parsed

    wanted = [(name, given == ALL) for given in names for name in (LIBRARIES if given == ALL else [given])]
    if not names:
        raise InvalidInputError(
            f"say what to fetch: {ALL}, or one of {', '.join(LIBRARIES)}, with ==version or without"
        )
    fetched = []
    for requirement, is_optional in wanted:
        package, version = parsed(requirement)
        if package not in LIBRARIES:
            raise unknown_name("library", package, LIBRARIES)
        library = LIBRARIES[package]
        if is_optional and not library.repository and installed_release(package, library.top) is not None:
            continue
        try:
            release = library.fetch(package, version, cache or default_cache())
        except InvalidInputError as error:
            if not (is_optional and library.repository):
                raise
            note(f"{package} is left out: {error}")
            continue
        fetched.append(release)
        if not as_json:
            click.echo(f"{release.package} {release.version}: {release.folder}")
    if as_json:
        print_json({"fetched": [release._asdict() | {"folder": str(release.folder)} for release in fetched]})
    return 0


def _history(
    names: tuple[str, ...],
    versions: int,
    pairs: dict[str, ModelPair] | None,
    cache: Path | None,
    form: tuple[bool, bool],
) -> int:
    """The verdicts on the newest releases; the status is that of the newest."""
    from spectheory.auditing.verdicts.release_history import history
    from spectheory.command_line.progress import progress_bar

    if not names:
        raise InvalidInputError("say whose history: spectheory audit history SAMPLER")
    found = []
    for name in names:
        with progress_bar(name) as progress:
            found.append(history(name, versions, pairs, cache=cache, progress=progress))
    print_results(found, *form, name="histories")
    newest = [each.releases[0] for each in found]
    if any(release.verdict == "defect" for release in newest):
        return EXIT_DEFECT
    return 0 if all(release.is_decided for release in newest) else EXIT_NOT_DECIDED


def _samplers(
    names: tuple[str, ...],
    signature: str | None,
    drafts: dict[str, Any],
    cache: Path | None,
    checkout: Path | None,
) -> list[Shipped]:
    """The samplers of these names, each found before the first is audited."""
    from spectheory.auditing.subjects.drafting_rounds import as_shipped
    from spectheory.auditing.subjects.libraries import SUBJECTS, load_subject
    from spectheory.auditing.subjects.own_rounds import OURS, own_samplers
    from spectheory.auditing.subjects.signatures import SIGNATURES, signatures_of
    from spectheory.verification.resolve import imported

    wanted = [(name, given == ALL) for given in names for name in (SUBJECTS if given == ALL else [given])]
    is_said = signature is not None or any(drafts.values())
    if is_said and not any(":" in name for name, _ in wanted):
        raise InvalidInputError(
            "--as, --num-drafts and --tree say how package.module:function is called; a library's sampler "
            "knows"
        )
    found = []
    for name, is_optional in wanted:
        if name == OURS:
            found += own_samplers()
        elif ":" not in name:
            try:
                found.append(load_subject(name, cache, checkout))
            except InvalidInputError as error:
                if not is_optional:
                    raise
                note(f"{name} is left out: {error}")
        else:
            if checkout is not None:
                raise InvalidInputError(
                    f"--from is for the samplers of libraries; {name} is imported as it is"
                )
            function = imported(name, "sampler")
            if not callable(function):
                raise InvalidInputError(f"{name} is {type(function).__name__}, expected a function")
            if signature is None:
                fitting = signatures_of(function) or [*SIGNATURES]
                forms = "; ".join(f"--as {known}: {SIGNATURES[known].form}" for known in fitting)
                raise InvalidInputError(f"say how {name} is called, with --as SIGNATURE; {forms}")
            found.append(as_shipped(function, signature, name.partition(":")[2], **drafts))
    return found
