"""The command that makes results again: check."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path, PurePath
from typing import Any

import click

from spectheory import __version__
from spectheory.command_line.options import json_option
from spectheory.command_line.output import EXIT_DEFECT, EXIT_NOT_DECIDED, MADE_AGAIN, echo_line, print_json
from spectheory.foundation.documents import parse_json, read_file
from spectheory.foundation.errors import ComputationError, InvalidInputError, UnknownNameError

SAME, DIFFERS, NOT_HERE = "the same", "differs", "cannot be made again here"
EXITS = {SAME: 0, DIFFERS: EXIT_DEFECT, NOT_HERE: EXIT_NOT_DECIDED}
GZIP = b"\x1f\x8b"
POSITIONAL = {"pair_file", "verifier", "names"}
REPEATED = POSITIONAL | {
    "--verifier", "--suite", "--quick", "--cases", "--seed", "--num-drafts", "--tree", "--vocab",
    "--draft-length", "--statement", "--show", "--positive", "--as", "--pair",
}  # fmt: skip
"""What a file may ask for: nothing that writes, that reads another file, or that depends on time."""
OF_THE_RUN = {("seconds",), ("python",), ("python_flint",), ("made_from", "versions")}
OF_THE_CODE = {("verifier_code",), ("provenance", "sha256"), ("provenance", "version")}
_UNTRUSTED = "it runs {}; name that behind the file if you trust it"
ABSENT = "(absent)"
"""In place of the value of a field that only one of two documents has."""
CLOSE, ROUNDING = 1e-9, 64 * 2.0**-52
"""Floats are the same within this relative or this absolute distance; libraries may round in another way."""


@click.command(short_help="Check a proof, or make a certificate or an audit again and compare.")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--cache", type=click.Path(), help="Of an audit: the folder of fetched files.")
@click.option("--from", "checkout", type=click.Path(), metavar="PATH", help="Of an audit: the checkout.")
@json_option
def check(file: Path, names: tuple[str, ...], cache: str | None, checkout: str | None, as_json: bool) -> int:
    """Check a proof, or make a result again from what it says, and compare it.

    What no second run can tell is named: seconds, versions, folders, and changes since another audit.

    FILE is what "prove --out" wrote, or what certify, prove or audit printed with --json.  Nothing in it is
    trusted: your own code that it names runs only if NAME, package.module:attribute, names it too.

    The exit status is 0 if the result is the same or the proof holds, 1 if it differs or does not hold, and 4
    if it cannot be made again here.
    """
    data = read_file(file)
    document = None if data[:2] == GZIP else _read(file, data)
    kind = "spectheory-proof/1" if document is None else document["format"]
    if (cache or checkout) and kind != "spectheory-audit/1":
        raise InvalidInputError(f"--cache and --from speak of an audit, and {file} is of the format {kind}")
    if document is None:
        found = _check_proof(file, names)
    else:
        found = _make_again(document, names, {"--cache": cache, "--from": checkout})
    if as_json:
        print_json({"file": str(file), "differences": [], "not_compared": [], "statement": None, **found})
    else:
        echo_line("{}: {verdict}: {because}".format(file, **found))
    return EXITS[found["verdict"]]


def _check_proof(file: Path, names: tuple[str, ...]) -> dict[str, Any]:
    from spectheory.exact.proof.check import check_proof, read
    from spectheory.exact.proof.check_numbers import RejectedProofError

    others = list(_own_code("--statement", read(file).get("statement")))
    if not {*others} <= {*names}:
        return {"verdict": NOT_HERE, "because": _UNTRUSTED.format(others[0])}
    verifiers = [name for name in names if name not in others]
    if len(verifiers) > 1:
        return {"verdict": DIFFERS, "because": f"it is of one verifier, not of {', '.join(verifiers)}"}
    try:
        statement = check_proof(file, next(iter(verifiers), None))
    except RejectedProofError as error:
        return {"verdict": DIFFERS, "because": str(error)}
    except UnknownNameError as error:
        return {"verdict": NOT_HERE, "because": f"{error}; name a verifier of your own behind the file"}
    drafts = ", ".join(f"{key} {value}" for key, value in statement["drafts"].items())
    claim = "{verifier} is {statement} on every pair with {vocab_size} tokens, draft length {draft_length}"
    text = (claim + ", {domain}; drafts: {}; {regions} regions").format(drafts, **statement)
    return {"verdict": SAME, "because": text, "statement": statement}


def _read(file: Path, data: bytes) -> dict[str, Any]:
    try:
        document = parse_json(data)
        if document["format"] in {f"spectheory-{name}/1" for name in MADE_AGAIN}:
            made_from = document["made_from"]
            known = {name: dict(made_from[name]) for name in ("arguments", "versions")}
            return document | {"made_from": {"pair": None} | made_from | known}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    raise InvalidInputError(
        f"{file} is neither a proof nor what {', '.join(MADE_AGAIN)} print with --json, every name once"
    )


def _make_again(
    document: dict[str, Any], names: tuple[str, ...], given: Mapping[str, str | None]
) -> dict[str, Any]:
    made_from = document["made_from"]
    arguments = made_from["arguments"] | {flag: value for flag, value in given.items() if value is not None}
    spoken_of = {part for value in arguments.values() for part in _parts(value)}
    if others := [name for name in names if name not in spoken_of]:
        return {"verdict": DIFFERS, "because": f"it does not speak of {', '.join(others)}"}
    because = _obstacle(document, arguments, names, given)
    if because:
        return {"verdict": NOT_HERE, "because": because}
    group, words = click.get_current_context().find_root().command, _words(document, arguments)
    try:
        with redirect_stdout(io.StringIO()) as printed:
            group.main(
                [words[0], "--json", *words[1:]], "spectheory", standalone_mode=False, obj=made_from["pair"]
            )
    except (InvalidInputError, ComputationError, click.ClickException) as error:
        return {"verdict": NOT_HERE, "because": str(error)}
    here = json.loads(printed.getvalue())
    found = list(_differences(document, here))
    if not found:
        text = f"made again by spectheory {' '.join(words)}"
        left_out = _not_compared(document)
        if left_out:
            text += f"; not compared: {', '.join(left_out)}"
        return {"verdict": SAME, "because": text, "not_compared": left_out}
    versions = _differences(made_from["versions"], here["made_from"]["versions"], ("with",))
    fields = [
        {"field": ".".join(map(str, path)), "was": was, "is": now} for path, was, now in [*found, *versions]
    ]
    return {
        "verdict": NOT_HERE if any(_is_of_the_code(path) for path, *_ in found) else DIFFERS,
        "because": "; ".join("{field} was {was!r} and is {is!r}".format_map(each) for each in fields),
        "differences": fields,
    }


def _obstacle(
    document: Mapping[str, Any],
    arguments: Mapping[str, Any],
    names: tuple[str, ...],
    given: Mapping[str, str | None],
) -> str:
    """Why a result is not made again; empty if nothing is in the way."""
    made_by = document.get("spectheory")
    if made_by != __version__:
        return f"it was made by spectheory {made_by}, and this is {__version__}"
    for flag, value in arguments.items():
        if flag not in REPEATED and not given.get(flag):
            return f"it was made with {flag} {value}"
        if flag in ("pair_file", "--pair") and document["made_from"].get("pair") is None:
            return "it does not hold its pair"
        for name in _own_code(flag, value):
            if name not in names:
                return _UNTRUSTED.format(name)
    downloads = {"fetch", "history"} & {*map(str, _listed(arguments.get("names")))}
    return f"audit {downloads.pop()} downloads files" if downloads else ""


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _own_code(flag: str, value: Any) -> Iterator[str]:
    """The names of code outside of the package in the value of a parameter."""
    for name in _parts(value):
        name = name.removeprefix("at_least:" if flag == "--statement" else "")
        if ":" in name and not re.match(r"spectheory\.|[a-z_]+:[0-9]+$", name):  # a tree is name:numbers
            yield name


def _parts(value: Any) -> list[str]:
    """The names in the value of a parameter."""
    return [name for text in _listed(value) for name in re.split("[,@]", str(text))]


def _words(document: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    """The command line of a result; what a file gives as a value cannot be read as another option."""
    words, behind = [document["format"].removeprefix("spectheory-").removesuffix("/1")], ["--"]
    for flag, value in arguments.items():
        for each in _listed(value):
            if flag in POSITIONAL:
                behind.append(str(each))
            else:
                words.append(flag if each is True else f"{flag}={each}")
    return words + behind


def _differences(
    was: Any, now: Any, path: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    """The places where two documents differ, with both values, but for those that change from run to run."""
    if path in OF_THE_RUN:
        return
    if path[-2:] == ("provenance", "file"):  # in whatever folder it lies
        was, now = (PurePath(str(side).replace("\\", "/")).name for side in (was, now))
    if isinstance(was, dict) and isinstance(now, dict):
        for name in dict.fromkeys([*was, *now]):
            place = (*path, name)
            if place == ("changes",) and name in was and _may_say_changes(was):
                continue
            if name in was and name in now:
                yield from _differences(was[name], now[name], place)
            else:
                yield place, was.get(name, ABSENT), now.get(name, ABSENT)
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for number, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from _differences(one, other, (*path, number))
    elif type(was) is type(now) is float:
        if not math.isclose(was, now, rel_tol=CLOSE, abs_tol=ROUNDING):
            yield path, was, now
    elif type(was) is not type(now) or was != now:
        yield path, was, now


def _may_say_changes(document: Mapping[str, Any]) -> bool:
    """Whether it may say what changed since another audit, which is not at hand."""
    return document["format"] == "spectheory-audit/1"


def _not_compared(document: Mapping[str, Any]) -> list[str]:
    """The fields of a document about which a result that is made again says nothing."""
    found = [
        ".".join(path)
        for path in sorted(OF_THE_RUN)
        if path[-1] in (document if len(path) == 1 else document.get(path[0], {}))
    ]
    if "changes" in document and _may_say_changes(document):
        found.append("changes")
    if _has_field(document, "provenance"):
        found.append("the folders in provenance")
    return found


def _has_field(part: Any, name: str) -> bool:
    if isinstance(part, dict):
        return bool(part.get(name)) or any(_has_field(entry, name) for entry in part.values())
    return isinstance(part, list) and any(_has_field(entry, name) for entry in part)


def _is_of_the_code(path: tuple[Any, ...]) -> bool:
    return path[:2] == ("made_from", "verifier_code") or path[-1:] in OF_THE_CODE or path[-2:] in OF_THE_CODE
