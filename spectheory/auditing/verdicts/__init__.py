"""Verdicts of an audit, and how certain they are."""
