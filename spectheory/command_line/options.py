"""Options that several commands share, and what their texts mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from spectheory.errors import InvalidInputError

if TYPE_CHECKING:
    from spectheory.drafts import DraftProcess
    from spectheory.pair import ModelPair

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object instead of a table."
)
csv_option = click.option(
    "--csv", "as_csv", is_flag=True, help="Print CSV, a line per result, instead of a table."
)
num_drafts_option = click.option(
    "--num-drafts", "-k", type=int, default=1, show_default=True, metavar="K", help="Paths drafted i.i.d."
)
pair_argument = click.argument("pair_file", metavar="PAIR.json", type=click.Path())
tree_option = click.option(
    "--tree",
    metavar="NAME:K1,K2,..",
    help="Draft a tree instead: prefix_tree or without_replacement, with its width at every depth.",
)


def load_pair(path: str) -> ModelPair:
    """The pair of ``PAIR.json``; ``-`` is stdin."""
    from spectheory.pair import ModelPair

    return ModelPair.load(path)


def process_of(num_drafts: int, tree: str | None) -> DraftProcess:
    """The draft process of ``--num-drafts`` and ``--tree``; where both are given they must agree."""
    from spectheory.drafts import Iid, PrefixTree, WithoutReplacement

    if tree is None:
        return Iid(num_drafts)
    trees = {"prefix_tree": PrefixTree, "without_replacement": WithoutReplacement}
    name, _, widths = tree.partition(":")
    try:
        process = trees[name](tuple(int(width) for width in widths.split(",")))
    except (KeyError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(
            f"--tree {tree!r} is not prefix_tree:K1,K2,.. or without_replacement:K1,K2,.. with whole numbers"
        ) from error
    if given("num_drafts") and num_drafts != process.num_drafts:
        raise InvalidInputError(
            f"--num-drafts is {num_drafts}, but --tree {tree} draws {process.num_drafts} paths; "
            "give one of the two"
        )
    return process


def given(parameter: str) -> bool:
    """Whether an option of the running command was given, and is not its default."""
    return click.get_current_context().get_parameter_source(parameter) is ParameterSource.COMMANDLINE


MOST_NUMBERS = 100
"""The longest list of numbers."""


def numbers(option: str, listed: str) -> int | list[int]:
    """Whole numbers as 2, 1,2,4 or 1-4; one of them alone is no list.

    Example:
        >>> numbers("--num-drafts", "2"), numbers("--num-drafts", "1-3,8")
        (2, [1, 2, 3, 8])
    """
    found: list[int] = []
    try:
        for part in listed.split(","):
            first, dash, last = part.strip().partition("-")
            listing = range(int(first), int(last) + 1) if dash and first else [int(part)]
            if len(listing) > MOST_NUMBERS:
                raise ValueError
            found += listing
    except ValueError:
        raise InvalidInputError(
            f"{option} {listed!r} is no whole number and no list as 1,2,4 or 1-4, of {MOST_NUMBERS} at most"
        ) from None
    return found[0] if len(found) == 1 else found


def shard_of(text: str) -> tuple[int, int]:
    """A part of a run, as 2/8.

    Example:
        >>> shard_of("2/8")
        (2, 8)
    """
    number, _, shards = text.partition("/")
    if not (number.isdecimal() and shards.isdecimal()):
        raise InvalidInputError(f"--shard {text!r} is not I/N with whole numbers, as 1/8")
    return int(number), int(shards)


def verifier_names(listed: str) -> list[str]:
    """The names of a comma-separated list, each looked up before models are loaded."""
    from spectheory.resolve import find_verifier

    names = [name.strip() for name in listed.split(",") if name.strip()]
    if not names:
        raise InvalidInputError(f"--verifier {listed!r} names no verifier; name at least one verifier")
    for name in names:
        find_verifier(name)
    return names
