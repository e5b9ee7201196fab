"""A verifier that raises on drafts, or returns no distribution: not lossless; pair and drafts are named."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory import from_sampler, instances
from spectheory.command_line.main import main
from spectheory.exact.suite import certify_suite
from spectheory.exact.suite_cases import SuiteCase
from spectheory.foundation.errors import NotJudgedError
from spectheory.pairs.drafts import Iid
from spectheory.pairs.pair import ModelPair
from spectheory.testing import assert_lossless
from spectheory.verification.outcome import Outcome
from user_verifiers import UserToken


def cases_of(*lengths: int) -> list[SuiteCase]:
    return [SuiteCase(f"L{length}", instances.two_token(length), Iid(1)) for length in lengths]


class Fails(UserToken):
    """Does something else on drafts with the last token, where rows have this type of number."""

    name = "fails"

    def __init__(self, does: Callable[[Outcome], Any], dtype: Any = None) -> None:
        self.does, self.dtype = does, dtype

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Any:
        right = super().outcome(paths, target_rows, draft_rows)
        wrong = self.dtype in (None, target_rows.dtype) and (paths == target_rows.shape[-1] - 1).any()
        return self.does(right) if wrong else right


def raises(right: Outcome) -> Outcome:
    raise KeyError("row")


@pytest.mark.parametrize(
    ("does", "says"),
    [
        (
            raises,
            r"outcome of verifier 'fails' failed: KeyError: 'row' \(.*_verifiers.py, line \d+\)",
        ),
        (
            lambda right: None,
            "returned NoneType; expected an Outcome",
        ),
        (
            lambda right: Outcome(right.stop_probs / 2, right.correction),
            r"stop probabilities that are not a law for the drafts \[\[1\]\]: they sum to 1/2",
        ),
        (
            lambda right: Outcome(right.stop_probs, lambda *stop: right.correction(*stop) * 2),
            "correction rows that are not laws",
        ),
    ],
    ids=["raises", "no outcome", "stops", "rows"],
)
def test_a_verifier_that_fails_on_drafts_is_not_lossless(does: Any, says: str) -> None:
    """The pair and the drafts are named; on another pair it is lossless, and a partner is on both."""
    certain = ModelPair.context_free_pair(["1", "0"], ["1", "0"], 1)
    cases = [SuiteCase("certain", certain, Iid(1)), *cases_of(1)]
    found = certify_suite(Fails(does), cases)
    assert [verdict.is_lossless for verdict in found.verdicts] == [True, False]
    assert not found
    assert "NOT lossless, it fails on L1, 1 draft" in found.headline()
    assert (
        found.judgement()[1] == "fails, 1 of 2 cases of the suite failed, 1 with an error in place of a law"
    )
    assert found.counterexample is not None
    assert re.search(r"^on the drafts \('B'\): .*" + says, found.counterexample.in_words())
    document = found.to_document()
    assert document["counterexample"]["failure"]["drafts"] == [["B"]]
    assert document["verdicts"][1]["total_variation"] is None
    with pytest.raises(
        AssertionError, match=r"fails is not lossless\. On L1, 1 draft: on the drafts \('B'\)"
    ):
        assert_lossless(Fails(does), cases)
    assert certify_suite(Fails(lambda right: right), cases)


def test_an_exception_counts_on_floats_only() -> None:
    """Raised on rationals alone it says what to do.  On float64 alone it is a defect if the verifier takes
    these on other drafts; the partner takes them on none, and is judged in rationals."""
    with pytest.raises(NotJudgedError, match=r"KeyError: 'row'.* it runs on floats: .* exact = False"):
        certify_suite(Fails(raises, dtype=object), cases_of(1))
    certain = ModelPair.context_free_pair(["1", "0"], ["1", "0"], 1)
    cases = [SuiteCase("certain", certain, Iid(1)), *cases_of(1)]
    found = certify_suite(Fails(raises, dtype=np.float64), cases)
    assert all(verdict.is_lossless for verdict in found.verdicts)
    assert "NOT lossless, it fails on L1, 1 draft (float64)" in found.headline()
    assert found.counterexample is not None
    assert (
        "on the drafts ('B'): outcome of verifier 'fails' failed: KeyError" in found.counterexample.in_words()
    )
    left_out = certify_suite(Fails(raises, dtype=np.float64), cases[1:])
    assert left_out
    assert "float64 on 1 case" in left_out.headline()


def test_the_counterexample_is_that_of_the_first_failure() -> None:
    """In rationals if there is one, though floats of an earlier case have failed before."""
    first = SuiteCase("first", ModelPair.context_free_pair(["1/2", "1/2"], ["1/4", "3/4"], 1), Iid(1))

    def double(right: Outcome) -> Outcome:
        return Outcome(right.stop_probs * 2, right.correction)

    class Both(Fails):
        def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Any:
            if target_rows.shape[-3:] == (1, 3, 2) or target_rows.dtype != object:
                return super().outcome(paths, target_rows, draft_rows)
            return UserToken.outcome(self, paths, target_rows, draft_rows)

    found = certify_suite(Both(double), [first, *cases_of(2)])
    assert found.failures[0].case == "L2, 1 draft"
    assert found.counterexample is not None
    assert found.counterexample.draft_length == 2


@pytest.mark.parametrize("form", ["--json", "--csv", None])
def test_the_command_says_so(form: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 1, and a result that names pair, drafts and error; the partner has 0."""
    path = str(tmp_path / "pair.json")
    instances.two_token(1).save(path)
    forms = [] if form is None else [form]
    assert main(["certify", path, "-v", "wrong_verifiers:RaisesOnLast", *forms]) == 1
    captured = capsys.readouterr()
    assert captured.err == ""
    words = " ".join(captured.out.split())
    assert "outcome of verifier 'raises_on_last' failed: KeyError: 'row' (" in words
    if form is None:
        assert "✗ not lossless (float64): raises_on_last fails on this pair, (V, L, K) = (2, 1, 1)" in words
        assert "on the drafts ('B'): outcome of verifier" in words
    if form == "--json":
        document = json.loads(captured.out)
        assert document["failure"]["drafts"] == [["B"]]
        assert document["target_matching"] is False
        assert document["block_efficiency"] is None
    assert main(["certify", path, "-v", "user_verifiers:UserToken", *forms]) == 0


def test_a_sampler_counts_with_random_numbers_of_numpy() -> None:
    """One that raises with these is wrong.  The partner asks a stand-in for what numbers of numpy have."""

    def raises_on_draws(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> Any:
        token = generator.choice(len(target_rows[0][0]), p=target_rows[0][0])
        return [[0][token]]

    def asks_for_more(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> Any:
        return [int(generator.random().is_integer())]

    cases = cases_of(1)
    found = certify_suite(from_sampler(raises_on_draws, exact=False), cases).counterexample
    assert found is not None
    assert "IndexError" in found.in_words()
    with pytest.raises(NotJudgedError, match=r"^on L1, 1 draft: .*AttributeError.* with random numbers of"):
        certify_suite(from_sampler(asks_for_more, exact=False), cases)


def test_it_is_one_of_several(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The others keep their lines."""
    path = str(tmp_path / "pair.json")
    instances.two_token(1).save(path)
    assert main(["certify", path, "-v", "wrong_verifiers:RaisesOnLast,token"]) == 1
    captured = capsys.readouterr()
    assert "5/3" in captured.out
    assert "raises_on_last" in captured.out
    assert "on the drafts ('B')" in captured.err
