"""The ``audit`` commands: audit samplers without changing their code; list, fetch and compare libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from spectheory.command_line.options import Numbers, load_pair
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
    from spectheory.auditing.verdicts.draft_functions import DraftFunction
    from spectheory.pairs.drafts import DraftProcess
    from spectheory.pairs.pair import ModelPair

ALL, OURS = "all", "ours"
REPORTS = (".sarif", ".xml", ".md")
"""File endings of reports: SARIF, JUnit's XML, and a table for a pull request."""


@command(example="spectheory audit my_sampler:verify --as sampler --drafts 1")
def audit(
    sampler: tuple[str, ...] = (),
    *,
    command: tuple[str, ...] = (),
    as_: str | None = None,
    pair: str | None = None,
    drafts: tuple[int | DraftProcess, ...] = (),
    vocab: Numbers | None = None,
    draft_length: Numbers | None = None,
    processor: str | None = None,
    plain: str | None = None,
    within: float | None = None,
    accept: Literal["undecided"] | None = None,
    cache: Path | None = None,
    from_: Path | None = None,
    package: tuple[str, ...] = (),
    adapters: Path | None = None,
    quick: bool = False,
    time: float | None = None,
    trace: bool = False,
    jobs: int = 1,
    badge: Path | None = None,
    report: tuple[Path, ...] = (),
) -> int:
    """Audit samplers as they are shipped: we replace their random numbers, but not their code.

    SAMPLER is your own sampler, a library's (transformers, sglang, sglang-block, vllm), "all" or "ours". Give
    your own as package.module:function, with --as SIGNATURE. "all" means the samplers of all installed or
    fetched libraries, and "ours" the rounds with this package's Triton kernels. "vllm" takes the installed
    version, or else the tested version. "vllm==0.31.0" takes this version, and "vllm --from PATH" takes a
    checkout.

    "audit list" lists the samplers of libraries. "audit fetch sglang==0.5.23" downloads the Python files of a
    library with pip, or of a commit with git; it installs nothing. "audit history vllm --versions 6" audits
    the newest releases. Each has its own --help.

    --command './my_sampler' audits a program in any language that answers one JSON object per line; with
    --as batch, a program that verifies several requests at once.

    We first try to follow a sampler, through all cases of its random numbers. If this fails, we probe it on
    numbers that we choose, which bounds the error of its law by --within. If it does not take our numbers, we
    draw its answers. The verdict is then never lossless.

    The exit status is 1 if a defect was found, and 4 if there is no defect but an undecided verdict.

    Args:
        command: A program that verifies, such as 'node sampler.js'; may be repeated.
        as_: The way to call package.module:function: speculative_sampling, evaluate_posterior, coins, batch,
            flattened_batch, path_batch, sampler, or round. A round drafts too. For functions and
            methods that take models: generate, which returns a text, or step. For functions around the
            drafts: schedule, draft_map or processors.
        pair: Audit on this pair file instead.
        drafts: Numbers of independent paths of a call, such as 2 or 1-3, or a draft tree; may be repeated.
        vocab: Vocabulary sizes of the pairs, such as 4 or 2-5.
        draft_length: Draft lengths of the pairs, such as 2 or 1-3.
        processor: Sampling parameters of the request, in their order, such as temperature=1/2,top_k=2. The
            sampler gets raw rows.
        plain: The engine's plain step, package.module:function; the sampler must have the law of plain
            decoding on the same raw rows.
        within: Largest error, in total variation, of the law of a probed sampler; default: 0.002, and 0.02
            with --quick.
        accept: Exit with 0 if a verdict is undecided. The smallest error that a test would see is printed.
        cache: Folder of fetched files; default: in the user's cache.
        from_: Audit the library's sampler in this checkout or these unpacked sources.
        package: NAME=PATH audits library NAME in the package folder PATH, such as a fork with another name;
            may be repeated.
        adapters: Folder of adapters for libraries; default: audits/ of the working tree.
        quick: Test only a few pairs and batches, with fewer runs and calls; the scope says so.
        time: Seconds for each sampler. After this time we report the findings so far; the rest is undecided.
        trace: Also print one run: every decision with its line, bound, case and probability.
        jobs: Number of processes for several samplers.
        badge: Also write the verdict to this file, as an SVG image of one line.
        report: Also write the findings to FILE.sarif, FILE.xml (JUnit) or FILE.md; may be repeated.
    """
    _check_asked([*sampler, *command], report)
    asked = asked_drafts(drafts)
    find = partial(
        samplers_of, signature=as_, drafts=asked, cache=cache, checkout=from_, forks=forks_of(package),
        adapters=adapters,
    )  # fmt: skip
    samplers = [*programs_of(command, as_, asked), *find(sampler)]
    pairs = _pairs(pair, vocab, draft_length)
    options = {"quick": quick, "time_limit": time, "within": within, "trace": trace}
    options |= _stated(processor, plain)
    found: list[AuditCertificate] = []
    failure: BaseException | None = None
    try:
        if jobs == 1 or len(samplers) == 1 or command:
            _audited(samplers, pairs, found, **options)
        else:
            found += _in_processes(find, _names(sampler, samplers), jobs, pairs, options)
    except (InvalidInputError, KeyboardInterrupt) as error:
        if not found:
            raise
        failure = error
    _say(found, report, badge)
    if isinstance(failure, KeyboardInterrupt):
        return fail(f"interrupted; finished and printed: {len(found)} of {len(samplers)}", EXIT_INTERRUPTED)
    if failure is not None:  # the audits before it are printed
        raise failure
    return status_of([each.verdict for each in found], accept)


def _check_asked(names: Sequence[str], reports: Sequence[Path]) -> None:
    if not names:
        raise InvalidInputError("say what to audit: a SAMPLER, or a program with --command")
    for file in reports:
        if file.suffix not in REPORTS or not file.parent.is_dir():
            raise InvalidInputError(
                f"--report {file} must end in {', '.join(REPORTS)} and lie in a folder that exists"
            )


def _names(given: Sequence[str], samplers: Sequence[Shipped | DraftFunction]) -> list[str]:
    """List the names to audit in processes: "all" stands for every sampler that was loaded."""
    loaded = [each.name for each in samplers if each.is_of_a_library]
    return [name for each in given for name in (loaded if each == ALL else [each])]


def _say(found: list[AuditCertificate], reports: Sequence[Path], badge: Path | None) -> None:
    """Write the reports and the badge, and print the audits."""
    from spectheory.command_line.audit_reports import badge_of, write_report
    from spectheory.foundation.documents import replace_file

    for file in reports:
        write_report(file, found)
    if badge is not None:
        replace_file(badge, badge_of(found))
    print_results(found, name="audits", title="audits" if len(found) > 1 else None)


def _stated(processor: str | None, plain: str | None) -> dict[str, Any]:
    """The options of an audit that say which sampling parameters a sampler has."""
    from spectheory.pairs.processors import parse_processors
    from spectheory.verification.resolve import imported

    return {
        "processor": None if processor is None else parse_processors(processor),
        "plain": None if plain is None else imported(plain, "plain step"),
    }


def programs_of(commands: Sequence[str], signature: str | None, drafts: dict[str, Any]) -> list[Shipped]:
    """Start the programs, and return their samplers."""
    if not commands:
        return []
    from spectheory.auditing.subjects.programs import BatchProgram, Program
    from spectheory.auditing.subjects.shipped import Shipped
    from spectheory.auditing.subjects.signatures import PROGRAM

    if signature == "batch":
        mixes = BatchProgram.MIXES
        return [Shipped(BatchProgram(each), signature, mixes=mixes, **drafts) for each in commands]
    if signature not in (None, PROGRAM):
        raise InvalidInputError(f"a program verifies one request, or --as batch; got --as {signature}")
    drafts = drafts if any(drafts.values()) else {"num_drafts": [1]}
    return [Shipped(Program(each), PROGRAM, **drafts) for each in commands]


@command(example="spectheory audit list")
def audit_list(*, adapters: Path | None = None) -> int:
    """List the samplers of libraries: the tested version, the signature and the stored verdict.

    Args:
        adapters: Folder of adapters; default: audits/ of the working tree.
    """
    from spectheory.auditing.subjects.adapters import load_adapters
    from spectheory.foundation.results import Table

    rows = [
        {
            "sampler": name,
            "library": subject.library.package,
            "version": subject.library.tested[:10],
            "signature": subject.signature,
            "verdict": subject.verdict,
        }
        for name, subject in load_adapters(adapters).SUBJECTS.items()
    ]
    print_found({"samplers": rows}, [Table("samplers of libraries", rows)], rows)
    return 0


@command(example="spectheory audit fetch sglang==0.5.23")
def audit_fetch(library: tuple[str, ...], *, cache: Path | None = None, adapters: Path | None = None) -> int:
    """Download the Python files of libraries with pip, or of a commit with git; nothing is installed.

    LIBRARY is a name with or without ==version, or "all" for all libraries that are not installed.

    Args:
        cache: Folder of fetched files; default: in the user's cache.
        adapters: Folder of adapters; default: audits/ of the working tree.
    """
    from spectheory.auditing.subjects.adapters import load_adapters
    from spectheory.foundation.results import Table

    fetched, left_out = load_adapters(adapters, "fetching").fetch_libraries(library, cache)
    for text in left_out:
        note(text)
    rows = [release._asdict() | {"folder": str(release.folder)} for release in fetched]
    print_found({"fetched": rows}, [Table("fetched", rows)], rows)
    return 0


@command(example="spectheory audit history vllm --versions 6")
def audit_history(
    sampler: tuple[str, ...],
    *,
    versions: int = 6,
    pair: str | None = None,
    vocab: Numbers | None = None,
    draft_length: Numbers | None = None,
    cache: Path | None = None,
    adapters: Path | None = None,
) -> int:
    """Audit the newest releases of a library's sampler.

    The exit status is computed from the newest release only.

    Args:
        versions: Number of releases.
        pair: Pair file to audit on.  By default each audit uses its own pairs.
        vocab: Vocabulary sizes of the pairs, such as 4 or 2-5.
        draft_length: Draft lengths of the pairs, such as 2 or 1-3.
        cache: Folder of fetched files; default: in the user's cache.
        adapters: Folder of adapters; default: audits/ of the working tree.
    """
    from spectheory.auditing.subjects.adapters import load_adapters
    from spectheory.command_line.progress import progress_bar

    pairs, found = _pairs(pair, vocab, draft_length), []
    module = load_adapters(adapters, "release_history")
    for name in sampler:
        with progress_bar(name) as progress:
            found.append(module.history(name, versions, pairs, cache=cache, progress=progress))
    print_results(found, name="histories")
    newest = [each.releases[0] for each in found]
    status = status_of([release.verdict for release in newest])
    return status or (0 if all(release.is_decided for release in newest) else EXIT_NOT_DECIDED)


PARTS = {"audit list": audit_list, "audit fetch": audit_fetch, "audit history": audit_history}
"""Commands of two words."""


def forks_of(packages: Sequence[str]) -> dict[str, Path]:
    """Parse texts NAME=PATH of ``--package``: a dictionary from library name to package folder.

    Example:
        >>> forks_of(["vllm=forks/aphrodite"])
        {'vllm': PosixPath('forks/aphrodite')}
    """
    found = {}
    for text in packages:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise InvalidInputError(f"--package {text} is not NAME=PATH, as vllm=forks/aphrodite")
        found[name] = Path(path)
    return found


def status_of(verdicts: Sequence[str], accept: str | None = None) -> int:
    """Return the exit status of these verdicts; ``accept="undecided"`` lets undecided ones pass."""
    from spectheory.foundation.results import NOT_LOSSLESS, UNDECIDED

    if NOT_LOSSLESS in verdicts:
        return EXIT_NOT_LOSSLESS
    return EXIT_NOT_DECIDED if UNDECIDED in verdicts and accept is None else 0


def asked_drafts(drafts: Sequence[Any]) -> dict[str, Any]:
    """Split the drafts into the numbers of paths and the trees."""
    numbers: list[int] = []
    for entry in drafts:
        numbers += entry if isinstance(entry, list) else [entry] if isinstance(entry, int) else []
    return {
        "num_drafts": numbers,
        "trees": [entry for entry in drafts if not isinstance(entry, (int, list))],
    }


def _audited(
    samplers: Sequence[Shipped | DraftFunction],
    pairs: dict[str, ModelPair] | None,
    found: list[AuditCertificate] | None = None,
    **options: Any,
) -> list[AuditCertificate]:
    """Audit the samplers in turn, and append each certificate to ``found`` when it is ready."""
    from spectheory import auditing
    from spectheory.command_line.progress import progress_bar

    found = [] if found is None else found
    for sampler in samplers:
        with progress_bar(sampler.name) as progress:
            found.append(auditing.audit(sampler, pairs, progress=progress, **options))
    return found


def _in_processes(
    find: Callable[[list[str]], list[Shipped | DraftFunction]],
    names: Sequence[str],
    jobs: int,
    pairs: dict[str, ModelPair] | None,
    options: Mapping[str, Any],
) -> list[AuditCertificate]:
    """Audit the named samplers in ``jobs`` parallel processes, and keep the order of the names."""
    from joblib import Parallel, delayed

    def of_name(name: str) -> list[AuditCertificate]:
        """Audit the samplers of one name.  We drop their code, which cannot be sent to another process."""
        return [certificate.without_code() for certificate in _audited(find([name]), pairs, **options)]

    audits = Parallel(n_jobs=jobs)(delayed(of_name)(name) for name in names)
    return [found for each in audits for found in each]


def _pairs(
    pair: str | None, vocab: list[int] | None, draft_length: list[int] | None
) -> dict[str, ModelPair] | None:
    """Build the requested pairs.  ``None`` if none is requested: every audit then uses its own pairs."""
    if pair is not None:
        if vocab or draft_length:
            raise InvalidInputError("--pair has its own vocabulary and draft length; leave out the options")
        return {pair: load_pair(pair)}
    if vocab is None and draft_length is None:
        return None
    from spectheory.auditing.rounds.battery import pairs_of_shapes

    return pairs_of_shapes(vocab or [], draft_length or [])


def samplers_of(
    names: Sequence[str],
    signature: str | None,
    drafts: dict[str, Any],
    cache: Path | None = None,
    checkout: Path | None = None,
    forks: Mapping[str, Path] | None = None,
    adapters: Path | None = None,
) -> list[Shipped | DraftFunction]:
    """Find the samplers of all names, before the first audit starts."""
    from spectheory.auditing.subjects.adapters import load_adapters

    is_said = signature is not None or any(drafts.values())
    if names and is_said and not any(":" in name for name in names):
        raise InvalidInputError(
            "--as and --drafts say how package.module:function is called; a library's sampler knows"
        )
    found: list[Shipped | DraftFunction] = []
    for name in names:
        if ":" in name:
            if checkout is not None:
                raise InvalidInputError(
                    f"--from is for the samplers of libraries; {name} is imported as it is"
                )
            found.append(_own(name, signature, drafts))
        elif name == OURS:
            found += load_adapters(adapters, "own_rounds").own_samplers()
        else:
            registry = load_adapters(adapters)
            samplers, left_out = registry.load_samplers(name, cache, checkout, forks or {})
            found += samplers
            for text in left_out:
                note(text)
    return found


def _own(name: str, signature: str | None, drafts: dict[str, Any]) -> Shipped | DraftFunction:
    """Wrap a function that a user names."""
    from spectheory.auditing.subjects.fitting import signatures_of
    from spectheory.auditing.subjects.model_loops import as_shipped
    from spectheory.auditing.subjects.signatures import SIGNATURES
    from spectheory.auditing.verdicts.draft_functions import FORMS, DraftFunction
    from spectheory.verification.resolve import imported

    function = imported(name, "sampler")
    if not callable(function):
        raise InvalidInputError(f"{name} is {type(function).__name__}, expected a function")
    if signature is None:
        fitting = signatures_of(function) or [*SIGNATURES]
        forms = "; ".join(f"--as {known}: {SIGNATURES[known].form}" for known in fitting)
        raise InvalidInputError(
            f"say how {name} is called, with --as SIGNATURE; whole batches: batch, flattened_batch; {forms}; "
            "other arguments need a wrapper of a few lines, see docs/auditing.md, Signatures"
        )
    if signature in FORMS:
        return DraftFunction(function, signature)
    return as_shipped(function, signature, name.partition(":")[2], **drafts)
