"""The optimisation problems of the papers, one per file, each stated once.

A program is stated as a ``LinearProgram``.  ``solve`` solves it in float64, ``solve_exact`` in rationals.
Both return a ``Solution`` with its proof, which ``check_solution`` checks.

``__init__.pyi`` lists the public names.  Each is imported from its file on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
