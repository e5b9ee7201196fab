"""The adapters on modules of our own in the shape of the released ones; ``make audits`` runs those."""

from pathlib import Path

import pytest

from audited import released
from spectheory import certify, instances
from spectheory.auditing.subjects.adapters import mlx_lm
from spectheory.auditing.subjects.libraries import SUBJECTS, load_subject

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


COINS = {
    "mlx-dspark": """
import mlx.core as mx

def _spec_sample_accept(v_logits, draft, q_probs, temperature):
    rows, (p, idx) = mx.arange(len(draft)), (mx.softmax(v_logits / temperature, axis=-1), mx.array(draft))
    coins = mx.random.uniform(shape=(len(draft),))
    accepted = coins < mx.minimum(1.0, p[rows, idx] / mx.maximum(q_probs[rows, idx], 1e-9))
    count = int(mx.cumprod(accepted.astype(mx.int32)).sum().item())
    row = mx.maximum(p[count] - q_probs[count], 0.0) if RESIDUAL and count < len(draft) else p[count]
    return count, int(mx.random.categorical(mx.log(row + 1e-20)).item())
""",
    "dspark-mlx": """
from types import SimpleNamespace
import numpy as np

def speculative_sample_accept(draft_tokens, draft_probs, base_probs, rng):
    count, row = len(draft_tokens), base_probs[-1]
    for place, token in enumerate(draft_tokens):
        if rng.random() >= base_probs[place][token] / draft_probs[place][token]:
            count, row = place, base_probs[place]
            row = np.maximum(row - draft_probs[place], 0) if RESIDUAL else row
            break
    last = rng.choice(len(row), p=row / row.sum())
    return SimpleNamespace(tokens=np.array([*draft_tokens[:count], last]))
""",
    "mtplx": """
from types import SimpleNamespace
import numpy as np

def sample_from_distribution(row, rng):
    return int(rng.choice(len(row), p=row / row.sum()))

def verify_one_token(target_p, draft_q, draft_token, rng):
    if float(rng.random()) <= min(1.0, target_p[draft_token] / draft_q[draft_token]):
        return SimpleNamespace(accepted=True, token_id=draft_token)
    row = np.maximum(target_p - draft_q, 0) if RESIDUAL else target_p
    return SimpleNamespace(accepted=False, token_id=sample_from_distribution(row, rng))
""",
}
"""Token verification; without RESIDUAL the token after a rejection has the target's row."""


@pytest.mark.parametrize("name", COINS)
def test_samplers_with_coins(name: str, tmp_path: Path) -> None:
    (module,) = SUBJECTS[name].function.modules
    for is_right in (True, False):
        released(tmp_path, module, COINS[name].replace("RESIDUAL", str(is_right)))
        sampler = load_subject(name, checkout=tmp_path)
        found = certify(sampler, instances.two_residual_tokens(2), with_optimum=False)
        assert (found.total_variation < 1e-6) is is_right
