"""Statements of programs: what they refuse, and the cvxpy problem they become."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from program_support import TWO_TOKENS, toy
from spectheory.errors import InvalidInputError
from spectheory.pair import ModelPair
from spectheory.programs import multi_path_program, solve_exact


def test_solve_exact_refuses_floats_and_statements_refuse_nonsense() -> None:
    with pytest.raises(InvalidInputError, match="holds floats"):
        solve_exact(toy("max", 1.0, [(1.0, "<=", 1.0)], exact=False))
    with pytest.raises(InvalidInputError, match="sense must be"):
        toy("max", 1.0, [(1.0, "<", 1.0)], exact=False)
    with pytest.raises(InvalidInputError, match="direction must be"):
        toy("up", 1.0, [(1.0, "<=", 1.0)], exact=False)
    program = toy("max", 1.0, [(1.0, "<=", 1.0)], exact=True)
    with pytest.raises(InvalidInputError, match="mixed"):
        dataclasses.replace(program, objective=np.ones(1))
    with pytest.raises(InvalidInputError, match="no block"):
        program.block("nothing")


def test_cvxpy_problem_is_the_stated_program() -> None:
    program = multi_path_program(ModelPair.context_free_pair(*TWO_TOKENS, 2), 2)
    stated = program.to_cvxpy()
    assert list(stated.constraints) == [block.name for block in program.blocks]
    assert [c.size for c in stated.problem.constraints] == [block.size for block in program.blocks]
    assert [block.equation for block in program.blocks] == [
        "greedy2026 Eq. 11",
        "greedy2026 Eq. 11",
        "greedy2026 Eq. 12",
    ]
    A, senses, b, c = program.matrices
    assert A.shape == (program.num_constraints, program.num_variables)
    assert len(senses) == len(b) == program.num_constraints
    assert len(c) == program.num_variables
