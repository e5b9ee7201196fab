"""Option types other than numbers and texts, and functions that read the input of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from spectheory.foundation.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectheory.models import LanguageModelPair
    from spectheory.models.prompts import Prompt
    from spectheory.pairs.drafts import DraftProcess
    from spectheory.pairs.pair import ModelPair

Names = list[str]
"""Annotation of an option with names of verifiers, separated by commas."""
Numbers = list[int]
"""Annotation of an option with integers, such as 2, 1,2,4 or 1-4."""
BUNDLED = "bundled"
MOST_NUMBERS = 100
"""The longest list of numbers on the command line."""


class _Drafts(click.ParamType):
    name = "drafts"

    def convert(self, value: Any, param: Any, ctx: Any) -> int | list[int] | DraftProcess:
        return drafts_of(value) if isinstance(value, str) else value

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "K|NAME:K1,K2,.."


class _Names(click.ParamType):
    name = "name,.."

    def convert(self, value: Any, param: Any, ctx: Any) -> list[str]:
        return verifier_names(value) if isinstance(value, str) else value


class _Numbers(click.ParamType):
    name = "n,.."

    def convert(self, value: Any, param: Any, ctx: Any) -> list[int]:
        try:
            return numbers_of(value) if isinstance(value, str) else value
        except InvalidInputError as error:
            raise InvalidInputError(f"{param.opts[0]} {error}") from None


DRAFTS, NAMES, NUMBERS = _Drafts(), _Names(), _Numbers()


def numbers_of(text: str) -> list[int]:
    """Parse positive integers, such as 2, 1,2,4 or 1-4.

    Example:
        >>> numbers_of("2"), numbers_of("1-3,8")
        ([2], [1, 2, 3, 8])
    """
    found: list[int] = []
    try:
        for part in text.split(","):
            first, dash, last = part.strip().partition("-")
            listed = range(int(first), int(last) + 1) if dash and first else [int(part)]
            if not 0 < len(listed) <= MOST_NUMBERS:
                raise ValueError
            found += listed
    except ValueError:
        raise InvalidInputError(
            f"{text!r} is not a whole number or a list such as 1,2,4 or 1-4, of {MOST_NUMBERS} at most"
        ) from None
    return found


def drafts_of(text: str) -> int | list[int] | DraftProcess:
    """Parse the value of ``--drafts``: numbers of independent paths, or a draft process.

    Example:
        >>> drafts_of("2"), drafts_of("1-3"), drafts_of("without_replacement:3,1")
        (2, [1, 2, 3], WithoutReplacement(widths=(3, 1)))
    """
    from spectheory.pairs.drafts import (
        ConfidenceTree,
        HubTree,
        PrefixTree,
        ShapedTree,
        TopTree,
        WithoutReplacement,
    )
    from spectheory.pairs.drafts.iid import Iid

    name, colon, numbers = text.partition(":")
    if not colon:
        found = numbers_of(text)
        return found[0] if len(found) == 1 else found
    trees = {kind.name: kind for kind in (PrefixTree, WithoutReplacement, HubTree, TopTree, ShapedTree)}
    by_number = {kind.name: kind for kind in (Iid, ConfidenceTree)}
    if name not in trees | by_number and numbers.isidentifier():
        return _own_process(text)
    try:
        shape = tuple(int(number) for number in numbers.split(","))
        return by_number[name](*shape) if name in by_number else trees[name](shape)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        listed = ", ".join(f"{known}:K1,K2,.." for known in trees)
        raise InvalidInputError(
            f"--drafts {text!r} is not a number of paths, {listed} or "
            "confidence_tree:NODES with whole numbers, or module:name, your own draft process or length rule"
        ) from error


def _own_process(text: str) -> DraftProcess:
    from inspect import isfunction

    from spectheory.pairs.drafts import DraftProcess, Shortened
    from spectheory.pairs.drafts.iid import draft_process
    from spectheory.verification.resolve import imported
    from spectheory.verification.user import users_code

    found = imported(text, "draft process", "tuples")
    if isfunction(found):
        return Shortened(1, found)
    with users_code(f"making {text}", may_refuse=True):
        made = found() if isinstance(found, type) else found
    if not isinstance(made, DraftProcess):
        raise InvalidInputError(f"--drafts {text} is {type(made).__name__}, expected a draft process")
    return draft_process(made)


def obeying(verifiers: Sequence[Any], drafts: Any) -> tuple[list[Any], Any]:
    """Let verifiers obey a length rule that was given as drafts: language models draft whole paths.

    Returns:
        The verifiers and the drafts; without a length rule they are what was given.
    """
    from spectheory.pairs.drafts import Shortened
    from spectheory.verification.length_rules import WithLengthRule

    if not isinstance(drafts, Shortened):
        return list(verifiers), drafts
    return [WithLengthRule(verifier, drafts.rule) for verifier in verifiers], drafts.drafts


def draft_length_of(drafts: Any, draft_length: int) -> int:
    """Return the draft length if the user gave it, else the depth of the tree, else the default."""
    if was_given("draft_length"):
        return draft_length
    return getattr(drafts, "depth", 0) or len(getattr(drafts, "widths", ())) or draft_length


def verifier_names(listed: str) -> list[str]:
    """Parse a comma-separated list of verifiers, and look each up before models are loaded."""
    from spectheory.verification.resolve import find_verifier

    names = list(map(str.strip, listed.split(",")))
    if "" in names:
        raise InvalidInputError(
            f"--verifier {listed!r} names no verifier beside a comma; leave the comma out"
        )
    for name in names:
        find_verifier(name)
    return names


def was_given(*parameters: str) -> list[str]:
    """Flags of the given parameters that the user set on the command line."""
    source = click.get_current_context().get_parameter_source
    given = [each for each in parameters if source(each) is ParameterSource.COMMANDLINE]
    return [f"--{name.replace('_', '-')}" for name in given]


def refuse_both(one: str, other: str) -> None:
    given = was_given(one, other)
    if len(given) > 1:
        raise InvalidInputError(f"{' and '.join(given)} were both given; ask for one of them")


def load_pair(path: str) -> ModelPair:
    from spectheory.pairs.pair import ModelPair

    return ModelPair.load(path)


def find_models(target: str, draft: str) -> tuple[LanguageModelPair, dict[str, Any]]:
    """Find the models by name.

    Return them, and their names as the ``target`` and ``draft`` fields of the JSON output.
    """
    from spectheory.models import LanguageModelPair, quiet_loading

    quiet_loading()
    found = LanguageModelPair.load(target, draft, weights_now=False)
    return found, {"target": target, "draft": draft}


def read_texts(file: str | None) -> list[Prompt]:
    """Read the prompts of a file, or the bundled prompts if ``file`` is None."""
    from spectheory.models import bundled_prompts, read_prompts

    return bundled_prompts() if file is None else read_prompts(file)
