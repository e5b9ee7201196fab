"""Two calls in a row: on one small pair of each draft length, and on a path that leaves much open."""

from __future__ import annotations

from spectheory import instances
from spectheory.audit.battery import audit_pairs
from spectheory.audit.shipped import Shipped
from spectheory.audit.specimens import coins_of_positions, token_verification
from spectheory.audit.two_calls import call_twice, least_accepted, pairs_of_calls


def test_one_pair_of_each_draft_length() -> None:
    """One whose corrections are between two tokens, and no large one; a large one where there is no other."""
    pairs = audit_pairs()
    chosen = list(pairs_of_calls(pairs.values()))
    assert chosen == [pairs[name] for name in ("two residual tokens", "thirds", "dyadic, 3 drafted")]
    large = pairs["random dyadic, 3 tokens"]
    assert list(pairs_of_calls([large])) == [large]


def test_the_path_is_neither_accepted_nor_rejected_for_certain() -> None:
    """Where the models are equal, or a token is forbidden, nothing is open."""
    pairs = audit_pairs()
    assert least_accepted(pairs["thirds"]) == ((0, 0), 2)
    assert least_accepted(pairs["two residual tokens"])[1] == 2
    assert least_accepted(pairs["equal models"])[1] == 0


def test_what_is_found_there() -> None:
    """A coin that two calls use; nothing where numbers are fresh, and nothing without a correction by two."""
    for sampler, pair, finds in (
        (coins_of_positions, instances.two_residual_tokens(1), True),
        (coins_of_positions, instances.two_token(1), False),
        (token_verification, instances.two_residual_tokens(1), False),
    ):
        shipped = Shipped(sampler, "sampler")
        assert call_twice(shipped, pair) > 1
        assert bool(shipped.journal.findings) is finds
