"""Two calls in a row: on one small pair of each draft length, and on a path that leaves much open."""

from fractions import Fraction
from itertools import count
from typing import Any

import pytest
import torch

from audits.specimens.samplers import coins_of_positions, token_verification
from spectheory import audit, certify, instances
from spectheory.auditing.rounds.battery import audit_pairs, random_dyadic
from spectheory.auditing.rounds.joint_laws import marginal, total_variation
from spectheory.auditing.rounds.two_calls import (
    follow_in_a_row,
    follow_two_calls,
    least_accepted,
    questions_of_calls,
)
from spectheory.auditing.subjects.asked import Question
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.tape.decisions import HiddenRandomnessError, Tape
from spectheory.pairs.drafts import Iid
from spectheory.pairs.pair import ModelPair


def one_path(pair: ModelPair, name: str = "") -> Question:
    return Question(name, pair, Iid(1), "1 independent path")


def test_one_pair_of_each_draft_length() -> None:
    """One whose corrections are between two tokens, and no large one; a large one where there is no other."""
    pairs = audit_pairs()
    asked = [one_path(pair, name) for name, pair in pairs.items()]
    chosen = [question.name for question in questions_of_calls(asked)]
    assert chosen == ["two residual tokens", "thirds", "dyadic, 3 drafted"]
    large = one_path(pairs["random dyadic, 3 tokens"])
    assert list(questions_of_calls([large])) == [large]


def test_the_path_is_neither_accepted_nor_rejected_for_certain() -> None:
    """Where the models are equal, or a token is forbidden, nothing is open."""
    pairs = audit_pairs()
    assert least_accepted(pairs["thirds"]) == ((0, 0), 2)
    assert least_accepted(pairs["two residual tokens"])[1] == 2
    assert least_accepted(pairs["equal models"])[1] == 0
    forbidden = ModelPair.context_free_pair(["0", "1/4", "3/4"], ["1/4", "1/2", "1/4"], 1)
    assert least_accepted(forbidden) == ((1,), 1)


def in_the_next_call(shipped: Shipped) -> set[str]:
    return {text for _, text in shipped.journal.findings}


def test_what_is_found_there() -> None:
    """A coin that two calls use; nothing where numbers are fresh, and nothing without a correction by two."""
    for sampler, pair, finds in (
        (coins_of_positions, instances.two_residual_tokens(1), True),
        (coins_of_positions, instances.two_token(1), False),
        (token_verification, instances.two_residual_tokens(1), False),
    ):
        shipped = Shipped(sampler, "sampler")
        follow_two_calls(shipped, one_path(pair))
        assert shipped.journal.pairs_of_calls > 1
        assert bool(in_the_next_call(shipped)) is finds


def reseeds(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    """Lossless in one call, but every call reads the same numbers."""
    torch.manual_seed(0)
    return [int(torch.multinomial(target_rows[0, 0], 1))]


def test_two_calls_that_read_the_same_numbers() -> None:
    """One call is lossless; only two in a row show it."""
    pair = instances.bernoulli("1/2", "1/4")
    shipped = Shipped(reseeds, "sampler")
    assert certify(shipped, pair, with_optimum=False).total_variation == 0
    assert shipped.journal.findings == {("contract", "it gives torch's global generator a seed")}
    follow_two_calls(shipped, one_path(pair))
    assert {kind for kind, _ in shipped.journal.findings} == {"contract", "randomness"}
    right = Shipped(token_verification, "sampler")
    assert follow_two_calls(right, one_path(pair)) == ""
    assert right.journal.findings == set()


TWO_TOKENS, THREE_TOKENS = (
    one_path(ModelPair.context_free_pair(row, ["1", "0", "0"], 1))
    for row in (["1/2", "0", "1/2"], ["1/2", "1/4", "1/4"])
)
"""A token that is accepted with probability 1/2, and one residual token, or two."""


def test_numbers_of_one_call_in_the_next() -> None:
    """Every branch of the first call is followed: only a rejection uses the coin of the next position, and
    only where it draws one of two tokens; the law of both calls says the same."""
    shipped = Shipped(coins_of_positions, "sampler")
    assert follow_two_calls(shipped, TWO_TOKENS) == ""
    assert shipped.journal.pairs_of_calls == 9
    assert in_the_next_call(shipped) == set()
    assert follow_two_calls(shipped, THREE_TOKENS, most=2) == "not after 5 of 5 texts, more than 2 runs"
    assert shipped.journal.pairs_of_calls == 9
    shipped = Shipped(coins_of_positions, "sampler")
    assert follow_two_calls(shipped, THREE_TOKENS) == ""  # after a rejection the next coin is known
    assert shipped.journal.pairs_of_calls == 20  # the runs that find it again are not counted
    assert in_the_next_call(shipped) == {
        "rand reads random numbers that rand has used in the call before",
        "after the tokens [1] the next call has another law, total variation 0.5",
    }


def test_partner_numbers_of_their_own() -> None:
    shipped = Shipped(token_verification, "sampler")
    follow_two_calls(shipped, THREE_TOKENS)
    assert shipped.journal.pairs_of_calls == 25
    assert shipped.journal.findings == set()


class OnlyTheFirst:
    """Token verification, whose calls after the first one of a run do something else before."""

    __name__ = "only_the_first"
    known: Any = None

    def __init__(self, later: Any) -> None:
        self.later = later

    def __call__(self, paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
        is_first, self.known = self.known is not generator, generator
        if not is_first:
            self.later(generator)
        return token_verification(paths, target, draft, generator)


def test_why_the_second_call_is_not_followed() -> None:
    """The reason is the error's own; the partner's second call is followed."""
    normal = OnlyTheFirst(lambda generator: torch.randn(1, generator=generator))
    why = follow_two_calls(Shipped(normal, "sampler"), THREE_TOKENS)
    assert why.startswith("the sampler draws from aten.randn")
    nothing = OnlyTheFirst(lambda generator: None)
    assert follow_two_calls(Shipped(nothing, "sampler"), THREE_TOKENS) == ""


@pytest.mark.parametrize("behind", [None, [((0,),)]])
@pytest.mark.parametrize("is_known", [True, False])
def test_a_first_call_whose_law_is_not_known_is_said(behind: Any, is_known: bool) -> None:
    """Also if the second call, whose law is known, is followed only after some texts."""

    def play(tape: Tape, times: int) -> list[Any]:
        tape.is_approximate = times == 1 and not is_known
        return [((tape.decide((Fraction(1, 2), Fraction(1, 2))),),) for _ in range(times)]

    sampler = Shipped(token_verification, "sampler")
    why = follow_in_a_row(sampler, play, lambda texts: texts[-1], lambda *_: None, (9, 9), behind)
    assert why == ("" if is_known else "random numbers are combined")


class WarmsUp:
    """Token verification.  After an acceptance the first call compares a product too, without effect."""

    __name__ = "warms_up"
    known: Any = None

    def __init__(self, product: bool) -> None:
        self.product = product

    def __call__(self, paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
        is_first, self.known = self.known is not generator, generator
        found = token_verification(paths, target, draft, generator)
        if is_first and len(found) > 1:
            one, other = torch.rand((), generator=generator), torch.rand((), generator=generator)
            bool((one * other if self.product else one) < 0.0001)
        return found


@pytest.mark.parametrize("product", [True, False])
def test_a_second_call_is_not_compared_with_a_law_that_is_not_known(product: bool) -> None:
    sampler = Shipped(WarmsUp(product), "sampler")
    assert ("random numbers are combined" in follow_two_calls(sampler, TWO_TOKENS)) is product
    assert in_the_next_call(sampler) == set()


def test_hidden_numbers_of_the_second_call() -> None:
    """A state changes what later calls ask for; the partner asks for the same in every run."""
    calls = count(1)
    changing = OnlyTheFirst(lambda generator: bool(torch.rand((), generator=generator) < 1 / next(calls)))
    with pytest.raises(HiddenRandomnessError, match="it keeps state"):
        follow_two_calls(Shipped(changing, "sampler"), THREE_TOKENS)
    same = OnlyTheFirst(lambda generator: bool(torch.rand((), generator=generator) < 1 / 4))
    assert follow_two_calls(Shipped(same, "sampler"), THREE_TOKENS) == ""


def test_total_variation_is_a_metric_up_to_1() -> None:
    """0 for equal laws, 1 for disjoint laws, symmetric, with the triangle inequality."""
    law = {(0, 0): Fraction(1, 2), (0, 1): Fraction(1, 8), (1, 1): Fraction(1, 8), (1, 2): Fraction(1, 4)}
    assert marginal(law, 1) == {0: Fraction(1, 2), 1: Fraction(1, 4), 2: Fraction(1, 4)}
    laws = [marginal(law, 0), marginal(law, 1), {7: Fraction(1)}]
    for a in laws:
        assert total_variation(a, a) == 0
        for b in laws:
            assert total_variation(a, b) == total_variation(b, a)
            assert (total_variation(a, b) == 1) is not any(a.get(key, 0) * b.get(key, 0) for key in {*a, *b})
            assert all(total_variation(a, b) <= total_variation(a, c) + total_variation(c, b) for c in laws)


def draws_everything(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
    """Every correction is drawn before the first coin."""
    left = torch.cat([(target[0, :-1] - draft[0]).clamp(min=0) + 1e-9 * target[0, :-1], target[0, -1:]])
    drawn = [int(torch.multinomial(row, 1, generator=generator)) for row in left]
    for place, token in enumerate(paths[0].tolist()):
        if torch.rand((), generator=generator) * draft[0, place, token] >= target[0, place, token]:
            return [*paths[0, :place].tolist(), drawn[place]]
    return [*paths[0].tolist(), drawn[-1]]


@pytest.mark.deep
def test_the_scope_says_where_the_law_of_two_calls_is_not_known() -> None:
    """The partner has few branches."""
    for sampler, is_open in ((draws_everything, True), (token_verification, False)):
        found = audit(sampler, {"three": random_dyadic(3, 3, 2)}, drafts=[1])
        words = "two calls in a row on three"
        assert any(f"{words}: not after" in text for text in found.scope.refused) is is_open
        assert (f"left out: {words}" in found.headline()) is is_open
