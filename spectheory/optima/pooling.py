"""The linear program of the output law at one node of pooled selection.

The node knows the probabilities of the events, but not the rows at other nodes.
"""

import numpy as np

from spectheory.optima.solving.linear_program import ConstraintBlock, LinearProgram


def pooling_program(
    probs: np.ndarray, masses: np.ndarray, token_sets: np.ndarray, limits: np.ndarray, floor: float
) -> LinearProgram:
    """State the linear program of a node of pooled selection (theory.md Statement 5.25), in float64.

    Variables: x(E, w) = P(E) e_E(w), e_E(w) the probability of the output w given the event E, and y_s(E, w),
    the part of x(E, w) that is served in scenario s.

        max  1/S Σ_s Σ_E Σ_w y_s(E, w)
        s.t. Σ_w x(E, w) = P(E) Σ_w m_E(w)         for every event E
             Σ_E x(E, w) = Σ_E P(E) m_E(w)         for every token w
             y_s(E, w) ≤ x(E, w)
             y_s(E, T) ≤ P(E) c_s(E, T)            for every scenario, event and set T of tokens
             Σ_E Σ_w y_0(E, w) ≥ floor

    Args:
        probs: P, the probabilities of the events, [E].
        masses: m, the masses of the base rule that pooling changes, [E, V].
        token_sets: the sets T, booleans [N, V].
        limits: c, [S, E, N].
        floor: the smallest total Σ y_0 served in scenario 0.

    Returns:
        The program; its first E V variables are x.

    Example:
        >>> import numpy as np
        >>> from spectheory.optima.solving.float_solver import solve
        >>> sets = np.array([[True, False], [False, True], [True, True]])
        >>> program = pooling_program(
        ...     np.ones(2) / 2, np.full((2, 2), 0.5), sets, np.array([[[1, 0, 1], [0, 1, 1]]]), 0.5
        ... )
        >>> round(solve(program).value, 9)
        1.0
    """
    (num_events, size), scenarios = masses.shape, len(limits)
    count = num_events * size
    totals, number = probs[:, None] * masses, np.arange(count)
    event, token = np.divmod(number, size)
    served = count + np.arange(scenarios * count)
    # One row for every scenario, event and set; an entry for every token in the set.
    chosen, inside = np.nonzero(token_sets)
    first = np.arange(scenarios * num_events)[:, None]
    rows = (first * len(token_sets) + chosen).ravel()
    columns = (count + first * size + inside).ravel()
    one = np.ones
    return LinearProgram(
        name="pooling LP",
        source="theory.md Statement 5.25",
        direction="max",
        variables=tuple(range((1 + scenarios) * count)),
        objective=np.concatenate([np.zeros(count), np.full(len(served), 1 / scenarios)]),
        blocks=(
            ConstraintBlock("events", "-", "==", event, number, one(count), totals.sum(axis=1)),
            ConstraintBlock("tokens", "-", "==", token, number, one(count), totals.sum(axis=0)),
            ConstraintBlock.of_terms(
                "outputs", "-", "<=", np.zeros(len(served)),
                (served - count, served, one(len(served))),
                (served - count, np.tile(number, scenarios), -one(len(served))),
            ),
            ConstraintBlock(
                "sets of tokens", "-", "<=", rows, columns, one(len(rows)),
                (probs[:, None] * limits).ravel(),
            ),
            ConstraintBlock(
                "floor", "-", ">=", number * 0, count + number, one(count), np.array([floor])
            ),
        ),
        box=1.0,
    )  # fmt: skip
