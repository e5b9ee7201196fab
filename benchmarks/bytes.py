"""Bytes that torch reads and writes, and kernels that it starts, for one round of every runnable verifier.

One round is ``outcome()`` and one ``sample()``.  Bytes are counted where torch dispatches, from shapes alone:
they are exact, the same on every machine, and need neither a quiet machine nor a GPU.  The unit is one
reading of all rows.

With ``--operators`` every verifier uses torch's own operators alone, as on an accelerator without Triton.
With ``--kernels`` every residual and every draw is one operator, as on a CUDA device with Triton.  Without
both the loops of ``spectheory.foundation.kernels.row_kernels`` take rows on the host where they are many.

What counts:

- an operator reads every distinct element of its tensors once and writes its outputs once;
- a gather reads as many elements as it returns, and its index; a scatter writes as many as it is given;
- a view and a tensor without entries yet cost nothing;
- a sort counts as one reading and one writing, whatever it moves on the way.

Exit status 1 and a line that says which if a verifier moves more than its limit or starts more kernels.
"""

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from array_api_compat import is_torch_array
from timing import exit_status, write
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from verifiers import Shape, drafted, one_round, runnable

from spectheory.foundation.kernels import choice

GATHERS = frozenset({"gather", "index", "index_select", "take", "take_along_dim", "embedding"})
"""Operators that read of their first argument as many elements as they return."""
GATHERS_OF_TWO = frozenset({"residual_at_stops"})
"""Operators of the package that read of each of their first two arguments as many elements as they return."""
SCATTERS = frozenset({"scatter", "scatter_", "index_put", "index_put_"})
"""Operators that write into their first argument as many elements as their last holds."""
WITHOUT_READING = ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full")
LIMITS = {
    "token": (0.4, 0.1),
    "block": (1.5, 0.4),
    "greedy_block": (1.5, 0.4),
    "multi_round": (0.4, 1.2),
    "spectr_gbv": (4.0, 10.0),
    "greedy_multipath": (1.5, 6.0),
    "spectr": (2.1, 3.2),
    "mixed_multipath": (1.5, 12.0),
    "traversal": (1.5, 1.2),
    "scored_multipath": (1.5, 75.0),
}
"""The most that one round moves with one draft and with four, as a multiple of reading all rows once."""
LIMITS_OF_OPERATORS = LIMITS | {
    "token": (0.8, 0.2),
    "block": (3.4, 0.9),
    "greedy_block": (3.4, 0.9),
    "multi_round": (1.0, 2.6),
    "greedy_multipath": (3.6, 6.0),
    "mixed_multipath": (3.6, 12.0),
    "traversal": (4.0, 3.3),
    "scored_multipath": (3.6, 75.0),
}
"""The same with torch's own operators alone."""
LAUNCHES = {
    "token": 40,
    "block": 75,
    "greedy_block": 60,
    "spectr": 500,
    "multi_round": 200,
    "traversal": 1_700,
    "scored_multipath": 22_000,
}
"""The most kernels that one round starts; 700 of every other verifier."""
LAUNCHES_OF_OPERATORS = LAUNCHES | {"token": 75, "block": 110, "greedy_block": 100}


class Traffic(NamedTuple):
    """What one run moved.

    Attributes:
        read, written: bytes.
        launches: operators that read or wrote something, one kernel or a few each.
        by_operator: bytes read and written, by the operator's name.
    """

    read: int
    written: int
    launches: int
    by_operator: Counter[str]

    @property
    def moved(self) -> int:
        """Bytes read and written."""
        return self.read + self.written


class CountBytes(TorchDispatchMode):
    """Counts bytes and launches of everything torch does inside the ``with`` block."""

    def __init__(self) -> None:
        super().__init__()
        self.read = self.written = self.launches = 0
        self.by_operator: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if not func.is_view:
            self._count(func.overloadpacket.__name__, args, kwargs or {}, out)
        return out

    def _count(self, name: str, args: Any, kwargs: Any, out: Any) -> None:
        written = sum(_distinct_bytes(tensor) for tensor in _tensors(out))
        given = list({id(tensor): tensor for tensor in _tensors((args, kwargs))}.values())
        if name in GATHERS | GATHERS_OF_TWO:
            sources = 1 if name in GATHERS else 2
            read = sources * out.numel() * out.element_size() + sum(map(_distinct_bytes, given[sources:]))
        else:
            read = sum(map(_distinct_bytes, given))
        if name in SCATTERS:
            _, *indices, values = given
            written = _distinct_bytes(values)
            read = written + sum(map(_distinct_bytes, indices))
        if name in WITHOUT_READING:
            read = 0
        if "empty" in name or not read + written:
            return
        self.read += read
        self.written += written
        self.launches += 1
        self.by_operator[name] += read + written

    @property
    def traffic(self) -> Traffic:
        """What was counted."""
        return Traffic(self.read, self.written, self.launches, self.by_operator)


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _distinct_bytes(tensor: torch.Tensor) -> int:
    """Bytes of the elements, each counted once where a dimension is expanded."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= size if stride != 0 or size == 0 else 1
    return count * tensor.element_size()


def counted(run: Callable[[], Any]) -> Traffic:
    """The traffic of one run."""
    with CountBytes() as counter:
        run()
    return counter.traffic


def measure(
    shape: Shape,
    dtype: str,
    seed: int,
    operators: bool = False,
    names: Collection[str] = LIMITS,
    kernels: bool = False,
) -> list[dict[str, Any]]:
    """One entry per verifier and number of drafts: what one round moves, against reading the rows once."""
    limits, launches = (LIMITS_OF_OPERATORS, LAUNCHES_OF_OPERATORS) if operators else (LIMITS, LAUNCHES)
    entries = []
    for place, num_drafts in enumerate((1, 4)):
        here = shape._replace(num_drafts=num_drafts)
        given = drafted(here, dtype, seed).on("cpu")
        for name, verifier in runnable(here).items():
            if "iid" not in verifier.draft_processes or name not in names:
                continue
            with ExitStack() as stack:
                stack.enter_context(
                    patch.object(choice, "WORTH_A_LOOP", math.inf if operators else choice.WORTH_A_LOOP)
                )
                if kernels:
                    _as_on_cuda(stack)
                traffic = counted(lambda v=verifier, g=given: one_round(v, g, seed))  # type: ignore[misc]
            entries.append(
                {
                    "verifier": name,
                    "num_drafts": num_drafts,
                    "moved_over_rows": traffic.moved / given.row_bytes,
                    "limit": limits[name][place],
                    "launches": traffic.launches,
                    "launch_limit": launches.get(name, 700),
                    "largest": dict(traffic.by_operator.most_common(5)),
                }
            )
    return entries


def _as_on_cuda(stack: ExitStack) -> None:
    """Every residual and draw is one operator, however few its rows; the host reads no single stop."""
    stack.enter_context(patch.object(choice, "use_row_kernel", _is_for_a_kernel))
    stack.enter_context(patch.object(choice, "is_one_number", lambda index: False))


def _is_for_a_kernel(rows: Any, per_row: Any = (), num_entries: Any = None, on_device: bool = True) -> bool:
    return on_device and is_torch_array(rows[0])


def over_limit(entries: list[dict[str, Any]]) -> list[str]:
    """One line per round that moved more than its limit, or started more kernels."""
    moved = [
        f"{entry['verifier']} with {entry['num_drafts']} drafts moves {entry['moved_over_rows']:.2f} times "
        f"the rows, more than {entry['limit']:g}"
        for entry in entries
        if not entry["moved_over_rows"] <= entry["limit"]
    ]
    return moved + [
        f"{entry['verifier']} with {entry['num_drafts']} drafts starts {entry['launches']} kernels, "
        f"more than {entry['launch_limit']}"
        for entry in entries
        if not entry["launches"] <= entry["launch_limit"]
    ]


def main() -> int:
    """Count, print, write; 1 if a limit is passed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vocab-size", type=int, default=32_000, help="V")
    parser.add_argument("--draft-length", type=int, default=8, help="L")
    parser.add_argument("--batch", type=int, default=8, help="batch elements")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--operators", action="store_true", help="torch's own operators alone")
    parser.add_argument("--kernels", action="store_true", help="kernels of a CUDA device for rows")
    parser.add_argument("--out", type=Path, help="write the results as JSON to this file")
    options = parser.parse_args()
    shape = Shape(options.vocab_size, options.draft_length, 1, options.batch)
    entries = measure(shape, options.dtype, options.seed, options.operators, kernels=options.kernels)
    print(f"{'verifier':18} drafts  moved / rows  limit  launches")
    for entry in entries:
        print(
            f"{entry['verifier']:18} {entry['num_drafts']:6} {entry['moved_over_rows']:13.2f} "
            f"{entry['limit']:6g} {entry['launches']:9}"
        )
    settings = {**shape._asdict(), "num_drafts": [1, 4], "dtype": options.dtype, "seed": options.seed}
    settings |= {"operators": options.operators, "kernels": options.kernels}
    write(options.out, {"torch": torch.__version__, "settings": settings, "results": entries})
    return exit_status([f"limit passed: {line}" for line in over_limit(entries)])


if __name__ == "__main__":
    sys.exit(main())
