"""The row operators as Triton kernels, in Triton's interpreter: against the loops, and audited exactly."""

import warnings
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from audits.own_rounds import (
    ROUNDS,
    as_on_a_device,
    interpreted_kernels,
    own_samplers,
    round_with,
)
from compiled_kernels import compiled_for, compiled_module
from deep import first_is_quick
from spectheory import audit, instances
from spectheory.auditing.following.triton_kernels import interpreting
from spectheory.foundation.errors import NoKernelsNotice
from spectheory.foundation.kernels import row_kernels
from spectheory.foundation.kernels.places import row_places
from spectheory.testing import assert_sampler_lossless
from spectheory.verification.algorithms import verifiers


@pytest.fixture(scope="module")
def kernels() -> ModuleType:
    return interpreted_kernels()


def rows_of(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("scaled", [(0, 0), (1, 1)])
@first_is_quick("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", [3, 1_500])
def test_residuals(kernels: ModuleType, size: int, dtype: torch.dtype, scaled: tuple[int, int]) -> None:
    target, draft = rows_of(1, 3, 2, 3, size, dtype=dtype), rows_of(2, 3, 2, 2, size, dtype=dtype)
    scales = [rows_of(3 + n, 3, dtype=dtype) if on else None for n, on in enumerate(scaled)]
    stops = torch.tensor([0, 1, 1]), torch.tensor([0, 2, 1])
    mass = target[:, 1, 1], draft[:, 0, 1], *scales
    with interpreting():
        found = kernels.residual_at_stops(target, draft, *stops, *scales), kernels.residual_mass(*mass)
    expected = row_kernels.residual_at_stops(target, draft, *stops, *scales), row_kernels.residual_mass(*mass)
    tolerance = 4 * torch.finfo(dtype).eps
    for one, other in zip(found, expected, strict=True):
        assert one.dtype is dtype
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)
    # partner: the draft row of another depth
    with interpreting():
        wrong = kernels.residual_mass(target[:, 1, 1], draft[:, 0, 0], *scales)
    assert not torch.allclose(wrong, expected[1], rtol=1e-2, atol=0)


@first_is_quick("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_they_compile_for_a_device(dtype: torch.dtype) -> None:
    """The interpreter takes what the compiler refuses."""
    rows, scale = rows_of(1, 3, 2, 3, 700, dtype=dtype), rows_of(2, 3, dtype=dtype)
    stops = torch.tensor([0, 1, 1]), torch.tensor([0, 2, 1])
    triton_rows = compiled_module("spectheory.foundation.kernels.triton_rows")
    with compiled_for(triton_rows, capability=90) as compiled:
        for scales in ((None, None), (scale, scale)):
            triton_rows.residual_mass(rows[:, 0, 0], rows[:, 0, 1], *scales)
            triton_rows.residual_at_stops(rows, rows[:, :, 1:], *stops, *scales)
        triton_rows.draw(rows[:, 0, 0], scale.double(), 256)
    assert set(compiled) == {"_mass_kernel", "_stop_kernel", "_draw_kernel"}


def test_what_does_not_compile_is_found() -> None:
    module, rows = import_module("uncompilable"), rows_of(1, 3, dtype=torch.float32)
    with compiled_for(module, capability=90), pytest.raises(module.triton.CompilationError):
        module.two_types_kernel[(1,)](rows, rows)


@first_is_quick("size", [3, 256, 700])
def test_draws(kernels: ModuleType, size: int) -> None:
    """The numbers of the loops; an entry without mass is never drawn, whatever u is."""
    rows = rows_of(5, 40, size) * (rows_of(6, 40, size) < 0.5)
    rows[:, 0] += 1e-3
    uniform = torch.linspace(0, 1 - 2**-53, 40, dtype=torch.float64)
    with interpreting():
        numbers, masses = kernels.draw(rows, uniform, 256)
    expected, expected_masses = row_kernels.draw(rows, uniform, 256)
    assert numbers.tolist() == expected.tolist()
    torch.testing.assert_close(masses, expected_masses, rtol=1e-14, atol=0)
    assert bool((rows.gather(-1, numbers[:, None]) > 0).all())


def test_kernels_that_fail_are_not_used(kernels: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first use on a device they are held against a case that is known."""
    check, device = kernels.work_on.__wrapped__, (torch.device("cpu"), torch.float32)
    with interpreting(), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check(*device)
    right = kernels.residual_mass
    monkeypatch.setattr(kernels, "residual_mass", lambda *given: right(*given) + 1)
    with (
        interpreting(),
        pytest.warns(NoKernelsNotice, match="not used on cpu with torch.float32.*they give other numbers"),
    ):
        assert not check(*device)
    monkeypatch.setattr(kernels, "residual_mass", None)
    with interpreting(), pytest.warns(NoKernelsNotice, match="TypeError: 'NoneType' object is not callable"):
        assert not check(*device)


SMALL = {"thirds": instances.two_token(2)}


@pytest.mark.parametrize("pairs", [SMALL, pytest.param(None, marks=pytest.mark.deep, id="all")])
def test_rounds_with_the_kernels_are_audited_as_lossless(pairs: Any) -> None:
    """Random numbers are followed through the kernels, as through those that libraries ship."""
    samplers = own_samplers()
    assert [sampler.name for sampler in samplers] == [f"ours-{name}" for name in ROUNDS]
    for sampler in samplers if pairs is None else samplers[1:2]:
        certificate = audit(sampler, pairs)
        assert certificate
        assert certificate.provenance.file == "spectheory/foundation/kernels/triton_rows.py"


def test_the_kernels_are_launched(kernels: ModuleType) -> None:
    """Each of them in a round of ``block``."""
    called: set[str] = set()
    paths, generator = torch.tensor([[[0, 1]]]), torch.Generator().manual_seed(1)
    with as_on_a_device(kernels, called.add), interpreting():
        for _ in range(8):
            verifiers["block"].outcome(paths, rows_of(1, 1, 1, 3, 2), rows_of(2, 1, 1, 2, 2)).sample(
                generator
            )
    assert called == {"residual_mass", "residual_at_stops", "draw"}


@pytest.mark.deep
def test_a_wrong_kernel_is_found(kernels: ModuleType) -> None:
    """It draws the correction token from the target's row."""

    def wrong(target_rows: Any, draft_rows: Any, *stop: Any) -> Any:
        return kernels.residual_at_stops(target_rows, draft_rows * 0, *stop)

    bent: Any = SimpleNamespace(
        residual_mass=kernels.residual_mass, residual_at_stops=wrong, draw=kernels.draw
    )
    with pytest.raises(AssertionError, match="its law is not the target's"):
        assert_sampler_lossless(round_with(bent, "block"), pairs=SMALL, drafts=(1,))


def test_what_does_not_belong_together_is_refused(kernels: ModuleType) -> None:
    rows = rows_of(1, 4, 300)
    with interpreting():
        with pytest.raises(ValueError, match="rows of one shape"):
            kernels.residual_mass(rows, rows[:3], None, None)
        with pytest.raises(ValueError, match="a scale per row"):
            kernels.residual_mass(rows, rows, rows[:3, 0], None)
        with pytest.raises(ValueError, match="side by side"):
            kernels.residual_mass(rows.mT.contiguous().mT, rows, None, None)
        with pytest.raises(ValueError, match="a uniform number per row"):
            kernels.draw(rows, rows[:2, 0], 256)


def test_places() -> None:
    assert np.array_equal(row_places((2, 2), (10, 3)), [0, 3, 10, 13])
