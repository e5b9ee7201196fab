"""Texts in columns, against lists of token ids."""

import numpy as np
import torch

from spectheory.models.growing_texts import Texts


def as_lists(texts: Texts) -> list[list[int]]:
    rows = zip(texts.token_ids.tolist(), texts.starts.tolist(), texts.ends.tolist(), strict=True)
    return [ids[start:end] for ids, start, end in rows]


def test_texts_grow_at_their_own_pace() -> None:
    """40 appends of up to 4 tokens to three texts, with and without a known width, a row dropped halfway."""
    rng = np.random.default_rng(0)
    lists = [[5], [1, 2, 3], [4, 6]]
    texts = Texts.of(lists, torch.device("cpu"))
    assert (texts.width, texts.ends.tolist(), as_lists(texts)) == (3, [3, 3, 3], lists)
    for step in range(40):
        tokens, counts = rng.integers(9, size=(len(lists), 4)), rng.integers(5, size=len(lists))
        ends = texts.ends + torch.tensor(counts)
        width = int(ends.max()) if step % 2 else None
        texts.append(torch.tensor(tokens), torch.tensor(counts), width)
        lists = [old + row[:n].tolist() for old, row, n in zip(lists, tokens, counts, strict=True)]
        assert as_lists(texts) == lists
        assert texts.width >= int(texts.ends.max())
        assert texts.lengths.tolist() == [len(text) for text in lists]
        if step == 20:
            texts, lists = texts.select(torch.tensor([2, 0])), [lists[2], lists[0]]
    assert texts.last(3).tolist() == [text[-3:] for text in lists]


def test_texts_that_end_together() -> None:
    texts = Texts.padded(torch.tensor([[0, 5, 6], [7, 8, 9]]), torch.tensor([1, 0]))
    assert (texts.width, texts.ends.tolist(), as_lists(texts)) == (3, [3, 3], [[5, 6], [7, 8, 9]])
