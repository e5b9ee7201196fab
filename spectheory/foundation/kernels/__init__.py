"""Compiled loops over long rows, imported on first use."""
