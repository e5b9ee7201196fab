"""One line of a test: the suite for a verifier, an audit for a function."""

from typing import Any

import numpy as np
import pytest

from audits.specimens.samplers import SPECIMENS, token_verification
from spectheory import instances
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.exact.suite_cases import suite_for
from spectheory.foundation.errors import InvalidInputError
from spectheory.testing import assert_lossless, assert_sampler_lossless
from spectheory.verification.algorithms import verifiers
from spectheory.verification.user import as_verifier


def test_a_sampler(capsys: pytest.CaptureFixture[str]) -> None:
    """Passes with the certificate, fails with a counterexample, or with what could not be followed."""
    pairs = {"thirds": instances.two_token(2)}
    assert assert_sampler_lossless(token_verification, pairs=pairs).is_lossless
    with pytest.raises(AssertionError, match=r"coin_reused: not lossless: .*the completed output starts"):
        assert_sampler_lossless(*SPECIMENS["coin_reused"])

    kept = np.random.default_rng(1)

    def own_numbers(paths, target_probs, draft_probs, generator):  # type: ignore[no-untyped-def]
        return [int(kept.random() >= float(target_probs[0, 0, 0]))]

    with pytest.raises(AssertionError, match=r"own_numbers: undecided: .*randomness that is not replaced"):
        assert_sampler_lossless(own_numbers, pairs=pairs, drafts=(1,), within=0.5)
    found = assert_sampler_lossless(own_numbers, pairs=pairs, drafts=(1,), within=0.5, accept="undecided")
    assert (found.verdict, bool(found)) == ("undecided", False)
    assert "would have been seen" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="greedy_acceptance: not lossless"):
        assert_lossless(SPECIMENS["greedy_acceptance"][0], pairs=pairs)  # a function is a sampler


def test_what_is_a_verifier_goes_to_the_suite() -> None:
    """Also where it can be called."""

    class Called:
        def __call__(self) -> None:
            raise RuntimeError("not meant to be called")

        def outcome(self, *drafted):  # type: ignore[no-untyped-def]
            return verifiers["token"].outcome(*drafted)

    assert assert_lossless(Called(), suite_for(as_verifier(Called()), quick=True)[:6])


def first_of_two_is_taken(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    """Right with one path; of two it takes the first as it is."""
    if len(paths) == 1:
        return token_verification(paths, target_rows, draft_rows, generator)
    return [int(paths[0, 0])]


def test_options_reach_the_audit() -> None:
    """Two paths only, and one only: the same function is wrong and right."""
    pairs = {"thirds": instances.two_token(1)}
    with pytest.raises(AssertionError, match="on thirds with 2 independent paths"):
        assert_lossless(first_of_two_is_taken, pairs=pairs, drafts=(2,))
    found = assert_lossless(first_of_two_is_taken, pairs=pairs, drafts=(1,))
    assert [case.num_drafts for case in found.cases] == [1]
    found = assert_lossless(token_verification, pairs=pairs, drafts=(2,))
    assert [case.num_drafts for case in found.cases] == [2]


def test_an_option_of_the_other_kind_is_refused() -> None:
    for options in ({"nonsense": 3}, {"cases": 2}):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            assert_lossless(token_verification, **options)
    for options in ({"nonsense": 3}, {"drafts": (2,)}):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            assert_lossless("block", **options)


@pytest.mark.parametrize("options", [{"drafts": (2,)}, {"signature": "coins"}], ids=str)
def test_a_sampler_that_knows_how_it_is_called(options: dict[str, Any]) -> None:
    """A library's and a Shipped one: what would not be used is refused, and without it nothing is."""
    shipped = Shipped(token_verification, "sampler", num_drafts=(1,))
    for sampler in ("vllm", shipped):
        with pytest.raises(InvalidInputError, match="say how a function is called"):
            assert_sampler_lossless(sampler, **options)
    assert assert_sampler_lossless(shipped, pairs={"thirds": instances.two_token(1)})
