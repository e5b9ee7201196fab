"""The coins of later drafts are inside (0, 1): a sampler that tosses none, or shares one, is found."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from audits.specimens.samplers import batch_token_verification, recursive_rejection
from deep import first_is_quick
from spectheory import audit
from spectheory.auditing.rounds.batches import audit_batches
from spectheory.auditing.rounds.battery import pairs_of_several_paths, pairs_of_shapes
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import Request, Row
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS
from spectheory.pairs.pair import ModelPair


def inner_coins(target: np.ndarray, draft: np.ndarray, num_drafts: int) -> list[bool]:
    """Of every draft that recursive rejection can try, whether some token's coin is inside (0, 1)."""
    row, found = target, []
    for _ in range(num_drafts):
        found.append(any(q and 0 < p / q < 1 for p, q in zip(row, draft, strict=True)))
        left = [max(p - q, Fraction(0)) for p, q in zip(row, draft, strict=True)]
        if not sum(left):
            break
        row = [value / sum(left) for value in left]
    return found


@pytest.mark.parametrize("num_drafts", [2, 3])
def test_a_coin_of_the_last_draft_is_inside(num_drafts: int) -> None:
    """At the root with one draft and with two, and behind one token; in V = 3, and of V = 4 at the root."""
    places = set()
    for pair in pairs_of_several_paths(num_drafts).values():
        for depth in range(pair.draft_length):
            likely = pair.draft_path_probs(depth) > 0
            for target, draft in zip(pair.target[depth][likely], pair.draft[depth][likely], strict=True):
                if [*inner_coins(target, draft, num_drafts), False][num_drafts - 1 : num_drafts] == [True]:
                    places.add((pair.vocab_size, pair.draft_length, depth))
    assert {(3, 1, 0), (4, 1, 0), (3, 2, 0), (3, 2, 1)} <= places


@pytest.mark.parametrize(("vocab_size", "num_drafts"), [(3, 2), (3, 3), (4, 2), (4, 3)])
def test_asked_shapes_have_it_too(vocab_size: int, num_drafts: int) -> None:
    pairs: dict[str, ModelPair] = pairs_of_shapes([vocab_size], [1])
    coins = [inner_coins(pair.target[0][0], pair.draft[0][0], num_drafts) for pair in pairs.values()]
    assert any(found[num_drafts - 1 :] == [True] for found in coins)


def of_several_drafts(wrong: str, paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
    """Recursive rejection with a mistake, named by draft and depth."""
    alive, tokens = list(range(len(paths))), []
    for depth in range(paths.shape[1]):
        row, shared = target[alive[0], depth], torch.rand((), generator=generator)
        for tried, path in enumerate(alive, start=1):
            token = int(paths[path, depth])
            coin = shared if wrong == "one coin" else torch.rand((), generator=generator)
            free = wrong in (f"free {tried}", f"free {tried} at {depth}")
            if row[token] > 0 and (free or coin * draft[path, depth, token] < row[token]):
                break
            row = (row - draft[path, depth]).clamp(min=0)
            row = row / row.sum()
        else:
            return [*tokens, int(torch.multinomial(row, 1, generator=generator))]
        alive = [other for other in alive if int(paths[other, depth]) == token]
        tokens.append(token)
    return [*tokens, int(torch.multinomial(target[alive[0], -1], 1, generator=generator))]


@pytest.mark.deep
@pytest.mark.parametrize(
    "wrong", ["free 2 at 0", "", "one coin", "free 2", "free 3 at 0", "free 3", "free 3 at 1"]
)
def test_coins_of_later_drafts(wrong: str) -> None:
    """All are lossless for one path; the partner is recursive rejection."""

    def sampler(*given: Any) -> list[int]:
        return of_several_drafts(wrong, *given)

    numbers = [3] if "3" in wrong else [2]
    pairs = pairs_of_several_paths(numbers[0])
    assert audit(sampler, drafts=numbers, pairs=pairs).verdict == (NOT_LOSSLESS if wrong else LOSSLESS)


def batch_with(wrong: str, rows: Sequence[Row], generator: Any) -> list[list[int]]:
    """Token verification of every request, wrong with three drafts only."""
    shared, found = torch.rand(2 * len(rows) + 2, generator=generator), []
    for number, row in enumerate(rows):
        coins = torch.rand(4, generator=generator)
        if wrong == "early coins" and len(row.draft_tokens) == 3:
            coins = torch.cat([shared[:2], coins[2:]])
        if wrong == "stride":
            coins = shared[2 * (len(rows) - 1 - number) :]
        for place, token in enumerate(row.draft_tokens.tolist()):
            if coins[place] * row.draft_probs[place, token] < row.target_probs[place, token]:
                continue
            source = row
            if wrong == "neighbour" and number == 0 and place < 2 and len(row.draft_tokens) == 3:
                source = rows[-1] if len(rows[-1].draft_tokens) > place else row
            left = (source.target_probs[place] - source.draft_probs[place]).clamp(min=0)
            tokens = [
                *row.draft_tokens[:place].tolist(),
                int(torch.multinomial(left, 1, generator=generator)),
            ]
            break
        else:
            last = torch.multinomial(row.target_probs[-1], 1, generator=generator)
            tokens = [*row.draft_tokens.tolist(), int(last)]
        found.append(tokens)
    return found


@first_is_quick("wrong", ["neighbour", "early coins", "stride"])
def test_every_place_of_three_drafts_is_rejected_in_a_batch(wrong: str) -> None:
    sampler = Shipped(lambda *given: batch_with(wrong, *given), "batch", name="three")
    audit_batches(sampler, stop_at_first=True)
    assert sampler.journal.findings


def one_coin_for_all(number: int, length: int) -> Callable[..., Any]:
    """The requests of a batch with so many tokens share the coin of a draft at the root."""

    def sampler(requests: Sequence[Request], generator: Any) -> list[list[int]]:
        shared, found = torch.rand((), generator=generator), []
        for paths, target, draft in requests:
            alive, tokens = list(range(len(paths))), []
            for depth in range(paths.shape[1]):
                row = target[alive[0], depth]
                for tried, path in enumerate(alive, start=1):
                    token, coin = int(paths[path, depth]), torch.rand((), generator=generator)
                    if (tried, paths.shape[1], depth) == (number, length, 0):
                        coin = shared
                    if coin * draft[path, depth, token] < row[token]:
                        break
                    row = (row - draft[path, depth]).clamp(min=0)
                    row = row / row.sum()
                else:
                    tokens.append(int(torch.multinomial(row, 1, generator=generator)))
                    break
                alive = [other for other in alive if int(paths[other, depth]) == token]
                tokens.append(token)
            else:
                tokens.append(int(torch.multinomial(target[alive[0], -1], 1, generator=generator)))
            found.append(tokens)
        return found

    return sampler


@first_is_quick(
    ("number", "length", "finds"),
    [pytest.param(3, 1, True, marks=pytest.mark.deep), (2, 2, True), (2, 1, True), (4, 1, False)],
)
def test_requests_that_share_the_coin_of_a_later_draft(number: int, length: int, finds: bool) -> None:
    """The partner shares that of a fourth draft, which no request has."""
    sampler = Shipped(one_coin_for_all(number, length), "path_batch")
    audit_batches(sampler, stop_at_first=True)
    assert any("are not independent" in text for _, text in sampler.journal.findings) is finds


def changed(paths: Any, target: Any, draft: Any, generator: Any, change: Callable[[Any, Any], Any]) -> Any:
    """Recursive rejection, on changed rows where there are several paths."""
    if len(paths) > 1:
        target, draft = change(target, draft)
    return recursive_rejection(paths, target, draft, generator)


ROUNDED: dict[str, Callable[[Any, Any], Any]] = {
    "draft in bfloat16": lambda target, draft: (target, draft.bfloat16().float()),
    "draft in bytes": lambda target, draft: (target, (draft * 256).round() / 256),
    "draft at least 0.01": lambda target, draft: (target, draft.clamp(min=0.01)),
    "target at least 0.01": lambda target, draft: (target.clamp(min=0.01), draft),
    "target above 0.03": lambda target, draft: (target * (target > 0.03), draft),
    "bonus at least 0.01": lambda target, draft: (
        torch.cat([target[:, :-1], target[:, -1:].clamp(min=0.01)], dim=1),
        draft,
    ),
}


@first_is_quick("name", ROUNDED)
def test_rows_of_several_paths_are_not_all_sixteenths(name: str) -> None:
    def sampler(*given: Any) -> Any:
        return changed(*given, change=ROUNDED[name])

    pairs = pairs_of_several_paths()
    few = {
        name: pairs[name]
        for name in ("tiny probabilities", "a zero among sevenths", "hundredths", "two coins of 2/5")
    }
    assert audit(sampler, few, drafts=[2], stop_at_first=True).verdict == NOT_LOSSLESS


def greedily(row: Row, wrong: str) -> list[int]:
    """What a greedy request gets, with a mistake."""
    best, drafted = row.target_probs.argmax(-1).tolist(), row.draft_tokens.tolist()
    agree = next((n for n, token in enumerate(drafted) if token != best[n]), len(drafted))
    if wrong == "takes the first" or (wrong == "takes the only one" and len(drafted) == 1):
        agree = max(agree, 1)
    last = agree - 1 if wrong == "the row before" and agree == 3 else agree
    return [*drafted[:agree], best[last]]


@first_is_quick(
    "wrong",
    [
        pytest.param("takes the first", marks=pytest.mark.deep),
        "takes the only one",
        "the row before",
        "samples three",
        "half",
        "fills",
    ],
)
def test_requests_in_batches_that_are_greedy_or_rounded(wrong: str) -> None:
    """The partner is token verification, in the tests of batches."""

    def sampler(rows: Sequence[Row], generator: Any) -> list[list[int]]:
        if len(rows) > 1 and wrong == "half":
            rows = [row._replace(target_probs=row.target_probs.bfloat16().float()) for row in rows]
        if len(rows) > 1 and wrong == "fills":
            rows = [row._replace(target_probs=row.target_probs.clamp(min=0.01)) for row in rows]
        if wrong == "samples three":
            rows = [row._replace(is_greedy=row.is_greedy and len(row.draft_tokens) < 3) for row in rows]
        found = batch_token_verification(rows, generator)
        return [
            greedily(row, wrong) if row.is_greedy else tokens for row, tokens in zip(rows, found, strict=True)
        ]

    # A greedy request of one draft stands beside longer ones.
    mixes = ("ragged", "greedy") if wrong == "takes the only one" else ("greedy",)
    shipped = Shipped(sampler, "batch", mixes=mixes)
    audit_batches(shipped, stop_at_first=True)
    assert shipped.journal.findings
