"""Samplers that count accepted tokens: functions with signatures of the libraries, right and wrong ones."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from audited import DRAFT, PATHS, TARGET, recorded
from audits.libraries import deepspec, dflash, economize, flashspec, sglang_uno
from deep import first_is_quick
from spectheory import audit, instances
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import Row
from spectheory.auditing.tape.races import UndefinedDrawError

PAIR = {"thirds": instances.two_token(2)}
LIBRARIES: dict[str, Any] = {
    "deepspec": deepspec,
    "dflash": dflash,
    "economize": economize,
    "flashspec": flashspec,
    "uno": sglang_uno,
}


def verified(drafts: Any, target: Any, draft: Any, coins: Any, power: int) -> tuple[Any, Any]:
    """Token verification of every request; with another power than 1 the residual is wrong."""
    counts, tokens = [], []
    for path, rows, drawn_from, thrown in zip(drafts.tolist(), target, draft, coins, strict=True):
        count, row = len(path), rows[-1]
        for place, token in enumerate(path):
            if thrown[place] >= rows[place, token] / drawn_from[place, token]:
                count = place
                row = (rows[place] - drawn_from[place]).clamp(min=0) ** power + (power - 1) * 0.5
                break
        counts.append(count)
        tokens.append(torch.multinomial(row, 1))
    return torch.tensor(counts), torch.cat(tokens)


def functions(power: int) -> dict[str, Any]:
    """By library, what takes its arguments."""

    def drawn(drafts: Any, target: Any, draft: Any, generator: Any = None) -> tuple[Any, Any]:
        return verified(drafts, target, draft, torch.rand(drafts.shape, generator=generator), power)

    def deepspec(target_model: Any, proposal: Any, start: int, **others: Any) -> Any:
        count = proposal.draft_token_count
        assert others["position_ids"].tolist() == [list(range(start, start + count + 1))]
        assert (others["max_proposal_tokens"], others["temperature"]) == (count, 1)
        target, drafts = target_model().logits.softmax(-1), proposal.verify_input_ids[:, start + 1 :]
        count, token = drawn(drafts, target, proposal.draft_probs)
        return SimpleNamespace(accepted_draft_tokens=int(count), next_token=int(token))

    def economize(_: Any) -> Any:
        def verify_tree(logits: Any, tree: Any, selector: Any) -> Any:
            target = selector.distributions(logits)
            count, token = drawn(tree.tokens, target, tree.probs, selector.generator)
            return (list(range(int(count))),), (int(token),)

        return SimpleNamespace(verify_tree=verify_tree)

    return {
        "deepspec": deepspec,
        "dflash": lambda draft_tokens, target_probs, draft_probs: drawn(
            draft_tokens, target_probs, draft_probs
        ),
        "economize": economize,
        "flashspec": lambda draft_token_ids, draft_logprobs, target_logprobs, generator: torch.stack(
            drawn(draft_token_ids, target_logprobs.exp(), draft_logprobs.exp(), generator), dim=1
        ),
        "uno": lambda candidates, target_probs, draft_probs, accept_uniforms, **_: verified(
            candidates[:, 1:], target_probs, draft_probs, accept_uniforms, power
        ),
    }


@first_is_quick("name", list(functions(1)))
def test_one_path(name: str) -> None:
    signature = "batch" if name in ("flashspec", "uno") else "sampler"
    for power, verdicts in ((1, {"lossless"}), (2, {"not lossless"})):
        function = functions(power)[name]
        sampler = getattr(LIBRARIES[name], name)(SimpleNamespace(call=function, function=function))
        found = audit(Shipped(sampler, signature, num_drafts=(1,)), PAIR, stop_at_first=True)
        assert found.verdict in verdicts, found.headline()


def test_what_functions_of_one_path_are_given() -> None:
    """Of several paths the first one; their answers are read as whole numbers."""
    answer = SimpleNamespace(accepted_draft_tokens=torch.tensor(1), next_token=torch.tensor(2))
    given, code = recorded(answer)
    assert repr(deepspec.deepspec(code)(PATHS, TARGET, DRAFT, None)) == "[1, 2]"
    assert_close(given.pop("target_model")(input_ids=None).logits, TARGET[:1].log())
    assert_close(
        vars(given.pop("proposal")),
        {"draft_token_count": 3, "verify_input_ids": torch.tensor([[0, 1, 0, 2]]), "draft_probs": DRAFT[:1]},
    )
    others = {"position_ids": torch.tensor([[0, 1, 2, 3]]), "start": 0, "past_key_values_target": None}
    assert_close(given, others | {"temperature": 1.0, "max_proposal_tokens": 3})

    given, code = recorded((torch.tensor([2]), torch.tensor([0])))
    assert repr(dflash.dflash(code)(PATHS, TARGET, DRAFT, None)) == "[1, 0, 0]"
    assert_close(given, {"draft_tokens": PATHS[:1], "target_probs": TARGET[:1], "draft_probs": DRAFT[:1]})


@first_is_quick("count", [-1, 3], quick=2)
def test_a_count_of_no_drafted_tokens(count: int) -> None:
    """Not lossless with the count named, where a slice would take another number of tokens."""

    def call(draft_tokens: Any, target_probs: Any, draft_probs: Any) -> Any:
        found, token = verified(draft_tokens, target_probs, draft_probs, torch.rand(draft_tokens.shape), 1)
        return (count if int(found) == 2 + min(count, 0) else found), token

    sampler = dflash.dflash(SimpleNamespace(call=call))  # type: ignore[arg-type]
    found = audit(Shipped(sampler, "sampler", num_drafts=(1,)), PAIR, stop_at_first=True)
    assert found.verdict == "not lossless"
    assert f"it says that {count} of 2 drafted tokens are accepted" in found.reasons[0]


@pytest.mark.parametrize("nodes", [[0, 4], [1], [3, 3], [-1], [0, 1, 2, 3]])
def test_nodes_that_are_no_branch(nodes: list[int]) -> None:
    """Each accepted node is a child of the one before."""
    verifier = SimpleNamespace(verify_tree=lambda *_: ((nodes,), (0,)))
    sampler = economize.economize(SimpleNamespace(function=lambda _: verifier))  # type: ignore[arg-type]
    with pytest.raises(UndefinedDrawError, match="and is no child of it"):
        sampler(PATHS, TARGET, DRAFT, None)


def test_what_trees_are_made_of_paths() -> None:
    """Each path is a branch of its own, whose nodes follow one another; the answer is a branch."""
    made: list[Any] = []

    def verify_tree(*given: Any) -> Any:
        made.extend(given)
        return (torch.tensor([3, 4]),), (0,)

    def verifier(options: Any) -> Any:
        made.append(vars(options))
        return SimpleNamespace(verify_tree=verify_tree)

    code: Any = SimpleNamespace(function=verifier)
    generator = torch.Generator()
    assert repr(economize.economize(code)(PATHS, TARGET, DRAFT, generator)) == "[2, 1, 0]"
    options, logits, tree, selector = made
    assert options == {"verifier_options": {}, "verifier_name": "rejection"}
    rows = torch.cat([TARGET[0], TARGET[1, 1:]])
    assert_close(logits, rows.log()[None])
    branches = {"parents": torch.tensor([[-1, 0, 1, -1, 3, 4]]), "tokens": torch.tensor([[1, 0, 2, 2, 1, 0]])}
    assert_close(vars(tree), branches | {"lengths": [6], "probs": torch.cat([*DRAFT])[None]})
    assert_close(selector.distributions(logits), rows[None])
    assert (selector.greedy, selector.generator) == (False, generator)


def test_what_functions_of_batches_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coins of float32, whatever numbers torch makes by default."""
    rows = [Row(*row) for row in zip(PATHS, TARGET, DRAFT, strict=True)]
    generator = torch.Generator()
    given, code = recorded(torch.tensor([[1, 2], [2, 0]]))
    assert repr(flashspec.flashspec(code)(rows, generator)) == "[[1, 2], [2, 1, 0]]"
    assert given.pop("generator") is generator
    logs = {"draft_logprobs": DRAFT.log(), "target_logprobs": TARGET.log()}
    assert_close(given, {"draft_token_ids": PATHS} | logs)

    given, code = recorded((torch.tensor([0, 2]), torch.tensor([2, 0])))
    coins = [torch.rand((2, 4), generator=generator), torch.rand(2, generator=generator)]
    drawn = iter(coins)
    asked: list[Any] = []
    monkeypatch.setattr(torch, "rand", lambda shape, dtype: asked.append((shape, dtype)) or next(drawn))
    assert repr(sglang_uno.uno(code)(rows, None)) == "[[2], [2, 1, 0]]"
    assert asked == [((2, 4), torch.float32), ((2,), torch.float32)]
    tokens = torch.tensor([0, 1, 2])
    assert_close(
        given,
        {
            "candidates": torch.tensor([[0, 1, 0, 2], [0, 2, 1, 0]]),
            "target_ids": tokens.repeat(2, 4, 1),
            "target_probs": TARGET,
            "draft_ids": tokens.repeat(2, 3, 1),
            "draft_probs": DRAFT,
            "accept_uniforms": coins[0],
            "final_uniforms": coins[1],
        },
    )
