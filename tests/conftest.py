"""Settings shared by all tests."""

import gc
import os
from typing import Any

import pytest
from hypothesis import settings

from shared import scope_of

# A thread of torch that waits for another one sleeps: one that spins takes a core from the other tests.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# The same examples in every run: a failure is a failure everywhere, not only on one machine.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=40, database=None)
settings.load_profile("fixed")


def pytest_collection_finish() -> None:
    """What was imported stays to the end: the garbage collector, and audits, need not look at it again.

    Of what is made later it looks at more at a time.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """``--dist loadfile``, with the groups of ``shared`` in the place of their files."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByGroup(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    return ByGroup(config, log)
