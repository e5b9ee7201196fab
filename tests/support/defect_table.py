"""The defects on the standard pairs: computed once, and held against numbers derived by hand."""

from fractions import Fraction
from functools import cache
from typing import Any

from spectheory import certify, output_law
from spectheory.exact.suite_cases import standard_pairs
from spectheory.verification.defective import defects

PAIRS = standard_pairs()
SEVERAL = [name for name, defect in defects.items() if not defect.single_path]
"""The defects that look at more than the first path."""


@cache
def matrix() -> dict[str, dict[str, Any]]:
    """Defect -> pair -> total variation, K = 2."""
    return {
        name: {label: output_law(defect, pair, 2).total_variation for label, pair in PAIRS.items()}
        for name, defect in defects.items()
    }


def assert_total_variation(name: str, label: str, expected: Fraction) -> None:
    """The defect is flagged on the pair of that label, with exactly this total variation."""
    certificate = certify(defects[name], PAIRS[label], drafts=2, with_optimum=False)
    assert expected > 0
    assert certificate.total_variation == expected
    assert matrix()[name][label] == expected
    assert not certificate.target_matching
    assert not certificate
    assert certificate.counterexample is not None
    assert certificate.counterexample.probability != certificate.counterexample.target
