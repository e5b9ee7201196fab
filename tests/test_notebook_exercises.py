"""*Try this* of the notebooks: exercises that name a call run, and have the answer that the page promises."""

from fractions import Fraction

import pytest

from spectheory import (
    acceptance,
    certify,
    defects,
    drafts,
    instances,
    optimum,
    output_law,
    plan,
    prove,
    verifiers,
)
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima import multi_path_interval
from spectheory.verification.algorithms.recoupled import Recoupled

PAIR = instances.random_rational(3, vocab_size=3, draft_length=2)
"""Of the page on trees and plans."""


def efficiency(verifier: object, pair: object, number: object = 1) -> Fraction:
    found: Fraction = output_law(verifier, pair, number).block_efficiency  # type: ignore[arg-type]
    return found


def test_two_tokens() -> None:
    """The gain of block is largest at 1/4; greedy_block is linear below 1/2."""
    gains = [
        efficiency("block", instances.bernoulli(Fraction(n, 8), 1 - Fraction(n, 8), 2))
        - efficiency("token", instances.bernoulli(Fraction(n, 8), 1 - Fraction(n, 8), 2))
        for n in (1, 2, 3)
    ]
    assert max(gains) == gains[1] == Fraction(1, 8)
    tenths = [Fraction(n, 10) for n in (1, 2, 3)]
    values = [efficiency("greedy_block", instances.bernoulli(x, 1 - x, 2)) for x in tenths]
    assert values[1] - values[0] == values[2] - values[1] != 0
    assert certify("block", instances.three_token_reversed(2)).gap == 0


def test_what_is_lossless() -> None:
    assert not any(certify(defects["target_correction"], instances.two_token(2), k) for k in (1, 2, 3))
    assert certify("spectr_gbv", instances.uniform_equal(1))
    assert not certify("spectr_gbv", instances.uniform_equal(1), 2)
    assert certify("spectr_gbv", instances.two_token(1))
    assert not certify("spectr_gbv", instances.two_token(2))


def test_one_position() -> None:
    row = ["1/2", "1/2", "0"]
    assert acceptance(row, row).optimal == 1
    assert acceptance(row, ["0", "0", "1"]).optimal == 0


def test_many_paths() -> None:
    pair = instances.two_token(3)
    assert (
        efficiency("optimal_multipath", instances.two_token(2), 3) == optimum(instances.two_token(2), 3).value
    )
    assert certify("spectr", instances.two_token(2), drafts=drafts.PrefixTree((1, 2)))
    equal = instances.uniform_equal(2)
    assert efficiency("greedy_multipath", equal, 4) < efficiency("spectr", equal, 4)
    assert optimum(pair, 2).value < optimum(pair, 3).value


def test_trees_and_plans() -> None:
    with pytest.raises(InvalidInputError, match="at least 1, got 0"):
        drafts.PrefixTree((4, 0))
    equal, among = instances.uniform_equal(2), ["block", "scored_multipath"]
    assert (
        "block with iid:1"
        in plan(equal, verifiers=among, target_rows=6, draft_cost=0.05, row_cost=0.01).headline()
    )
    free = plan(PAIR, verifiers=among, target_rows=6, draft_cost=0.05, row_cost=0)
    assert "iid:3, L = 2" in free.headline()


def test_proofs() -> None:
    assert prove("spectr_gbv", vocab_size=2, draft_length=1, drafts=2).verdict == "refuted"
    assert prove("block", vocab_size=2, draft_length=1, statement="optimal").verdict == "proved"


@pytest.mark.deep
def test_at_scale() -> None:
    pair = instances.random_float(2, 3, 4, agreement=0.3)
    found = multi_path_interval(pair, 4, relative_gap=1e-12, time_limit=0.2)
    assert found.lower <= multi_path_interval(pair, 4, relative_gap=1e-5).upper
    assert found.upper >= multi_path_interval(pair, 4, relative_gap=1e-5).lower


def test_recoupling() -> None:
    """One path of block is optimal, so nothing is gained."""
    pair = instances.two_token(2)
    assert certify(Recoupled(verifiers["block"]), pair).block_efficiency == efficiency("block", pair)
    assert efficiency(Recoupled(verifiers["multi_round"]), pair, 2) > efficiency("multi_round", pair, 2)
