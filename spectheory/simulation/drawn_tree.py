"""A drawing of the tree of drafts that a process makes."""

from collections.abc import Sequence
from itertools import product

from spectheory.pairs.drafts import DraftProcess, Iid, ShapedTree
from spectheory.pairs.drafts.trees import Widths

Path = tuple[int, ...]


def drawn_tree(process: DraftProcess | None, draft_length: int) -> list[str]:
    """Draw the paths of a process from left to right, one line per path.

    Args:
        process: None, or a process whose paths depend on the text, has no drawing: the list is empty.

    Example:
        >>> from spectheory.pairs.drafts import Iid, WithoutReplacement
        >>> print(*drawn_tree(WithoutReplacement((2, 2)), 2), sep="\\n")
        ●─┬─○─┬─○
          │   └─○
          └─○─┬─○
              └─○
        >>> print(*drawn_tree(Iid(2), 3), sep="\\n")
        ●─┬─○───○───○
          └─○───○───○
    """
    if isinstance(process, ShapedTree):
        return _lines({*process.nodes}, ())
    if isinstance(process, Iid):
        widths: Sequence[int] = (process.num_drafts, *[1] * (draft_length - 1))
    else:
        widths = process.widths if isinstance(process, Widths) else ()
    ranks = [range(width) for width in widths]
    nodes = {path for depth in range(len(ranks)) for path in product(*ranks[: depth + 1])}
    return _lines(nodes, ()) if nodes else []


def _lines(nodes: set[Path], node: Path) -> list[str]:
    """The subtree of a node, a line per leaf."""
    children = sorted(one for one in nodes if one[:-1] == node)
    mark, found = "○" if node else "●", []
    for number, child in enumerate(children):
        is_first, is_last = number == 0, child == children[-1]
        joint = ("─" if is_last else "┬") if is_first else ("└" if is_last else "├")
        below = " " if is_last else "│"
        start = f"{mark}─" if is_first else "  "
        first, *others = _lines(nodes, child)
        found += [f"{start}{joint}─{first}", *(f"  {below} {line}" for line in others)]
    return found or [mark]
