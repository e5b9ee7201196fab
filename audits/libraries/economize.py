"""economize: rejection of the nodes of a tree, whose branches are the paths."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from audits.loading.library_code import Code
from audits.loading.reached_code import Function
from audits.subject import Library, Subject
from spectheory.auditing.tape.races import UndefinedDrawError

LIBRARY = Library("economize", "economize", "0.3.2")
FUNCTION = Function("RejectionVerifier", ("economize.decoding.verifiers",))
SELECTOR = "the selector: the softmax of the logits"


def economize(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "sampler": a tree whose branches are the paths, apart from the root on."""
    verifier = code.function(SimpleNamespace(verifier_options={}, verifier_name="rejection"))

    def sampler(paths: torch.Tensor, target: torch.Tensor, draft: torch.Tensor, generator: Any) -> list[int]:
        """The nodes of a path follow one another; node i has row i + 1."""
        (number, length), size = paths.shape, target.shape[-1]
        parents = torch.arange(-1, number * length - 1).reshape(number, length)
        parents[:, 0] = -1
        tree = SimpleNamespace(
            parents=parents.reshape(1, -1),
            tokens=paths.reshape(1, -1),
            lengths=[number * length],
            probs=draft.reshape(1, -1, size),
        )
        rows = torch.cat([target[:1, 0], target[:, 1:].reshape(-1, size)])
        selector = SimpleNamespace(
            distributions=lambda logits: logits.softmax(-1), greedy=False, generator=generator
        )
        (nodes,), (token,) = verifier.verify_tree(rows.log()[None], tree, selector)
        last = -1
        for node in map(int, nodes):
            if node not in range(number * length) or int(tree.parents[0, node]) != last:
                raise UndefinedDrawError(
                    f"it accepts the node {node} after the node {last}, and is no child of it"
                )
            last = node
        return [*(int(tree.tokens[0, node]) for node in nodes), token]

    return sampler


SUBJECTS = {
    "economize": Subject(
        LIBRARY,
        FUNCTION,
        economize,
        {"6ab4d028a0c007aae5a6cdcf3bb01ca69ca2ed59ddb70d4ec499a7494f6395fe": LIBRARY.tested},
        "sampler",
        mistake=("u * q_x < p[x]", "u * q_x > p[x]"),
        settings={"num_drafts": (1, 2), "stand_ins": (SELECTOR,)},
    )
}
