"""Drafts that were trained for a target: loaded rows by a second route, and the shipped draft."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from later import Later
from scripts import load
from spectheory.models.draft_names import find_draft
from spectheory.models.loading import ModelSource
from spectheory.models.probing import reads_on_from_cache
from spectheory.models.trained_drafts import (
    PROJECTION,
    TRAINED_DRAFTS,
    WEIGHTS,
    trained_draft,
)

transformers = Later("transformers")

SIZES = {"vocab_size": 12, "hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 4}
KEPT = torch.tensor([1, 4, 5, 9])
TEXT = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])


def tiny(layers: int, seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        **SIZES,
        num_key_value_heads=2,
        num_hidden_layers=layers,
        tie_word_embeddings=True,
        initializer_range=0.4,
    )
    return transformers.LlamaForCausalLM(config).eval().requires_grad_(False)


def tiny_like_smollm2() -> torch.nn.Module:
    """Random weights of SmolLM2's shape, in three layers."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=49152, hidden_size=576, intermediate_size=1536, num_attention_heads=9,
        num_key_value_heads=3, num_hidden_layers=3, tie_word_embeddings=True,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A draft of two layers, with the weights of another model."""
    model = tiny(2, seed=5).model
    own = {name: value for name, value in model.named_parameters() if "embed" not in name}
    own[PROJECTION] = torch.randn(16, 16, generator=torch.Generator().manual_seed(7))
    load("scripts", "train_draft").save_trained_draft(tmp_path, own, torch.linspace(-1, 1, len(KEPT)), KEPT)
    return tmp_path


def second_route(target: torch.nn.Module, folder: Path) -> torch.Tensor:
    """The rows of a model of two layers that is built from the file, [1, 8, 4]."""
    stored = load_file(folder / WEIGHTS)
    model = tiny(2, seed=6)
    for name, value in model.model.named_parameters():
        if "embed" in name:
            value.copy_(target.model.embed_tokens.weight)
        else:
            scale = stored[f"{name}.scale"].float() if value.dim() == 2 else torch.ones(len(value))
            value.copy_(
                torch.stack([row.float() * one for row, one in zip(stored[name], scale, strict=True)])
            )
    projection = stored[PROJECTION].float() * stored[f"{PROJECTION}.scale"].float()[:, None]
    hidden = torch.einsum("ij,btj->bti", projection, model.model(TEXT).last_hidden_state)
    logits = hidden @ target.model.embed_tokens.weight[stored["tokens"].long()].T
    return (logits + stored["bias"].float()).softmax(-1)


def test_rows_of_a_trained_draft(folder: Path) -> None:
    """Embeddings and output layer are the target's, all else is the file's; the target stays as it was."""
    target = tiny(3, seed=1)
    before = {name: value.clone() for name, value in target.named_parameters()}
    draft = trained_draft(target, folder)
    rows = draft(input_ids=TEXT).logits.softmax(-1)
    torch.testing.assert_close(rows[..., KEPT], second_route(target, folder))
    assert rows.sum(-1).allclose(torch.ones(()))
    assert bool((rows[..., [0, 2, 3]] == 0).all())
    assert (len(target.model.layers), len(draft.model.layers)) == (3, 2)
    assert all(torch.equal(value, before[name]) for name, value in target.named_parameters())
    assert draft.model.embed_tokens.weight is target.model.embed_tokens.weight
    assert reads_on_from_cache("draft", draft, 12)


def test_partner_a_wrong_scale_is_seen(folder: Path) -> None:
    target = tiny(3, seed=1)
    wanted = second_route(target, folder)
    stored = load_file(folder / WEIGHTS)
    stored["layers.1.mlp.down_proj.weight.scale"][3] *= 2
    save_file(stored, folder / WEIGHTS)
    rows = trained_draft(target, folder)(input_ids=TEXT).logits.softmax(-1)
    assert (rows[..., KEPT] - wanted).abs().max() > 1e-3


def test_a_byte_per_weight_is_near_the_weight(folder: Path) -> None:
    """Half a step of the scale of a row, and of a scale in float16, is the largest error."""
    stored, model = load_file(folder / WEIGHTS), tiny(2, seed=5).model
    for name, value in model.named_parameters():
        if "embed" not in name and value.dim() == 2:
            step = stored[f"{name}.scale"].float()[:, None]
            error = (stored[name].float() * step - value).abs()
            assert bool((error <= 0.5 * step + 2e-3 * value.abs().amax(1, keepdim=True)).all()), name


def test_the_name_of_the_shipped_draft(tmp_path: Path) -> None:
    """It shares the weights of its target, and has a configuration of its own."""
    target = ModelSource("target", "smollm2", str(tmp_path), local=True)
    found = find_draft("smollm2-draft", target)
    assert found.of_target
    assert found.base is target
    tiny(3, seed=1).save_pretrained(tmp_path)
    config = found.config()
    assert (config.num_hidden_layers, config.derived) == (2, ["smollm2_draft"])
    assert found.make(tiny_like_smollm2()).config.derived == config.derived


SHIPPED = TRAINED_DRAFTS["smollm2-draft"]


@pytest.mark.deep
def test_the_shipped_draft_on_a_target_of_its_shape() -> None:
    """On random weights of SmolLM2's shape it drafts 8192 tokens; its card names license and model."""
    draft = trained_draft(tiny_like_smollm2(), SHIPPED.folder)
    assert len(draft.model.layers) == SHIPPED.num_layers
    finite = draft(input_ids=TEXT).logits[0].isfinite().sum(-1)
    assert finite.tolist() == [8192] * TEXT.shape[1]
    assert sum(file.stat().st_size for file in SHIPPED.folder.iterdir()) <= 8_000_000
    card = (SHIPPED.folder / "README.md").read_text(encoding="utf-8")
    assert "Apache-2.0" in card
    assert "SmolLM2-135M-Instruct" in card
