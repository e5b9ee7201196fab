"""Every schedule, draft map and processor with a mistake is found, and its right partner is accepted."""

from typing import Any

import pytest

from audits.specimens.drafters import DRAFTER_SPECIMENS, both_if_equal, drop_unlikely, penalise, reorder
from spectheory import ModelPair, audit
from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.pairs.processors import presence_penalty


@pytest.mark.parametrize("name", DRAFTER_SPECIMENS)
def test_a_mistake_is_found_and_its_partner_is_accepted(name: str) -> None:
    signature, wrong, right = DRAFTER_SPECIMENS[name]
    found = audit(wrong, signature=signature)
    assert found.verdict == "not lossless", found.headline()
    assert found.total_variation > 0
    assert audit(right, signature=signature).verdict == "lossless"


def test_a_schedule_has_its_draft_defect() -> None:
    """p = q = (3/4, 1/4), the second token dropped: δ = 3/16, the output starts with 0 in 15/16 (8.4)."""
    pair = ModelPair.context_free_pair(["3/4", "1/4"], ["3/4", "1/4"], 1)
    found = audit(drop_unlikely, {"quarters": pair}, signature="schedule")
    assert str(found.total_variation) == "3/16"
    assert [case.num_drafts for case in found.cases] == [1]  # one request is enough


def test_a_small_threshold_is_reached() -> None:
    """A schedule that drops tokens below 1/100 is right on flat rows."""
    rare = audit(lambda tokens, rows: drop_unlikely(tokens, 50 * rows), signature="schedule")
    assert (rare.verdict, "tiny" in rare.reasons[0]) == ("not lossless", True)


def test_a_batch_can_be_wrong_where_every_request_is_right() -> None:
    """Two fair requests of one token, verified if their tokens agree: 1/4 (8.7)."""
    fair = ModelPair.context_free_pair(["1/2", "1/2"], ["1/2", "1/2"], 1)
    found = audit(both_if_equal, {"fair": fair}, signature="schedule")
    assert [(case.num_drafts, str(case.total_variation)) for case in found.cases] == [(1, "0"), (2, "1/4")]
    assert "every request by itself is right" in found.reasons[0]


def test_processors_are_compared_with_a_stated_processor() -> None:
    """A window that agrees with its own rows one by one can still be another processor."""
    stated = {factor: audit(penalise, signature="processors", processor=presence_penalty(factor)).verdict
              for factor in ("1/2", "1/4")}  # fmt: skip
    assert stated == {"1/2": "lossless", "1/4": "not lossless"}


@pytest.mark.parametrize(
    ("function", "signature", "verdict", "words"),
    [
        (lambda tokens, rows: [3] * len(tokens), "schedule", "not lossless", "number of tokens from 0 to 2"),
        (lambda tokens, rows: [], "schedule", "not lossless", "or 1 of them"),
        (lambda tokens, rows: 1 / 0, "schedule", "not lossless", "ZeroDivisionError"),
        (lambda tokens, rows: (tokens, rows[:0]), "draft_map", "undecided", "vocabulary"),
        (lambda text, drafted, rows: rows[:1], "processors", "not lossless", "1 rows"),
    ],
)
def test_answers_of_a_wrong_form_are_named(function: Any, signature: str, verdict: str, words: str) -> None:
    found = audit(function, signature=signature)
    assert (found.verdict, words in found.reasons[0]) == (verdict, True), found.reasons


def test_a_schedule_with_state_is_undecided() -> None:
    """What it answers to the same drafts changes, so its law is unknown."""
    calls: list[int] = []

    def forgets_every_other_call(tokens: Any, rows: Any) -> list[int]:
        calls.append(1)
        return [len(calls) % 2] * len(tokens)

    found = audit(forgets_every_other_call, signature="schedule")
    assert found.verdict == "undecided"
    assert "keeps state" in found.reasons[0]


def test_a_draft_map_of_the_users_vocabulary() -> None:
    """A table of four tokens fails on three: with a given pair this is a defect of the function."""
    found = audit(reorder, {"three": random_dyadic(1, 3, 1)}, signature="draft_map")
    assert found.verdict == "not lossless"
    assert "it raises" in found.reasons[0]
