"""The ways to call a sampler, each with a right one and what is noticed about a wrong one."""

import math
import random
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from audits.specimens.samplers import (
    batch_token_verification,
    path_batch_recursive_rejection,
    token_verification,
)
from audits.specimens.trees import reject_children
from deep import first_is_quick
from later import Later
from spectheory import certify, instances
from spectheory.auditing import audit
from spectheory.auditing.following.intercept import Journal, intercepted
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import (
    SIGNATURES,
    Call,
    signature_called,
    with_point_mass_drafts,
)
from spectheory.auditing.tape.decisions import Tape
from spectheory.foundation.errors import InvalidInputError, UnknownNameError
from spectheory.foundation.results import NOT_LOSSLESS

generation_utils = Later("transformers.generation.utils")

FLOAT32 = 1e-6
PAIR = instances.sticky_chain(2)


def with_coins(draft_tokens: Any, target_probs: Any, draft_probs: Any, coins: Any, final_coin: Any) -> Any:
    """Token verification; the correction token by inversion."""
    row = target_probs[-1]
    accepted = len(draft_tokens)
    for place, token in enumerate(draft_tokens):
        if coins[place] * draft_probs[place, token] >= target_probs[place, token]:
            row, accepted = (target_probs[place] - draft_probs[place]).clamp(min=0), place
            break
    token = torch.searchsorted(row.cumsum(0) / row.sum(), final_coin[None], right=True)
    return torch.cat([draft_tokens[:accepted], token])


def posterior(logits: Any, candidates: Any, logits_processor: Any) -> Any:
    """Paths that were drafted deterministically: a token is accepted with the target's probability."""
    accepted = 0
    probs = logits_processor(None, logits[0]).softmax(-1)
    for place, token in enumerate(candidates[0, 1:]):
        row = probs[place].clone()
        if random.random() >= row[token]:
            row[token] = 0
            return 0, accepted, row / row.sum()
        accepted += 1
    return 0, accepted, probs[-1]


SAMPLERS = {
    "coins": with_coins,
    "sampler": token_verification,
    "evaluate_posterior": posterior,
    "speculative_sampling": lambda *given: generation_utils._speculative_sampling(*given),
    "batch": batch_token_verification,
    "path_batch": path_batch_recursive_rejection,
    "reject_children": reject_children,
}


CALLED_WITH_DRAFTS = [name for name in SIGNATURES if not name.startswith("round")]
"""A round drafts its own paths; ``test_drafting_rounds.py`` has right and wrong ones."""


@first_is_quick("signature", CALLED_WITH_DRAFTS, quick=2)
def test_a_right_sampler_of_each_signature(signature: str) -> None:
    """Lossless up to float32, and as many tokens as token verification."""
    pair = with_point_mass_drafts(PAIR) if SIGNATURES[signature].point_mass_drafts else PAIR
    found = certify(Shipped(SAMPLERS[signature], signature), pair, with_optimum=False)
    known = certify("token", pair, with_optimum=False)
    assert found.total_variation < FLOAT32
    assert abs(found.block_efficiency - known.block_efficiency) < FLOAT32
    assert found.arithmetic == "exact"


@first_is_quick("signature", CALLED_WITH_DRAFTS, quick=3)
def test_partner_a_wrong_sampler_of_each_signature(signature: str) -> None:
    """A sampler that takes all drafted tokens is not."""

    def accepts(*arguments: Any) -> Any:
        if signature == "evaluate_posterior":
            logits, candidates, processor = arguments
            return 0, candidates.shape[1] - 1, processor(None, logits[0, -1]).softmax(-1)
        if signature == "reject_children":
            return arguments[1].tokens[:, 0], torch.zeros(1)
        if signature == "speculative_sampling":
            tokens = torch.cat([arguments[0][:, -arguments[2] :], torch.zeros((1, 1), dtype=torch.long)], -1)
            return tokens, arguments[2]
        if signature == "batch":
            return [[*row.draft_tokens.tolist(), 0] for row in arguments[0]]
        if signature == "path_batch":
            return [[*request.paths[0].tolist(), 0] for request in arguments[0]]
        paths = arguments[0] if signature == "coins" else arguments[0][0]
        return [*paths.tolist(), 0]

    pair = with_point_mass_drafts(PAIR) if SIGNATURES[signature].point_mass_drafts else PAIR
    assert not certify(Shipped(accepts, signature), pair, with_optimum=False).total_variation < 0.01


def test_changed_inputs_and_wrong_counts_are_findings() -> None:
    def changes(ids: Any, candidate_logits: Any, length: int, new_logits: Any) -> Any:
        tokens, accepted = generation_utils._speculative_sampling(ids, candidate_logits, length, new_logits)
        new_logits[0, 0] = 0
        return tokens, accepted + 1

    found = Shipped(changes, "speculative_sampling")
    certify(found, instances.two_token(1), with_optimum=False)
    kinds = {kind for kind, _ in found.journal.findings}
    texts = " ".join(text for _, text in found.journal.findings)
    assert kinds == {"contract"}
    assert "its argument new_logits is changed in place" in texts
    assert "returns 1 tokens and says that 1 are accepted" in texts


def test_logits_are_known_up_to_a_constant_and_prompts_are_long() -> None:
    """What takes logits for logarithms of probabilities, or the prompt for one token, is wrong."""

    def takes_exponentials(token_ids: Any, draft_logits: Any, count: int, logits: Any) -> Any:
        found = generation_utils._speculative_sampling(token_ids, draft_logits, count, logits)
        accepted = bool(torch.rand(()) < logits[0, 0, 0].exp())
        return (torch.tensor([[0]]), 0) if accepted else found

    def counts_from_the_front(token_ids: Any, draft_logits: Any, count: int, logits: Any) -> Any:
        return generation_utils._speculative_sampling(token_ids[:, : count + 1], draft_logits, count, logits)

    def right(token_ids: Any, draft_logits: Any, count: int, logits: Any) -> Any:
        assert token_ids.shape[1] == count + 2
        sums = [float(each[0, 0].exp().sum()) for each in (draft_logits, logits)]
        assert sums == pytest.approx([math.e, 1 / math.e])
        return generation_utils._speculative_sampling(token_ids, draft_logits, count, logits)

    for function, wrong in ((right, False), (takes_exponentials, True)):
        found = audit(function, {"two": instances.two_token(1)}, signature="speculative_sampling")
        assert (found.verdict == NOT_LOSSLESS) is wrong
    found = audit(counts_from_the_front, {"two": instances.two_token(1)}, signature="speculative_sampling")
    assert found.verdict == NOT_LOSSLESS
    assert "must be the start of a drafted path" in found.reasons[0]


def test_an_unknown_signature() -> None:
    with pytest.raises(UnknownNameError, match="no signature is called 'coin'; did you mean 'coins'"):
        signature_called("coin")


PATHS = np.array([[1, 0], [1, 2], [2, 1], [1, 0]])
TARGET = np.array(
    [[[1, 2, 5], [3, 1, 4], [6, 1, 1]], [[1, 2, 5], [3, 1, 4], [0, 1, 7]], [[1, 2, 5], [4, 1, 3], [0, 0, 8]]]
)[[0, 1, 2, 0]] / 8  # fmt: skip
DRAFT = np.array([[[4, 3, 1], [1, 5, 2]], [[4, 3, 1], [1, 5, 2]], [[4, 3, 1], [3, 2, 3]]])[[0, 1, 2, 0]] / 8
"""Of three paths two begin alike, and the first one is drafted again."""


def children_of(*answers: tuple[int, int]) -> tuple[list[int], list[dict[str, Any]], Journal]:
    """What is made of a function's answers, (token, position) by depth, what it was given, and findings."""
    given: list[dict[str, Any]] = []

    def function(target: Any, proposals: Any, *coins: Any) -> Any:
        given.append({"target": target, **proposals._asdict(), "coins": [coin.shape for coin in coins]})
        token, place = answers[len(given) - 1]
        return torch.tensor([token]), torch.tensor([place]), "another"

    journal, tape = Journal(), Tape(())
    with intercepted(tape, journal):
        tokens = SIGNATURES["reject_children"].call(function, Call(PATHS, TARGET, DRAFT, tape, journal))
    return tokens, given, journal


def tensors(*rows: Any, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(np.array([rows]), dtype=dtype)


@pytest.mark.parametrize(("path", "below", "last"), [(1, [0, 2], 1), (2, [1], 2)])
def test_the_children_of_each_node(path: int, below: list[int], last: int) -> None:
    """Distinct, in the order of the paths through the node; the last row is that of the path that is left."""
    child = below[-1]
    tokens, given, journal = children_of((path, path - 1), (child, len(below) - 1))
    assert tokens == [path, child, last]
    order = tensors(2, 1, 0, dtype=torch.int64)
    number = path
    for found, children, depth in zip(given, ([1, 2], below), (0, 1), strict=True):
        draft = DRAFT[number, depth][::-1]
        assert_close(
            found,
            {
                "target": tensors(*TARGET[number, depth]),
                "probs": tensors(*draft),
                "token_ids": order,
                "positions": tensors(*(2 - child for child in children), dtype=torch.int64),
                "tokens": tensors(*children, dtype=torch.int64),
                "scores": tensors(*sorted(draft)[::-1][: len(children)]),
                "coins": [(1, len(children)), (1,)],
            },
        )
    assert journal.findings == set()


@pytest.mark.parametrize(
    ("answers", "tokens", "is_found"),
    [
        (((0, -1),), [0], False),
        (((1, 0), (1, -1)), [1, 1], False),
        (((0, 0),), [0], True),
        (((2, 0), (1, -1)), [2, 1], True),
        (((1, 2), (0, -1)), [1, 0], True),
    ],
)
def test_a_node_without_an_accepted_child_ends(
    answers: tuple[tuple[int, int], ...], tokens: list[int], is_found: bool
) -> None:
    """A position must be that of the token; a token that no path has ends the text, too."""
    found, given, journal = children_of(*answers)
    assert (found, len(given)) == (tokens, len(answers))
    contract = ("contract", "the position that it accepts is not that of its token")
    assert journal.findings == ({contract} if is_found else set())


def named_as_a_sampler(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    raise AssertionError("it is not called")


@pytest.mark.parametrize("signature", ["coins", "batch", "round", "speculative_sampling"])
def test_a_signature_that_does_not_fit_is_named_before_a_call(signature: str) -> None:
    """With another number of arguments, or with the names of another signature."""
    with pytest.raises(InvalidInputError, match=f"--as {signature} calls it with .*; --as sampler would fit"):
        audit(named_as_a_sampler, signature=signature)


def test_partner_names_of_ones_own_are_called() -> None:
    """As are the rows of a signature that says requests, and functions that do not say what they take."""
    Shipped(lambda p, q, r, g: [], "speculative_sampling", "mine")
    Shipped(lambda rows, generator: [], "path_batch", "mine")
    Shipped(lambda *given, **named: [], "coins", "mine")
    Shipped(max, "sampler")
