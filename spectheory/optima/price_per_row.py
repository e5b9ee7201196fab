"""The best length rules if a verified row has a price (theory.md Statement 8.12), and whether dropping pays."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import Number, plain_number
from spectheory.optima.solving.exact_solver import solve_exact
from spectheory.optima.solving.float_solver import solve
from spectheory.optima.solving.linear_program import LinearProgram
from spectheory.optima.solving.solution import Solution
from spectheory.pairs.contexts import Context, all_contexts, context_number
from spectheory.pairs.pair import ModelPair
