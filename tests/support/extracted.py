"""The programs that the machine proofs are about, extracted to OCaml, and their answers."""

import hashlib
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

from spectheory import ModelPair, output_law


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
