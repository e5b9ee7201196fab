"""Samplers of several paths and of trees: the right ones pass, and one path does not show the wrong ones."""

from typing import Any

import numpy as np
import pytest
import torch

from audits.forms.children import ChildProposals, of_children
from audits.specimens.trees import TREE_SPECIMENS, reject_children
from deep import first_is_quick
from spectheory import audit, instances, output_law
from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.auditing.subjects.relaxations import typical_acceptance
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.verdicts.audit_certificate import RELAXATION
from spectheory.foundation.results import LOSSLESS
from spectheory.pairs.drafts import WithoutReplacement
from spectheory.pairs.pair import ModelPair

PAIRS = {"three tokens": instances.two_residual_tokens(1), "two drafted": random_dyadic(1, 2, 2)}


def shipped(name: str, is_right: bool, **options: Any) -> Shipped:
    specimen = TREE_SPECIMENS[name]
    function = specimen.right if is_right else specimen.wrong
    return Shipped(function, specimen.signature, name, relaxation=specimen.relaxation, **options)


def several(name: str) -> dict[str, Any]:
    """The drafts that a specimen is meant for, with at most two independent or deterministic paths."""
    specimen = TREE_SPECIMENS[name]
    if specimen.trees:
        return {"trees": specimen.trees}
    return {"num_drafts": (1, 2)}


QUICK = ("typical_acceptance",)
"""A tree with a relaxation; the others take twice as long."""


@first_is_quick(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.deep) for name in TREE_SPECIMENS],
)
def test_the_wrong_partner_shows_only_with_several_paths(name: str) -> None:
    """With one path, and for the last one with independent paths too, the audit finds nothing to find."""
    wanted = (RELAXATION,) if TREE_SPECIMENS[name].relaxation else (LOSSLESS,)
    right = audit(shipped(name, True, **several(name)), PAIRS)
    assert (right.verdict in wanted, right.reasons) == (True, ())
    assert max(case.num_drafts for case in right.cases) >= 2
    wrong = audit(shipped(name, False, **several(name)), PAIRS)
    assert wrong.is_defective
    assert all(case.num_drafts >= 2 for case in wrong.cases if case.is_wrong)
    assert audit(shipped(name, False, num_drafts=(1,)), PAIRS).verdict in wanted
    if TREE_SPECIMENS[name].shown_by == "a tree":
        assert audit(shipped(name, False, num_drafts=(1, 2)), PAIRS).verdict in wanted


def wrong_position(*given: Any) -> Any:
    tokens, positions = reject_children(*given)
    return tokens, torch.where(positions >= 0, 1 - positions, positions)


def takes_positions_for_tokens(target: Any, proposals: ChildProposals, *coins: Any) -> Any:
    return reject_children(target, proposals._replace(token_ids=proposals.token_ids.flip(1)), *coins)


@first_is_quick(
    ("wrong", "says"),
    [
        (wrong_position, "it makes no valid output with probability"),
        (
            takes_positions_for_tokens,
            "its law is not the target's on three tokens with without_replacement:2",
        ),
    ],
)
def test_what_a_call_with_children_shows(wrong: Any, says: str) -> None:
    """The candidates of a call are not in the order of the tokens."""
    pairs = {"three tokens": PAIRS["three tokens"]}
    found = audit(of_children(wrong), pairs, drafts=[WithoutReplacement((2,))])
    assert any(reason.startswith(says) for reason in found.reasons), found.reasons


def test_the_law_of_typical_acceptance() -> None:
    """By hand: with p = (1/4, 3/4) and a threshold of 0.3, token 1 is typical and token 0 is not."""
    stated = typical_acceptance(0.3, 0.55).verifier
    assert stated is not None
    pair = ModelPair.context_free_pair(["1/4", "3/4"], ["1/2", "1/2"], 1)
    assert [str(p) for p in output_law(stated, pair).masses[0]] == ["1/8", "3/8"]
    assert [str(p) for p in output_law(stated, pair, 2).masses[0]] == ["1/16", "3/16"]
    rows = np.array([[[[0.25, 0.75], [0.5, 0.5]]] * 2])
    stops = stated.outcome(np.array([[[0], [1]]]), rows, rows[:, :, :1]).stop_probs
    assert stops.tolist() == [[[0, 0], [0, 1]]]
