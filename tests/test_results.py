"""Results are short to print, tables in notebooks, rows of a data frame, and equal by what they say."""

from __future__ import annotations

from fractions import Fraction

import pytest

from spectheory import Certificate, ModelPair, acceptance, certify, instances, output_law
from spectheory.drafts import PrefixTree
from spectheory.results import html_table


@pytest.fixture
def certificate() -> Certificate:
    return certify("block", instances.two_token(2), 2)


def test_a_result_is_one_line_and_a_table(certificate: Certificate) -> None:
    """The headline in brackets; every fact is a row of the table."""
    assert repr(certificate) == f"<{certificate.headline()}>"
    assert "\n" not in repr(certificate)
    table = certificate._repr_html_()
    assert table.count("<tr>") == len(certificate.facts()) > 3


def test_texts_are_escaped() -> None:
    """A token or a user's name is text, never markup."""
    table = html_table("a<b>", [("<script>", "1 & 2")])
    assert table == (
        "<table><caption>a&lt;b&gt;</caption><tr><th>&lt;script&gt;</th><td>1 &amp; 2</td></tr></table>"
    )


def test_a_frame_is_the_document(certificate: Certificate) -> None:
    """One row, the document's keys, rationals as texts."""
    frame = certificate.to_frame()
    document = certificate.to_document()
    assert list(frame.columns) == list(document)
    assert len(frame) == 1
    assert frame["block_efficiency"][0] == document["block_efficiency"] == "20/9"


def test_equality_is_that_of_documents(certificate: Certificate) -> None:
    """Made twice it is one result; another verifier's is another; another kind is never equal."""
    again = certify("block", instances.two_token(2), 2)
    other = certify("token", instances.two_token(2), 2)
    assert certificate == again
    assert hash(certificate) == hash(again)
    assert certificate != other
    tree = certify("multi_round", instances.two_token(2), drafts=PrefixTree((2, 1)))
    assert tree != certify("multi_round", instances.two_token(2), 2)
    deeper = ModelPair.from_contexts(
        {(): ["1/3", "2/3"], (0,): ["1/3", "2/3"], (1,): ["1", "0"]}, {(): ["2/3", "1/3"]}, 1
    )
    assert certify("token", deeper) != certify("token", instances.two_token(1))
    assert certificate != acceptance(["1/3", "2/3"], ["2/3", "1/3"], 2)
    assert certificate != certificate.to_document()


def test_a_law_lists_its_outputs() -> None:
    """Token verification on one position of the two-token pair: A with 1/3, in two ways; B with 2/3."""
    law, again = (output_law("token", instances.two_token(1)) for _ in range(2))
    assert repr(law) == "<output law of token: block efficiency 5/3 = 1.666667, total variation 0>"
    assert law == again != output_law("token", instances.two_token(1), 2)
    document = law.to_document()
    assert document["length_probs"] == ["1/3", "2/3"]
    assert document["outputs"] == {"1": "1/3", "0 0": "1/9", "0 1": "2/9", "1 0": "1/9", "1 1": "2/9"}
    frame = law.to_frame()
    assert list(frame.columns) == ["output", "accepted", "probability"]
    assert len(frame) == 2 + 4
    assert frame["probability"].sum() == 1
    assert (frame["accepted"] * frame["probability"]).sum() == Fraction(2, 3)
    assert law._repr_html_().count("<tr>") == 2 + 5
    long = output_law("token", instances.random_rational(0, 3, 2, zero_probability=0.0))
    assert long.facts()[-1] == ("other outputs", str(len(long.to_document()["outputs"]) - 20))
