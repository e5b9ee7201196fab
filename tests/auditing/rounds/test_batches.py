"""Batches: what is right alone and wrong beside another request is found, with its mechanism."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
import torch

from audit_support import SAID_OF
from audits.specimens.samplers import (
    BATCH_SPECIMENS,
    batch_token_verification,
    path_batch_recursive_rejection,
    path_batch_repeats_paths,
    recursive_rejection,
)
from deep import first_is_quick
from spectheory import certify, instances
from spectheory.auditing import audit
from spectheory.auditing.rounds import batches
from spectheory.auditing.rounds.batch_battery import (
    BESIDE_LONG,
    BESIDE_THREE,
    FIRST,
    KINDS,
    LONG,
    RAGGED,
    SECOND,
    THREE,
    batches_of,
    shapes_of_batches,
)
from spectheory.auditing.rounds.batches import _Judge, audit_batches
from spectheory.auditing.subjects.relaxations import synthetic_acceptance
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import Row
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.foundation.errors import InvalidInputError


@first_is_quick("name", BATCH_SPECIMENS)
def test_every_specimen_is_right_alone_and_wrong_in_a_batch(name: str) -> None:
    sampler = Shipped(BATCH_SPECIMENS[name], "batch")
    assert certify(sampler, instances.two_token(1), with_optimum=False).total_variation < Fraction(1, 10**6)
    audit_batches(sampler, stop_at_first=True)
    assert {kind for kind, _ in sampler.journal.findings} == {"batch"}
    assert any(SAID_OF[name] in text for _, text in sampler.journal.findings)


@pytest.mark.deep  # the headline below is of the same sampler, which is found right
def test_partner_requests_with_numbers_of_their_own_are_independent() -> None:
    """Whatever they mix; a placeholder is nothing to it, as its rows have no room for one."""
    sampler = Shipped(batch_token_verification, "batch")
    assert audit_batches(sampler) == ("equal lengths", "no drafts", "ragged", "padded", "greedy")
    assert sampler.journal.findings == set()
    assert sampler.journal.refused == []


def of_equal_tokens(rows: Any, generator: Any) -> Any:
    """Takes the rows of the first request for another one with its drafted tokens."""
    first = rows[0]
    known = [first if row.draft_tokens.equal(first.draft_tokens) else row for row in rows]
    return batch_token_verification(known, generator)


def of_equal_rows(rows: Any, generator: Any) -> Any:
    """Takes the drafted tokens of the first request for those of another one with its rows.

    What it accepts the other one has not drafted.
    """
    first = rows[0]
    known = [
        row._replace(draft_tokens=first.draft_tokens) if row.target_probs.equal(first.target_probs) else row
        for row in rows
    ]
    return batch_token_verification(known, generator)


def of_equal_requests(rows: Any, generator: Any) -> Any:
    """Verifies equal requests once."""
    found: dict[str, Any] = {}
    for row in rows:
        if str(row) not in found:
            found[str(row)] = batch_token_verification([row], generator)[0]
    return [found[str(row)] for row in rows]


def of_equal_drafts(rows: Any, generator: Any) -> Any:
    """Of two requests with equal drafts and draft rows the second gets the target's rows of the first."""
    first = rows[0]
    known = [
        row._replace(target_probs=first.target_probs)
        if len(row.draft_tokens) > 1 and row.draft_probs.equal(first.draft_probs)
        and row.draft_tokens.equal(first.draft_tokens) else row
        for row in rows
    ]  # fmt: skip
    return batch_token_verification(known, generator)


def of_equal_paths(requests: Any, generator: Any) -> Any:
    """As ``of_equal_tokens``, of several paths."""
    first = requests[0]
    known = [first if request.paths.equal(first.paths) else request for request in requests]
    return path_batch_recursive_rejection(known, generator)


@first_is_quick(
    ("function", "signature", "text"),
    [
        (of_equal_tokens, "batch", "another law than alone"),
        (of_equal_requests, "batch", "are not independent"),
        pytest.param(of_equal_rows, "batch", "has no valid output", marks=pytest.mark.deep),
        pytest.param(of_equal_drafts, "batch", "another law than alone", marks=pytest.mark.deep),
        pytest.param(of_equal_paths, "path_batch", "another law than alone", marks=pytest.mark.deep),
    ],
)
def test_requests_that_are_taken_for_each_other(function: Any, signature: str, text: str) -> None:
    sampler = Shipped(function, signature, mixes=())
    audit_batches(sampler, stop_at_first=True)
    assert any(text in found for _, found in sampler.journal.findings)


GREEDY: dict[str, tuple[Callable[[Any], bool], tuple[str, ...]]] = {
    "two greedy": (lambda rows: len(rows) > 1 and all(row.is_greedy for row in rows), ("greedy",)),
    "a greedy one beside another length": (
        lambda rows: len({len(row.draft_tokens) for row in rows}) > 1 and any(row.is_greedy for row in rows),
        ("greedy", "ragged"),
    ),
    "two greedy ones of other lengths": (
        lambda rows: len({len(row.draft_tokens) for row in rows}) > 1 and all(row.is_greedy for row in rows),
        ("ragged", "greedy"),
    ),
    "a greedy one with placeholders": (
        lambda rows: any(row.is_greedy and row.padding for row in rows),
        ("greedy", "padded"),
    ),
    "a greedy one beside placeholders": (
        lambda rows: any(row.is_greedy and not row.padding for row in rows)
        and any(row.padding and not row.is_greedy for row in rows),
        ("padded", "greedy"),
    ),
    "two placeholders": (lambda rows: any(row.padding > 1 for row in rows), ("padded",)),
}  # fmt: skip


@pytest.mark.deep  # quick ones are among the faults of test_faults.py
@pytest.mark.parametrize("name", GREEDY)
def test_kinds_of_batches_meet(name: str) -> None:
    """The partner of all is ``batch_token_verification`` with every kind, above."""
    is_wrong, mixes = GREEDY[name]

    def function(rows: Any, generator: Any) -> Any:
        return [[2]] * len(rows) if is_wrong(rows) else batch_token_verification(rows, generator)

    sampler = Shipped(function, "batch", mixes=mixes)
    audit_batches(sampler, stop_at_first=True)
    assert any("another law than alone" in text for _, text in sampler.journal.findings)


def masks(rows: Any, generator: Any) -> Any:
    """Beside another request the correction is the target without the rejected token."""
    return [_verified(row, generator, masked=len(rows) > 1) for row in rows]


def masks_single_drafts(rows: Any, generator: Any) -> Any:
    """As ``masks``, where every request has one draft."""
    single = len(rows) > 1 and all(len(row.draft_tokens) == 1 for row in rows)
    return [_verified(row, generator, masked=single) for row in rows]


def takes_third_rows_of_the_first(rows: Any, generator: Any) -> Any:
    """From the third draft on the rows are those of the first request."""
    known = [
        row if min(len(row.draft_tokens), len(rows[0].draft_tokens)) < 3
        else row._replace(target_probs=torch.cat([row.target_probs[:2], rows[0].target_probs[2:]]))
        for row in rows
    ]  # fmt: skip
    return batch_token_verification(known, generator)


def _verified(row: Any, generator: Any, masked: bool) -> list[int]:
    tokens = []
    for token, p, q in zip(row.draft_tokens.tolist(), row.target_probs, row.draft_probs, strict=False):
        if not torch.rand((), generator=generator) * q[token] < p[token]:
            left = p.index_fill(0, torch.tensor(token), 0.0) if masked else (p - q).clamp(min=0)
            return [*tokens, int(torch.multinomial(left, 1, generator=generator))]
        tokens.append(token)
    return [*tokens, int(torch.multinomial(row.target_probs[-1], 1, generator=generator))]


def paths_with(is_wrong: Callable[[int, Any], bool], **mistake: Any) -> Callable[..., Any]:
    """Recursive rejection with a mistake in some of the requests of a batch."""

    def function(requests: Any, generator: Any) -> Any:
        return [
            recursive_rejection(
                *request, generator, **mistake if len(requests) > 1 and is_wrong(place, request) else {}
            )
            for place, request in enumerate(requests)
        ]

    return function


def of_the_target(row: Any, p: Any, q: Any) -> Any:
    return (p - q).clamp(min=0)


@pytest.mark.parametrize(
    ("function", "signature", "mixes"),
    [
        (masks, "batch", ()),
        pytest.param(masks_single_drafts, "batch", (), marks=pytest.mark.deep),
        pytest.param(takes_third_rows_of_the_first, "batch", (), marks=pytest.mark.deep),
        (paths_with(lambda place, _: place > 0, tried_once=True), "path_batch", ()),
        *(
            pytest.param(paths_with(fails, residual=of_the_target), "path_batch", (), marks=pytest.mark.deep)
            for fails in (
                lambda _, each: len(each.paths) > 2,
                lambda _, each: each.paths.shape == (2, 2),
            )
        ),
    ],
)
def test_requests_have_three_tokens_and_all_shapes_that_are_named(
    function: Any, signature: str, mixes: tuple[str, ...]
) -> None:
    """Of two tokens a correction is never wrong; a sampler may be wrong for one number of drafts only."""
    sampler = Shipped(function, signature, mixes=mixes)
    audit_batches(sampler, stop_at_first=True)
    assert any("another law than alone" in text for _, text in sampler.journal.findings)


def nothing(rows: Any, generator: Any) -> Any:
    return []


def test_the_shapes_that_are_named_are_those_of_the_requests() -> None:
    """And every rejection leaves at least two tokens to the correction."""
    for signature in ("batch", "path_batch"):
        known = [batch for _, batch in batches_of(Shipped(nothing, signature))]
        assert {each[1].shape[-1] for batch in known for each in batch} == {3}
        assert {len(batch) for batch in known} | {1} == {1, 2, 3, 4}
    drafts = {each[2].shape[-2] for _, batch in batches_of(Shipped(nothing, "batch")) for each in batch}
    assert drafts == {0, 1, 2, 3}
    several = [each[0].shape for _, batch in batches_of(Shipped(nothing, "path_batch")) for each in batch]
    assert {(length, drafts) for drafts, length in several} == {(0, 1), (1, 1), (1, 2), (1, 3), (2, 2)}
    kinds = {"batch": ("equal lengths", RAGGED), "path_batch": ("equal lengths", RAGGED, "num_drafts")}
    said = {signature: shapes_of_batches(signature, asked) for signature, asked in kinds.items()}
    assert said == {
        "batch": "up to 4 requests, V = 3, L = 0 to 3",
        "path_batch": "up to 4 requests, V = 3, (L, K) = (0, 1), (1, 1), (1, 2), (2, 2), (1, 3)",
    }
    assert shapes_of_batches("batch", ["equal lengths"]) == "up to 4 requests, V = 3, L = 1 to 3"
    known = [batch for _, batch in batches_of(Shipped(nothing, "batch"))]
    lengths = {tuple(len(each.draft_tokens) for each in batch) for batch in known}
    # A third request after others of different lengths, and one without drafts at every place.
    assert {(1, 2, 3), (2, 0, 1), (0, 2, 2, 1), (3, 1, 0, 2), (1, 2, 0, 1)} <= lengths
    for row in (FIRST, SECOND, LONG, BESIDE_LONG, THREE, BESIDE_THREE):
        for token, target, draft in zip(*row[:3], strict=False):
            assert target[token] >= draft[token] or int((target > draft).sum()) == 2
    for row in (FIRST, SECOND, THREE, BESIDE_THREE):
        for token, target, draft in zip(*row[:3], strict=False):
            assert 0 < target[token] < draft[token]


@pytest.mark.parametrize(("mixes", "kind"), [(None, "ragged"), ((), "equal lengths")])
def test_the_joint_law_of_four_requests_is_asked_about_once(mixes: Any, kind: str) -> None:
    """Of all batches of four in which nobody is certain there is one, also where lengths cannot differ."""

    def is_open(row: Any) -> bool:
        return not bool((row[1].amax(-1) == 1).all())

    asked = batches_of(Shipped(batch_token_verification, "batch", mixes=mixes))
    assert [name for name, rows in asked if len(rows) == 4 and all(map(is_open, rows))] == [kind]


def at_rates(rows: Any, generator: Any) -> Any:
    """Accepts whatever the target's rows are."""
    even = [row._replace(target_probs=torch.full_like(row.target_probs, 1 / 3)) for row in rows]
    return batch_token_verification(even, generator)


@pytest.mark.deep
def test_batches_in_which_nobody_is_certain_are_left_out_and_the_scope_says_it() -> None:
    """A neighbour with certain rows has one output, so that the partner's batches have fewer."""
    for function, left_out in ((at_rates, 14), (batch_token_verification, 2)):
        sampler = Shipped(function, "batch", mixes=(), relaxation=synthetic_acceptance((Fraction(1, 2),) * 3))
        audit_batches(sampler)
        (text,) = sampler.journal.refused
        assert text.endswith(f"too many outputs together: {left_out} of them")
        assert not sampler.journal.findings


def test_batches_in_which_nobody_is_certain_are_of_few_requests() -> None:
    """A neighbour whose target is certain gets one text, unless the sampler accepts at rates of its own."""
    certain = FIRST._replace(target_probs=torch.eye(3)[[0, 1, 0]])
    stated = synthetic_acceptance((Fraction(1, 2),) * 3)
    for function, relaxation, has_many in (
        (at_rates, stated, True),
        (at_rates, None, False),  # which is wrong alone already
        (batch_token_verification, stated, False),
    ):
        judge = _Judge(Shipped(function, "batch", relaxation=relaxation))
        assert judge.has_many_outcomes((FIRST, certain)) is has_many
        assert not judge.has_many_outcomes((FIRST,))


def test_what_combined_numbers_hide_is_not_decided() -> None:
    """A law that is known to 0.1 only, and has no difference that is larger; the partner is known."""
    for undecided in (Fraction(1, 10), Fraction(0)):
        sampler = Shipped(batch_token_verification, "batch", mixes=())

        def known(rows: Any, behind: Any = None, undecided: Fraction = undecided) -> Any:
            return {tuple((0,) for _ in rows): Fraction(1)}, undecided

        sampler.batch_law = known  # type: ignore[method-assign]
        if undecided:
            with pytest.raises(NotEnumerableError, match=r"requests in batches are known to 0\.5 only"):
                audit_batches(sampler)
        else:
            assert audit_batches(sampler) == ("equal lengths",)
        assert sampler.journal.findings == set()


def test_a_request_without_an_answer() -> None:
    sampler = Shipped(lambda rows, generator: batch_token_verification(rows, generator)[:1], "batch")
    audit_batches(sampler, stop_at_first=True)
    ((_, text),) = sampler.journal.findings
    assert "no valid output" in text
    assert text.endswith("returned the tokens of 1 request, expected 2")


@pytest.mark.deep
def test_the_headline_names_the_batches() -> None:
    found = audit(batch_token_verification, {"two": instances.two_token(1)}, signature="batch")
    assert found.headline() == (
        "batch_token_verification: lossless on 1 case in float32 and in batches (equal lengths, "
        "no drafts, ragged, padded, greedy; up to 4 requests, V = 3, L = 0 to 3), (V, L, K) = (2, 1, 1)"
    )


@pytest.mark.deep
def test_requests_with_several_paths() -> None:
    """With other lengths and other numbers of paths; copies that fill up a request change its law."""
    for sampler, finds in ((path_batch_recursive_rejection, False), (path_batch_repeats_paths, True)):
        shipped = Shipped(sampler, "path_batch")
        assert audit_batches(shipped) == ("equal lengths", "ragged", "num_drafts")
        assert bool(shipped.journal.findings) is finds
        assert all("beside other requests (num_drafts)" in text for _, text in shipped.journal.findings)


def test_what_a_batch_cannot_mix() -> None:
    with pytest.raises(
        InvalidInputError, match=r"batches can mix no drafts, ragged, padded, greedy, seeds, got 'sampled'"
    ):
        audit_batches(Shipped(batch_token_verification, "batch", mixes=("sampled",)))


def test_an_audit_refuses_a_batch_before_it_asks() -> None:
    def sampler(*given: Any) -> Any:
        raise AssertionError("the sampler was asked")

    with pytest.raises(InvalidInputError, match="got 'sampled'"):
        audit(Shipped(sampler, "batch", mixes=("sampled",)))


def stacked(rows: Any, generator: Any) -> Any:
    """Token verification of requests whose rows are stacked, so that all have as many drafts."""
    drafted, p, q = (torch.stack([row[part] for row in rows]) for part in range(3))
    q.argmax(dim=1)  # of no drafts torch raises
    return [_verified(Row(*each), generator, masked=False) for each in zip(drafted, p, q, strict=True)]


def stacked_paths(requests: Any, generator: Any) -> Any:
    """Recursive rejection of requests that have as many paths and drafts."""
    parts = (torch.stack([request[part] for request in requests]) for part in range(3))
    return [recursive_rejection(*each, generator) for each in zip(*parts, strict=True)]


@pytest.mark.deep
@pytest.mark.parametrize(("sampler", "signature"), [(stacked, "batch"), (stacked_paths, "path_batch")])
def test_a_sampler_of_one_shape_is_judged_on_batches_of_one_shape(sampler: Any, signature: str) -> None:
    """It fails on all others, which the journal says; a partner that fails on some of them is wrong."""
    shipped = Shipped(sampler, signature, mixes=[kind for kind in KINDS[signature] if kind != "padded"][:2])
    assert audit_batches(shipped)[0] == "equal lengths"
    assert shipped.journal.findings == set()
    assert "other numbers of drafts, or of none: " in shipped.journal.refused[0]


def without_two_and_none(rows: Any, generator: Any) -> Any:
    if {len(row.draft_tokens) for row in rows} >= {0, 2}:
        raise RuntimeError("a request of none")
    if len(rows) == 3:
        raise RuntimeError("a third request")
    return batch_token_verification(rows, generator)


def asks_only(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    """Of the batches of an audit only those with these drafts."""

    def chosen(sampler: Shipped) -> Iterator[Any]:
        return (batch for batch in batches_of(sampler) if batches._words(batch[1]) in words)

    monkeypatch.setattr(batches, "batches_of", chosen)


def test_a_failure_is_named_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two failures each batch has its own; a call that fails as a whole is of no request."""
    asks_only(monkeypatch, "for drafts 2, 2, 2", "for drafts 2, 0, 1")
    sampler = Shipped(without_two_and_none, "batch", mixes=("ragged",))
    audit_batches(sampler, stop_at_first=True)
    ((_, text),) = sampler.journal.findings
    assert "probability 1 for drafts 2, 2, 2: sampler 'without_two_and_none' failed" in text
    assert "RuntimeError: a third request" in text


def finds_and_refuses(rows: Any, generator: Any) -> Any:
    """As ``masks``, and of different lengths what is not followed."""
    if len({len(row.draft_tokens) for row in rows}) > 1:
        torch.randn(1)
    return masks(rows, generator)


def test_what_is_not_followed_later_hides_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    asks_only(monkeypatch, "for drafts 1, 1", "for drafts 2, 0, 1")
    sampler = Shipped(finds_and_refuses, "batch", mixes=("ragged",))
    with pytest.raises(NotEnumerableError):
        audit_batches(sampler)
    assert any("another law than alone" in text for _, text in sampler.journal.findings)


def unpacks(rows: Any, generator: Any, greedy: Callable[[Any], list[int]]) -> Any:
    found = []
    for drafted, p, q, is_greedy, *_ in rows:
        row = Row(drafted, p, q)
        found.append(greedy(row) if is_greedy else _verified(row, generator, masked=False))
    return found


@pytest.mark.deep
@pytest.mark.parametrize("is_right", [False, True])
def test_a_sampler_that_unpacks_its_rows_is_asked_about_greedy_requests(is_right: bool) -> None:
    def likeliest(row: Any) -> list[int]:
        best, drafted = row.target_probs.argmax(-1).tolist(), row.draft_tokens.tolist()
        agree = next((n for n, token in enumerate(drafted) if token != best[n]), len(drafted))
        return best[: agree + 1] if is_right else [int(row.target_probs[0].argmin())]

    sampler = Shipped(partial(unpacks, greedy=likeliest), "batch", "unpacks", mixes=("greedy",))
    assert "greedy" in audit_batches(sampler, stop_at_first=not is_right)
    assert bool(sampler.journal.findings) is not is_right


def third_like_second(requests: Any, generator: Any, shares: bool = True) -> Any:
    """One draft of every request is verified; the third request has the coin of the second."""
    coins, found = torch.rand(len(requests), generator=generator), []
    for place, (paths, target, draft) in enumerate(requests):
        coin = coins[1 if place == 2 and shares else place]
        if not paths.shape[1] or coin * draft[0, 0, paths[0, 0]] < target[0, 0, paths[0, 0]]:
            accepted = paths[0, :1].tolist()
            weights = target[0, len(accepted)]
        else:
            accepted, weights = [], (target[0, 0] - draft[0, 0]).clamp(min=0)
        found.append([*accepted, int(torch.multinomial(weights, 1, generator=generator))])
    return found


@pytest.mark.deep
def test_third_requests_of_several_paths_are_followed_together_with_others() -> None:
    for shares in (True, False):
        sampler = Shipped(partial(third_like_second, shares=shares), "path_batch", "third", mixes=())
        audit_batches(sampler, stop_at_first=True)
        assert any("are not independent" in text for _, text in sampler.journal.findings) is shares
