"""The study at equal numbers of target rows (``benchmarks/study.py``): what it sums, and what it keeps."""

from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from models_support import PROMPTS as TEXTS
from models_support import save_pair
from scripts import load
from spectheory.models import LanguageModelPair
from spectheory.models.drafting import draft_and_score, likeliest_nodes, prefill
from spectheory.models.sampling import SamplingOptions
from spectheory.pairs.drafts import ConfidenceTree
from spectheory.simulation.estimates import Tally
from spectheory.verification.algorithms import verifiers


@cache
def script() -> ModuleType:
    """Loaded by the first test that needs it: it draws with matplotlib."""
    return load("benchmarks", "study")


CallCosts = load("benchmarks", "call_costs").CallCosts

PROMPTS = [
    ("a", "import os"), ("b", "import re"), ("a", "def main("), ("b", "def other("),
    ("a", "x ="), ("b", "y ="),
]  # fmt: skip
SMALL: dict[str, Any] = {
    "nodes": (2, 4, 8), "draft_length": 2, "temperatures": (0.8,), "tokens": 4, "every": 2, "batch_size": 2,
    "max_prompt_tokens": 8,
}  # fmt: skip
OPTIONS = SamplingOptions(temperature=0.8)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return save_pair(tmp_path_factory.mktemp("study"), "llama")


def study(folders: tuple[Path, Path], *drafts: str) -> Any:
    names = drafts or (str(folders[1]),)
    pairs = {name: LanguageModelPair.load(folders[0], name, device="cpu") for name in names}
    return script().Study(pairs, PROMPTS, **SMALL)


def rows_of(asked: Any) -> list[dict[str, Any]]:
    return list(script().rows(asked, [asked.sums(batch) for batch in range(len(asked.batches))], {}))


@pytest.fixture(scope="module")
def small(folders: tuple[Path, Path]) -> list[dict[str, Any]]:
    return rows_of(study(folders))


@pytest.mark.parametrize("nodes", [1, 5, 12])
def test_nodes_of_a_tree_earn_what_naive_sampling_earns(folders: tuple[Path, Path], nodes: int) -> None:
    """1 + Σ p over the first nodes of a larger tree is E[τ+1] of the smaller tree (Statement 5.27)."""
    pair = LanguageModelPair.load(*folders, device="cpu")
    prefilled = prefill(pair, TEXTS)
    paths = likeliest_nodes(prefilled, ConfidenceTree(12, 3), 3, OPTIONS)
    prefilled.draft.forget_drafts()
    values = 1 + script().node_probs(prefilled, paths, OPTIONS).cumsum(-1)
    process = ConfidenceTree(nodes, 3)
    drafted = draft_and_score(prefilled, process, 3, pair.generator(0), OPTIONS)
    arrays = drafted.paths, drafted.target_rows, drafted.draft_rows
    earned = verifiers["naive_sampling"].bind(process, None).outcome(*arrays).expected_tokens()
    torch.testing.assert_close(values[:, nodes - 1], earned, rtol=1e-5, atol=1e-5)
    # The partner: the least likely first.
    wrong = 1 + script().node_probs(prefilled, paths.flip(1), OPTIONS).cumsum(-1)
    assert nodes == 12 or not torch.allclose(wrong[:, nodes - 1], earned, rtol=1e-3)


@pytest.mark.deep
def test_a_draft_that_is_the_target(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every path is accepted, and a cap that never binds says so; the likeliest nodes earn less.

    The partner is ``greedy_multipath``, which loses with several paths here (figure ``greedy_falls``).
    """
    monkeypatch.setattr(script(), "CAPS", (2.0,))
    found = rows_of(study(folders, str(folders[0])))
    rows = [row for row in found if row["drafts"] == "independent"]
    assert {row["verifier"] for row in rows} >= {"block", "traversal", "scored_multipath"}
    greedy = [row for row in rows if row["verifier"] == "greedy_multipath" and row["nodes"] == 8]
    assert min(row["missed"] for row in greedy) > 0.1
    rows = [row for row in rows if row["verifier"] != "greedy_multipath"]
    assert [row["block_efficiency"] for row in rows] == pytest.approx([3.0] * len(rows), abs=1e-5)
    missed = [row["missed"] for row in rows if row["missed"] is not None]
    assert missed == pytest.approx([0.0] * len(missed), abs=1e-5)
    assert max(row["block_efficiency"] for row in found if row["drafts"] == "likeliest") < 3
    accepted = [row["acceptance"] for row in found if row["verifier"] == "token"]
    assert np.array(accepted) == pytest.approx(np.ones((3, 2)), abs=1e-5)


@pytest.mark.deep
def test_more_nodes_earn_more(folders: tuple[Path, Path]) -> None:
    """The likeliest nodes are nested; all means and domains are those of one set of contexts."""
    found = rows_of(study(folders, str(folders[1]), "prompt:ngram-2"))
    assert {row["domain"] for row in found} == {"all", "a", "b"}
    everywhere = [row for row in found if row["domain"] == "all"]
    for draft in (str(folders[1]), "prompt:ngram-2"):
        likeliest = [row for row in everywhere if (row["draft"], row["drafts"]) == (draft, "likeliest")]
        earned = [row["block_efficiency"] for row in likeliest]
        assert len(earned) == 3
        assert earned == sorted(earned)
    assert {row["contexts"] for row in everywhere} == {12}  # 6 texts at 2 of their 4 tokens
    assert [row["draft"] for row in everywhere if row["drafts"] != "likeliest"].count("prompt:ngram-2") == 0
    accepted = [row["acceptance"] for row in found if row["verifier"] == "token"]
    assert 0 < np.min(accepted) < np.max(accepted) < 1


def tally(*sums: float) -> list[Tally]:
    found = Tally.zeros(len(sums), 1)
    found.add_calls(
        np.arange(len(sums)), np.array(sums), np.zeros(len(sums), int), np.ones((len(sums), 2)) / 2
    )
    return [found]


def test_a_cap_is_chosen_on_the_other_half() -> None:
    """The first candidate is least on the first half, so that the second half is judged by it."""
    found = script().least_of_halves([tally(1.0, 1.0, 3.0, 3.0), tally(2.0, 2.0, 2.0, 2.0)])
    assert [part.expected.tolist() for part in found] == [[2.0, 2.0], [3.0, 3.0]]


def test_leads_are_over_the_best_verifier_of_independent_drafts(small: list[dict[str, Any]]) -> None:
    """At the same budget; that they are paired is ``paired_gain``'s own."""
    rows = [row for row in small if row["domain"] == "all" and row["nodes"] == 8]
    (leader,) = (row for row in rows if row["drafts"] == "independent" and row["lead"] is None)
    best = max(row["block_efficiency"] for row in rows if row["drafts"] == "independent")
    assert leader["block_efficiency"] == best
    for row in rows:
        if row is not leader:
            assert row["lead"] == pytest.approx(row["block_efficiency"] - best, abs=1e-9)
            assert row["lead_low"] <= row["lead"] <= row["lead_high"]
