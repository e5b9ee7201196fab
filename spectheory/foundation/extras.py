"""Optional libraries: which extra of the package brings them, and one line where one is missing."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

import lazy_loader

from spectheory.foundation.errors import MissingDependencyError

EXTRA_OF: Mapping[str, str] = {
    "torch": "models",
    "transformers": "models",
    "tokenizers": "models",
    "safetensors": "models",
    "filelock": "models",
    "gguf": "gguf",
    "accelerate": "gguf",
    "triton": "audit",
    "cloudpickle": "models",
    "joblib": "models",
    "dask": "cluster",
    "distributed": "cluster",
    "matplotlib": "figures",
    "networkx": "figures",
    "pandas": "frames",
    "hypothesis": "testing",
    "pytest": "testing",
}
"""Libraries that are not installed with the package itself, and the extra that brings them."""


@contextmanager
def installed() -> Iterator[None]:
    """For imports of optional libraries: one that is not installed is said in one line.

    Example:
        >>> try:
        ...     with installed():
        ...         raise ModuleNotFoundError(name="torch")
        ... except MissingDependencyError as error:
        ...     print(error)
        torch is not installed; in the folder of the clone, run: pip install ".[models]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRA_OF:
            raise
        advice = f'in the folder of the clone, run: pip install ".[{EXTRA_OF[library]}]"'
        raise MissingDependencyError(f"{library} is not installed; {advice}") from None


def has_extra(extra: str) -> bool:
    """Whether all libraries of an extra are installed; none is imported."""
    try:
        return all(find_spec(library) for library, of in EXTRA_OF.items() if of == extra)
    except ModuleNotFoundError:
        return False


def attach_room(
    name: str, file: str, elsewhere: Mapping[str, str] = MappingProxyType({})
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``lazy_loader.attach_stub`` for a room that needs optional libraries.

    Args:
        name, file: of the room.
        elsewhere: its names that are defined in another room, each with its module.
    """
    find, _, own = lazy_loader.attach_stub(name, file)
    public = sorted([*own, *elsewhere])

    def found(wanted: str) -> Any:
        with installed():
            if wanted in elsewhere:
                return getattr(import_module(elsewhere[wanted]), wanted)
            return find(wanted)

    return found, public.copy, public
