"""Device, dtype and threads that models run with, and a check whether memory ran out."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from spectheory.foundation.errors import InvalidInputError


def resolve_device(device: str | torch.device) -> torch.device:
    """Convert ``auto`` (CUDA if available, else CPU), ``cpu``, ``cuda`` or ``cuda:N`` to a torch device.

    Raises:
        InvalidInputError: the name is unknown, or the machine has no such CUDA device.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except (RuntimeError, TypeError):
        resolved = torch.device("meta")
    if resolved.type not in ("cpu", "cuda"):
        raise InvalidInputError(f"device must be auto, cpu, cuda or cuda:N, got {str(device)!r}")
    if resolved.type == "cuda" and (resolved.index or 0) >= torch.cuda.device_count():
        raise InvalidInputError(
            f"device {str(device)!r} was asked for, but torch sees {torch.cuda.device_count()} CUDA "
            'devices here; use device="cpu" or "auto"'
        )
    return resolved


def resolve_dtype(dtype: str | torch.dtype | None, device: torch.device) -> str | torch.dtype:
    """Find the dtype in which to load weights.  ``auto`` means the stored dtype.

    By default it is float32 on a CPU, where half precision is slow and coarse, and the stored dtype on CUDA.
    """
    if dtype is None:
        return torch.float32 if device.type == "cpu" else "auto"
    known = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}
    known["float64"] = torch.float64
    if isinstance(dtype, str) and dtype in known:
        return known[dtype]
    if dtype in known.values():
        return dtype
    raise InvalidInputError(f"dtype must be one of {', '.join(known)} or None, got {dtype!r}")


@contextmanager
def cpu_threads(count: int) -> Iterator[None]:
    """Run torch with ``count`` threads.  The last bits of a sum depend on this number; 1 fixes the order."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an exception, or one that caused it, reports that GPU or CPU memory ran out."""
    while error is not None:
        if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error):
            return True
        error = error.__cause__
    return False
