"""Questions of a run on one region."""

from types import SimpleNamespace
from typing import Any

import pytest

from spectheory.exact.proof.rational_functions import ANY_SIGN, POSITIVE
from spectheory.exact.proof.regions import RegionRun


@pytest.mark.parametrize(("odd", "decides"), [("0", True), ("01", True), ("012", False), ("1", False)])
def test_a_factor_decides_where_all_others_have_a_sign(odd: str, decides: bool) -> None:
    """Factor 0, of a product of odd powers; factor 1 is above 0, and nothing is known of factor 2."""
    run: Any = SimpleNamespace(branch=SimpleNamespace(known={1: POSITIVE, 2: ANY_SIGN}))
    function: Any = SimpleNamespace(signs=(1, [*map(int, odd)], []))
    assert RegionRun._decides(run, function, 0) is decides  # type: ignore[arg-type]
