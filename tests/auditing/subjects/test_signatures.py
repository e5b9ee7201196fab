"""The ways to call a sampler, each with a right one and what is noticed about a wrong one."""

import math
import random
from typing import Any

import pytest
import torch

from audits.specimens.samplers import (
    batch_token_verification,
    path_batch_recursive_rejection,
    token_verification,
)
from deep import first_is_quick
from later import Later
from spectheory import certify, instances
from spectheory.auditing import audit
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import (
    SIGNATURES,
    _drafts_itself,
    signature_called,
    with_point_mass_drafts,
)
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
}


CALLED_WITH_DRAFTS = list(SAMPLERS)
"""Other subjects draft their own paths; two have files of tests of their own."""


def test_every_signature_with_drafts_has_a_sampler() -> None:
    known = {name for name, each in SIGNATURES.items() if each.call is not _drafts_itself}
    assert known - {"numpy", "program"} == set(CALLED_WITH_DRAFTS)


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
