"""The study at equal numbers of target rows: what it sums, what it keeps, and what it refuses."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from models_support import PROMPTS as TEXTS
from models_support import save_pair
from spectheory.decoding import CallCosts
from spectheory.foundation.errors import InvalidInputError
from spectheory.models import LanguageModelPair, draft_and_score, likeliest_nodes, prefill
from spectheory.models.sampling import SamplingOptions
from spectheory.pairs.drafts import ConfidenceTree
from spectheory.paper import equal_rows, read_study_prompts, study, study_results
from spectheory.paper.equal_rows import StudyPrompt, StudySettings, node_probs
from spectheory.paper.measured import measurement
from spectheory.paper.study_results import EVERYWHERE, best_verifiers, least_of_halves
from spectheory.simulation.estimates import Tally
from spectheory.verification.algorithms import verifiers

OF_A, OF_B = ("import os", "def main(", "x ="), ("import re", "def other(", "y =")
PROMPTS = [
    StudyPrompt(domain, text)
    for texts in zip(OF_A, OF_B, strict=True)
    for domain, text in zip("ab", texts, strict=True)
]
SMALL: dict[str, Any] = {
    "nodes": (2, 4, 8), "draft_length": 2, "temperatures": (0.8,), "max_new_tokens": 4, "every": 2,
    "batch_size": 2, "max_prompt_tokens": 8,
}  # fmt: skip
OPTIONS = SamplingOptions(temperature=0.8)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return save_pair(tmp_path_factory.mktemp("study"), "llama")


@pytest.fixture(scope="module")
def small(folders: tuple[Path, Path]) -> study_results.Study:
    return study(folders[0], [str(folders[1])], PROMPTS, **SMALL)


@pytest.mark.parametrize("nodes", [1, 5, 12])
def test_nodes_of_a_tree_earn_what_naive_sampling_earns(folders: tuple[Path, Path], nodes: int) -> None:
    """1 + Σ p over the first nodes of a larger tree is E[τ+1] of the smaller tree (Statement 5.27)."""
    pair = LanguageModelPair.load(*folders, device="cpu")
    prefilled = prefill(pair, TEXTS)
    paths = likeliest_nodes(prefilled, ConfidenceTree(12, 3), 3, OPTIONS)
    prefilled.draft.forget_drafts()
    values = 1 + node_probs(prefilled, paths, OPTIONS).cumsum(-1)
    process = ConfidenceTree(nodes, 3)
    drafted = draft_and_score(prefilled, process, 3, pair.generator(0), OPTIONS)
    arrays = drafted.paths, drafted.target_rows, drafted.draft_rows
    earned = verifiers["naive_sampling"].bind(process, None).outcome(*arrays).expected_tokens()
    torch.testing.assert_close(values[:, nodes - 1], earned, rtol=1e-5, atol=1e-5)
    wrong = 1 + node_probs(prefilled, paths.flip(1), OPTIONS).cumsum(
        -1
    )  # the partner: the least likely first
    assert nodes == 12 or not torch.allclose(wrong[:, nodes - 1], earned, rtol=1e-3)


def test_a_draft_that_is_the_target(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every path is accepted, and a cap that never binds says so; the likeliest nodes earn less.

    The partner is ``greedy_multipath``, which loses with several paths here (exhibit ``greedy_falls``).
    """
    for module in (equal_rows, study_results):
        monkeypatch.setattr(module, "CAPS", (2.0,))
    found = study(folders[0], [str(folders[0])], PROMPTS, **SMALL)
    rows = [row for row in found.rows() if row["drafts"] == "independent"]
    assert {row["verifier"] for row in rows} >= {"block", "traversal", "scored_multipath"}
    greedy = [row for row in rows if row["verifier"] == "greedy_multipath" and row["nodes"] == 8]
    assert min(row["missed"] for row in greedy) > 0.1
    rows = [row for row in rows if row["verifier"] != "greedy_multipath"]
    assert [row["block_efficiency"] for row in rows] == pytest.approx([3.0] * len(rows), abs=1e-5)
    assert [row["missed"] for row in rows] == pytest.approx([0.0] * len(rows), abs=1e-5)
    assert max(row["block_efficiency"] for row in found.rows() if row["drafts"] == "likeliest") < 3
    accepted = [row["acceptance"] for row in found.rows() if row["verifier"] == "token"]
    assert np.array(accepted) == pytest.approx(np.ones((3, 2)), abs=1e-5)


def test_more_nodes_earn_more_and_no_more_than_the_bound(folders: tuple[Path, Path]) -> None:
    """The likeliest nodes are nested; all means and domains are those of one set of contexts."""
    found = study(folders[0], [str(folders[1]), "prompt:ngram-2"], PROMPTS, **SMALL)
    assert {row["domain"] for row in found.rows()} == {EVERYWHERE, "a", "b"}
    for draft in found.settings["drafts"]:
        earned = [
            row["block_efficiency"] for row in found.rows()
            if (row["domain"], row["draft"], row["drafts"]) == (EVERYWHERE, draft, "likeliest")
        ]  # fmt: skip
        assert len(earned) == 3
        assert earned == sorted(earned)
    everywhere = [row for row in found.rows() if row["domain"] == EVERYWHERE]
    assert {row["contexts"] for row in everywhere} == {12}  # 6 texts at 2 of their 4 tokens
    assert [row["draft"] for row in everywhere if row["drafts"] != "likeliest"].count("prompt:ngram-2") == 0
    accepted = [row["acceptance"] for row in found.rows() if row["verifier"] == "token"]
    assert 0 < np.min(accepted) < np.max(accepted) < 1


@pytest.mark.deep
def test_a_study_goes_on_and_several_processes_give_the_same_bytes(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    asked = folders[0], [str(folders[1])], PROMPTS
    steps: list[tuple[int, int]] = []
    found = study(*asked, checkpoint=whole, progress=lambda *now: steps.append(now), **SMALL)
    assert steps[-1] == (24, 24)
    lines = whole.read_bytes().splitlines(keepends=True)
    part.write_bytes(b"".join(lines[:2]))
    assert study(*asked, checkpoint=part, **SMALL) == found
    assert part.read_bytes() == whole.read_bytes()
    with pytest.raises(InvalidInputError, match="belongs to another run"):
        study(*asked, checkpoint=part, **(SMALL | {"seed": 1}))
    assert study(*asked, **(SMALL | {"seed": 1})) != found


def tally(*sums: float) -> list[Tally]:
    found = Tally.zeros(len(sums), 1)
    found.add_calls(
        np.arange(len(sums)), np.array(sums), np.zeros(len(sums), int), np.ones((len(sums), 2)) / 2
    )
    return [found]


def test_a_cap_is_chosen_on_the_other_half() -> None:
    """The first candidate is least on the first half, so that the second half is judged by it."""
    found = least_of_halves([tally(1.0, 1.0, 3.0, 3.0), tally(2.0, 2.0, 2.0, 2.0)])
    assert [part.expected.tolist() for part in found] == [[2.0, 2.0], [3.0, 3.0]]


def test_bundled_prompts_of_the_study() -> None:
    """As many of every domain, all different."""
    prompts = read_study_prompts()
    assert [prompt.domain for prompt in prompts[:3]] == ["prose", "code", "chat"]
    assert len({prompt.text for prompt in prompts}) == len(prompts) == 96


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"nodes": (3,)}, r"multiples of the draft length 2, got \[3\]"),
        ({"nodes": ()}, "got none"),
        ({"every": 0}, "every must be"),
        ({"every": 8}, "no token of a text is judged: the first would be number 5 of 4"),
        ({"nodes": (4, 4)}, r"nodes must differ, got \(4, 4\)"),
        ({"temperatures": (1.0, 1.0)}, "temperatures must differ"),
        ({"temperatures": (0.0,)}, "temperatures must be positive"),
        ({"temperatures": ()}, "temperatures must be positive"),
    ],
)
def test_refused_settings(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        StudySettings(**(SMALL | changes))


@pytest.mark.parametrize(
    ("name", "length", "drafted"),
    [
        ("independent", 4, [8, 16, 32, 64]), ("distinct", 4, [8, 16, 32, 64]),
        ("likeliest", 4, [8, 16, 32, 64]),
        ("branching", 4, [7, 14, 28, 63]), ("delayed", 4, [7, 16, 31, 64]), ("hubs", 4, [8, 14, 30, 30]),
        ("branching", 1, [0, 0, 0, 0]), ("delayed", 1, [0, 0, 0, 0]), ("hubs", 1, [2, 2, 2, 2]),
        ("branching", 8, [0, 15, 30, 60]), ("hubs", 8, [0, 16, 30, 54]),
    ],
)  # fmt: skip
def test_what_is_drafted_within_a_budget(name: str, length: int, drafted: list[int]) -> None:
    settings = StudySettings(draft_length=length)
    assert [settings.drafted(name, nodes) for nodes in settings.nodes] == drafted


def test_leads_are_over_the_best_verifier_of_independent_drafts(small: study_results.Study) -> None:
    """At the same budget; that they are paired is ``paired_gain``'s own."""
    rows = [row for row in small.rows() if row["domain"] == EVERYWHERE and row["nodes"] == 8]
    (leader,) = (row for row in rows if row["drafts"] == "independent" and row["lead"] is None)
    best = max(row["block_efficiency"] for row in rows if row["drafts"] == "independent")
    assert leader["block_efficiency"] == best
    for row in rows:
        if row is not leader:
            assert row["lead"] == pytest.approx(row["block_efficiency"] - best, abs=1e-9)
            assert row["lead_low"] <= row["lead"] <= row["lead_high"]


def test_no_scheduler_answers(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spectheory.simulation.parallel.SCHEDULER_SECONDS", 0.2)
    with pytest.raises(InvalidInputError, match=r"no dask scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        study(folders[0], [str(folders[1])], PROMPTS, cluster="tcp://127.0.0.1:9", **SMALL)


def test_measured_costs_are_in_the_rows(
    folders: tuple[Path, Path], small: study_results.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call with N nodes takes 1 + N/8 seconds, and drafting one; without costs nothing is said."""
    asked: list[tuple[str, int]] = []

    def costs(pair: Any, prompt: Any, process: Any, length: int, options: Any) -> CallCosts:
        assert (length, options) == (2, OPTIONS)
        nodes = process.num_nodes if isinstance(process, ConfidenceTree) else int(process.draws(length).sum())
        asked.append((process.name, nodes))
        return CallCosts(1.0, 1.0, 1 + nodes / 8)

    monkeypatch.setattr("spectheory.decoding.call_costs", costs)
    found = study(folders[0], [str(folders[1])], PROMPTS, measure_costs=True, **SMALL)
    assert len(set(asked)) == len(asked) == 16
    for row in found.rows():
        assert (row["cost_ratio"], row["row_cost"]) == (0.5, 0.125)
        drafted = StudySettings(**SMALL).drafted(row["drafts"], row["nodes"])
        assert row["speed_up"] == row["block_efficiency"] / (2 + drafted / 8)
    titles = [table.title for table in found.tables()]
    assert [title.startswith("predicted speed-up") for title in titles] == [False, False, True, False]
    assert {row["speed_up"] for row in small.rows()} == {None}
    assert not any("speed-up" in table.title for table in small.tables())


def test_the_best_verifiers(small: study_results.Study) -> None:
    """At the largest budget alone, over all temperatures; the table has their lines and no others."""

    def row(verifier: str, nodes: int, earned: float) -> dict[str, Any]:
        return {
            "draft": "d", "drafts": "independent", "verifier": verifier, "nodes": nodes,
            "block_efficiency": earned,
        }  # fmt: skip

    rows = [row("a", 4, 9.0), row("a", 8, 2.0), row("b", 8, 3.0), row("a", 8, 2.5), row("b", 8, 1.0)]
    assert best_verifiers(rows) == {("d", "independent"): "a"}
    best, whole = (table.rows for table in small.tables()[:2])
    ways = ["independent", "distinct", "branching", "delayed", "hubs", "likeliest"]
    assert [line["drafts"] for line in best] == ways
    assert all({name: line[name] for name in whole[0]} in whole for line in best)
    for line in best:
        rivals = [float(other["8 nodes"].split()[0]) for other in whole
                  if other["drafts"] == line["drafts"] and other["8 nodes"]]  # fmt: skip
        assert float(line["8 nodes"].split()[0]) == max(rivals)


def test_a_study_of_one_text_is_refused(folders: tuple[Path, Path]) -> None:
    target, draft = folders
    for drafts, prompts, got in (
        ([draft], PROMPTS[:1], "1 prompt and 1 draft model"),
        ([], PROMPTS, f"{len(PROMPTS)} prompts and 0 draft models"),
    ):
        with pytest.raises(InvalidInputError, match=f"two prompts and a draft model at least, got {got}"):
            study(target, drafts, prompts)


def test_processes_are_a_number_or_auto(folders: tuple[Path, Path]) -> None:
    with pytest.raises(InvalidInputError, match="a whole number of at least 1 or 'auto', got 'all'"):
        study(folders[0], [str(folders[1])], PROMPTS, jobs="all", **SMALL)


def test_equal_prompts_are_refused(folders: tuple[Path, Path]) -> None:
    """Each would count as a cluster of its own."""
    with pytest.raises(InvalidInputError, match="prompts must differ"):
        study(folders[0], [str(folders[1])], [PROMPTS[0], PROMPTS[0]._replace(domain="b")], **SMALL)
    longer = PROMPTS[0]._replace(text=f"# {PROMPTS[0].text}")  # equal in the last token, which alone is read
    with pytest.raises(InvalidInputError, match="prompts must differ in the tokens that are read"):
        study(folders[0], [str(folders[1])], [PROMPTS[0], longer], **SMALL | {"max_prompt_tokens": 1})


def test_a_domain_must_not_be_called_as_all_of_them(folders: tuple[Path, Path]) -> None:
    with pytest.raises(InvalidInputError, match="a domain is called 'all'"):
        study(folders[0], [str(folders[1])], [PROMPTS[0], StudyPrompt(EVERYWHERE, "import os")], **SMALL)


def test_the_names_of_curves_do_not_overlap_and_the_best_one_is_bold() -> None:
    """A panel per temperature and draft model, of the committed study."""
    rows = measurement("study").select(domain=EVERYWHERE)
    axes = study_results.draw(rows).axes
    assert len(axes) == 2 * 3
    for panel in axes:
        heights = sorted(text.get_window_extent().y0 for text in panel.texts)
        assert all(after - before > 20 for before, after in pairwise(heights))
        ends = {text.get_text(): text.xy[1] for text in panel.texts if "ceiling" not in text.get_text()}
        bold = [text.get_text() for text in panel.texts if text.get_fontweight() == "bold"]
        assert bold == [max(ends, key=ends.__getitem__)]


def test_no_curve_of_independent_paths_is_above_its_ceiling() -> None:
    """The broken line of every panel that has one; the partner: the estimate alone is below two curves."""
    rows = measurement("study").select(domain=EVERYWHERE)
    panels = study_results.draw(rows).axes
    found = 0
    for panel in panels:
        broken = [line for line in panel.lines if line.get_linestyle() == "--"]
        curves = [line for line in panel.lines if line.get_label() and line.get_linewidth() > 2]
        if broken and "scored" in next(t.get_text() for t in panel.texts if t.get_fontweight() == "bold"):
            found += 1
            assert (broken[0].get_ydata() >= np.array(curves[0].get_ydata())).all()
    assert found == 4
    independent = [row for row in rows if row["drafts"] == "independent" and row["ceiling"] is not None]
    assert any(row["block_efficiency"] > row["ceiling"] for row in independent)


def test_the_table_of_the_readme_is_that_of_the_measurement() -> None:
    found = measurement("study")
    best = study_results.Study({"temperatures": (0.6, 1.0), "confidence": 0.95}, found.select()).best()
    lines: dict[tuple[str, ...], list[str]] = {}
    for line in best.rows:
        key = line["draft model"], line["drafts"], line["verifier"]
        cells = [line[name] for name in ("64 nodes", "lead", "misses the ceiling by")]
        lines[key] = [*lines.get(key, key), *cells]
    page = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").splitlines()
    drafts = tuple(f"| `{name}` |" for name in ("smollm2-draft", "target:last-4", "prompt:ngram-3"))
    rows = [row.split("|")[1:-1] for row in page if row.startswith(drafts)]
    assert [[cell.strip().strip("`") for cell in row] for row in rows] == list(lines.values())
    assert len(rows) == 13
