"""Drafting with caches against full passes over the whole text."""

import dataclasses
from typing import Any

import pytest
import torch

from later import Later
from models_support import PROMPTS, full_row, largest_difference
from spectheory.foundation.errors import InvalidInputError
from spectheory.models import LanguageModelPair, SamplingOptions
from spectheory.models.drafting import _share, draft_and_score, prefill
from spectheory.models.reading import run_model
from spectheory.pairs.drafts import HubTree, PrefixTree, WithoutReplacement

stats = Later("scipy.stats")


@pytest.mark.parametrize(
    "options", [SamplingOptions(), SamplingOptions(temperature=0.7, top_k=20, top_p=0.9)]
)
def test_cached_rows_equal_full_passes(pair: LanguageModelPair, options: SamplingOptions) -> None:
    """Cache, padding and positions change no row; the two models' rows do differ."""
    lengths = {len(pair.encode(prompt)) for prompt in PROMPTS}
    assert len(lengths) == 3
    assert 1 in lengths
    batch = draft_and_score(prefill(pair, PROMPTS), 2, 3, pair.generator(5), options)
    assert batch.paths.shape == (3, 2, 3)
    assert batch.target_rows.shape == (3, 2, 4, pair.vocab_size)
    assert batch.draft_rows.shape == (3, 2, 3, pair.vocab_size)
    assert torch.equal(batch.paths, batch.token_ids)
    assert largest_difference(pair, batch, options) < 1e-5
    assert float((batch.target_rows[:, :, :3] - batch.draft_rows).abs().max()) > 1e-2


def test_wrong_padding_would_be_noticed(gpt2_pair: LanguageModelPair) -> None:
    """Partner: treating padding as text (positions and attention off) moves rows by far more than 1e-5."""
    prefilled = prefill(gpt2_pair, PROMPTS)
    texts = prefilled.texts
    as_text = dataclasses.replace(texts, starts=torch.zeros_like(texts.starts))
    wrong = dataclasses.replace(prefilled, texts=as_text)
    batch = draft_and_score(wrong, 2, 3, gpt2_pair.generator(5))
    assert largest_difference(gpt2_pair, batch) > 1e-3


@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_shared_prefixes_carry_bitwise_equal_rows(
    pair: LanguageModelPair, monkeypatch: pytest.MonkeyPatch, noise: float
) -> None:
    """Paths of one prompt with one prefix have the same rows there, to the last bit.

    The noise stands for kernels that treat batch rows differently, which these small ones need not do.
    """

    def noisy_run_model(*args: Any, **kwargs: Any) -> torch.Tensor:
        logits = run_model(*args, **kwargs)
        return logits * (1 + noise * torch.arange(len(logits))[:, None, None])

    monkeypatch.setattr("spectheory.models.reading.run_model", noisy_run_model)
    options = SamplingOptions(temperature=0.5, top_k=3)
    batch = draft_and_score(prefill(pair, PROMPTS), 8, 3, pair.generator(1), options)
    shared = 0
    for b in range(len(PROMPTS)):
        for j in range(8):
            for k in range(j):
                for depth in range(4):
                    if not torch.equal(batch.paths[b, j, :depth], batch.paths[b, k, :depth]):
                        break
                    shared += depth > 0
                    assert torch.equal(batch.target_rows[b, j, depth], batch.target_rows[b, k, depth])
                    if depth < 3:
                        assert torch.equal(batch.draft_rows[b, j, depth], batch.draft_rows[b, k, depth])
    assert shared > 20
    # Partner: without a shared prefix rows do differ.
    assert batch.target_rows[:, :, 3].reshape(24, -1).unique(dim=0).shape[0] > 5


def test_processors_see_what_was_drafted_at_both_models(pair: LanguageModelPair) -> None:
    """One that names the token by the number of drafted tokens leaves no other to draw or to judge by."""

    def only(texts: Any, token_ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        kept = torch.full_like(logits, float("-inf"))
        kept[..., 10 + token_ids.shape[2]] = 0
        return kept

    batch = draft_and_score(prefill(pair, PROMPTS), 2, 3, pair.generator(0), processors=only)
    assert batch.paths.unique(dim=0).tolist() == [[[10, 11, 12]] * 2]
    assert (batch.draft_rows[..., range(3), range(10, 13)] == 1).all()
    assert (batch.target_rows[..., range(4), range(10, 14)] == 1).all()


def test_tokens_at_one_node_differ_without_replacement(pair: LanguageModelPair) -> None:
    """Of four paths the first two share their first token, and so do the others."""
    options, widths = SamplingOptions(top_k=3), WithoutReplacement((2, 2))
    for seed in range(5):
        batch = draft_and_score(prefill(pair, PROMPTS), widths, 2, pair.generator(seed), options)
        first, second = batch.paths.unbind(-1)
        assert torch.equal(first[:, ::2], first[:, 1::2])
        assert (first[:, 0] != first[:, 2]).all()
        assert (second[:, ::2] != second[:, 1::2]).all()


@pytest.mark.parametrize(
    ("process", "options", "words"),
    [
        (
            WithoutReplacement((1, 4)),
            {"top_k": 3},
            "draws 4 distinct tokens at depth 1, .* 3 tokens with mass",
        ),
        (
            WithoutReplacement((2, 2)),
            {"temperature": 0},
            "2 distinct tokens at depth 0, .* 1 token with mass",
        ),
        (
            HubTree((2, 1)),
            {"top_p": 0.001},
            "hub_tree:2,1 draws 2 distinct tokens .* use a smaller width, or",
        ),
    ],
)
def test_fewer_tokens_than_a_tree_draws_are_named(
    pair: LanguageModelPair, process: Any, options: dict[str, Any], words: str
) -> None:
    """The partner draws as many as there are."""
    prefilled = prefill(pair, PROMPTS)
    with pytest.raises(InvalidInputError, match=words):
        draft_and_score(prefilled, process, 2, pair.generator(0), SamplingOptions(**options))
    draft_and_score(prefilled, WithoutReplacement((3, 3)), 2, pair.generator(0), SamplingOptions(top_k=3))


def test_paths_of_a_tree_share_the_draws_of_their_nodes(pair: LanguageModelPair) -> None:
    """Of four paths the first two share their first token, and so do the others."""
    differ = [0, 0]
    for seed in range(5):
        batch = draft_and_score(prefill(pair, PROMPTS), PrefixTree((2, 2)), 2, pair.generator(seed))
        first, second = batch.paths.unbind(-1)
        assert torch.equal(first[:, ::2], first[:, 1::2])
        differ[0] += int((first[:, 0] != first[:, 2]).sum())
        differ[1] += int((second[:, 0] != second[:, 1]).sum())
    assert min(differ) > 0


def test_first_drafted_tokens_follow_the_row(pair: LanguageModelPair) -> None:
    """Pearson's chi-square of 4000 first tokens stays below its 0.999 quantile; another row's does not."""
    options = SamplingOptions(top_k=12)
    batch = draft_and_score(prefill(pair, [PROMPTS[0]] * 40), 100, 1, pair.generator(3), options)
    counts = torch.bincount(batch.paths.reshape(-1), minlength=pair.vocab_size).double()
    rows = {"drafted": batch.draft_rows[0, 0, 0], "uniform": (batch.draft_rows[0, 0, 0] > 0) / 12}
    support = rows["drafted"] > 0
    assert int(support.sum()) == 12
    assert counts[~support].sum() == 0
    expected = {name: 4000 * row[support] for name, row in rows.items()}
    statistic = {name: float(((counts[support] - e) ** 2 / e).sum()) for name, e in expected.items()}
    assert statistic["drafted"] < stats.chi2.ppf(0.999, 11)
    assert statistic["uniform"] > stats.chi2.ppf(0.999, 11)


@pytest.mark.parametrize(
    ("num_drafts", "draft_length", "words"),
    [(0, 1, "drafts must be"), (1, 0, "draft_length"), (True, 1, "drafts must be"), (1, 60, "64 positions")],
)
def test_bad_sizes_are_refused(
    pair: LanguageModelPair, num_drafts: int, draft_length: int, words: str
) -> None:
    with pytest.raises(InvalidInputError, match=words):
        draft_and_score(prefill(pair, PROMPTS), num_drafts, draft_length, pair.generator(0))


def test_prompts_of_one_token_only(pair: LanguageModelPair) -> None:
    batch = draft_and_score(prefill(pair, ["x", "", [7]]), 1, 1, pair.generator(0))
    texts = [pair.encode("x"), [pair.tokenizer.bos_token_id], [7]]
    for b, text in enumerate(texts):
        expected = full_row(pair.target_model, text, SamplingOptions())
        torch.testing.assert_close(batch.target_rows[b, 0, 0], expected, atol=1e-5, rtol=0)


def test_rows_are_taken_from_the_first_path_with_the_prefix() -> None:
    paths = torch.tensor([[[1, 2], [3, 2], [1, 2], [1, 4], [3, 2]]])
    values = torch.arange(5.0).reshape(1, 5, 1)
    found = [[0, 0, 0, 0, 0], [0, 1, 0, 0, 1], [0, 1, 0, 3, 1]]
    for depth, first in enumerate(found):
        assert _share(values, paths[:, :, :depth]).flatten().tolist() == first
    at_all_prefixes = _share(values[:, :, None].expand(1, 5, 3, 1), paths)
    assert at_all_prefixes[0, :, :, 0].T.tolist() == found


def test_one_seed_one_result_and_draws_leave_the_prefill_alone(pair: LanguageModelPair) -> None:
    prefilled = prefill(pair, PROMPTS)
    first = draft_and_score(prefilled, 3, 4, pair.generator(11))
    other = draft_and_score(prefilled, 3, 4, pair.generator(12))
    again = draft_and_score(prefilled, 3, 4, pair.generator(11))
    assert not torch.equal(first.paths, other.paths)
    for name in ("paths", "target_rows", "draft_rows"):
        assert torch.equal(getattr(first, name), getattr(again, name))
