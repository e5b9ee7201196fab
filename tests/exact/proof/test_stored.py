"""Stored proofs: they hold, they are of the code as it is, and their digest follows the code."""

import sys
from fractions import Fraction
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from spectheory import certify_suite, instances, verifiers
from spectheory.exact import proof
from spectheory.exact.proof.check import check_proof, is_of_this_code, proved_shapes
from spectheory.exact.proof.proof_file import read
from spectheory.exact.suite_cases import SuiteCase
from spectheory.pairs.drafts import Iid, PrefixTree
from spectheory.verification.algorithms.one_path.block import Block
from spectheory.verification.user import as_verifier
from spectheory.verification.verifier_code import code_digest

STORED = Path(proof.__file__).parent / "stored"
PAGE = Path(__file__).parents[3] / "docs" / "proofs.md"


@pytest.mark.parametrize("path", sorted(STORED.glob("*.proof")), ids=lambda path: path.stem)
def test_stored_proofs_hold(path: Path) -> None:
    """Small ones are checked here; of all, the digest is that of the code, and the page lists them."""
    data = path.read_bytes()
    document = read(path)
    assert is_of_this_code(document, verifiers[document["verifier"]])
    assert f"| {len(data)} |" in PAGE.read_text(encoding="utf-8")
    if len(data) < 700:
        assert check_proof(path)["regions"] <= document["regions"]


def test_stored_proofs_speak_of_the_code_that_they_are_of() -> None:
    class Changed(Block):
        """The same name, and other code."""

    assert proved_shapes(verifiers["block"])[:2] == ["V=2 L=1 K=1", "V=2 L=2 K=1"]
    assert proved_shapes(Changed()) == []
    case = SuiteCase("mine", instances.two_token(1), Iid(1))
    assert certify_suite("token", [case]).to_document()["proved_for"][0] == "V=2 L=1 K=1"
    assert certify_suite(Changed(), [case]).proved_for == ()


@pytest.mark.deep
@pytest.mark.parametrize("path", sorted(STORED.glob("*.proof")), ids=lambda path: path.stem)
def test_large_stored_proofs_hold(path: Path) -> None:
    check_proof(path)


def test_stored_proofs_are_small() -> None:
    """`make proofs` writes them; stale ones are written anew by it."""
    *others, largest = sorted(path.stat().st_size for path in STORED.glob("*.proof"))
    assert len(others) > 70
    assert others[-1] <= 15_000
    assert largest <= 25_000


def test_the_digest_follows_the_classes() -> None:
    class Other(Block):
        """The same class under another name."""

    class Changed(Block):
        def last(self, weight: Any) -> Any:
            return super().last(weight) * 1

    digests = {code_digest(verifier) for verifier in (verifiers["block"], Other(), Changed())}
    assert len(digests) == 3
    assert code_digest(Changed()) == code_digest(Changed())


def test_the_digest_follows_the_draft_process_and_parameters() -> None:
    block, scaled = verifiers["block"], Block()
    scaled.factor = Fraction(1, 3)  # type: ignore[attr-defined]
    digests = [code_digest(block, process) for process in (Iid(2), Iid(3), PrefixTree((2,)))]
    assert len({*digests, code_digest(block), code_digest(scaled)}) == 5


MODULE = """
class Mine:
    {text}
    def outcome(self, *rows):
        return {body}  # {comment}
"""


def test_the_digest_has_no_comments_and_no_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The partner is another body."""

    def digest(folder: str, body: str, comment: str, text: str) -> str:
        place = tmp_path / folder
        place.mkdir()
        source = MODULE.format(body=body, comment=comment, text=text)
        (place / "mine.py").write_text(source, encoding="utf-8")
        specification = spec_from_file_location("mine", place / "mine.py")
        assert specification is not None
        assert specification.loader is not None
        module = module_from_spec(specification)
        monkeypatch.setitem(sys.modules, "mine", module)
        specification.loader.exec_module(module)
        return code_digest(as_verifier(module.Mine()))

    one, same = digest("one", "rows * 2", "once", "'Twice.'"), digest("same", "rows * 2", "again", "")
    assert one == same != digest("other", "rows", "once", "")
