"""Cases that were made by hand: the laws, the independence of requests and calls, many equal requests."""

from collections.abc import Mapping
from fractions import Fraction

from conformance.case_forms import Case, Request, case, request

Row = Mapping[int, Fraction]
HALF = Fraction(1, 2)


def row(**masses: str) -> Row:
    """A row from t0="1/2", t3="1/2"."""
    return {int(name[1:]): Fraction(mass) for name, mass in masses.items()}


def only(token: int) -> Row:
    return {token: Fraction(1)}


def even(*tokens: int) -> Row:
    return {token: Fraction(1, len(tokens)) for token in tokens}


def masses(denominator: int, *numerators: int) -> Row:
    """Tokens 0, 1, ... with these probabilities."""
    return {token: Fraction(n, denominator) for token, n in enumerate(numerators)}


def single_laws() -> list[Request]:
    """One request for each law that a mistake changes; the comment says which."""
    tiny, few = Fraction(1, 2**20), Fraction(1, 2**12)
    spread = {0: HALF, **{token: Fraction(1, 64) for token in range(1, 33)}}
    quarter = row(t1="1/4", t2="3/4")
    return [
        # accepted half of the time, then a bonus of two halves: the first number of both, in flat arrays
        request([0], [even(0, 1), even(2, 3)], [only(0)]),
        # two acceptances of one request: one coin for both
        request([0, 0], [even(0, 1), even(0, 1), only(2)], [only(0)] * 2),
        # the number that rejected must not choose the correction
        request([0], [row(t0="1/2", t1="1/4", t2="1/4"), even(1, 2)], [only(0)]),
        # a row of 1/2 and 32 times 1/64 for the bonus, and as a residual
        request([39], [only(39), spread], [only(39)]),
        request([39], [spread, only(39)], [only(39)]),
        # p = 2^-19, q = 2^-18: accepted half the time, but not with a constant in the ratio
        request([0], [{0: tiny * 2, 1: 1 - tiny * 2}, only(2)], [{0: tiny * 4, 1: 1 - tiny * 4}]),
        # p = q = 2^-20: always accepted
        request([0], [{0: tiny, 1: 1 - tiny}, only(2)], [{0: tiny, 1: 1 - tiny}]),
        # a draft of probability 2^-12 that the target excludes; the residual is one token and as small
        request(
            [0],
            [{1: quarter[1] + few, 2: quarter[2] - few}, only(3)],
            [{0: few, 1: quarter[1], 2: quarter[2] - few}],
        ),
        # acceptance 0, and acceptance 1
        request([0, 1], [even(1, 2), only(0), only(3)], [even(0, 1), only(1)]),
        # five drafts are kept and the sixth is rejected, for sure: a row of another position shows
        request(list(range(6)), [*map(only, range(5)), even(6, 7), only(8)], [*map(only, range(6))]),
        # a bonus row with tokens of the last draft row, in a request that is not the longest
        request([0], [only(0), even(0, 1)], [only(0)]),
        request([3], [row(t0="1/4", t3="3/4"), only(1)], [row(t0="1/4", t3="3/4")]),
        # five likely tokens, each of which is rejected now and then
        request([0] * 5, [masses(16, 15, 1)] * 5 + [only(2)], [only(0)] * 5),
        # draft and target agree: everything is accepted, no residual has mass
        request([0, 1, 2], [even(0, 1), even(1, 2), only(2), even(0, 3)], [even(0, 1), even(1, 2), only(2)]),
    ]


def independence() -> list[Request]:
    """Three coins, three corrections, three bonus tokens, each a half."""
    coins = [request([0], [even(0, y), only(z)], [only(0)]) for y, z in ((1, 2), (2, 3), (3, 1))]
    corrections = [request([0], [even(1, 2), only(3)], [only(0)]) for _ in range(3)]
    bonus = request([0], [only(0), even(1, 2)], [only(0)])
    return [*coins, *corrections, bonus, request([], [even(1, 2)], []), bonus]


def full_rows() -> list[Request]:
    """Rows without zeros: a cut of the least likely token shows."""
    return [
        request([0], [masses(32, 1, 15, 16), only(1)], [masses(16, 1, 7, 8)]),
        request([1], [masses(8, 1, 2, 5), masses(8, 4, 1, 3)], [masses(8, 3, 4, 1)]),
        request(
            [2, 0],
            [masses(16, 1, 14, 1), masses(8, 1, 1, 6), even(0, 2)],
            [masses(16, 4, 11, 1), masses(4, 2, 1, 1)],
        ),
        request([0], [masses(32, 1, 20, 11), masses(8, 1, 5, 2)], [masses(32, 24, 4, 4)]),
    ]


def ladder() -> list[Request]:
    """The fourth and the fifth token of a row are accepted for sure: a cut to fewer tokens rejects them."""
    steps = masses(32, 17, 8, 4, 2, 1)
    return [request([3, 4], [steps, steps, only(0)], [masses(32, 8, 17, 4, 2, 1)] * 2)]


def copies() -> tuple[list[Request], list[list[int]]]:
    """Equal requests, counted together, for small errors of a law; and their numbers."""
    small = Fraction(5, 512)
    kinds = [
        (request([0], [masses(16, 1, 15), only(2)], [only(0)]), 16),
        (request([0], [even(1, 2), only(3)], [masses(16, 4, 7, 5)]), 24),
        (request([0], [{0: small, 1: small, 2: 1 - 2 * small}, only(3)], [only(0)]), 40),
    ]
    requests = [own for own, number in kinds for _ in range(number)]
    return requests, [list(range(16)), list(range(16, 40)), list(range(40, 80))]


def sixty_four() -> list[Request]:
    """Drafts that the target all but excludes: accepted with probability 2^-20."""
    tiny = Fraction(1, 2**20)
    return [request([b % 4], [{4 + b % 8: 1 - tiny, b % 4: tiny}, only(4)], [only(b % 4)]) for b in range(64)]


def core_cases() -> list[Case]:
    equal, groups = copies()
    pairs = [[a, b] for first in (0, 3, 6) for a in range(first, first + 3) for b in range(a + 1, first + 3)]
    return [
        case("laws", 40, single_laws(), 144, "single laws, side by side", lags=[1, 2, 4, 8, 16, 32]),
        case("independence", 4, independence(), 64, "requests of one call are independent", pairs=pairs),
        case(
            "full-rows", 3, full_rows(), 64, "rows without zeros; the drafted token is seldom the likeliest"
        ),
        case("ladder", 5, ladder(), 24, "a row of five unequal masses"),
        case(
            "copies",
            4,
            equal,
            112,
            "equal requests, counted together: acceptance 1/16, a residual of 1 to 3, masses below 1 %",
            alike=groups,
        ),
        case("sixty-four", 12, sixty_four(), 64, "64 drafts that are accepted with probability 2^-20"),
    ]


def wide_cases() -> list[Case]:
    size, high = 40000, 39999
    requests = [
        request(
            [5], [{8200: Fraction(1, 4), high: HALF, 33000: Fraction(1, 4)}, only(1500)], [even(5, high)]
        ),
        request(
            [high, 9000],
            [even(high, 2), even(1030, 8193), only(high)],
            [only(high), even(9000, 1030)],
        ),
        request([high], [even(100, 32769), only(7)], [even(high, 100)]),
        # a residual in the last tile, which is not whole, and bonus tokens beyond every tile
        request([7], [{20: Fraction(1, 16), 39990: Fraction(15, 16)}, only(7)], [only(7)]),
        request([7], [only(7), even(4100, 9000, 33000, 39990)], [only(7)]),
    ]
    about = "40 000 tokens, mass beyond every tile; five requests, so that offsets exceed 65 536"
    return [case("wide", size, requests, 24, about, "wide")]


def _one_of_many(b: int) -> Request:
    y, z = 1 + b % 50, 51 + b // 50 * 7 % 40
    if b % 3:
        return request([0], [even(y, z), only(99)], [even(0, z)])
    return request([0], [only(0), only(y)], [only(0)]) if b % 2 else request([], [only(z)], [])


def _long_one_of_many(b: int) -> Request:
    """Five drafts that are kept, and one that is rejected for sure."""
    path = [(b + 7 * i) % 48 for i in range(6)]
    rejected = even(48 + b % 40, 90)
    return request(path, [*map(only, path[:5]), rejected, only(99)], [*map(only, path)])


def many_cases() -> list[Case]:
    about = "140 requests, each with tokens of its own"
    more = "288 drafts, so that offsets exceed 256"
    return [
        case("many", 100, [_one_of_many(b) for b in range(140)], 4, about, "many"),
        case("many-drafts", 100, [_long_one_of_many(b) for b in range(48)], 4, more, "many"),
    ]


def precision_cases() -> list[Case]:
    few = Fraction(1, 2**13)
    one = request(
        [0],
        [{1: Fraction(5, 16) + few, 2: Fraction(11, 16) - few}, only(3)],
        [{0: few, 1: Fraction(5, 16), 2: Fraction(11, 16) - few}],
    )
    of_the_draft = request(
        [0],
        [{1: Fraction(5, 16), 2: Fraction(11, 16)}, only(3)],
        [{0: few, 1: Fraction(5, 16) - few, 2: Fraction(11, 16)}],
    )
    about = "a residual of 2^-13: half precision of either row loses it"
    return [case("rare-rejection-half", 4, [one, of_the_draft], 16, about, "precision")]


def placeholder_cases() -> list[Case]:
    fill, most = only(0), {0: Fraction(15, 16)}

    def mostly(token: int, rest: int) -> Row:
        return {token: most[0], rest: 1 - most[0]}

    requests = [
        request([0, -1, -1], [even(0, 1), mostly(0, 3), only(4), only(5)], [even(0, 1), fill, fill]),
        request([-1, -1, -1], [mostly(0, 6), only(7), only(7), only(7)], [fill] * 3),
        request([1, 1, -1], [only(1), even(1, 0), mostly(0, 7), only(5)], [only(1), only(1), fill]),
        request([2, -1], [only(2), mostly(7, 5), only(6)], [only(2), fill]),
    ]
    about = "-1 is a draft that is not there: the token is drawn from the target's row at its place"
    return [case("placeholders", 8, requests, 32, about, "placeholders")]


def broken_cases() -> list[Case]:
    """Rows that are no laws: what must not happen."""
    nan = [["*", "nan"]]
    right = request([0], [even(0, 1), only(2)], [only(0)])
    right = {part: right[part] for part in ("drafts", "target", "draft")}
    refusal = {"drafts": [0], "may_refuse": True}
    bad_target = {**refusal, "target": [nan, nan], "draft": [[[0, "1"]]], "forbidden": [[0, 0]]}
    bad_draft = {**refusal, "target": [[[1, "1"]], [[2, "1"]]], "draft": [nan], "forbidden": [[0], [0, 2]]}
    no_mass = {**refusal, "target": [[], []], "draft": [[[0, "1"]]], "forbidden": []}

    def broken(name: str, requests: list[Request], about: str) -> Case:
        return case(name, 4, requests, 4, about, "broken-rows", kind="range")

    return [
        broken("nan-target", [right, bad_target, right], "a target row of NaN: a token or a refusal"),
        broken("nan-draft", [right, bad_draft], "a draft row of NaN: the target excludes the drafted token"),
        broken("no-mass", [no_mass, right], "a target row without mass: a token or a refusal"),
    ]
