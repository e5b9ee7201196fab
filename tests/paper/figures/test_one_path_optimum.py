"""The program of one path and who attains it. Its data, and that its checks can fail."""

from __future__ import annotations

import pytest

from paper_support import Lie, assert_seen, told
from spectheory.paper.figures.one_path_optimum import one_path_optimum


def test_block_is_on_the_diagonal_and_token_below() -> None:
    table = one_path_optimum(((2, 2), (3, 2)), num_pairs=4).tables[0]
    for block, token in zip(table.select(verifier="block"), table.select(verifier="token"), strict=True):
        assert block["block_efficiency"] == block["optimum"]
        assert token["block_efficiency"] <= block["block_efficiency"]


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        (
            "single_path_optimum",
            told(value=lambda value: value / 9),
            ["block verification attains", "no lossless verifier"],
        ),
        ("output_law", told(total_variation=lambda value: value + 1), ["token and block verification are"]),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "one_path_optimum", called, lie, claims)
