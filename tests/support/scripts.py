"""Scripts of folders that are no packages, as modules."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def load(folder: str, name: str) -> ModuleType:
    """``folder/name.py``, under its bare name, as the scripts beside it import it."""
    path, sys.path = sys.path, [str(ROOT / folder), *sys.path]
    try:
        return importlib.import_module(name)
    finally:
        sys.path = path
