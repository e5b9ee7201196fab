"""Rounds that draft and verify: mistakes between the two are found, and each mended round is lossless."""

from fractions import Fraction
from typing import Any

import pytest
import torch

from spectheory import audit
from spectheory.auditing.rounds.battery import pairs_of_rounds
from spectheory.auditing.subjects.round_specimens import ROUND_SPECIMENS, token_round
from spectheory.auditing.subjects.signatures import Models, Round
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.pairs.pair import ModelPair

PAIRS = pairs_of_rounds()
DRAFTS = ("contract", "drafts do not have the law of the rows that are reported for them")
UNEQUAL = {name: PAIRS[name] for name in ("unequal, 4 tokens",)}


@pytest.mark.parametrize("name", ROUND_SPECIMENS)
def test_a_mistake_is_found_and_the_mended_round_is_lossless(name: str) -> None:
    """With the same drafts law and rows; shared noise is the one that only the output shows."""
    specimen = ROUND_SPECIMENS[name]
    pairs = {"random": PAIRS["random dyadic, 3 tokens"]} if name == "off by one" else UNEQUAL
    wrong = audit(specimen.wrong, pairs, signature="round")
    assert wrong.is_defective
    assert any(reason.startswith("its law is not the target's") for reason in wrong.reasons)
    assert (DRAFTS in wrong.findings) is (name != "shared noise")
    mended = audit(specimen.mended, pairs, signature="round")
    assert (mended.verdict, mended.reasons) == ("lossless up to arithmetic", ())


def test_shared_noise_has_its_total_variation() -> None:
    """583/10730 on (.35, .35, .2, .1) and (.3, .05, .15, .5), up to float32."""
    found = audit(ROUND_SPECIMENS["shared noise"].wrong, UNEQUAL, signature="round")
    assert abs(found.total_variation - Fraction(583, 10730)) < Fraction(1, 10**6)


def test_two_rounds_in_a_row() -> None:
    """The second begins after the tokens of the first; one that begins a token early is wrong only there."""
    pairs = {"3 drafted": PAIRS["random dyadic, 3 drafted"]}
    right = token_round()

    def early(models: Models, generator: torch.Generator) -> Round:
        shift = bool(models.context)
        target = models.target

        def before(tokens: Any) -> torch.Tensor:
            return target(tokens[:-1] if shift else tokens)

        return right(models._replace(target=before), generator)

    for function, is_wrong in ((right, False), (early, True)):
        found = audit(function, pairs, signature="round")
        judged = [(case.process, case.is_wrong) for case in found.cases]
        assert judged == [("1 round", False), ("2 rounds", is_wrong)]


def test_numbers_that_a_second_round_reads_again() -> None:
    """A round with its own seed is lossless by itself; two in a row draw the same numbers."""
    right = token_round()

    def seeded(models: Models, generator: torch.Generator) -> Round:
        return right(models, torch.Generator().manual_seed(3))

    found = audit(seeded, {"3 drafted": PAIRS["random dyadic, 3 drafted"]}, signature="round")
    assert found.is_defective
    assert any(kind == "randomness" for kind, _ in found.findings)
    assert not found.cases[0].is_wrong


def test_what_is_not_a_round() -> None:
    """Tokens that were not drafted; fewer drafts than asked for."""
    pair = {"halves": ModelPair.context_free_pair(["1/2", "1/2"], ["1/2", "1/2"], 2)}
    row = torch.tensor([0.5, 0.5])
    for returned, says in (
        (Round([0, 1], torch.stack([row, row]), [1, 1, 0]), "must be the start of a drafted path"),
        (Round([0], row[None], [1]), "drafted 1 tokens, expected 2"),
    ):
        with pytest.raises(InvalidOutcomeError, match=says):
            audit(lambda models, generator, returned=returned: returned, pair, signature="round")
