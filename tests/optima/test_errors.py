"""Every program: errors name it and its size, and too large ones are refused with advice."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from spectheory import instances
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError, SolverError
from spectheory.optima import (
    ConstraintBlock,
    LinearProgram,
    multi_path_optimum,
    multi_path_program,
    otm_program,
    single_path_optimum,
    single_path_program,
    solve,
    solve_exact,
)
from spectheory.optima.block_transport import block_transport_optimum, block_transport_program
from spectheory.optima.lossy import lossy_program
from spectheory.optima.solving.exact_solver import solve_in_its_arithmetic
from spectheory.pairs.pair import ModelPair

Statement = Callable[[ModelPair], LinearProgram]


STATEMENTS: dict[str, Statement] = {
    "single-path LP": single_path_program,
    "multi-path antichain LP": lambda pair: multi_path_program(pair, 2),
    "lossy multi-path LP": lambda pair: lossy_program(pair, 0, 2),
    "block transport LP": block_transport_program,
    "optimal transport LP": lambda pair: otm_program(pair.target[0][0], pair.draft[0][0], 2),
}


def with_block(program: LinearProgram, sense: str, rhs: int, keep: bool) -> LinearProgram:
    one = program.objective[:1] * 0 + 1
    zero = np.zeros(1, int)
    block = ConstraintBlock("extra", "-", sense, zero, zero, one, one * rhs)  # type: ignore[arg-type]
    return dataclasses.replace(program, blocks=(*program.blocks, block) if keep else (block,), repair=None)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", list(STATEMENTS))
def test_errors_name_the_program_and_its_size(name: str, exact: bool) -> None:
    """Infeasible, unbounded and not optimal enough: the error names program, size and status."""
    pair = instances.two_token(1) if exact else instances.two_token(1).to_float()
    program = STATEMENTS[name](pair)
    assert program.name == name

    infeasible = with_block(program, ">=", 100, keep=True)
    n, m = infeasible.size
    with pytest.raises(SolverError, match=rf"{name} \({n} variables, {m} constraints\).*infeasible"):
        solve_in_its_arithmetic(infeasible)

    rising = program.objective * 0 + (1 if program.direction == "max" else -1)
    unbounded = dataclasses.replace(with_block(program, ">=", 0, keep=False), objective=rising)
    with pytest.raises(SolverError, match=rf"{name} \({n} variables, 1 constraints\).*unbounded"):
        solve_in_its_arithmetic(unbounded)

    n, m = program.size
    if exact:
        with pytest.raises(InvalidInputError, match=rf"{name} \({n} variables.* holds floats"):
            solve_exact(STATEMENTS[name](pair.to_float()))
    else:
        with pytest.raises(SolverError, match=rf"{name} \({n} variables, {m} constraints\).*differ by"):
            solve(program, gap_tolerance=-1.0)


def test_too_large_programs_are_refused_with_advice() -> None:
    large = instances.two_token(4)
    for statement in (multi_path_program, lambda pair, drafts: lossy_program(pair, 0, drafts)):
        with pytest.raises(EnumerationTooLargeError, match=r"458329 non-empty antichains, the limit is \d+;"):
            statement(large, 2)
    with pytest.raises(EnumerationTooLargeError, match=r"65536 variables, .* block_transport_value"):
        block_transport_optimum(instances.two_token(8))
    with pytest.raises(EnumerationTooLargeError, match=r"6 variables, the limit is 5; use min_cut_of_law"):
        otm_program(["1/2", "1/4", "1/4"], draft_law={(0, 1): "1/2", (1, 2): "1/2"}, max_variables=5)
    with pytest.raises(EnumerationTooLargeError, match="use optimal_acceptance"):
        otm_program(["1/2", "1/2"], ["1/2", "1/2"], drafts=20)
    with pytest.raises(EnumerationTooLargeError, match=r"tree of 2047 nodes; .* at most 2046"):
        single_path_optimum(instances.two_token(10), max_nodes=2046)
    for optimum in (multi_path_optimum, lambda pair, drafts: lossy_program(pair, 0, drafts)):
        with pytest.raises(InvalidInputError, match="drafts must"):
            optimum(instances.two_token(1), 0)
