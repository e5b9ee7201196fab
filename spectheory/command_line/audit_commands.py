"""The command on shipped samplers: audit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from spectheory.command_line.options import Numbers, load_pair, was_given
from spectheory.command_line.output import (
    EXIT_INTERRUPTED,
    EXIT_NOT_DECIDED,
    EXIT_NOT_LOSSLESS,
    fail,
    note,
    print_found,
    print_results,
)
from spectheory.command_line.signatures import command
from spectheory.foundation.errors import InvalidInputError

if TYPE_CHECKING:
    from spectheory.auditing.subjects.shipped import Shipped
    from spectheory.auditing.verdicts.audit_certificate import AuditCertificate
    from spectheory.pairs.drafts import DraftProcess
    from spectheory.pairs.pair import ModelPair

ALL = "all"
PARTS = {"fetch": ("cache",), "history": ("pair", "vocab", "draft_length", "versions", "cache")}
"""The first words of audit that are commands of their own, and the options that they take."""
REPORTS = (".sarif", ".xml", ".md")
"""The endings of reports: SARIF, JUnit's XML, and a table for a pull request."""


@command(example="spectheory audit transformers --vocab 2 --draft-length 1")
def audit(
    sampler: tuple[str, ...] = (),
    *,
    command: tuple[str, ...] = (),
    as_: str | None = None,
    pair: str | None = None,
    drafts: tuple[int | DraftProcess, ...] = (),
    vocab: Numbers | None = None,
    draft_length: Numbers | None = None,
    within: float = 0.002,
    accept: Literal["undecided"] | None = None,
    cache: Path | None = None,
    from_: Path | None = None,
    versions: int = 6,
    report: tuple[Path, ...] = (),
    against: str | None = None,
) -> int:
    """Judge samplers as they are shipped: their random numbers are replaced, their code is not.

    SAMPLER is the name of a library (transformers, sglang, sglang-block, vllm), "all" for those that are
    installed or fetched, "ours" for rounds with this package's Triton kernels, or your own sampler as
    package.module:function with --as SIGNATURE.  "vllm" takes the installed version of the library or else
    the tested one, "vllm==0.31.0" another, and "vllm --from PATH" a checkout.

    "audit history vllm --versions 6" judges the newest releases, the newest first.  "audit fetch
    sglang==0.5.23" downloads the Python files of a library with pip, or of a commit with git; nothing is
    installed.

    --command './my_sampler' judges a program in any language, which answers one JSON object per line.

    A sampler is followed; where that cannot be, it is probed, which bounds the error of its law by --within;
    where its random numbers cannot be handed to it, its answers are drawn, which never says lossless.

    Exits with 1 where a defect was found, else with 4 where nothing is decided.

    Args:
        command: A program that verifies, such as 'node sampler.js'; may be repeated.
        as_: How package.module:function is called: speculative_sampling, evaluate_posterior, coins, batch,
            path_batch, sampler, or round, which drafts too.
        pair: Audit on this pair file instead.
        drafts: Numbers of independent paths of a call, as 2 or 1-3, or a draft tree; may be repeated.
        vocab: Vocabulary sizes of the pairs, as 4 or 2-5.
        draft_length: Draft lengths of the pairs, as 2 or 1-3.
        within: The total variation that the law of a probed sampler may be wrong by.
        accept: Exit with 0 where nothing is decided; what would have been seen is printed.
        cache: The folder of fetched files; default: in the user's cache.
        from_: Audit the library's sampler in this checkout or these unpacked sources.
        versions: The number of releases of a history.
        report: Write findings to a file too: FILE.sarif, FILE.xml (JUnit) or FILE.md; may be repeated.
        against: Say what changed against a file of --json, a checkout or a version.
    """
    for file in report:
        if file.suffix not in REPORTS or not file.parent.is_dir():
            raise InvalidInputError(
                f"--report {file} must end in {', '.join(REPORTS)} and lie in a folder that exists"
            )
    if not sampler and not command:
        raise InvalidInputError("say what to audit: a SAMPLER, or a program with --command")
    if sampler and sampler[0] in PARTS:
        _refuse_others(sampler[0])
        pairs = _pairs(pair, vocab, draft_length)
        if sampler[0] == "fetch":
            return _fetch(sampler[1:], cache)
        return _history(sampler[1:], versions, pairs, cache)
    if was_given("versions"):
        raise InvalidInputError("--versions is of: spectheory audit history SAMPLER")
    from spectheory.auditing.verdicts.audit_changes import audit_changes
    from spectheory.command_line.audit_reports import write_report

    given = asked_drafts(drafts)
    samplers = [*programs_of(command, given), *samplers_of(sampler, as_, given, cache, from_)]
    pairs = _pairs(pair, vocab, draft_length)
    before = None if against is None else _base(against, samplers, pairs, cache)
    found: list[AuditCertificate] = []
    failure: BaseException | None = None
    try:
        _audited(samplers, pairs, found, within)
    except (InvalidInputError, KeyboardInterrupt) as error:
        if not found:
            raise
        failure = error
    changes = None if before is None else audit_changes(before, found)
    for file in report:
        write_report(file, found, changes)
    title = "audits of shipped samplers" if len(found) > 1 else None
    print_results(found, name="audits", title=title, beside=[] if changes is None else [changes])
    if isinstance(failure, KeyboardInterrupt):
        return fail(f"interrupted; finished and printed: {len(found)} of {len(samplers)}", EXIT_INTERRUPTED)
    if failure is not None:  # the audits before it are printed
        raise failure
    status = status_of([certificate.verdict for certificate in found])
    return 0 if status == EXIT_NOT_DECIDED and accept == "undecided" else status


def programs_of(commands: Sequence[str], drafts: dict[str, Any]) -> list[Shipped]:
    """The samplers of programs, which are started."""
    if not commands:
        return []
    from spectheory.auditing.subjects.programs import Program
    from spectheory.auditing.subjects.shipped import Shipped
    from spectheory.auditing.subjects.signatures import PROGRAM

    drafts = drafts if any(drafts.values()) else {"num_drafts": [1]}
    return [Shipped(Program(each), PROGRAM, **drafts) for each in commands]


def status_of(verdicts: Sequence[str]) -> int:
    from spectheory.foundation.results import NOT_LOSSLESS, UNDECIDED

    return EXIT_NOT_LOSSLESS if NOT_LOSSLESS in verdicts else EXIT_NOT_DECIDED if UNDECIDED in verdicts else 0


def asked_drafts(drafts: Sequence[Any]) -> dict[str, Any]:
    """The numbers of paths and the trees among the drafts."""
    numbers: list[int] = []
    for entry in drafts:
        numbers += entry if isinstance(entry, list) else [entry] if isinstance(entry, int) else []
    return {
        "num_drafts": numbers,
        "trees": [entry for entry in drafts if not isinstance(entry, (int, list))],
    }


def _audited(
    samplers: list[Shipped],
    pairs: dict[str, ModelPair] | None,
    found: list[AuditCertificate] | None = None,
    within: float = 0.002,
) -> list[AuditCertificate]:
    """The audits, one after the other, added to ``found`` as they end."""
    from spectheory import auditing
    from spectheory.command_line.progress import progress_bar

    found = [] if found is None else found
    for sampler in samplers:
        with progress_bar(sampler.name) as progress:
            found.append(auditing.audit(sampler, pairs, within=within, progress=progress))
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


def _pairs(
    pair: str | None, vocab: list[int] | None, draft_length: list[int] | None
) -> dict[str, ModelPair] | None:
    """The pairs that were asked for; ``None`` for those of every audit."""
    if pair is not None:
        if vocab or draft_length:
            raise InvalidInputError("--pair has its own vocabulary and draft length; leave out the options")
        return {pair: load_pair(pair)}
    if vocab is None and draft_length is None:
        return None
    from spectheory.auditing.rounds.battery import pairs_of_shapes

    return pairs_of_shapes(vocab or [], draft_length or [])


def _refuse_others(part: str) -> None:
    for each in click.get_current_context().command.params:
        if isinstance(each, click.Option) and each.name not in PARTS[part] and was_given(each.name or ""):
            raise InvalidInputError(f"{each.opts[-1]} is not an option of: spectheory audit {part}")


def _fetch(names: tuple[str, ...], cache: Path | None) -> int:
    from spectheory.auditing.subjects.libraries import LIBRARIES
    from spectheory.auditing.subjects.sources import installed_release
    from spectheory.foundation.results import Table
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
        fetched.append(release._asdict() | {"folder": str(release.folder)})
    print_found({"fetched": fetched}, [Table("fetched", fetched)], fetched)
    return 0


def _history(
    names: tuple[str, ...], versions: int, pairs: dict[str, ModelPair] | None, cache: Path | None
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
    print_results(found, name="histories")
    newest = [each.releases[0] for each in found]
    status = status_of([release.verdict for release in newest])
    return status or (0 if all(release.is_decided for release in newest) else EXIT_NOT_DECIDED)


def samplers_of(
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
    if names and is_said and not any(":" in name for name, _ in wanted):
        raise InvalidInputError(
            "--as and --drafts say how package.module:function is called; a library's sampler knows"
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
