"""Solutions are checked against the statement."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import pytest

from program_support import TWO_TOKENS
from spectheory.errors import CertificationError, InvalidInputError
from spectheory.pair import ModelPair
from spectheory.programs import (
    check_solution,
    multi_path_program,
    optimality_residuals,
    single_path_optimum,
    single_path_program,
)


def test_a_wrong_primal_is_rejected() -> None:
    """A feasible but not optimal point fails complementary slackness or the gap."""
    pair = ModelPair.context_free_pair(*TWO_TOKENS, 2)
    program, solution = single_path_program(pair), single_path_optimum(pair)
    lowered = {label: value if not label else value - value for label, value in solution.primal.items()}
    wrong = dataclasses.replace(solution, primal=lowered, value=Fraction(1))
    assert optimality_residuals(program, wrong).primal == 0
    with pytest.raises(CertificationError):
        check_solution(program, wrong)
    with pytest.raises(InvalidInputError, match="other variables or blocks"):
        check_solution(multi_path_program(ModelPair.context_free_pair(*TWO_TOKENS, 1), 2), solution)
