"""The specimens are what they are said to be: as verifiers of the package that make the same mistake."""

from fractions import Fraction

import pytest

from spectheory import output_law
from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.specimens import LOSSLESS, SPECIMENS
from spectheory.verification.algorithms import verifiers
from spectheory.verification.defective import defects

SAME_AS = {
    "token_verification": verifiers["token"],
    "exponential_race": verifiers["token"],
    "block_verification": verifiers["block"],
    "uncapped_joint_ratio": defects["block_uncapped_weight"],
    "other_draft_law": defects["tempered_draft_law"],
}


@pytest.mark.parametrize("name", SAME_AS)
def test_a_specimen_has_the_law_of_its_verifier(name: str) -> None:
    """Mass for mass up to float32, on rows that depend on the context; two definitions, two routes."""
    pair = random_dyadic(4, 3, 2)
    sampler, signature = {**SPECIMENS, **LOSSLESS}[name]
    found, known = output_law(Shipped(sampler, signature), pair), output_law(SAME_AS[name], pair)
    for ours, theirs in zip(found.masses, known.masses, strict=True):
        assert max(abs(ours - theirs)) < Fraction(1, 10**6)
