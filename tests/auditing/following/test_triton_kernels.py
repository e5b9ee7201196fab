"""Kernels under Triton's interpreter: random numbers followed through memory, and what is refused."""

import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from audit_support import assert_drawn_from, law
from audited import released
from audits.loading.one_module import modules_alone
from deep import first_is_quick
from spectheory.auditing.following.triton_kernels import interpreting
from spectheory.auditing.tape.decisions import NotEnumerableError

KERNELS = """
import triton
import triton.language as tl

@triton.jit
def invert(out, coins, probs, SIZE: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, SIZE)
    sums = tl.cumsum(tl.load(probs + lanes), axis=0)
    coin = tl.load(coins + row)
    if coin * 2.0 < 1.0:
        tl.store(out + row, -1)
    else:
        above = sums > coin
        tl.store(out + row, tl.argmax(above.to(tl.int32), axis=0))

@triton.jit
def race(out, noise, weights, SIZE: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, SIZE)
    mask = lanes < 3
    weight = tl.load(weights + row * 3 + lanes, mask=mask, other=0.0)
    score = weight * tl.load(noise + lanes, mask=mask, other=0.0)
    best, lane = tl.max(tl.where(mask, score, float("-inf")), axis=0, return_indices=True)
    if best > float("-inf"):
        tl.store(out + row, tl.minimum(lane, 2))

@triton.jit
def choose(out, tokens, coins):
    if tl.load(coins) < 0.25:
        tl.store(out, tl.load(tokens))
    else:
        tl.store(out, tl.load(tokens + 1))

@triton.jit
def moves(out, coins, SIZE: tl.constexpr):
    tl.store(out + tl.arange(0, SIZE), tl.load(coins + tl.arange(0, SIZE)) * 0.5)

@triton.jit
def stores(out, coins, SIZE: tl.constexpr):
    lanes = tl.arange(0, SIZE)
    tl.store(out + lanes, tl.load(coins + lanes), mask=lanes < 1)
    tl.store(coins + 1, 0.5)

@triton.jit
def sums(out, coins, SIZE: tl.constexpr):
    tl.store(out, tl.sum(tl.load(coins + tl.arange(0, SIZE)), axis=0))

@triton.jit
def scans(out, coins, SIZE: tl.constexpr):
    tl.store(out + tl.arange(0, SIZE), tl.cumsum(tl.load(coins + tl.arange(0, SIZE)), axis=0))

@triton.jit
def draws(out, coins):
    tl.store(out, tl.randn(7, tl.program_id(0)) + tl.load(coins))

@triton.jit
def bits(out, coins):
    tl.store(out, tl.load(coins).to(tl.int32, bitcast=True))
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    root = tmp_path_factory.mktemp("kernels")
    released(root, "made_up.kernels", KERNELS)
    with interpreting():
        return modules_alone({"made_up.kernels": root / "made_up" / "kernels.py"})["made_up.kernels"]


def inverted(kernels: ModuleType) -> tuple[int, ...]:
    out = torch.zeros(2, dtype=torch.int32)
    kernels.invert[(2,)](out, torch.rand(2), torch.tensor([0.25, 0.25, 0.25, 0.25]), SIZE=4)
    return tuple(out.tolist())


def raced(kernels: ModuleType) -> int:
    """Two races with the same noise; a later kernel uses the winner of one."""
    tokens, out = (torch.zeros(size, dtype=torch.int32) for size in (2, 1))
    noise = torch.empty(3).exponential_().reciprocal()
    weights = torch.tensor([[1.0, 2.0, 1.0], [0.0, 1.0, 3.0]])
    kernels.race[(2,)](tokens, noise, weights, SIZE=4)
    kernels.choose[(1,)](out, tokens, torch.rand(1))
    return int(out)


def moved(kernels: ModuleType) -> bool:
    """Numbers that pass through memory are the numbers they were."""
    out = torch.zeros(2)
    kernels.moves[(1,)](out, torch.rand(2), SIZE=2)
    return bool(out[1] < 0.125)


def stored(kernels: ModuleType) -> tuple[bool, bool, bool]:
    """A masked lane keeps what it has, and what is stored over a random number is none."""
    out, coins = torch.full((2,), 2.0), torch.rand(2)
    kernels.stores[(1,)](out, coins, SIZE=2)
    return bool(out[0] < 0.25), bool(out[1] == 2), bool(coins[1] == 0.5)


def strided(kernels: ModuleType) -> tuple[bool, bool]:
    """Memory in another order than the entries: the third number is the one beside the first."""
    out, coins = torch.zeros(4), torch.empty_strided((2, 2), (1, 2))
    coins.uniform_()
    kernels.moves[(1,)](out, coins, SIZE=4)
    return bool(out[2] < 0.25), bool(coins[0, 1] < 0.5)


def in_part(kernels: ModuleType) -> tuple[bool, bool]:
    """A kernel stores in a part of a tensor."""
    whole = torch.zeros(4)
    kernels.moves[(1,)](whole[1:3], torch.rand(2), SIZE=2)
    return bool(whole[2] < 0.125), bool(whole[3] == 0)


LAWS: dict[str, tuple[Callable[[ModuleType], Any], dict[Any, Fraction]]] = {
    "inverted": (
        inverted,
        {
            (first, second): mass * other
            for first, mass in ((-1, Fraction(1, 2)), (2, Fraction(1, 4)), (3, Fraction(1, 4)))
            for second, other in ((-1, Fraction(1, 2)), (2, Fraction(1, 4)), (3, Fraction(1, 4)))
        },
    ),
    "raced": (raced, {0: Fraction(1, 16), 1: Fraction(5, 16), 2: Fraction(10, 16)}),
    "in part": (in_part, {(True, True): Fraction(1, 4), (False, True): Fraction(3, 4)}),
    "stored": (stored, {(True, True, True): Fraction(1, 4), (False, True, True): Fraction(3, 4)}),
    "strided": (strided, {(True, True): Fraction(1, 2), (False, False): Fraction(1, 2)}),
    "moved": (moved, {True: Fraction(1, 4), False: Fraction(3, 4)}),
}


@first_is_quick("name", LAWS, quick=2)
def test_laws(name: str, kernels: ModuleType) -> None:
    function, expected = LAWS[name]
    assert law(lambda: function(kernels)) == expected
    with interpreting():
        assert_drawn_from(lambda: function(kernels), expected, draws=150)


def test_two_races_that_both_matter_are_followed_and_three_refused(kernels: ModuleType) -> None:
    """Of equal weights the winner is the same."""

    def several(number: int) -> tuple[int, ...]:
        tokens = torch.zeros(number, dtype=torch.int32)
        noise = torch.empty(3).exponential_().reciprocal()
        kernels.race[(number,)](tokens, noise, torch.ones(number, 3), SIZE=4)
        return tuple(tokens.tolist())

    assert law(lambda: several(2)) == {(token, token): Fraction(1, 3) for token in range(3)}
    with pytest.raises(NotEnumerableError, match="three races with the same exponential random numbers"):
        law(lambda: several(3))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("sums", "applies sum"),
        ("scans", "applies scan"),
        ("bits", "applies bitcast"),
        ("draws", r"draws from tl\.randn"),
    ],
)
def test_what_is_not_followed_is_refused(name: str, says: str, kernels: ModuleType) -> None:
    """In one line, out of the depths of the interpreter."""

    def run() -> None:
        size = {} if name in ("bits", "draws") else {"SIZE": 2}
        getattr(kernels, name)[(1,)](torch.zeros(2), torch.rand(2), **size)

    with pytest.raises(NotEnumerableError, match=says):
        law(run)


@pytest.mark.usefixtures("kernels")
def test_the_environment_is_that_of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """After every run, where Triton is in use: what is set, changed or deleted is seen by no other run."""
    monkeypatch.setenv("CHANGED", "before")
    monkeypatch.setenv("DELETED", "before")
    monkeypatch.delenv("ADDED", raising=False)
    names, before = ("ADDED", "CHANGED", "DELETED"), dict(os.environ)

    def run() -> tuple[str | None, ...]:
        seen = tuple(map(os.environ.get, names))
        os.environ.update(ADDED="in a run", CHANGED="in a run")
        del os.environ["DELETED"]
        return (*seen, str(bool(torch.rand(()) < 0.5)))

    half = Fraction(1, 2)
    assert law(run) == {(None, "before", "before", truth): half for truth in ("True", "False")}
    assert dict(os.environ) == before


@pytest.mark.usefixtures("kernels")
def test_a_module_of_triton_that_comes_between_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the process's and not ours."""
    theirs = ModuleType("triton.made_up")
    monkeypatch.setitem(sys.modules, "triton.made_up", theirs)
    with interpreting():
        assert "triton.made_up" not in sys.modules
    assert sys.modules["triton.made_up"] is theirs


@pytest.mark.parametrize(
    ("before", "environment", "says"),
    [
        pytest.param("", "", "True False False", marks=pytest.mark.deep),
        pytest.param("import triton.language\n", "", "True False False", marks=pytest.mark.deep),
        pytest.param("import triton.language\n", "1", "True True True", marks=pytest.mark.deep),
    ],
    ids=["later", "before", "a process that interprets"],
)
def test_a_triton_for_a_device_is_left_alone(
    before: str, environment: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interpreter is a copy of our own, whether the process imports Triton before or after.

    Where the process imports Triton with TRITON_INTERPRET=1, there is no copy: a user's kernels are followed.
    """
    code = (
        f"{before}from spectheory.auditing.following.triton_kernels import interpreting\n"
        "with interpreting():\n    import triton.language as ours\n"
        "import triton.language as theirs\n"
        "print(hasattr(ours.max, 'rewriter'), hasattr(theirs.max, 'rewriter'), ours is theirs)"
    )
    monkeypatch.setenv("TRITON_INTERPRET", environment or "0")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{says}\n"


OWN_KERNEL = """
import torch, triton, triton.language as tl
from spectheory import audit, instances

@triton.jit
def kernel(coin, target, draft, token, out):
    t = tl.load(token)
    tl.store(out, tl.where(tl.load(coin) * tl.load(draft + t) < tl.load(target + t), t, -1))

def verify(paths, target_rows, draft_rows, generator):
    out = torch.zeros(1, dtype=torch.long)
    kernel[(1,)](torch.rand(1, generator=generator), target_rows[0, 0], draft_rows[0, 0], paths[0], out)
    if int(out[0]) < 0:
        return [int(torch.multinomial((target_rows[0, 0] - draft_rows[0, 0]).clamp(min=0), 1))]
    return [int(out[0]), int(torch.multinomial(target_rows[0, 1], 1))]

try:
    print(audit(verify, {"pair": instances.two_token(1)}, drafts=1).verdict)
except Exception as error:
    print(error)
"""


@pytest.mark.parametrize(("interprets", "says"), [("0", "set TRITON_INTERPRET=1"), ("1", "lossless")])
def test_kernels_of_a_device_say_what_to_do(interprets: str, says: str, tmp_path: Path) -> None:
    """The partner: with the variable they are followed."""
    (tmp_path / "own_kernel.py").write_text(OWN_KERNEL, encoding="utf-8")
    variables = os.environ | {"TRITON_INTERPRET": interprets, "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, str(tmp_path / "own_kernel.py")]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert says in done.stdout, done.stderr
