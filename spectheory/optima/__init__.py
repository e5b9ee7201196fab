"""The optimisation problems of the papers, one per file, each stated once.

A program is stated as a ``LinearProgram`` and solved by ``solve`` (float64) or ``solve_exact``
(rationals); both return a ``Solution`` with its proof, which ``check_solution`` checks.

The public names are those of ``__init__.pyi``; each is imported from its file on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
