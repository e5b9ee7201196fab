"""Samplers that public reports are about, and samplers that people published: the right verdict on each.

Few pairs where a fault shows in one round or in a batch; whole audits are deep.
"""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import pytest
import torch

import public_batches as batches
import public_reports as reports
from cli_support import run_json
from spectheory import ModelPair, audit, instances
from spectheory.auditing.rounds.battery import audit_pairs, random_dyadic, with_first_token_drafted
from spectheory.auditing.subjects.relaxations import synthetic_acceptance
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.verdicts.audit_certificate import ASSUMPTIONS

Pairs = Mapping[str, ModelPair]
LOSSLESS = ("lossless", "lossless")
WRONG = "not lossless"
ONE: Pairs = {"two residual tokens": instances.two_residual_tokens(1)}
TWO_DRAFTS: Pairs = {"two drafts": random_dyadic(1, 2, 2)}
THREE_DRAFTS: Pairs = {"three drafts": with_first_token_drafted(random_dyadic(2, 2, 3))}
FOUR_DRAFTS: Pairs = {"four drafts": with_first_token_drafted(random_dyadic(2, 2, 4))}
THREE_TOKENS: Pairs = {"three tokens": with_first_token_drafted(random_dyadic(3, 3, 2))}
EQUAL: Pairs = {"equal models": instances.equal_models(2)}
ONE_DRAFT: Pairs = {"one draft": random_dyadic(1, 2, 1)}
OF_THREE: Pairs = {"one draft of three tokens": random_dyadic(3, 3, 1)}
"""The rows of the random pairs depend on the text."""
LAW = "its law is not the target's"
WRONG_DRAFTS = "drafts do not have the law of the rows that are reported for them"
BESIDE, NOT_INDEPENDENT = "have another law than alone", "of requests (equal lengths) are not independent"


class Case(NamedTuple):
    """A sampler and the right answer.

    Attributes:
        name, signature, sampler: of the function.
        says: words of its reasons; "" if it is lossless.
        pairs: where the fault shows; by default those of an audit.
        is_slow: whether it is left to a whole audit.
    """

    name: str
    signature: str
    sampler: Callable[..., Any]
    says: str
    pairs: Pairs
    is_slow: bool = False


def both(
    function: Callable[..., Any],
    says: str,
    pairs: Pairs = ONE,
    signature: str = "sampler",
    slow: tuple[bool, bool] = (False, False),
) -> Iterator[Case]:
    """The wrong form of a sampler and the right one."""
    name = function.__name__
    yield Case(f"{name}, wrong", signature, partial(function, right=False), says, pairs, slow[0])
    yield Case(f"{name}, right", signature, partial(function, right=True), "", pairs, slow[1])


def one_of(
    function: Callable[..., Any],
    says: str,
    pairs: Pairs = ONE,
    signature: str = "sampler",
    slow: bool = False,
    **form: Any,
) -> Case:
    """A sampler in one of several forms."""
    words = ", ".join([function.__name__, *map(str, form.values())])
    return Case(words, signature, partial(function, **form), says, pairs, slow)


of_laws = partial(both, says=LAW, slow=(True, False))
of_batches = partial(both, signature="batch")
of_slow_batches = partial(of_batches, slow=(False, True))
of_slowest_batches = partial(of_batches, slow=(True, True))
of_rounds = partial(both, signature="round")
ENGINE: Mapping[str, tuple[str, Pairs]] = {
    **dict.fromkeys(("no residual", "absolute residual", "half precision", "a thousandth more"), (LAW, ONE)),
    **dict.fromkeys(("coins of places", "noise of tokens"), (NOT_INDEPENDENT, ONE)),
    **dict.fromkeys(("offset of one length", "offset of equal lengths"), (BESIDE, ONE)),
    "draft rows of the first": (BESIDE, ONE),
    "winner of the start": (LAW, TWO_DRAFTS),
    "bonus always": ("it makes no valid output", ONE),
    "right": ("", ONE),
}

CASES = (
    *of_laws(reports.shared_coin),
    *of_laws(reports.point_residual),
    *of_laws(reports.next_row),
    *of_laws(reports.match_rule),
    *of_laws(reports.without_draft_probs),
    *both(reports.seeded_coins, "it gives torch's global generator a seed"),
    one_of(reports.deep_rows, LAW, THREE_DRAFTS, right_until=2),
    one_of(reports.deep_rows, LAW, FOUR_DRAFTS, slow=True, right_until=3),
    one_of(reports.deep_rows, "", THREE_DRAFTS, right_until=9),
    *of_slow_batches(batches.filler_temperature, BESIDE),
    *of_slow_batches(batches.first_unchecked, "a greedy request (greedy) does not get the likeliest tokens"),
    *of_slowest_batches(batches.zero_temperature, "a greedy request (greedy) does not get the"),
    *of_slowest_batches(batches.placeholder_is_last_token, "a request (padded) has no valid output"),
    *of_slowest_batches(batches.only_placeholders, "(padded) has no valid output, probability 0.312"),
    *both(reports.empty_residual, "probability 33554431/281474976710656 = 1.19209e-07", EQUAL),
    one_of(batches.seeded_rows, "", signature="batch", filled="rows", slow=True),
    one_of(batches.seeded_rows, BESIDE, signature="batch", filled="a copy", slow=True),
    one_of(batches.seeded_rows, "", signature="batch", filled="all at once", slow=True),
    *of_rounds(reports.reduced_vocabulary, WRONG_DRAFTS, OF_THREE),
    *of_slow_batches(batches.padded_rows, "it returns the token 3, which is not in 0..2"),
    one_of(reports.small_offsets, LAW, THREE_TOKENS, wraps_at=3),
    one_of(reports.small_offsets, "", THREE_TOKENS, wraps_at=1 << 31),
    *both(reports.raises_on_a_token, "no valid output with probability 50331649/134217730 = 0.375"),
    *of_laws(reports.temperature_dropped),
    *of_rounds(reports.certain_drafts, WRONG_DRAFTS),
    *of_rounds(reports.rejected_drafts_stay, "the next round does not have the target's law", ONE_DRAFT),
    *(one_of(batches.flat_engine, says, pairs, "batch", True, fault=fault)
      for fault, (says, pairs) in ENGINE.items()),
    one_of(reports.arrays_of_temporaries, ""),
    one_of(reports.doubles_of_temporaries, ""),
    one_of(reports.round_of_arrays, "", ONE_DRAFT, "round"),
    one_of(reports.round_of_python, "", ONE_DRAFT, "round"),
    one_of(reports.row_of_coins, "", TWO_DRAFTS),
)  # fmt: skip


def judged(case: Case, pairs: Pairs | None) -> Any:
    """The certificate, up to the first defect where one is wanted; all look at one path only."""
    num_drafts = 1 if case.signature == "sampler" else ()
    return audit(
        case.sampler, pairs, signature=case.signature, drafts=num_drafts, stop_at_first=bool(case.says)
    )


def check(case: Case, found: Any) -> None:
    verdicts = (WRONG,) if case.says else LOSSLESS
    assert found.verdict in verdicts, found.reasons
    assert bool(found) is (case.says == "")
    assert case.says in " ".join(found.reasons)
    assert bool(found.reasons) is not bool(found)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES if not case.is_slow])
def test_the_right_answer(case: Case) -> None:
    check(case, judged(case, case.pairs))


@pytest.mark.deep
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_right_answer_of_a_whole_audit(case: Case) -> None:
    """Four drafts are asked about only where somebody asks, and some rounds draft one token only."""
    is_small = case.pairs is FOUR_DRAFTS or case.name in OF_ONE_DRAFT
    found = judged(case, case.pairs if is_small else None)
    check(case._replace(says=WHOLE.get(case.name, case.says)), found)


OF_ONE_DRAFT = ("round_of_arrays", "round_of_python")
WHOLE = {
    "raises_on_a_token, wrong": "it makes no valid output with probability",
    "empty_residual, wrong": "it makes no valid output with probability",
}
"""What the reasons of a whole audit say, where it is not what a pair shows."""


def test_the_reason_names_the_exception_and_its_line() -> None:
    found = judged(next(case for case in CASES if case.name == "raises_on_a_token, wrong"), ONE)
    assert "failed: RuntimeError: nothing was drawn" in found.reasons[0]
    assert "public_reports.py, line " in found.reasons[0]


@pytest.mark.parametrize(
    ("name", "signature", "says"),
    [
        ("public_reports:refuses_token_0", "sampler", "RuntimeError: nothing was drawn"),
        ("public_reports:draws_every_token", "sampler", ""),
        ("public_reports:drafts_the_likeliest", "round", WRONG_DRAFTS),
        ("public_batches:pads_with_zeros", "batch", "it returns the token 3, which is not in 0..2"),
    ],
)
def test_the_command_line_says_the_same(
    capsys: pytest.CaptureFixture[str], name: str, signature: str, says: str
) -> None:
    """Its status is 1 for what is wrong, and 0 for the partner."""
    few = ["--vocab", "3", "--draft-length", "1", *(["--drafts", "1"] if signature == "sampler" else [])]
    words = ["audit", name, "--as", signature, *few]
    found = run_json(capsys, *words, code=1 if says else 0)
    assert (found["verdict"] == WRONG) is bool(says)
    assert says in " ".join(found["reasons"])
    assert signature == "batch" or (found["counterexample"] is None) is (says == "")


@pytest.mark.parametrize("right", [False, True])
def test_stated_rates(right: bool) -> None:
    """A relaxation that states its rates has them; it is lossy, so that no verdict calls it lossless."""
    sampler = Shipped(
        partial(reports.synthetic_rates, right=right),
        "sampler",
        relaxation=synthetic_acceptance(tuple(map(Fraction, reports.RATES))),
    )
    found = audit(sampler, TWO_DRAFTS)
    assert not found
    assert found.verdict == ("equals its stated relaxation" if right else WRONG)
    assert right or found.reasons[0].startswith("its law is not the one it states")


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize(
    ("function", "signature", "pairs"),
    [(reports.penalty_twice, "round", ONE_DRAFT), (reports.filter_on_bonus, "sampler", ONE)],
)
def test_a_processor_inside_the_sampler_is_not_known(
    function: Callable[..., Any], signature: str, pairs: Pairs, right: bool
) -> None:
    """So even its right form has another law than the rows that are given."""
    found = audit(partial(function, right=right), pairs, signature=signature)
    assert found.verdict == WRONG
    assert any("a filter, a penalty or another processor" in words for words in ASSUMPTIONS)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize(
    ("sampler", "named"),
    [
        (partial(reports.compiled, compiler=torch.jit.script), "TorchScript"),
        (reports.numpy_global, "numpy.random.random"),
    ],
    ids=["script", "numpy"],
)
def test_a_refusal_names_the_operation(sampler: Callable[..., Any], named: str) -> None:
    found = audit(sampler, ONE, drafts=1, within=0.02)
    assert (found.verdict, found.basis) == ("lossless", "probed")
    assert named in found.ways[0]


def test_a_fault_at_the_fourth_draft_is_outside_the_scope() -> None:
    """With four drafts it is found, above."""
    found = audit(partial(reports.deep_rows, right_until=3), THREE_DRAFTS, drafts=1)
    assert found.verdict in LOSSLESS
    assert found.scope.shapes == ((2, 3, 1),)
    assert max(pair.draft_length for pair in audit_pairs().values()) == 3


def test_offsets_of_a_large_vocabulary_are_outside_the_scope() -> None:
    """Eight bits wrap at the third of 64 tokens; a smaller offset is found, above."""
    found = audit(partial(reports.small_offsets, wraps_at=128), THREE_TOKENS, drafts=1)
    assert found.verdict in LOSSLESS
    assert found.scope.shapes == ((3, 2, 1),)
    assert max(pair.vocab_size for pair in audit_pairs().values()) == 4
