"""The adapters on modules of our own in the shape of the released ones; ``make audits`` runs those."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from audit_support import law
from audited import DRAFT, PATHS, TARGET, recorded, released
from audits.forms import mlx
from audits.libraries import dspark_mlx, mlx_dspark, mlx_lm, mtplx
from audits.registry import SUBJECTS, load_subject
from deep import first_is_quick
from spectheory import certify, instances
from spectheory.auditing.tape.coins import UniformDraw
from spectheory.auditing.tape.races import UndefinedDrawError

MODULE = """
import mlx.core as mx
import numpy as np
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
    logits = model(np.array([FED]), cache=cache)[0][-num_draft_tokens - 1:]
    tokens = sampler(logits - mx.logsumexp(logits, axis=-1, keepdims=True)).tolist()
    for place, token in enumerate(tokens):
        agrees = place < num_draft_tokens and token == drafted[place]
        yield DRAWN, None, agrees
        if not agrees:
            return
"""


@first_is_quick(
    ("drawn", "fed", "is_right"),
    [
        ("token", "[0, *drafted]", True),
        ("token if agrees else 0", "[0, *drafted]", False),
        ("token", "[0, 0, *drafted]", False),
        ("token", "[0, *drafted[:1], *drafted[:-1]]", False),
    ],
    quick=2,
)
def test_a_generator_that_samples_and_compares(drawn: str, fed: str, is_right: bool, tmp_path: Path) -> None:
    """Lossless, and no faster than agreement allows; not with another token, or another text."""
    module = MODULE.replace("DRAWN", drawn).replace("FED", fed)
    released(tmp_path, mlx_lm.FUNCTION.modules[0], module)
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
    return SimpleNamespace(tokens=np.array([*draft_tokens[:count], last]), n_accepted=count)
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


@first_is_quick("name", COINS)
def test_samplers_with_coins(name: str, tmp_path: Path) -> None:
    (module,) = SUBJECTS[name].function.modules
    for is_right in (True, False):
        released(tmp_path, module, COINS[name].replace("RESIDUAL", str(is_right)))
        sampler = load_subject(name, checkout=tmp_path)
        found = certify(sampler, instances.two_residual_tokens(2), with_optimum=False)
        assert (found.total_variation < 1e-6) is is_right


def test_what_the_generating_loop_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """One drafted token and one draft row after the other, then all rows of the target at once."""
    drawn: list[Any] = []

    def multinomial(probs: torch.Tensor, number: int, generator: Any) -> torch.Tensor:
        drawn.append((probs, number, generator))
        return torch.tensor([[1], [0], [2], [1]])

    monkeypatch.setattr(torch, "multinomial", multinomial)
    given, code = recorded(iter([(np.uint32(1), None, True), (np.uint32(2), None, False), (9, None, True)]))
    generator = torch.Generator()
    assert repr(mlx_lm.speculative_generate_step(code)(PATHS, TARGET, DRAFT, generator)) == "[1, 2]"
    assert given.pop("prompt").tolist() == [0]
    models, sampler = (given.pop("model"), given.pop("draft_model")), given.pop("sampler")
    assert given == {"num_draft_tokens": 3, "max_tokens": 4}
    fed = [0, *PATHS[0].tolist()]
    for last, row, token in zip(fed[:-1], DRAFT[0], PATHS[0].tolist(), strict=True):
        logits = models[1](np.array([[last]]), cache=None)
        np.testing.assert_array_equal(logits, row.log().numpy()[None, None])
        found = sampler(logits[0])
        assert (found.tolist(), found.dtype) == ([token], np.uint32)
    logits = models[0](np.array([fed]), cache=None)
    np.testing.assert_array_equal(logits, TARGET[:1].log().numpy())
    assert not models[0](np.array([[0]]), cache=None).any()
    found = sampler(logits[0])
    assert (found.tolist(), found.dtype) == ([1, 0, 2, 1], np.uint32)
    ((probs, *others),) = drawn
    assert_close(probs, TARGET[0])
    assert others == [1, generator]


def test_what_functions_with_coins_are_given() -> None:
    """Of the paths the first one; rows of double precision where the library has them."""
    path, target, draft = PATHS[0].tolist(), TARGET[0].double().numpy(), DRAFT[0].double().numpy()
    given, code = recorded((2, 1))
    assert mlx_dspark.mlx_dspark(code)(PATHS, TARGET, DRAFT, None) == [1, 0, 1]
    assert [type(given[name]) for name in ("v_logits", "q_probs")] == [np.ndarray] * 2
    np.testing.assert_array_equal(given.pop("v_logits"), TARGET[0].log().numpy())
    np.testing.assert_array_equal(given.pop("q_probs"), DRAFT[0].numpy())
    assert given == {"draft": path, "temperature": 1.0}

    given, code = recorded(SimpleNamespace(tokens=np.array([1, 2]), n_accepted=1))
    assert repr(dspark_mlx.dspark_mlx(code)(PATHS, TARGET, DRAFT, None)) == "[1, 2]"
    assert isinstance(given["draft_tokens"], np.ndarray)
    assert given["draft_tokens"].tolist() == path
    for name, rows in (("draft_probs", draft), ("base_probs", target)):
        np.testing.assert_array_equal(given[name], rows)
        assert given[name].dtype == np.float64
    assert isinstance(given["rng"], np.random.Generator)


def test_answers_that_contradict_themselves() -> None:
    """A count that is not that of the tokens, or of none; a drafted token that is accepted as another one."""
    for adapter, answer, says in (
        (mlx_dspark.mlx_dspark, (4, 1), "4 of 3 drafted tokens are accepted"),
        (mlx_dspark.mlx_dspark, (-1, 1), "-1 of 3 drafted tokens are accepted"),
        (
            dspark_mlx.dspark_mlx,
            SimpleNamespace(tokens=np.array([1, 2]), n_accepted=2),
            "says that 2 are accepted",
        ),
    ):
        with pytest.raises(UndefinedDrawError, match=says):
            adapter(recorded(answer)[1])(PATHS, TARGET, DRAFT, None)
    answer = SimpleNamespace(accepted=True, token_id=2)
    code: Any = SimpleNamespace(call=lambda **_: answer, function=SimpleNamespace(__name__="verify"))
    code.modules = {"mtplx.sampling": SimpleNamespace(verify=code.call)}
    with pytest.raises(UndefinedDrawError, match="accepts the drafted token 1, and returns 2"):
        mtplx.mtplx(code)(PATHS, TARGET, DRAFT, None)


@pytest.mark.parametrize("accepted", [3, 1, 0])
def test_what_a_function_of_one_position_is_given(accepted: int) -> None:
    """A call per position until one rejects; a token behind them all is drawn from the last row."""
    target, draft = TARGET[0].double().numpy(), DRAFT[0].double().numpy()
    asked: list[dict[str, Any]] = []

    def verify_one_token(**values: Any) -> Any:
        asked.append(values)
        is_accepted = len(asked) <= accepted
        return SimpleNamespace(accepted=is_accepted, token_id=values["draft_token"] if is_accepted else 9)

    module = SimpleNamespace(
        verify_one_token=verify_one_token, sample_from_distribution=lambda row, rng: (row.tolist(), rng)
    )
    modules = {"another": SimpleNamespace(), "mtplx.sampling": module}
    code: Any = SimpleNamespace(call=verify_one_token, function=verify_one_token, modules=modules)
    tokens = mtplx.mtplx(code)(PATHS, TARGET, DRAFT, None)
    path = PATHS[0].tolist()
    assert tokens[:-1] == path[:accepted]
    (rng,) = {id(values["rng"]): values["rng"] for values in asked}.values()
    assert isinstance(rng, np.random.Generator)
    assert tokens[-1] == (9 if accepted < 3 else (target[3].tolist(), rng))
    for values, p, q, token in zip(asked, target, draft, path, strict=False):
        np.testing.assert_array_equal(values["target_p"], p)
        np.testing.assert_array_equal(values["draft_q"], q)
        assert (values["draft_token"], values["target_p"].dtype) == (token, np.float64)
        assert values["draft_q"].dtype == np.float64
    as_float: Any = module.float  # type: ignore[attr-defined]
    assert repr(as_float(1)) == "1.0"
    coin = object.__new__(UniformDraw)
    assert as_float(coin) is coin


def test_arrays_of_numpy_stand_in() -> None:
    """What is not numpy's own: sums of exponentials by rows, types of arrays, and draws."""
    arrays: Any = SimpleNamespace(**mlx.ARRAYS.names())
    rows = np.log(TARGET[0].double().numpy() * 2)
    np.testing.assert_allclose(arrays.logsumexp(rows, axis=-1, keepdims=True), np.full((4, 1), np.log(2)))
    np.testing.assert_allclose(arrays.logsumexp(rows, axis=1, keepdims=False), np.full(4, np.log(2)))
    np.testing.assert_allclose(arrays.softmax(rows, axis=-1), TARGET[0].numpy())
    assert arrays.array([1], arrays.uint32).dtype == np.uint32
    assert arrays.array([1.5]).tolist() == [1.5]
    assert arrays.random.uniform(shape=(2, 3)).shape == (2, 3)
    assert arrays.eval(rows, rows) is arrays.async_eval(rows) is arrays.clear_cache() is None
    with arrays.stream(None):
        drawn = law(lambda: int(arrays.random.categorical(rows[0])))
    assert {token: float(mass) for token, mass in drawn.items()} == pytest.approx(
        {0: 1 / 8, 1: 2 / 8, 2: 5 / 8}
    )
