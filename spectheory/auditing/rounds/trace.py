"""Show one followed run of a sampler: every decision, with its line, bound, case and probability."""

import sys

from spectheory.auditing.subjects.asked import Question
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

    try:
        part = max(sampler.asked(question), key=lambda part: part.probability)
        found = sampler.tokens_of(sampler.valid(part.call, Tape((), told=told), ()))
    except NotEnumerableError as error:
        return [*lines, f"  it is not followed further: {error}"]
    where = f"{part.words} on {question.name}"
    return [f"one run of {sampler.name} with {where}:", *lines, f"  tokens {list(found)}"]


def _place() -> str:
    """The innermost line of the running code that is outside this package and libraries."""
    frame = sys._getframe(1)
    while frame.f_back is not None and not is_users_file(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}, line {frame.f_lineno}"
