"""The identity of a run: the content of everything that determines its numbers.

Names alone do not tell runs apart: a folder can hold other weights tomorrow, and a user's verifier is edited
under its name.  So models, tokenizers, prompts and sources of verifiers count by their content.
"""

from __future__ import annotations

import ast
import copyreg
import inspect
import json
import re
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from types import (
    BuiltinMethodType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any

import numpy as np

from spectheory import __version__
from spectheory.foundation.documents import json_sha256
from spectheory.foundation.errors import InvalidInputError
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier

if TYPE_CHECKING:
    from spectheory.models import LanguageModelPair, UnloadedPair

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def identity_before_loading(
    pair: LanguageModelPair | UnloadedPair, prompts: Sequence[Sequence[int]], verifiers: Sequence[Verifier]
) -> dict[str, Any]:
    """All of the identity of a run that is known before weights are loaded."""
    import torch
    import transformers

    from spectheory.models import config_identity, tokenizer_identity

    target, *drafts = map(config_identity, pair.configs)
    return {
        "target": target,
        "draft": _one_or_all(drafts),
        "tokenizer": tokenizer_identity(pair.tokenizer),
        "vocab_size": pair.vocab_size,
        "device_type": pair.device.type,
        "probabilities": str(pair.probs_dtype).removeprefix("torch."),
        "prompt_tokens": json_sha256([list(ids) for ids in prompts]),
        "verifiers": [verifier.name for verifier in verifiers],
        "verifier": {verifier.name: verifier_identity(verifier) for verifier in verifiers},
        "versions": {
            "spectheory": __version__,
            "torch": str(torch.__version__),
            "transformers": transformers.__version__,
            "numpy": np.__version__,
        },
    }


def identity_of_weights(pair: LanguageModelPair) -> dict[str, Any]:
    from spectheory.decoding import end_of_sequence
    from spectheory.models import weights_identity

    return {
        "end_of_sequence": sorted(end_of_sequence(pair.target_model)),
        "target_weights": weights_identity(pair.target_model),
        "draft_weights": _one_or_all([weights_identity(draft) for draft in pair.drafts]),
    }


def _one_or_all(entries: list[Any]) -> Any:
    return entries[0] if len(entries) == 1 else entries


def verifier_identity(verifier: Verifier) -> dict[str, Any]:
    """Class, and a sha256 over the parameters and over the source of every module it is made of.

    The parameters are its attributes, what its functions close over, and the values of their modules that
    they name.  The sources are those of the classes and functions that all these are made of, base classes
    included, and of the modules from the same folder or below it that these import, anywhere in their text.
    Not in it: the environment, files that it reads, and values of other modules.
    ``sha256`` is None where a source cannot be read, as of a class typed into an interpreter.
    """
    described: Any = verifier.user_object if isinstance(verifier, UserVerifier) else verifier
    reader = _Sources()
    content = reader.describe(described)
    return {
        "class": f"{type(described).__module__}.{type(described).__qualname__}",
        "sha256": None if None in reader.sources.values() else json_sha256([content, reader.sources]),
    }


def refuse_unknown_sources(identity: Mapping[str, Any]) -> None:
    """Refuse a verifier whose versions cannot be told apart, for a run that is to be gone on with."""
    for name, entry in identity["verifier"].items():
        if entry["sha256"] is None:
            raise InvalidInputError(
                f"verifier {name!r} has no source file, so that a checkpoint could not tell an "
                "edited version of it apart; put it into a module, or run without a checkpoint"
            )


_PLAIN = (type(None), bool, int, float, str)
_CONTAINERS = (dict, list, tuple, set, frozenset, str, int, float, bytes, bytearray)


class _Sources:
    """Objects as plain data, and the sources of the classes and functions met on the way."""

    def __init__(self) -> None:
        self.sources: dict[str, str | None] = {}
        self._inside: list[int] = []
        self._described: dict[int, Any] = {}  # functions and classes, kept so that no other has their number

    def describe(self, value: Any) -> Any:
        if type(value) in _PLAIN:
            return value
        if id(value) in self._inside:
            return "a part of itself"
        if id(value) in self._described:
            return f"again {value.__qualname__}"
        if isinstance(value, (FunctionType, type)):
            self._described[id(value)] = value
        self._inside.append(id(value))
        try:
            return [f"{type(value).__module__}.{type(value).__qualname__}", self._content(value)]
        finally:
            self._inside.pop()

    def _content(self, value: Any) -> Any:
        if type(value) is dict:
            return [[self.describe(key), self.describe(entry)] for key, entry in value.items()]
        if type(value) in (list, tuple):
            return [self.describe(entry) for entry in value]
        if type(value) in (set, frozenset):
            return sorted(json.dumps(self.describe(entry)) for entry in value)
        if type(value) is np.ndarray and value.dtype != object:
            return [str(value.dtype), list(value.shape), sha256(value.tobytes()).hexdigest()]
        if hasattr(value, "tolist") and not isinstance(value, type):  # other arrays, tensors, numpy's scalars
            own = getattr(value, "__dict__", {}) if isinstance(value, np.ndarray) else {}
            return [str(getattr(value, "dtype", "")), repr(value.tolist()), self.describe(own)]
        if isinstance(value, MethodType):
            return [self.describe(value.__func__), self.describe(value.__self__)]
        if isinstance(value, FunctionType):
            self._read(value)
            held = [cell.cell_contents for cell in value.__closure__ or ()]
            defaults = [value.__defaults__, value.__kwdefaults__]
            parts = map(self.describe, (held, defaults, _globals(value)))
            return [value.__module__, value.__qualname__, *parts]
        if isinstance(value, ModuleType):
            is_made_by_code = value.__spec__ is None
            return [value.__name__, self.describe(dict(vars(value))) if is_made_by_code else None]
        if isinstance(value, CellType):
            return self.describe(value.cell_contents)
        if isinstance(value, BuiltinMethodType) and not isinstance(value.__self__, (ModuleType, type(None))):
            return [value.__qualname__, self.describe(value.__self__)]
        if isinstance(value, (staticmethod, classmethod)):
            return self.describe(value.__func__)
        if isinstance(value, property):
            return [self.describe(part) for part in (value.fget, value.fset, value.fdel)]
        if isinstance(value, type):
            self._read_class(value)
            made_by = None if _is_known(type(value).__module__) else self.describe(type(value))
            name = f"{value.__module__}.{value.__qualname__}"
            return [name, made_by, *map(self._attributes, _users(value))]
        if isinstance(value, partial):
            return [self.describe(part) for part in (value.func, value.args, value.keywords)]
        if callable(value) and hasattr(value, "__qualname__") and _is_known(value.__module__):
            return [str(value.__module__), value.__qualname__]  # written in C
        slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
        state = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        state |= getattr(value, "__dict__", {})
        return [self.describe(type(value)), self.describe(state), self._kept_in_c(value)]

    def _kept_in_c(self, value: Any) -> Any:
        """What an object of a class written in C, or derived from one, keeps beside its attributes."""
        kind = type(value)
        if isinstance(value, Generator):  # where it stands cannot be read
            self.sources[kind.__qualname__] = None
        if hasattr(value, "get_state") and hasattr(value, "initial_seed"):  # a generator of torch
            return [value.initial_seed(), self.describe(value.get_state())]
        if kind.__reduce__ is object.__reduce__ and kind.__reduce_ex__ is object.__reduce_ex__:
            is_plain = not _is_known(kind.__module__) and not isinstance(value, _CONTAINERS)
            if is_plain and kind not in copyreg.dispatch_table:
                return None
        try:
            reduced = copyreg.dispatch_table.get(kind, lambda each: each.__reduce_ex__(4))(value)
        except Exception:  # of user code, or of what cannot be pickled
            return _ADDRESS.sub("", repr(value))
        parts = reduced if isinstance(reduced, tuple) else (reduced,)
        # The last two are iterators over entries; the state has been described where it is the attributes.
        return self.describe([[*part] if isinstance(part, Iterator) else part for part in parts])

    def _attributes(self, kind: type) -> Any:
        """Of a class: what its methods close over and their defaults, and its other attributes."""
        left_out = {
            "__dict__",
            "__weakref__",
            "__doc__",
            "__slots__",
            "_abc_impl",
            "__annotations__",
            "__slotnames__",
        }
        return {
            name: self.describe(value)
            for name, value in sorted(vars(kind).items())
            if name not in left_out and not isinstance(value, (GetSetDescriptorType, MemberDescriptorType))
        }

    def _read_class(self, kind: type) -> None:
        for base in kind.__mro__:
            self._read(base)

    def _read(self, kind: Any) -> None:
        """Read the module of a class or function, or its own source where the module has no file.

        Those of Python are not read.
        """
        top = str(kind.__module__).partition(".")[0]
        if top in sys.stdlib_module_names or top.startswith("namedtuple_"):  # which Python writes
            return
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        name = kind.__module__ if file else f"{kind.__module__}.{kind.__qualname__}"
        if name not in self.sources:
            try:
                text = Path(file).read_bytes() if file else inspect.getsource(kind).encode()
                self.sources[name] = sha256(text).hexdigest()
            except (OSError, TypeError):
                self.sources[name] = None
            if file and str(kind.__module__).partition(".")[0] != "spectheory":
                self._read_imports(Path(file), kind.__module__, Path(file).parent)

    def _read_imports(self, file: Path, module: str, folder: Path) -> None:
        """Read the modules in the folder and below that a module imports anywhere in its text."""
        for name in _imported(file, module):
            try:
                spec = find_spec(name)
            except (ImportError, AttributeError, ValueError):  # no module, or a name in one
                continue
            source = Path(spec.origin) if spec is not None and spec.has_location and spec.origin else Path()
            if folder in source.parents and "site-packages" not in source.parts and name not in self.sources:
                self.sources[name] = sha256(source.read_bytes()).hexdigest()
                self._read_imports(source, name, folder)


def _globals(function: FunctionType) -> dict[str, Any]:
    """The values of the module that a user's function names, and the functions that it calls there."""
    if _is_known(function.__module__):
        return {}
    named = names_in(function.__code__) & {*function.__globals__}
    return {name: function.__globals__[name] for name in sorted(named)}


def names_in(code: CodeType) -> set[str]:
    """The names that code, and code inside of it, looks up in its module or as attributes."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(names_in, inner))


def _is_known(module: Any) -> bool:
    """Whether a module is of Python, of this package or of a numeric library."""
    return str(module).partition(".")[0] in _KNOWN


_KNOWN = sys.stdlib_module_names | {"spectheory", "numpy", "torch", "transformers"}


def _users(kind: type) -> list[type]:
    """The classes of its method resolution order that are neither of Python nor of a numeric library."""
    return [base for base in kind.__mro__ if not _is_known(base.__module__)]


def _slots(kind: type) -> list[str]:
    """The attributes that a class keeps in slots, under the names that they have outside of it."""
    listed = vars(kind).get("__slots__", ())
    names = [listed] if isinstance(listed, str) else [*listed]
    hidden = [name.startswith("__") and not name.endswith("__") for name in names]
    inside = f"_{kind.__name__.lstrip('_')}"
    found = [inside + name if own else name for name, own in zip(names, hidden, strict=True)]
    return [name for name in found if name not in ("__dict__", "__weakref__")]


def _imported(file: Path, module: str) -> Iterator[str]:
    """The modules that a Python source may import; of ``from a import b`` both a and a.b."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, OSError):  # a compiled module
        return
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = f"{package.rsplit('.', node.level - 1)[0]}." if node.level else ""
            base = (start + (node.module or "")).rstrip(".")
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))
