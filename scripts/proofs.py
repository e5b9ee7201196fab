"""Prove published verifiers on small shapes, store the proofs, and write their table into docs/proofs.md.

Shapes whose stored proof is one of the code of today keep it with its row, and so do searches that ended
without a proof, of which nothing is stored; ``--anew`` searches all of them.
``--stale`` searches nothing: it checks the stored proofs of other code against the code of today, and stores
its digest.
"""

import sys
from pathlib import Path
from time import process_time
from typing import Any

from spectheory import verifiers
from spectheory.exact.proof import Proof, RejectedProofError, check_proof, prove
from spectheory.exact.proof.check import check_document, digest_of_document, is_of_this_code
from spectheory.exact.proof.proof_file import read, write
from spectheory.pairs.drafts import DraftProcess, PrefixTree, WithoutReplacement

ROOT = Path(__file__).parents[1]
STORED = ROOT / "spectheory" / "exact" / "proof" / "stored"
PAGE = ROOT / "docs" / "proofs.md"
MARK = "<!-- written by make proofs -->\n"
SECONDS = 1800
COLUMNS = (
    "verifier",
    "statement",
    "V, L, drafts",
    "rows",
    "verdict",
    "regions",
    "lemmas",
    "seconds",
    "bytes",
    "check",
)
HEAD = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}\n"
Row = tuple[str, int, int, int | DraftProcess, bool] | tuple[str, int, int, int | DraftProcess, bool, str]
SHAPES: list[Row] = [
    ("token", 2, 1, 1, False),
    ("token", 3, 1, 1, False),
    ("token", 4, 1, 1, False),
    ("token", 2, 2, 1, False),
    ("block", 2, 1, 1, False),
    ("block", 3, 1, 1, False),
    ("block", 4, 1, 1, False),
    ("block", 2, 2, 1, False),
    ("multi_round", 2, 1, 2, False),
    ("multi_round", 2, 1, 3, False),
    ("multi_round", 3, 1, 2, False),
    ("multi_round_without_replacement", 2, 1, WithoutReplacement((2,)), False),
    ("multi_round_without_replacement", 3, 1, WithoutReplacement((2,)), False),
    ("greedy_multipath", 2, 1, 2, False),
    ("greedy_multipath", 2, 1, 3, False),
    ("greedy_multipath", 3, 1, 2, False),
    ("mixed_multipath", 2, 1, 2, False),
    ("traversal", 2, 1, 2, False),
    ("traversal", 2, 1, 3, False),
    ("traversal", 3, 1, 2, False),
    ("traversal", 3, 1, 3, False),
    ("greedy_multipath", 3, 1, 3, False),
    ("multi_round", 3, 1, 3, False),
    ("mixed_multipath", 2, 1, 3, False),
    ("multi_round", 2, 2, PrefixTree((1, 2)), False),
    ("multi_round", 2, 2, 2, False),
    ("token", 2, 3, 1, False),
    ("token", 3, 2, 1, False),
    ("block", 3, 2, 1, False),
    ("block", 2, 3, 1, False),
    ("multi_round", 4, 1, 2, False),
    ("greedy_multipath", 2, 2, 2, False),
    ("traversal", 2, 2, 2, False),
    ("otm", 2, 1, 2, False),
    ("otm", 2, 1, 3, False),
    ("otm", 3, 1, 2, False),
    ("otm", 3, 1, 3, False),
    ("greedy_multipath", 4, 1, 2, False),
    ("traversal", 4, 1, 2, False),
    ("traversal", 4, 1, 3, False),
    ("multi_round_without_replacement", 3, 1, WithoutReplacement((3,)), False),
    ("greedy_multipath", 4, 1, 3, False),
    ("mixed_multipath", 3, 1, 2, False),
    ("scored_multipath", 2, 1, 2, False),
    ("multi_round", 4, 1, 3, False),
    ("conditional_transport", 2, 1, 2, False),
    ("naive_sampling", 3, 1, 1, False),
    ("naive_sampling", 2, 2, 1, False),
    ("token", 2, 2, PrefixTree((2, 1)), False),
    ("multi_round_without_replacement", 2, 2, WithoutReplacement((1, 2)), False),
    ("token", 3, 1, 1, False, "optimal"),
    ("block", 2, 2, 1, False, "optimal"),
    ("mixed_multipath", 2, 1, 2, False, "optimal"),
    ("mixed_multipath", 2, 1, 3, False, "optimal"),
    ("otm", 2, 1, 2, False, "optimal"),
    ("otm", 2, 1, 3, False, "optimal"),
    ("otm", 2, 1, 2, False, "at_least:otm@1"),
    ("otm", 2, 1, 3, False, "at_least:otm@2"),
    ("otm", 3, 1, 2, False, "at_least:otm@1"),
    ("otm", 3, 1, 3, False, "at_least:otm@2"),
    ("otm", 2, 1, 2, False, "at_least:multi_round"),
    ("otm", 2, 1, 2, False, "at_least:conditional_transport"),
    ("conditional_transport", 2, 1, 2, False, "at_least:multi_round"),
    ("mixed_multipath", 2, 1, 2, False, "at_least:block"),
    ("mixed_multipath", 2, 1, 2, False, "at_least:greedy_multipath"),
    ("block", 3, 1, 1, False, "at_least:token"),
    ("block", 2, 2, 1, False, "at_least:token"),
    ("greedy_block", 3, 1, 1, False, "at_least:block"),
    ("greedy_block", 2, 2, 1, False, "at_least:block"),
    ("greedy_block", 2, 1, 1, False, "completed"),
    ("greedy_block", 2, 2, 1, False, "completed"),
    ("multi_round", 2, 1, 2, False, "at_least:multi_round@1"),
    ("multi_round", 2, 1, 3, False, "at_least:multi_round@2"),
    ("multi_round", 3, 1, 2, False, "at_least:multi_round@1"),
    ("multi_round", 3, 1, 3, False, "at_least:multi_round@2"),
    ("traversal", 2, 1, 2, False, "at_least:multi_round"),
    ("traversal", 3, 1, 2, False, "at_least:multi_round"),
    ("traversal", 3, 1, 3, False, "at_least:multi_round"),
    ("multi_round", 2, 1, 2, False, "prefix_matching"),
    ("greedy_multipath", 2, 1, 2, False, "exchangeable"),
    ("greedy_multipath", 3, 1, 2, False, "exchangeable"),
    ("otm", 2, 1, 2, False, "exchangeable"),
    ("token", 2, 1, 2, False, "single_path"),
    ("block", 2, 2, 2, False, "single_path"),
    ("greedy_block", 2, 1, 2, False, "single_path"),
]


def file_of(
    name: str, vocab: int, length: int, drafts: Any, positive: bool, statement: str = "lossless"
) -> Path:
    """Where the proof of a row is stored."""
    said = "" if statement == "lossless" else f"_{statement.replace(':', '-')}"
    shape = drafts if isinstance(drafts, int) else "-".join(map(str, drafts.widths))
    kind = "positive" if positive else "all"
    return STORED / f"{name}{said}_V{vocab}_L{length}_K{shape}_{kind}.proof"


def row_of(row: Row, kept: list[str]) -> str:
    """One row of the table; a proof that was found is stored, and checked from its file."""
    name, vocab, length, drafts, positive, *rest = row
    statement, path = (rest or ["lossless"])[0], file_of(*row)
    said = str(drafts) if isinstance(drafts, int) else repr(drafts).replace("widths=", "")
    domain = "positive" if positive else "all"
    start = f"| `{name}` | {statement} | {vocab}, {length}, {said} | {domain} | "
    old = [line for line in kept if line.startswith(start)]
    if old and (_is_of_this_code(path) if path.exists() else "| proved |" not in old[0]):
        return old[0]
    found: Proof = prove(
        name, vocab, length, drafts, positive=positive, time_limit=SECONDS, statement=statement
    )
    size = seconds = "–"
    if found.verdict == "proved":
        size, begun = str(found.save(path)), process_time()
        check_proof(path)
        seconds = f"{process_time() - begun:.1f}"
    regions = str(found.num_regions) + (f", {found.num_open} open" if found.num_open else "")
    cells = found.verdict, regions, str(found.num_lemmas), f"{found.seconds:.1f}", size, seconds
    return start + " | ".join(cells) + " |\n"


def _is_of_this_code(path: Path) -> bool:
    document = read(path)
    return is_of_this_code(document, verifiers[document["verifier"]])


def renew() -> int:
    """Check the stored proofs of other code with the code as it is now, and store its digest.

    A proof that does not hold for this code stays as it was, and is named; prove it anew.
    """
    status = 0
    for path in sorted(STORED.glob("*.proof"), key=lambda path: path.stat().st_size):
        if _is_of_this_code(path):
            continue
        document, size = read(path), path.stat().st_size
        verifier = verifiers[document["verifier"]]
        try:
            check_document(document, verifier)
        except RejectedProofError as error:
            print(f"{path.name}: {error}", flush=True)
            status = 1
            continue
        new_size = write(path, document | {"verifier_code": digest_of_document(document, verifier)})
        print(f"{path.name}: renewed", flush=True)
        start = f"| `{document['verifier']}` | {document['statement']} | "
        lines = PAGE.read_text(encoding="utf-8").splitlines(keepends=True)
        changed = [
            line.replace(f"| {size} |", f"| {new_size} |") if line.startswith(start) else line
            for line in lines
        ]
        PAGE.write_text("".join(changed), encoding="utf-8")
    return status


def main() -> int:
    """Write the proofs and the table."""
    if "--stale" in sys.argv:
        return renew()
    STORED.mkdir(exist_ok=True)
    table = PAGE.read_text(encoding="utf-8").split(MARK)[1]
    kept = [] if "--anew" in sys.argv else table.splitlines(keepends=True)
    rows = []
    for shape in SHAPES:
        rows.append(row_of(shape, kept))
        print(rows[-1], end="", flush=True)
        before, _, after = PAGE.read_text(encoding="utf-8").split(MARK)
        waiting = [line for line in kept[2:] if line not in rows]
        PAGE.write_text(before + MARK + HEAD + "".join([*rows, *waiting]) + MARK + after, encoding="utf-8")
    for path in {*STORED.glob("*.proof")} - {file_of(*shape) for shape in SHAPES}:
        path.unlink()
    PAGE.write_text(before + MARK + HEAD + "".join(rows) + MARK + after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
