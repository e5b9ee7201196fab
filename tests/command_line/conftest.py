"""The two-token pair on disk."""

from pathlib import Path

import pytest

from cli_support import write_pair


@pytest.fixture
def pair_file(tmp_path: Path) -> str:
    return write_pair(tmp_path)
