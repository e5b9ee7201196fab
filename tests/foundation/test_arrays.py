"""One function, one meaning: rationals of both kinds, float64 and torch, against plain loops."""

import inspect
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch

import spectheory
from array_kinds import KINDS, assert_is, objects
from spectheory.foundation import arrays
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import holds_numbers
from spectheory.foundation.kernels import choice
from spectheory.foundation.row_draws import take_block

F = Fraction
TABLE = [[F(1, 3), F(0), F(-1, 6)], [F(2), F(1, 7), F(5, 6)]]
DIVISORS = [[F(1, 2), F(0), F(3)], [F(0), F(2, 7), F(1, 6)]]


@pytest.mark.parametrize("kind", KINDS)
def test_elementwise(kind: str) -> None:
    """max(x, 0), x/y with 0 at y = 0, zeros and ones: entry by entry."""
    made, over = KINDS[kind](TABLE), KINDS[kind](DIVISORS)
    assert_is(arrays.positive_part(made), [[max(x, F(0)) for x in row] for row in TABLE], kind)
    assert_is(arrays.at_most_one(made), [[min(x, F(1)) for x in row] for row in TABLE], kind)
    assert_is(arrays.zero_where(made > 0, made), [[min(x, F(0)) for x in row] for row in TABLE], kind)
    quotients = [
        [x / y if y else F(0) for x, y in zip(*rows, strict=True)]
        for rows in zip(TABLE, DIVISORS, strict=True)
    ]
    assert_is(arrays.divide_or_zero(made, over), quotients, kind)
    assert_is(
        arrays.add_scaled(made, KINDS[kind]([[F(2)], [F(3)]]), over),
        [
            [x + a * y for x, y in zip(*rows, strict=True)]
            for a, *rows in zip((2, 3), TABLE, DIVISORS, strict=True)
        ],
        kind,
    )
    assert_is(arrays.zeros_like(made), [[F(0)] * 3] * 2, kind)
    assert_is(arrays.ones_like(made), [[F(1)] * 3] * 2, kind)
    assert_is(arrays.like_entries(F(1, 3), made), [[F(1, 3)] * 3] * 2, kind)
    with pytest.raises(AssertionError):  # the partner: another quotient is not that
        assert_is(arrays.divide_or_zero(over, made), quotients, kind)


def test_quotients_where_nothing_is_divided_by() -> None:
    """Floats say ±∞ or no number, without a warning; rationals have 0."""
    part, whole = [[F(1), F(0), F(1)]], [[F(0), F(0), F(2)]]
    for kind in ("float64", "torch"):
        found = np.asarray(arrays.quotients(KINDS[kind](part), KINDS[kind](whole)))
        np.testing.assert_array_equal(found, [[np.inf, np.nan, 0.5]])
    assert arrays.quotients(objects(part), objects(whole)).tolist() == [[0, 0, F(1, 2)]]


@pytest.mark.parametrize("kind", KINDS)
def test_along_the_last_axis(kind: str) -> None:
    """Rows divided by their sums, a row without mass left alone; products over prefixes."""
    rows = [[F(1), F(2), F(3)], [F(0), F(0), F(0)], [F(0), F(5), F(0)]]
    expected = [[F(1, 6), F(1, 3), F(1, 2)], [F(0)] * 3, [F(0), F(1), F(0)]]
    assert_is(arrays.normalise(KINDS[kind](rows)), expected, kind)
    products = [[F(1), F(1), F(2), F(6)], [F(1), F(0), F(0), F(0)], [F(1), F(0), F(0), F(0)]]
    assert_is(arrays.prefix_products(KINDS[kind](rows)), products, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_drafts", [1, 2, 3, 4, 7, 8, 12])
def test_several_drafts(num_drafts: int, kind: str) -> None:
    """f(u) = 1 - (1-u)^K as the sum over which draft is the first; u^K - b^K = (u - b) S_K(u, b)."""
    probs, other = [[F(0), F(1, 3), F(1)]], [[F(1, 2), F(1, 3), F(1, 5)]]
    first = [[sum((u * (1 - u) ** k for k in range(num_drafts)), F(0)) for u in probs[0]]]
    assert_is(arrays.hit_probability(KINDS[kind](probs), num_drafts), first, kind)
    sums = [
        [
            sum((u**j * b ** (num_drafts - 1 - j) for j in range(num_drafts)), F(0))
            for u, b in zip(probs[0], other[0], strict=True)
        ]
    ]
    assert_is(arrays.power_sum(KINDS[kind](probs), KINDS[kind](other), num_drafts), sums, kind)


def test_small_probabilities_keep_their_relative_accuracy() -> None:
    """f(u) = K u to first order: as printed, 1 - (1 - u)^K is 0 at u = 1e-18."""
    assert arrays.hit_probability(1e-18, 8) == pytest.approx(8e-18, rel=1e-15)
    assert 1 - (1 - 1e-18) ** 8 == 0
    assert arrays.hit_probability(1 + 2**-52, 3) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_taking_paths_rows_and_tokens(kind: str) -> None:
    rng = np.random.default_rng(4)
    table = objects([[[F(int(x), 7) for x in row] for row in path] for path in rng.integers(0, 9, (5, 3, 4))])
    index = torch.from_numpy if kind == "torch" else np.asarray
    where, token = rng.integers(0, 3, 5), rng.integers(0, 4, 5)
    taken = table[np.arange(5), where].tolist()
    made = KINDS[kind](table)
    assert_is(arrays.take_path(made, index(where)), taken, kind)
    assert_is(arrays.take_row(made, index(where)), taken, kind)
    row = KINDS[kind](taken)
    assert_is(arrays.take_token(row, index(token)), [taken[b][token[b]] for b in range(5)], kind)
    assert taken != table[:, 0].tolist()


def test_what_is_a_number_beside_which_rows() -> None:
    """A table of floats is refused beside exact rows, and truth values are no numbers."""
    with pytest.raises(InvalidInputError, match="bound to a float64 pair"):
        arrays.like_rows(np.array([0.5]), objects([F(1, 2)]))
    halves = objects([F(1, 2)] * 2)
    assert arrays.like_rows(halves, objects([F(1)] * 3)) is halves
    for rows in (np.ones(3), torch.ones(3)):
        same = arrays.like_rows(halves, rows)
        assert (type(same), same.dtype, same.tolist()) == (type(rows), rows.dtype, [0.5, 0.5])
    assert holds_numbers(objects([F(1), 2, 0.5]))
    assert not holds_numbers(objects([F(1), True]))
    assert not holds_numbers(np.array([True]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_mass_of_a_residual(kind: str) -> None:
    """sum max(w p - q, 0), by the kernel of torch as by the formula."""
    weights, rows, other = [F(1, 2), F(3)], [[F(1, 3), F(2, 3)], [F(1, 4), F(1, 5)]], [[F(1, 8), F(1, 2)]] * 2
    expected = [
        sum(max(w * p - q, F(0)) for p, q in zip(row, drafted, strict=True))
        for w, row, drafted in zip(weights, rows, other, strict=True)
    ]
    found = arrays.residual_mass(*(KINDS[kind](table) for table in (rows, other, weights)))
    assert_is(found, expected, kind)


@pytest.mark.parametrize("kind", ["float64", "torch"])
@pytest.mark.parametrize("size", [4, 5, 9])
def test_blocks_of_a_row(kind: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of neighbours and the entries behind one of them, whole blocks or not, one row or several."""
    monkeypatch.setattr(choice, "BLOCK", 2)
    table = [[F(x + 10 * row) for x in range(1, size + 1)] for row in range(3)]
    blocks = [[row[i : i + 2] for i in range(0, size, 2)] for row in table]
    rows = KINDS[kind](table)
    assert_is(arrays.block_sums(rows), [[sum(block) for block in row] for row in blocks], kind)
    last = [(size - 1) // 2, 1, 0]
    numbers = torch.tensor(last) if kind == "torch" else np.array(last)
    entries = [[*blocks[row][number], F(0)][:2] for row, number in enumerate(last)]
    assert_is(take_block(rows, numbers), entries, kind)
    assert_is(take_block(rows[:1], numbers[:1]), [blocks[0][last[0]]], kind)


@pytest.mark.parametrize("kind", KINDS)
def test_running_minimum(kind: str) -> None:
    expected = [[F(1, 3), F(0), F(-1, 6)], [F(2), F(1, 7), F(1, 7)]]
    assert_is(arrays.running_minimum(KINDS[kind](TABLE)), expected, kind)


def test_every_function_is_on_the_page() -> None:
    """All public functions, at most 30 of them, and no others."""
    page = (Path(__file__).parents[2] / "docs" / "arrays.md").read_text(encoding="utf-8")
    homes = arrays.__name__, choice.__name__
    functions = [value for value in vars(arrays).values() if inspect.isfunction(value)]
    public = {each.__name__ for each in functions if each.__module__ in homes and each.__name__[0] != "_"}
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert {name for line in rows for name in re.findall(r"`(\w+)\(", line)} == public
    assert len(public) <= 30
    assert spectheory.arrays is arrays


def test_a_table_lies_beside_the_array() -> None:
    """On its device, and of the type that is asked for."""
    for device in ("cpu", "meta"):
        found = choice.on_device_of(torch.empty(1, device=device), np.arange(3), torch.float32)
        assert (found.device.type, found.dtype) == (device, torch.float32)
    assert choice.on_device_of(np.zeros(1), np.arange(3), np.float32).dtype == np.float32


def test_the_host_looks_at_its_own_numbers_only() -> None:
    """Not at those of a device, nor while a function is compiled."""
    assert arrays.on_host(np.ones(1))
    assert arrays.on_host(torch.ones(1))
    assert not arrays.on_host(torch.ones(1, device="meta"))


def test_compiled_sums_go_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    rows, other, scale = (torch.tensor(rng.random(shape)) for shape in ((3, 1000), (3, 1000), (3,)))
    plain = arrays.residual_mass(rows, other, other_scale=scale), arrays.residual_mass(rows, other, scale)
    summed, block_sums = [], arrays.block_sums
    monkeypatch.setattr(choice, "compiling", lambda: True)
    monkeypatch.setattr(arrays, "block_sums", lambda rows: summed.append(block_sums(rows)) or summed[-1])
    compiled = arrays.residual_mass(rows, other, other_scale=scale), arrays.residual_mass(rows, other, scale)
    for one, other_one in zip(compiled, plain, strict=True):
        np.testing.assert_allclose(one, other_one, rtol=1e-14)
    assert [sums.shape for sums in summed] == [(3, 4), (3, 4)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("size", [5, 700])
def test_scaled_rows_have_the_bits_of_one_operator(size: int, dtype: torch.dtype) -> None:
    """With one number per row to add and to multiply with, and without a change of what is given."""
    generator = torch.Generator().manual_seed(3)
    rows = torch.rand(4, 3, size, generator=generator).to(dtype)
    added, scale = torch.rand(2, 4, 3, 1, generator=generator).to(dtype)
    copies = [array.clone() for array in (added, scale, rows)]
    found = arrays.add_scaled(added, scale, rows)
    assert torch.equal(found, added.addcmul(scale, rows))
    assert all(map(torch.equal, (added, scale, rows), copies))
    assert not torch.equal(found, added.flip(0).addcmul(scale, rows))  # partner: numbers of other rows


def test_scaled_rows_have_one_dtype_and_shape_at_every_length() -> None:
    """Of other dtypes or shapes torch's rules decide, as of short rows."""
    for size in (5, 700):
        rows, one, three = torch.rand(3, size), torch.rand(3, 1, dtype=torch.float64), torch.rand(2, 3, 1)
        assert arrays.add_scaled(one, one, rows).dtype == torch.float64
        assert arrays.add_scaled(one.float(), three, rows).shape == (2, 3, size)
