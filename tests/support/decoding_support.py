"""Tiny pairs of language models, and the law of the texts that a decoding loop writes with them."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from later import Later
from spectheory.decoding import LogitsProcessors, Stopping, decoding_iterations
from spectheory.models import LanguageModelPair, SamplingOptions
from spectheory.models.drafting import prefill
from spectheory.models.sampling import scaled_logits
from spectheory.pairs.drafts import DraftProcess, Iid
from spectheory.verification.resolve import find_verifier

stats = Later("scipy.stats")
transformers = Later("transformers")

PROMPTS = ([1], [0, 2], [2, 1, 0, 0, 1], [1, 1, 2, 0, 2, 2, 0])
"""Four lengths, so that the rows of a batch begin at four places and go on at their own pace."""
NUM_TOKENS = 6


def tiny_llama(seed: int, vocab_size: int = 3) -> torch.nn.Module:
    """A random model in float64 whose rows are uneven and depend on the whole text."""
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=vocab_size, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=64, initializer_range=0.6,
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).double().eval()


def tiny_pair(vocab_size: int = 3) -> LanguageModelPair:
    return LanguageModelPair.of(tiny_llama(1, vocab_size), tiny_llama(2, vocab_size))


def saved_pair(folder: Path) -> LanguageModelPair:
    """The same, read from a folder, so that a checkpoint can tell its versions apart."""
    pair = tiny_pair()
    pair.target_model.save_pretrained(folder / "target")
    pair.draft_model.save_pretrained(folder / "draft")
    return LanguageModelPair.load(folder / "target", folder / "draft", device="cpu", dtype="float64")


def target_law(
    pair: LanguageModelPair,
    prompt: Sequence[int],
    num_tokens: int = NUM_TOKENS,
    options: SamplingOptions = SamplingOptions(),  # noqa: B008
) -> np.ndarray:
    """The law of the next tokens under the target, from one full pass over every text.  [V^n]"""
    texts = torch.tensor(list(product(range(pair.vocab_size), repeat=num_tokens)))
    ids = torch.cat([torch.tensor(prompt).expand(len(texts), -1), texts], dim=1)
    with torch.no_grad():
        logits = pair.target_model(ids[:, :-1]).logits[:, len(prompt) - 1 :]
    rows = scaled_logits(logits, options).softmax(-1)
    return rows.gather(2, texts[..., None])[..., 0].prod(dim=1).numpy()


def decoded_counts(
    pair: LanguageModelPair,
    verifier: str | Any,
    runs: int,
    *,
    process: DraftProcess,
    draft_length: int = 2,
    num_tokens: int = NUM_TOKENS,
    options: SamplingOptions = SamplingOptions(),  # noqa: B008
    processors: LogitsProcessors | None = None,
    seed: int = 0,
) -> np.ndarray:
    """How often each text was decoded behind each of ``PROMPTS``, all runs in one batch.  [prompts, V^n]"""
    counts = np.zeros((len(PROMPTS), pair.vocab_size**num_tokens), dtype=np.int64)
    texts: list[list[int]] = [[] for _ in range(len(PROMPTS) * runs)]
    prefilled = prefill(pair, list(PROMPTS) * runs)
    bound = find_verifier(verifier).bind(process)
    for call in decoding_iterations(
        prefilled,
        bound,
        process,
        draft_length,
        Stopping(num_tokens),
        pair.generator(seed),
        options,
        processors,
    ):
        for number, tokens in zip(call.numbers, call.tokens, strict=True):
            texts[number].extend(tokens)
    numbers = np.array(texts) @ pair.vocab_size ** np.arange(num_tokens)[::-1]
    np.add.at(counts, (np.arange(len(texts)) % len(PROMPTS), numbers), 1)
    return counts


def p_value(counts: np.ndarray, laws: np.ndarray) -> float:
    """Pearson's chi-square of counts against laws, [prompts, cells] each, summed over the prompts.

    Cells in which fewer than 5 texts are expected are one cell.
    """
    statistic, freedom = 0.0, 0
    for count, law in zip(counts, laws, strict=True):
        expected = law * count.sum()
        rare = expected < 5
        found = np.append(count[~rare], count[rare].sum())
        wanted = np.append(expected[~rare], expected[rare].sum())
        found, wanted = found[wanted > 0], wanted[wanted > 0]
        statistic += ((found - wanted) ** 2 / wanted).sum()
        freedom += len(wanted) - 1
    return float(stats.chi2.sf(statistic, freedom))


def losslessness(
    pair: LanguageModelPair,
    verifier: str | Any,
    runs: int,
    process: DraftProcess | None = None,
    **settings: Any,
) -> float:
    """The p-value of ``runs`` texts behind each prompt against the target's law."""
    counts = decoded_counts(pair, verifier, runs, process=process or Iid(2), **settings)
    return p_value(counts, np.stack([target_law(pair, prompt) for prompt in PROMPTS]))
