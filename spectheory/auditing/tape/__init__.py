"""The random decisions of one run, and random numbers that we split into cases and do not draw."""
