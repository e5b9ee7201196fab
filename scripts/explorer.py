"""Write the numbers of docs/explorer.html: ``python scripts/explorer.py``.

Every pair of two tokens with rows in twelfths, K = 1 to 3 and L = 1 or 2: the optimum, the block efficiency
of each verifier, and the smallest counterexample of those that are not lossless.  About a minute of CPU.
"""

import json
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from spectheory import ModelPair, certify, optimum
from spectheory.foundation.exact_numbers import Fraction

PAGE = Path(__file__).parent.parent / "docs" / "assets" / "explorer_data.js"
HEAD = "const EXPLORED = "
PARTS = 12
"""Rows are multiples of 1/12: it has halves, thirds, quarters and sixths."""
VERIFIERS = (
    "token",
    "block",
    "multi_round",
    "spectr",
    "otm",
    "traversal",
    "greedy_multipath",
    "mixed_multipath",
    "scored_multipath",
    "naive_sampling",
    "greedy_block",
    "spectr_gbv",
)

Setting = tuple[int, int, int, int]
"""Twelfths of the target's and the draft's first token, K and L."""


def settings() -> Iterator[Setting]:
    """All settings of the sliders."""
    inner = range(1, PARTS)
    yield from product(inner, inner, (1, 2, 3), (1, 2))


def explored(setting: Setting) -> dict[str, Any]:
    """The optimum and the verifiers of one setting.

    Returns:
        ``optimum``, a number as text, and for each verifier a list: its block efficiency, and if it is not
        lossless the path, the probability and the target probability of its counterexample.
    """
    target, draft, drafts, length = setting
    rows = [[Fraction(first, PARTS), Fraction(PARTS - first, PARTS)] for first in (target, draft)]
    pair = ModelPair.context_free_pair(*rows, draft_length=length, vocab=["A", "B"])
    return {
        "optimum": _text(optimum(pair, drafts=drafts).value),
        "verifiers": {name: _judged(name, pair, drafts) for name in VERIFIERS},
    }


def _judged(name: str, pair: ModelPair, drafts: int) -> list[str]:
    found = certify(name, pair, drafts, with_optimum=False)
    wrong = found.counterexample
    told = [_text(found.block_efficiency)]
    return (
        told
        if wrong is None
        else [*told, " ".join(wrong.path), _text(wrong.probability), _text(wrong.target)]
    )


def _text(value: Any) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def stored() -> dict[str, Any]:
    """The numbers that the page shows, by setting: ``"4,8,2,2"``."""
    found: dict[str, Any] = json.loads(PAGE.read_text(encoding="utf-8").removeprefix(HEAD))
    return found


def main() -> int:
    """The command."""
    found = {}
    for setting in settings():
        found[",".join(map(str, setting))] = explored(setting)
    print(f"{len(found)} settings", file=sys.stderr)
    PAGE.write_text(HEAD + json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{PAGE.stat().st_size // 1024} kB", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
