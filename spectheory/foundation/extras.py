"""Optional libraries: the extra that installs each, and a one-line error if one is missing."""

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
"""Optional library -> the extra of the package that installs it."""


@contextmanager
def installed() -> Iterator[None]:
    """Context for imports of optional libraries: raise ``MissingDependencyError`` if one is not installed.

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
    """True if all libraries of an extra are installed.  None of them is imported."""
    try:
        return all(find_spec(library) for library, of in EXTRA_OF.items() if of == extra)
    except ModuleNotFoundError:
        return False


def attach_room(
    name: str, file: str, elsewhere: Mapping[str, str] = MappingProxyType({})
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Apply ``lazy_loader.attach_stub`` to a subpackage that needs optional libraries.

    Args:
        name, file: ``__name__`` and ``__file__`` of the subpackage.
        elsewhere: public names that are defined in other subpackages -> their modules.
    """
    find, _, own = lazy_loader.attach_stub(name, file)
    public = sorted([*own, *elsewhere])

    def found(wanted: str) -> Any:
        with installed():
            if wanted in elsewhere:
                return getattr(import_module(elsewhere[wanted]), wanted)
            return find(wanted)

    return found, public.copy, public
