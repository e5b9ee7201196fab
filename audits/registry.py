"""The samplers of ``libraries`` by name, loaded from any release, checkout or fork."""

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path

from audits.forms.drafted import Drafted
from audits.loading.library_code import load_code
from audits.loading.sources import found, release_in, release_of
from audits.subject import Library, Subject
from spectheory.auditing.subjects.model_loops import as_shipped
from spectheory.auditing.subjects.provenance import Provenance
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import unknown_name
from spectheory.foundation.wheels import Release, default_cache, parsed


def _subjects() -> dict[str, Subject]:
    files = sorted((Path(__file__).parent / "libraries").glob("[a-z]*.py"))
    return {
        name: subject
        for file in files
        for name, subject in import_module(f"audits.libraries.{file.stem}").SUBJECTS.items()
    }


SUBJECTS = _subjects()
"""Name -> sampler."""
LIBRARIES: dict[str, Library] = {each.library.package: each.library for each in SUBJECTS.values()}
"""Package -> library."""
ALL = "all"
"""The name of all samplers that are not left out of it."""


def load_samplers(
    name: str, cache: Path | None, checkout: Path | None, forks: Mapping[str, Path]
) -> tuple[list[Shipped], list[str]]:
    """The sampler of a name, or all that are there; and why others of all were left out, in words.

    Args:
        name: as in ``load_subject``, or ``ALL``.
        cache, checkout: as in ``load_subject``.
        forks: library -> the folder of its package.
    """
    unknown = next((library for library in forks if library not in LIBRARIES), None)
    if unknown is not None:
        raise unknown_name("library", unknown, LIBRARIES)
    found, left_out = [], []
    wanted = [each for each, subject in SUBJECTS.items() if subject.in_all] if name == ALL else [name]
    for each in wanted:
        subject = SUBJECTS.get(parsed(each)[0])
        fork = None if subject is None else forks.get(subject.library.package)
        try:
            found.append(load_subject(each, cache, checkout, fork))
        except InvalidInputError as error:
            if name != ALL:
                raise
            left_out.append(f"{each} is left out: {error}")
    return found, left_out


def load_subject(
    name: str, cache: Path | None = None, checkout: Path | None = None, fork: Path | None = None
) -> Shipped:
    """The sampler of a library by its name.

    Args:
        name: of ``SUBJECTS``: the installed version, or else the tested one; ``name==version`` for another.
        cache: the folder of fetched files; by default in the user's cache.
        checkout: a working tree or unpacked sources, where these are audited.
        fork: the folder of the package, whose name may differ from the library's.

    Raises:
        UnknownNameError: no sampler has this name.
        MissingDependencyError: Triton is not installed.
        InvalidInputError: the library is not there, or this release has no such function.
    """
    sampler_name, version = parsed(name)
    if sampler_name not in SUBJECTS:
        raise unknown_name("sampler", sampler_name, SUBJECTS, ", or your own as package.module:function")
    subject = SUBJECTS[sampler_name]
    if version and (checkout or fork):
        raise InvalidInputError(f"{name} names a version, and a checkout has its own; leave out one of them")
    if fork is not None:
        checkout = fork.resolve()
        subject = subject.renamed(checkout.name)
    library = subject.library
    if checkout is not None:
        release = release_in(checkout, library.package, library.top)
    elif library.repository:
        release = found(f"{library.package}=={version or library.tested}", cache or default_cache())
    else:
        release = release_of(library.package, library.top, version, library.tested, cache)
    sampler = subject_of_release(sampler_name, release, subject)
    sampler.name = name
    return sampler


def subject_of_release(name: str, release: Release, subject: Subject | None = None) -> Shipped:
    """The sampler of a release; of ``SUBJECTS``, where it is not given."""
    subject = subject or SUBJECTS[name]
    library = subject.library
    code = load_code(release, library.top, subject.function, library.given, subject.options)
    codes = [code]
    if subject.drafter is not None:
        codes.append(load_code(release, library.top, subject.drafter, library.given))
    used = codes if subject.generator is None else codes[:1]
    function = subject.adapter(*used)
    settings = dict(subject.settings)
    of_code = dict.fromkeys(text for each in used for text in each.stand_ins)
    settings["stand_ins"] = (*of_code, *settings.get("stand_ins", ()))
    version = release.version[:10] if library.repository else release.version
    provenance = Provenance(release.package, version, code.file, code.sha256, code.line)
    sampler = as_shipped(function, subject.signature, name, provenance=provenance, **settings)
    notes = [f"drafted by {each.file}, sha256 {each.sha256}" for each in codes[1:]]
    if code.sha256 not in subject.tested:
        tested = ", ".join(dict.fromkeys(each[:10] for each in subject.tested.values()))
        elsewhere = f", and no tested release has it in {code.file}" if code.is_elsewhere else ""
        notes.append(f"this file is not one that the adapter was tested with ({tested}){elsewhere}")
    sampler.is_of_a_library = True
    sampler.is_of_another_file = code.sha256 not in subject.tested
    sampler.note = "; ".join(notes)
    if subject.generator is None:
        return sampler
    return Drafted(sampler, partial(subject.generator, codes[1].call))
