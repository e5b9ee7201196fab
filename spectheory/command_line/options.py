"""Options that several commands share, and what their texts mean."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from spectheory.foundation.errors import InvalidInputError

if TYPE_CHECKING:
    from spectheory.pairs.drafts import DraftProcess
    from spectheory.pairs.pair import ModelPair

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
    help="Draft a tree instead: prefix_tree, without_replacement, hub_tree or top_tree, with its width at "
    "every depth; shaped_tree, with the children of every node; confidence_tree, with its number of nodes; "
    "or a draft process of your own, module:name.",
)


class SettingsCommand(click.Command):
    """A command that has an option for every field with flags of a settings class, made when it is run.

    Args:
        settings: the class, as module:name.
    """

    def __init__(self, *args: Any, settings: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._settings = settings.split(":")

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        module, name = self._settings
        *own, help_option = super().get_params(ctx)
        return [*own, *getattr(import_module(module), name).command_options(), help_option]

    def invoke(self, ctx: click.Context) -> Any:
        """As always; an error about a field says which option it is, if that has another name."""
        try:
            return super().invoke(ctx)
        except InvalidInputError as error:
            field = str(error).partition(" ")[0]
            flags = [entry.opts[0] for entry in self.get_params(ctx) if entry.name == field]
            if flags and flags[0] != f"--{field.replace('_', '-')}":
                error.add_note(f"that is {flags[0]}")
            raise


def load_pair(path: str) -> ModelPair:
    from spectheory.pairs.pair import ModelPair

    return ModelPair.load(path)


def process_of(num_drafts: int, tree: str | None) -> DraftProcess:
    """The draft process of ``--num-drafts`` and ``--tree``; where both are given they must agree."""
    from spectheory.pairs.drafts import (
        ConfidenceTree,
        DraftProcess,
        HubTree,
        Iid,
        PrefixTree,
        ShapedTree,
        TopTree,
        WithoutReplacement,
    )
    from spectheory.pairs.drafts.iid import draft_process
    from spectheory.verification.resolve import imported
    from spectheory.verification.user import users_code

    if tree is None:
        return Iid(num_drafts)
    trees = {kind.name: kind for kind in (PrefixTree, WithoutReplacement, HubTree, TopTree, ShapedTree)}
    name, _, numbers = tree.partition(":")
    if name not in (*trees, ConfidenceTree.name) and numbers.isidentifier():
        found = imported(tree, "draft process", "tuples")
        with users_code(f"making {tree}", may_refuse=True):
            made = found() if isinstance(found, type) else found
        if not isinstance(made, DraftProcess):
            raise InvalidInputError(f"--tree {tree} is {type(made).__name__}, expected a draft process")
        process: DraftProcess = draft_process(made)
    else:
        try:
            shape = tuple(int(number) for number in numbers.split(","))
            process = ConfidenceTree(*shape) if name == ConfidenceTree.name else trees[name](shape)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(
                f"--tree {tree!r} is not {', '.join(f'{known}:K1,K2,..' for known in trees)} or "
                "confidence_tree:NODES with whole numbers, or a draft process of your own, module:name"
            ) from error
    if was_given("num_drafts") and num_drafts != process.num_drafts:
        raise InvalidInputError(
            f"--num-drafts is {num_drafts}, but --tree {tree} draws {process.num_drafts} paths; "
            "give one of the two"
        )
    return process


def draft_length_of(process: int | DraftProcess, draft_length: int) -> int:
    """The draft length that was given; else that of a tree, or the default."""
    if was_given("draft_length"):
        return draft_length
    return getattr(process, "depth", 0) or len(getattr(process, "widths", ())) or draft_length


def was_given(parameter: str) -> bool:
    """Whether an option of the running command was given, and is not its default."""
    return click.get_current_context().get_parameter_source(parameter) is ParameterSource.COMMANDLINE


def refuse_both(one: str, other: str) -> None:
    context = click.get_current_context()
    by_flag = {flag: option.name for option in context.command.get_params(context) for flag in option.opts}
    if was_given(by_flag[one] or "") and was_given(by_flag[other] or ""):
        raise InvalidInputError(f"{one} and {other} were both given; ask for one of them")


def verifier_names(listed: str) -> list[str]:
    """The names of a comma-separated list, each looked up before models are loaded."""
    from spectheory.verification.resolve import find_verifier

    names = list(map(str.strip, listed.split(",")))
    if "" in names:
        raise InvalidInputError(
            f"--verifier {listed!r} names no verifier beside a comma; leave the comma out"
        )
    for name in names:
        find_verifier(name)
    return names
