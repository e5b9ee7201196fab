"""Logits processors on texts that go on at their own pace, against one call per text."""

import torch

from spectheory.decoding import LogitsProcessors
from spectheory.models.growing_texts import Texts


class Rows:
    """Scores that depend on the row of the batch, and a batch of five."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        assert len(input_ids) == 5
        return scores + torch.arange(5)[:, None]


def test_a_text_keeps_its_row_of_a_whole_batch() -> None:
    texts = Texts.of([[n] for n in range(5)], torch.device("cpu")).select(torch.tensor([4, 1]))
    texts.append(torch.tensor([[3], [3]]), torch.tensor([1, 0]))
    found = LogitsProcessors([Rows()], 5)(
        texts, torch.zeros((2, 3, 0), dtype=torch.int64), torch.zeros(2, 3, 2)
    )
    assert found.tolist() == [[[4, 4]] * 3, [[1, 1]] * 3]


class Digest:
    """Scores that depend on every token, on their order and on how many there are."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        places = torch.arange(1, input_ids.shape[1] + 1)
        return scores * 2 + ((input_ids + 1) * places).sum(dim=1, keepdim=True)


def test_texts_of_one_length_are_processed_together() -> None:
    texts = Texts.of([[1, 2, 3], [4], [5, 6]], torch.device("cpu"))
    texts.append(torch.tensor([[7, 8], [9, 1], [2, 3]]), torch.tensor([1, 2, 0]))
    written = [[1, 2, 3, 7], [0, 0, 4, 9, 1], [0, 5, 6]]
    drafted = torch.tensor([[[1], [2]], [[3], [4]], [[5], [6]]])
    logits = torch.arange(12.0, dtype=torch.float64).reshape(3, 2, 2)
    found = LogitsProcessors([Digest(), Digest()], 3)(texts, drafted, logits)
    for row, text in enumerate(written):
        for path in range(2):
            ids = torch.tensor([text + drafted[row, path].tolist()])
            wanted = Digest()(ids, Digest()(ids, logits[row, path][None]))[0]
            assert torch.equal(found[row, path], wanted)
