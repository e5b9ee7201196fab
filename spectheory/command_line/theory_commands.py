"""Commands on enumerated pairs and single positions: certify, optimum, verifiers, acceptance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from spectheory.command_line.options import (
    csv_option,
    json_option,
    load_pair,
    num_drafts_option,
    pair_argument,
    process_of,
    tree_option,
    verifier_names,
    was_given,
)
from spectheory.command_line.output import (
    EXIT_DEFECT,
    EXIT_INTERRUPTED,
    EXIT_SHORT_OF_THE_GAP,
    check_form,
    fail,
    note,
    print_found,
    print_results,
)

if TYPE_CHECKING:
    from spectheory.optima.call_counts import SeveralCalls


@click.command(short_help="Certify verifiers on an enumerated pair, or on a suite of pairs.")
@click.argument("pair_file", metavar="[PAIR.json]", type=click.Path(), required=False)
@click.option(
    "--verifier",
    "-v",
    "listed",
    required=True,
    metavar="NAME,..",
    help="Published verifiers, or your own as package.module:attribute.",
)
@click.option("--suite", type=click.Choice(["standard"]), help="Certify on every pair of a suite instead.")
@click.option("--quick", is_flag=True, help="Take only the small pairs of the suite, without torch.")
@click.option("--cases", type=int, default=0, metavar="N", help="Add N random pairs to the suite.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random pairs.")
@num_drafts_option
@tree_option
@csv_option
@json_option
def certify(
    pair_file: str | None,
    listed: str,
    suite: str | None,
    quick: bool,
    cases: int,
    seed: int,
    num_drafts: int,
    tree: str | None,
    as_csv: bool,
    as_json: bool,
) -> int:
    """Certify verifiers on an enumerated pair: lossless or not, and how good.

    "-" reads the pair from stdin.  Several verifiers are compared in one table.  --suite standard takes no
    pair: it certifies each verifier on more than a hundred pairs, in rationals and again in floats.  --quick
    takes the small pairs only, and --cases N adds random pairs.  The exit status is 1 if a verifier is not
    lossless; its smallest counterexample is then printed.
    """
    if (pair_file is None) == (suite is None):
        raise click.UsageError("give either PAIR.json or --suite standard")
    if suite is not None and (tree is not None or was_given("num_drafts")):
        raise click.UsageError("--suite standard has its own drafts; leave out --num-drafts and --tree")
    if suite is None and any(was_given(name) for name in ("quick", "cases", "seed")):
        raise click.UsageError("--quick, --cases and --seed go with --suite standard")
    names = verifier_names(listed)
    check_form(as_json, as_csv)
    from spectheory.command_line.progress import progress_bar
    from spectheory.exact.certificate import judge
    from spectheory.exact.suite import certify_suite

    pair, process = None if pair_file is None else load_pair(pair_file), process_of(num_drafts, tree)
    found: list[Any] = []
    for name in names:
        with progress_bar(name) as progress:
            found.append(
                certify_suite(name, quick=quick, cases=cases, seed=seed, progress=progress)
                if pair is None
                else judge(name, pair, process, progress=progress)
            )
    title = None
    if pair is not None and len(found) > 1 and not (as_json or as_csv):
        title = "verifiers on this pair, the best first"
        found.sort(key=lambda certificate: -float(certificate.block_efficiency or 0))
    print_results(found, as_json, as_csv, name="certificates", title=title)
    for result in found if title else ():
        if result.total_variation is None:  # a table of several has no place for what was wrong
            note(result.headline())
    return 0 if all(found) else EXIT_DEFECT


@click.command(short_help="The best block efficiency of any lossless verifier.")
@pair_argument
@num_drafts_option
@tree_option
@click.option("--gap", type=float, default=1e-6, show_default=True, help="Relative gap to reach.")
@click.option("--time-limit", type=float, metavar="SECONDS", help="On large pairs, stop after this time.")
@click.option("--calls", type=int, metavar="I", help="Instead: the most tokens that I calls decode.")
@click.option(
    "--tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Instead: the fewest calls that decode N tokens.",
)
@click.option("--draft-length", "-l", type=int, metavar="L", help="Draft length of calls, if not the pair's.")
@click.option("--memory", type=int, metavar="M", help="For several calls: rows depend on the last M tokens.")
@csv_option
@json_option
def optimum(
    pair_file: str,
    num_drafts: int,
    tree: str | None,
    gap: float,
    time_limit: float | None,
    calls: int | None,
    tokens: int | None,
    draft_length: int | None,
    memory: int | None,
    as_csv: bool,
    as_json: bool,
) -> int:
    """The best block efficiency that any lossless verifier can reach on a pair.

    Exact where the program is small enough; on larger pairs an interval that certifies the value from
    both sides and closes to --gap.  --time-limit and Ctrl-C stop it and print the interval so far; it then
    exits with 3 or 130.

    --calls and --tokens ask about several calls, of one path each, that are lossless one by one: the mean
    of the tokens decoded, or of the calls needed.  Beside it stands what block verification reaches.  The
    pair must go deep enough, be context-free, or be continued by --memory.
    """
    from spectheory.command_line import progress
    from spectheory.foundation.validation import check_positive
    from spectheory.optima import optimum as solve

    check_form(as_json, as_csv)
    found = _several_calls(pair_file, calls, tokens, draft_length, memory)
    if found is not None:
        print_results([found], as_json, as_csv, title=found.question)
        return 0
    gap = check_positive("--gap", gap)
    time_limit = None if time_limit is None else check_positive("--time-limit", time_limit)
    pair, process = load_pair(pair_file), process_of(num_drafts, tree)
    with progress.interval_line() as report:
        solution = solve(pair, drafts=process, relative_gap=gap, time_limit=time_limit, progress=report)
    print_results([solution], as_json, as_csv, title="optimum over all lossless verifiers")
    if solution.status == "interrupted":
        return fail("interrupted; the interval is what was certified by then", EXIT_INTERRUPTED)
    return 0 if solution.reached else EXIT_SHORT_OF_THE_GAP


def _several_calls(
    pair_file: str, calls: int | None, tokens: int | None, draft_length: int | None, memory: int | None
) -> SeveralCalls | None:
    from spectheory.optima import fewest_calls, most_decoded_tokens

    questions = ((most_decoded_tokens, calls), (fewest_calls, tokens))
    asked = [(solve, number) for solve, number in questions if number is not None]
    if len(asked) > 1:
        raise click.UsageError("--calls and --tokens were both given; ask for one of them")
    if not asked:
        if draft_length is not None or memory is not None:
            raise click.UsageError("--draft-length and --memory go with --calls or --tokens")
        return None
    if any(was_given(name) for name in ("num_drafts", "tree", "gap", "time_limit")):
        raise click.UsageError(
            "several calls have one path each and are solved exactly; leave out --num-drafts, --tree, --gap "
            "and --time-limit"
        )
    [(solve, number)] = asked
    return solve(load_pair(pair_file), number, draft_length=draft_length, memory=memory)


@click.command(short_help="List the published verifiers.")
@csv_option
@json_option
def verifiers(as_csv: bool, as_json: bool) -> int:
    """List the published verifiers: source, losslessness, arithmetic, and the drafts they take."""
    from spectheory.foundation.results import Table
    from spectheory.pairs.drafts.process import ANY_PROCESS, SAMPLED_PROCESSES
    from spectheory.verification.algorithms import verifiers as known

    check_form(as_json, as_csv)
    rows = [
        {
            "name": verifier.name,
            "source": verifier.source,
            "num_drafts": "1" if verifier.single_path else "any",
            "max_draft_length": verifier.max_draft_length,
            "lossless": verifier.lossless,
            "arithmetic": "exact" if verifier.exact else "float64",
            "draft_processes": sorted(verifier.draft_processes),
        }
        for verifier in known.values()
    ]
    columns = {name: f"{{{name}}}" for name in ("name", "source", "drafts", "lossless", "arithmetic")}
    shown = []
    for row, verifier in zip(rows, known.values(), strict=True):
        length = f", L = {verifier.max_draft_length}" if verifier.max_draft_length else ""
        processes = verifier.draft_processes
        every = {ANY_PROCESS: "any", SAMPLED_PROCESSES: "sampled"}
        named = every.get(frozenset(processes), ", ".join(sorted(processes)))
        shown.append({**row, "drafts": f"{row['num_drafts']}{length}", "processes": named})
    table = Table("verifiers", shown, columns | {"draft processes": "{processes}"})
    print_found({"verifiers": rows}, [table], rows, as_json, as_csv)
    return 0


@click.command(short_help="Acceptance probabilities at one position.")
@click.option("--target", required=True, metavar="P1,P2,..", help="Target probabilities, such as 1/3,2/3.")
@click.option("--draft", required=True, metavar="Q1,Q2,..", help="Draft probabilities, such as 2/3,1/3.")
@num_drafts_option
@csv_option
@json_option
def acceptance(target: str, draft: str, num_drafts: int, as_csv: bool, as_json: bool) -> int:
    """Acceptance probabilities at one position: the optimum, K-SEQ, multi-round and bounds."""
    from spectheory.exact.position_acceptance import acceptance as at_one_position

    check_form(as_json, as_csv)
    print_results([at_one_position(target.split(","), draft.split(","), num_drafts)], as_json, as_csv)
    return 0
