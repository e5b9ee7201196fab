"""Candidate cases: ragged batches of random rows, and requests with random settings."""

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction

from conformance.case_forms import LOG_2, Case, Request, TieError, case, request, with_settings
from conformance.laws import Row

LENGTHS = ((2, 0, 3, 1, 0, 4), (1, 3, 0, 2, 4), (3, 1, 2), (2, 2), (0, 1, 1, 2, 3), (4, 1, 0, 2, 1, 3))
"""Numbers of drafts: unequal, with requests without drafts in every place but the same."""
SQUARES = [Fraction(number) for number in (1, 4, 9, 16, 25, 36, 49, 64)]
"""Weights whose roots are rational, for temperature 2."""


def random_row(rng: random.Random, vocab: int, support: int, parts: int, must: Sequence[int] = ()) -> Row:
    """A row of multiples of 1/parts with `support` tokens, those of `must` among them."""
    others = [token for token in range(vocab) if token not in must]
    tokens = [*must, *rng.sample(others, support - len(must))]
    cuts = [0, *sorted(rng.sample(range(1, parts), support - 1)), parts]
    return {token: Fraction(b - a, parts) for token, a, b in zip(tokens, cuts[:-1], cuts[1:], strict=True)}


def random_rows(
    rng: random.Random, vocab: int, length: int, support: int, parts: int
) -> tuple[list[int], list[Row], list[Row]]:
    """Drafts, target rows, draft rows; in 6 of 10 positions the draft has target probability, too."""
    drafts, target, draft = [], [], []
    for _ in range(length):
        row = random_row(rng, vocab, support, parts)
        token = rng.choice(sorted(row))
        must = (token,) if rng.random() < 0.6 else ()
        drafts.append(token)
        draft.append(row)
        target.append(random_row(rng, vocab, support, parts, must))
    return drafts, [*target, random_row(rng, vocab, support, parts)], draft


def ragged_pool(count: int, seed: int = 1) -> Iterator[Case]:
    """Batches of one to six requests; every row is its own."""
    rng = random.Random(seed)
    for number in range(count):
        vocab, support = rng.choice([(4, 2), (4, 3), (6, 2), (6, 3), (8, 2), (8, 3)])
        parts = rng.choice([8, 16, 32])
        lengths = (rng.choice([1, 1, 2, 3, 4]),) if rng.random() < 0.4 else rng.choice(LENGTHS)
        requests = [request(*random_rows(rng, vocab, n, support, parts)) for n in lengths]
        yield case(f"ragged-{number}", vocab, requests, 32, "requests of several lengths, rows of their own")


def random_settings(rng: random.Random, vocab: int) -> Request:
    """One request with one cut or a penalty, and a temperature.

    Raises:
        TieError: a token lies on a boundary.
    """
    settings: dict[str, object] = {"temperature": rng.choice([0.5, 1, 2, 2, 0.5, 0])}
    what = rng.random()
    if settings["temperature"] and what < 0.55:
        name = "top_k" if what < 0.2 else "top_p" if what < 0.4 else "min_p"
        values = {"top_k": [1, 2, 3], "top_p": [0.5, 0.75, 0.875], "min_p": [0.125, 0.25, 0.5]}
        settings[name] = rng.choice(values[name])
    elif settings["temperature"] != 2 and what > 0.7:
        past = [rng.randrange(vocab) for _ in range(rng.choice([0, 1, 2]))]
        settings |= {"frequency_penalty": LOG_2 * rng.choice([1, 2]), "past": past}
    drafts, draft, weights = [], [], []
    length = rng.choice([0, 1, 2, 3])
    for i in range(length + 1):
        tokens = rng.sample(range(vocab), rng.choice([3, 4, 5]))
        weights.append(dict(zip(tokens, rng.sample(SQUARES, len(tokens)), strict=True)))
        if i < length:
            draft.append(random_row(rng, vocab, 3, 16, (rng.choice(sorted(weights[i])),)))
            drafts.append(rng.choice(sorted(draft[i])))
    return with_settings(drafts, weights, draft, settings)


def settings_pool(count: int, seed: int = 2) -> Iterator[Case]:
    """Batches of four requests with settings of their own; none lies on the boundary of a cut."""
    rng = random.Random(seed)
    for number in range(count):
        requests: list[Request] = []
        while len(requests) < 4:
            try:
                requests.append(random_settings(rng, 8))
            except TieError:
                continue
        yield case(f"settings-{number}", 8, requests, 32, "settings differ between requests", "settings")
