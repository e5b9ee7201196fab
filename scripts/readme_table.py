"""Write the table of verifiers in README.md from the registry: ``python scripts/readme_table.py``."""

import re
from pathlib import Path

from spectheory import verifiers
from spectheory.pairs.drafts.process import ANY_PROCESS
from spectheory.verification.verifier import Verifier

README = Path(__file__).parent.parent / "README.md"
HEAD = "| name | paper and algorithm | lossless | drafts |\n|---|---|---|---|\n"
PROCESSES = {
    "iid": "i.i.d.",
    "per_path": "one model per path",
    "prefix_tree": "prefix tree",
    "without_replacement": "without replacement",
}


def row(name: str, verifier: Verifier) -> str:
    """Name, source, claim and drafts of one verifier."""
    if verifier.single_path:
        drafts = "the first path"
    elif verifier.draft_processes is ANY_PROCESS:
        drafts = "any"
    else:
        drafts = ", ".join(PROCESSES[process] for process in sorted(verifier.draft_processes))
    drafts += "; one token" if verifier.max_draft_length == 1 else ""
    return f"| `{name}` | {verifier.source} | {'yes' if verifier.lossless else 'no'} | {drafts} |\n"


def with_table(page: str) -> str:
    """The page with a row per registered verifier, in order."""
    before, _, behind = page.partition(HEAD)
    rows = "".join(row(*entry) for entry in verifiers.items())
    return before + HEAD + rows + re.sub(r"\A(\|.*\n)*", "", behind)


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
