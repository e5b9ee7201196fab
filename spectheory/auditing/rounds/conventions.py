"""Conventions of engines that a few calls of a batch with ordinary random numbers show.

- Seeds: the tokens of a request that has a seed do not depend on the requests beside it.
- Log-probabilities, if a sampler returns them, are those of the tokens in the target's rows.
- Where a row of logits is NaN or masked whole, the call ends in an error, or the request gets tokens of the
  vocabulary, and never the token that was rejected there.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

import torch

from spectheory.auditing.rounds.batch_battery import FIRST, SECOND, SEEDED
from spectheory.auditing.rounds.by_calls import real_numbers
from spectheory.auditing.subjects.runs import check_stand_ins
from spectheory.auditing.subjects.shipped import Shipped, Tokens
from spectheory.auditing.subjects.signatures import Call, Row, verified_batch
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.auditing.tape.ordinary import OrdinaryRun
from spectheory.auditing.tape.races import UndefinedDrawError
from spectheory.foundation.documents import count_text
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError

CALLS = 16
"""The calls of each batch.

In all of them a request gets equal tokens from other random numbers beside other requests with probability
5 * 10^-12; if only the number for the token after all drafts is another, with probability 0.08.
"""
CALLS_OF_NAN = 4
"""The calls of each batch with a row of NaN, whose answers hardly depend on random numbers."""
OF_REQUESTS = 1_000
"""The first seed of a request; the seeds of generators that are handed over are smaller."""
LOGPROB_TOLERANCE = 1e-4
"""The largest difference of log-probabilities that rounding to float32 causes, and a softmax in float32."""
_Answers = list[tuple[Tokens, list[float] | None]]


def check_conventions(sampler: Shipped) -> tuple[str, ...]:
    """Check the conventions that a sampler of batches declares, and return their names.

    Findings go to its journal: per convention the first request that does not keep it.

    Raises:
        NotEnumerableError: the time is up, or a stand-in lacks something.
    """
    if sampler.signature_name != "batch":
        return ()
    checked, journal = [], sampler.journal
    with real_numbers():
        for name, check in CHECKS.items():
            findings = check(sampler)
            try:
                first = next(findings, None)
                finding = first or next(filter(None, findings), "")
            except NotEnumerableError:
                raise
            except InvalidInputError as error:  # the declared processor takes no rows of three tokens
                journal.refused.append(f"{name}: {error}")
                continue
            checked += [] if first is None else [name]
            journal.findings |= {("batch", finding)} if finding else set()
    return tuple(checked)


def _answers(sampler: Shipped, rows: Sequence[Row], number: int) -> _Answers | None:
    """The tokens and log-probabilities of every request.  ``None`` if the sampler raises."""

    def once(call: Call) -> tuple[list[list[int]], list[list[float] | None]]:
        return verified_batch(sampler.sampler, call, rows), call.logprobs

    sampler.check_time()
    try:
        ((found, logprobs),) = sampler.in_a_row(OrdinaryRun(number), 1, once)
    except NotEnumerableError:
        raise
    except InvalidInputError as error:
        if isinstance(error, InvalidOutcomeError):
            check_stand_ins(error)
        return None
    return list(zip(map(sampler.tokens, found), logprobs, strict=True))


def _seeds(sampler: Shipped) -> Iterator[str]:
    if sampler.mixes is not None and SEEDED not in sampler.mixes:
        return
    for number in range(CALLS):
        row, other = FIRST._replace(seed=OF_REQUESTS + number), SECOND._replace(seed=2 * OF_REQUESTS + number)
        alone = _answers(sampler, [row], number)
        if "seed" not in sampler.journal.reads or alone is None:
            return
        yield ""
        expected = list(alone[0][0])
        for place, rows in ((1, (SECOND, row)), (0, (row, other)), (1, (other, row, SECOND))):
            answers = _answers(sampler, rows, number)
            if answers is None or list(answers[place][0]) != expected:
                who = f"request {place + 1} of {len(rows)} with the seed {row.seed}"
                found = "no valid output" if answers is None else f"the tokens {list(answers[place][0])}"
                yield f"{who} gets {found}, and alone {expected}"


def _logprobs(sampler: Shipped) -> Iterator[str]:
    rows = FIRST, SECOND
    for number in range(CALLS):
        for place, (tokens, logprobs) in enumerate(_answers(sampler, rows, number) or ()):
            if logprobs is None:
                return
            yield ""
            who = f"request {place + 1} of 2 gets {list(tokens)} and"
            if len(logprobs) < len(tokens):
                yield f"{who} log-probabilities of {count_text(len(logprobs), 'token')}"
            told = zip(tokens, logprobs, rows[place].target_probs, strict=False)
            for depth, (token, found, row) in enumerate(told):
                probs = sampler.stated_row(tokens[:depth], row)
                wanted = math.log(probs[token]) if token in range(3) and probs[token] else -math.inf
                if not math.isclose(found, wanted, abs_tol=LOGPROB_TOLERANCE):
                    differ = f"the log-probability {found:.4g}; its row has {wanted:.4g}"
                    yield f"{who} for token {depth + 1} {differ}"


def _hostile(sampler: Shipped) -> Iterator[str]:
    if not getattr(sampler.sampler, "takes_logits", False):
        return
    nan, zeros = torch.full((3,), math.nan), torch.zeros(3)
    half = torch.cat([nan[:1], FIRST.target_probs[0, 1:]])
    rows = (("NaN", nan), ("half NaN", half), ("masked whole", zeros))
    for (words, hostile), depth, place, number in product(rows, range(2), range(2), range(CALLS_OF_NAN)):
        target, drafts = FIRST.target_probs.clone(), FIRST.draft_tokens.clone()
        target[depth], drafts[depth] = hostile, 0  # the argmax of NaN is 0
        company = [SECOND, SECOND]
        company[place] = FIRST._replace(target_probs=target, draft_tokens=drafts)
        yield ""  # also if it raises
        for request, (tokens, _) in enumerate(_answers(sampler, company, number) or ()):
            where = (
                f"where row {depth + 1} of request {place + 1} of 2 is {words}, request {request + 1} gets"
            )
            try:
                sampler.valid_tokens(tokens, company[request].draft_tokens, 3)
            except (UndefinedDrawError, InvalidOutcomeError) as error:
                yield f"{where} {list(tokens)}: {error}"
                continue
            if request == place and len(tokens) == depth + 1 and tokens[-1] == 0:
                yield f"{where} {list(tokens)}, the last of which it has rejected"


CHECKS: Mapping[str, Callable[[Shipped], Iterator[str]]] = {
    "seeds": _seeds,
    "log-probabilities": _logprobs,
    "rows without a distribution": _hostile,
}
"""Name -> check, which yields "" when it has something to check, and findings."""
