"""What a sampler may do to random numbers: the laws by hand, by drawing, and the refusals."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from audit_support import assert_drawn_from, law
from deep import first_is_quick
from spectheory.auditing.following.operations import DerivedSeed, WinningValue
from spectheory.auditing.following.random_tensor import RandomTensor, entries, random_tensor
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.auditing.tape.races import Race

P = torch.tensor([0.5, 0.25, 0.25])


def structure() -> tuple[bool, ...]:
    """Reshaped, indexed, transposed, split: every number keeps its place."""
    u = torch.rand(2, 2)
    rows = u.view(-1).reshape(2, 2).t().unsqueeze(0).squeeze(0).clone()
    first, second = rows.unbind(0)
    return bool(u[0, 1] < 0.5), bool(second[0] < 0.5), bool(first[0] < 0.25), u.shape == (2, 2)


def arithmetic() -> tuple[bool, bool, bool, bool]:
    u = torch.rand(4)
    return (
        bool(1 - u[0] < 0.25),
        bool((2 * u[1] + 1) / 4 <= 0.5),
        bool(u[2].log() < -1.0),
        bool(0.5 / u[3] >= 2),
    )


def inversion() -> int:
    """The inverse of a distribution function, three ways."""
    cumulative = P.cumsum(0)
    u = torch.rand(1)
    ways = (
        int(torch.searchsorted(cumulative, u, right=True)),
        int((cumulative <= u).sum()),
        int((u < cumulative).nonzero()[0]),
    )
    assert len(set(ways)) == 1
    return ways[0]


def race() -> tuple[int, int]:
    """As fast samplers draw: weights over exponential numbers; and the other way round."""
    noise = torch.empty_like(P).exponential_(1)
    other = torch.empty(2, 3)
    other.exponential_()
    return int((P / noise).argmax()), int((other / P).argmin(dim=-1)[1])


def gumbel_race() -> tuple[int, int, int]:
    """Logits plus Gumbel numbers, minus logarithms of exponential ones, and a race that is lost by most."""
    logits, noise = P.log(), torch.empty(3, 3).exponential_()
    gumbel = -noise[1].log()
    return (
        int((logits - noise[0].log()).argmax()),
        int((gumbel - -logits + 1).argmax()),
        int((-(noise[2] / P)).argmax()),
    )


def race_with_one_left_out() -> int:
    """A score that is an ordinary number, and loses against those of the others."""
    scores = P / -torch.rand(3).log()
    scores[0] = 0
    return int(scores.argmax())


def lazy_race() -> int:
    """Two races with the same noise, of which a coin chooses one; its winner passes through a tensor."""
    noise = torch.empty(3).exponential_()
    winners = torch.full((2,), -1)
    winners[:] = (torch.stack([P, P.flip(0)]) * noise.reciprocal()).argmax(-1)
    assert winners.new_zeros(2).sum() == 0
    return int(torch.where(torch.tensor([True, False]), winners, winners.new_full((), 7)).sum()) - 7


def python_numbers() -> tuple[bool, bool]:
    """A tensor's number as a Python number, compared with Python's and numpy's."""
    u = torch.rand(2)
    return bool(u[0].item() < 0.5), bool(np.float64(0.25) > u.tolist()[1])


def narrowed() -> tuple[bool, bool]:
    """A number that was compared remembers it."""
    u = torch.rand(())
    return bool(u < 0.5), bool(u < 0.25)


def equality() -> bool:
    return bool((torch.rand(3, dtype=torch.bfloat16) == 0)[0])


def inner_equality() -> tuple[bool, bool]:
    """One float of many; its neighbours are none."""
    u = torch.rand(2)
    return bool(u[0] == 0.5), bool(u[1] != 0.5)


def partly_known() -> tuple[int, tuple[int, ...]]:
    """What is no random number of a tensor with one is an ordinary one."""
    tokens = torch.full((3,), 5)
    tokens[0] = (P / torch.empty(3).exponential_()).argmax()
    return int(tokens[0] > 0), tuple(tokens[1:].tolist())


LAWS: dict[Callable[[], Any], dict[Any, str]] = {
    inner_equality: {
        (True, True): f"{2**24 - 1}/{2**48}",
        (True, False): f"1/{2**48}",
        (False, True): f"{(2**24 - 1) ** 2}/{2**48}",
        (False, False): f"{2**24 - 1}/{2**48}",
    },
    partly_known: {(0, (5, 5)): "1/2", (1, (5, 5)): "1/2"},
    inversion: {0: "1/2", 1: "1/4", 2: "1/4"},
    race_with_one_left_out: {1: "1/2", 2: "1/2"},
    narrowed: {(True, True): "1/4", (True, False): "1/4", (False, False): "1/2"},
    python_numbers: {(a, b): p for a in (True, False) for b, p in ((True, "1/8"), (False, "3/8"))},
}


@pytest.mark.parametrize("function", LAWS, ids=lambda f: f.__name__)
def test_laws_by_hand(function: Callable[[], Any]) -> None:
    assert law(function) == {result: Fraction(text) for result, text in LAWS[function].items()}


@first_is_quick(
    "function",
    [structure, arithmetic, inversion, race, gumbel_race, lazy_race, python_numbers, equality],
    ids=lambda f: f.__name__,
    quick=2,
)
def test_torch_draws_from_that_law(function: Callable[[], Any]) -> None:
    assert_drawn_from(function, law(function))


@pytest.mark.parametrize(
    ("cast", "runs"),
    [
        (lambda winners: winners.int(), 4),
        (lambda winners: winners.to(torch.int16), 4),
        (lambda winners: winners.long(), 4),
        (lambda winners: winners.float(), 6),  # no whole number, so all races are run
    ],
)
def test_a_winner_of_another_whole_type_is_settled_only_where_it_is_read(
    cast: Callable[[torch.Tensor], torch.Tensor], runs: int
) -> None:
    """A token that is drawn before the verification, and read after all drafts are accepted."""

    made = []

    def bonus_or_nothing() -> int:
        made.append(0)
        winner = (P / torch.empty(1, 3).exponential_()).argmax(-1)
        token = cast(winner)[:, None]
        return int(token) if torch.rand(()) < 0.5 else 7

    shares = {token: Fraction(share) / 2 for token, share in enumerate(P.tolist())}
    assert law(bonus_or_nothing) == {**shares, 7: Fraction(1, 2)}
    assert len(made) == runs


def test_two_numbers_against_each_other() -> None:
    """Rising in one and falling in the other: all corners of a box are asked."""

    def is_below() -> bool:
        u = torch.rand(2)
        return bool(u[0] < u[1])

    assert abs(law(is_below)[True] - Fraction(1, 2)) <= Fraction(1, 16)


def test_a_race_has_rational_weights() -> None:
    assert law(race)[0, 2] == Fraction(1, 2) * Fraction(1, 4)
    assert law(lazy_race) == {0: Fraction(1, 2), 1: Fraction(1, 4), 2: Fraction(1, 4)}


def test_a_gumbel_race_has_weights_that_are_exponentials() -> None:
    """e^x of float32 logarithms: a half, a quarter and a quarter but for their rounding."""
    found = law(gumbel_race)
    for winners, mass in found.items():
        expected = Fraction(1, 2) ** sum(1 if winner == 0 else 2 for winner in winners)
        assert abs(mass - expected) < Fraction(1, 10**7)
    assert sum(mass for winners, mass in found.items() if winners[2] == 0) == Fraction(1, 2)


def test_products_and_sums_along_an_axis() -> None:
    """The k-th entry depends on k numbers; entries of one number are exact."""
    found = law(lambda: bool(torch.rand(1).cumprod(-1)[0] < 0.25))
    assert found[True] == Fraction(1, 4)
    product = law(lambda: bool(torch.rand(2).cumprod(0)[1] < 0.5))[True]
    assert abs(float(product) - 0.8466) < 0.05
    total = law(lambda: bool(torch.rand(2).cumsum(0)[1] < 0.5))[True]
    assert abs(float(total) - 0.125) < 0.05


def test_types_are_converted_as_torch_does() -> None:
    """A Python number is compared in float32 with a tensor of float32."""
    edge = torch.tensor(0.1)
    found = law(lambda: bool(torch.rand((), dtype=torch.float64).item() <= edge))[True]
    rounded = Fraction(float(edge))
    assert found > rounded  # all numbers of 53 bits that are rounded to the edge count too
    assert found - rounded < Fraction(1, 2**27)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda: float(torch.rand(())), "applies __float__ to random numbers"),
        (lambda: torch.rand(3).numpy(), "applies numpy to"),
        (lambda: torch.rand(3).sum() < 1, "applies sum to"),
        (lambda: (u := torch.rand(())) * u < 0.5, "combines a random number with itself in mul"),
        (lambda: (torch.rand(()) - 0.5).reciprocal() > 3, "that may be positive or negative"),
        (lambda: (torch.rand(()) - 0.5).sqrt() < 0.3, "takes sqrt of random numbers for some of which it is"),
        (
            lambda: (torch.rand(()) * 200).to(torch.uint8) < 3,
            "random numbers of torch.uint8 are not followed",
        ),
        (lambda: (torch.rand(()) * 1e6).short() < 3, "torch.int16, which does not hold all of"),
        (lambda: str(torch.rand(2)), "applies __repr__ to random numbers"),
        (lambda: P[torch.rand(3)], "as an index of __getitem__"),
        (lambda: (torch.empty(3).exponential_() + 1).argmax(), "only a race is followed"),
        (lambda: torch.empty(3).exponential_().sum(), "only a race is followed"),
        (lambda: torch.empty(3).exponential_().log().log(), "takes the logarithm of the logarithm"),
        (lambda: (-torch.empty(3).exponential_()).log(), "the logarithm of a negative random number"),
        (lambda: 2 * torch.empty(3).exponential_().log(), "multiplies the logarithm"),
        (lambda: int(torch.empty(3).exponential_().log().argmax()), "the last of exponential"),
        (lambda: torch.add(torch.rand(2), other=P[:2]), "a tensor by name"),
        (lambda: torch.searchsorted(P.cumsum(0), torch.rand(2), out_int32=True), "in a form that is not fol"),
        (lambda: torch.searchsorted(P, torch.rand(2)), "searchsorted with edges that are not sorted"),
        (lambda: race_of(lambda u: (u.log(), (1 - u).log())), "logarithms of a random number u and of 1 - u"),
        (lambda: race_of(lambda u: (u.log() * 1e-20 - 1e-7,)), "adds a number to an exponential random"),
        (lambda: race_of(lambda u: (u.log().clamp(min=-5),)), "applies clamp to exponential"),
        (
            lambda: race_of(lambda u: (torch.div(u.log(), P, rounding_mode="floor"),)),
            "applies div rounding_mode",
        ),
        (
            lambda: race_of(lambda u: (torch.add(u, 1e-7, alpha=1e6).log(),)),
            "applies argmax to random numbers",
        ),
        (lambda: race_of(lambda u: (u[0].log() * P.bfloat16(),)), "applies mul in torch.bfloat16 to exp"),
        (
            lambda: race_of(lambda u: (stored_in(torch.zeros(3, dtype=torch.int64), u).log(),)),
            "applies argmax",
        ),
        (lambda: torch.rand(()) * torch.empty(()).exponential_(), "exponential and another random number"),
    ],
)
def test_what_is_not_followed_is_refused_by_name(function: Callable[[], Any], says: str) -> None:
    with pytest.raises(NotEnumerableError, match=says):
        law(function)


def race_of(logarithms: Callable[[torch.Tensor], tuple[torch.Tensor, ...]]) -> tuple[int, ...]:
    """The winners of races with the rates P, in proportion, of logarithms of uniform numbers."""
    return tuple(int((part / P).argmax()) for part in logarithms(torch.rand(3)))


def stored_in(buffer: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    buffer[:] = value
    return buffer


@pytest.mark.parametrize(
    "logarithms",
    [
        lambda u: (u.log(),),
        lambda u: ((1 - u).log(),),
        lambda u: ((-u).log1p(), (1 - u).log())[:1],
        lambda u: ((1 - (1 - u)).log(),),
        lambda u: ((u + 1e-10).log(),),
        lambda u: (-(-u.log() + 1e-10),),
        lambda u: (-(-u.log()).clamp(min=1e-10),),
        lambda u: (u.log().clamp(min=-100),),
        lambda u: (torch.clamp(u, torch.full((3,), 1e-10)).log(),),
        lambda u: (u.double().float().log(),),
        lambda u: (stored_in(torch.zeros(3, dtype=torch.float64), u).log(),),
        lambda u: (torch.where(P > 0, u, torch.zeros((), dtype=torch.bfloat16)).log(),),
    ],
)
def test_logarithms_of_uniform_numbers_race(
    logarithms: Callable[[torch.Tensor], tuple[torch.Tensor, ...]],
) -> None:
    assert law(lambda: race_of(logarithms)) == {(0,): HALF, (1,): HALF / 2, (2,): HALF / 2}


def test_one_logarithm_of_a_number_races_twice() -> None:
    """The complement of the complement is the number."""
    found = law(lambda: race_of(lambda u: (u.log(), (1 - (1 - u)).log())))
    assert found == {(0, 0): HALF, (1, 1): HALF / 2, (2, 2): HALF / 2}


def test_numbers_of_half_precision_are_stored_as_they_are_rounded() -> None:
    buffer_law = law(lambda: bool(stored_in(torch.zeros(1, dtype=torch.bfloat16), torch.rand(1))[0] >= 1))
    assert buffer_law[True] == Fraction(1, 2**9)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: torch.where(torch.tensor([1]), torch.rand(1), torch.zeros(1)),
        lambda: torch.where(torch.ones(2, dtype=torch.bool), torch.rand(3), torch.zeros(3)),
        lambda: torch.searchsorted(P.cumsum(0), torch.rand(1), right=True, side="left"),
    ],
)
def test_what_torch_refuses_is_refused_by_torch(wrong: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError, match=r"expected condition|must match|opposites"):
        law(wrong)


def test_random_numbers_have_a_shape_a_dtype_and_a_length() -> None:
    def look() -> tuple[Any, int, torch.dtype]:
        u = torch.rand(3, 2)
        return tuple(u.shape), len(u), u.double().dtype

    assert list(law(look)) == [((3, 2), 3, torch.float64)]


HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda: 1 / torch.rand(()) < 2, 1 - Fraction(2**23 + 1, 2**24)),
        (lambda: 1 / (torch.rand(()) - 1) < -2, HALF - Fraction(1, 2**24)),
        (lambda: (torch.rand(()) * 4 - 0.5).to(torch.int16) < 1, Fraction(3, 8)),
        (lambda: (torch.rand(()) + 1).sqrt() < 1.5**0.5, HALF),
    ],
)
def test_what_is_monotone_is_followed(function: Callable[[], Any], expected: Fraction) -> None:
    """The partners of the refusals: divisors of one sign, casts that hold all values, positive roots."""
    found = law(lambda: bool(function()))[True]
    assert abs(found - expected) < Fraction(1, 2**20)


def exponential_scores(weights: torch.Tensor = P) -> torch.Tensor:
    return weights / torch.empty_like(weights).exponential_()


MASKED = torch.tensor([0.5, 0.5, 0.0])


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda: exponential_scores(MASKED) == 0, [False, False, True]),
        (lambda: torch.eq(torch.zeros(3), exponential_scores(MASKED)), [False, False, True]),
        (lambda: exponential_scores(MASKED).log().isinf(), [False, False, True]),
        (lambda: exponential_scores(MASKED).log() != -torch.inf, [True, True, False]),
        (lambda: (torch.empty(2).exponential_() / MASKED[1:]).isfinite(), [True, False]),
        (lambda: (MASKED.log() - torch.empty(3).exponential_().log()).isnan(), [False] * 3),
        (lambda: (torch.tensor([-1e4, 0.0]) - torch.empty(2).exponential_().log()).isinf(), [False] * 2),
        (lambda: (s := exponential_scores()) == s, [True] * 3),
        (lambda: (s := exponential_scores()) != s, [False] * 3),
        (lambda: (s := exponential_scores(P[:2]))[None] == s[:, None], [[True, False], [False, True]]),
    ],
)
def test_single_values_of_clocks(function: Callable[[], torch.Tensor], expected: Any) -> None:
    """A weight of 0 makes 0 or an infinity for certain; a real number equals itself and nothing else."""
    ((found, mass),) = law(lambda: str(function().tolist())).items()
    assert (found, mass) == (str(expected), 1)


@pytest.mark.parametrize("draw", [torch.rand_like, lambda like: torch.empty_like(like).exponential_()])
def test_no_tensor_is_none(draw: Callable[[torch.Tensor], Any]) -> None:
    assert law(lambda: ((u := draw(P)) == None, u != None)) == {(False, True): 1}  # noqa: E711


def test_rounding_is_no_equality() -> None:
    def is_itself() -> bool:
        return bool(((s := exponential_scores()) * 3 / 3 == s).all())

    with pytest.raises(NotEnumerableError, match="equals itself after other arithmetic"):
        law(is_itself)


def test_what_kernels_leave_in_memory_stays_random() -> None:
    """The value that wins a race, and a derived seed; a tensor of ordinary numbers is settled."""
    kinds = [WinningValue(Race((), largest=True)), DerivedSeed(("seed",))]
    found = random_tensor(np.array(kinds, dtype=object), torch.float32)
    assert type(found) is RandomTensor
    assert list(entries(found)) == kinds
    settled = random_tensor(np.array([1.5, 2.0], dtype=object), torch.float32)
    assert type(settled) is torch.Tensor
    assert settled.tolist() == [1.5, 2.0]
