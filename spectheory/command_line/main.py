"""The group of all commands, its errors and exit codes.

Results go to stdout, as tables, JSON, CSV or LaTeX.  Progress and errors go to stderr.
Exit codes: 0 success, 1 a defect or a difference was found, 2 the input cannot be used or a library is
missing, 3 `optimum` stopped before it reached the requested gap, 4 undecided, 70 an error of the package, 130
interrupted, 143 terminated.  A closed pipe does not change the exit code.
This file imports only click, so that ``--help`` answers at once.  Commands import everything else.
"""

import signal
import sys
import textwrap
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from spectheory.command_line import audit_commands, model_commands, theory_commands
from spectheory.command_line.output import (
    EXIT_BAD_INPUT,
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    EXIT_TERMINATED,
    check_form,
    fail,
    note,
)
from spectheory.command_line.streams import pipes_that_may_close
from spectheory.foundation.errors import ComputationError, InvalidInputError, Notice
from spectheory.foundation.extras import installed

TASKS = {
    "Judge a verification algorithm": (
        theory_commands.certify,
        theory_commands.prove,
        theory_commands.optimum,
        theory_commands.acceptance,
        theory_commands.verifiers,
    ),
    "Judge a sampler as it is shipped": (audit_commands.audit,),
    "Run language models": (
        model_commands.simulate,
        model_commands.decode,
        model_commands.plan,
        model_commands.restrict,
        model_commands.models,
    ),
}
"""The commands by what they are for, in the order in which ``--help`` lists them."""


class _Group(click.Group):
    """A group whose options may be given anywhere on the command line, as in ``certify pair.json --json``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order in which they were added."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by task, each with an example."""
        widest = max(len(name) for name in self.commands) + 2
        for task, commands in TASKS.items():
            with formatter.section(task):
                for command in commands:
                    texts = command.get_short_help_str(200), f"$ {command.example}"
                    starts = str(command.name), ""
                    for start, text in zip(starts, texts, strict=True):
                        first, later = f"  {start:{widest}}", " " * (widest + 2)
                        wrapper = textwrap.TextWrapper(formatter.width, first, later, break_on_hyphens=False)
                        formatter.write(wrapper.fill(text) + "\n")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command.  Try the first two words, and then the first word alone."""
        name = " ".join(args[:2])
        if name in audit_commands.PARTS:
            return name, audit_commands.PARTS[name], args[2:]
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        common = {flag for option in self.params if isinstance(option, click.Option) for flag in option.opts}
        common -= {"--version"}
        ours = [word for word in args if word in common]
        return super().parse_args(ctx, ours + [word for word in args if word not in common])


@click.group(
    cls=_Group,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="spectheory", prog_name="spectheory", message="%(prog)s %(version)s")
@click.option("--json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option("--csv", is_flag=True, help="Print CSV, a line per result, instead of tables.")
@click.option("--latex", is_flag=True, help="Print the tables in LaTeX.")
@click.option("--verbose", is_flag=True, help="Print the fine print too.")
@click.option("--traceback", is_flag=True, help="Print the traceback of an error too.")
@click.pass_context
def group(context: click.Context, **asked: bool) -> None:
    """A referee for the verification algorithms of speculative decoding.

    It computes the exact output law of an algorithm, whether the algorithm is lossless, how many tokens per
    target call it decodes, and how far this is from the optimum over all lossless algorithms.

    These options may be given anywhere on the line, with every command.
    """
    check_form(asked)
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (command for commands in TASKS.values() for command in commands):
    group.add_command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.  A user's mistake prints one line on stderr."""
    sys.set_int_max_str_digits(0)  # exact results may be long; files have another limit
    if sys.stdout is None or sys.stdout.closed:
        return fail("stdout is closed; there is nowhere to print to", EXIT_BAD_INPUT)
    words = list(sys.argv[1:] if arguments is None else arguments)
    with pipes_that_may_close(), _notices(), _signals_as_interrupts() as received:
        code = _run(words, "--traceback" in words)
    return EXIT_TERMINATED if code == EXIT_INTERRUPTED and signal.SIGTERM in received else code


def _run(arguments: Sequence[str], with_traceback: bool) -> int:
    try:
        with installed():
            result = group.main(args=arguments, prog_name="spectheory", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        said = error.format_message()
        if isinstance(error, click.UsageError) and error.ctx is not None:
            said += f" See: {error.ctx.command_path} --help"
        return fail(said, EXIT_BAD_INPUT)
    except (InvalidInputError, ComputationError) as error:
        if with_traceback:
            traceback.print_exception(error)
        return fail(_with_notes(str(error), error), EXIT_BAD_INPUT)
    except OSError as error:
        said = f"{error.filename or 'a file'}: {error.strerror or error}"
        return fail(_with_notes(said, error), EXIT_BAD_INPUT)
    except (KeyboardInterrupt, click.Abort) as stop:
        said = "interrupted before anything was finished"
        return fail(_with_notes(said, stop.__cause__ or stop), EXIT_INTERRUPTED)  # click raises Abort from it
    except Exception as error:  # never Python's exit status 1, which here means "not lossless"
        if with_traceback:
            traceback.print_exception(error)
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return fail(f"in spectheory itself: {said}; please report it, with --traceback", EXIT_INTERNAL)


def _with_notes(said: str, error: BaseException) -> str:
    return "; ".join([said, *getattr(error, "__notes__", ())])


@contextmanager
def _notices() -> Iterator[None]:
    """Print each ``Notice`` once, as one line on stderr.  Hide the warnings of solvers and loaders."""
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
        warnings.simplefilter("always", Notice)
        show, said = warnings.showwarning, set()

        def one_line(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, Notice):
                if str(message) not in said:
                    note(str(message))
                said.add(str(message))
            else:
                show(message, category, *where, **more)

        warnings.showwarning = one_line
        yield


class _Stopped(KeyboardInterrupt):
    """Raised on Ctrl-C or SIGTERM.

    If a plain KeyboardInterrupt passes through ``exec``, as in an import that makes a dataclass, the
    interpreter ends by SIGINT and ignores its exit code.
    """


@contextmanager
def _signals_as_interrupts() -> Iterator[list[int]]:
    """Let SIGTERM stop a command as Ctrl-C does, and yield the signals received."""
    received: list[int] = []

    def interrupt(number: int, frame: Any) -> None:
        received.append(number)
        raise _Stopped

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():  # other threads cannot handle signals
        wanted = [signal.SIGTERM]
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # keep an ignored SIGINT
            wanted.append(signal.SIGINT)
        before = {number: signal.signal(number, interrupt) for number in wanted}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
