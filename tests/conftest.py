"""Settings shared by all tests."""

from __future__ import annotations

from hypothesis import settings

# The same examples in every run: a failure is a failure everywhere, not only on one machine.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=60, database=None)
settings.load_profile("fixed")
