"""Settings shared by all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# A thread of torch that waits for another one sleeps: one that spins takes a core from the other tests.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# The same examples in every run: a failure is a failure everywhere, not only on one machine.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=60, database=None)
settings.load_profile("fixed")
