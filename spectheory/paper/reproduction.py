"""All figures and tables, computed and written to a folder."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from spectheory.foundation.errors import InvalidInputError, MissingDependencyError
from spectheory.foundation.extras import installed
from spectheory.foundation.validation import check_count, unknown_name
from spectheory.paper import figures
from spectheory.paper.exhibits import (
    DEFAULT_FORMATS,
    FORMATS,
    SECTIONS,
    Exhibit,
    Written,
    read_exhibit,
    write_exhibit,
)
from spectheory.paper.parameters import parse_settings
from spectheory.paper.report import write_report

_log = logging.getLogger(__name__)

_NOT_IMPORTED: dict[str, MissingDependencyError] = {}
"""Exhibits that need a library which is not installed; those that draw nothing do without matplotlib."""


class _Exhibits(dict[str, Exhibit]):
    """Exhibits by name; a name that is missing is an error that says why.

    Raises:
        MissingDependencyError: a library that the exhibit needs is not installed.
        UnknownNameError: no exhibit has this name.
    """

    def __missing__(self, name: str) -> Exhibit:
        raise _NOT_IMPORTED.get(name) or unknown_name("figure or table", name, self)


def _discovered() -> Mapping[str, Exhibit]:
    """The exhibits of all files in ``figures``, section by section, in a section by name."""
    modules = []
    for found in iter_modules(figures.__path__):
        try:
            with installed():
                modules.append(import_module(f"{figures.__name__}.{found.name}"))
        except MissingDependencyError as error:
            _NOT_IMPORTED[found.name] = error
    shown = [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Exhibit) and value.compute.__module__ == module.__name__
    ]
    ordered = sorted(shown, key=lambda one: (SECTIONS.index(one.section), one.name))
    return _Exhibits((one.name, one) for one in ordered)


EXHIBITS: Mapping[str, Exhibit] = _discovered()
"""Name -> exhibit, in the order of the report."""


def find_exhibits(names: Sequence[str]) -> list[Exhibit]:
    """Those of these names, in the order of the report; all of them when there are none."""
    for name in names or _NOT_IMPORTED:
        EXHIBITS[name]
    return [shown for shown in EXHIBITS.values() if not names or shown.name in names]


def reproduce(names: Sequence[str], folder: Path, **options: object) -> list[Written]:
    """As ``reproduce_each``, all of them before it returns."""
    return list(reproduce_each(names, folder, **options))  # type: ignore[arg-type]


def reproduce_each(
    names: Sequence[str],
    folder: Path,
    *,
    formats: Collection[str] = DEFAULT_FORMATS,
    style: str | None = None,
    settings: Sequence[str] = (),
    redraw: bool = False,
    resume: bool = False,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Written]:
    """Recompute figures and tables; each is yielded once it is written, and report.md with it.

    The report has every exhibit that lies in the folder, those of earlier runs too.

    Args:
        names: which; all of them when empty.
        folder: made if it is not there.
        formats: of the pictures, out of pdf, png and svg.
        style: a matplotlib style on top of the house's, its name or a file.
        settings: NAME=VALUE, parameters of the one exhibit that is named.
        redraw: draw the numbers that lie in the folder, and compute nothing.
        resume: leave what lies in the folder finished; a damaged file is computed anew.
        jobs: how many are computed at a time, in processes of their own; they are yielded as they finish.
        progress: called with (results done, results in all).

    Raises:
        UnknownNameError: a name does not exist; the error suggests the nearest one.
        InvalidInputError: there is nothing to redraw, no such format, style or parameter, or the folder holds
            the exhibit with other parameters.
    """
    jobs = check_count("jobs", jobs)
    if not set(formats) <= set(FORMATS) or not formats:
        raise InvalidInputError(f"formats are {', '.join(FORMATS)}, got {', '.join(formats) or 'none'}")
    wanted = find_exhibits(names)
    if settings and (len(wanted) != 1 or redraw):
        raise InvalidInputError(
            "--set changes one figure or table, which is computed: name one, and no --redraw"
        )
    parameters = parse_settings(wanted[0].parameters, settings) if settings else {}
    if redraw:
        missing = [shown.name for shown in wanted if names and read_exhibit(shown.name, folder) is None]
        wanted = [shown for shown in wanted if read_exhibit(shown.name, folder) is not None]
        if missing or not wanted:
            raise InvalidInputError(
                f"{folder} holds no numbers of {', '.join(missing) or 'any exhibit'} to redraw"
            )
    for shown in wanted if not redraw else ():
        _refuse_others(shown, folder, parameters)
    with _style(style):  # refuses an unknown one before anything is computed
        pass
    if progress:
        progress(0, len(wanted))
    how = (parameters, folder, formats, style, redraw, resume)
    for number, found in enumerate(_made([shown.name for shown in wanted], jobs, how)):
        write_report([_readable(name, folder) for name in EXHIBITS], folder)
        if progress:
            progress(number + 1, len(wanted))
        _log.info("reproduce: %s written, %d of %d", found.name, number + 1, len(wanted))
        yield found


def _readable(name: str, folder: Path) -> Written | None:
    """An exhibit of the folder; none where its file is damaged."""
    try:
        return read_exhibit(name, folder)
    except InvalidInputError:
        return None


def _refuse_others(shown: Exhibit, folder: Path, parameters: Mapping[str, Any]) -> None:
    try:
        found = read_exhibit(shown.name, folder)
    except InvalidInputError:  # not a file of an exhibit: it is computed anew
        return
    defaults, asked = shown.settings(), shown.settings(**parameters)
    known = defaults | dict(found.findings.settings) if found is not None else asked
    if any(known[name] != value for name, value in asked.items()):
        given = ", ".join(f"{key} = {value}" for key, value in known.items() if value != defaults.get(key))
        raise InvalidInputError(
            f"{folder} holds {shown.name} with {given or 'its defaults'}; choose another folder with --out, "
            f"or remove {folder / shown.name}.json"
        )


def _made(names: Sequence[str], jobs: int, how: tuple[Any, ...]) -> Iterator[Written]:
    if jobs == 1:
        yield from (_make(name, *how) for name in names)
        return
    # Processes that start afresh: torch's threads do not survive a fork.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        try:
            # The last of the report, of language models, take longest: they begin.
            for future in as_completed([pool.submit(_make, name, *how) for name in reversed(names)]):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _style(style: str | None) -> AbstractContextManager[None]:
    """``users_style``, which needs matplotlib, where a style is asked for."""
    if style is None:
        return nullcontext()
    from spectheory.paper.style import users_style

    return users_style(style)


def _make(
    name: str,
    parameters: Mapping[str, Any],
    folder: Path,
    formats: Collection[str],
    style: str | None,
    redraw: bool,
    resume: bool,
) -> Written:
    if resume and not redraw and (kept := _readable(name, folder)) is not None:
        return kept
    shown, found = EXHIBITS[name], read_exhibit(name, folder) if redraw else None
    with _style(style):
        if found is None:
            return write_exhibit(shown, shown(**parameters), folder, formats)
        return write_exhibit(shown, found.findings, folder, formats, found.made_with)
