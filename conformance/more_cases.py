"""Cases for settings, masks, engines that draft, two calls, log probabilities, coins and several paths."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from conformance.case_forms import (
    LOG_2,
    Case,
    Request,
    case,
    drafting,
    grid,
    of_paths,
    pooled,
    request,
    two_calls,
    with_settings,
)
from conformance.core_cases import even, masses, only

Settings = Mapping[str, Any]


def weights(*numbers: int) -> dict[int, Fraction]:
    """Exponentials of logits; token t has the t-th number, and none for 0."""
    return {token: Fraction(number) for token, number in enumerate(numbers) if number}


def plain(**settings: Any) -> Settings:
    return {"temperature": 1, **settings}


def cuts() -> list[Request]:
    """What top-k, top-p and min-p cut off never occurs; what they keep is normalised."""
    near = {0: Fraction(16), **{token: Fraction(7) for token in range(1, 7)}}
    found = []
    for settings in (plain(top_k=1), plain(min_p=0.5), plain(top_p=0.25)):
        found.append(with_settings([3], [near] * 2, [only(3)], settings))
        found.append(with_settings([0, 0], [near] * 3, [only(0)] * 2, settings))
    crossing = [weights(16, 9, 4, 3), weights(9, 7, 16)]
    found.append(with_settings([1], crossing, [only(1)], plain(top_p=0.75)))
    sharp = [weights(4, 1, 1, 1, 1)] * 2
    found.append(with_settings([2], sharp, [only(2)], {"temperature": 0.5, "top_p": 0.75}))
    return found


def penalties() -> list[Request]:
    """Penalties count the past and the drafts before, on every row, before the temperature."""
    strong = 256
    penalty = plain(frequency_penalty=8 * LOG_2)
    drop = {2: Fraction(16), 4: Fraction(1)}
    heavy = [
        only(2),
        {0: Fraction(16 * strong), 4: Fraction(1)},
        {0: Fraction(16 * strong**2), 5: Fraction(1)},
    ]
    return [
        with_settings([2, 0], heavy, [only(2), only(0)], {**penalty, "past": [0]}),
        with_settings([2, 2], [only(2), drop, only(6)], [only(2)] * 2, {**penalty, "past": []}),
        with_settings([1], [only(1), {3: Fraction(16), 5: Fraction(1)}], [only(1)], {**penalty, "past": [3]}),
        with_settings([1], [only(1), {1: Fraction(16), 5: Fraction(1)}], [only(1)], {**penalty, "past": []}),
        with_settings(
            [2, 3],
            [{2: Fraction(16), 5: Fraction(1)}, only(3), even(4, 6)],
            [only(2), only(3)],
            {**penalty, "past": []},
        ),
        # twice in the past, and a penalty under a temperature: token 3 has probability 1/257
        with_settings([], [{3: Fraction(strong**2), 5: Fraction(strong)}], [], {**penalty, "past": [3, 3]}),
        with_settings(
            [],
            [{3: Fraction(strong), 5: Fraction(16)}],
            [],
            {**penalty, "temperature": 0.5, "past": [3]},
        ),
    ]


def greedy_mix() -> list[Request]:
    top, greedy, random = weights(4, 9, 1), {"temperature": 0}, {"temperature": 1}
    return [
        with_settings(
            [1, 0], [top, weights(9, 0, 0, 4), {5: Fraction(4), 6: Fraction(1)}], [only(1), only(0)], greedy
        ),
        with_settings([1], [top, {5: Fraction(4), 6: Fraction(4)}], [only(1)], random),
        with_settings([2], [top, only(5)], [only(2)], greedy),
        with_settings([], [top], [], random),
        with_settings([1, 1, 1], [top] * 4, [only(1), even(0, 1), even(0, 1)], greedy),
        with_settings([], [top], [], random),
        with_settings([0], [top] * 2, [even(0, 1)], greedy),
    ]


def temperatures() -> list[Request]:
    """A temperature for each request; the ladder of squares keeps laws rational."""
    ladder = weights(1, 4, 16, 64)
    shapes = [(1, 0.5), (0, 2), (2, 2), (1, 1), (0, 0.5), (1, 2), (2, 0.5), (0, 1)]
    return [
        with_settings([b % 4] * n, [ladder] * (n + 1), [only(b % 4)] * n, {"temperature": temperature})
        for b, (n, temperature) in enumerate(shapes)
    ]


def settings_cases() -> list[Case]:
    return [
        case("cuts", 8, cuts(), 16, "what a cut drops never occurs; what it keeps is normalised", "settings"),
        case(
            "penalties",
            8,
            penalties(),
            24,
            "penalties count the past and the drafts before, each as often as it occurs, on raw logits",
            "settings",
        ),
        case("temperatures", 8, temperatures(), 48, "each request has its own temperature", "settings"),
        case("greedy-mix", 8, greedy_mix(), 40, "greedy requests beside sampled ones", "settings"),
    ]


def mask_cases() -> list[Case]:
    """A grammar allows other tokens at every position; the rows are handed without the mask."""
    rows = weights(9, 4, 4, 1, 1, 4)
    sets = [
        [[0, 1], [2, 3], [4, 5]],
        [[1, 2], [0, 5]],
        [[3, 4]],
        [[2], [0, 1], [3, 5], [1, 4]],
    ]
    drafts = [[0, 2], [3], [], [2, 1, 0]]
    requests = [
        with_settings(path, [rows] * len(own), [only(token) for token in path], plain(allowed=own))
        for path, own in zip(drafts, sets, strict=True)
    ]
    about = "a grammar's masks, other tokens at every position, the bonus row included"
    return [case("masks", 6, requests, 24, about, "masks")]


def logprob_cases() -> list[Case]:
    last = masses(16, 1, 4, 11)
    requests = [
        request([0, 1], [masses(4, 2, 1, 1), masses(8, 1, 6, 1), last], [even(0, 1), even(1, 2)]),
        request([2], [masses(8, 1, 5, 2), masses(8, 6, 1, 1)], [masses(4, 1, 1, 2)]),
        request([], [masses(16, 1, 6, 9)], []),
    ]
    about = "the log probability of every emitted token is the target's"
    return [case("logprobs", 3, requests, 16, about, "logprobs", kind="logprobs")]


def drafted_cases() -> list[Case]:
    """The engine draws the draft: a draft of another law, or numbers shared with the verifier, show.

    The first request is rejected half of the time, with a residual of two halves whose draft masses are 7 to
    1: noise that the draft's race has used prefers the second.  The spread row shows a temperature.
    """
    noise = drafting([{1: Fraction(11, 16), 2: Fraction(5, 16)}, only(0)], [masses(16, 8, 7, 1)])
    spread = {0: Fraction(3, 4), **{token: Fraction(1, 128) for token in range(1, 33)}}
    likely = {0: Fraction(7, 8), **{token: Fraction(1, 256) for token in range(1, 33)}}
    two = drafting(
        [masses(16, 2, 5, 1, 8), masses(8, 3, 5), only(1)], [masses(16, 8, 1, 5, 2), masses(4, 3, 1)]
    )
    temperature = [drafting([likely, only(0)], [spread])] * 3
    other = drafting([only(3), only(0)], [only(3)])  # the rows of another request have other tokens
    more = {"profile": "drafted", "kind": "drafted"}
    groups = [list(range(10)), list(range(10, 14))]
    return [
        case(
            "drafted",
            4,
            [*[noise] * 10, *[two] * 4, other],
            480,
            "the engine draws the draft",
            alike=groups,
            **more,
        ),
        case(
            "drafted-spread", 33, temperature, 400, "drafts of a row with a tail", alike=[[0, 1, 2]], **more
        ),
    ]


def call_cases() -> list[Case]:
    """The second call follows the first: its numbers must be new however many tokens the first emitted."""
    first = request([0, 0], [even(0, 1), even(0, 2), even(1, 2)], [only(0), only(0)])
    coin = request([0], [even(0, 1), even(1, 2)], [only(0)])
    fork = request([0, 0], [even(1, 2), even(0, 1), even(1, 3)], [only(0), only(0)])
    correction = request([0], [even(1, 2), only(3)], [only(0)])  # for sure rejected
    requests = [
        two_calls(first, [coin, coin, fork]),
        two_calls(coin, [first, coin]),
        two_calls(correction, [coin, coin]),
    ]
    about = "two calls in a row; how the second continues depends on how many tokens the first emitted"
    return [case("two-calls", 4, requests, 256, about, "calls", kind="calls")]


def lossless_cases() -> list[Case]:
    target = [masses(8, 1, 5, 2), masses(8, 4, 1, 3), masses(4, 1, 1, 2)]
    draft = [masses(8, 5, 1, 2), masses(8, 1, 5, 2)]
    far = [masses(16, 1, 14, 1), masses(16, 1, 1, 14), masses(4, 2, 1, 1)]
    near = [masses(16, 14, 1, 1), masses(4, 2, 1, 1)]
    return [
        pooled("pooled-1", 3, [target[0], target[2]], draft[:1], 256, "any lossless algorithm, one draft"),
        pooled("pooled-2", 3, target, draft, 64, "any lossless algorithm, two drafts"),
        pooled("pooled-3", 3, far, near, 64, "any lossless algorithm; draft and target are far apart"),
    ]


def coin_cases() -> list[Case]:
    one = request([0], [masses(16, 4, 3, 9), {1: Fraction(5, 16), 3: Fraction(11, 16)}], [only(0)])
    middle = {0: Fraction(5, 32), 1: Fraction(3, 8), 3: Fraction(15, 32)}
    last = {2: Fraction(1, 8), 3: Fraction(7, 8)}
    two = request([0, 1], [masses(16, 4, 5, 7), middle, last], [masses(4, 2, 1, 1), only(1)])
    return [
        grid("grid-1", 4, 16, one, "given coins: one draft"),
        grid("grid-2", 4, 8, two, "given coins: two drafts"),
    ]


def path_cases() -> list[Case]:
    """Several drafted paths: laws of two algorithms given the paths, and pooled tuples for any."""
    claims = ("multi_round", "greedy_multipath")
    first = [masses(8, 1, 5, 2), masses(8, 4, 1, 3), masses(4, 1, 1, 2)]
    second = [masses(8, 5, 1, 2), masses(8, 1, 5, 2)]
    flat = [masses(8, 3, 3, 2), masses(4, 1, 2, 1), masses(2, 1, 1)]
    ties = [masses(8, 3, 3, 2), masses(4, 1, 2, 1)]
    third = [masses(16, 9, 6, 1), masses(4, 1, 3)]
    # Two rejections for sure: the first leaves tokens 1 and 2, the second leaves token 2.
    twice = [masses(16, 0, 9, 7), masses(2, 1, 1)]
    requests = [
        of_paths([(0, 1), (2, 0)], first, second, *claims),
        of_paths([(0,), (0,)], [first[0], first[2]], second[:1], *claims),
        of_paths([(0, 1), (0, 2)], first, second, *claims),
        of_paths([(0,), (2,), (0,)], [masses(8, 1, 6, 1), first[2]], [masses(8, 4, 1, 3)], *claims),
        of_paths([(1, 2), (0, 0)], flat, ties, *claims),
        of_paths([(2,), (1,)], third, [masses(8, 1, 4, 3)], *claims),
        of_paths([(0,), (0,)], twice, [masses(16, 8, 7, 1)], *claims),
    ]
    about = "several drafted paths, the law of the algorithm given them"
    return [case("paths", 3, requests, 256, about, "paths")]
