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
