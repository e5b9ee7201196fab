"""The table of docs/auditing.md: each line with a lossless sampler and with a wrong one."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from audit_support import law
from deep import first_is_quick
from spectheory import audit, instances
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, UNDECIDED
from spectheory.pairs.pair import ModelPair

PAIRS = {"residual": instances.two_residual_tokens(1)}


def verify(paths: Any, target: Any, draft: Any, accepts: Any, drawn: Any) -> list[int]:
    token, p, q = int(paths[0, 0]), target[0, 0], draft[0, 0]
    if accepts(p[token] / q[token]):
        return [token, int(drawn(target[0, 1]))]
    return [int(drawn((p - q).clamp(min=0)))]


def multinomial(row: Any) -> Any:
    return torch.multinomial(row, 1)


def coin(comparison: Callable[[Any], Any]) -> Any:
    return lambda paths, target, draft, _: verify(paths, target, draft, comparison, multinomial)


def draw(drawn: Callable[[Any], Any]) -> Any:
    """A sampler that draws all tokens in a way of its own."""
    return lambda paths, target, draft, _: verify(
        paths, target, draft, lambda ratio: torch.rand(()) < ratio, drawn
    )


def gumbel(row: Any, sign: int = -1, shift: float = 0.0) -> Any:
    noise = sign * torch.log(-torch.log(torch.rand(len(row)) + shift) + shift)
    return (row.log() + noise).argmax()


def raced(row: Any) -> Any:
    return (row / torch.empty(len(row)).exponential_()).argmax()


def joined_winners(row: Any) -> Any:
    winners = torch.stack([raced(row), raced(row)])
    return torch.cat([winners, torch.tensor([0])])[torch.where(torch.rand(()) < 0.5, 0, 1)]


MAY: dict[str, tuple[Any, Any]] = {
    "torch.rand(1).item() < p": (
        coin(lambda ratio: torch.rand(1).item() < ratio),
        coin(lambda ratio: torch.rand(1).item() < ratio / 2),
    ),
    "cat, stack, where on coins": (
        coin(lambda ratio: torch.cat([torch.rand(1), torch.stack([torch.rand(())])])[1] < ratio),
        coin(lambda ratio: torch.where(torch.tensor([True, False]), torch.rand(2), 0.0)[1] < ratio),
    ),
    "cat, stack, where on the winners of races": (
        draw(joined_winners),
        draw(lambda row: torch.cat([torch.tensor([0]), raced(row).reshape(1)])[0]),
    ),
    "Gumbel noise as -log(-log(u))": (draw(gumbel), draw(lambda row: gumbel(row + 0.25))),
    "u + 1e-20, clamp(min=1e-10), 1 - u before a logarithm": (
        draw(lambda row: gumbel(row, shift=1e-20)),
        draw(lambda row: gumbel(row + 0.25, shift=1e-20)),
    ),
    "exponential noise as -log(u), in place": (
        draw(lambda row: (row / torch.rand(len(row)).clamp_(min=1e-10).log_().neg_()).argmax()),
        draw(lambda row: (row**2 / -torch.log1p(-torch.rand(len(row)))).argmax()),
    ),
    "default_rng().random() < tensor": (
        coin(lambda ratio: np.random.default_rng().random() < ratio),
        coin(lambda ratio: np.random.default_rng().random() < ratio / 2),
    ),
    "randint of a long range: comparisons, division": (
        coin(lambda ratio: torch.randint(0, 2**31 - 1, ()) / (2**31 - 1) < ratio),
        coin(lambda ratio: torch.randint(0, 11, ()) / 10 < ratio),
    ),
    "randint, int(u * n) and winners as an index": (
        draw(lambda row: torch.arange(3)[raced(row)]),
        draw(lambda row: torch.arange(3)[(torch.rand(()) * 3).long()]),
    ),
}


@first_is_quick("name", MAY, quick=2)
def test_a_right_sampler_is_lossless_and_a_wrong_one_a_defect(name: str) -> None:
    right, wrong = MAY[name]
    assert audit(right, PAIRS, drafts=[1]).is_lossless
    assert audit(wrong, PAIRS, drafts=[1]).verdict == NOT_LOSSLESS


def test_the_table_of_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs" / "auditing.md").read_text(encoding="utf-8")
    table = page.partition("| random numbers | how they are followed |")[2].partition("\n## ")[0]
    lines = [line.split("|")[1].strip(" `") for line in table.splitlines() if line.startswith("| `")]
    assert lines == list(MAY)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda: int(torch.randint(0, 2**31 - 1, ())), "up to 2147483647 values other than in a comparison"),
        (lambda: torch.randint(0, 2**31 - 1, ()) % 11, "up to 2147483647 values other than in a comparison"),
        (lambda: bool(float(torch.rand(())) < 0.5), "applies __float__ to random numbers"),
        (lambda: np.random.default_rng().integers(2**40), "draws one of 1099511627776 values at once"),
        (lambda: np.random.default_rng().random() < torch.rand(1), "compared with another one"),
        (lambda: (P := torch.rand(3), int(gumbel_of(P)), bool(P[0] < 0.5)), "that has decided a race"),
        (lambda: (P := torch.rand(3), bool(P[0] < 0.5), int(gumbel_of(P))), "that it also puts into a race"),
        (lambda: int(gumbel_of(torch.rand(3, dtype=torch.bfloat16))), "applies argmax"),
        (lambda: int(gumbel_of(torch.rand(3).to(torch.bfloat16))), "applies argmax"),
    ],
)
def test_what_is_not_followed_is_one_line(function: Any, says: str) -> None:
    """In little memory and time; nobody's code is blamed with an error of its own."""
    with pytest.raises(NotEnumerableError, match=says) as caught:
        law(function)
    assert "\n" not in str(caught.value)


def gumbel_of(uniform: Any) -> Any:
    return (-torch.log(-torch.log(uniform))).argmax()


def seeds(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
    torch.Generator().manual_seed(torch.randint(0, 2**31 - 1, ()).item())
    return [int(torch.multinomial(target[0, 0], 1))]


def many_operations(number: Any) -> Any:
    """Each calls the one before, and Python's calls are not so deep."""
    for _ in range(500):
        number = number * 1.0
    return number


@pytest.mark.parametrize(
    "sampler",
    [
        seeds,
        coin(lambda ratio: float(torch.rand(())) < ratio),
        coin(lambda ratio: many_operations(torch.rand(())) < ratio),
    ],
)
def test_what_is_not_followed_is_probed(sampler: Any) -> None:
    """It is a verdict at once, with the reason."""
    found = audit(sampler, PAIRS, drafts=1, within=0.05)
    assert (found.verdict, found.basis, len(found.ways)) == (LOSSLESS, "probed", 1)


def test_a_module_is_imported_as_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that makes generators, and torch's compiler; the wrong partner draws by a generator of its own."""
    text = "import random, os\nrng = random.Random(0)\nstart = rng.random(), os.urandom(1), random.random()\n"
    for name in ("makes_generators", "makes_generators_too"):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))

    def imports(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
        import makes_generators  # type: ignore[import-not-found]
        import torch._dynamo

        assert makes_generators.start
        return [int(torch.multinomial(target[0, 0], 1))]

    def draws(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
        import makes_generators_too  # type: ignore[import-not-found]

        return [int(makes_generators_too.rng.random() < 0.5)]

    pairs = {"pair": ModelPair.context_free_pair(["1/2", "1/2"], ["1/4", "3/4"], 1)}
    assert audit(imports, pairs, drafts=[1]).is_lossless
    found = audit(draws, pairs, drafts=[1], within=0.02)
    assert (found.verdict, found.basis) == (UNDECIDED, "drawn")
    assert "randomness that is not replaced" in found.reasons[0]
    for name in ("makes_generators", "makes_generators_too"):
        sys.modules.pop(name, None)


def test_compiled_functions_are_followed_as_they_are_written() -> None:
    right, wrong = (
        coin(lambda ratio, c=c: torch.compile(model=lambda number: c * number < ratio)(torch.rand(())))
        for c in (1, 2)
    )
    found = audit(right, PAIRS, drafts=1)
    assert (found.verdict, found.basis) == (LOSSLESS, "followed")
    assert audit(wrong, PAIRS, drafts=1).verdict == NOT_LOSSLESS
