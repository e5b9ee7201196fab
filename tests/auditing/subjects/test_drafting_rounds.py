"""Rounds: what only the drafter and the verifier together show, each with a mended partner."""

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from audits.specimens.rounds import (
    ROUND_SPECIMENS,
    gumbel_coupling,
    speculative_round,
)
from audits.specimens.samplers import token_verification
from deep import first_is_quick
from rounds_with_state import certain_drafts, of_a_reduced_vocabulary
from spectheory import audit, certify, instances
from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.auditing.rounds.questions import followed_law
from spectheory.auditing.subjects.asked import Question
from spectheory.auditing.subjects.drafting_rounds import DraftingRound, LookUpModel
from spectheory.auditing.subjects.model_loops import as_shipped
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import SIGNATURES
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.results import LOSSLESS, UNDECIDED
from spectheory.pairs.contexts import all_contexts
from spectheory.pairs.drafts import Iid
from spectheory.pairs.pair import ModelPair

STATED = ModelPair.context_free_pair(["7/20", "7/20", "1/5", "1/10"], ["3/10", "1/20", "3/20", "1/2"], 1)
"""On which the drafts and the recovered tokens of vLLM 0.27.1, with shared noise, were measured."""
HALVES = [Fraction(1, 2), Fraction(1, 2)]
SKEWED = instances.bernoulli("1/4", "3/4")
SHOWS = {
    "shared_noise": ModelPair.context_free_pair(["1/2", "1/2", "0"], ["1/4", "0", "3/4"], 1),
    "drafts_in_bfloat16": instances.bernoulli("3/10", "1/4"),
    "rows_off_by_one": ModelPair.from_contexts(
        {context: [1, 0] if len(context) != 1 else HALVES for context in all_contexts(2, 2)},
        {(): [Fraction(1, 4), Fraction(3, 4)], (0,): HALVES, (1,): HALVES},
        2,
    ),
}
"""Small pairs: a round has many runs, and two of them more."""
LAW = "its law is not the target's on pair"
CONTRACT = "contract: drafts do not have the law of the rows that are reported for them"
SECOND = "rounds: after the tokens ["
SAYS = {"shared_noise": (LAW, SECOND)}
ONLY_IN_THE_SECOND = "cache_without_last_draft"


@first_is_quick("name", [name for name in ROUND_SPECIMENS if name != ONLY_IN_THE_SECOND], quick=2)
def test_every_wrong_round_is_caught_and_its_mended_partner_passes(name: str) -> None:
    """With its mechanism: shared noise leaves the drafts and their reports right.

    ``test_two_rounds`` has the specimen whose first round is right.
    """
    wrong, mended = ROUND_SPECIMENS[name]
    pairs = {"pair": SHOWS.get(name, SKEWED)}
    reasons = audit(wrong, pairs, signature="round").reasons
    for says in SAYS.get(name, (LAW, CONTRACT)):
        assert any(reason.startswith(says) for reason in reasons), reasons
    assert (CONTRACT in reasons) is (name not in SAYS)
    found = audit(mended, pairs, signature="round")
    assert (found.is_lossless, found.reasons) == (True, ())


@first_is_quick("round_", [certain_drafts, of_a_reduced_vocabulary], quick=2)
def test_drafts_of_other_tokens_than_reported(round_: Any) -> None:
    """The draft's token is an offset, or always the likeliest one."""
    pairs = {"sixteenths": random_dyadic(3, 3, 1)}
    assert not audit(partial(round_, bad=True), pairs, signature="round").is_lossless
    assert audit(partial(round_, bad=False), pairs, signature="round").is_lossless


def sampled(shares_noise: bool, draws: int = 400_000) -> np.ndarray:
    """The law of the first token of rounds on the stated pair, by draws of numpy."""
    p, q = (level[0][0].astype(float) for level in (STATED.target, STATED.draft))
    rng = np.random.default_rng(5)
    noise, fresh = rng.exponential(size=(2, draws, 4))
    drafted = (q / noise).argmax(1)
    corrected = (np.maximum(p - q, 0) / (noise if shares_noise else fresh)).argmax(1)
    tokens = np.where(rng.random(draws) < (p / q)[drafted], drafted, corrected)
    return np.bincount(tokens, minlength=4) / draws


@pytest.mark.parametrize("shares_noise", [True, False])
def test_noise_that_drafter_and_verifier_share(shares_noise: bool) -> None:
    """On the stated pair the total variation is 0.0543, and the law is that of drawn rounds.

    An error of 0.004 is five standard deviations of a frequency of 400 000 draws.
    """
    wrong, mended = ROUND_SPECIMENS["shared_noise"]
    asked, pair = DraftingRound(wrong if shares_noise else mended).prepared(STATED)
    found = certify(asked, pair, with_optimum=False)
    assert abs(float(found.total_variation) - (0.054334 if shares_noise else 0)) < 1e-6
    law = np.array([float(p) for p in asked_law(asked, pair)])
    assert abs(law - sampled(shares_noise)).max() < 0.004
    assert abs(law - sampled(not shares_noise)).max() > 0.004


def asked_law(asked: Shipped, pair: ModelPair) -> list[Fraction]:
    """The law of the first token."""
    law = [Fraction(0)] * pair.vocab_size
    for token, share in enumerate(pair.draft[0][0]):
        if share:
            for tokens, mass in asked.law_given(np.array([[token]]), *(np.empty(0),) * 2).items():
                law[tokens[0]] += share * mass
    return law


def test_a_coupling_with_the_same_noise_is_lossless() -> None:
    """Sharing noise is not the mistake: coupled draws agree more often than independent ones."""
    pair = instances.two_residual_tokens(1)
    found = audit(gumbel_coupling, {"pair": pair}, signature="round")
    assert found.verdict == LOSSLESS
    assert found.cases[0].block_efficiency - 1 > sum(pair.target[0][0] * pair.draft[0][0])


def too_short(text: Sequence[int], target: Any, draft: Any, draft_length: int, generator: Any) -> Any:
    return [0] * (draft_length - 1), draft(text)[None], [0]


def too_wide(text: Sequence[int], target: Any, draft: Any, draft_length: int, generator: Any) -> Any:
    return [0], torch.stack([draft(text)] * 2), [0]


def elsewhere(text: Sequence[int], target: Any, draft: Any, draft_length: int, generator: Any) -> Any:
    return [0], draft(text)[None], [1, 1]


def without_output(text: Sequence[int], target: Any, draft: Any, draft_length: int, generator: Any) -> Any:
    return [0], draft(text)[None], [int(torch.multinomial(torch.zeros(2), 1))]


def one_of_two(text: Sequence[int], target: Any, draft: Any, draft_length: int, generator: Any) -> Any:
    """Half of the runs end without an output."""
    weights = torch.zeros(2) if torch.rand(()) < 0.5 else target(text)
    return [0], torch.tensor([[1.0, 0.0]]), [int(torch.multinomial(weights, 1))]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (too_wide, r"finite real numbers of shape \(1, 2\): Tensor \(2, 2\)"),
        (elsewhere, "all but the last must be the start of a drafted path"),
        (without_output, "torch.multinomial: invalid multinomial distribution"),
    ],
)
def test_what_is_not_a_round(wrong: Any, says: str) -> None:
    found = audit(wrong, {"pair": SKEWED}, signature="round")
    assert not found
    assert found.cases[0].undefined == 1
    assert re.search(says, found.reasons[0])


def test_drafts_of_another_number_decide_nothing() -> None:
    """Not the law is wrong, but the question; the partner of one draft is asked for one."""
    found = audit(too_short, {"pair": SKEWED}, signature="round")
    assert found.verdict == UNDECIDED
    assert "drafted 0 tokens and was asked for 1; choose the pairs with --draft-length" in found.reasons[0]


def test_runs_without_an_output_are_counted() -> None:
    found = audit(one_of_two, {"pair": SKEWED}, signature="round")
    assert found.cases[0].undefined == Fraction(1, 2)
    assert "it makes no valid output with probability 1/2 = 0.5 on pair" in found.reasons[0]


def raises_on_one(text: Sequence[int], target: Any, draft: Any, draft_length: int, generator: Any) -> Any:
    """Right drafts, of which one ends without an output."""
    token = int(torch.multinomial(draft(text), 1))
    weights = torch.zeros(2) if token else target(text)
    return [token], draft(text)[None], [int(torch.multinomial(weights, 1))]


def test_drafts_are_not_blamed_for_runs_without_an_output() -> None:
    """Given an output they have another law than reported."""
    reasons = audit(raises_on_one, {"pair": SKEWED}, signature="round").reasons
    assert "it makes no valid output with probability 1/4" in reasons[0]
    assert CONTRACT not in reasons


def compares_noise(text: Sequence[int], target: Any, draft: Any, draft_length: int, generator: Any) -> Any:
    """Three races with the same numbers."""
    noise = torch.empty(2).exponential_()
    tokens = [int((row / noise).argmax()) for row in (draft(text), target(text), target(text))]
    return tokens[:1], draft(text)[None], tokens[1:2] if sum(tokens) else [0]


def test_what_cannot_be_followed_is_not_decided() -> None:
    found = audit(compares_noise, {"pair": SKEWED}, signature="round", within=0.05)
    assert (found.verdict, found.basis) == (UNDECIDED, "drawn")
    assert "three races with the same exponential random numbers" in found.reasons[0]


def multiplies(text: Sequence[int], target: Any, draft: Any, draft_length: int, generator: Any) -> Any:
    """Compares a product of two coins, whose cells are too many."""
    token = int(torch.multinomial(draft(text), 1))
    coins = torch.rand(2, generator=generator)
    return [token], draft(text)[None], [token, 0] if coins[0] * coins[1] < 0.3 else [1 - token]


def test_a_law_that_is_known_in_part_says_so() -> None:
    """The partner compares single coins."""
    for round_, is_known in ((multiplies, False), (speculative_round, True)):
        asked, pair = DraftingRound(round_).prepared(SKEWED)
        _, undecided = followed_law(asked, Question("skewed", pair, Iid(1), "1 independent path"))
        assert (undecided == 0) is is_known


def test_models_look_up_rows_after_the_whole_text() -> None:
    """Up to L tokens those of the pair; no long text has the row of another."""
    pair = random_dyadic(1, 2, 2)
    target = LookUpModel(pair.target, 2)
    for text in ([], [1], [0, 1], [1, 1]):
        row = pair.target[len(text)][int("".join(map(str, text)) or "0", 2)]
        assert target.row(text).tolist() == row.tolist()
    ids: Any = torch.tensor([0, 1])
    assert target(ids).tolist() == target([0, 1]).tolist()
    with pytest.raises(IndexError, match=r"about the token -1, not in 0\.\.1"):
        target([0, -1])


@pytest.mark.parametrize(("target", "longest"), [(["1/4", "3/4"], 12), (["1/4", "3/8", "3/8"], 7)])
def test_no_two_texts_have_the_same_row(target: list[str], longest: int) -> None:
    """Exact in float32, also where the pair has no contexts; rows that are certain stay certain."""
    size = len(target)
    texts, sure = all_contexts(size, longest), [1, *[0] * (size - 1)]
    free = ModelPair.context_free_pair(target, sure, 1)
    model = LookUpModel(free.target, size, alike=0)
    rows = {tuple(model.row(text).tolist()) for text in texts}
    assert len(rows) == len(texts)
    assert all(sum(row) == 1 and min(row) > Fraction(1, 8) for row in rows)
    for text in texts[:50]:
        assert model(text).double().tolist() == [float(prob) for prob in model.row(text)]
    certain = LookUpModel(free.draft, size, alike=0)
    assert {tuple(certain.row(text).tolist()) for text in texts} == {tuple(sure)}


def test_signatures_choose_what_is_shipped() -> None:
    """A round is not called with the drafts of others."""
    assert isinstance(as_shipped(speculative_round, "round"), DraftingRound)
    assert not isinstance(as_shipped(token_verification, "sampler"), DraftingRound)
    with pytest.raises(InvalidInputError, match="not called with given drafts"):
        SIGNATURES["round"].call(speculative_round, None, None)  # type: ignore[arg-type]
