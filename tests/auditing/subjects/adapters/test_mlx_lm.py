"""The adapter on a module of our own that has the shape of the released one; ``make audits`` runs that."""

from pathlib import Path

import pytest

from audited import released
from spectheory import certify, instances
from spectheory.auditing.subjects.adapters import mlx_lm
from spectheory.auditing.subjects.libraries import load_subject

MODULE = """
import mlx.core as mx
from mlx.nn import Module
from .models.cache import make_prompt_cache

device = mx.default_device()

def speculative_generate_step(prompt, model, draft_model, *, num_draft_tokens, max_tokens, sampler):
    cache = make_prompt_cache(model)
    last, drafted = mx.array([0], mx.uint32), []
    for _ in range(num_draft_tokens):
        logits = draft_model(last[None], cache=cache)[:, -1]
        last = sampler(logits - mx.logsumexp(logits, axis=-1, keepdims=True))
        drafted.append(last)
    drafted = mx.concatenate(drafted).tolist()
    logits = model(None, cache=cache)[0]
    tokens = sampler(logits - mx.logsumexp(logits, axis=-1, keepdims=True)).tolist()
    for place, token in enumerate(tokens):
        agrees = place < num_draft_tokens and token == drafted[place]
        yield DRAWN, None, agrees
        if not agrees:
            return
"""


@pytest.mark.parametrize(("drawn", "is_right"), [("token", True), ("token if agrees else 0", False)])
def test_a_generator_that_samples_and_compares(drawn: str, is_right: bool, tmp_path: Path) -> None:
    """Lossless, and no faster than agreement allows; one that yields another token is not."""
    released(tmp_path, mlx_lm.FUNCTION.modules[0], MODULE.replace("DRAWN", drawn))
    (tmp_path / "mlx_lm" / "__init__.py").touch()
    sampler = load_subject("mlx-lm", checkout=tmp_path)
    found = certify(sampler, instances.two_residual_tokens(2), with_optimum=False)
    assert (found.total_variation < 1e-6) is is_right
    if is_right:
        agreement = sum(
            instances.two_residual_tokens(2).target[0][0] * instances.two_residual_tokens(2).draft[0][0]
        )
        assert abs(float(found.block_efficiency - 1 - agreement - agreement**2)) < 1e-6
