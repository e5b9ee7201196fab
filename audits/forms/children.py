"""Samplers of one node of a tree whose children are distinct, as in eagle-harness."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from spectheory.auditing.tape.races import UndefinedDrawError


class ChildProposals(NamedTuple):
    """The drafted children of one node.

    Attributes:
        probs: the draft row by candidates, [1, V].
        token_ids: the tokens of the candidates, [1, V].
        positions: the candidates that were drawn, in order, [1, K].
        tokens: their tokens, [1, K].
        scores: the largest draft probabilities, [1, K].
    """

    probs: torch.Tensor
    token_ids: torch.Tensor
    positions: torch.Tensor
    tokens: torch.Tensor
    scores: torch.Tensor


def of_children(function: Callable[..., Any]) -> Callable[..., list[int]]:
    """A sampler of the signature "sampler".

    It goes from node to node, from the root on.  After a full path it draws a token.  The candidates are not
    in the order of their token ids.

    Args:
        function: (target_probs [1, V], proposals, uniforms [1, K], final_uniforms [1]) -> (tokens [1],
            accepted_position [1] or -1, ..).
    """

    def sampler(paths: torch.Tensor, target: torch.Tensor, draft: torch.Tensor, generator: Any) -> list[int]:
        size = target.shape[-1]
        token_ids = torch.arange(size).flip(0)[None]
        tokens: list[int] = []
        alive = list(range(len(paths)))
        for depth in range(paths.shape[1]):
            children = list(dict.fromkeys(paths[alive, depth].tolist()))
            probs, drawn = draft[alive[0], depth][token_ids], torch.tensor([children])
            best = probs.topk(len(children)).values
            proposals = ChildProposals(probs, token_ids, size - 1 - drawn, drawn, best)
            coins = torch.rand(1, len(children)), torch.rand(1)
            found, positions = function(target[alive[0], depth][None], proposals, *coins)[:2]
            token, place = found.tolist()[0], positions.tolist()[0]
            tokens.append(token)
            if place < 0:
                return tokens
            if place >= len(children) or children[place] != token:
                raise UndefinedDrawError("the position that it accepts is not that of its token")
            alive = [path for path in alive if paths[path, depth] == token]
        return [*tokens, int(torch.multinomial(target[alive[0], -1], 1))]

    return sampler
