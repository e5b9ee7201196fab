"""Fetch the files of libraries that are audited."""

from collections.abc import Sequence
from pathlib import Path

from audits.loading.sources import installed_release
from audits.registry import ALL, LIBRARIES
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import unknown_name
from spectheory.foundation.wheels import Release, default_cache, parsed


def fetch_libraries(names: Sequence[str], cache: Path | None = None) -> tuple[list[Release], list[str]]:
    """The fetched releases, and why one was left out, in words.

    Args:
        names: of libraries, with ``==version`` or without; "all" for those that are not installed, of which
            a repository that git cannot fetch is left out.
        cache: the folder of fetched files; by default in the user's cache.

    Raises:
        UnknownNameError: no library has this name.
        InvalidInputError: pip or git cannot fetch a library that was named.
    """
    fetched, left_out = [], []
    for requirement, is_optional in [
        (name, given == ALL) for given in names for name in (LIBRARIES if given == ALL else [given])
    ]:
        package, version = parsed(requirement)
        if package not in LIBRARIES:
            raise unknown_name("library", package, LIBRARIES)
        library = LIBRARIES[package]
        if is_optional and not library.repository and installed_release(package, library.top) is not None:
            continue
        try:
            fetched.append(library.fetch(version, cache or default_cache()))
        except InvalidInputError as error:
            if not (is_optional and library.repository):
                raise
            left_out.append(f"{package} is left out: {error}")
    return fetched, left_out
