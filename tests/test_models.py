"""Language-model pairs: loading, drafting with caches against full passes, and the enumerated restriction."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from models_support import FAMILIES, save_model, save_pair, save_tokenizer
from spectheory.errors import (
    ComputationError,
    EnumerationTooLargeError,
    InvalidInputError,
    InvalidOutcomeError,
    TokenizerMismatchError,
)
from spectheory.models import (
    DraftedBatch,
    LanguageModelPair,
    Restriction,
    SamplingOptions,
    bundled_prompts,
    draft_and_score,
    logits_to_probs,
    most_likely_at_prompts,
    prefill,
    read_prompts,
    restrict,
    restricted_pair,
)
from spectheory.models.drafting import _share
from spectheory.models.language_model import run_model
from spectheory.montecarlo import simulate
from spectheory.outcome import sample_rows

# Three lengths; the shortest, of one token, is padded over its whole prefilled width.
PROMPTS = ["def main(argument):\n    return", "import", "x"]


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Saved pairs of both families; GPT-2's absolute positions make wrong position ids visible."""
    return {family: save_pair(tmp_path_factory.mktemp(family), family) for family in FAMILIES}


@pytest.fixture(scope="session", params=FAMILIES)
def pair(request: pytest.FixtureRequest, folders: dict[str, tuple[Path, Path]]) -> LanguageModelPair:
    torch.set_num_threads(1)
    return LanguageModelPair.load(*folders[request.param], device="cpu")


@pytest.fixture(scope="session")
def gpt2_pair(folders: dict[str, tuple[Path, Path]]) -> LanguageModelPair:
    return LanguageModelPair.load(*folders["gpt2"], device="cpu")


def full_row(model: torch.nn.Module, token_ids: list[int], options: SamplingOptions) -> torch.Tensor:
    """The row after a text, from one uncached, unpadded forward pass over all of it."""
    with torch.no_grad():
        logits = model(torch.tensor([token_ids])).logits[0, -1]
    return logits_to_probs(logits, options)


def largest_difference(pair: LanguageModelPair, batch: DraftedBatch, options: SamplingOptions) -> float:
    """Largest deviation of any row of the batch from the one of a full pass."""
    differences = []
    for b, prompt in enumerate(PROMPTS):
        for k in range(batch.paths.shape[1]):
            path = batch.token_ids[b, k].tolist()
            for depth in range(len(path) + 1):
                text = pair.encode(prompt) + path[:depth]
                sides = [(pair.target_model, batch.target_rows)]
                if depth < len(path):
                    sides.append((pair.draft_model, batch.draft_rows))
                for model, rows in sides:
                    gap = rows[b, k, depth] - full_row(model, text, options)
                    differences.append(float(gap.abs().max()))
    assert len(differences) == len(PROMPTS) * batch.paths.shape[1] * (2 * batch.paths.shape[2] + 1)
    return max(differences)


# ------------------------------------------------------------------ drafting and scoring


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
    assert batch.candidates is None
    assert torch.equal(batch.paths, batch.token_ids)
    assert largest_difference(pair, batch, options) < 1e-5
    assert float((batch.target_rows[:, :, :3] - batch.draft_rows).abs().max()) > 1e-2


def test_wrong_padding_would_be_noticed(gpt2_pair: LanguageModelPair) -> None:
    """Partner: treating padding as text (positions and attention off) moves rows by far more than 1e-5."""
    prefilled = prefill(gpt2_pair, PROMPTS)
    wrong = dataclasses.replace(prefilled, attention_mask=torch.ones_like(prefilled.attention_mask))
    batch = draft_and_score(wrong, 2, 3, gpt2_pair.generator(5))
    assert largest_difference(gpt2_pair, batch, SamplingOptions()) > 1e-3


def test_prompts_of_one_token_only(pair: LanguageModelPair) -> None:
    batch = draft_and_score(prefill(pair, ["x", "", [7]]), 1, 1, pair.generator(0))
    texts = [pair.encode("x"), [pair.tokenizer.bos_token_id], [7]]
    for b, text in enumerate(texts):
        expected = full_row(pair.target_model, text, SamplingOptions())
        torch.testing.assert_close(batch.target_rows[b, 0, 0], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_shared_prefixes_carry_bitwise_equal_rows(
    pair: LanguageModelPair, monkeypatch: pytest.MonkeyPatch, noise: float
) -> None:
    """Paths of one prompt with one prefix have the same rows there, to the last bit.

    The noise stands for kernels that treat batch rows differently, which these small ones need not do.
    """

    def noisy_run_model(*args: Any, **kwargs: Any) -> tuple[torch.Tensor, Any]:
        logits, cache = run_model(*args, **kwargs)
        return logits * (1 + noise * torch.arange(len(logits))[:, None, None]), cache

    monkeypatch.setattr("spectheory.models.drafting.run_model", noisy_run_model)
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


def test_rows_are_taken_from_the_first_path_with_the_prefix() -> None:
    """Whatever a kernel returns, rows follow the first path that shares the prefix (and only it)."""
    paths = torch.tensor([[[1, 2], [3, 2], [1, 2], [1, 4], [3, 2]]])
    values = torch.arange(5.0).reshape(1, 5, 1)
    for depth, first in enumerate(([0, 0, 0, 0, 0], [0, 1, 0, 0, 1], [0, 1, 0, 3, 1])):
        assert _share(values, paths[:, :, :depth]).flatten().tolist() == first


def test_one_seed_one_result_and_draws_leave_the_prefill_alone(pair: LanguageModelPair) -> None:
    prefilled = prefill(pair, PROMPTS)
    first = draft_and_score(prefilled, 3, 4, pair.generator(11))
    other = draft_and_score(prefilled, 3, 4, pair.generator(12))
    again = draft_and_score(prefilled, 3, 4, pair.generator(11))
    assert not torch.equal(first.paths, other.paths)
    for name in ("paths", "target_rows", "draft_rows"):
        assert torch.equal(getattr(first, name), getattr(again, name))


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
    assert statistic["drafted"] < chi2.ppf(0.999, 11)
    assert statistic["uniform"] > chi2.ppf(0.999, 11)


@pytest.mark.parametrize(
    ("num_drafts", "draft_length", "words"),
    [(0, 1, "num_drafts"), (1, 0, "draft_length"), (True, 1, "num_drafts"), (1, 60, "64 positions")],
)
def test_bad_sizes_are_refused(
    pair: LanguageModelPair, num_drafts: int, draft_length: int, words: str
) -> None:
    with pytest.raises(InvalidInputError, match=words):
        draft_and_score(prefill(pair, PROMPTS), num_drafts, draft_length, pair.generator(0))


def test_bad_prompts_are_refused(gpt2_pair: LanguageModelPair) -> None:
    for prompts, words in (
        ([], "at least one prompt"),
        ("text", "list"),
        ([[]], "empty"),
        ([[280]], "0..279"),
        ([[1] * 65], "64 positions"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            prefill(gpt2_pair, prompts)


# ------------------------------------------------------------------ logits and sampling


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (SamplingOptions(), [0.4, 0.2, 0.2, 0.1, 0.1]),
        (SamplingOptions(temperature=0.5), [16 / 26, 4 / 26, 4 / 26, 1 / 26, 1 / 26]),
        (SamplingOptions(top_k=2), [2 / 3, 1 / 3, 0, 0, 0]),  # of the tie at 0.2 the lower id
        (SamplingOptions(top_k=4), [4 / 9, 2 / 9, 2 / 9, 1 / 9, 0]),
        (SamplingOptions(top_k=9), [0.4, 0.2, 0.2, 0.1, 0.1]),
        (SamplingOptions(top_p=0.3), [1, 0, 0, 0, 0]),
        (SamplingOptions(top_p=0.5), [2 / 3, 1 / 3, 0, 0, 0]),
        (SamplingOptions(top_p=0.7), [0.5, 0.25, 0.25, 0, 0]),
        (SamplingOptions(top_p=1e-9), [1, 0, 0, 0, 0]),
        (SamplingOptions(top_k=3, top_p=0.6), [2 / 3, 1 / 3, 0, 0, 0]),  # of 1/2, 1/4, 1/4
        (SamplingOptions(temperature=1e-300), [1, 0, 0, 0, 0]),
    ],
)
def test_logits_to_probs_by_hand(options: SamplingOptions, expected: list[float]) -> None:
    """Logits log(4, 2, 2, 1, 1) + 3, and the same tokens in reverse."""
    logits = torch.tensor([4.0, 2.0, 2.0, 1.0, 1.0], dtype=torch.float64).log() + 3
    probs = logits_to_probs(logits, options)
    assert probs.dtype == torch.float64
    np.testing.assert_allclose(probs, expected, rtol=1e-12, atol=0)
    # The lower id of a tie wins there too: within tied pairs the entries keep their order.
    swapped = logits_to_probs(logits.flip(0), options)
    np.testing.assert_allclose(swapped, np.take(expected, [3, 4, 1, 2, 0]), rtol=1e-12, atol=0)


def test_half_precision_logits_are_upcast_first() -> None:
    logits = torch.tensor([1.0, 2.5, -3.0], dtype=torch.bfloat16)
    assert torch.equal(logits_to_probs(logits), logits_to_probs(logits.double()))
    assert logits_to_probs(logits, dtype=torch.float32).dtype == torch.float32


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_logits_that_are_not_finite_raise(bad: float) -> None:
    with pytest.raises(ComputationError, match="NaN"):
        logits_to_probs(torch.tensor([0.0, bad]))


@pytest.mark.parametrize(
    "bad",
    [
        {"temperature": 0},
        {"temperature": -1.0},
        {"temperature": float("inf")},
        {"temperature": float("nan")},
        {"temperature": True},
        {"top_k": 0},
        {"top_k": 1.5},
        {"top_p": 0.0},
        {"top_p": 1.1},
    ],
)
def test_bad_options_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(bad))):
        SamplingOptions(**bad)  # type: ignore[arg-type]


def test_tokens_without_mass_are_never_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """At u = 0, u = 1 - 2^-53 and between, the token has mass, first and last entries being 0."""
    row = torch.tensor([0.0, 0.1, 0.0, 0.2, 0.0, 0.7, 0.0], dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    drawn = sample_rows(row.expand(5000, 7), generator)
    assert set(drawn.tolist()) == {1, 3, 5}
    for uniform, token in ((0.0, 1), (0.1 - 1e-12, 1), (0.1 + 1e-12, 3), (1 - 2.0**-53, 5)):
        monkeypatch.setattr(
            torch, "rand", lambda shape, u=uniform, **_: torch.full(shape, u, dtype=torch.float64)
        )
        assert sample_rows(row, generator) == token
        assert int(sample_rows(row * 3e-310, generator)) in {1, 3, 5}  # subnormal mass
    with pytest.raises(InvalidOutcomeError, match="without mass"):
        sample_rows(torch.zeros(3), generator)


# ------------------------------------------------------------------ restriction to m tokens


def rows_by_hand(
    pair: LanguageModelPair, text: list[int], ids: list[int], options: SamplingOptions
) -> tuple[np.ndarray, np.ndarray]:
    """(target, draft) rows conditioned on ``ids``, without the package's gathering code."""
    rows = []
    for model in (pair.target_model, pair.draft_model):
        kept = np.array([float(full_row(model, text, options)[token]) for token in ids])
        rows.append(kept / kept.sum())
    return rows[0], rows[1]


@pytest.mark.parametrize("per_context", [False, True])
def test_restricted_pair_holds_the_real_conditionals(pair: LanguageModelPair, per_context: bool) -> None:
    """Every row is the full row conditioned on the stated set, at every context; sums are 1 to 1e-12."""
    options = SamplingOptions(temperature=0.8)
    result = restrict(pair, PROMPTS[0], 3, 2, per_context, options)
    assert (result.vocab_size, result.draft_length, result.arithmetic) == (3, 2, "float64")
    root = pair.encode(PROMPTS[0])
    fixed = full_row(pair.target_model, root, options).argsort(descending=True)[:3].tolist()

    def ids_at(text: list[int]) -> list[int]:
        row = full_row(pair.draft_model, text, options)
        return row.argsort(descending=True)[:3].tolist() if per_context else fixed

    for depth in range(3):
        assert np.abs(result.target[depth].sum(axis=1) - 1).max() < 1e-12
        for number in range(3**depth):
            text = list(root)
            for token in result.context(depth, number):
                text.append(ids_at(text)[token])
            target_row, draft_row = rows_by_hand(pair, text, ids_at(text), options)
            np.testing.assert_allclose(result.target[depth][number], target_row, atol=1e-5)
            if depth < 2:
                np.testing.assert_allclose(result.draft[depth][number], draft_row, atol=1e-5)
    # Partner: contexts matter, so that a mix-up of contexts would show.
    assert np.abs(result.target[2][0] - result.target[2][5]).max() > 1e-3
    expected = tuple(pair.decode([t]) for t in fixed) if not per_context else ("rank 1", "rank 2", "rank 3")
    assert result.vocab == expected or any("#" in name for name in result.vocab)


@pytest.mark.parametrize("kind", ["per context", "per prompt", "one set"])
def test_drafting_under_a_restriction_agrees_with_the_enumeration(pair: LanguageModelPair, kind: str) -> None:
    """Rows and numbering of cached drafting are those of the enumerated pair, prompt by prompt."""
    prefilled = prefill(pair, PROMPTS)
    restriction = {
        "per context": Restriction.per_context(4),
        "per prompt": most_likely_at_prompts(prefilled, 4),
        "one set": Restriction.fixed([9, 40, 3, 100]),
    }[kind]
    batch = draft_and_score(prefilled, 3, 2, pair.generator(4), restriction=restriction)
    assert batch.target_rows.shape == (3, 3, 3, 4)
    assert batch.candidates is not None
    for b, prompt in enumerate(PROMPTS):
        single = restriction
        if kind == "per prompt":
            assert restriction.token_sets is not None
            single = Restriction.fixed(restriction.token_sets[b])
        enumerated = restricted_pair(pair, prompt, single, 2)
        for k in range(3):
            number = 0
            for depth in range(3):
                at = (b, k, depth)
                np.testing.assert_allclose(batch.target_rows[at], enumerated.target[depth][number], atol=1e-6)
                if depth == 2:
                    break
                np.testing.assert_allclose(batch.draft_rows[at], enumerated.draft[depth][number], atol=1e-6)
                assert batch.token_ids[at] == batch.candidates[at][batch.paths[at]]
                number = 4 * number + int(batch.paths[at])


def test_restrict_picks_the_set_drafting_picks(pair: LanguageModelPair) -> None:
    """The fixed set of ``restrict`` is that of ``most_likely_at_prompts``."""
    restriction = most_likely_at_prompts(prefill(pair, PROMPTS), 4)
    assert restriction.token_sets is not None
    for prompt, ids in zip(PROMPTS, restriction.token_sets, strict=True):
        given = restricted_pair(pair, prompt, Restriction.fixed(ids), 1)
        chosen = restrict(pair, prompt, 4, 1)
        assert given.vocab == chosen.vocab
        np.testing.assert_allclose(given.target[1], chosen.target[1], atol=1e-12)


def test_correction_tokens_translate_back(pair: LanguageModelPair) -> None:
    prefilled = prefill(pair, PROMPTS)
    batch = draft_and_score(prefilled, 2, 2, pair.generator(4), restriction=Restriction.per_context(3))
    path, depth, number = torch.tensor([0, 1, 1]), torch.tensor([2, 0, 1]), torch.tensor([2, 1, 0])
    ids = batch.to_token_ids(path, depth, number)
    assert batch.candidates is not None
    assert ids.tolist() == [int(batch.candidates[b, path[b], depth[b], number[b]]) for b in range(3)]
    plain = draft_and_score(prefilled, 2, 2, pair.generator(4))
    assert torch.equal(plain.to_token_ids(path, depth, number), number)


def test_names_of_a_fixed_set_are_unique(gpt2_pair: LanguageModelPair) -> None:
    """Lone bytes of a multi-byte character all decode to the replacement character."""
    broken = [t for t in range(gpt2_pair.vocab_size) if gpt2_pair.decode([t]) == "�"][:3]
    result = restricted_pair(gpt2_pair, "x", Restriction.fixed([*broken, gpt2_pair.encode("a")[0]]), 1)
    assert result.vocab == (*(f"�#{token}" for token in broken), "a")


def test_too_large_an_enumeration_is_refused(gpt2_pair: LanguageModelPair) -> None:
    with pytest.raises(EnumerationTooLargeError, match=r"1000000 contexts.*max_contexts=20000"):
        restrict(gpt2_pair, "x", 10, 6)
    with pytest.raises(EnumerationTooLargeError, match="max_contexts=8"):
        restrict(gpt2_pair, "x", 3, 2, max_contexts=8)
    assert restrict(gpt2_pair, "x", 3, 2, max_contexts=9, batch_size=2).draft_length == 2


def test_a_set_without_mass_is_refused(gpt2_pair: LanguageModelPair) -> None:
    row = full_row(gpt2_pair.target_model, gpt2_pair.encode("x"), SamplingOptions())
    unlikely = Restriction.fixed(row.argsort()[:3].tolist())
    with pytest.raises(InvalidInputError, match="no mass"):
        restricted_pair(gpt2_pair, "x", unlikely, 1, SamplingOptions(top_k=1))
    with pytest.raises(InvalidInputError, match="no mass"):
        draft_and_score(
            prefill(gpt2_pair, ["x"]), 1, 1, gpt2_pair.generator(0), SamplingOptions(top_k=1), unlikely
        )
    assert restricted_pair(gpt2_pair, "x", unlikely, 1).vocab_size == 3


def test_low_temperatures_do_not_underflow_a_restriction(gpt2_pair: LanguageModelPair) -> None:
    """Unlikely tokens whose full probabilities are all 0 in float64 keep their conditionals."""
    options = SamplingOptions(temperature=0.002)
    full = full_row(gpt2_pair.target_model, gpt2_pair.encode("x"), SamplingOptions())
    ids = full.argsort()[:2].tolist()
    assert float(full_row(gpt2_pair.target_model, gpt2_pair.encode("x"), options)[ids].sum()) == 0
    row = restricted_pair(gpt2_pair, "x", Restriction.fixed(ids), 1, options).target[0][0]
    odds = (np.log(float(full[ids[1]])) - np.log(float(full[ids[0]]))) / 0.002
    np.testing.assert_allclose(np.log(row[1] / row[0]), odds, rtol=1e-3, atol=1e-3)


def test_bad_restrictions_are_refused(gpt2_pair: LanguageModelPair) -> None:
    for build, words in (
        (lambda: Restriction.per_context(0), "at least 1"),
        (lambda: Restriction.fixed([1, 1]), "distinct"),
        (lambda: Restriction.fixed([1, 2], [3]), "distinct"),
        (lambda: Restriction.fixed(), "no set"),
        (lambda: restrict(gpt2_pair, "x", 281, 1), "281"),
        (lambda: restrict(gpt2_pair, "x", 2, 0), "draft_length"),
        (lambda: restricted_pair(gpt2_pair, "x", Restriction.fixed([280]), 1), "0..279"),
        (lambda: restricted_pair(gpt2_pair, "x", Restriction.fixed([1], [2]), 1), "2 sets"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            build()


# ------------------------------------------------------------------ loading


def test_stored_half_precision_is_upcast_on_cpu(
    pair: LanguageModelPair, folders: dict[str, tuple[Path, Path]]
) -> None:
    config = json.loads((folders["llama"][0] / "config.json").read_text())
    assert config["dtype"] == "float16"
    for model in (pair.target_model, pair.draft_model):
        assert not model.training
        assert {p.dtype for p in model.parameters()} == {torch.float32}
        assert not any(p.requires_grad for p in model.parameters())
    half = LanguageModelPair.load(
        *folders["llama"], device="cpu", dtype="bfloat16", probs_dtype=torch.float32
    )
    assert half.target_model.dtype == torch.bfloat16
    batch = draft_and_score(prefill(half, PROMPTS), 2, 2, half.generator(0))
    assert batch.target_rows.dtype == torch.float32
    torch.testing.assert_close(batch.target_rows.sum(-1), torch.ones(3, 2, 3), atol=1e-5, rtol=0)


def test_different_tokenizers_are_refused(tmp_path: Path, folders: dict[str, tuple[Path, Path]]) -> None:
    save_model(tmp_path, "llama", seed=0, layers=1)
    save_tokenizer(tmp_path, texts=["zzzz yyyy zzzz", "wwww zzyy"])
    with pytest.raises(TokenizerMismatchError, match=r"has id .* in the target and"):
        LanguageModelPair.load(folders["llama"][0], tmp_path, device="cpu")


def test_vocabularies_padded_differently_are_cut_and_short_ones_refused(
    tmp_path: Path, folders: dict[str, tuple[Path, Path]]
) -> None:
    tokens = len(LanguageModelPair.load(*folders["llama"], device="cpu").tokenizer)
    for name, size in (("padded", 320), ("short", tokens - 1)):
        save_model(tmp_path / name, "llama", seed=0, layers=1, vocab_size=size)
        save_tokenizer(tmp_path / name)
    padded = LanguageModelPair.load(folders["llama"][0], tmp_path / "padded", device="cpu")
    assert padded.vocab_size == 280
    batch = draft_and_score(prefill(padded, PROMPTS), 1, 1, padded.generator(0))
    assert batch.draft_rows.shape[-1] == 280
    with pytest.raises(TokenizerMismatchError, match=f"the draft model scores {tokens - 1} tokens"):
        LanguageModelPair.load(folders["llama"][0], tmp_path / "short", device="cpu")


def test_missing_models_give_one_line(tmp_path: Path, folders: dict[str, tuple[Path, Path]]) -> None:
    target, draft = folders["llama"]
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}")
    for name, words in (
        (tmp_path / "nowhere", "does not exist"),
        (str(tmp_path / "nowhere"), "does not exist"),
        ("./nowhere", "does not exist"),
        ("a/b/c", "does not exist"),
        (tmp_path / "empty", "without config.json"),
        (tmp_path / "file", "is a file"),
        (tmp_path / "broken", "could not be loaded"),
    ):
        with pytest.raises(InvalidInputError, match=words) as caught:
            LanguageModelPair.load(target, name, device="cpu")
        text = str(caught.value)
        assert "draft" in text
        assert str(name) in text
        assert "\n" not in text
        with pytest.raises(InvalidInputError, match="target"):
            LanguageModelPair.load(name, draft, device="cpu")


def test_missing_weights_are_refused(tmp_path: Path, folders: dict[str, tuple[Path, Path]]) -> None:
    """A config with one layer more than the weights; transformers alone would only warn."""
    target, draft = folders["llama"]
    for file in draft.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((draft / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 2}))
    with pytest.raises(InvalidInputError, match=r"lacks .* weights"):
        LanguageModelPair.load(target, tmp_path, device="cpu")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"device": "tpu"}, "device must be"),
        ({"device": "cuda:99"}, "CUDA devices"),
        ({"device": "cpu", "dtype": "int8"}, "dtype must be"),
        ({"device": "cpu", "probs_dtype": torch.float16}, "probs_dtype must be"),
    ],
)
def test_bad_loading_arguments_are_refused(
    folders: dict[str, tuple[Path, Path]], arguments: dict[str, str], words: str
) -> None:
    with pytest.raises(InvalidInputError, match=words):
        LanguageModelPair.load(*folders["llama"], **arguments)  # type: ignore[arg-type]


def test_transformers_missing_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, folders: dict[str, tuple[Path, Path]]
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InvalidInputError, match=r'pip install "spectheory\[models\]"'):
        LanguageModelPair.load(*folders["llama"])


@pytest.mark.parametrize(
    ("package", "absent"), [("spectheory", "torch"), ("spectheory.models", "transformers")]
)
def test_imports_are_lazy(package: str, absent: str) -> None:
    """Only loading a model needs transformers, so that the missing-library error can be clear."""
    code = f"import sys, {package}; sys.exit({absent!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ------------------------------------------------------------------ prompts


def test_read_prompts(tmp_path: Path) -> None:
    lines = tmp_path / "prompts.jsonl"
    lines.write_text('{"source": "a", "text": "one\\n\\ntwo"}\n\n{"text": "three"}\n')
    assert read_prompts(lines) == ["one\n\ntwo", "three"]
    blocks = tmp_path / "prompts.txt"
    blocks.write_text("\n\ndef f():\n    return 1\n\n \n  indented\n")
    assert read_prompts(blocks) == ["def f():\n    return 1", "  indented"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing.txt", None, "cannot read"),
        ("empty.txt", b" \n\n", "no prompts"),
        ("empty.jsonl", b"", "no prompts"),
        ("bad.jsonl", b'{"text": "a"}\n{oops', "line 2 is not JSON"),
        ("bad.jsonl", b'{"source": "a"}', "line 1 has no prompt"),
        ("bad.jsonl", b'["text"]', "line 1 has no prompt"),
        ("bad.txt", b"\xff\xfe\xff", "UTF-8"),
    ],
)
def test_bad_prompt_files_are_refused(tmp_path: Path, name: str, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInputError, match=words):
        read_prompts(tmp_path / name)


def test_the_bundled_pair(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The shipped pair loads, shares its tokenizer and predicts its own prompts better than chance."""
    monkeypatch.setattr("spectheory.models.loading.BUNDLED_FOLDER", tmp_path)
    with pytest.raises(InvalidInputError, match="bundled target model is not installed"):
        LanguageModelPair.load("bundled", "bundled")
    monkeypatch.undo()
    pair = LanguageModelPair.load("bundled", "bundled", device="cpu")
    ids = torch.tensor([pair.encode(bundled_prompts()[0])])
    losses = {
        side: float(model(ids, labels=ids).loss)
        for side, model in (("draft", pair.draft_model), ("target", pair.target_model))
    }
    assert losses["target"] < losses["draft"] < np.log(pair.vocab_size) - 1


def test_the_bundled_pair_makes_verifiers_differ() -> None:
    """Draft length 8, temperature 1, held-out prompts: token earns between 2 and 5, block more."""
    pair = LanguageModelPair.load("bundled", "bundled", device="cpu")
    simulation = simulate(pair, bundled_prompts()[:16], ["token", "block"], samples=8, batch_size=16)
    token, block = simulation.estimates
    assert 2 < token.interval[0] < token.interval[1] < 5
    assert block.block_efficiency > token.block_efficiency
