"""Large batches, which are computed in parts and in memory with large pages."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from deep import first_is_quick
from spectheory.foundation.kernels import choice
from spectheory.optima.bounds.rankings import coarse_ratio_ranking
from spectheory.optima.bounds.skewed_draft import skewed_draft_rows
from spectheory.pairs.drafts import Iid
from spectheory.verification.algorithms import verifiers
from spectheory.verification.algorithms.path_selection.greedy_multipath import GreedyMultipath
from spectheory.verification.algorithms.path_selection.mixed_multipath import MixedMultipath

TEXTS, DEPTHS, TOKENS = 130, 2, 4_096
"""The rows of one path have a little more than ``choice.LARGE`` bytes in float32, and are no whole parts."""
VERIFIERS = {
    "coarse greedy_multipath": GreedyMultipath(coarse_ratio_ranking),
    "coarse mixed_multipath": MixedMultipath(ranking=coarse_ratio_ranking),
    **{name: verifiers[name] for name in ("greedy_multipath", "mixed_multipath", "scored_multipath")},
}


def drafted(seed: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    paths = torch.randint(3, (TEXTS, 2, DEPTHS), generator=generator)
    rows = []
    for depths in (DEPTHS + 1, DEPTHS):
        logits = 2 * torch.randn(TEXTS, 2, depths, TOKENS, generator=generator)
        logits[..., :3] += 5
        logits[:, :, 0] = logits[:, :1, 0]
        rows.append(logits.softmax(-1))
    return paths, *rows


def answers(outcome: Any) -> list[torch.Tensor]:
    """The stop probabilities, and the correction rows of the first path."""
    first = torch.zeros(TEXTS, dtype=torch.int64)
    return [outcome.stop_probs, *(outcome.correction(first, first + i) for i in range(DEPTHS + 1))]


def same(found: list[torch.Tensor], expected: list[torch.Tensor]) -> bool:
    return all(map(torch.equal, found, expected))


@first_is_quick("name", VERIFIERS, quick=2)
def test_parts_change_no_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of the answers, and not of the rows that the verifier is given."""
    verifier, given = VERIFIERS[name].bind(Iid(2)), drafted(1)
    copies = [array.clone() for array in given]
    in_parts = answers(verifier.outcome(*given))
    assert same(list(given), copies)
    assert len(choice.parts_of(given[2][:, :1, 0])) > 1
    own = choice.parts_of
    if name != "scored_multipath":  # it has no parts; the partner leaves one out
        monkeypatch.setattr(choice, "parts_of", lambda rows: own(rows)[1:] or [...])
        assert not same(answers(verifier.outcome(*given)), in_parts)
    monkeypatch.setattr(choice, "parts_of", lambda rows: [...])
    monkeypatch.setattr(choice, "LARGE", float("inf"))
    assert same(answers(verifier.outcome(*given)), in_parts)


@first_is_quick("name", VERIFIERS, quick=2)
def test_outcomes_share_no_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later rounds, in this thread and in another, change nothing.  Partner: rooms used again."""
    verifier, given, other = VERIFIERS[name].bind(Iid(2)), drafted(1), drafted(2)

    def is_changed() -> bool:
        outcome = verifier.outcome(*given)
        before = [array.clone() for array in answers(outcome)]
        with ThreadPoolExecutor(1) as pool:
            later = [verifier.outcome(*other), pool.submit(verifier.outcome, *other).result()]
        assert not same(answers(later[0]), before)
        return not same(answers(outcome), before)

    assert not is_changed()
    rooms: dict[Any, torch.Tensor] = {}

    def kept(array: torch.Tensor, shape: Any = None, dtype: Any = None) -> torch.Tensor:
        key = tuple(array.shape if shape is None else shape), dtype or array.dtype
        return rooms.setdefault(key, array.new_empty(*key[:1], dtype=key[1]))

    monkeypatch.setattr(choice, "room_like", kept)
    assert is_changed()


def test_rows_are_skewed_in_place() -> None:
    """So a verifier must hand over a copy: these rows are another law afterwards."""
    paths, target, draft = drafted(1)
    before = draft.clone()
    assert skewed_draft_rows(paths, target, draft, 2) is draft
    assert not torch.equal(draft, before)
    assert draft.sum(-1).allclose(torch.ones(()))
    before = draft.clone()
    skewed_draft_rows(paths, target, draft, 1)
    assert torch.equal(draft, before)


@pytest.mark.parametrize(("texts", "threads", "parts"), [(1, 1, 1), (64, 1, 2), (130, 1, 4), (130, 64, 2)])
def test_parts_cover_the_batch(texts: int, threads: int, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, and with a text for every thread."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    rows = torch.zeros(texts, 1, TOKENS)
    found = choice.parts_of(rows)
    assert len(found) == parts
    assert torch.equal(torch.cat([torch.arange(texts)[part] for part in found]), torch.arange(texts))
    assert min(len(rows[part]) for part in found) >= min(threads, texts)
    assert choice.parts_of(rows[0, 0]) == choice.parts_of(rows.numpy()) == [...]


def test_rooms() -> None:
    """A room has the shape and dtype that are asked for, and memory of its own, at every size."""
    for count in (3, 1 << 20, (1 << 20) + 5):
        like = torch.zeros(2, count)
        one, other = choice.room_like(like), choice.room_like(like, (count,), torch.int16)
        assert (one.shape, one.dtype) == (like.shape, like.dtype)
        assert (other.shape, other.dtype) == ((count,), torch.int16)
        one.fill_(1)
        other.fill_(2)
        assert one.sum() == 2 * count
        assert choice.room_like(like.numpy()).shape == (2, count)


@pytest.mark.parametrize("name", ["greedy_multipath", "mixed_multipath"])
def test_a_recorded_round_selects_from_the_rows_that_it_is_given(name: str) -> None:
    """The partner is the round of the rows with which it was recorded."""
    verifier, recorded, given = verifiers[name].bind(Iid(2)), drafted(1), drafted(2)

    def stops(*drafts: torch.Tensor) -> Any:
        return verifier.outcome(*drafts).stop_probs

    found = make_fx(stops)(*recorded)(*given)
    assert torch.allclose(found, stops(*given), atol=1e-5)
    assert not torch.allclose(found, stops(*recorded), atol=1e-5)
