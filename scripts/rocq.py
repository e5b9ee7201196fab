"""Check the machine proofs in proofs/ and store what they rest on.

    python scripts/rocq.py          compile all files, run coqchk on them, extract the programs, and write
                                    proofs/assumptions.txt, proofs/extraction/verifiers.ml and the statements
                                    on docs/machine_proofs.md
    python scripts/rocq.py --all    the same; coqchk checks every library as well, which takes minutes

Needs coqc and coqchk 8.16 with mathcomp 1.15 and its algebra tactics, and ocamlfind with zarith.  Every
theorem is printed with the axioms that it uses.  The first line of assumptions.txt is a digest of the
sources, so that a test can tell whether the file belongs to them where no coqc is installed.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROOFS = ROOT / "proofs"
ASSUMPTIONS = PROOFS / "assumptions.txt"
EXTRACTION = PROOFS / "extraction"
PAGE = ROOT / "docs" / "machine_proofs.md"
CLOSED = "Closed under the global context"
PROGRAMS = {
    "coqc": "coq",
    "coqchk": "coq",
    "ocamlfind": "ocaml-findlib",
    "ocamlopt": "ocaml-nox",
}
"""Each program with the Debian package that has it."""
LIBRARIES = {
    "mathcomp/ssreflect": "libcoq-mathcomp-ssreflect",
    "mathcomp/algebra": "libcoq-mathcomp-algebra",
    "mathcomp/algebra_tactics": "libcoq-mathcomp-algebra-tactics",
}
LOGICAL_NAME = "Spectheory"


def files() -> list[str]:
    """The files of the development in the order in which they are compiled."""
    lines = (PROOFS / "_CoqProject").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.endswith(".v")]


def digest() -> str:
    """SHA-256 of all sources, with their names."""
    found = hashlib.sha256()
    for name in ["_CoqProject", *files(), "extraction/extract.v"]:
        found.update(name.encode() + b"\0" + (PROOFS / name).read_bytes() + b"\0")
    return found.hexdigest()


def without_comments(source: str) -> str:
    """A Coq source without its comments, which may be nested."""
    kept, depth = [], 0
    for part in re.split(r"(\(\*|\*\))", source):
        if part == "(*":
            depth += 1
        elif part == "*)":
            depth -= 1
        elif depth == 0:
            kept.append(part)
    return "".join(kept)


def theorems(name: str) -> list[str]:
    """The theorems, corollaries and examples of a file."""
    source = without_comments((PROOFS / name).read_text(encoding="utf-8"))
    return re.findall(r"^(?:Theorem|Corollary|Example)\s+([\w']+)", source, re.MULTILINE)


def missing() -> list[str]:
    """The Debian packages that are missing."""
    needed = {package for program, package in PROGRAMS.items() if shutil.which(program) is None}
    if shutil.which("coqc"):
        where = subprocess.run(["coqc", "-where"], capture_output=True, text=True, check=True).stdout.strip()
        library = Path(where) / "user-contrib"
        found = {"mathcomp/ssreflect", "mathcomp/algebra"} & {
            f"mathcomp/{path.name}" for path in library.glob("mathcomp/*")
        }
        if (library / "mathcomp" / "ring.vo").exists() or list(library.glob("mathcomp/**/ring.vo")):
            found.add("mathcomp/algebra_tactics")
        needed |= {package for name, package in LIBRARIES.items() if name not in found}
    if shutil.which("ocamlfind"):
        known = subprocess.run(["ocamlfind", "query", "zarith"], capture_output=True, check=False)
        needed |= {"libzarith-ocaml-dev"} if known.returncode else set()
    return sorted(needed)


def run(*command: str, where: Path = PROOFS) -> str:
    """What a program prints; exits with its error if it fails."""
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"error: {' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def coqc(name: str) -> str:
    return run("coqc", "-w", "none", "-Q", ".", LOGICAL_NAME, name)


def logical(name: str) -> str:
    return LOGICAL_NAME + "." + name.removesuffix(".v").replace("/", ".")


def print_assumptions() -> str:
    """Every theorem, as Coq prints it, with the axioms that it rests on."""
    names = [(name, theorem) for name in files() for theorem in theorems(name)]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "assumptions.v"
        required = "".join(f"Require {logical(name)}.\n" for name in files())
        shown = "".join(
            f"Check {logical(name)}.{theorem}.\nPrint Assumptions {logical(name)}.{theorem}.\n"
            for name, theorem in names
        )
        prelude = "From mathcomp Require Import all_ssreflect all_algebra.\n"
        prelude += "Unset Printing Implicit Defensive.\n"
        source.write_text(prelude + required + "Import Spectheory.field.\n" + shown, encoding="utf-8")
        return coqc(str(source))


def with_statements(page: str, printed: str) -> str:
    """A page whose blocks of theorems say what Coq printed.

    A block is text that begins with the name of a theorem, ``module.theorem``, and a line with a colon.
    """
    statements = {entry.split("\n", 1)[0]: entry for entry in printed.split(f"{CLOSED}\n")}
    block = re.compile(r"```text\n([\w']+\.[\w']+)\n     : .*?```", re.DOTALL)
    return block.sub(lambda found: f"```text\n{statements[found[1]]}```", page)


def main() -> None:
    if absent := missing():
        sys.exit(f"error: install these Debian packages first: {' '.join(absent)}")
    for name in files():
        start = time.perf_counter()
        coqc(name)
        print(f"coqc {name}: {time.perf_counter() - start:.1f} s", flush=True)
    start = time.perf_counter()
    only = [] if "--all" in sys.argv[1:] else ["-norec"]
    checked = [word for name in files() for word in [*only, logical(name)]]
    run("coqchk", "-silent", "-Q", ".", LOGICAL_NAME, *checked)
    print(f"coqchk: {time.perf_counter() - start:.1f} s")
    coqc("extraction/extract.v")
    (EXTRACTION / "verifiers.mli").unlink()
    found = print_assumptions()
    ASSUMPTIONS.write_text(f"sources {digest()}\n\n{found}", encoding="utf-8")
    PAGE.write_text(with_statements(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    count = sum(len(theorems(name)) for name in files())
    if found.count(CLOSED) != count:
        sys.exit(f"error: of {count} theorems, {found.count(CLOSED)} rest on no axiom; see {ASSUMPTIONS}")
    print(f"{count} theorems, no axiom")


if __name__ == "__main__":
    main()
