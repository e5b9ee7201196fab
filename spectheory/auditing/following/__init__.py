"""Operators and kernels on random numbers that are not drawn."""
