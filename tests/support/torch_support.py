"""Drafted tuples as numpy arrays and as torch tensors, and the devices there are."""

from collections.abc import Sequence

import numpy as np
import torch

from spectheory.pairs.pair import ModelPair
from spectheory.verification.verifier import Verifier

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def drafted(
    pair: ModelPair, num_drafts: int, batch: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """K i.i.d. drafted paths per batch element with their rows: paths, target_rows, draft_rows."""
    rng = np.random.default_rng(seed)
    numbers = np.zeros((batch, num_drafts), dtype=np.int64)
    paths, target_rows, draft_rows = [], [pair.target[0][numbers]], []
    for depth in range(pair.draft_length):
        rows = pair.draft[depth][numbers]
        draft_rows.append(rows)
        tokens = (rng.random((batch, num_drafts, 1)) >= rows.cumsum(axis=-1)).sum(axis=-1)
        # rounding of the last cumulative sum: fall back on the largest entry
        bad = (
            np.take_along_axis(rows, np.minimum(tokens, pair.vocab_size - 1)[..., None], axis=-1)[..., 0] == 0
        )
        tokens = np.where((tokens == pair.vocab_size) | bad, rows.argmax(axis=-1), tokens)
        paths.append(tokens)
        numbers = numbers * pair.vocab_size + tokens
        target_rows.append(pair.target[depth + 1][numbers])
    return np.stack(paths, axis=-1), np.stack(target_rows, axis=-2), np.stack(draft_rows, axis=-2)


def drafted_from_a_table(
    seed: int, batch: int, vocab_size: int, draft_length: int, num_drafts: int, num_tokens: int
) -> tuple[torch.Tensor, ...]:
    """Paths of the first few tokens, and rows that paths share where they share a prefix, in float32."""
    generator = torch.Generator().manual_seed(seed)
    contexts = sum(num_tokens**depth for depth in range(draft_length + 1))
    tables = [torch.rand(batch, contexts, vocab_size, generator=generator) for _ in range(2)]
    paths = torch.randint(num_tokens, (batch, num_drafts, draft_length), generator=generator)
    number, first, numbers = torch.zeros(batch, num_drafts, dtype=torch.int64), 0, []
    for depth in range(draft_length + 1):
        numbers.append(first + number)
        if depth < draft_length:
            first, number = first + num_tokens**depth, number * num_tokens + paths[..., depth]
    at, element = torch.stack(numbers, dim=-1), torch.arange(batch)[:, None, None]
    target, draft = (table[element, at] / table[element, at].sum(-1, keepdim=True) for table in tables)
    return paths, target, draft[:, :, :draft_length]


def on_device(arrays: Sequence[np.ndarray], device: str) -> list[torch.Tensor]:
    return [torch.from_numpy(array).to(device) for array in arrays]


def assert_agrees_on(device: str, verifier: Verifier, pair: ModelPair, num_drafts: int, label: str) -> None:
    """``assert_same_outcomes`` on 48 drafted tuples."""
    torch.set_num_threads(1)
    assert_same_outcomes(device, verifier, drafted(pair.to_float(), num_drafts, batch=48, seed=17), label)


def assert_same_outcomes(device: str, verifier: Verifier, arrays: Sequence[np.ndarray], label: str) -> None:
    """Stop probabilities and correction rows of numpy and of torch, to 1e-12."""
    expected, batch = verifier.outcome(*arrays), arrays[0].shape[:-2]
    found = verifier.outcome(*on_device(arrays, device))
    assert (found.stop_probs.dtype, found.stop_probs.device.type) == (torch.float64, device)
    assert found.stop_probs.shape == expected.stop_probs.shape
    np.testing.assert_allclose(expected.stop_probs.sum(axis=(-2, -1)), 1, rtol=0, atol=1e-12, err_msg=label)
    np.testing.assert_allclose(
        found.stop_probs.cpu().numpy(), expected.stop_probs, rtol=0, atol=1e-12, err_msg=label
    )
    for path_index, length in np.ndindex(expected.stop_probs.shape[-2:]):
        where = np.full(batch, path_index), np.full(batch, length)
        rows = found.correction(*on_device(where, device)).cpu().numpy()
        # a stop of probability zero has no correction row worth comparing
        stops = expected.stop_probs[..., path_index, length] > 1e-9
        np.testing.assert_allclose(
            rows[stops], expected.correction(*where)[stops], rtol=0, atol=1e-12, err_msg=label
        )
