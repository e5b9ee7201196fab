"""Tests that count the instances they run and hold the number that the claims name."""

from collections.abc import Callable, Iterator
from pathlib import Path

from scripts import load

counted_tests = load("scripts", "claims").counted_tests
ROOT = Path(__file__).parent.parent.parent


def counted(test: Callable[[], Iterator[None]]) -> Callable[[], None]:
    """Run a test that yields once per instance, and compare how often with ``instances.toml``."""
    name = f"{Path(test.__code__.co_filename).relative_to(ROOT)}::{test.__name__}"

    def run() -> None:
        ran = sum(1 for _ in test())
        assert ran == counted_tests().get(name), f"{name} ran {ran} instances, the claims say otherwise"

    run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
    return run
