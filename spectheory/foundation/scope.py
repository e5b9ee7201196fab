"""The scope of a verdict, which appears in its headline, table, JSON object and error."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from spectheory.foundation.documents import to_json

SCOPE_FACTS: Mapping[str, str] = {
    "drafts": "{processes}",
    "refused or left out": "{refused}",
    "arithmetic": "{arithmetic}",
    "tolerance": "{tolerance}",
}
"""Label -> template of a table row, with fields of ``Scope``."""


@dataclass(frozen=True)
class Scope:
    """The cases that a verdict covers.

    Attributes:
        arithmetic: the arithmetic used to compute the law.
        tolerance: the largest difference at which two laws count as equal.
        shapes: the distinct (V, L, K) that were tested.
        processes: the draft processes, as texts.  A tree is its name, a colon and its shape.
        refused: cases that were refused or left out.  The text up to a colon is a short name of the case.
    """

    arithmetic: str
    tolerance: str
    shapes: tuple[tuple[int, int, int], ...]
    processes: tuple[str, ...]
    refused: tuple[str, ...] = ()

    def shapes_text(self) -> str:
        """Write the shapes, and merge neighbouring ones into ranges of V, L and K.

        Example:
            >>> Scope("", "", ((2, 1, 1), (2, 1, 2), (2, 2, 1), (3, 1, 1), (3, 1, 2)), ()).shapes_text()
            '(2-3, 1, 1-2), (2, 2, 1)'
        """
        left = set(self.shapes)
        boxes = []
        while left:
            start = min(left, key=lambda shape: (shape[2], shape[1], shape[0]))
            box = [[number] for number in start]
            for axis in (2, 0, 1):
                while all(
                    shape in left for shape in product(*box[:axis], [box[axis][-1] + 1], *box[axis + 1 :])
                ):
                    box[axis].append(box[axis][-1] + 1)
            left -= set(product(*box))
            boxes.append(", ".join(str(b[0]) if len(b) == 1 else f"{b[0]}-{b[-1]}" for b in box))
        return ", ".join(f"({box})" for box in boxes)

    def processes_text(self, in_full: bool = False) -> str:
        """Write the draft processes.  Trees of the same name are merged: their number, or ``in_full`` a list.

        Example:
            >>> scope = Scope("", "", (), ("iid", "top_tree:2,1", "top_tree:3,1", "hub_tree:2,1"))
            >>> scope.processes_text(), scope.processes_text(in_full=True)
            ('iid, top_tree (2 shapes), hub_tree:2,1', 'iid; top_tree: 2,1 3,1; hub_tree: 2,1')
        """
        by_name: dict[str, list[str]] = {}
        for process in self.processes:
            by_name.setdefault(process.partition(":")[0], []).append(process)
        if in_full:
            shapes = {name: [text.partition(":")[2] for text in found] for name, found in by_name.items()}
            return "; ".join(
                f"{name}: {' '.join(found)}" if any(found) else name for name, found in shapes.items()
            )
        return ", ".join(
            found[0] if len(found) == 1 else f"{name} ({len(found)} shapes)"
            for name, found in by_name.items()
        )

    def in_words(self) -> str:
        """Write the shapes and the names of cases that were refused or left out."""
        names = dict.fromkeys(text.partition(":")[0] for text in self.refused)
        refused = f"; refused or left out: {', '.join(names)}" if names else ""
        return f"(V, L, K) = {self.shapes_text()}{refused}"

    def shown(self) -> dict[str, Any]:
        """Return the fields for the templates of a table."""
        return to_json(self) | {"shapes": self.shapes_text(), "processes": self.processes_text(in_full=True)}

    def to_document(self) -> dict[str, Any]:
        return to_json(self) | {"shapes_text": self.shapes_text()}
