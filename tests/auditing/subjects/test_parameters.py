"""Sampling parameters inside a sampler: declared, or as the engine's plain step has them."""

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from audits.specimens.parameters import PARAMETER_SPECIMENS, penalised, plain, tempered
from spectheory import audit, instances
from spectheory.auditing.rounds.battery import audit_pairs, pairs_of_loops, random_dyadic
from spectheory.auditing.subjects.loop_forms import LoopForm
from spectheory.auditing.subjects.model_loops import ModelLoop
from spectheory.auditing.subjects.plain_steps import plain_step
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS, UNDECIDED
from spectheory.pairs.processors import min_p, parse_processors, presence_penalty

RESIDUAL = {"two residual tokens": instances.two_residual_tokens(1)}
FEW = {"dyadic, 3 tokens": random_dyadic(6, 3, 1)}


@pytest.mark.parametrize("name", PARAMETER_SPECIMENS)
def test_a_right_sampler_with_a_parameter_is_lossless_and_a_wrong_one_is_not(name: str) -> None:
    text, _, wrong, right = PARAMETER_SPECIMENS[name]
    declared = parse_processors(text)
    found = audit(right, FEW, drafts=1, processor=declared)
    assert found.verdict == LOSSLESS
    assert declared.name in found.note
    assert audit(wrong, FEW, drafts=1, processor=declared).verdict == NOT_LOSSLESS
    assert audit(right, FEW, drafts=1).verdict == NOT_LOSSLESS  # without the parameter, of a raw target


@pytest.mark.parametrize("name", ["filter_on_bonus_only", "penalty_one_late"])
def test_the_plain_step_of_the_engine_states_the_same(name: str) -> None:
    _, rule, wrong, right = PARAMETER_SPECIMENS[name]
    assert audit(right, FEW, drafts=1, plain=plain(rule)).verdict == LOSSLESS
    assert audit(wrong, FEW, drafts=1, plain=plain(rule)).verdict == NOT_LOSSLESS


def _in_numpy(row: Any, text: Any, generator: Any) -> int:
    """A plain step that cannot be followed."""
    weights = row.numpy().astype(float) ** 2
    return int(np.random.choice(len(row), p=weights / weights.sum()))  # noqa: NPY002


def test_a_plain_step_is_followed_or_learned() -> None:
    row = np.array([Fraction(1, 4), Fraction(3, 4)])
    assert plain_step(plain(tempered))((), row).tolist() == [Fraction(1, 10), Fraction(9, 10)]
    learned = plain_step(_in_numpy)((), row)
    assert abs(learned[0] - Fraction(1, 10)) < Fraction(1, 10**9)
    penalty = plain_step(plain(penalised))((0,), row)
    assert penalty.tolist() == presence_penalty("1/2")((0,), row).tolist()


def test_a_plain_step_without_tokens_is_refused_and_so_are_two_statements() -> None:
    def none(row: Any, text: Any, generator: Any) -> int:
        return int(torch.multinomial(row * 0, 1, generator=generator))

    right = PARAMETER_SPECIMENS["temperature_dropped"][3]
    with pytest.raises(InvalidInputError, match="makes no token"):
        audit(right, FEW, plain=none)
    with pytest.raises(InvalidInputError, match="not both"):
        audit(right, FEW, plain=none, processor=min_p("1/2"))


def test_pairs_at_a_cut_are_left_out_and_named() -> None:
    """On the row (1/3, 2/3) a min-p of 1/2 keeps both tokens or one, by rounding."""
    right = PARAMETER_SPECIMENS["filter_on_bonus_only"][3]
    found = audit(right, {"thirds": instances.two_token(1)}, drafts=1, processor=min_p("1/2"))
    assert found.verdict == UNDECIDED
    assert "rounding changes which tokens" in str(found.scope.refused)


def squared_rows(
    input_ids: Any, target_model: Any, draft_model: Any, max_new_tokens: int, is_right: bool = True
) -> Any:
    """One draft per step, with rows of the temperature 1/2; the wrong one keeps every draft."""
    text = input_ids
    while text.shape[1] < input_ids.shape[1] + max_new_tokens:
        q = torch.softmax(2 * draft_model(text).logits[0, -1], dim=-1)
        p = torch.softmax(2 * target_model(text).logits[0, -1], dim=-1)
        token = torch.multinomial(q, 1)
        if is_right and not torch.rand(()) * q[token] < p[token]:
            token = torch.multinomial((p - q).clamp(min=0), 1)
        text = torch.cat([text, token[None]], dim=1)
    return text


FORM = LoopForm("[1, T]", "answer", False, "tuple", 1.0, 2, 0, 0)


def controlled(loop: Any, processor: Any) -> ModelLoop:
    subject = ModelLoop(loop, "loop")
    subject.processor = processor
    found, _ = subject._tried(FORM)
    subject._form = found if subject._control_holds(found) else None
    return subject


def test_the_form_of_a_loop_is_controlled_with_its_parameters() -> None:
    """Its first token has the law of the processed row, which is not that of the raw row."""
    declared = parse_processors("temperature=1/2")
    assert controlled(squared_rows, None)._form is None
    for is_right, verdict in ((True, LOSSLESS), (False, NOT_LOSSLESS)):
        loop = controlled(partial(squared_rows, is_right=is_right), declared)
        assert loop._form is not None
        assert audit(loop, RESIDUAL, processor=declared).verdict == verdict


def likeliest(
    input_ids: Any, target_model: Any, draft_model: Any, max_new_tokens: int, by_ratio: bool = False
) -> Any:
    """Drafts the likeliest token, and keeps it if the target does; or, which is wrong, by the ratio p/q."""
    text = input_ids
    while text.shape[1] < input_ids.shape[1] + max_new_tokens:
        q, p = (torch.softmax(model(text).logits[0, -1], dim=-1) for model in (draft_model, target_model))
        token, best = q.argmax(), p.argmax()
        is_kept = torch.rand(()) * q[token] < p[token] if by_ratio else token == best
        text = torch.cat([text, (token if is_kept else best)[None, None]], dim=1)
    return text


def second_best_later(input_ids: Any, target_model: Any, draft_model: Any, max_new_tokens: int) -> Any:
    """Greedy decoding, but in the second round it takes the second token of the row."""
    text = likeliest(input_ids, target_model, draft_model, 1)
    while text.shape[1] < input_ids.shape[1] + max_new_tokens:
        best = target_model(text).logits[0, -1].topk(2).indices
        draft_model(text)
        text = torch.cat([text, best[1:][None]], dim=1)
    return text


def test_greedy_loops_are_judged_on_texts_of_several_rounds() -> None:
    """Every default pair is kept, as none has equal probabilities where greedy decoding goes."""
    greedy = parse_processors("temperature=0")
    for loop, verdict in ((likeliest, LOSSLESS), (second_best_later, NOT_LOSSLESS)):
        found = audit(controlled(loop, greedy), processor=greedy)
        assert found.verdict == verdict
        assert {case.pair for case in found.cases} == set(pairs_of_loops())


def test_loops_that_decode_greedily_are_judged_at_temperature_0() -> None:
    """Without it the form may be wrong, so that nothing is decided; the reason names the parameter."""
    greedy = parse_processors("temperature=0")
    for by_ratio, verdict in ((False, LOSSLESS), (True, NOT_LOSSLESS)):
        loop = controlled(partial(likeliest, by_ratio=by_ratio), greedy)
        assert audit(loop, RESIDUAL, processor=greedy).verdict == verdict
        raw = controlled(partial(likeliest, by_ratio=by_ratio), None)
        assert raw._form is None
        (why,) = raw._withdrawn.values()
        assert why.endswith("with --processor temperature=0 we judge it as greedy decoding")


@pytest.mark.deep
@pytest.mark.parametrize("name", PARAMETER_SPECIMENS)
def test_parameters_are_judged_on_the_whole_battery(name: str) -> None:
    text, _, wrong, right = PARAMETER_SPECIMENS[name]
    declared = parse_processors(text)
    assert audit(right, audit_pairs(), drafts=1, processor=declared).verdict == LOSSLESS
    assert audit(wrong, audit_pairs(), drafts=1, processor=declared).verdict == NOT_LOSSLESS
