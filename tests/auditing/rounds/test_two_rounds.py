"""Two rounds in a row: what the second shows, and when nothing is said of it."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import torch

from audits.specimens.rounds import ROUND_SPECIMENS, speculative_round
from deep import first_is_quick
from rounds_with_state import BATCHES, OneRequest
from spectheory import instances
from spectheory.auditing import audit
from spectheory.auditing.rounds import two_rounds
from spectheory.auditing.rounds.battery import audit_pairs, pairs_of_shapes, random_dyadic
from spectheory.auditing.rounds.two_calls import questions_of_calls
from spectheory.auditing.rounds.two_rounds import (
    ACCEPTED,
    ALSO_OPEN,
    JOINT,
    OF_REQUESTS,
    OPEN,
    REJECTED,
    follow_rounds,
)
from spectheory.auditing.subjects.asked import Question
from spectheory.auditing.subjects.drafting_rounds import DraftingRound
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.auditing.verdicts import sampler_audit
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS
from spectheory.pairs.drafts import Iid
from spectheory.pairs.pair import ModelPair

CERTAIN = ModelPair.context_free_pair(["1", "0"], ["1", "0"], 1)
HALVES, FIRST = ["1/2", "1/2"], ["1", "0"]
ALL_ACCEPTED = ModelPair.context_free_pair(HALVES, HALVES, 2)
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
    follow_rounds(sampler, pair)
    assert sampler.journal.pairs_of_calls > 10
    kinds = {kind for kind, _ in sampler.journal.findings}
    assert ("rounds" in kinds) is forgets


def test_the_cache_of_a_fully_accepted_path() -> None:
    """Only behind L+1 tokens; and nothing is said where the runs are too many."""
    wrong, mended = ROUND_SPECIMENS["cache_without_last_draft"]
    for round_, is_found in ((wrong, True), (mended, False)):
        sampler = DraftingRound(round_, "round")
        assert follow_rounds(sampler, ALL_ACCEPTED, max_runs=1) == "more than 1 runs"
        assert sampler.journal.findings == set()
        follow_rounds(sampler, ALL_ACCEPTED)
        assert sampler.journal.pairs_of_calls >= 2
        texts = [text for kind, text in sampler.journal.findings if kind == "rounds"]
        assert bool(texts) is is_found
        assert all(text.partition("[")[2].partition("]")[0].count(",") == 2 for text in texts)


def batch(texts: Sequence[Sequence[int]], *arguments: Any, mistake: str) -> Any:
    """Requests side by side; a mistake takes the shortest text's length, or the first result, for all."""
    length = min(map(len, texts)) if mistake == "one length" else None
    found = [speculative_round(text[:length], *arguments) for text in texts]
    return found[:1] * len(texts) if mistake == "one result" else found


@first_is_quick(
    ("mistake", "says"),
    [
        ("", None),
        ("one length", "the next round beside 1 other request does not have the target's law"),
        ("one result", "the tokens of two requests side by side are not independent"),
    ],
    quick=2,
)
def test_requests_that_accept_different_numbers(mistake: str, says: str | None) -> None:
    """Alone every request is right."""
    sampler = DraftingRound(partial(batch, mistake=mistake), "batch", "round_batch")
    assert follow_rounds(sampler, ONE_DRAFT, times=2) == ""
    assert sampler.journal.pairs_of_calls == 9
    assert sampler.journal.findings == set()
    assert follow_rounds(sampler, ONE_DRAFT, requests=2, times=2) == ""
    assert sampler.journal.pairs_of_calls == 9 + 81
    texts = [text for _, text in sampler.journal.findings]
    assert bool(texts) is (says is not None)
    assert says is None or any(says in text for text in texts)


def test_a_target_that_is_certain() -> None:
    """Rows without mass on a token, which no output continues with."""
    sampler = DraftingRound(speculative_round)
    follow_rounds(sampler, instances.bernoulli("1", "1/2"))
    assert sampler.journal.pairs_of_calls > 0
    assert sampler.journal.findings == set()


def of_one_text(texts: Sequence[Sequence[int]], *arguments: Any) -> Any:
    """Every request goes on from the text of the first."""
    return [speculative_round(texts[0], *arguments) for _ in texts]


@pytest.mark.deep
def test_an_audit_follows_texts_that_can_be_told_apart() -> None:
    """The first of these pairs has the same rows behind every text, and as many decisions."""
    texts = {"thirds": instances.two_token(2), "random dyadic, 2 tokens": random_dyadic(1, 2, 2)}
    wrong, mended = ROUND_SPECIMENS["cache_without_last_draft"]
    for round_, verdict in ((wrong, NOT_LOSSLESS), (mended, LOSSLESS)):
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


@pytest.mark.deep
def test_rounds_are_told_apart_in_the_shapes_that_are_asked() -> None:
    """A context that keeps one token of every round; the partner keeps all."""
    for most, is_lossless in ((1, False), (9, True)):
        round_ = partial(forgets, kept=[], most=most)
        found = audit(round_, pairs_of_shapes([3], [1]), signature="round")
        assert found.is_lossless is is_lossless
        assert found.scope.refused == ()


def test_texts_are_told_apart_where_the_rows_of_the_pair_are_equal() -> None:
    """The pair is free of contexts; the wrong round drops the second token of every text."""
    for dropped, is_lossless in ((1, False), (9, True)):
        drops = lambda text, *others, at=dropped: speculative_round([*text[:at], *text[at + 1 :]], *others)  # noqa: E731
        found = audit(drops, {"two": instances.two_token(1)}, signature="round")
        assert found.is_lossless is is_lossless
        assert found.scope.refused == ()


FEW_RUNS = {"two rounds": {"pair": ONE_DRAFT, "requests": 2, "times": 2}}


@pytest.mark.parametrize("asked", [FEW_RUNS, pytest.param(None, marks=pytest.mark.deep)], ids=["few", "all"])
def test_an_audit_follows_two_requests_side_by_side(asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if asked is not None:
        monkeypatch.setattr(sampler_audit, "OF_REQUESTS", asked)
    one_token = {"two": instances.two_token(1)}
    for round_, is_lossless in ((of_one_text, False), (partial(batch, mistake=""), True)):
        assert audit(round_, one_token, signature="round_batch").is_lossless is is_lossless


def test_what_is_not_followed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler_audit, "follow_rounds", lambda *given, **options: "too many runs")
    for round_, signature, said in (
        (speculative_round, "round", ("two rounds in a row on two: too many runs",)),
        (
            partial(batch, mistake=""),
            "round_batch",
            (
                "two rounds in a row on two: too many runs",
                *(f"{words}: too many runs" for words in OF_REQUESTS),
            ),
        ),
    ):
        found = audit(round_, {"two": instances.two_token(1)}, signature=signature)
        assert found.scope.refused == said
        assert f"refused or left out: {said[0].partition(':')[0]}" in found.headline()


FEW = ModelPair.context_free_pair(HALVES, FIRST, 2)
"""One path is drafted, and either token can be rejected."""
SINGLE = {
    "the cache doubles the prefix": FEW,
    "the cache is a window": FEW,
    "rolled back one too far": FEW,
    "rejected tokens stay in the state": ModelPair.context_free_pair(HALVES, FIRST, 1),
    "the draft lacks a token": ModelPair.context_free_pair(HALVES, HALVES, 1),
    "rows of the first round": ModelPair.context_free_pair(HALVES, HALVES, 1),
}
"""Mistake -> a pair of few runs on which it shows."""


@pytest.mark.parametrize("mistake", SINGLE)
def test_what_a_round_keeps_of_its_text(mistake: str) -> None:
    """The first round is right, and with a doubled prefix the second one too."""
    for round_, is_lossless in ((OneRequest(mistake), False), (OneRequest(), True)):
        assert audit(round_, {"few": SINGLE[mistake]}, signature="round").is_lossless is is_lossless


def test_drafts_may_come_from_a_wrong_text() -> None:
    """A round that reports the rows that it drew from is lossless, whatever text its draft reads."""
    lossy = OneRequest("the draft reads a cache of rejected tokens, and says so")
    assert audit(lossy, {"two": random_dyadic(1, 2, 1)}, signature="round").is_lossless


SHOWN_BY: dict[str, tuple[str, Any]] = {
    "draft_of_a_neighbour": ("two rounds of two requests", (OPEN, REJECTED)),
    "rows_in_order_of_length": ("two rounds of two requests", (REJECTED, ALSO_OPEN)),
    "positions_of_the_first": ("two rounds of two requests", (ALSO_OPEN, ACCEPTED)),
    "text_of_the_longest": ("two rounds of two requests", (ACCEPTED, OPEN)),
    "target_of_the_first_from_the_third_on": ("two rounds of three requests", (REJECTED, ACCEPTED, OPEN)),
    "caches_of_a_place": ("a new first request beside another", (REJECTED, ACCEPTED)),
    "coins_of_the_second_round": ("two rounds of two requests that are both open", ((0, 0), (1,))),
}
"""Batch of rounds -> one case that shows its mistake."""


@pytest.mark.parametrize("name", SHOWN_BY)
def test_requests_of_other_texts_and_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone every request is right, and beside one of the same text."""
    words, texts = SHOWN_BY[name]
    case: dict[str, Any] = {words: {**OF_REQUESTS[words], "behind": (texts,)}}
    monkeypatch.setattr(sampler_audit, "OF_REQUESTS", case)
    found = audit(partial(BATCHES[name], bad=True), {"one": CERTAIN}, signature="round_batch")
    assert not found.is_lossless
    assert JOINT in found.probes
    if name in ("draft_of_a_neighbour", "caches_of_a_place"):
        assert audit(partial(BATCHES[name], bad=False), {"one": CERTAIN}, signature="round_batch").is_lossless


@pytest.mark.deep
@pytest.mark.parametrize("name", BATCHES)
def test_an_audit_finds_what_requests_share(name: str) -> None:
    for bad in (True, False):
        found = audit(partial(BATCHES[name], bad=bad), {"two": CERTAIN}, signature="round_batch")
        assert found.is_lossless is not bad
        if not bad:  # a mistake can have too many runs
            assert all("not after 1 of 2 texts, more than 100 runs" in text for text in found.scope.refused)


def test_rounds_of_which_a_part_is_followed() -> None:
    """Texts of all lengths come first."""
    sampler = DraftingRound(speculative_round)
    pair = random_dyadic(1, 2, 1)
    assert follow_rounds(sampler, pair, times=2) == ""
    whole = sampler.journal.pairs_of_calls
    assert whole > 20
    assert follow_rounds(sampler, pair, max_runs=20, times=2).startswith("not after ")
    assert whole < sampler.journal.pairs_of_calls <= whole + 20
    assert sampler.journal.findings == set()


def test_third_rounds_that_are_not_followed_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler, pair = DraftingRound(speculative_round), random_dyadic(1, 2, 1)
    assert follow_rounds(sampler, pair) == ""
    for most, missed in ((1, 2), (7, 1)):
        monkeypatch.setattr(two_rounds, "MAX_RUNS_OF_A_THIRD", most)
        assert follow_rounds(sampler, pair) == f"not after {missed} of 2 texts, more than {most} runs"


def by_last_two(
    texts: Any, target: Any, draft: Any, draft_length: int, generator: Any, whole: bool = False
) -> list[Any]:
    """Requests share rows of the target if their texts have one length and the same two last tokens."""
    known: dict[Any, Any] = {}

    def kept(text: Any) -> Any:
        key = tuple(text) if whole else (len(text), *text[-2:])
        return known.setdefault(key, target(text))

    return [speculative_round(text, kept, draft, draft_length, generator) for text in texts]


def test_texts_of_two_requests_that_end_alike() -> None:
    """The partner shares rows of equal texts, which is right."""
    for whole in (False, True):
        sampler = DraftingRound(partial(by_last_two, whole=whole), "kept", "round_batch")
        assert not follow_rounds(sampler, **OF_REQUESTS["two rounds of two requests whose texts end alike"])
        assert bool(sampler.journal.findings) is not whole


def test_a_round_that_is_not_followed_hides_no_finding() -> None:
    """The second round draws from the target of the text's beginning; the third is not followed."""

    def play(text: Any, target: Any, *others: Any) -> Any:
        if len(text) > 3:
            torch.randn(1)
        return speculative_round(text, lambda known: target(known[len(text) :]), *others)

    sampler = DraftingRound(play, "lost")
    with pytest.raises(NotEnumerableError):
        follow_rounds(sampler, random_dyadic(1, 2, 1))
    assert any("does not have the target's law" in text for _, text in sampler.journal.findings)


def ends_at_once(texts: Any, target: Any, draft: Any, draft_length: int, generator: Any) -> list[Any]:
    """Lossless: no draft is accepted."""
    found = [speculative_round(text, target, draft, draft_length, generator) for text in texts]
    fresh = [int(torch.multinomial(target(text), 1, generator=generator)) for text in texts]
    return [(drafted, rows, [token]) for (drafted, rows, _), token in zip(found, fresh, strict=True)]


def test_texts_that_never_come_are_said() -> None:
    sampler = DraftingRound(ends_at_once, "ends", "round_batch")
    why = follow_rounds(sampler, **OF_REQUESTS["a new first request beside another"])
    assert why == "2 texts never come"
    assert sampler.journal.findings == set()
