"""spectheory audit: tables, documents, pages, exit codes and what it refuses."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path

import pytest

from cli_support import run_json, write_pair
from spectheory import instances
from spectheory.audit.libraries import load_subject
from spectheory.audit.shipped import Shipped
from spectheory.audit.specimens import token_verification
from spectheory.auditing import audit_sampler
from spectheory.command_line.audit import page
from spectheory.command_line.main import main

SPECIMENS = "spectheory.audit.specimens"


def test_a_right_and_a_wrong_function(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Exit 0 and 1; the pair of a file."""
    pair = write_pair(tmp_path, draft_length=1)
    right = ["audit", f"{SPECIMENS}:token_verification", "--as", "sampler", "--pair", str(pair)]
    document = run_json(capsys, *right)
    assert (document["sampler"], document["verdict"]) == ("token_verification", "exactly lossless")
    assert [case["pair"] for case in document["cases"]] == [str(pair)]
    wrong = [word.replace("token_verification", "greedy_acceptance") for word in right]
    assert main(wrong) == 1
    assert "its law is not the target's" in capsys.readouterr().out


def test_several_samplers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """One object, one table, a line each."""
    pair = str(write_pair(tmp_path, draft_length=1))
    names = ["audit", "transformers", "transformers-ensemble", "--pair", pair]
    assert main([*names, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["audits"]
    assert [audit["verdict"] for audit in found] == [
        "lossless up to arithmetic",
        "equals its stated relaxation",
    ]
    assert main(names) == 0
    assert "audits of shipped samplers" in capsys.readouterr().out
    assert main([*names, "--csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_the_page() -> None:
    """A row and a section each, the date, the hash and what is assumed."""
    pairs = {"thirds": instances.two_token(1), "forbidden token": instances.bernoulli("1/2", "1")}
    audits = [
        audit_sampler(load_subject("transformers"), pairs),
        audit_sampler(Shipped(token_verification, "sampler"), pairs),
    ]
    text = page(audits, datetime.date(2026, 1, 2))
    assert "(2026-01-02)" in text
    assert "| defect | 2.98e-08 | 1/33554432 | 1.5e+08 |" in text
    assert "| exactly lossless | 0 | no | never |" in text
    assert audits[0].provenance.sha256 in text
    assert "- it makes a token that the target forbids" in text
    assert text.count("\n## ") == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nothing"], "no sampler is called 'nothing'"),
        (
            [f"{SPECIMENS}:token_verification"],
            "say how .* is called, with --as SIGNATURE: speculative_sampling",
        ),
        ([f"{SPECIMENS}:token_verification", "--as", "coin"], "did you mean 'coins'"),
        ([f"{SPECIMENS}:SPECIMENS", "--as", "coins"], "is dict, expected a function"),
        ([f"{SPECIMENS}:nothing", "--as", "coins"], "no attribute of module"),
        (["transformers", "--as", "coins"], "a library's sampler knows"),
        (["transformers", "--json", "--page"], "ask for one of them"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    assert main(["audit", *words]) == 2
    error = capsys.readouterr().err
    assert re.search(says, error)
    assert error.count("\n") == 1
