"""The programs that the machine proofs are about, extracted to OCaml, and their answers.

``python tests/support/extracted.py`` runs them, compares them with ``output_law``, and writes the digests of
their answers and of the verifiers' code.
"""

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from program_support import PAIRS
from spectheory import ModelPair, output_law, verifiers
from spectheory.optima.one_position.ranking_plan import rankings_of_rows
from spectheory.pairs.drafts import DraftProcess, Iid, PrefixTree, WithoutReplacement
from spectheory.verification.algorithms.path_selection.mixed_multipath import root_mixture
from spectheory.verification.algorithms.position_by_position.kseq import KSeq, best_division_factor
from spectheory.verification.machine_proofs import DATA
from spectheory.verification.verifier_code import code_digest

FOLDER = Path(__file__).parents[2] / "proofs" / "extraction"
OUTPUTS = FOLDER / "outputs.txt"
PROGRAMS = {
    "token": "token",
    "block": "block",
    "greedy_block": "greedy_block",
    "greedy_multipath": "greedy_multipath",
    "mixed_multipath": "mixed_multipath",
    "naive_sampling": "naive_sampling",
    "multi_round": "multi_round",
    "multi_round_tree": "multi_round",
    "multi_round_without_replacement": "multi_round_without_replacement",
    "otm": "otm",
    "kseq": "kseq",
    "spectr": "spectr",
    "spectr_gbv": "spectr_gbv",
}
"""Extracted program -> verifier."""
WIDTHS = {(2, 1): (3,), (3, 1): (3,), (4, 1): (3,), (2, 2): (2, 2), (3, 2): (1, 2), (2, 3): (1, 2, 1)}
"""V and L -> numbers of children of a tree with at most 64 tuples of drafts."""


@dataclass(frozen=True)
class Case:
    """A program and a verifier on one pair.

    Attributes:
        program: the name that ``bridge.ml`` knows.
        verifier: the name or the verifier whose law is compared.
        pair, process: models and drafts.
        tolerance: the largest difference of two probabilities; 0 for laws in rationals.
    """

    program: str
    verifier: Any
    pair: ModelPair
    process: DraftProcess
    tolerance: float = 0.0

    @property
    def size(self) -> int:
        """The number of tuples of drafts."""
        return self.process.count_tuples(self.pair)

    def request(self) -> str:
        """A line of input of ``proofs/extraction/bridge.ml``."""
        pair = self.pair
        rows = [str(number) for level in (*pair.target, *pair.draft) for number in level.ravel()]
        sizes = map(str, (pair.vocab_size, pair.draft_length, self.process.num_drafts))
        return " ".join([self.program, *sizes, *rows, *map(str, self.more())])

    def more(self) -> Iterable[Any]:
        """The further numbers of the request, as ``bridge.ml`` describes them."""
        pair, num_drafts = self.pair, self.process.num_drafts
        if isinstance(self.process, PrefixTree | WithoutReplacement):
            return self.process.widths
        if self.program == "mixed_multipath":
            return [root_mixture(pair.target[0][0], pair.draft[0][0], num_drafts)]
        if self.program == "otm":
            return _plans(pair, num_drafts)
        if self.program == "kseq":  # K is at least ρ* for every pair
            return [num_drafts] * num_drafts
        return _factors(pair, num_drafts) if self.program == "spectr" else ()

    def expected(self) -> str:
        """The answer that agrees with ``output_law``: R(b) of all outputs, shorter ones first."""
        law = output_law(self.verifier, self.pair, self.process)
        return " ".join(str(Fraction(number)) for level in law.masses for number in level.ravel())

    def agrees(self, answer: str) -> bool:
        """Whether an answer of the program is the law."""
        if not self.tolerance:
            return answer == self.expected()
        found, wanted = (list(map(Fraction, text.split())) for text in (answer, self.expected()))
        return len(found) == len(wanted) and all(
            abs(one - other) <= self.tolerance for one, other in zip(found, wanted, strict=True)
        )


def distinct_widths(pair: ModelPair) -> tuple[int, ...]:
    """Two distinct drafts at every depth where all rows have two tokens, else one."""
    return tuple(min(2, int((rows > 0).sum(axis=1).min())) for rows in pair.draft)


def _contexts(pair: ModelPair) -> Iterator[tuple[Any, Any]]:
    """Target and draft row of every context of depth 0 to L - 1."""
    for target, draft in zip(pair.target, pair.draft, strict=False):
        yield from zip(target, draft, strict=True)


def _plans(pair: ModelPair, num_drafts: int) -> Iterator[Any]:
    """The plans of ``otm``: for every context and n the masses of (drafts, token)."""
    for target, draft in _contexts(pair):
        for count in range(1, num_drafts + 1):
            plan = rankings_of_rows(target, draft, count)
            for drafts in product(range(pair.vocab_size), repeat=count):
                mass = np.prod(draft[list(drafts)])
                yield from mass * plan.law_given(tuple(sorted(drafts))) if mass else target * 0


def _factors(pair: ModelPair, num_drafts: int) -> Iterator[Fraction]:
    """The division factors of ``spectr``, in floats: for every context and n."""
    for target, draft in _contexts(pair.to_float()):
        yield Fraction(1)
        for count in range(2, num_drafts + 1):
            yield Fraction(
                float(best_division_factor(target[None], draft[None], np.array([float(count)]))[0])
            )


def case(program: str, pair: ModelPair, num_drafts: int = 2) -> Case:
    """A program on a pair, with its drafts."""
    process: DraftProcess = Iid(num_drafts)
    if program == "multi_round_tree":
        process = PrefixTree(WIDTHS[pair.vocab_size, pair.draft_length])
    elif program == "multi_round_without_replacement":
        process = WithoutReplacement(distinct_widths(pair))
    verifier = KSeq(num_drafts) if program == "kseq" else PROGRAMS[program]
    return Case(program, verifier, pair, process, 1e-12 if program == "spectr" else 0.0)


def cases() -> Iterator[Case]:
    """At least a hundred exact pairs for each program, with zeros and ties."""
    for program in PROGRAMS:
        if program in ("token", "block", "greedy_block"):
            yield from (case(program, pair, 1) for pair in PAIRS[:120])
        elif program == "kseq":
            yield from (
                case(program, pair, 2 + i % 2) for i, pair in enumerate(PAIRS) if pair.draft_length == 1
            )
        else:
            yield from (case(program, pair) for pair in PAIRS[:120])


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
        compared = list(cases())
        found = answers(program, [one.request() for one in compared])
    wrong = [one for one, answer in zip(compared, found, strict=True) if not one.agrees(answer)]
    if wrong:
        raise SystemExit(f"{len(wrong)} laws differ, the first of {wrong[0].program} on\n{wrong[0].pair!r}")
    lines = [f"{one.program} {digest(answer)}\n" for one, answer in zip(compared, found, strict=True)]
    OUTPUTS.write_text("".join(lines), encoding="utf-8")
    data = Path(str(files("spectheory.verification").joinpath(DATA)))
    entries = json.loads(data.read_text(encoding="utf-8"))
    for name, entry in entries.items():
        entry["code"] = code_digest(verifiers[name])
    data.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
