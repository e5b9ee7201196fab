"""The bundled pair read without transformers: the bits, tokens and configurations of transformers."""

import pickle
import sys
from dataclasses import replace

import pytest
import torch

from later import Later
from spectheory import simulate
from spectheory.models import LanguageModelPair, bundled_prompts
from spectheory.models.drafting import DraftedBatch, draft_and_score, prefill
from spectheory.models.loading import BUNDLED_FOLDER
from spectheory.models.stored_llama import StoredConfig, StoredTokenizer

transformers = Later("transformers")


def drafted(pair: LanguageModelPair) -> list[DraftedBatch]:
    """Two calls on texts of different lengths; the second reads on from the cache, with one text less."""
    prefilled, generator = prefill(pair, [[5], [7, 3, 9, 4], [1, 30]]), pair.generator(3)
    first = draft_and_score(prefilled, 2, 3, generator)
    path, counts = torch.tensor([1, 0, 1]), torch.tensor([2, 0, 3])
    prefilled.accept(path, 3, torch.cat([first.token_ids[:, 0], first.token_ids[:, 0, :1]], 1), counts + 1)
    return [first, draft_and_score(prefilled.select(torch.tensor([0, 2])), 2, 3, generator)]


def same(one: list[DraftedBatch], other: list[DraftedBatch]) -> bool:
    kinds = ("paths", "target_rows", "draft_rows")
    pairs = zip(one, other, strict=True)
    return all(torch.equal(getattr(a, kind), getattr(b, kind)) for a, b in pairs for kind in kinds)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rows_have_the_bits_of_transformers(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = LanguageModelPair.load("bundled", "bundled", device="cpu", dtype=dtype)
    ours, stored, about = drafted(pair), pair.readers, (pair.cached, pair.num_parameters)
    monkeypatch.setattr(stored[0].config, "rms_norm_eps", 1e-2)
    assert not same(ours, drafted(pair))
    plain = LanguageModelPair.of(*pair.models, pair.tokenizer)
    assert plain.readers == pair.models == pair.readers != stored  # what a user changes in a model counts
    assert about == (plain.cached, plain.num_parameters) == ((True, True), 4_959_456)
    assert same(ours, drafted(plain))


def test_other_devices_read_with_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bits were compared on a CPU only."""
    pair = LanguageModelPair.load("bundled", "bundled", device="cpu", weights_now=False)
    monkeypatch.setattr(LanguageModelPair, "models", "those of transformers")
    assert replace(pair, device=torch.device("cuda")).readers == "those of transformers"
    assert pair.readers == pair._stored


def test_it_is_simulated_without_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "transformers"]:
        monkeypatch.setitem(sys.modules, name, None)
    pair = LanguageModelPair.load("bundled", "bundled", device="cpu", weights_now=False)
    found = simulate(pair, bundled_prompts()[:2], ["block"], draft_length=2, max_new_tokens=2)
    assert found.estimates[0].samples >= 2
    with pytest.raises(Exception, match="transformers"):
        pair.target_model  # noqa: B018


def test_tokens_and_configuration() -> None:
    ours = StoredTokenizer(str(BUNDLED_FOLDER / "target"))
    wanted = transformers.AutoTokenizer.from_pretrained(BUNDLED_FOLDER / "target")
    for text in (*bundled_prompts()[:4], "", "é\n\t", "a<|endoftext|>b"):
        ids = ours(text)["input_ids"]
        assert ids == wanted(text)["input_ids"]
        assert ours.decode([*ids, 0]) == wanted.decode([*ids, 0])
    assert (ours.get_vocab(), ours.bos_token_id) == (wanted.get_vocab(), wanted.bos_token_id)
    assert pickle.loads(pickle.dumps(ours)).get_vocab() == ours.get_vocab()
    for side in ("target", "draft"):
        read, known = (
            kind(str(BUNDLED_FOLDER / side))
            for kind in (StoredConfig.read, transformers.AutoConfig.from_pretrained)
        )
        names = ("vocab_size", "max_position_embeddings", "model_type", "name_or_path", "num_hidden_layers")
        assert [getattr(read, name) for name in names] == [getattr(known, name) for name in names]
