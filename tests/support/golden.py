"""Golden numbers: what the library said at ``before-subtract`` (01fa827e), and what it says now.

``python tests/support/golden.py FOLDER`` writes the files of ``tests/golden``.  They are never written anew:
this program changes as names change, and what it finds must be what they hold.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, redirect_stdout
from fractions import Fraction
from functools import cache
from hashlib import sha256
from io import StringIO
from itertools import chain
from math import isclose, isnan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spectheory import certify, defects, verifiers
from spectheory.command_line.main import main as main_of_commands
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import DraftProcess, Iid, PrefixTree, WithoutReplacement
from table import Case, best_of, every_group

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "tests" / "golden"

GONE = (
    "division_factor", "interval_gap", "iterations", "monotone_ratios", "ranking_search", "real_gaps",
    "several_calls", "several_paths", "skewed_drafts", "spectr_gbv_defect", "temperature", "winners",
)  # fmt: skip
"""Figures that went: no page and no claim named them, and other tests decide what they claimed.  The paired
``temperature_gains`` took the place of ``temperature``."""

FIELDS: dict[str, str | None] = dict.fromkeys(
    ("made_from", "worst_path", "assumed", "ceilings", "ceiling", "ceiling_interval", *GONE)
)
FIELDS["law"] = "probability"
"""The name that a field has in the golden files -> the name that it has now; None: the field went."""

MOST_TUPLES = 3_000
"""Verifiers that solve a program in each call are asked on pairs with at most this many tuples of drafts."""


@cache
def kept_rows() -> dict[str, Any]:
    """The golden rows of the table of pairs, by case."""
    lines = (KEPT / "laws.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["case"]: row for row in map(json.loads, lines)}


def cases() -> list[Case]:
    return list(chain.from_iterable(every_group().values()))


def text_of(number: Any) -> Any:
    """A rational as it prints; a float as itself."""
    return number if isinstance(number, float) else str(Fraction(str(number)))


def processes(name: str, verifier: Any, case: Case) -> Iterator[DraftProcess]:
    """The draft processes that a verifier is asked on: i.i.d. drafts, or the others that it takes."""
    if verifier.max_draft_length is not None and case.pair.draft_length > verifier.max_draft_length:
        return
    if verifier.single_path and case.num_drafts > 1:
        return  # the case of one draft has the same law
    if name in ("otm", "optimal_multipath"):
        if Iid(case.num_drafts).count_tuples(case.pair, True) <= MOST_TUPLES and case.has_optimum:
            yield Iid(case.num_drafts)
    elif "iid" in verifier.draft_processes:
        yield Iid(case.num_drafts)
    widths = (min(case.num_drafts, case.pair.vocab_size), *[1] * (case.pair.draft_length - 1))
    others = {"without_replacement": WithoutReplacement(widths), "prefix_tree": PrefixTree(widths)}
    if not verifier.single_path and case.num_drafts > 1 and name not in ("otm", "optimal_multipath"):
        yield from (
            process
            for key, process in others.items()
            if key in verifier.draft_processes and _can_be_drawn(process, case)
        )


def _can_be_drawn(process: DraftProcess, case: Case) -> bool:
    try:
        process.check(case.pair)
    except InvalidInputError:
        return False
    return True


def law_row(verifier: Any, case: Case, process: DraftProcess) -> list[Any]:
    """Whether it is lossless, block efficiency, total variation, law and counterexample of one verifier.

    Of a rational law there is a digest; a float law is here itself.
    """
    found = certify(verifier, case.pair, process, with_optimum=False)
    masses = [text_of(mass) for level in found.law.masses for mass in level.flat]
    is_float = any(isinstance(mass, float) for mass in masses)
    law = masses if is_float else sha256(" ".join(masses).encode()).hexdigest()[:16]
    row = [bool(found), text_of(found.block_efficiency), text_of(found.total_variation), law]
    if found.counterexample is not None:
        at = found.counterexample
        row += [list(at.path), text_of(at.probability), text_of(at.given_drafts), list(map(list, at.drafts))]
    return row


def row_of_case(case: Case) -> dict[str, Any]:
    """One pair: its optimum, and every verifier, published or known to be wrong."""
    row: dict[str, Any] = {"case": f"{case.name} K={case.num_drafts}"}
    if case.has_optimum:
        row["optimum"] = text_of(best_of(case.pair, Iid(case.num_drafts)))
    row["verifiers"] = {
        f"{name} {process.text}": law_row(verifier, case, process)
        for name, verifier in [*verifiers.items(), *defects.items()]
        for process in processes(name, verifier, case)
    }
    return row


COMMANDS: dict[str, tuple[str, ...]] = {
    "certify token": ("certify", "pair.json", "--verifier", "token"),
    "certify block": ("certify", "pair.json", "--verifier", "block"),
    "certify token,block": ("certify", "pair.json", "--verifier", "token,block"),
    "certify spectr_gbv": ("certify", "pair.json", "--verifier", "spectr_gbv", "--drafts", "2"),
    "certify a user's": ("certify", "pair.json", "--verifier", "my_verifiers:FirstToken"),
    "certify a wrong one": (
        "certify", "pair.json", "--verifier", "my_verifiers:ForgotTheResidual", "--drafts", "2",
    ),
    "optimum": ("optimum", "pair.json", "--drafts", "2"),
    "optimum of tokens": ("optimum", "pair.json", "--tokens", "6"),
    "acceptance": ("acceptance", "1/3,2/3", "2/3,1/3", "--drafts", "2"),
}  # fmt: skip
"""The console blocks of the documentation that certify or optimise, each made with ``--json``."""


def command_rows() -> dict[str, Any]:
    """What each command prints, run where the pages' files lie."""
    found = {}
    with TemporaryDirectory() as folder, chdir(folder):
        page = (ROOT / "docs" / "your_own_verifier.md").read_text(encoding="utf-8")
        for name, text in re.findall(r"`(\w+\.\w+)`:\n\n```\w+\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
            Path(name).write_text(text, encoding="utf-8")
        for name, arguments in COMMANDS.items():
            with redirect_stdout(StringIO()) as printed:
                status = main_of_commands([*arguments, "--json"])
            found[name] = {"exit": status, **json.loads(printed.getvalue())}
    sys.modules.pop("my_verifiers", None)
    return found


def numbers_of(document: Any, at: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """The numbers and truths of a document by their place, under the names of today; no sentences."""
    if isinstance(document, (Mapping, list)):
        entries = document.items() if isinstance(document, Mapping) else enumerate(document)
        named = (
            (str(FIELDS.get(key, key)), entry) for key, entry in entries if FIELDS.get(key, key) is not None
        )
        return dict(chain.from_iterable(numbers_of(entry, (*at, key)).items() for key, entry in named))
    if isinstance(document, str) and not re.fullmatch(r"-?\d+(/\d+)?|[0-9a-f]{16}", document):
        return {}
    return {at: document}


def differences(golden: Any, now: Any) -> list[str]:
    """Where a number of the golden document is not the one of today.

    Text must be equal, and floats to 10^-12, relative or as probabilities.  Where golden has an interval, a
    number of today, or a narrower interval, may lie inside it.
    """
    kept, found = numbers_of(golden), numbers_of(now)
    return [
        f"{'.'.join(place)}: {number!r} was golden, {found.get(place)!r} is now"
        for place, number in kept.items()
        if not agrees(number, found.get(place)) and not _inside(place, kept, found)
    ]


def agrees(golden: Any, now: Any) -> bool:
    if isinstance(golden, float) and isinstance(now, float):
        return isclose(golden, now, rel_tol=1e-12, abs_tol=1e-12) or (isnan(golden) and isnan(now))
    return type(golden) is type(now) and golden == now


def _inside(place: tuple[str, ...], kept: Mapping[Any, Any], found: Mapping[Any, Any]) -> bool:
    """Whether the number is a bound of an interval that holds the interval of today."""
    low, high = ((*place[:-1], end) for end in ("lower", "upper"))
    if place not in (low, high) or not {low, high} <= kept.keys() & found.keys():
        return False
    return kept[low] <= found[low] <= found[high] <= kept[high]


def stored(folder: str, pattern: str = "*.json") -> dict[str, Any]:
    """The documents of a folder that is committed, by their names."""
    paths = sorted((ROOT / folder).glob(pattern))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "laws.jsonl").open("w", encoding="utf-8") as lines:
        for case in cases():
            print(json.dumps(row_of_case(case)), file=lines, flush=True)
    for name, made in PARTS.items():
        text = "\n".join(f"{json.dumps(key)}: {json.dumps(row)}," for key, row in made().items())
        (folder / f"{name}.json").write_text(f"{{\n{text.removesuffix(',')}\n}}\n", encoding="utf-8")


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "commands": command_rows,
    "figures": lambda: stored("figures"),
    "estimates": lambda: stored("tests/simulation", "runs.json")["runs"],
}
"""File -> what it holds.  Figures and estimates are compared as they are stored, where tests compute them."""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
