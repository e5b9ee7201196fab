"""Greedy texts against transformers' own greedy decoding, token for token, and what is said of a text."""

import warnings
from typing import Any

import pytest
import torch

from deep import first_is_quick
from families import FAMILIES, family_pair
from later import Later
from spectheory.decoding import DecodedText, decode
from spectheory.decoding.stopping import END_OF_SEQUENCE
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError, Notice
from spectheory.models import LanguageModelPair, SamplingOptions, bundled_prompts
from spectheory.pairs.drafts import PrefixTree, ShapedTree, WithoutReplacement
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import find_verifier

transformers = Later("transformers")

GREEDY = SamplingOptions(temperature=0)
PROMPTS = [[5], [7, 3, 9, 4, 11, 2, 8], [1, 30, 22]]
VERIFIERS = (
    "token", "block", "greedy_block", "spectr", "multi_round", "greedy_multipath", "mixed_multipath",
    "spectr_gbv",
)  # fmt: skip


@pytest.fixture(scope="module")
def bundled() -> LanguageModelPair:
    torch.set_num_threads(1)
    return LanguageModelPair.load("bundled", "bundled", device="cpu")


def alone(model: Any, prompt: list[int], max_new_tokens: int, **settings: Any) -> list[int]:
    """What ``generate`` of transformers writes behind one prompt, without padding."""
    ids = torch.tensor([prompt])
    found = model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=max_new_tokens,
        pad_token_id=0, **settings,
    )  # fmt: skip
    return found[0, len(prompt) :].tolist()


@first_is_quick("family", FAMILIES, quick=2)
def test_greedy_texts_of_every_family(family: str) -> None:
    """Three prompts of unequal lengths in one batch, one path and three, with a cache or without."""
    torch.set_num_threads(1)
    pair = family_pair(family)
    wanted = [alone(pair.target_model, prompt, 16) for prompt in PROMPTS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)
        assert pair.cached == ((family != "mamba"),) * 2
        one = decode(pair, PROMPTS, "block", draft_length=3, max_new_tokens=16, options=GREEDY)
        three = decode(
            pair, PROMPTS, "greedy_multipath", drafts=3, draft_length=2, max_new_tokens=16, options=GREEDY
        )
    assert [text.token_ids for text in one] == wanted
    assert [text.token_ids for text in three] == wanted
    # Both acceptances and rejections took part.
    accepted = [number for text in one for number in text.accepted]
    assert min(accepted) == 0
    assert max(accepted) > 0


@first_is_quick("verifier", VERIFIERS, quick=2)
def test_greedy_texts_of_every_verifier(bundled: LanguageModelPair, verifier: str) -> None:
    prompts = [bundled.encode(text)[: 4 + 5 * n] for n, text in enumerate(bundled_prompts()[:2])]
    texts = decode(bundled, prompts, verifier, drafts=2, draft_length=4, max_new_tokens=10, options=GREEDY)
    assert [t.token_ids for t in texts] == [alone(bundled.target_model, p, 10) for p in prompts]


def test_texts_end_where_they_are_told_to(bundled: LanguageModelPair) -> None:
    """At the length, and at an end-of-sequence token."""
    (prompt,) = bundled_prompts()[1:2]
    settings: dict[str, Any] = {"draft_length": 4, "max_new_tokens": 30, "options": GREEDY}
    (plain,) = decode(bundled, [prompt], **settings)
    most = plain.accepted.index(max(plain.accepted))
    (short,) = decode(bundled, [prompt], **{**settings, "max_new_tokens": sum(plain.calls[:most]) + 1})
    assert (short.calls[-1], short.accepted) == (1, plain.accepted[: most + 1])  # cut off or not
    ends = bundled.target_model.generation_config
    before, ends.eos_token_id = ends.eos_token_id, plain.token_ids[7]
    try:
        (ended,) = decode(bundled, [prompt], **settings)
    finally:
        ends.eos_token_id = before
    assert ended.finished == END_OF_SEQUENCE
    assert ended.token_ids == plain.token_ids[: 1 + plain.token_ids.index(plain.token_ids[7])]


def test_one_seed_one_text_whatever_comes_after(bundled: LanguageModelPair) -> None:
    prompts = bundled_prompts()[:4]
    settings: dict[str, Any] = {"draft_length": 3, "max_new_tokens": 8, "batch_size": 2}
    first = decode(bundled, prompts, "multi_round", drafts=PrefixTree((2, 1, 1)), **settings)
    again = decode(bundled, prompts[:2], "multi_round", drafts=PrefixTree((2, 1, 1)), **settings)
    other = decode(bundled, prompts, "multi_round", drafts=2, seed=1, **settings)
    assert first[:2] == again
    assert [text.token_ids for text in first] != [text.token_ids for text in other]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"drafts": 0}, "drafts"),
        ({"draft_length": 0}, "draft_length"),
        ({"draft_length": 99999999999999}, "draft_length must be at most 10000, got 99999999999999"),
        ({"drafts": 9_999_999}, "drafts must be at most 10000 for language models, got 9999999"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
        (
            {"max_new_tokens": 600},
            r"prompt 1 .*: a prompt of 1 token, 600 new tokens and a draft of \d .*512 positions",
        ),
        ({"drafts": PrefixTree((2, 2))}, "the tree has 2 widths"),
        (
            {"verifier": "spectr", "drafts": WithoutReplacement((2,)), "draft_length": 1},
            "not valid for 'without_replacement'",
        ),
        ({"verifier": "blok"}, "did you mean 'block'"),
        ({"prompts": []}, "at least one prompt"),
    ],
)
def test_bad_settings_are_refused(bundled: LanguageModelPair, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        decode(bundled, **{"prompts": ["x"], "verifier": "block", **settings})


class NotALaw:
    """Naive sampling with a fault, from the fifth call on: the first batch and its halves are three."""

    name = "not_a_law"
    draft_processes = frozenset({"shaped_tree"})

    def __init__(self, fault: str) -> None:
        self.fault, self.calls = fault, 0

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        self.calls += 1
        found = find_verifier("naive_sampling").outcome(paths, target_rows, draft_rows)
        stops, rows_at = found.stop_probs.clone(), found.correction
        if self.calls > 4 and self.fault == "stops":
            stops[:, 0, 0] += 0.5
        if self.calls > 4 and self.fault == "rows":
            return Outcome(stops, lambda path_index, length: rows_at(path_index, length) / 2)
        if self.calls > 4 and self.fault == "behind":
            stops = stops * 0
            stops[:, 0, -1] += 1  # the first path of this tree has one token, the second has two
        return Outcome(stops, rows_at)


@first_is_quick(
    ("fault", "words"),
    [
        ("stops", "stop probabilities that are not a law, behind text [12] of its batch: off by 0.5"),
        ("rows", "correction rows that are not laws, behind text 1"),
        ("behind", "a stop behind the end of a path, behind text 1 of its batch: off by 1"),
    ],
)
def test_texts_are_drawn_from_laws_alone(bundled: LanguageModelPair, fault: str, words: str) -> None:
    """Also where the first calls were right; without a fault the texts are those of naive sampling."""
    settings: dict[str, Any] = {"drafts": ShapedTree((2, 0, 1)), "draft_length": 2, "max_new_tokens": 8}
    with pytest.raises(InvalidOutcomeError, match=f"verifier 'not_a_law' returned {words}"):
        decode(bundled, ["import os", "def f"], NotALaw(fault), **settings)
    found, wanted = (
        decode(bundled, ["import os"], verifier, **settings)[0].token_ids
        for verifier in (NotALaw("none"), "naive_sampling")
    )
    assert found == wanted


class WritesLater:
    """Naive sampling whose correction writes into one of the arguments of ``outcome``, or into none."""

    name = "writes_later"

    def __init__(self, argument: int | None) -> None:
        self.argument = argument

    def outcome(self, *given: Any) -> Outcome:
        found = find_verifier("naive_sampling").outcome(*(array.clone() for array in given))

        def correction(path_index: Any, length: Any) -> Any:
            if self.argument is not None:
                given[self.argument][...] = 0
            return found.correction(path_index, length)

        return Outcome(found.stop_probs, correction)


def test_the_parts_of_a_text() -> None:
    text = DecodedText([9], [1, 2, 3, 4, 5, 6], [3, 1, 2], [2, 0, 4], "length")
    assert text.pieces() == [([1, 2], True), ([3], False), ([4], False), ([5, 6], True)]
    assert text.tokens_per_call == pytest.approx(9 / 3)


def test_a_correction_that_writes_into_inputs_is_refused(bundled: LanguageModelPair) -> None:
    settings: dict[str, Any] = {"draft_length": 2, "max_new_tokens": 3}
    for argument, name in enumerate(("paths", "target_rows", "draft_rows")):
        with pytest.raises(InvalidOutcomeError, match=f"'writes_later' writes into its input {name}"):
            decode(bundled, ["import os"], WritesLater(argument), **settings)
    (text,) = decode(bundled, ["import os"], WritesLater(None), **settings)
    assert len(text.token_ids) == 3
