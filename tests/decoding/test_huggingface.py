"""``model.generate(custom_generate=..)``: greedy by the token, sampling by the law."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from decoding_support import PROMPTS, p_value, target_law, tiny_pair
from deep import first_is_quick
from later import Later
from spectheory.decoding import LogitsProcessors
from spectheory.foundation.errors import InvalidInputError
from spectheory.models import LanguageModelPair, SamplingOptions, bundled_prompts
from spectheory.pairs.drafts import Iid
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import find_verifier

generation = Later("transformers.generation")
huggingface = Later("spectheory.decoding.huggingface")
models = Later("spectheory.models")
transformers = Later("transformers")


@pytest.fixture(scope="module")
def pair() -> LanguageModelPair:
    torch.set_num_threads(1)
    return LanguageModelPair.load("bundled", "bundled", device="cpu")


def padded(texts: list[list[int]]) -> dict[str, torch.Tensor]:
    width = max(map(len, texts))
    ids = torch.tensor([[0] * (width - len(text)) + text for text in texts])
    mask = torch.tensor([[0] * (width - len(text)) + [1] * len(text) for text in texts])
    return {"input_ids": ids, "attention_mask": mask}


def twice(input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
    """A user's own criterion: a text ends when a token is written twice in a row."""
    return input_ids[:, -1] == input_ids[:, -2]


@first_is_quick(
    ("settings", "verifiers"),
    [
        ({}, ("block", "greedy_multipath", "multi_round")),
        ({"repetition_penalty": 1.4, "min_new_tokens": 5, "no_repeat_ngram_size": 3}, ("greedy_multipath",)),
        ({"eos_token_id": [199, 14]}, ("block",)),
        ({"stopping_criteria": [twice]}, ("multi_round",)),
        ({"return_dict_in_generate": True}, ("block",)),
    ],
)
def test_greedy_texts_are_those_of_transformers(
    pair: LanguageModelPair, settings: dict[str, Any], verifiers: tuple[str, ...]
) -> None:
    """Prompts of unequal lengths, with padding before them and behind what ends early."""
    inputs = padded([pair.encode(text)[: 3 + 6 * n] for n, text in enumerate(bundled_prompts()[:3])])
    asked = {**inputs, "do_sample": False, "pad_token_id": 0, "max_new_tokens": 14, **settings}
    wanted = pair.target_model.generate(**asked)
    for verifier in verifiers:
        found = pair.target_model.generate(
            **asked, custom_generate=models.custom_generate, verifier=verifier,
            draft_model=pair.draft_model, drafts=1 if verifier == "block" else 2,
        )  # fmt: skip
        if "return_dict_in_generate" in settings:
            assert isinstance(found, generation.GenerateDecoderOnlyOutput)
            assert torch.equal(found.sequences, wanted.sequences)
        else:
            assert torch.equal(found, wanted)


def test_stop_strings_are_a_criterion(pair: LanguageModelPair) -> None:
    """``generate`` keeps the tokenizer to itself when given a function; the criterion brings its own."""
    inputs = padded([pair.encode(bundled_prompts()[1])])
    asked: dict[str, Any] = {**inputs, "do_sample": False, "pad_token_id": 0, "max_new_tokens": 14}
    plain = pair.target_model.generate(**asked)
    stop = pair.decode(plain[0, -8:-6].tolist())
    tokenizer = transformers.AutoTokenizer.from_pretrained(pair.target_source.location)
    wanted = pair.target_model.generate(**asked, stop_strings=[stop], tokenizer=tokenizer)
    criteria = transformers.StoppingCriteriaList([transformers.StopStringCriteria(tokenizer, [stop])])
    found = pair.target_model.generate(
        **asked,
        stopping_criteria=criteria,
        custom_generate=models.custom_generate,
        draft_model=pair.draft_model,
    )
    assert torch.equal(found, wanted)
    assert found.shape[1] < plain.shape[1]


def test_sampled_texts_follow_the_law() -> None:
    """1 000 texts of four tokens behind each prompt, top-k 2 of 3 at temperature 0.7; the law without the
    temperature is refused."""
    tiny = tiny_pair()
    torch.manual_seed(0)
    inputs = padded([list(prompt) for prompt in PROMPTS] * 1_000)
    found = tiny.target_model.generate(
        **inputs, custom_generate=models.custom_generate, draft_model=tiny.draft_model, verifier="spectr",
        drafts=2, draft_length=2, do_sample=True, temperature=0.7, top_k=2, max_new_tokens=4,
        pad_token_id=0, eos_token_id=None,
    )  # fmt: skip
    texts = found[:, inputs["input_ids"].shape[1] :].numpy() @ 3 ** np.arange(4)[::-1]
    counts = np.zeros((len(PROMPTS), 81), dtype=np.int64)
    np.add.at(counts, (np.arange(len(texts)) % len(PROMPTS), texts), 1)
    laws = [
        np.stack([target_law(tiny, prompt, 4, options) for prompt in PROMPTS])
        for options in (SamplingOptions(temperature=0.7, top_k=2), SamplingOptions(top_k=2))
    ]
    assert p_value(counts, laws[0]) > 1e-6
    assert p_value(counts, laws[1]) < 1e-6


class Doubled:
    """Its correction rows have mass 2."""

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        found = find_verifier("block").outcome(paths, target_rows, draft_rows)
        return Outcome(found.stop_probs, lambda path_index, length: 2 * found.correction(path_index, length))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_beams": 2}, "num_beams must be 1, got 2"),
        ({"guidance_scale": 1.5}, "UnbatchedClassifierFreeGuidanceLogitsProcessor keeps a state"),
        ({"output_scores": True, "return_dict_in_generate": True}, "output_scores is not recorded"),
        ({"attention_mask": torch.tensor([[1, 0, 1]])}, "padded at the left"),
        ({"max_new_tokens": 600}, "512 positions"),
        (
            {"max_new_tokens": 506},
            "a prompt of 3 tokens, 506 new tokens and a draft of 5 exceed the models' 512 positions",
        ),
        ({"verifier": "blok"}, "did you mean"),
        ({"verifier": Doubled()}, "'Doubled' returned correction rows that are not laws, behind text 1"),
    ],
)
def test_what_is_not_done_is_refused(pair: LanguageModelPair, settings: dict[str, Any], words: str) -> None:
    asked: dict[str, Any] = {"input_ids": torch.tensor([[1, 2, 3]]), "max_new_tokens": 3, **settings}
    with pytest.raises(InvalidInputError, match=words):
        pair.target_model.generate(
            **asked,
            pad_token_id=0,
            custom_generate=models.custom_generate,
            draft_model=pair.draft_model,
        )


def test_stops_are_those_of_the_criteria() -> None:
    """The shortest length, all end tokens; others see the prompt and the new tokens, and one is enough."""
    prompts, seen = torch.tensor([[5, 6], [7, 8]]), list[Any]()

    def ends(answer: Any) -> Any:
        return lambda text, scores: seen.append((text.tolist(), scores)) or answer

    known = [
        generation.MaxLengthCriteria(9),
        generation.MaxLengthCriteria(7),
        generation.EosTokenCriteria([1, 2]),
        generation.EosTokenCriteria(3),
    ]
    found = huggingface._stopping(transformers.StoppingCriteriaList(known), prompts)
    assert (found.max_new_tokens, found.end_of_sequence, found.criterion) == (5, {1, 2, 3}, None)
    never, partly, always = torch.tensor([False]), torch.tensor([True, False]), True
    for others, is_end in (([never], False), ([never, partly], False), ([never, always], True)):
        seen.clear()
        criteria = transformers.StoppingCriteriaList([*known, *map(ends, others)])
        criterion: Any = huggingface._stopping(criteria, prompts).criterion
        assert criterion(1, [0, 4]) is is_end
        assert seen == [([[7, 8, 0, 4]], None)] * len(others)


def test_what_the_loop_is_given_and_what_is_made_of_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two prompts, of which the second one gets more tokens; by default one path of five tokens by block."""
    tiny = tiny_pair()
    calls = [
        SimpleNamespace(numbers=[0, 1], tokens=[[2, 1], [0]]),
        SimpleNamespace(numbers=[1], tokens=[[1, 2]]),
    ]
    asked, checked = list[Any](), list[Any]()
    monkeypatch.setattr(
        "spectheory.decoding.huggingface.decoding_iterations",
        lambda *given: asked.append(given) or iter(calls),
    )
    monkeypatch.setattr("spectheory.decoding.huggingface.prefill_texts", lambda *given: given)
    monkeypatch.setattr(
        "spectheory.decoding.huggingface.refuse_wrong_laws", lambda *given: checked.append(given)
    )
    inputs = padded([[2], [1, 0]])
    processors = generation.LogitsProcessorList([generation.TopKLogitsWarper(2)])

    def generated(config: Any, processors: Any = (), **settings: Any) -> Any:
        criteria = transformers.StoppingCriteriaList([generation.MaxLengthCriteria(9)])
        return huggingface.custom_generate(
            tiny.target_model, **inputs, draft_model=tiny.draft_model, generation_config=config,
            stopping_criteria=criteria, logits_processor=processors, **settings,
        )  # fmt: skip

    torch.manual_seed(3)
    seed = int(torch.empty((), dtype=torch.int64).random_())
    torch.manual_seed(3)
    settings = {"verifier": "spectr", "drafts": 2, "draft_length": 4}
    found = generated(generation.GenerationConfig(do_sample=True, pad_token_id=7), processors, **settings)
    assert found.tolist() == [[0, 2, 2, 1, 7], [1, 0, 0, 1, 2]]
    (pair, texts), bound, process, draft_length, stopping, generator, options, processing = asked.pop()
    assert (pair.target_model, pair.draft_model) == (tiny.target_model, tiny.draft_model)
    assert (texts.token_ids.tolist(), texts.starts.tolist()) == ([[0, 2], [1, 0]], [1, 0])
    assert (bound.name, process, draft_length) == ("spectr", Iid(2), 4)
    assert (stopping.max_new_tokens, generator.initial_seed()) == (7, seed)
    assert (options, processing) == (SamplingOptions(temperature=1), LogitsProcessors(processors, 2))
    assert checked == [(bound, call) for call in calls]

    config = generation.GenerationConfig(do_sample=False, pad_token_id=None, return_dict_in_generate=True)
    assert generated(config).sequences.tolist() == [[0, 2, 2, 1, 0], [1, 0, 0, 1, 2]]
    _, bound, process, draft_length, _, generator, options, processing = asked.pop()
    assert (bound.name, process, draft_length) == ("block", Iid(1), 5)
    assert (options, processing) == (SamplingOptions(temperature=0), None)
    assert generator.initial_seed() != seed


def test_prompts_begin_where_the_padding_ends() -> None:
    """On the device that is asked for; without a mask there is no padding."""
    ids, meta = torch.tensor([[5, 6, 7], [8, 9, 3]]), torch.device("meta")
    mask = torch.tensor([[0, 0, 1], [0, 1, 1]])
    assert huggingface._texts(ids, mask, ids.device).starts.tolist() == [2, 1]
    found = huggingface._texts(ids, None, ids.device)
    assert (found.token_ids.tolist(), found.starts.tolist()) == (ids.tolist(), [0, 0])
    found = huggingface._texts(ids, mask, meta)
    assert (found.token_ids.device, found.starts.device) == (meta, meta)
    for wrong in ([[0, 0, 0], [1, 1, 1]], [[1, 1, 1], [1, 1, 0]], [[1, 1, 1], [1, 0, 1]]):
        with pytest.raises(InvalidInputError, match="padded at the left, with at least one token each"):
            huggingface._texts(ids, torch.tensor(wrong), ids.device)
