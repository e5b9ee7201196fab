"""Samplers of several paths and of trees, each with a wrong partner that only K >= 2 or a tree shows.

They are written after the published algorithms, in the signatures that engines use.  With one drafted path
the wrong partner is lossless too, so that an audit of one path would pass it.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from audits.forms.children import ChildProposals, of_children
from audits.specimens.samplers import recursive_rejection, rejection_without_replacement
from spectheory.auditing.subjects.relaxations import Relaxation, typical_acceptance
from spectheory.pairs.drafts import DraftProcess, WithoutReplacement


def _children(paths: Tensor, alive: Sequence[int], depth: int) -> list[int]:
    """The distinct next tokens of the paths that share the accepted prefix, in the order of the paths."""
    return list(dict.fromkeys(int(paths[path, depth]) for path in alive))


def _below(paths: Tensor, alive: Sequence[int], depth: int, token: int) -> list[int]:
    return [path for path in alive if int(paths[path, depth]) == token]


def multi_step_speculative_sampling(
    paths: Tensor, target: Tensor, draft: Tensor, generator: Any, *, normalises: bool = True
) -> list[int]:
    """The drafts at a context are tried in random order, each against the residual so far (SpecInfer).

    Args:
        paths, target, draft, generator: as of all samplers.
        normalises: without it, a mistake: the residual after a rejection keeps its smaller sum.
    """
    tokens: list[int] = []
    alive = list(range(len(paths)))
    for depth in range(paths.shape[1]):
        row, left = target[alive[0], depth], list(alive)
        while left:
            path = left.pop(int(torch.multinomial(torch.ones(len(left)), 1, generator=generator)))
            token, q = int(paths[path, depth]), draft[path, depth]
            if torch.rand((), generator=generator) * q[token] < row[token]:
                tokens.append(token)
                alive = _below(paths, [path, *left], depth, token)
                break
            rest = (row - q).clamp(min=0)
            if rest.sum() > 0:
                row = rest / rest.sum() if normalises else rest
        else:
            return [*tokens, int(torch.multinomial(row, 1, generator=generator))]
    return [*tokens, int(torch.multinomial(target[alive[0], -1], 1, generator=generator))]


def target_only_sampling(
    paths: Tensor, target: Tensor, draft: Tensor, generator: Any, *, adds_up: bool = True
) -> list[int]:
    """One coin per depth is compared with the probability of the children so far (SGLang's tree sampling).

    Args:
        paths, target, draft, generator: as of all samplers.
        adds_up: without it, a mistake: the coin is compared with the probability of each child alone.
    """
    tokens: list[int] = []
    alive = list(range(len(paths)))
    for depth in range(paths.shape[1]):
        row, coin = target[alive[0], depth], torch.rand((), generator=generator)
        reached = torch.zeros(())
        children = _children(paths, alive, depth)
        for token in children:
            reached = reached + row[token] if adds_up else row[token]
            if coin < reached:
                tokens.append(token)
                alive = _below(paths, alive, depth, token)
                break
        else:
            rest = row.index_fill(0, torch.tensor(children), 0.0)
            return [*tokens, int(torch.multinomial(rest, 1, generator=generator))]
    return [*tokens, int(torch.multinomial(target[alive[0], -1], 1, generator=generator))]


def evaluate_posterior(
    logits: Tensor, candidates: Tensor, logits_processor: Any, *, row_of_first: bool = False
) -> tuple[int, int, Tensor]:
    """Deterministic children are tried in turn, and a rejected one leaves the row (EAGLE).

    Args:
        logits, candidates, logits_processor: as of the signature of this name.
        row_of_first: a mistake: behind a fully accepted path, the row is that of the first candidate.
    """
    paths = candidates[:, 1:]
    alive, length = list(range(len(paths))), paths.shape[1]
    for depth in range(length):
        row = logits_processor(None, logits[alive[0], depth]).softmax(-1)
        for token in _children(paths, alive, depth):
            if random.random() < float(row[token]):
                alive = _below(paths, alive, depth, token)
                break
            row = row.index_fill(0, torch.tensor(token), 0.0)
            row = row / row.sum()
        else:
            return alive[0], depth, row
    last = logits[0 if row_of_first else alive[0], -1]
    return alive[0], length, logits_processor(None, last).softmax(-1)


def reject_children(
    target_probs: Tensor,
    proposals: ChildProposals,
    uniforms: Tensor,
    final_uniforms: Tensor,
    *,
    removes: bool = True,
) -> tuple[Tensor, Tensor]:
    """Recursive rejection of the children of every row's node, drawn without replacement (RSD).

    Args:
        target_probs, proposals, uniforms, final_uniforms: as of ``of_children``.
        removes: without it, a mistake: the draft row keeps the tokens that were drawn before.
    """
    tokens, positions = [], []
    for number, row in enumerate(target_probs.double()):
        q = torch.zeros_like(row).scatter(0, proposals.token_ids[number], proposals.probs[number].double())
        for place, token in enumerate(proposals.tokens[number].tolist()):
            if uniforms[number, place] * q[token] < row[token]:
                break
            rest = (row - q).clamp(min=0)
            row = rest / rest.sum()
            if removes:
                q = q.index_fill(0, torch.tensor(token), 0.0)
                q = q / q.sum()
        else:
            place = -1
            token = int(torch.searchsorted(row.cumsum(0), final_uniforms[number : number + 1], right=True))
        tokens.append(token)
        positions.append(place)
    return torch.tensor(tokens), torch.tensor(positions)


THRESHOLD, ALPHA = 0.3, 0.55
"""Of typical acceptance: epsilon and delta."""


def typical_candidate(
    logits: Tensor, candidates: Tensor, logits_processor: Any, *, takes_the_first: bool = False
) -> tuple[int, int, Tensor]:
    """The longest path whose tokens are typical, of equals the likeliest (Medusa); lossy by design.

    Args:
        logits, candidates, logits_processor: as of the signature of this name.
        takes_the_first: a mistake: of the longest paths the first, whatever its likelihood.
    """
    paths = candidates[:, 1:]
    rows = logits_processor(None, logits).softmax(-1)
    probs = rows[:, :-1].gather(2, paths[..., None])[..., 0]
    entropies = -torch.xlogy(rows[:, :-1], rows[:, :-1]).sum(-1)
    is_typical = probs > (ALPHA * torch.exp(-entropies)).clamp(max=THRESHOLD)
    lengths = is_typical.long().cumprod(1).sum(1)
    length = int(lengths.max())
    likelihoods = probs[:, :length].prod(1) * (lengths == length)
    best = int(lengths.argmax() if takes_the_first else likelihoods.argmax())
    return best, length, rows[best, length]


class TreeSpecimen(NamedTuple):
    """A sampler and its wrong partner.

    Attributes:
        right, wrong: the samplers.
        signature: how both are called.
        trees: the draft processes that both are meant for; empty for those of the signature.
        relaxation: the law that both state.
        shown_by: what shows the mistake: "K >= 2" or "a tree".
    """

    right: Callable[..., Any]
    wrong: Callable[..., Any]
    signature: str = "sampler"
    trees: tuple[DraftProcess, ...] = ()
    relaxation: Relaxation | None = None
    shown_by: str = "K >= 2"


TREE_SPECIMENS: Mapping[str, TreeSpecimen] = {
    "multi_step_speculative_sampling": TreeSpecimen(
        multi_step_speculative_sampling, partial(multi_step_speculative_sampling, normalises=False)
    ),
    "target_only_sampling": TreeSpecimen(target_only_sampling, partial(target_only_sampling, adds_up=False)),
    "evaluate_posterior": TreeSpecimen(
        evaluate_posterior, partial(evaluate_posterior, row_of_first=True), "evaluate_posterior"
    ),
    "reject_children": TreeSpecimen(
        of_children(reject_children),
        of_children(partial(reject_children, removes=False)),
        trees=(WithoutReplacement((2,)), WithoutReplacement((2, 1))),
    ),
    "typical_acceptance": TreeSpecimen(
        typical_candidate,
        partial(typical_candidate, takes_the_first=True),
        "evaluate_posterior",
        relaxation=typical_acceptance(THRESHOLD, ALPHA),
    ),
    "rejection_without_replacement": TreeSpecimen(
        rejection_without_replacement,
        recursive_rejection,
        trees=(WithoutReplacement((2,)), WithoutReplacement((2, 1))),
        shown_by="a tree",
    ),
}
"""Name -> the sampler and its partner, which is lossless with one path."""
