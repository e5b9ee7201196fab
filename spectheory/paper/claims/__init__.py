"""Claims of the four papers, statement by statement, with a verdict and the tests it rests on.

The statements are data: one file per paper, ``spectr2023.toml`` and so on, and ``instances.toml`` with
the number of instances that each counted test runs.
"""
