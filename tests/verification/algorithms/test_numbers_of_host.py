"""Rounds whose numbers are numpy's beside rows of torch, against the same code on torch alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from deep import first_is_quick
from spectheory.foundation.kernels import choice, row_kernels
from spectheory.pairs.drafts import Iid
from spectheory.verification.algorithms import verifiers
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.outcome import Outcome

CASES = [("token", 1), ("token", 2), ("block", 1), ("greedy_block", 2)]
CASES += [(name, num_drafts) for name in ("multi_round", "traversal") for num_drafts in (1, 4)]
TOLERANCES = {torch.float64: 1e-15, torch.float32: 1e-6, torch.float16: 5e-3, torch.bfloat16: 4e-2}
"""Of stop probabilities and correction rows, relative to the largest entry: rounding of their own kind."""


def drafted(num_drafts: int, dtype: torch.dtype, vocab_size: int = 600, batch: int = 5) -> list[torch.Tensor]:
    """Paths that meet, and rows that are the same where they do."""
    generator = torch.Generator().manual_seed(4)
    paths = torch.randint(3, (batch, num_drafts, 3), generator=generator)
    rows = []
    for depths in (4, 3):
        logits = 2 * torch.randn(
            batch, num_drafts, depths, vocab_size, generator=generator, dtype=torch.float64
        )
        logits[..., :3] += 3
        logits[:, :, 0] = logits[:, :1, 0]
        rows.append(logits.softmax(-1).to(dtype))
    return [paths, *rows]


@first_is_quick("dtype", TOLERANCES)
@first_is_quick(("name", "num_drafts"), CASES, quick=8)
def test_laws_and_samples_are_those_of_torch_alone(
    name: str, num_drafts: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifier, given = verifiers[name].bind(Iid(num_drafts)), drafted(num_drafts, dtype)
    called: list[str] = []
    for loop in ("entries", "residuals", "draws"):
        own = getattr(row_kernels, loop)
        monkeypatch.setattr(
            row_kernels, loop, lambda *args, own=own, loop=loop: called.append(loop) or own(*args)
        )

    def found() -> list[torch.Tensor]:
        outcome = verifier.outcome(*given)
        drawn = outcome.sample(torch.Generator().manual_seed(2))
        stop = drawn.path_index, drawn.length
        return [outcome.stop_probs, outcome.correction(*stop), *stop, drawn.token]

    numbers = found()
    assert {"entries", "residuals", "draws"} <= set(called)
    called.clear()
    monkeypatch.setattr(choice, "rows_for_loops", lambda *rows: False)
    alone = found()
    assert not {"entries", "residuals"} & set(called)  # a draw is the same loop
    for one, other in zip(numbers, alone, strict=True):
        assert one.dtype is other.dtype
        assert one.shape == other.shape
    for one, other in zip(numbers[:2], alone[:2], strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=TOLERANCES[dtype] * float(other.max()))
    if dtype.itemsize > 2:  # the draws of half precision fall apart with its roundings
        assert all(torch.equal(one, other) for one, other in zip(numbers[2:], alone[2:], strict=True))


class Elsewhere(Token):
    """A subclass may use rows as it likes: it has arrays of one kind."""

    def ratios(self, paths: Any, target_rows: Any, draft_rows: Any) -> Any:
        assert isinstance(paths, torch.Tensor)
        return super().ratios(paths, target_rows, draft_rows) * target_rows[:, 0, :1].sum(-1)


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[..., :400],
        lambda rows: rows.mT.contiguous().mT,
        lambda rows: rows.clone().requires_grad_(),
        lambda rows: rows.numpy(),
    ],
    ids=["short", "apart", "differentiated", "numpy"],
)
def test_rows_that_the_loops_do_not_take(
    change: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They go as before, with derivatives; and so do subclasses."""
    paths, *rows = drafted(1, torch.float64)
    assert choice.rows_for_loops(*rows)
    changed = [change(row) for row in rows]
    assert not choice.rows_for_loops(*changed)
    monkeypatch.setattr(row_kernels, "entries", None)
    paths = paths.numpy() if isinstance(changed[0], np.ndarray) else paths
    found = verifiers["block"].outcome(paths, *changed)
    assert found.expected_tokens().shape == (5,)
    if getattr(changed[0], "requires_grad", False):
        found.expected_tokens().sum().backward()
        assert float(changed[0].grad.abs().max()) > 0
    Elsewhere().outcome(drafted(1, torch.float64)[0], *rows)


def test_a_token_or_a_stop_beyond_the_rows_is_refused() -> None:
    paths, target, draft = drafted(2, torch.float32)
    with pytest.raises(IndexError, match=r"outside of 0\.\.599"):
        verifiers["token"].outcome(paths + 600, target, draft)
    outcome: Outcome = verifiers["token"].outcome(paths, target, draft)
    with pytest.raises(IndexError, match="2 paths of 0 to 3 tokens"):
        outcome.correction(torch.full((5,), 2), torch.zeros(5, dtype=torch.int64))


def test_half_precision_is_read_exactly() -> None:
    """Every number of 16 bits, with zeros, the smallest, infinities and what is no number."""
    for dtype in (torch.float16, torch.bfloat16):
        every = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
        rows = every.view(64, 1024)[:, None].expand(64, 1024, 1024)
        tokens = np.broadcast_to(np.arange(1024), (64, 1024))
        found = torch.from_numpy(row_kernels.entries(rows, tokens)).flatten()
        expected = every.float()
        same = (found == expected) | (found.isnan() & expected.isnan())
        assert bool(same.all())
        assert torch.equal(found.signbit()[~found.isnan()], expected.signbit()[~expected.isnan()])
