"""Small samplers with one mistake each, as they have shipped, and lossless samplers that look wrong.

They are the negative controls of an audit, which must find every one of ``SPECIMENS`` and of
``SPECIMENS_OF_SEVERAL_PATHS``, and none of ``LOSSLESS_SPECIMENS``.  Each takes paths [K, L], of which most
look at the first, the rows of both models and a generator, or has the signature that is given with it.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from spectheory.auditing.subjects.signatures import Request, Row


def _residual(target: Tensor, draft: Tensor) -> Tensor:
    return (target - draft).clamp(min=0)


def _drawn(weights: Tensor, generator: Any) -> int:
    return int(torch.multinomial(weights, 1, generator=generator))


def _by_inversion(weights: Tensor, coin: Tensor) -> int:
    return int(torch.searchsorted(weights.cumsum(0) / weights.sum(), coin.reshape(1), right=True))


def _verify(
    paths: Tensor,
    target: Tensor,
    draft: Tensor,
    generator: Any,
    *,
    coins: Tensor | None = None,
    accepts: Callable[[int, int], Any] | None = None,
    residual: Callable[[int], Tensor] | None = None,
) -> list[int]:
    """Token verification of the first path; a mistake replaces its coins, its test or its correction row."""
    p, q, drafted = target[0], draft[0], paths[0].tolist()
    coins = torch.rand(len(drafted), generator=generator) if coins is None else coins
    tokens: list[int] = []
    for place, token in enumerate(drafted):
        if not (accepts(place, token) if accepts else coins[place] < p[place, token] / q[place, token]):
            row = residual(place) if residual else _residual(p[place], q[place])
            return [*tokens, _drawn(row, generator)]
        tokens.append(token)
    return [*tokens, _drawn(p[-1], generator)]


def token_verification(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """Speculative sampling, without a mistake."""
    return _verify(paths, target, draft, generator)


def sample_and_compare(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """Draws from the target at every position and continues while the draft agrees: slow, but lossless."""
    tokens: list[int] = []
    for place, token in enumerate(paths[0].tolist()):
        tokens.append(_drawn(target[0, place], generator))
        if tokens[-1] != token:
            return tokens
    return [*tokens, _drawn(target[0, -1], generator)]


def exponential_race(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """Token verification whose correction token is the winner of an exponential race."""
    p, q = target[0], draft[0]
    noise = torch.empty_like(p[0]).exponential_(generator=generator)
    tokens: list[int] = []
    for place, token in enumerate(paths[0].tolist()):
        if not torch.rand((), generator=generator) * q[place, token] < p[place, token]:
            return [*tokens, int((_residual(p[place], q[place]) / noise).argmax())]
        tokens.append(token)
    return [*tokens, int((p[-1] / noise).argmax())]


def block_verification(
    paths: Tensor, target: Tensor, draft: Tensor, generator: Any, cap: float = 1.0
) -> list[int]:
    """The longest prefix that its own coin accepts (block2024 Algorithm 2)."""
    path, p, q, length = paths[0], target[0], draft[0], paths.shape[1]
    coins = torch.rand(length, generator=generator)
    weights = [torch.ones(())]
    for place, token in enumerate(path.tolist()):
        weights.append((weights[-1] * p[place, token] / q[place, token]).clamp(max=cap))
    accepted = 0
    for place in range(1, length + 1):
        weight = weights[place]
        if place < length:
            mass = _residual(weight * p[place], q[place]).sum()
            weight = mass / (mass + (1 - weight).clamp(min=0))
        if coins[place - 1] < weight:
            accepted = place
    row = _residual(weights[accepted] * p[accepted], q[accepted]) if accepted < length else p[length]
    return [*path[:accepted].tolist(), _drawn(row, generator)]


def recursive_rejection(
    paths: Tensor,
    target: Tensor,
    draft: Tensor,
    generator: Any,
    *,
    residual: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None,
    tried_once: bool = False,
    with_replacement: bool = True,
) -> list[int]:
    """The drafts at a context are tried in turn, each against the residual that those before it have left.

    Args:
        paths, target, draft, generator: as of all samplers here.
        residual: (row before, target row, draft row) -> the row after a rejection; a mistake replaces it.
        tried_once: a mistake: drafts that coincide count as one.
        with_replacement: whether a token can be drafted again at the same context.
    """
    tokens: list[int] = []
    alive = list(range(len(paths)))
    for place in range(paths.shape[1]):
        row, q = target[alive[0], place], draft[alive[0], place]
        tried: set[int] = set()
        for number, path in enumerate(alive):
            token = int(paths[path, place])
            if tried_once and token in tried:
                continue
            tried.add(token)
            if torch.rand((), generator=generator) * q[token] < row[token]:
                alive = [other for other in alive[number:] if int(paths[other, place]) == token]
                tokens.append(token)
                break
            left = _residual(row, q) if residual is None else residual(row, target[path, place], q)
            row = left / left.sum() if left.sum() > 0 else row
            if not with_replacement:
                q = q.index_fill(0, torch.tensor(token), 0.0)
                q = q / q.sum()
        else:
            return [*tokens, _drawn(row, generator)]
    return [*tokens, _drawn(target[alive[0], -1], generator)]


def rejection_without_replacement(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """Recursive rejection of drafts that differ at every context, as in EAGLE's trees; lossless for these."""
    return recursive_rejection(paths, target, draft, generator, with_replacement=False)


def coin_reused(
    draft_tokens: Tensor, target: Tensor, draft: Tensor, coins: Tensor, final: Tensor
) -> list[int]:
    """The coin that rejected a token also draws the correction token."""
    tokens: list[int] = []
    for place, token in enumerate(draft_tokens.tolist()):
        if not coins[place] < target[place, token] / draft[place, token]:
            return [*tokens, _by_inversion(_residual(target[place], draft[place]), coins[place])]
        tokens.append(token)
    return [*tokens, _by_inversion(target[-1], final)]


def seed_per_call(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """Every call starts the generator again."""
    return _verify(paths, target, draft, generator.manual_seed(0))


def coins_of_positions(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """A coin's seed is its token's position; after a rejection the next position's coin is used twice."""
    p, q, length = target[0], draft[0], paths.shape[1]
    first = generator.initial_seed()
    seeds = range(first, first + length + 1)
    coins = [torch.rand((), generator=generator.manual_seed(seed)) for seed in seeds]
    tokens: list[int] = []
    for place, token in enumerate(paths[0].tolist()):
        if not coins[place] < p[place, token] / q[place, token]:
            tokens.append(_by_inversion(_residual(p[place], q[place]), coins[place + 1]))
            break
        tokens.append(token)
    else:
        tokens.append(_drawn(p[-1], generator))
    generator.manual_seed(first + len(tokens))
    return tokens


def seeds_the_global_generator(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """Lossless, but it seeds torch's global generator."""
    torch.manual_seed(17)
    return _verify(paths, target, draft, generator)


def coins_of_101_values(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """A coin is a percentage."""
    coins = torch.randint(0, 101, paths.shape[1:], generator=generator) / 100
    return _verify(paths, target, draft, generator, coins=coins)


def rows_of_the_last_text(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """Rows are cached by the drafted tokens, and reused when these tokens have other rows."""
    key = tuple(target.shape), tuple(paths[0].tolist())
    return _verify(paths, *_KEPT.setdefault(key, (target.clone(), draft.clone())), generator)


_KEPT: dict[Any, tuple[Tensor, Tensor]] = {}


def other_draft_law(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """Verifies against a draft law at temperature 1/2, but the tokens were drawn at temperature 1."""
    sharp = draft**2 / (draft**2).sum(-1, keepdim=True)
    return _verify(paths, target, sharp, generator)


def one_sided_temperature(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """The temperature is applied to the target in the acceptance test and not in the correction."""
    p, q, coins = target[0], draft[0], torch.rand(paths.shape[1], generator=generator)
    sharp = p**2 / (p**2).sum(-1, keepdim=True)

    def accepts(place: int, token: int) -> Any:
        return coins[place] < sharp[place, token] / q[place, token]

    return _verify(paths, target, draft, generator, coins=coins, accepts=accepts)


def residual_in_place(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """Lossless, but the residual overwrites the caller's target rows."""
    p, q = target[0], draft[0]
    return _verify(paths, target, draft, generator, residual=lambda n: p[n].sub_(q[n]).clamp_(min=0))


def boundary_comparison(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """Accepts where coin <= ratio: a coin of 0 accepts a token of probability 0."""
    p, q, coins = target[0], draft[0], torch.rand(paths.shape[1], generator=generator)

    def accepts(place: int, token: int) -> Any:
        return coins[place] <= p[place, token] / q[place, token]

    return _verify(paths, target, draft, generator, coins=coins, accepts=accepts)


def bfloat16_coins(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """Coins in the precision of a model."""
    coins = torch.rand(paths.shape[1], generator=generator, dtype=torch.bfloat16)
    return _verify(paths, target, draft, generator, coins=coins)


def previous_draft_row(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """The residual uses the draft's row of the position before."""
    p, q = target[0], draft[0]
    return _verify(paths, target, draft, generator, residual=lambda n: _residual(p[n], q[max(n - 1, 0)]))


def next_position_correction(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """The correction token comes from the target's row of the position after."""
    return _verify(paths, target, draft, generator, residual=lambda place: target[0, place + 1])


def bonus_without_processor(logits: Tensor, candidates: Tensor, logits_processor: Any) -> Any:
    """The token after a fully accepted path is drawn from unprocessed logits."""
    for place, token in enumerate(candidates[0, 1:].tolist()):
        row = logits_processor(None, logits[0, place]).softmax(-1)
        if random.random() >= row[token]:
            row[token] = 0
            return 0, place, row / row.sum()
    return 0, candidates.shape[1] - 1, logits[0, -1].softmax(-1)


def product_of_uniforms(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """Block acceptance compares products of coins with products of ratios."""
    path, p, q = paths[0], target[0], draft[0]
    length = len(path)
    places = torch.arange(length)
    ratios = (p[places, path] / q[places, path]).cumprod(0).clamp(max=1)
    coins = torch.rand(length, generator=generator).cumprod(0)
    accepted = max((place + 1 for place in range(length) if coins[place] < ratios[place]), default=0)
    weight = ratios[accepted - 1] if accepted else torch.ones(())
    row = _residual(weight * p[accepted], q[accepted]) if accepted < length else p[length]
    row = row if row.sum() > 0 else p[accepted]
    return [*path[:accepted].tolist(), _drawn(row, generator)]


def uncapped_joint_ratio(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """Block verification with the product of ratios instead of its running minimum with 1."""
    return block_verification(paths, target, draft, generator, cap=float("inf"))


def greedy_acceptance(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """A sampled request is accepted as if greedy: where the draft is the target's likeliest token."""
    tokens: list[int] = []
    for place, token in enumerate(paths[0].tolist()):
        if token != int(target[0, place].argmax()):
            break
        tokens.append(token)
    return [*tokens, _drawn(target[0, len(tokens)], generator)]


def residual_of_the_target(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """Recursive rejection whose residual after every rejection is that of the first draft."""
    return recursive_rejection(paths, target, draft, generator, residual=lambda row, p, q: _residual(p, q))


def coinciding_drafts_tried_once(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """Recursive rejection that tries equal tokens once: drafts without repetition have another law."""
    return recursive_rejection(paths, target, draft, generator, tried_once=True)


def three_way_split(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """Recursive rejection that takes the first of three different drafts behind one accepted token."""
    heads = {tuple(path[:2]) for path in paths.tolist()}
    if paths.shape[1] > 1 and len(heads) == 3 and len({head[0] for head in heads}) == 1:
        return [*paths[0].tolist(), _drawn(target[0, -1], generator)]
    return recursive_rejection(paths, target, draft, generator)


def top_three(paths: Tensor, target: Tensor, draft: Tensor, generator: Any) -> list[int]:
    """The target is cut off after its three likeliest tokens."""
    cut = target * (target >= target.topk(min(3, target.shape[-1]), dim=-1).values[..., -1:])
    return _verify(paths, cut / cut.sum(-1, keepdim=True), draft, generator)


def _request(row: Row, coins: Tensor, generator: Any) -> list[int]:
    if row.is_greedy:
        best = row.target_probs.argmax(-1).tolist()
        drafted = row.draft_tokens.tolist()
        agree = next((n for n, token in enumerate(drafted) if token != best[n]), len(drafted))
        return best[: agree + 1]
    return _verify(
        row.draft_tokens[None], row.target_probs[None], row.draft_probs[None], generator, coins=coins
    )


def batch_token_verification(rows: Sequence[Row], generator: Any) -> list[list[int]]:
    """Separate random numbers for every request; lossless."""
    coins = torch.rand(len(rows), max(len(row.draft_tokens) for row in rows), generator=generator)
    return [_request(row, own, generator) for row, own in zip(rows, coins, strict=True)]


def batch_shares_coins(rows: Sequence[Row], generator: Any) -> list[list[int]]:
    """One coin per position for all requests: each is lossless alone, but they are not independent."""
    coins = torch.rand(max(len(row.draft_tokens) for row in rows), generator=generator)
    return [_request(row, coins, generator) for row in rows]


def path_batch_recursive_rejection(requests: Sequence[Request], generator: Any) -> list[list[int]]:
    """Every request alone; lossless."""
    return [recursive_rejection(*request, generator) for request in requests]


def path_batch_repeats_paths(requests: Sequence[Request], generator: Any) -> list[list[int]]:
    """Requests are filled up with copies of their last path to the largest number of paths of the batch."""
    most = max(len(request.paths) for request in requests)

    def filled(tensor: Tensor) -> Tensor:
        return torch.cat([tensor, tensor[-1:].expand(most - len(tensor), *tensor.shape[1:])])

    full = [Request(*map(filled, request)) for request in requests]
    return [recursive_rejection(*request, generator) for request in full]


def batch_is_greedy_if_one_is(rows: Sequence[Row], generator: Any) -> list[list[int]]:
    """The branch for temperature 0 is taken for the whole batch."""
    greedy = any(row.is_greedy for row in rows)
    return batch_token_verification([row._replace(is_greedy=greedy) for row in rows], generator)


def batch_counts_from_the_longest(rows: Sequence[Row], generator: Any) -> list[list[int]]:
    """Draft rows are flat, but indexed as if all requests had the length of the longest."""
    longest = max(len(row.draft_tokens) for row in rows)
    flat = torch.cat([row.draft_probs for row in rows])
    found = [
        flat[(number * longest + torch.arange(len(row.draft_tokens))).clamp(max=len(flat) - 1)]
        for number, row in enumerate(rows)
    ]
    shifted = [row._replace(draft_probs=draft) for row, draft in zip(rows, found, strict=True)]
    return batch_token_verification(shifted, generator)


_SAMPLERS = (
    seed_per_call,
    coins_of_positions,
    seeds_the_global_generator,
    coins_of_101_values,
    rows_of_the_last_text,
    other_draft_law,
    one_sided_temperature,
    residual_in_place,
    boundary_comparison,
    bfloat16_coins,
    previous_draft_row,
    next_position_correction,
    product_of_uniforms,
    uncapped_joint_ratio,
    greedy_acceptance,
    top_three,
)
SPECIMENS: Mapping[str, tuple[Callable[..., Any], str]] = {
    "coin_reused": (coin_reused, "coins"),
    "bonus_without_processor": (bonus_without_processor, "evaluate_posterior"),
    **{sampler.__name__: (sampler, "sampler") for sampler in _SAMPLERS},
}
"""Name -> (sampler, signature); all are wrong."""

SPECIMENS_OF_SEVERAL_PATHS: Mapping[str, Callable[..., Any]] = {
    sampler.__name__: sampler
    for sampler in (residual_of_the_target, coinciding_drafts_tried_once, three_way_split)
}
"""Name -> sampler of the signature "sampler"; all are lossless for one path."""

BATCH_SPECIMENS: Mapping[str, Callable[..., Any]] = {
    sampler.__name__: sampler
    for sampler in (batch_shares_coins, batch_is_greedy_if_one_is, batch_counts_from_the_longest)
}
"""Name -> sampler of the signature "batch"; all are lossless for one request alone."""

LOSSLESS_SPECIMENS: Mapping[str, tuple[Callable[..., Any], str]] = {
    sampler.__name__: (sampler, "sampler")
    for sampler in (
        token_verification,
        sample_and_compare,
        exponential_race,
        block_verification,
        recursive_rejection,
    )
}
"""Name -> (sampler, signature); all are lossless."""
