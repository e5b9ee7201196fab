"""Libraries that are imported when a test first uses them, so that collecting the tests stays cheap."""

from importlib import import_module
from typing import Any


class Later:
    """Stands for the module ``name``: the first attribute that is read imports it.

    What Python or pytest reads of every object of a test file, as ``__bases__``, is not the module's.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute != "__file__" and attribute.startswith(("__", "_pytest", "pytest", "_mock")):
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)
