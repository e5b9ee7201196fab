"""Two rounds in a row: what the second shows, and when nothing is said of it."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from spectheory import instances
from spectheory.auditing import audit
from spectheory.auditing.rounds.battery import audit_pairs, pairs_of_shapes, random_dyadic
from spectheory.auditing.rounds.questions import Question
from spectheory.auditing.rounds.two_calls import questions_of_calls
from spectheory.auditing.rounds.two_rounds import follow_rounds
from spectheory.auditing.subjects.drafting_rounds import DraftingRound
from spectheory.auditing.subjects.round_specimens import ROUND_SPECIMENS, speculative_round
from spectheory.auditing.verdicts import sampler_audit
from spectheory.auditing.verdicts.audit_certificate import ARITHMETIC, DEFECT
from spectheory.pairs.drafts import Iid
from spectheory.pairs.pair import ModelPair

HALVES, FIRST, SECOND = ["1/2", "1/2"], ["1", "0"], ["0", "1"]
LAST_TWO = ModelPair.from_contexts(
    {(): HALVES, (0,): FIRST, (1,): FIRST, (0, 0): FIRST, (0, 1): FIRST, (1, 0): SECOND, (1, 1): SECOND},
    {(): HALVES, (0,): FIRST, (1,): FIRST},
    2,
)
"""The target depends on the last two tokens, and all drafts of the first round are accepted."""


ONE_DRAFT = ModelPair.from_contexts({(): HALVES, (0,): ["1/4", "3/4"], (1,): ["3/4", "1/4"]}, {(): FIRST}, 1)
"""One path that is drafted, accepted or rejected: few runs, and texts of one token or two."""


def keeps(text: Sequence[int], *arguments: Any, forgets: bool) -> Any:
    """A text in a cache, to which every round adds what the caller says that it lacks."""
    if not text or not forgets:
        _CACHE.clear()
    _CACHE.extend(text[len(_CACHE) :])
    found = speculative_round(list(_CACHE), *arguments)
    _CACHE.extend(found[0] if forgets else [])
    return found


_CACHE: list[int] = []


@pytest.mark.parametrize("forgets", [True, False])
def test_a_cache_that_keeps_rejected_drafts(forgets: bool) -> None:
    """The first round is right in either case: only the second knows what the first has left."""
    sampler = DraftingRound(partial(keeps, forgets=forgets), "keeps")
    pair = random_dyadic(1, 2, 1)
    assert follow_rounds(sampler, pair)[0] > 10
    kinds = {kind for kind, _ in sampler.journal.findings}
    assert ("rounds" in kinds) is forgets


def test_the_cache_of_a_fully_accepted_path() -> None:
    """Only behind L+1 tokens; and nothing is said where the runs are too many."""
    wrong, mended = ROUND_SPECIMENS["cache_without_last_draft"]
    for round_, is_found in ((wrong, True), (mended, False)):
        sampler = DraftingRound(round_, "round")
        assert follow_rounds(sampler, LAST_TWO, max_runs=1) == (0, "more than 1 runs")
        assert sampler.journal.findings == set()
        runs, _ = follow_rounds(sampler, LAST_TWO)
        assert sampler.journal.pairs_of_calls == runs >= 2
        texts = [text for kind, text in sampler.journal.findings if kind == "rounds"]
        assert bool(texts) is is_found
        assert all(text.partition("[")[2].partition("]")[0].count(",") == 2 for text in texts)


def batch(texts: Sequence[Sequence[int]], *arguments: Any, mistake: str) -> Any:
    """Requests side by side; a mistake takes the shortest text's length, or the first result, for all."""
    length = min(map(len, texts)) if mistake == "one length" else None
    found = [speculative_round(text[:length], *arguments) for text in texts]
    return found[:1] * len(texts) if mistake == "one result" else found


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        ("", None),
        ("one length", "the next round beside 1 other request does not have the target's law"),
        ("one result", "the tokens of two requests side by side are not independent"),
    ],
)
def test_requests_that_accept_different_numbers(mistake: str, says: str | None) -> None:
    """Alone every request is right."""
    sampler = DraftingRound(partial(batch, mistake=mistake), "batch", "round_batch")
    assert follow_rounds(sampler, ONE_DRAFT) == (9, "")
    assert sampler.journal.findings == set()
    assert follow_rounds(sampler, ONE_DRAFT, requests=2) == (81, "")
    texts = [text for _, text in sampler.journal.findings]
    assert bool(texts) is (says is not None)
    assert says is None or any(says in text for text in texts)


def test_a_target_that_is_certain() -> None:
    """Rows without mass on a token, which no output continues with."""
    sampler = DraftingRound(speculative_round)
    assert follow_rounds(sampler, instances.bernoulli("1", "1/2"))[0] > 0
    assert sampler.journal.findings == set()


def of_one_text(texts: Sequence[Sequence[int]], *arguments: Any) -> Any:
    """Every request goes on from the text of the first."""
    return [speculative_round(texts[0], *arguments) for _ in texts]


def test_an_audit_follows_texts_that_can_be_told_apart() -> None:
    """The first of these pairs has the same rows behind every text, and as many decisions."""
    texts = {"thirds": instances.two_token(2), "random dyadic, 2 tokens": random_dyadic(1, 2, 2)}
    wrong, mended = ROUND_SPECIMENS["cache_without_last_draft"]
    for round_, verdict in ((wrong, DEFECT), (mended, ARITHMETIC)):
        assert audit(round_, texts, signature="round").verdict == verdict
    pairs = audit_pairs()
    asked = [Question(name, pair, Iid(1), "") for name, pair in pairs.items()]
    chosen = [question.name for question in questions_of_calls(asked, needs_texts=True)]
    assert chosen == ["random dyadic, 4 tokens", "random dyadic, 2 tokens", "random dyadic, 3 drafted"]


def forgets(text: Sequence[int], *arguments: Any, kept: list[int], most: int) -> Any:
    """Keeps only so many tokens of every round, and reads on behind these."""
    if not text:
        kept.clear()
    played = speculative_round(list(kept), *arguments)
    kept += played[2][:most]
    return played


def test_rounds_are_told_apart_in_the_shapes_that_are_asked() -> None:
    """A context that keeps one token of every round; the partner keeps all."""
    for most, is_lossless in ((1, False), (9, True)):
        round_ = partial(forgets, kept=[], most=most)
        found = audit(round_, pairs_of_shapes([3], [1]), signature="round")
        assert found.is_lossless is is_lossless
        assert found.scope.refused == ()


def test_the_scope_says_where_no_text_is_told_apart() -> None:
    found = audit(speculative_round, {"two": instances.two_token(1)}, signature="round")
    assert found.scope.refused == ("two rounds with other rows behind every text, L = 1: two has equal ones",)


FEW_RUNS = {"two rounds": (ONE_DRAFT, 2)}


@pytest.mark.parametrize("asked", [FEW_RUNS, pytest.param(None, marks=pytest.mark.deep)], ids=["few", "all"])
def test_an_audit_follows_two_requests_side_by_side(asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if asked is not None:
        monkeypatch.setattr(sampler_audit, "OF_TWO_REQUESTS", asked)
    one_token = {"two": instances.two_token(1)}
    for round_, is_lossless in ((of_one_text, False), (partial(batch, mistake=""), True)):
        assert audit(round_, one_token, signature="round_batch").is_lossless is is_lossless


def test_what_is_not_followed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler_audit, "follow_rounds", lambda *given, **options: (0, "too many runs"))
    for round_, signature, said in (
        (speculative_round, "round", ("two rounds in a row on two: too many runs",)),
        (
            partial(batch, mistake=""),
            "round_batch",
            (
                "two rounds in a row on two: too many runs",
                "two rounds of two requests side by side: too many runs",
                "one round of two requests side by side: too many runs",
            ),
        ),
    ):
        found = audit(round_, {"two": instances.two_token(1)}, signature=signature)
        assert found.scope.refused == said
        assert f"refused or left out: {said[0].partition(':')[0]}" in found.headline()
