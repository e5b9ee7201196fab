"""The theorems that certificates and the list of verifiers name."""

import dataclasses
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from scripts import load
from spectheory import certify, certify_suite, instances, verifiers
from spectheory.command_line.main import main
from spectheory.exact.suite_cases import SuiteCase
from spectheory.pairs.drafts import Iid
from spectheory.verification.algorithms.one_path import block
from spectheory.verification.algorithms.one_path.block import Block
from spectheory.verification.algorithms.path_selection.mixed_multipath import MixedMultipath
from spectheory.verification.machine_proofs import entries, machine_proofs

PAIR = instances.two_token(2)


def test_every_entry_is_of_the_code_that_was_compared() -> None:
    """If a class changes, run ``tests/support/extracted.py``: it compares the class with the extraction."""
    rocq = load("scripts", "rocq")
    known = {theorem for name in rocq.files() for theorem in rocq.theorems(name)}
    for name, entry in entries().items():
        found = machine_proofs(verifiers[name])
        assert {process: proof.theorem for process, proof in found.items()} == entry["theorems"], name
        assert set(entry["theorems"].values()) <= known
        assert set(entry["theorems"]) <= {*verifiers[name].draft_processes}


def test_certificates_say_it_beside_the_verdict() -> None:
    certificate = certify("block", PAIR)
    words = "in exact arithmetic, for every V and L: machine proof block_lossless"
    assert ["beyond this pair", words] in certificate.tables()[0].texts()
    assert certificate.to_document()["machine_proof"] == "block_lossless"
    assert certificate.judgement() == ("lossless (rationals)", "block on this pair, (V, L, K) = (2, 2, 1)")


def test_suites_say_it_beside_the_verdict() -> None:
    case = SuiteCase("mine", PAIR, Iid(1))
    found = certify_suite("token", [case])
    words = "in exact arithmetic, for every V and L: machine proof token_lossless"
    assert ["beyond these pairs", words] in found.tables()[0].texts()
    assert found.to_document()["machine_proofs"] == ["token_lossless"]
    assert certify_suite("greedy_block", [case]).to_document()["machine_proofs"] == []
    assert certify_suite(SameBlock(), [case]).machine_proofs == ()


def test_it_is_never_the_basis_of_a_verdict() -> None:
    """The verdict and its basis are the same without the theorem."""
    certificate = certify("token", PAIR)
    without = dataclasses.replace(certificate, machine_proof=None)
    assert (certificate.verdict, certificate.basis) == (without.verdict, without.basis)
    refuted = dataclasses.replace(certificate, target_matching=False)
    assert refuted.verdict == "not lossless"
    assert refuted.machine_proof is not None


class SameBlock(Block):
    """A user's class is not the published object, even if it changes nothing."""


@pytest.mark.parametrize("verifier", ["greedy_block", "spectr_gbv", SameBlock(), MixedMultipath(0)])
def test_partner_without_a_theorem(verifier: Any) -> None:
    """Verifiers that are not lossless, a user's class, other parameters."""
    found = certify(verifier, PAIR, 2)
    assert found.machine_proof is None
    assert found.to_document()["machine_proof"] is None
    assert "beyond this pair" not in dict(found.tables()[0].texts())


@pytest.mark.parametrize(("old", "new", "is_same"), [("", "", True), ("weight * ratio", "ratio", False)])
def test_partner_a_changed_class_loses_its_theorem(
    old: str, new: str, is_same: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The registered class comes from a copy of its file, unchanged or with one line changed."""
    source = Path(block.__file__).read_text(encoding="utf-8")
    path = tmp_path / "copied_block.py"
    path.write_text(source.replace(old, new), encoding="utf-8")
    specification = spec_from_file_location("copied_block", path)
    assert specification is not None
    assert specification.loader is not None
    module = module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "copied_block", module)
    specification.loader.exec_module(module)
    monkeypatch.setitem(verifiers._made, "block", module.Block())
    assert bool(machine_proofs(verifiers["block"])) is is_same


def test_the_list_of_verifiers_names_the_theorems(capsys: pytest.CaptureFixture[str]) -> None:
    main(["verifiers", "--verbose"])
    found = " ".join(capsys.readouterr().out.split())
    assert "block: in exact arithmetic, for every V and L: machine proof block_lossless" in found
    assert "spectr_gbv: in exact" not in found
