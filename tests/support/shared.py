"""Test files that one process runs, because they share what is computed once per process."""

from pathlib import Path

GROUPS = {
    "forks": {"test_fake_devices", "test_kills", "test_parallel", "test_terminal"},
    "laws": {"test_every_verifier", "test_general_verifiers"},
    "figures": {"test_figures", "test_models", "test_partners", "test_values"},
}


def scope_of(nodeid: str) -> str:
    """The group of the test's file, or the file itself: each is run by one process."""
    file = nodeid.partition("::")[0]
    return next((group for group, names in GROUPS.items() if Path(file).stem in names), file)
