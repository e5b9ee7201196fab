"""A verifier on the first of the drafts is the verifier on fewer and shorter drafts."""

import pytest

from spectheory import certify, instances, output_law
from spectheory.foundation.errors import InvalidInputError
from spectheory.verification.first_drafts import OnFirst


@pytest.mark.parametrize("name", ["token", "block", "multi_round", "greedy_multipath", "spectr_gbv"])
@pytest.mark.parametrize(("drafts", "tokens"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_its_law_is_that_of_fewer_and_shorter_drafts(name: str, drafts: int, tokens: int) -> None:
    """On a context-free pair, exactly; what is accepted does not depend on the rest of the drafts."""
    pair = instances.two_residual_tokens(2)
    nested = output_law(OnFirst(name, drafts, tokens), pair, 3)
    alone = output_law(
        name, instances.two_residual_tokens(tokens), 1 if name in {"token", "block"} else drafts
    )
    assert nested.length_probs[: tokens + 1] == alone.length_probs
    assert not any(nested.length_probs[tokens + 1 :])
    assert nested.block_efficiency == alone.block_efficiency


def test_it_is_as_lossless_as_the_verifier() -> None:
    """Partner: spectr_gbv has its defect on two of three drafts."""
    assert certify(OnFirst("multi_round", 2), instances.sticky_chain(2), 3)
    assert certify(OnFirst("spectr_gbv", 2, 1), instances.two_token(2), 3).total_variation > 0


def test_drafts_that_are_not_independent_are_refused() -> None:
    from spectheory.pairs.drafts import PrefixTree

    with pytest.raises(InvalidInputError, match="not valid for 'prefix_tree'"):
        certify(OnFirst("block", 1), instances.two_token(2), drafts=PrefixTree((2, 2)))


def test_it_declares_what_the_verifier_declares() -> None:
    assert (OnFirst("spectr_gbv", 2).lossless, OnFirst("multi_round", 1).single_path) == (False, True)
