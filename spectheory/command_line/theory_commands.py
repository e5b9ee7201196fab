"""Commands on enumerated pairs and single positions: certify, prove, optimum, acceptance, verifiers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from spectheory.command_line.options import Names, load_pair, refuse_both, was_given
from spectheory.command_line.output import (
    EXIT_INTERRUPTED,
    EXIT_NOT_DECIDED,
    EXIT_NOT_LOSSLESS,
    EXIT_SHORT_OF_THE_GAP,
    echo_line,
    fail,
    form,
    is_verbose,
    note,
    print_found,
    print_json,
    print_results,
)
from spectheory.command_line.signatures import command
from spectheory.foundation.errors import InvalidInputError

if TYPE_CHECKING:
    from spectheory.optima.call_counts import SeveralCalls


@command(
    "exact.certifying:certify",
    "exact.suite:certify_suite",
    example="spectheory certify pair.json --verifier token,block",
)
def certify(
    pair_file: str | None = None,
    *,
    verifier: Names,
    drafts: Any,
    suite: Literal["standard", "quick"] | None = None,
    cases: Any,
    seed: Any,
) -> int:
    """Certify verifiers: lossless or not, and how good, on an enumerated pair or on a suite of pairs.

    PAIR.json may be "-", for stdin.  Several verifiers are compared in one table.  --suite needs no pair: it
    certifies each verifier on more than a hundred pairs, in rationals and again in floats.  If a verifier is
    not lossless, its smallest counterexample is printed and the exit status is 1.

    Args:
        verifier: Published verifiers, or your own as package.module:attribute.
        suite: Certify on all pairs of the standard suite, or (quick) on its small pairs, without torch.
        cases: Add N random pairs to the suite.
        seed: Seed of the random pairs.
    """
    if (pair_file is None) == (suite is None):
        raise click.UsageError("give either a pair file or --suite")
    if suite is not None and was_given("drafts"):
        raise click.UsageError(
            "--suite asks K = 1 to 4; leave out --drafts, and refuse other K in the verifier's bind"
        )
    if suite is None and was_given("cases", "seed"):
        raise click.UsageError("--cases and --seed go with --suite")
    from spectheory.command_line.progress import progress_bar
    from spectheory.exact.certifying import certify as certify_pair
    from spectheory.exact.suite import certify_suite

    pair = None if pair_file is None else load_pair(pair_file)
    found: list[Any] = []
    for name in verifier:
        with progress_bar(name) as progress:
            found.append(
                certify_suite(name, quick=suite == "quick", cases=cases, seed=seed, progress=progress)
                if pair is None
                else certify_pair(name, pair, drafts, progress=progress)
            )
    title = None
    if pair is not None and len(found) > 1 and form() in ("table", "latex"):
        title = "verifiers on this pair, the best first"
        found.sort(key=lambda certificate: -float(certificate.block_efficiency or 0))
    print_results(found, name="certificates", title=title)
    for result in found if title else ():
        if result.total_variation is None:  # the common table has no column for errors
            note(result.headline())
    return 0 if all(found) else EXIT_NOT_LOSSLESS


@command("exact.proof.search:prove", example="spectheory prove token --vocab-size 2 --draft-length 1")
def prove(
    verifier: str | None = None,
    *,
    vocab_size: int | None = None,
    draft_length: int | None = None,
    drafts: Any,
    statement: Any,
    positive: Any,
    time_limit: Any,
    out: Path | None = None,
    check: Path | None = None,
) -> int:
    """Prove that a verifier is lossless on every pair with V tokens and draft length L, or refute it.

    VERIFIER is a published verifier, or your own as package.module:attribute.  The exit status is 0 if it is
    proved, 1 if a pair refutes it, and 4 if it is undecided.  --verbose adds formulas of the block
    efficiency.

    --out writes the proof, or the pair that refutes it.

    --check takes no shape.  VERIFIER is then the verifier of the proof, and is needed only for your own.  The
    exit status is 0 if the proof holds, and 4 if it does not hold for the current code.

    Args:
        vocab_size: V, at least 2.
        draft_length: L.
        out: File for the proof, or for the pair that refutes it.
        check: Do not search; check the proof that --out wrote to FILE.
    """
    if check is not None:
        return _check(check, verifier, statement)
    if verifier is None:
        raise click.MissingParameter(param_hint="'VERIFIER'", param_type="argument")
    if vocab_size is None or draft_length is None:
        flag = "--vocab-size" if vocab_size is None else "--draft-length"
        raise click.MissingParameter(param_hint=f"'{flag}'", param_type="option")
    from spectheory.exact.proof.search import prove as search
    from spectheory.exact.proof.verdict import PROVED, REFUTED

    found = search(
        verifier, vocab_size, draft_length, drafts,
        statement=statement, positive=positive, time_limit=time_limit, show=is_verbose(),
    )  # fmt: skip
    print_results([found])
    said = ""
    if out is not None and found.pair is not None:
        found.pair.save(out)
        judged = _judged(verifier, statement)
        said = f"the pair is in {out}; spectheory certify {out} --verifier {judged} confirms it"
    elif out is not None and found.verdict == PROVED:
        own = f" {verifier}" if ":" in str(verifier) else ""  # users' code must be named again
        own += f" --statement {statement}" if statement.count(":") > 1 else ""
        said = (
            f"the proof is in {out}, {found.save(out)} bytes; spectheory prove --check {out}{own} checks it"
        )
    if said and form() != "json":
        note(said)
    return {PROVED: 0, REFUTED: EXIT_NOT_LOSSLESS}.get(found.verdict, EXIT_NOT_DECIDED)


def _check(file: Path, verifier: str | None, statement: str) -> int:
    """Check a stored proof.  Code outside the package runs only if the command line names it."""
    from spectheory.exact.proof.check import check_proof, read
    from spectheory.exact.proof.proof_file import RejectedProofError
    from spectheory.exact.proof.statements import SAY_LOSSLESS
    from spectheory.foundation.errors import UnknownNameError

    if given := was_given("vocab_size", "draft_length", "drafts", "positive", "time_limit", "out"):
        raise click.UsageError(f"--check takes no {given[0]}; {file} says of what shape the proof is")
    stored = str(read(file).get("statement"))
    if was_given("statement") and statement != stored:
        raise InvalidInputError(
            f"{file} is a proof of {stored!r}, not of {statement!r}; leave out --statement"
        )
    other = stored.partition(":")[2].partition("@")[0]
    if ":" in other and not other.startswith("spectheory.") and not was_given("statement"):
        raise InvalidInputError(f"{file} names {other}; if you trust that code, add --statement {stored}")
    found: dict[str, Any] = {"file": str(file), "verdict": "proved", "basis": "proved"}
    found["lossless"] = True if stored in SAY_LOSSLESS else None
    try:
        proved = check_proof(file, verifier)
    except RejectedProofError as error:
        found |= {"verdict": "undecided", "lossless": None, "because": str(error)}
        said = "undecided: {because}"
    except UnknownNameError as error:
        error.add_note("name a verifier of your own after the file")
        raise
    else:
        found |= {name: entry for name, entry in proved.items() if name != "format"}
        drafts = ", ".join(f"{name} {entry}" for name, entry in proved["drafts"].items())
        said = "proved: {verifier} is {statement} on every pair with {vocab_size} tokens, draft length "
        said += f"{{draft_length}}, {{domain}}; drafts: {drafts}; {{regions}} regions"
    if form() == "json":
        print_json(found)
    else:
        echo_line(f"{file}: {said.format_map(found)}")
    return 0 if found["verdict"] == "proved" else EXIT_NOT_DECIDED


def _judged(verifier: str, statement: str) -> str:
    """Name the verifiers to certify on a pair that refutes the statement, separated by commas."""
    other = statement.partition(":")[2].partition("@")[0]
    return f"{verifier},{other}" if other not in ("", verifier) else verifier


@command("optima.pair_optimum:optimum", example="spectheory optimum pair.json --drafts 2")
def optimum(
    pair_file: str,
    *,
    drafts: Any,
    relative_gap: Any,
    time_limit: Any,
    calls: int | None = None,
    tokens: int | None = None,
    memory: int | None = None,
) -> int:
    """Compute the best block efficiency that any lossless verifier can reach on a pair.

    The value is exact if the program is small enough.  On larger pairs it is an interval, certified on both
    sides, which closes to --relative-gap.  --time-limit and Ctrl-C stop it and print the interval so far.
    The exit status is then 3 or 130.

    --calls and --tokens compute optima over several calls with one path each, where every call is lossless.
    The pair must be deep enough, be context-free, or be continued by --memory.

    Args:
        relative_gap: Gap to reach, relative to the optimum; 0 asks for the exact value.
        time_limit: On large pairs, stop after this time.
        calls: Instead: the largest mean number of tokens decoded in this many calls.
        tokens: Instead: the smallest mean number of calls that decode this many tokens.
        memory: For several calls: the number of last tokens on which rows depend.
    """
    from spectheory.command_line import progress
    from spectheory.foundation.validation import check_positive
    from spectheory.optima import optimum as solve

    found = _several_calls(pair_file, calls, tokens, memory)
    if found is not None:
        print_results([found], title=found.question)
        return 0
    gap = 0.0 if relative_gap == 0 else check_positive("relative_gap", relative_gap)
    limit = None if time_limit is None else check_positive("time_limit", time_limit)
    pair = load_pair(pair_file)
    with progress.interval_line() as report:
        solution = solve(pair, drafts=drafts, relative_gap=gap, time_limit=limit, progress=report)
    print_results([solution], title="optimum over all lossless verifiers")
    if solution.status == "interrupted":
        return fail("interrupted; the interval is what was certified by then", EXIT_INTERRUPTED)
    return 0 if solution.reached else EXIT_SHORT_OF_THE_GAP


def _several_calls(
    pair_file: str, calls: int | None, tokens: int | None, memory: int | None
) -> SeveralCalls | None:
    from spectheory.optima import fewest_calls, most_decoded_tokens

    refuse_both("calls", "tokens")
    if calls is None and tokens is None:
        if memory is not None:
            raise click.UsageError("--memory goes with --calls or --tokens")
        return None
    if was_given("drafts", "relative_gap", "time_limit"):
        raise click.UsageError(
            "several calls have one path each and are solved exactly; leave out --drafts, --relative-gap and "
            "--time-limit"
        )
    pair = load_pair(pair_file)
    if calls is not None:
        return most_decoded_tokens(pair, calls, memory=memory)
    return fewest_calls(pair, int(tokens or 0), memory=memory)


@command("exact.position_acceptance:acceptance", example="spectheory acceptance 1/3,2/3 2/3,1/3 --drafts 2")
def acceptance(target: str, draft: str, *, drafts: int = 1) -> int:
    """Compute acceptance probabilities at one position: the optimum, K-SEQ, multi-round and bounds.

    TARGET and DRAFT are probabilities such as 1/3,2/3.

    Args:
        drafts: Number of independently drafted tokens.
    """
    from spectheory.exact.position_acceptance import acceptance as at_one_position

    print_results([at_one_position(target.split(","), draft.split(","), drafts)])
    return 0


@command(example="spectheory verifiers --csv")
def verifiers() -> int:
    """List the published verifiers: whether they are lossless, and which drafts they accept.

    *Adaptive lengths* says whether the number of verified tokens may depend on the drafts: for all paths
    together (yes), or only for each path by itself (docs/adaptive_drafts.md).

    --verbose adds sources and arithmetic, and a line for each verifier with a machine proof.
    """
    from spectheory.foundation.results import Table
    from spectheory.pairs.drafts.process import ANY_PROCESS, SAMPLED_PROCESSES
    from spectheory.verification.algorithms import verifiers as known
    from spectheory.verification.length_rules import COHERENCE
    from spectheory.verification.machine_proofs import machine_proofs

    proofs = {name: machine_proofs(verifier) for name, verifier in known.items()}
    every = {ANY_PROCESS: "any", SAMPLED_PROCESSES: "sampled"}
    rows, shown = [], []
    for verifier in known.values():
        coherence, processes = COHERENCE[verifier.name], verifier.draft_processes
        row = {
            "name": verifier.name,
            "source": verifier.source,
            "num_drafts": "1" if verifier.single_path else "any",
            "max_draft_length": verifier.max_draft_length,
            "lossless": verifier.lossless,
            "arithmetic": "exact" if verifier.exact else "float64",
            "draft_processes": sorted(processes),
            "machine_proofs": {process: proof.theorem for process, proof in proofs[verifier.name].items()},
            "coherent_in_length": coherence.in_length,
            "coherent_in_drafts": coherence.in_drafts,
        }
        rows.append(row)
        length = f", L = {verifier.max_draft_length}" if verifier.max_draft_length else ""
        named = every.get(frozenset(processes), ", ".join(sorted(processes)))
        named = ("the first path" if verifier.single_path else named) + length.replace(",", ";")
        drafts = f"{row['num_drafts']}{length}"
        shown.append(row | {"drafts": drafts, "processes": named, "adaptive": coherence.adaptive_lengths})
    columns = {
        "name": "{name}",
        "lossless": "{lossless}",
        "drafts": "{processes}",
        "adaptive lengths": "{adaptive}",
    }
    if is_verbose():
        columns |= {"K": "{drafts}", "arithmetic": "{arithmetic}", "source": "{source}"}
    lines = [
        f"{name}: {proof.in_words()} ({', '.join(process for process in found if found[process] == proof)})"
        for name, found in proofs.items()
        for proof in dict.fromkeys(found.values())
    ]
    note = "\n".join(lines) if is_verbose() else "--verbose adds sources, arithmetic and machine proofs"
    table = Table("verifiers", shown, columns, note)
    print_found({"verifiers": rows}, [table], rows)
    return 0
