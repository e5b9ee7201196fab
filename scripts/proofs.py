"""Prove published verifiers on small shapes, store the proofs, and write their table into docs/proofs.md.

``--renew`` searches nothing: it checks the stored proofs against the code of today and stores its digest.
"""

import gzip
import json
import sys
from pathlib import Path
from time import process_time
from typing import Any

from spectheory import verifiers
from spectheory.exact.proof import Proof, check_proof, prove
from spectheory.exact.proof.check import check_document
from spectheory.exact.proof.proof_file import write
from spectheory.exact.proof.verifier_code import code_digest
from spectheory.pairs.drafts import DraftProcess, PrefixTree, WithoutReplacement

ROOT = Path(__file__).parents[1]
STORED = ROOT / "spectheory" / "exact" / "proof" / "stored"
PAGE = ROOT / "docs" / "proofs.md"
MARK = "<!-- written by make proofs -->\n"
SECONDS = 600
HEAD = """| verifier | V, L, drafts | rows | verdict | regions | lemmas | seconds | bytes | check |
|---|---|---|---|---|---|---|---|---|
"""
SHAPES: list[tuple[str, int, int, int | DraftProcess, bool]] = [
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
    ("multi_round", 3, 1, 3, False),
    ("mixed_multipath", 2, 1, 3, False),
    ("multi_round", 2, 2, PrefixTree((1, 2)), False),
    ("multi_round", 2, 2, 2, False),
    ("token", 2, 3, 1, True),
]


def row_of(name: str, vocab: int, length: int, drafts: Any, positive: bool) -> str:
    """One row of the table; a proof that was found is stored, and checked from its file."""
    found: Proof = prove(name, vocab, length, drafts, positive=positive, time_limit=SECONDS)
    size = seconds = "–"
    if found.tree is not None:
        kind = "positive" if positive else "all"
        shape = drafts if isinstance(drafts, int) else "-".join(map(str, drafts.widths))
        path = STORED / f"{name}_V{vocab}_L{length}_K{shape}_{kind}.proof"
        size = str(found.save(path))
        if found.verdict == "proved":
            start = process_time()
            check_proof(path)
            seconds = f"{process_time() - start:.1f}"
    said = str(drafts) if isinstance(drafts, int) else repr(drafts).replace("widths=", "")
    regions = str(found.num_regions) + (f", {found.num_open} open" if found.num_open else "")
    lemmas = str(found.num_lemmas) + (f", {found.num_trusted} trusted" if found.num_trusted else "")
    cells = (f"`{name}`", f"{vocab}, {length}, {said}", found.shape.domain.split()[0], found.verdict, regions)
    return "| " + " | ".join((*cells, lemmas, f"{found.cpu_seconds:.1f}", size, seconds)) + " |\n"


def renew() -> None:
    """Check every stored proof with the code as it is now; a proof that does not hold stays as it was.

    Raises:
        RejectedProofError: a proof does not hold for this code; prove it anew.
    """
    for path in sorted(STORED.glob("*.proof")):
        document, size = json.loads(gzip.decompress(path.read_bytes())), path.stat().st_size
        verifier = verifiers[document["verifier"]]
        check_document(document | {"verifier_code": code_digest(verifier)}, verifier)
        new_size = write(path, document | {"verifier_code": code_digest(verifier)})
        start = f"| `{document['verifier']}` | {document['vocab_size']}, {document['draft_length']}, "
        lines = PAGE.read_text(encoding="utf-8").splitlines(keepends=True)
        changed = [
            line.replace(f"| {size} |", f"| {new_size} |") if line.startswith(start) else line
            for line in lines
        ]
        PAGE.write_text("".join(changed), encoding="utf-8")


def main() -> int:
    """Write the proofs and the table."""
    if "--renew" in sys.argv:
        renew()
        return 0
    STORED.mkdir(exist_ok=True)
    for old in STORED.glob("*.proof"):
        old.unlink()
    rows = []
    for shape in SHAPES:
        rows.append(row_of(*shape))
        print(rows[-1], end="", flush=True)
        before, _, after = PAGE.read_text(encoding="utf-8").split(MARK)
        PAGE.write_text(before + MARK + HEAD + "".join(rows) + MARK + after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
