"""Numbers that kernels make out of a seed: their law is Triton's own, one that is read twice is found."""

from collections.abc import Callable
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from audit_support import assert_drawn_from, law
from audited import GUMBEL, released
from audits.loading.one_module import modules_alone
from spectheory.auditing.following.intercept import Journal
from spectheory.auditing.following.kernel_draws import RAND, elementwise, gumbel_noise
from spectheory.auditing.following.triton_kernels import interpreting
from spectheory.auditing.tape.decisions import NotEnumerableError

KERNELS = (
    GUMBEL
    + """
@triton.jit
def numbers(out, whole):
    tl.store(out + tl.program_id(0), tl.random.uint_to_uniform_float(tl.load(whole + tl.program_id(0))))

@triton.jit
def coins(out, seed, offset, SEED: tl.constexpr, SECOND: tl.constexpr):
    first = tl.rand(tl.load(seed), tl.load(offset))
    second = tl.rand(tl.load(seed) + SEED, tl.load(offset) + SECOND)
    if tl.maximum(first, 1e-9) < 0.25:
        tl.store(out, 1)
    if tl.log(second) < tl.log(0.5):
        tl.store(out + 1, 1)

@triton.jit
def race(out, logits, seed, offset, SIZE: tl.constexpr):
    lanes = tl.arange(0, SIZE)
    shifted = tl.load(logits + lanes, mask=lanes < 3, other=0.0) + device.log1p(0.0 * lanes.to(tl.float32))
    noise = -tl.log(-log_complement(uniform(tl.load(seed), tl.load(offset), lanes)))
    best, lane = tl.max(tl.where(lanes < 3, shifted + noise, float("-inf")), axis=0, return_indices=True)
    tl.store(out, lane)

@triton.jit
def seeded_race(out, logits, seed, offset, SIZE: tl.constexpr):
    lanes = tl.arange(0, SIZE)
    u = tl.maximum(tl.rand(tl.randint(tl.load(seed), tl.load(offset)), lanes), 4.6566127342e-10)
    noise = -tl.log(-device.log1p(-u))
    row = tl.where(lanes < 3, tl.load(logits + lanes, mask=lanes < 3, other=0.0) + noise, float("-inf"))
    best, lane = tl.max(row, axis=0, return_indices=True)
    tl.store(out, lane)

@triton.jit
def misused(out, seed, offset, MODE: tl.constexpr):
    if MODE == 0:
        out_of = tl.randint(tl.load(seed), tl.load(offset)) < 5
    elif MODE == 1:
        tl.store(out, tl.randint(tl.load(seed), tl.load(offset)) + 5)
    else:
        out_of = tl.randint(tl.load(seed), tl.arange(0, 4))
    if MODE != 1:
        tl.store(out, 1)
"""
)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    root = tmp_path_factory.mktemp("kernels")
    released(root, "made_up.kernels", KERNELS)
    with interpreting():
        module: Any = modules_alone({"made_up.kernels": root / "made_up" / "kernels.py"})["made_up.kernels"]
    module.uniform, module.log_complement = gumbel_noise(module.uniform, module.log_complement)
    module.device = type("device", (), {"log1p": staticmethod(elementwise(np.log1p))})
    found: ModuleType = module
    return found


@pytest.mark.parametrize("bits", [32, 64])
def test_the_values_are_those_of_triton(bits: int, kernels: ModuleType) -> None:
    """Every whole number, and the one with all bits flipped, has the value of its atom."""
    grid = RAND[bits]
    atoms = [0, 1, 5, 2**24 + 1, grid.atoms // 3, grid.atoms // 2, grid.atoms - 2**20, grid.atoms - 1]
    whole = torch.tensor([*atoms, *(-atom - 1 for atom in atoms)], dtype=getattr(torch, f"int{bits}"))
    out = torch.zeros(len(whole))
    with interpreting():
        kernels.numbers[(len(whole),)](out, whole)
    assert out.tolist() == [grid.value(atom) for atom in atoms] * 2
    assert out.max() < 1
    assert out[:8].tolist() == sorted(out[:8].tolist())


def drawn(
    kernels: ModuleType, second: int, dtype: torch.dtype, place: Callable[[], int], seed: int = 0
) -> Callable[[], tuple[int, ...]]:
    def run() -> tuple[int, ...]:
        out = torch.zeros(2, dtype=torch.int32)
        offset = torch.tensor([place()], dtype=dtype)
        kernels.coins[(1,)](out, torch.tensor([5]), offset, SEED=seed, SECOND=second)
        return tuple(out.tolist())

    return run


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_coins(dtype: torch.dtype, kernels: ModuleType) -> None:
    """Two counters are two coins."""
    journal = Journal()
    found = law(drawn(kernels, 1, dtype, lambda: 0), journal)
    assert abs(found[1, 1] - Fraction(1, 8)) < Fraction(1, 10**6)
    assert journal.findings == set()
    assert journal.primitives == {f"tl.rand: {RAND[64 if dtype is torch.int64 else 32].name}"}


def test_philox_draws_from_that_law(kernels: ModuleType) -> None:
    counter = iter(range(0, 10_000, 2))
    found = law(drawn(kernels, 1, torch.int64, lambda: 0))
    with interpreting():
        assert_drawn_from(drawn(kernels, 1, torch.int64, lambda: next(counter)), found, draws=80)


@pytest.mark.parametrize(
    ("seed", "outcomes", "findings"),
    [
        (1, {(0, 0), (0, 1), (1, 0), (1, 1)}, set()),
        (0, {(0, 0), (0, 1), (1, 1)}, {"tl.rand reads random numbers that it has read before"}),
    ],
    ids=["two seeds", "partner: one seed"],
)
def test_a_counter_that_is_read_twice(
    seed: int, outcomes: set[Any], findings: set[str], kernels: ModuleType
) -> None:
    """It gives two coins with two seeds and one coin with one seed, which is a finding."""
    journal = Journal()
    assert law(drawn(kernels, 0, torch.int64, lambda: 0, seed=seed), journal).keys() == outcomes
    assert {text for _, text in journal.findings} == findings


def test_gumbel_numbers_of_a_hash(kernels: ModuleType) -> None:
    """Followed as a race; outside of a run the kernel's own hash draws from the same law."""
    counter = iter(range(10_000))

    def raced(offset: int) -> int:
        out = torch.zeros(1, dtype=torch.int32)
        logits = torch.tensor([0.5, 0.25, 0.25]).log()
        kernels.race[(1,)](out, logits, torch.tensor([3]), torch.tensor([offset]), SIZE=4)
        return int(out)

    journal = Journal()
    found = law(lambda: raced(0), journal)
    assert abs(found[0] - Fraction(1, 2)) < Fraction(1, 10**6)
    assert (journal.primitives, journal.findings) == (
        {"uniform: uniform in the unit interval, as real numbers"},
        set(),
    )
    assert law(lambda: raced(0) + 3 * raced(1), journal).keys() == set(range(9))
    assert journal.findings == set()
    assert law(lambda: raced(0) + 3 * raced(0), journal).keys() == {0, 4, 8}
    assert len(journal.findings) == 1
    with interpreting():
        assert_drawn_from(lambda: raced(next(counter)), found, draws=80)


def test_a_seed_that_is_made_of_a_seed(kernels: ModuleType) -> None:
    """Its numbers are others for every counter, and the same ones where it is made again."""
    counter = iter(range(10_000))

    def raced(offset: int) -> int:
        out = torch.zeros(1, dtype=torch.int32)
        logits = torch.tensor([0.5, 0.25, 0.25]).log()
        kernels.seeded_race[(1,)](out, logits, torch.tensor([3]), torch.tensor([offset]), SIZE=4)
        return int(out)

    journal = Journal()
    found = law(lambda: raced(0), journal)
    assert abs(found[0] - Fraction(1, 2)) < Fraction(1, 10**6)
    assert "tl.randint: a seed of other numbers, another one where its arguments differ" in journal.primitives
    assert law(lambda: raced(0) + 3 * raced(1), journal).keys() == set(range(9))
    assert journal.findings == set()
    assert law(lambda: raced(0) + 3 * raced(0), journal).keys() == {0, 4, 8}
    assert len(journal.findings) == 1
    with interpreting():
        assert_drawn_from(lambda: raced(next(counter)), found, draws=80)


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        (0, "applies less to a random number that can only be a seed"),
        (1, "applies add to a random number that can only be a seed"),
        (2, "draws several numbers from tl.randint, whose law is not known"),
    ],
)
def test_whole_numbers_that_are_not_seeds_are_refused(mode: int, says: str, kernels: ModuleType) -> None:
    def run() -> int:
        out = torch.zeros(1, dtype=torch.int32)
        kernels.misused[(1,)](out, torch.tensor([3]), torch.tensor([0]), MODE=mode)
        return int(out)

    with pytest.raises(NotEnumerableError, match=says):
        law(run)
