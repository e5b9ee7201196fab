"""Verifiers of several drafts that go position by position (spectr2023 Algorithm 3)."""
