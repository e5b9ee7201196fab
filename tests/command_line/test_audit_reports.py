"""Audits as a page and as SARIF."""

import datetime
import json
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import version
from xml.etree import ElementTree

import pytest

from audits.registry import load_subject
from audits.specimens.samplers import SPECIMENS, batch_token_verification, token_verification
from scripts import load
from spectheory import audit, instances
from spectheory.auditing.subjects.provenance import Provenance
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.verdicts.audit_certificate import AuditCertificate
from spectheory.command_line.audit_reports import junit, markdown, sarif
from spectheory.foundation.results import UNDECIDED

PAGES = load("scripts", "audit_page")
PAIRS = {"thirds": instances.two_token(1), "forbidden token": instances.bernoulli("1/2", "1")}


@pytest.mark.deep
def test_the_page() -> None:
    """A row and folded details each, the date, the hash and what is assumed."""
    audits = [
        audit(load_subject("transformers"), PAIRS),
        audit(Shipped(batch_token_verification, "batch", "token_verification", mixes=()), PAIRS),
    ]
    text = PAGES.page(list(map(PAGES.entry, audits)), datetime.date(2026, 1, 2))
    assert "on 2026-01-02." in text
    assert "| token | lossless | 1 | no | 3.97e-08 | 1/33554432 |  |  |" in text
    assert "| lossless | 1 | no | 0 | no |  |  |" in text
    assert audits[0].provenance.sha256 in text
    assert "- boundary: a forbidden token is made with probability 1/33554432" in text
    assert f"- probed: {audits[0].probes[1]}\n" in text
    assert text.count("- batches: equal lengths; up to 4 requests, V = 3, L = 1 to 3\n") == 1
    assert text.count("\n## ") == 3
    assert text.count("<details") == text.count("</details>") == 2


def test_details_that_samplers_of_a_file_share_are_said_once() -> None:
    """Two samplers of one file: their names stand where they differ."""
    samplers = [load_subject(name) for name in ("transformers", "transformers-ensemble")]
    text = PAGES.page([PAGES.entry(audit(sampler, PAIRS)) for sampler in samplers], datetime.date(2026, 1, 2))
    assert text.count("<details") == 1
    assert text.count("- random numbers: rand_like") == 1
    release = f"transformers {version('transformers')}"
    assert f"| `transformers-ensemble` | {release} | token, ensemble | equals" in text
    assert "\n- `transformers-ensemble`: stated: tokens at drafted positions" in text
    assert "\n- `transformers`: boundary: a forbidden token" in text


def test_sarif_names_rule_level_and_place() -> None:
    """One result per reason of a defect, nothing for what is lossless; plain JSON."""
    wrong = audit(Shipped(*SPECIMENS["greedy_acceptance"]), PAIRS)
    document = json.loads(json.dumps(sarif([wrong, audit(Shipped(token_verification, "sampler"), PAIRS)])))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    assert run["tool"]["driver"]["name"] == "spectheory"
    assert [result["message"]["text"] for result in run["results"]] == [
        f"greedy_acceptance: {reason}" for reason in wrong.reasons
    ]
    result = run["results"][0]
    assert (result["ruleId"], result["level"]) == ("not-lossless", "error")
    assert result["ruleId"] in {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    (rare,) = sarif([audit(load_subject("transformers"), PAIRS)])["runs"][0]["results"]
    assert (rare["ruleId"], rare["level"]) == ("boundary", "warning")
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] > 1


def three_audits() -> list[AuditCertificate]:
    """Lossless, a defect, and not decided."""
    right, wrong = (
        audit(sampler, PAIRS, drafts=[1])
        for sampler in (token_verification, SPECIMENS["greedy_acceptance"][0])
    )
    scope = replace(right.scope, refused=("2 independent paths: it takes one",))
    return [
        right,
        wrong,
        replace(right, sampler="a|b", verdict=UNDECIDED, reasons=("a <seed>\x00|",), scope=scope),
    ]


def test_junit_has_a_suite_per_sampler_and_a_test_per_pair() -> None:
    """Wrong pairs and defects fail, an open verdict is an error, and what was left out is skipped."""
    root = ElementTree.fromstring(junit(three_audits()))
    assert [suite.get("name") for suite in root] == ["token_verification", "greedy_acceptance", "a|b"]
    for suite, counts in zip(root, [(3, 0, 0, 0), (3, 2, 0, 0), (4, 0, 1, 1)], strict=True):
        assert tuple(int(suite.get(n, "")) for n in ("tests", "failures", "errors", "skipped")) == counts
        tests = suite.findall("testcase")
        kinds = [child.tag for test in tests for child in test]
        assert (len(tests), *map(kinds.count, ("failure", "error", "skipped"))) == counts
        assert tests[0].get("name") == "thirds"
        said = {each.get("name"): each.get("value") for each in suite.iter("property")}
        assert "with (V, L, K) = (2, 1, 1)" in str(said["asked"])
        assert "float32" in str(said["arithmetic"])
    (error,) = root.iter("error")
    assert error.get("message") == "a <seed>\ufffd|"
    failures = [each.get("message") for each in root[1].iter("failure")]
    assert failures[0] == "total variation 0.111"
    assert "its law is not the target's" in str(failures[-1])


def test_the_table_of_a_pull_request() -> None:
    """A row per sampler with its shapes; texts are not markup."""
    audits = three_audits()
    lines = markdown(audits).splitlines()
    assert lines[2] == "1 × lossless, 1 × not lossless, 1 × undecided"
    assert lines[4] == "| sampler | verdict | asked (V, L, K) | because |"
    assert lines[6] == "| `token_verification` | lossless | (2, 1, 1) |  |"
    assert lines[8].endswith(r"| a \<seed\>" + "\x00" + r"\| |")


def test_the_scope_is_in_every_form() -> None:
    """Shapes, arithmetic and tolerance, of a lossless sampler and of a wrong one."""
    for sampler in (token_verification, SPECIMENS["greedy_acceptance"][0]):
        found = audit(sampler, {"thirds": instances.two_token(1)}, drafts=[1])
        scope = found.to_document()["scope"]
        assert (scope["shapes"], scope["processes"]) == ([[2, 1, 1]], ["1 independent path"])
        assert "float32" in scope["arithmetic"]
        assert "2^-24" in scope["tolerance"]
        assert "assumed" not in scope
        cells = dict(map(tuple, found.tables()[0].texts()))
        assert {"scope", "drafts", "arithmetic", "tolerance", "probed"} <= cells.keys()
        (verdict,) = sarif([found])["runs"][0]["properties"]["verdicts"]
        assert (verdict["verdict"], verdict["scope"]["shapes"]) == (found.headline(), [[2, 1, 1]])
        assert "- asked: 1 case with (V, L, K) = (2, 1, 1)\n" in markdown([found])
        assert 'value="1 case with (V, L, K) = (2, 1, 1)"' in junit([found])
        assert "- asked: 1 case with (V, L, K) = (2, 1, 1)\n" in PAGES.page(
            [PAGES.entry(found)], datetime.date(2026, 1, 2)
        )


def with_everything() -> AuditCertificate:
    """A defect on one pair, products of random numbers there, and three paths on another one."""
    wrong = audit(SPECIMENS["greedy_acceptance"][0], {"thirds": instances.two_token(1)}, drafts=[1])
    texts = {"arithmetic": "rationals", "tolerance": "none", "refused": ("trees: no", "more: no")}
    scope = replace(wrong.scope, processes=("one path", "two"), **texts)
    (case,) = wrong.cases
    first = replace(case, undecided=Fraction(1, 36), forbidden=Fraction(1, 3))
    other = replace(case, pair="other", num_drafts=3, process="3 paths", total_variation=Fraction(0))
    return replace(
        wrong, sampler="their-block", signature="batch", reasons=("no law", "no good"), scope=scope,
        cases=(first, other), findings=(("boundary", "rare"), ("randomness", "again")),
        batches=("ragged", "greedy"), probes=("steps",), note="a note", relaxation="a law",
        provenance=Provenance("their", "1.0", "their/file.py", "0123456789abcdef01", 7),
        primitives=("rand",), stand_ins=("coins",),
    )  # fmt: skip


def test_what_is_said_of_a_certificate_without_entries() -> None:
    """No line without a text; characters that XML does not have are replaced everywhere."""
    right = audit(token_verification, {"thirds": instances.two_token(1)}, drafts=[1])
    nothing = {"arithmetic": "", "tolerance": "", "shapes": (), "processes": (), "refused": ()}
    found = replace(
        right, sampler="own\x00", cases=(), scope=replace(right.scope, **nothing), primitives=(), probes=(),
        provenance=Provenance("", "", "own\x00.py", "ab"),
    )  # fmt: skip
    said = PAGES.entry(found)
    assert said["cells"] == ["`own\x00`", "", "token", "lossless", "", "no", "0", "no"]
    assert said["details"] == ["asked: 0 cases with (V, L, K) = "]
    assert PAGES.entry(right)["cells"][4:] == ["1", "no", "0", "no"]
    assert junit([found]).split("\n")[1:] == [
        '<testsuites name="spectheory audit">',
        '  <testsuite name="own\ufffd" tests="1" skipped="0" failures="0" errors="0">',
        "    <properties>",
        '      <property name="verdict" value="lossless" />',
        '      <property name="code" value="own\ufffd.py, sha256 ab" />',
        '      <property name="asked" value="no case" />',
        "    </properties>",
        '    <testcase name="verdict" classname="own\ufffd" file="own\ufffd.py" />',
        "  </testsuite>",
        "</testsuites>",
        "",
    ]
    (result,) = sarif([replace(found, verdict=UNDECIDED, reasons=("why",))])["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("undecided", "warning")
    numbers = (Fraction(0), Fraction(1), Fraction(1, 10**26), Fraction(1, 10**27))
    assert [PAGES._boundary(number) for number in numbers] == ["no", "1", f"1/{10**26}", "1e-27"]
    text = PAGES.page([said, PAGES.entry(with_everything())], datetime.date(2026, 1, 2))
    folded = text.partition("## Details\n")[2].partition("\n## What is assumed")[0].split("</details>")
    assert folded[0].split("\n") == [
        "", '<details markdown="1">', "<summary><code>own\x00.py</code></summary>", "", "sha256 `ab`", "",
        "- asked: 0 cases with (V, L, K) = ", "", "",
    ]  # fmt: skip
    assert "\n<summary>their: <code>their/file.py</code></summary>\n" in folded[1]
