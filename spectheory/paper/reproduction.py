"""All figures and tables, computed and written to a folder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import check_count, unknown_name
from spectheory.paper.exhibit import DEFAULT_FORMATS, FORMATS, Exhibit, Written, read_exhibit, write_exhibit
from spectheory.paper.figures.acceptance_bounds import acceptance_bounds
from spectheory.paper.figures.acceptance_length import acceptance_length
from spectheory.paper.figures.division_factor import division_factor
from spectheory.paper.figures.draft_length_gain import draft_length_gain
from spectheory.paper.figures.frontier import frontier
from spectheory.paper.figures.full_information import full_information
from spectheory.paper.figures.full_vocabulary import full_vocabulary
from spectheory.paper.figures.greedy_falls import greedy_falls
from spectheory.paper.figures.interval_gap import interval_gap
from spectheory.paper.figures.iterations import iterations
from spectheory.paper.figures.kseq_ratio import kseq_ratio
from spectheory.paper.figures.latency import latency
from spectheory.paper.figures.lossy_front import lossy_front
from spectheory.paper.figures.monotone_ratios import monotone_ratios
from spectheory.paper.figures.one_path_optimum import one_path_optimum
from spectheory.paper.figures.otm_bernoulli import otm_bernoulli
from spectheory.paper.figures.otm_uniform import otm_uniform
from spectheory.paper.figures.prefix_trees import prefix_trees
from spectheory.paper.figures.printed_gains import printed_gains
from spectheory.paper.figures.ranking_search import ranking_search
from spectheory.paper.figures.real_gaps import real_gaps
from spectheory.paper.figures.real_pair import real_pair
from spectheory.paper.figures.several_calls import several_calls
from spectheory.paper.figures.several_paths import several_paths
from spectheory.paper.figures.skewed_drafts import skewed_drafts
from spectheory.paper.figures.spectr_gbv_bound import spectr_gbv_bound
from spectheory.paper.figures.spectr_gbv_defect import spectr_gbv_defect
from spectheory.paper.figures.temperature import temperature
from spectheory.paper.figures.token_tree import token_tree
from spectheory.paper.figures.two_token_table import two_token_table
from spectheory.paper.figures.whole_texts import whole_texts
from spectheory.paper.figures.winners import winners
from spectheory.paper.parameters import parse_settings, settings_document
from spectheory.paper.report import write_report
from spectheory.paper.style import users_style

EXHIBITS: Mapping[str, Exhibit] = {
    shown.name: shown
    for shown in (
        # spectr2023
        otm_bernoulli,
        otm_uniform,
        acceptance_bounds,
        division_factor,
        kseq_ratio,
        prefix_trees,
        # block2024
        two_token_table,
        full_information,
        acceptance_length,
        draft_length_gain,
        iterations,
        several_calls,
        # greedy2026
        one_path_optimum,
        several_paths,
        token_tree,
        interval_gap,
        skewed_drafts,
        monotone_ratios,
        ranking_search,
        greedy_falls,
        winners,
        frontier,
        lossy_front,
        # spectrgbv2026
        spectr_gbv_bound,
        spectr_gbv_defect,
        # language models
        real_pair,
        real_gaps,
        full_vocabulary,
        temperature,
        printed_gains,
        whole_texts,
        latency,
    )
}


def find_exhibits(names: Sequence[str]) -> list[Exhibit]:
    """Those of these names, in the order of the report; all of them when there are none.

    Raises:
        UnknownNameError: a name does not exist; the error suggests the nearest one.
    """
    for name in names:
        if name not in EXHIBITS:
            raise unknown_name("figure or table", name, EXHIBITS)
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
        resume: leave what lies in the folder finished.
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
        _refuse_others(shown.name, folder, settings_document(parameters))
    how = {
        "parameters": parameters,
        "folder": folder,
        "formats": formats,
        "style": style,
        "redraw": redraw,
        "resume": resume,
    }
    with users_style(style):  # refuses an unknown one before anything is computed
        pass
    if progress:
        progress(0, len(wanted))
    for number, found in enumerate(_made([shown.name for shown in wanted], jobs, how)):
        write_report([read_exhibit(name, folder) for name in EXHIBITS], folder)
        if progress:
            progress(number + 1, len(wanted))
        yield found


def _refuse_others(name: str, folder: Path, parameters: Mapping[str, Any]) -> None:
    """What was computed with other parameters is not overwritten."""
    try:
        found = read_exhibit(name, folder)
    except InvalidInputError:  # no file of an exhibit: it is computed anew
        return
    if found is not None and found.parameters != parameters:
        given = ", ".join(f"{key} = {value}" for key, value in found.parameters.items())
        raise InvalidInputError(
            f"{folder} holds {name} with {given or 'its defaults'}; choose another folder with --out, or "
            f"remove {folder / name}.json"
        )


def _made(names: Sequence[str], jobs: int, how: Mapping[str, Any]) -> Iterator[Written]:
    """The exhibits as they are finished."""
    if jobs == 1:
        yield from (_make(name, **how) for name in names)
        return
    # Processes that start afresh: torch's threads do not survive a fork.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        try:
            for future in as_completed([pool.submit(_make, name, **how) for name in names]):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _make(
    name: str,
    parameters: Mapping[str, Any],
    folder: Path,
    formats: Collection[str],
    style: str | None,
    redraw: bool,
    resume: bool,
) -> Written:
    """Compute and write one, or draw it again, or leave it."""
    shown = EXHIBITS[name]
    found = read_exhibit(name, folder) if redraw or resume else None
    if found is not None and not redraw:
        return found
    with users_style(style):
        if found is None:
            return write_exhibit(shown, shown(**parameters), folder, formats, settings_document(parameters))
        return write_exhibit(shown, found.findings, folder, formats, found.parameters)
