"""Every result has a headline, a document, rows and tables; tables are well formed, and texts are escaped."""

import json
import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from inspect import isabstract
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from audits.release_history import AuditedRelease, History
from audits.specimens.samplers import SPECIMENS
from spectheory import ModelPair, acceptance, audit, certify, compare, instances, optimum, output_law, prove
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.exact.suite import certify_suite
from spectheory.exact.suite_cases import SuiteCase
from spectheory.foundation.results import Result, Table, compared
from spectheory.optima import most_decoded_tokens, otm_optimum
from spectheory.optima.context_free.promises import context_free_interval
from spectheory.pairs.drafts import Iid, PrefixTree
from spectheory.simulation import plan, simulate
from spectheory.verification.defective import defects
from wrong_verifiers import RaisesOnLast

PAIR = instances.two_token(2)
RESULTS: dict[str, Callable[[], Result]] = {
    "Certificate": lambda: certify("block", PAIR, 2),
    "Certificate of a defect": lambda: certify(defects["target_correction"], PAIR),
    "Certificate of a failure": lambda: certify(RaisesOnLast(), PAIR),
    "SuiteCertificate": lambda: certify_suite("block", [SuiteCase("mine", PAIR, Iid(2))]),
    "AuditCertificate": lambda: audit(
        Shipped(*SPECIMENS["greedy_acceptance"]), {"thirds": instances.two_token(1)}
    ),
    "History": lambda: History(
        "vllm",
        (
            AuditedRelease("2", "not lossless", "its law_is not", "vllm/sampler.py", "0f", 0.25),
            AuditedRelease("1", "not audited", "no file has `f`"),
        ),
    ),
    "AntichainSolution": lambda: optimum(PAIR, 2),
    "Solution": lambda: otm_optimum(["1/3", "2/3"], ["2/3", "1/3"], 2),
    "CertifiedInterval": lambda: optimum(instances.random_float(1, 10, 3, agreement=0.3), 2),
    "Optimum": lambda: context_free_interval(PAIR, 2, 4, relative_gap=0.05),
    "SeveralCalls": lambda: most_decoded_tokens(instances.early_stop(3), 2, draft_length=3),
    "Acceptance": lambda: acceptance(["1/3", "2/3"], ["2/3", "1/3"], 2),
    "Simulation": lambda: simulate(PAIR, verifiers=["token", "greedy_block"], samples=500),
    "Comparison": lambda: compare(["block", "token"], PAIR),
    "Plan": lambda: plan(PAIR, target_rows=2),
    "Proof": lambda: prove("token", 2, 1),
    "OutputLaw": lambda: output_law("token", instances.random_rational(0, 3, 2, zero_probability=0.0)),
}


@cache
def found(name: str) -> Result:
    return RESULTS[name]()


def kinds(kind: type[Result] = Result) -> set[str]:
    below = [cls for cls in kind.__subclasses__() if cls.__module__.startswith(("spectheory", "audits"))]
    own = set() if isabstract(kind) else {kind.__name__}
    return own.union(*map(kinds, below))


def test_no_result_is_missing_in_the_table() -> None:
    assert {type(found(name)).__name__ for name in RESULTS} == kinds()


ESCAPED = re.compile(
    r"\\(?:[&%$#_{}]|text(?:backslash|asciitilde|asciicircum|less|greater)\{\}|newline )|\$\\pm\$"
)
SKELETON = (r"\centering", r"\toprule", r"\midrule", r"\bottomrule")


def check_latex(text: str) -> None:
    """Environments are nested, rows have the columns of their table, and special characters are escaped."""
    environments: list[str] = []
    columns = 0
    for line in ESCAPED.sub("x", text).splitlines():
        step = re.fullmatch(r"\\(begin|end)\{(\w+)\}(?:\{(.*)\})?", line)
        if step and step[1] == "begin":
            environments.append(step[2])
            columns = len(re.findall(r"[lr]|p\{0\.\d+\\linewidth\}", step[3] or ""))
        elif step:
            assert environments.pop() == step[2]
        elif line and line not in SKELETON:
            content = line
            if environments[-1] == "tabular":
                assert content.endswith(r" \\")
                content = content.removesuffix(r" \\")
                assert content.count("&") == columns - 1
            else:
                described = re.fullmatch(r"\\caption\{(.*)\}|\\par (.*)", content)
                assert described, line
                content = described[1] or described[2] or ""
                assert "&" not in content
            assert not set(content) & set(r"\%$#_{}~^<>"), line
    assert not environments


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_can_be_read_and_exported(name: str) -> None:
    result = found(name)
    assert repr(result) == f"<{result.headline()}>"
    assert "\n" not in repr(result)
    text = json.dumps(result.to_document())
    assert json.dumps(json.loads(text)) == text
    assert len(result.to_frame()) == len(result.rows()) >= 1
    assert list(result.to_frame().columns) == list(result.rows()[0])
    html = ElementTree.fromstring(f"<div>{result._repr_html_()}</div>")
    latex = result.to_latex()
    check_latex(latex)
    tables = result.tables()
    assert len(html.findall("table")) == latex.count(r"\toprule") == len(tables)
    for table, node in zip(tables, html.findall("table"), strict=True):
        texts = [[" ".join(cell.itertext()) for cell in row] for row in node.findall("tr")]
        wanted = ([table.header()] if table.header() else []) + table.texts()
        assert texts == [[text.replace("\n", " ") for text in row] for row in wanted]
        assert any(text for row in table.texts() for text in row)


@pytest.mark.parametrize(
    "text",
    [
        "\\begin{table}",
        "\\begin{table}\n\\begin{tabular}{l}\n\\end{table}\n\\end{tabular}",
        "\\begin{tabular}{lr}\na \\\\\n\\end{tabular}",
        "\\begin{tabular}{l}\na\n\\end{tabular}",
        "\\begin{tabular}{l}\na_1 \\\\\n\\end{tabular}",
        "\\begin{table}\n\\caption{50 %}\n\\end{table}",
        "\\begin{table}\na note\n\\end{table}",
    ],
)
def test_partner_broken_latex_is_caught(text: str) -> None:
    with pytest.raises(AssertionError):
        check_latex(text)


def test_texts_are_never_markup() -> None:
    """Tokens and names of users in titles, labels, cells and notes, also where a cell has two lines."""
    ugly = "<b> & 50%_#{x}\\~^$\nsecond"
    for is_record in (True, False):
        table = Table(ugly, [{"field": ugly}], {"a_<&>": "{field}"}, note=ugly, is_record=is_record)
        check_latex(table.to_latex())
        html = ElementTree.fromstring(f"<div>{table.to_html()}</div>")
        assert html.find("table/caption").text == "<b> & 50%_#{x}\\~^$"
        assert not html.findall(".//b")


def test_certificates_side_by_side() -> None:
    table = compared(
        "here", [certify(name, PAIR, with_optimum=name == "token") for name in ("token", "block")]
    )
    assert table.header()[:2] == ["verifier", "lossless on it"]
    assert table.texts() == [
        ["token", "yes", "19/9 = 2.111111", "0.111111", "0"],
        ["block", "yes", "20/9 = 2.222222", "", "0"],
    ]


def test_equality_is_that_of_documents() -> None:
    """Made twice it is one result; other verifiers, drafts, models and kinds of results differ."""
    token = ["1/3", "2/3"]
    deeper = ModelPair.from_contexts({(): token, (0,): token, (1,): ["1", "0"]}, {(): ["2/3", "1/3"]}, 1)
    results = [
        certify("block", PAIR, 2),
        certify("token", PAIR, 2),
        certify("multi_round", PAIR, drafts=PrefixTree((2, 1))),
        certify("multi_round", PAIR, 2),
        certify("token", deeper),
        certify("token", instances.two_token(1)),
        output_law("token", PAIR, 2),
        acceptance(token, ["2/3", "1/3"], 2),
    ]
    assert len({*results, results[0].to_document()["verifier"]}) == len(results) + 1
    assert all(one != other for one, other in pairwise([*results, results[0].to_document()]))
    again = certify("block", PAIR, 2)
    assert (again, hash(again)) == (results[0], hash(results[0]))


def test_a_line_with_an_empty_field_is_left_out() -> None:
    """A fact without any line too; of several rows the cell is empty, so that the columns stay."""
    columns = {"law": "{law:short}\nat most {bound:.2f}", "other": "{other}", "count": "{count:,}"}
    rows = [{"law": Fraction(1, 3), "bound": None, "other": (), "count": 1000}, {"bound": Fraction(2, 3)}]
    assert Table("", rows, columns).texts() == [["1/3", "", "1,000"], ["at most 0.67", "", ""]]
    assert Table("", rows[:1], columns, is_record=True).texts() == [["law", "1/3"], ["count", "1,000"]]
    lines = Table("", [{"reasons": ["first", "second"]}], is_record=True)
    assert lines.texts() == [["reasons", "first"], ["reasons", "second"]]


def test_numbers_are_aligned_on_the_right() -> None:
    table = Table("", [{"name": "x", "a": -0.5, "b": "1.5 to 2"}, {"name": "2", "a": 1, "b": ""}])
    assert table.numeric() == [False, True, True]
    assert Table("", []).to_latex().count(r"\\") == 0


def test_a_law_lists_its_outputs() -> None:
    """Token verification on one position of the two-token pair: A with 1/3, in two ways; B with 2/3."""
    law = output_law("token", instances.two_token(1))
    assert repr(law) == "<output law of token: block efficiency 5/3 = 1.666667, total variation 0>"
    document = law.to_document()
    assert document["length_probs"] == ["1/3", "2/3"]
    assert document["outputs"] == {"1": "1/3", "0 0": "1/9", "0 1": "2/9", "1 0": "1/9", "1 1": "2/9"}
    frame = law.to_frame()
    assert list(frame.columns) == ["output", "accepted", "probability"]
    assert len(frame) == 2 + 4
    assert frame["probability"].sum() == 1
    assert (frame["accepted"] * frame["probability"]).sum() == Fraction(2, 3)
    lengths, outputs = law.tables()
    assert (len(lengths.rows), len(outputs.rows), outputs.note) == (2, 5, "")
    long = found("OutputLaw")
    assert long.tables()[1].note == f"and {len(long.to_document()['outputs']) - 20} other outputs"


def test_brackets_behind_the_end_of_a_line_are_text() -> None:
    """LaTeX reads them, and a star, as arguments of the line break otherwise."""
    table = Table("", [{"name": "[1ex] a", "value": "*"}])
    assert "{}[1ex] a & {}*" in table.to_latex()
