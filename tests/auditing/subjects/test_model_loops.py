"""Loops that take models: forms found without an adapter, and a mistake in each that must be found."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from audits.specimens.loops import (
    LOOP_SPECIMENS,
    Engine,
    TextDecoder,
    generate,
    stream,
    unpadded,
    with_unknown_method,
)
from spectheory import audit, instances
from spectheory.auditing.rounds import by_calls
from spectheory.auditing.rounds.battery import audit_pairs, pairs_of_loops
from spectheory.auditing.subjects import runs
from spectheory.auditing.subjects.loop_forms import LoopForm
from spectheory.auditing.subjects.model_loops import ModelLoop
from spectheory.auditing.subjects.roles import StandInSelf, UnknownRoleError, arguments, roles_of
from spectheory.auditing.subjects.table_models import TableModel
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, UNDECIDED
from spectheory.testing import assert_lossless

KNOWN_FORM = LoopForm("[1, T]", "answer", False, "tuple", 1.0, 2, 0, 0)
SMALLEST = {"forbidden token": audit_pairs()["forbidden token"]}


def _loop(
    function: Callable[..., Any], signature: str = "generate", form: LoopForm | None = KNOWN_FORM
) -> Any:
    """A loop; with a form, nothing is tried, which saves a second."""
    loop = ModelLoop(function, "loop", signature)
    loop._form = form
    return loop


def test_a_wrong_loop_is_found_and_its_partner_is_not_accused() -> None:
    signature, wrong, right = LOOP_SPECIMENS["argmax_bonus"]
    pair = {"thirds": instances.two_token(1)}
    assert audit(_loop(wrong, signature), pair).verdict == NOT_LOSSLESS
    assert audit(_loop(right, signature), pair).verdict == LOSSLESS


@pytest.mark.deep
@pytest.mark.parametrize("name", LOOP_SPECIMENS)
def test_every_specimen_of_a_loop_is_found_by_default(name: str) -> None:
    signature, wrong, right = LOOP_SPECIMENS[name]
    found = audit(wrong, signature=signature, within=0.01)
    assert found.verdict == NOT_LOSSLESS
    assert "prompt" in found.note
    assert audit(right, signature=signature, within=0.01).verdict == LOSSLESS
    with pytest.raises(AssertionError):
        assert_lossless(wrong, signature=signature, within=0.01)


@pytest.mark.parametrize(
    ("calls", "way", "verdict"),
    [(None, "followed", LOSSLESS), (2_000, "probed", LOSSLESS), (100, "drawn", UNDECIDED)],
)
def test_a_pair_with_too_many_runs_goes_the_next_way(
    calls: int | None, way: str, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three runs on the first pair, 31 on the others, of which one is tried and named.

    The partner is not quick.  The wrong loop is found in each way.
    """
    monkeypatch.setattr(runs, "QUICK_RUNS", 10)
    monkeypatch.setattr(by_calls, "FEW_CALLS", calls)
    pairs = {**SMALLEST, **dict.fromkeys(("large", "as large"), instances.two_residual_tokens(1))}
    signature, wrong, right = LOOP_SPECIMENS["argmax_bonus"]
    loop, is_quick = _loop(right, signature), calls is not None
    found = audit(loop, pairs, quick=is_quick)
    assert (found.verdict, [case.basis for case in found.cases]) == (verdict, ["followed", way, way])
    if is_quick:
        assert "more than 10 runs; use fewer tokens or drafts (on large)" in found.ways[0]
        assert loop.journal.runs < 20
    assert audit(_loop(wrong, signature), pairs, quick=is_quick, stop_at_first=True).is_defective


def test_loops_of_texts_have_a_tokenizer() -> None:
    form, pair = (
        LoopForm("text", "answer", False, "dynamic", 1.0, 1, 0, 0),
        {"thirds": instances.two_token(1)},
    )
    assert audit(_loop(TextDecoder.eager, form=form), pair).verdict == NOT_LOSSLESS
    assert audit(_loop(TextDecoder.generate, form=form), pair).verdict == LOSSLESS


def test_the_search_of_a_form_ends_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is late after 5 calls of a loop that fails in every form.  The partner has the time."""
    assert audit(_loop(generate, form=None), SMALLEST, time_limit=1e5).is_lossless
    calls, clock = list[int](), time.monotonic

    def fails(input_ids: Any, target_model: Any, draft_model: Any, max_new_tokens: int) -> Any:
        calls.append(1)
        raise ValueError("no text")

    monkeypatch.setattr(time, "monotonic", lambda: clock() + 1e6 * (len(calls) >= 5))
    found = audit(_loop(fails, form=None), SMALLEST, time_limit=1e5)
    assert (found.verdict, len(calls)) == (UNDECIDED, 5)
    assert "the time is up" in found.reasons[0]


def test_a_text_without_the_prompt_is_a_finding() -> None:
    found = audit(_loop(unpadded, form=None), SMALLEST)
    assert found.verdict == NOT_LOSSLESS
    assert any("the prompt is" in text for _, text in found.findings)


def test_a_missing_method_of_a_model_is_undecided_and_named() -> None:
    found = audit(_loop(with_unknown_method, form=None), SMALLEST)
    assert found.verdict == UNDECIDED
    (reason,) = found.reasons
    assert "'graph_verify'" in reason
    # Nothing was seen: no basis, no distance.  The partner has both.
    assert found.judgement() == (UNDECIDED, "loop, no case was judged")
    assert (found.scope_text(), found.shown()["total_variation"]) == ("no case", None)
    right = audit(_loop(LOOP_SPECIMENS["argmax_bonus"][2]), SMALLEST)
    assert right.judgement()[0] == "lossless (followed)"
    assert right.shown()["total_variation"] == 0


def test_a_parameter_without_a_known_name_is_undecided_and_named() -> None:
    def loop(input_ids: Any, teacher: Any, student: Any) -> Any:
        return input_ids

    assert "'teacher'" in str(audit(_loop(loop, form=None), SMALLEST).reasons)
    with pytest.raises(UnknownRoleError, match="teacher"):
        arguments(loop, {"prompt": 1})


def _greedy(input_ids: Any, target_model: Any, draft_model: Any, max_new_tokens: int) -> Any:
    """A mistake in every form: no token is drawn."""
    for _ in range(max_new_tokens):
        draft_model(input_ids)
        input_ids = torch.cat([input_ids, target_model(input_ids).logits[:, -1:].argmax(-1)], dim=1)
    return input_ids


def test_a_form_whose_control_fails_is_withdrawn() -> None:
    loop = _loop(_greedy)
    assert not loop._control_holds(KNOWN_FORM)
    assert "is always 1 after the prompt" in loop._withdrawn[KNOWN_FORM]
    assert _loop(generate)._control_holds(KNOWN_FORM)
    wrong_bonus = LOOP_SPECIMENS["argmax_bonus"][1]
    assert _loop(wrong_bonus)._control_holds(KNOWN_FORM)  # so its mistake is judged


def _dynamic(input_ids: Any, target: Any, drafter: Any, max_new_tokens: int, keep: int = 0) -> dict[str, Any]:
    """Uses a ``DynamicCache``, and returns a mapping; a mistake keeps a rejected token in it."""
    from transformers import DynamicCache

    cache, text = DynamicCache(), input_ids
    while text.shape[1] < input_ids.shape[1] + max_new_tokens:
        q = torch.softmax(drafter(text).logits[0, -1], dim=-1)
        token = torch.multinomial(q, 1)
        longer = torch.cat([text, token[None]], dim=1)
        start = cache.get_seq_length()
        answer = target(input_ids=longer[:, start:], past_key_values=cache, use_cache=True)
        p = torch.softmax(answer["logits"][0, text.shape[1] - 1 - start :], dim=-1)
        if torch.rand(()) * q[token] < p[0, token]:
            text = torch.cat([longer, torch.multinomial(p[1], 1)[None]], dim=1)
        else:
            rest = torch.multinomial((p[0] - q).clamp(min=0), 1)
            text = torch.cat([text, rest[None]], dim=1)
            if not keep:
                cache.crop(-1)
    return {"generated_ids": text}


def _listed(prompts: list[list[int]], model: Any, small_model: Any, max_tokens: int) -> list[list[int]]:
    """Takes and returns lists of texts."""
    found = []
    for prompt in prompts:
        text = torch.tensor([prompt])
        for _ in range(max_tokens):
            small_model(text)
            row = torch.softmax(model(text)[:, -1], dim=-1)
            text = torch.cat([text, torch.multinomial(row, 1)], dim=1)
        found.append(text[0].tolist())
    return found


def _greedy_twice(prompts: list[list[int]], model: Any, small_model: Any, max_tokens: int) -> list[list[int]]:
    """A mistake: the second token is the likeliest."""
    (text,) = _listed(prompts, model, small_model, 1)
    row = model(torch.tensor([text]))[0, -1]
    return [[*text, int(row.argmax()), *[0] * max_tokens]]


FORMS: dict[str, tuple[Callable[..., Any], Callable[..., Any], LoopForm]] = {
    "dynamic cache": (_dynamic, partial(_dynamic, keep=1), KNOWN_FORM._replace(cache="dynamic")),
    "lists of prompts": (_listed, _greedy_twice, KNOWN_FORM._replace(prompt="lists", answer="logits")),
}


@pytest.mark.parametrize("name", FORMS)
def test_loops_are_judged_in_the_form_that_they_have(name: str) -> None:
    right, wrong, form = FORMS[name]
    pair = {"thirds": instances.two_token(1)}
    assert audit(_loop(right, form=form), pair).verdict == LOSSLESS
    assert audit(_loop(wrong, form=form), pair).verdict == NOT_LOSSLESS


@pytest.mark.deep
@pytest.mark.parametrize("name", FORMS)
def test_the_form_is_found_by_trying(name: str) -> None:
    right, _, form = FORMS[name]
    found = _loop(right, form=None).form
    assert (found.prompt, found.answer, found.cache) == (form.prompt, form.answer, form.cache)


def test_a_model_looks_up_the_whole_text_and_its_cache_holds_the_text() -> None:
    asked: list[tuple[int, ...]] = []

    def row(text: Any) -> list[float]:
        asked.append(tuple(text))
        return [0.25, 0.75]

    model = TableModel(row, row, 2, KNOWN_FORM)
    first = model(torch.tensor([[1, 0, 1, 1, 0]]))
    model(torch.tensor([[1]]), past_key_values=first.past_key_values)
    assert asked == [(), (0,), (0, 1)]
    assert model(torch.tensor([[1, 0, 1, 1]]), use_cache=False).past_key_values is None
    wrong = [(keys[:, :, :3], values) for keys, values in first.past_key_values]
    model(torch.tensor([[0]]), past_key_values=wrong)
    assert model.strange == (1, 0, 1, 0)


def test_a_partial_function_keeps_what_it_says() -> None:
    def loop(prefix: Any, gamma: int = 3, temperature: float = 0.2, use_cache: bool = True) -> Any:
        return prefix, gamma, temperature, use_cache

    values = {"prompt": "p", "draft length": 2}
    assert arguments(loop, values) == {"prefix": "p", "gamma": 2, "temperature": 1.0}
    assert arguments(partial(loop, temperature=0.5), values) == {"prefix": "p", "gamma": 2}
    assert roles_of(loop) == "prefix as prompt, gamma as draft length"


def test_a_stand_in_for_self_has_constants_methods_and_roles_only() -> None:
    values = {"draft": "the draft"}
    this = StandInSelf(Engine, values)
    assert (this.margin, this.draft_model, this.args.temperature) == (1.0, "the draft", 1.0)
    assert this.step.__self__ is this
    with pytest.raises(AttributeError, match="no attribute 'checkpoint'"):
        _ = this.checkpoint


def test_loops_have_few_pairs_and_one_draws_in_numpy() -> None:
    assert {pair.draft_length for pair in pairs_of_loops().values()} == {1, 2}

    def model(text: Any) -> np.ndarray:
        return np.full((len(text), 2), 0.5)

    tokens: Iterator[int] = stream([1], model, model, 3)
    assert len(list(tokens)) == 3
