"""The reference values of docs/theory.md are those the package computes."""

import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import coupled_drafts
import draft_values
import spectheory
import theory_examples
import tree_values
from figures.common import transport_bounds
from spectheory import instances, optima
from spectheory.exact import iteration
from spectheory.optima import bounds, greedy_polymatroid, multi_path, price_per_row, tree_shapes
from spectheory.pairs.drafts import PrefixTree, WithoutReplacement, draft_defect
from spectheory.verification.algorithms.position_by_position.kseq import KSeq
from spectheory.verification.algorithms.position_by_position.otm import OTM
from spectheory.verification.algorithms.position_by_position.spectr import SpecTr
from spectheory.verification.algorithms.spectr_gbv import conditionally_independent_bound

PAGE = Path(__file__).parent.parent / "docs" / "theory.md"
PROGRAMS = (
    coupled_drafts, draft_values, greedy_polymatroid, multi_path, price_per_row, transport_bounds,
    tree_shapes, tree_values,
)  # fmt: skip
NAMES = {
    **{name: getattr(room, name) for room in (bounds, optima) for name in room.__all__},
    **{name: value for module in PROGRAMS for name, value in vars(module).items()},
    **{name: getattr(spectheory, name) for name in spectheory.__all__},
    **vars(instances),
    **vars(iteration),
    **vars(theory_examples),
    "draft_defect": draft_defect,
    "KSeq": KSeq,
    "OTM": OTM,
    "SpecTr": SpecTr,
    "PrefixTree": PrefixTree,
    "WithoutReplacement": WithoutReplacement,
    "conditionally_independent_bound": conditionally_independent_bound,
}
HEADER = "| claim | call | value |\n|---|---|---|\n"
ROW = re.compile(r"\| (?P<claim>[^`|]+) \| `(?P<call>[^`|]+)` \| (?P<value>[^`|]+) \|")


class Claim(NamedTuple):
    claim: str
    call: str
    value: str


def claims_of(text: str) -> Iterator[Claim]:
    """The rows of all tables of values; a row that is not of their form is refused."""
    for table in text.split(HEADER)[1:]:
        for line in table.split("\n\n")[0].splitlines():
            row = ROW.fullmatch(line)
            assert row, f"not a row | claim | `call` | value |: {line}"
            yield Claim(*row.groups())


def flat(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value]


def agrees(computed: Any, printed: str) -> bool:
    """Exactly where a rational is printed, to the digits where a decimal is."""
    numbers, texts = flat(computed), printed.split(", ")
    return len(numbers) == len(texts) and all(map(_agrees, numbers, texts))


def _agrees(number: Any, text: str) -> bool:
    if "." in text:
        return f"{float(number):.{len(text.partition('.')[2])}f}" == text
    return not isinstance(number, float) and number == Fraction(text)


CLAIMS = list(claims_of(PAGE.read_text(encoding="utf-8")))


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.claim for claim in CLAIMS])
def test_value_is_what_the_call_gives(claim: Claim) -> None:
    computed = eval(claim.call, dict(NAMES))
    assert agrees(computed, claim.value), f"{claim.call} is {computed}, the page says {claim.value}"


def test_every_section_with_numbers_has_a_table() -> None:
    """Tables in §2, §3, §4 and §5, of some length: an edit that hides one is seen."""
    sections = re.split(r"^## §", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    counts = {section[0]: len(list(claims_of(section))) for section in sections}
    assert counts.keys() == set("12345678")
    assert [number for number, count in counts.items() if count >= 10] == ["2", "3", "4", "5", "8"]


def test_values_partner_wrong_values_are_caught() -> None:
    """Another rational, a float for a rational, another last digit, one number too few, a row out of form."""
    best = spectheory.optimum(instances.two_token(2), 2).value
    assert agrees(best, "212/81")
    assert not agrees(best, "211/81")
    assert not agrees(float(best), "212/81")
    assert agrees(float(best), "2.617")
    assert not agrees(float(best), "2.618")
    assert not agrees([best, best], "212/81")
    with pytest.raises(AssertionError, match="not a row"):
        list(claims_of(f"{HEADER}| no call | 212/81 |\n\n"))
