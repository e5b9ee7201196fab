"""The random decisions of one run, and numbers that are split into cases instead of being drawn."""
