"""Show one followed run of a sampler: every decision, with its line, bound, case and probability."""

import sys

from spectheory.auditing.rounds.questions import Question, drafts_and_rows
from spectheory.auditing.subjects.drafting_rounds import DraftingRound
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.tape.decisions import Branch, NotEnumerableError, Tape
from spectheory.foundation.documents import number_text
from spectheory.verification.user import is_users_file


def trace_run(sampler: Shipped, question: Question) -> list[str]:
    """Follow one run of a sampler, on the likeliest drafts, and describe it in lines.

    Args:
        sampler: the sampler.
        question: a pair and how paths are drafted.
    """
    lines: list[str] = []

    def told(branch: Branch, bound: float | None) -> None:
        if branch.share == 1:
            return
        if bound is None:
            case = f"case {branch.taken + 1} of {len(branch.shares)}"
        else:
            case = f"{'below' if branch.taken == 0 else 'at least'} {bound:.6g}"
        lines.append(f"  {_place()}: {case}, probability {number_text(branch.share)}")

    tape = Tape((), told=told)
    asked, pair = (
        (sampler, question.pair) if isinstance(sampler, DraftingRound) else sampler.prepared(question.pair)
    )
    none: tuple[int, ...] = ()
    try:
        if isinstance(asked, DraftingRound):
            where = f"a round on {question.name}"
            found = asked.valid(lambda tape: asked.rounds(tape, pair, 1)[0][0].tokens, tape, none)
        else:
            drafts = drafts_and_rows(question._replace(pair=pair))
            paths, target, draft, _ = max(drafts, key=lambda drafted: drafted[3])
            where = f"the drafts {paths.tolist()} on {question.name}"
            found = asked.valid(
                lambda tape: asked.once(tape, paths, *asked.told(paths, target, draft)), tape, none
            )
    except NotEnumerableError as error:
        return [*lines, f"  it is not followed further: {error}"]
    return [f"one run of {sampler.name} with {where}:", *lines, f"  tokens {list(found)}"]


def _place() -> str:
    """The innermost line of the running code that is outside this package and libraries."""
    frame = sys._getframe(1)
    while frame.f_back is not None and not is_users_file(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}, line {frame.f_lineno}"
