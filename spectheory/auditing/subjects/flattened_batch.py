"""Samplers of a flattened batch: the tensors of all requests one after the other, as engines lay them out.

A function gets those of these arguments that it names, for B requests with N drafted tokens together:

- ``draft_token_ids`` [N], with -1 for placeholders; ``draft_probs`` [N, V], zeros for placeholders;
- ``num_draft_tokens``, a list of B numbers, some 0; ``cu_num_draft_tokens`` [B], their cumulative sums;
  ``max_spec_len``, the largest;
- ``target_probs`` [N, V] or ``target_logits`` [N, V]: the row for each drafted token;
- ``bonus_token_ids`` [B, 1], drawn from the row after all drafts; or ``bonus_probs`` [B, V], this row;
- ``is_greedy`` [B]; ``temperature`` [B], 0 for greedy requests and else 1;
- ``generator``; ``generators``, a dictionary from the number of a request that has a seed to its generator.

It returns the tokens of every request, [B, at most max_spec_len + 1], with -1 where there is none; or the
tokens and their log-probabilities, of the same shape.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from spectheory.auditing.subjects.signatures import Row
from spectheory.auditing.tape.atoms import quietly
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError

PLACEHOLDER = -1
NAMES = (
    "draft_token_ids", "draft_probs", "num_draft_tokens", "cu_num_draft_tokens", "max_spec_len",
    "target_probs", "target_logits", "bonus_token_ids", "bonus_probs", "is_greedy", "temperature",
    "generator", "generators",
)  # fmt: skip
"""The names of arguments."""
BATCH = Callable[[Sequence[Row], Any], list[Any]]
"""A sampler of the signature "batch"."""


def target_rows(row: Row) -> torch.Tensor:
    """The rows of a request with its placeholders, [L + padding + 1, V]: a wrong row shows, as all differ.

    The first placeholder has the row after all drafts, from which the token is drawn that replaces it.  The
    rows after a placeholder follow a text that nobody has written.  They are (n - p) / (n V - 1) for the row
    p after all drafts and n = 1, 2, ..: other tokens are the likeliest there.
    """
    last, size = row.target_probs[-1], row.target_probs.shape[-1]
    unread = [(number - last) / (number * size - 1) for number in range(1, row.padding + 1)]
    return torch.cat([row.target_probs, *(each[None] for each in unread)])


def bonus_tokens(
    rows: Sequence[Row], greedy: torch.Tensor | None = None, generators: Mapping[int, torch.Generator] = {}
) -> torch.Tensor:
    """The token after each fully accepted path, [B]: the likeliest one, or drawn by an exponential race.

    By default the rows say which requests are greedy.  Requests with a generator draw from it.
    """
    with quietly():
        probs = torch.stack([target_rows(row)[-1] for row in rows])
        if greedy is None:
            greedy = torch.tensor([row.is_greedy for row in rows])
    noise = torch.empty_like(probs).exponential_()
    for request, own in generators.items():
        noise[request].exponential_(generator=own)
    return torch.where(greedy, probs.argmax(dim=-1), (probs / noise).argmax(dim=-1))


def generators_of(rows: Sequence[Row]) -> dict[int, torch.Generator]:
    """The generators of the requests that have a seed, by their numbers."""
    seeds = {request: row.seed for request, row in enumerate(rows)}
    return {each: torch.Generator().manual_seed(seed) for each, seed in seeds.items() if seed is not None}


@quietly()
def flat_tensors(rows: Sequence[Row]) -> dict[str, Any]:
    """The arguments that do not depend on which requests are greedy.

    Example:
        >>> row = Row(torch.tensor([1]), torch.tensor([[0.5, 0.5], [0.25, 0.75]]), torch.tensor([[0.5, 0.5]]))
        >>> flat = flat_tensors([row, row])
        >>> flat["draft_token_ids"].tolist(), flat["cu_num_draft_tokens"].tolist()
        ([1, 1], [1, 2])
    """
    drafted, target, draft = [], [], []
    for row in rows:
        size = row.target_probs.shape[-1]
        drafted.append(torch.cat([row.draft_tokens, torch.full((row.padding,), PLACEHOLDER)]))
        target.append(target_rows(row)[:-1])
        draft.append(torch.cat([row.draft_probs, torch.zeros(row.padding, size)]))
    counts = [len(tokens) for tokens in drafted]
    return {
        "draft_token_ids": torch.cat(drafted).int(),
        "draft_probs": torch.cat(draft),
        "num_draft_tokens": counts,
        "cu_num_draft_tokens": torch.tensor(counts, dtype=torch.int32).cumsum(0, dtype=torch.int32),
        "max_spec_len": max(counts),
        "target_probs": torch.cat(target),
        "target_logits": torch.cat(target).log(),
        "bonus_probs": torch.stack([target_rows(row)[-1] for row in rows]),
    }


def flattened(function: Callable[..., Any]) -> BATCH:
    """Build a sampler of the signature "batch" from a sampler of a flattened batch.

    Raises:
        InvalidInputError: a parameter without a default has a name that is not in ``NAMES``.
    """
    parameters = inspect.signature(function).parameters
    for name, parameter in parameters.items():
        if name not in NAMES and parameter.default is parameter.empty:
            raise InvalidInputError(
                f"a sampler of a flattened batch has no parameter {name!r}; name it {', '.join(NAMES)}"
            )
    knows_greedy = bool({"is_greedy", "temperature"} & parameters.keys())

    def sampler(rows: Sequence[Row], generator: Any) -> list[Any]:
        greedy = torch.tensor([knows_greedy and row.is_greedy for row in rows])
        generators = generators_of(rows) if "generators" in parameters else {}
        flat: Mapping[str, Any] = {
            **flat_tensors(rows),
            "is_greedy": greedy,
            "temperature": torch.where(greedy, 0.0, 1.0),
            "generator": generator,
            "generators": generators,
        }
        if "bonus_token_ids" in parameters:
            bonus = bonus_tokens(rows, greedy, generators)
            if not flat["max_spec_len"]:  # an engine then samples as without drafts
                return [[token] for token in bonus.tolist()]
            flat = {**flat, "bonus_token_ids": bonus.int()[:, None]}
        found = function(**{name: value for name, value in flat.items() if name in parameters})
        if not isinstance(found, tuple):
            return [without_padding(tokens) for tokens in found.tolist()]
        if len(found) != 2:
            raise InvalidOutcomeError(
                f"the sampler returned a tuple of {len(found)} parts; return tokens, or tokens and "
                "log-probabilities"
            )
        tokens, logprobs = (part.tolist() for part in found)
        return [(without_padding(own), logs) for own, logs in zip(tokens, logprobs, strict=True)]

    sampler.takes_logits = "target_logits" in parameters  # type: ignore[attr-defined]
    sampler.takes_bonus = "bonus_token_ids" in parameters  # type: ignore[attr-defined]
    return sampler


def without_padding(tokens: Sequence[int]) -> list[int]:
    """Tokens without the placeholders at the end.

    A placeholder before a token stays: it is an accepted placeholder, and no token of the vocabulary.

    Example:
        >>> without_padding([2, -1, 0, -1, -1])
        [2, -1, 0]
    """
    found = list(tokens)
    while found and found[-1] == PLACEHOLDER:
        found.pop()
    return found
