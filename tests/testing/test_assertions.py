"""One line of a test: the suite for a verifier, an audit for a function."""

import pytest

from spectheory import instances
from spectheory.auditing.subjects.specimens import SPECIMENS, token_verification
from spectheory.exact.suite import suite_for
from spectheory.testing import assert_lossless, assert_sampler_lossless
from spectheory.verification.algorithms import verifiers
from spectheory.verification.verifier import as_verifier


def test_a_sampler() -> None:
    """Passes with the certificate, fails with a counterexample, or with what could not be followed."""
    pairs = {"thirds": instances.two_token(2)}
    assert assert_sampler_lossless(token_verification, pairs=pairs).is_lossless
    with pytest.raises(AssertionError, match=r"coin_reused: defect: .*the completed output starts with"):
        assert_sampler_lossless(*SPECIMENS["coin_reused"])

    def normal_coins(paths, target_probs, draft_probs, generator):  # type: ignore[no-untyped-def]
        import torch

        return token_verification(paths, target_probs, draft_probs, torch.randn(1, generator=generator))

    with pytest.raises(AssertionError, match=r"normal_coins: not decided: .*randn"):
        assert_sampler_lossless(normal_coins, pairs=pairs)
    with pytest.raises(AssertionError, match="greedy_acceptance: defect"):
        assert_lossless(SPECIMENS["greedy_acceptance"][0])  # a function is a sampler


def test_what_is_a_verifier_goes_to_the_suite() -> None:
    """Also where it can be called."""

    class Called:
        def __call__(self) -> None:
            raise RuntimeError("not meant to be called")

        def outcome(self, *drafted):  # type: ignore[no-untyped-def]
            return verifiers["token"].outcome(*drafted)

    assert assert_lossless(Called(), suite_for(as_verifier(Called()), quick=True)[:6]).is_lossless
