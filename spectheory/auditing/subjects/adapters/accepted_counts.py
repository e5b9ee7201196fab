"""Samplers that return how many drafted tokens they accept, and the token after them."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch

from spectheory.auditing.subjects.adapters.answers import counted
from spectheory.auditing.subjects.library_code import Code
from spectheory.auditing.subjects.reached_code import Function
from spectheory.auditing.subjects.signatures import Row
from spectheory.auditing.tape.races import UndefinedDrawError

Counting = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, Any], tuple[Any, Any]]
"""(drafts [B, L], target_probs [B, L+1, V], draft_probs [B, L, V], generator) -> counts and tokens, [B]."""

DEEPSPEC = Function(
    "verify_draft_tokens",
    ("deepspec.eval.base_evaluator",),
    frozenset(
        {
            "target_model", "proposal", "position_ids", "start", "past_key_values_target", "temperature",
            "max_proposal_tokens",
        }
    ),
)  # fmt: skip
DFLASH = Function(
    "_rejection_sample",
    ("dflash.model",),
    frozenset({"draft_tokens", "target_probs", "draft_probs"}),
)
ECONOMIZE = Function("RejectionVerifier", ("economize.decoding.verifiers",))
FLASHSPEC = Function(
    "rejection_step",
    ("flashspec.sampling.rejection",),
    frozenset({"draft_token_ids", "draft_logprobs", "target_logprobs", "generator"}),
)
UNO = Function(
    "_sparse_rejection_from_support",
    ("sglang.srt.speculative.uno_utils",),
    frozenset(
        {
            "candidates", "target_ids", "target_probs", "draft_ids", "draft_probs", "accept_uniforms",
            "final_uniforms",
        }
    ),
)  # fmt: skip
SELECTOR = "the selector: the softmax of the logits"
UNO_STAND_INS = ("torch.compile: not compiled", "the coins, which the caller draws: torch.rand of float32")


def batches(call: Counting) -> Callable[..., Any]:
    """A sampler of the signature "batch", of requests with equal lengths."""

    def sampler(rows: Sequence[Row], generator: Any) -> list[list[int]]:
        drafted = torch.stack([row.draft_tokens for row in rows])
        target = torch.stack([row.target_probs for row in rows])
        draft = torch.stack([row.draft_probs for row in rows])
        counts, tokens = call(drafted, target, draft, generator)
        return [
            counted(path, count, token)
            for path, count, token in zip(drafted.tolist(), counts.tolist(), tokens.tolist(), strict=True)
        ]

    return sampler


def one_request(call: Counting) -> Callable[..., Any]:
    """A sampler of the signature "sampler", of one path; the call has a batch of one."""

    def sampler(paths: torch.Tensor, target: torch.Tensor, draft: torch.Tensor, generator: Any) -> list[int]:
        count, token = call(paths[:1], target[:1], draft[:1], generator)
        return counted(paths[0].tolist(), count, int(token))

    return sampler


def deepspec(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "sampler"."""

    def call(drafted: torch.Tensor, target: torch.Tensor, draft: torch.Tensor, _: Any) -> tuple[Any, Any]:
        length = drafted.shape[1]
        found = code.call(
            target_model=lambda **_: SimpleNamespace(logits=target.log()),
            proposal=SimpleNamespace(
                draft_token_count=length,
                verify_input_ids=torch.cat([torch.zeros_like(drafted[:, :1]), drafted], dim=1),
                draft_probs=draft,
            ),
            position_ids=torch.arange(length + 1)[None],
            start=0,
            past_key_values_target=None,
            temperature=1.0,
            max_proposal_tokens=length,
        )
        return found.accepted_draft_tokens, found.next_token

    return one_request(call)


def dflash(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "sampler"."""
    return one_request(
        lambda drafted, target, draft, _: code.call(
            draft_tokens=drafted, target_probs=target, draft_probs=draft
        )
    )


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


def flashspec(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "batch"."""
    return batches(
        lambda drafted, target, draft, generator: (
            code.call(
                draft_token_ids=drafted,
                draft_logprobs=draft.log(),
                target_logprobs=target.log(),
                generator=generator,
            ).T
        )
    )


def uno(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "batch": SGLang UNO's verification on all tokens as the support."""

    def call(drafted: torch.Tensor, target: torch.Tensor, draft: torch.Tensor, _: Any) -> tuple[Any, Any]:
        size, length = drafted.shape
        return code.call(
            candidates=torch.cat([torch.zeros((size, 1), dtype=torch.long), drafted], dim=1),
            target_ids=torch.arange(target.shape[-1]).expand(target.shape),
            target_probs=target,
            draft_ids=torch.arange(draft.shape[-1]).expand(draft.shape),
            draft_probs=draft,
            accept_uniforms=torch.rand((size, length + 1), dtype=torch.float32),
            final_uniforms=torch.rand((size,), dtype=torch.float32),
        )

    return batches(call)
