"""Load the folder of adapters for the samplers of libraries, by its path.

A clone and the source distribution have the folder ``audits`` beside the package.  Wheels do not have it.
"""

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from spectheory.auditing.subjects.shipped import Shipped
from spectheory.foundation.errors import InvalidInputError

FOLDER = "audits"
REGISTRY = "registry.py"
"""The file that tells a folder of adapters from another folder of the same name."""


def find_adapters(folder: Path | None = None) -> Path:
    """Find the folder of adapters: the given folder, or ``audits`` of the working tree.

    Raises:
        InvalidInputError: there is no such folder.  The error says how to get it.
    """
    if folder is not None:
        for each in (folder, folder / FOLDER):
            if (each / REGISTRY).is_file():
                return each.resolve()
        raise InvalidInputError(
            f"{folder} has no {REGISTRY}; --adapters takes the folder {FOLDER}/ of a clone"
        )
    here = Path.cwd()
    for above in (here, *here.parents):
        if (above / FOLDER / REGISTRY).is_file():
            return above / FOLDER
    raise InvalidInputError(
        f"the adapters of libraries are in the folder {FOLDER}/ of spectheory's repository and source "
        "distribution; run inside of it, or give --adapters FOLDER"
    )


def load_adapters(folder: Path | None = None, module: str = "registry") -> Any:
    """Import a module of the folder of adapters; its files import each other as ``audits``.

    Args:
        folder: as in ``find_adapters``.
        module: the file's name, without its ending.
    """
    path = find_adapters(folder)
    known = sys.modules.get(FOLDER)
    if known is None or list(map(Path, known.__path__)) != [path]:
        for name in [name for name in sys.modules if name.partition(".")[0] == FOLDER]:
            del sys.modules[name]
        spec: Any = spec_from_file_location(
            FOLDER, path / "__init__.py", submodule_search_locations=[str(path)]
        )
        sys.modules[FOLDER] = made = module_from_spec(spec)
        spec.loader.exec_module(made)
    return import_module(f"{FOLDER}.{module}")


def load_subject(name: str, folder: Path | None = None, **options: Any) -> Shipped:
    """Load the sampler of a library by its name; see ``load_subject`` of the folder's registry."""
    found: Shipped = load_adapters(folder).load_subject(name, **options)
    return found
