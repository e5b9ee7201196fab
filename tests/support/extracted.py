"""The programs that the machine proofs are about, extracted to OCaml, and their answers.

``python tests/support/extracted.py`` runs them and writes the digests of their answers.
"""

import hashlib
import shutil
import subprocess
import tempfile
from fractions import Fraction
from pathlib import Path

from program_support import PAIRS
from spectheory import ModelPair, output_law

FOLDER = Path(__file__).parents[2] / "proofs" / "extraction"
OUTPUTS = FOLDER / "outputs.txt"
CASES: list[tuple[str, ModelPair, int]] = [
    *(("token", pair, 1) for pair in PAIRS[:120]),
    *(("block", pair, 1) for pair in PAIRS[:120]),
    *(("greedy_multipath", pair, 2) for pair in PAIRS[:120]),
]
"""Verifier, pair, number of drafts: exact pairs with zeros and ties."""


def request(verifier: str, pair: ModelPair, drafts: int) -> str:
    """A line of input of ``proofs/extraction/bridge.ml``."""
    rows = [str(number) for level in (*pair.target, *pair.draft) for number in level.ravel()]
    return " ".join([verifier, str(pair.vocab_size), str(pair.draft_length), str(drafts), *rows])


def expected(verifier: str, pair: ModelPair, drafts: int) -> str:
    """The answer that agrees with ``output_law``: R(b) of all outputs, shorter ones first."""
    law = output_law(verifier, pair, drafts)
    return " ".join(str(Fraction(number)) for level in law.masses for number in level.ravel())


def digest(answer: str) -> str:
    return hashlib.sha256(answer.encode()).hexdigest()[:16]


def has_ocaml() -> bool:
    if shutil.which("ocamlfind") is None:
        return False
    return subprocess.run(["ocamlfind", "query", "zarith"], capture_output=True, check=False).returncode == 0


def build(verifiers: str, bridge: Path, folder: Path) -> Path:
    """Compile the text of an extraction; the program that answers requests."""
    (folder / "verifiers.ml").write_text(verifiers, encoding="utf-8")
    shutil.copy(bridge, folder / "bridge.ml")
    command = ["ocamlfind", "ocamlopt", "-package", "zarith", "-linkpkg", "verifiers.ml", "bridge.ml"]
    subprocess.run([*command, "-o", "bridge"], cwd=folder, check=True, capture_output=True)
    return folder / "bridge"


def answers(program: Path, requests: list[str]) -> list[str]:
    done = subprocess.run(
        [program], input="\n".join(requests) + "\n", capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = (FOLDER / "verifiers.ml").read_text(encoding="utf-8")
        program = build(source, FOLDER / "bridge.ml", Path(folder))
        found = answers(program, [request(*case) for case in CASES])
    OUTPUTS.write_text("".join(digest(answer) + "\n" for answer in found), encoding="utf-8")


if __name__ == "__main__":
    main()
