"""Rounds of this package's own verifiers.  Its Triton kernels read the rows, as on a CUDA device."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from array_api_compat import is_torch_array

from spectheory import __version__
from spectheory.auditing.following.replacements import replaced
from spectheory.auditing.following.triton_kernels import interpreting
from spectheory.auditing.subjects.model_loops import as_shipped
from spectheory.auditing.subjects.provenance import Provenance
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.foundation.kernels import choice, row_kernels
from spectheory.verification.algorithms import verifiers

OURS = "ours"
"""The name of these samplers on the command line."""
ROUNDS = {"token": (1,), "block": (1,), "multi_round": (2,)}
"""Verifier -> the numbers of drafts that it is asked with."""
_KERNELS = "spectheory.foundation.kernels.triton_rows"


def own_samplers() -> list[Shipped]:
    """Build one sampler per verifier of this package.

    Raises:
        MissingDependencyError: Triton is not installed.
    """
    kernels = interpreted_kernels()
    file = Path(str(kernels.__file__))
    digest = sha256(file.read_bytes()).hexdigest()
    provenance = Provenance("spectheory", __version__, str(file.relative_to(file.parents[3])), digest, 1)
    return [
        as_shipped(
            round_with(kernels, name),
            "sampler",
            f"{OURS}-{name}",
            num_drafts=num_drafts,
            provenance=provenance,
        )
        for name, num_drafts in ROUNDS.items()
    ]


def interpreted_kernels(name: str = _KERNELS) -> ModuleType:
    """Import a module of kernels for Triton's interpreter.  The process's own module stays unchanged."""
    before = sys.modules.pop(name, None)
    try:
        with interpreting():
            return import_module(name)
    finally:
        sys.modules.pop(name, None)
        if before is not None:
            sys.modules[name] = before


@contextmanager
def as_on_a_device(kernels: ModuleType, note: Callable[[str], Any] = lambda name: None) -> Iterator[None]:
    """Inside this context, kernels read every row, and no loop of the host does.

    Args:
        kernels: ``interpreted_kernels()``.
        note: called with the name of every kernel that is launched.
    """

    def launched(name: str) -> Callable[..., Any]:
        def kernel(*given: Any) -> Any:
            note(name)
            return getattr(kernels, name)(*given)

        return kernel

    def use_kernel(rows: Any, *_: Any, on_device: bool = True, **__: Any) -> bool:
        return on_device and is_torch_array(rows[0])

    found = [(row_kernels, name, launched(name)) for name in ("residual_mass", "residual_at_stops", "draw")]
    found += [(choice, "use_row_kernel", use_kernel)]
    found += [(choice, "is_one_number", lambda index: False)]
    found += [(choice, "rows_for_loops", lambda *rows: False)]
    with replaced(found):
        yield


def round_with(kernels: ModuleType, name: str) -> Callable[..., list[int]]:
    """Build a function that runs a verifier on one text, with the signature of ``--as sampler``."""

    def verify(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
        with as_on_a_device(kernels):
            given = paths[None], target_rows[None], draft_rows[None]
            drawn = verifiers[name].outcome(*given).sample(generator)
        path, length = int(drawn.path_index[0]), int(drawn.length[0])
        return [*paths[path, :length].tolist(), int(drawn.token[0])]

    return verify
