"""Honest samplers that were refused or blamed: each is lossless, and a wrong partner beside it is found."""

import hashlib
import random
import sys
import tempfile
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from tqdm import std, tqdm  # type: ignore[import-untyped]

from audit_support import law
from deep import first_is_quick
from spectheory import audit, certify, from_sampler, instances, prove
from spectheory.foundation.errors import InvalidInputError

PAIRS = {"residual": instances.two_residual_tokens(1)}


def multinomial(row: Any) -> Any:
    return torch.multinomial(row, 1)


def sampler(accepts: Callable[[Any], Any], drawn: Callable[[Any], Any] = multinomial) -> Any:
    """Speculative sampling of one path with one draft; how it draws is given."""

    def verify(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
        token, p, q = int(paths[0, 0]), target[0, 0], draft[0, 0]
        if accepts(p[token] / q[token]):
            return [token, int(drawn(target[0, 1]))]
        return [int(drawn((p - q).clamp(min=0)))]

    return verify


def coin(ratio: Any) -> Any:
    return torch.rand(()) < ratio


def raced(row: Any) -> Any:
    return (row / torch.empty(len(row)).exponential_()).argmax()


def with_numpy(factor: float) -> Any:
    """Rows are read by numpy from memory that is free again when the coins are drawn."""

    def verify(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
        token = int(paths[0, 0])
        for _ in range(5):
            p, q = (rows[0, 0].clone().numpy().tolist() for rows in (target, draft))
            coins = torch.rand(len(p), generator=generator)
        if coins[0] * q[token] * factor < p[token]:
            return [token, int(torch.multinomial(target[0, 1], 1))]
        return [int(torch.multinomial(torch.tensor([max(x - y, 0.0) for x, y in zip(p, q, strict=True)]), 1))]

    return verify


def row_of_coins(stored: Callable[[Any], None], place: Any = (0, 0)) -> Any:
    def accepts(ratio: Any) -> Any:
        coins = torch.full((2, 1), 0.5)
        stored(coins)
        return coins[place] < ratio

    return sampler(accepts)


def store_a_row(coins: Any) -> None:
    coins[0, :] = torch.rand(1, 1)


def store_a_mask(coins: Any) -> None:
    coins[torch.tensor([True, False])] = torch.rand(1, 1, 1)


def winners_and_draws(wrong: int) -> Any:
    """The row of tokens holds the winner of a race before a token of ``multinomial``, [1], is stored."""

    def verify(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
        token, p, q = int(paths[0, 0]), target[0, 0], draft[0, 0]
        out = torch.full((2,), -1)
        rest = raced((p - q).clamp(min=0))
        is_accepted = coin(p[token] / q[token])
        out[0] = torch.where(is_accepted, torch.tensor(token), rest)
        out[1] = torch.multinomial(draft[0, 0] if wrong else target[0, 1], 1)
        return out.tolist() if is_accepted else out[:1].tolist()

    return verify


def filled_by_rows(last: int) -> Any:
    """Rows of one tensor are filled one after the other, as for requests with generators."""

    def drawn(row: Any) -> Any:
        noise = torch.empty(3, len(row))
        for number in range(last + 1):
            noise[number].exponential_()
        return (row / noise).argmax(dim=-1)[2]

    return drawn


def pinned(number: Any) -> Any:
    return torch.empty(1, pin_memory=True).uniform_() < torch.tensor([float(number)]).pin_memory()


def with_a_bar(ratio: Any) -> Any:
    (found,) = (coin(ratio) for _ in tqdm(range(1), disable=False, file=sys.stderr))
    return found


def with_a_file(ratio: Any) -> Any:
    with tempfile.NamedTemporaryFile():
        return coin(ratio)


RIGHT_AND_WRONG: dict[str, tuple[Any, Any]] = {
    "memory that numpy read is free again": (with_numpy(1), with_numpy(2)),
    "a row of coins": (row_of_coins(store_a_row), row_of_coins(store_a_row, (1, 0))),
    "a mask of coins": (row_of_coins(store_a_mask), row_of_coins(store_a_mask, (1, 0))),
    "a token beside the winner of a race": (winners_and_draws(0), winners_and_draws(1)),
    "rows that are filled in place": (
        sampler(coin, filled_by_rows(2)),
        sampler(coin, filled_by_rows(1)),
    ),
    "float of a number of torch": (
        sampler(lambda ratio: float(torch.rand(1)) < float(ratio)),
        sampler(lambda ratio: float(torch.rand(1)) < float(ratio) / 2),
    ),
    "float of a number of numpy": (
        sampler(lambda ratio: float(np.random.default_rng().random()) < ratio),
        sampler(lambda ratio: float(np.random.default_rng().random()) < ratio / 2),
    ),
    "pinned memory": (sampler(pinned), sampler(lambda ratio: pinned(ratio / 2))),
    "tqdm": (sampler(with_a_bar), sampler(lambda ratio: with_a_bar(ratio / 2))),
    "a temporary file": (sampler(with_a_file), sampler(lambda ratio: with_a_file(ratio / 2))),
}


@first_is_quick("name", RIGHT_AND_WRONG, quick=10)
def test_an_honest_sampler_is_lossless_and_a_wrong_one_a_defect(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # tqdm names its lock, and starts its thread, once in a process.
    monkeypatch.delattr(std.TqdmDefaultWriteLock, "mp_lock", raising=False)
    monkeypatch.delattr(tqdm, "_lock", raising=False)
    monkeypatch.setattr(tqdm, "monitor", None)
    right, wrong = (audit(one, PAIRS, drafts=1) for one in RIGHT_AND_WRONG[name])
    assert (right.is_lossless, right.reasons) == (True, ())
    assert wrong.is_defective


def parts() -> tuple[bool, ...]:
    """What is changed in place in a part is changed in the whole, and in the other parts."""
    whole = torch.zeros(2, 2)
    row = whole[1]
    whole[0] = 1.0
    row.uniform_()
    column = whole[:, 1]
    row *= 0.5
    return bool(column[1] < 0.25), bool(whole[1, 1] < 0.25), bool(column[0] == 1.0)


def settled_parts() -> tuple[int, ...]:
    """Winners that were used are ordinary numbers, and still those of their whole."""
    tokens = (torch.ones(2, 2) / torch.empty(2, 2).exponential_()).argmax(dim=-1)
    first = tokens[0]
    before = int(first + 0)
    tokens += 2
    after, tokens[0] = int(first), 7
    return after - before, int(first), int(tokens[0])


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (parts, {(True, True, True): Fraction(1, 2), (False, False, True): Fraction(1, 2)}),
        (settled_parts, {(2, 7, 7): Fraction(1)}),
        (lambda: bool(torch.rand(2)[0].mul_(2) < 0.5), {True: Fraction(1, 4), False: Fraction(3, 4)}),
        (
            lambda: tuple((torch.randint(0, 4, (1,)) % torch.tensor([2, 2])).tolist()),
            {(0, 0): Fraction(1, 2), (1, 1): Fraction(1, 2)},
        ),
    ],
)
def test_parts_have_the_numbers_of_their_whole(function: Callable[[], Any], expected: Any) -> None:
    assert law(function) == expected


def test_unfilled_memory_is_the_same_in_every_run() -> None:
    """It is no number, so that what reads it is wrong."""
    assert law(lambda: bool(torch.empty(3).isnan().all())) == {True: 1}
    assert law(lambda: int(torch.empty((), dtype=torch.int64))) == {2**63 - 1: 1}
    assert law(lambda: int(torch.empty((), dtype=torch.int64).fill_(3))) == {3: 1}


@first_is_quick(
    ("drawn", "verdict"),
    [
        (lambda row: (row / torch.empty(len(row)).exponential_()).argmin(), "not lossless"),
        (lambda row: (row * torch.empty(len(row)).exponential_()).argmax(), "undecided"),
        (lambda row: (torch.empty(len(row)).exponential_() / row).argmax(), "not lossless"),
        (lambda row: (row / torch.rand(len(row))).argmax(), "undecided"),
        (lambda row: (row + torch.empty(len(row)).exponential_()).argmax(), "not lossless"),
        (lambda row: (row / torch.empty(len(row)).exponential_()).max(-1).indices, "lossless"),
    ],
    quick=2,
)
def test_a_race_of_another_form_is_probed_and_says_what_was_expected(
    drawn: Callable[[Any], Any], verdict: str
) -> None:
    """A race of other numbers has other regions than a tree: it is drawn, and few draws say little."""
    found = audit(sampler(coin, drawn), PAIRS, drafts=1, within=0.02)
    assert found.verdict == verdict
    assert "the winner of a race was expected" in found.ways[0]
    assert f"({__file__}, line " in found.ways[0]


@first_is_quick(
    ("module", "name"),
    [
        (np.random, "random"), (np.random, "choice"), (np.random, "beta"), (np.random, "seed"),
        (random, "choice"), (random, "paretovariate"),
    ], quick=6)  # fmt: skip
def test_a_refusal_names_the_operation_and_the_line(module: Any, name: str) -> None:
    """The partners are ``random.random`` and ``numpy.random.default_rng``, which are followed."""
    found = audit(sampler(lambda ratio: getattr(module, name)(2) < ratio), PAIRS, drafts=1, within=0.05)
    assert (found.verdict, found.basis) == ("not lossless", "probed")  # these calls fail
    says = f"draws from {module.__name__}.{name}, which cannot be followed ({__file__}, line "
    assert says in found.ways[0]
    assert audit(sampler(lambda ratio: random.random() < ratio), PAIRS, drafts=1).is_lossless


def of_numpy(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
    token, p, q = paths[0][0], target[0][0], draft[0][0]
    if generator.random() >= p[token] / q[token]:
        rest = [max(x - y, 0) for x, y in zip(p, q, strict=True)]
        return [generator.choice(len(rest), p=[share / sum(rest) for share in rest])]
    return [token, generator.choice(len(p), p=target[0][1])]


def without_residual(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
    tokens = of_numpy(paths, target, draft, generator)
    return tokens if len(tokens) == 2 else [generator.choice(len(target[0][0]), p=target[0][0])]


def test_a_sampler_is_certified_and_proved() -> None:
    assert prove(from_sampler(of_numpy), 2, 1).verdict == "proved"
    assert prove(from_sampler(without_residual), 2, 1).verdict == "refuted"
    assert certify(from_sampler(of_numpy), instances.two_token(1))


def test_a_sampler_of_numpy_can_be_probed() -> None:
    """There the advice holds: half of the tokens are 1, and the target has two thirds of them."""

    def divides(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
        return [int(1 / generator.random() > 2)]

    with pytest.raises(InvalidInputError, match=r"by `spectheory\.audit\(sampler, signature='numpy'\)`"):
        certify(from_sampler(divides), instances.two_token(1))
    found = audit(divides, {"thirds": instances.two_token(1)}, signature="numpy", drafts=1, within=0.02)
    assert (found.verdict, found.basis) == ("not lossless", "probed")


def seeded_rows(fill: Callable[[Any, Any], None]) -> Any:
    """A sampler of batches whose first request has a generator of its own."""

    def verify(rows: Any, generator: Any) -> list[list[int]]:
        q, p = (torch.stack([getattr(row, name) for row in rows]) for name in ("draft_probs", "target_probs"))
        coins = torch.rand(len(rows), q.shape[1])
        rest = (p[:, :-1] - q).clamp(min=0)
        noise = torch.empty_like(rest)
        fill(noise, generator)
        chosen = (rest / noise).argmax(dim=-1)
        last = torch.multinomial(p[:, -1], 1)[:, 0]
        out = []
        for number, row in enumerate(rows):
            tokens: list[int] = []
            for place, token in enumerate(row.draft_tokens.tolist()):
                if not coins[number, place] * q[number, place, token] < p[number, place, token]:
                    tokens.append(int(chosen[number, place]))
                    break
                tokens.append(token)
            else:
                tokens.append(int(last[number]))
            out.append(tokens)
        return out

    return verify


def into_a_copy(noise: Any, generator: Any) -> None:
    noise[0].exponential_(generator=generator)
    noise[list(range(1, len(noise)))].exponential_()


def test_rows_of_requests_with_a_seed() -> None:
    """The rows that are filled in a copy keep what was in memory; from three requests on too."""
    found = audit(seeded_rows(into_a_copy), PAIRS, signature="batch", stop_at_first=True)
    assert found.is_defective
    assert "beside other requests" in found.reasons[0]


def round_of_one(factor: float) -> Any:
    """A round whose rows are read by numpy, and whose coin is Python's."""

    def play(text: Any, target: Any, draft: Any, draft_length: int, generator: Any) -> Any:
        row = draft(text).double().numpy()
        token = int(torch.multinomial(torch.from_numpy(row), 1))
        probs = target(text).double().numpy()
        if random.random() * row[token] * factor < probs[token]:
            return [token], torch.from_numpy(row)[None], [token, int(multinomial(target([*text, token])))]
        rest = torch.from_numpy((probs - row).clip(min=0))
        return [token], torch.from_numpy(row)[None], [int(multinomial(rest))]

    return play


def test_a_round_that_reads_its_rows_with_numpy() -> None:
    assert audit(round_of_one(1), PAIRS, signature="round").is_lossless
    assert audit(round_of_one(2), PAIRS, signature="round", stop_at_first=True).is_defective


def from_a_seed(salt: str, uses_the_seed: bool = True) -> Any:
    """Coins that another library makes of a seed, as JAX of a key."""

    def verify(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
        key = f"{salt}{generator.initial_seed() if uses_the_seed else ''}".encode()
        words = np.frombuffer(hashlib.sha256(key).digest(), dtype=np.uint32) / 2.0**32
        token, p, q = int(paths[0, 0]), target[0, 0], draft[0, 0]
        accepted = words[0] * q[token] < p[token]
        row = target[0, 1] if accepted else (p - q).clamp(min=0)
        last = int((row.cumsum(0) / row.sum() > float(words[1])).nonzero()[0])
        return [token, last] if accepted else [last]

    return verify


@torch.jit.script
def scripted(ratio):  # type: ignore[no-untyped-def]
    return torch.rand(1) < ratio


def into_the_rows(noise: Any, generator: Any) -> None:
    noise[0].exponential_(generator=generator)
    noise[1:].exponential_()


def as_one(noise: Any, generator: Any) -> None:
    noise.exponential_()


def as_one_and_again(noise: Any, generator: Any) -> None:
    """vLLM's own form."""
    noise.exponential_()
    noise[0].exponential_(generator=generator)


def test_a_row_of_another_length_is_the_samplers_fault() -> None:
    """The partner of a row of coins: the error is torch's own."""

    def stores(coins: Any) -> None:
        coins[0, :] = torch.rand(2, 1)  # torch has no place for the second row

    with pytest.raises(RuntimeError, match="number of dimensions in the tensor"):
        law(lambda: stores(torch.empty(2, 1)))


def test_a_key_made_of_the_seed_is_not_decided() -> None:
    """With these keys two seeds agree; many do not.  The partner has the same coins in every call."""
    thirds = {"thirds": instances.two_token(1)}
    found = [audit(from_a_seed(str(salt)), thirds, drafts=1, within=0.02) for salt in range(7, 12)]
    assert {(each.verdict, each.basis) for each in found} == {("undecided", "drawn")}
    assert audit(from_a_seed("constant", uses_the_seed=False), thirds, drafts=1).is_defective


def test_the_right_race_is_lossless() -> None:
    assert audit(sampler(coin, raced), PAIRS, drafts=1).is_lossless


@pytest.mark.deep
@pytest.mark.parametrize(
    ("compiled", "basis"), [(lambda: torch.compile(coin), "followed"), (lambda: scripted, "probed")]
)
def test_what_is_compiled_is_decided(compiled: Callable[[], Any], basis: str) -> None:
    """Compiled functions are followed as they are written, and TorchScript is named with the user's line."""
    found = audit(sampler(compiled()), PAIRS, drafts=1, within=0.02)
    assert (found.verdict, found.basis) == ("lossless", basis)
    for way in found.ways[:1]:
        assert "runs TorchScript, which is not followed" in way
        assert f"({__file__}, line " in way
    assert bool(found.ways) is (basis == "probed")
    wrong = audit(sampler(lambda ratio: compiled()(ratio / 2)), PAIRS, drafts=1, within=0.02)
    assert (wrong.verdict, wrong.basis) == ("not lossless", basis)
    assert audit(sampler(coin), PAIRS, drafts=1).is_lossless


@pytest.mark.deep
@pytest.mark.parametrize("fill", [into_the_rows, as_one, as_one_and_again])
def test_partner_rows_of_requests_with_a_seed(fill: Any) -> None:
    assert audit(seeded_rows(fill), PAIRS, signature="batch").is_lossless
