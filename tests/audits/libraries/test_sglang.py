"""SGLang 0.5.23 as released: exact laws, a mutant, draws of the same kernel."""

import shutil
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from audited import CACHE, DRAFT, PATHS, TARGET, fetched, recorded
from audits.libraries import sglang, sglang_dspark
from audits.loading.library_code import NOISE
from audits.registry import load_subject
from deep import first_is_quick
from later import Later
from spectheory import audit, certify, instances
from spectheory.auditing.following.kernel_draws import elementwise, gumbel_noise
from spectheory.auditing.following.triton_kernels import interpreting
from spectheory.auditing.rounds.batch_battery import FIRST
from spectheory.auditing.rounds.battery import audit_pairs, random_dyadic
from spectheory.auditing.rounds.two_calls import follow_two_calls
from spectheory.auditing.subjects.asked import Question
from spectheory.auditing.subjects.signatures import Row
from spectheory.auditing.tape.races import UndefinedDrawError
from spectheory.foundation.results import LOSSLESS
from spectheory.pairs.drafts import Iid
from spectheory.pairs.pair import ModelPair

stats = Later("scipy.stats")

RELEASED = "sglang-0.5.23"
EXACT = {"forbidden token", "dyadic", "disjoint supports"}
HALVES = {length: ModelPair.context_free_pair(["1/4", "3/4"], ["1/2", "1/2"], length) for length in (1, 2, 3)}


@pytest.mark.deep
@pytest.mark.parametrize("name", ["sglang-block", "sglang"])
def test_the_released_kernel_is_lossless(name: str) -> None:
    """Up to float32, and in batches; the file is known."""
    fetched(RELEASED)
    chosen = EXACT | {"two residual tokens"}
    pairs = {label: pair for label, pair in audit_pairs().items() if label in chosen}
    found = audit(load_subject(name, CACHE), pairs)
    assert (found.verdict, found.reasons, found.note) == (LOSSLESS, (), "")
    assert found.forbidden == 0
    assert found.batches == ("equal lengths", "greedy")
    assert found.primitives == ("rand: multiples of 2^-24",)
    exact = {case.pair for case in found.cases if case.total_variation == 0}
    assert exact >= EXACT


@pytest.mark.deep
def test_dsparks_kernels_are_lossless() -> None:
    """Their numbers come from a key and a step counter, which goes on from call to call."""
    fetched(RELEASED)
    sampler = load_subject("sglang-dspark", CACHE)
    assert sampler.note == ""
    found = certify(sampler, instances.two_residual_tokens(1), with_optimum=False)
    assert found.total_variation < Fraction(1, 10**6)
    follow_two_calls(sampler, Question("", instances.two_residual_tokens(1), Iid(1), ""))
    assert sampler.journal.findings == set()
    assert "tl.rand: whole numbers of 31 bits, scaled in float32" in sampler.journal.primitives


def test_token_verification_is_exact_on_dyadic_pairs() -> None:
    """Total variation 0, and the block efficiency of token verification."""
    fetched(RELEASED)
    token = load_subject("sglang", CACHE)
    for length, expected in ((1, Fraction(7, 4)), (2, Fraction(37, 16)), (3, Fraction(175, 64))):
        found = certify(token, HALVES[length], with_optimum=False)
        assert (found.total_variation, found.block_efficiency) == (0, expected)


@first_is_quick(
    ("target", "draft", "expected"),
    [
        ("1/4 3/4", "1/2 1/2", ("7/4", "19/8")),
        ("1/8 7/8", "1/2 1/2", ("13/8", "33/16")),
        ("1/2 1/4 1/4", "1/4 1/2 1/4", ("7/4", "19/8")),
    ],
)
def test_block_verification_is_exact_and_optimal_on_dyadic_pairs(
    target: str, draft: str, expected: tuple[str, str]
) -> None:
    """Total variation 0 and the optimum, for one drafted token and two."""
    fetched(RELEASED)
    block = load_subject("sglang-block", CACHE)
    for length, tokens in enumerate(map(Fraction, expected), start=1):
        found = certify(block, ModelPair.context_free_pair(target.split(), draft.split(), length))
        assert (found.total_variation, found.block_efficiency, found.optimum) == (0, tokens, tokens)


@pytest.mark.deep
def test_a_third_token_divides_by_five() -> None:
    """After A, B the weight is 3/4 and the acceptance probability (1/16) / (1/16 + 1/4) = 1/5.

    Of 2^24 coins 3355444 are below it, not 2^24 / 5: 4/5 of one too many.  It decides where A, B, A was
    drafted and A rejected, with probability 1/8 (1 - 3/8).
    """
    fetched(RELEASED)
    found = certify(load_subject("sglang-block", CACHE), HALVES[3], with_optimum=False)
    assert found.total_variation == Fraction(4, 5) / 2**24 * Fraction(1, 8) * (1 - Fraction(3, 8))
    assert found.total_variation == Fraction(1, 2**28)


@first_is_quick(
    ("block", "before", "after"),
    [(False, "coin * q < p", "coin * q > p"), (True, "if coin < accept_prob", "if coin > accept_prob")],
)
def test_a_mutant_of_the_released_file_is_caught(
    block: bool, before: str, after: str, tmp_path: Path
) -> None:
    """One comparison flipped in a copy; the copy itself is lossless."""
    shutil.copytree(fetched(RELEASED), tmp_path / "release")
    file = tmp_path / "release" / "sglang/kernels/ops/speculative/reject_sampling.py"
    text = file.read_text(encoding="utf-8")
    assert text.count(before) == 1
    distances = []
    for content in (text, text.replace(before, after)):
        file.write_text(content, encoding="utf-8")
        sampler = load_subject("sglang-block" if block else "sglang", checkout=tmp_path / "release")
        found = certify(sampler, random_dyadic(1, 2, 1), with_optimum=False)
        distances.append(found.total_variation)
    assert distances[0] < Fraction(1, 10**6)
    assert distances[1] > Fraction(1, 100)


@pytest.mark.deep
def test_the_kernel_draws_from_the_law() -> None:
    """The same kernel in the same interpreter, with torch's own coins: a batch of equal requests."""
    fetched(RELEASED)
    sampler = load_subject("sglang-block", CACHE)
    law, undecided = sampler.batch_law([FIRST])
    assert undecided == 0
    torch.manual_seed(4)
    draws = 200
    with interpreting():
        counts = Counter(tuple(tokens) for tokens in sampler.sampler([FIRST] * draws, None))
    expected = {tokens: float(mass) * draws for (tokens,), mass in law.items()}
    assert counts.keys() <= expected.keys()
    assert stats.chisquare([counts[tokens] for tokens in expected], list(expected.values())).pvalue > 1e-4


ROWS = [Row(*row) for row in zip(PATHS, TARGET, DRAFT, strict=True)]


def test_what_the_kernel_of_a_chain_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer is read where it says that tokens are."""
    generator = torch.Generator().manual_seed(5)
    coins = [torch.rand((2, 4), generator=generator), torch.rand(2, generator=generator)]
    drawn, asked = iter(coins), list[Any]()
    monkeypatch.setattr(torch, "rand", lambda shape, dtype: asked.append((shape, dtype)) or next(drawn))
    given, code = recorded(None)
    record = code.call

    def call(**values: Any) -> None:
        record(**values)
        values["predicts"][[0, 1, 4]] = torch.tensor([1, 2, 0], dtype=torch.int32)
        values["accept_index"][0, :2] = torch.tensor([0, 1], dtype=torch.int32)
        values["accept_index"][1, 0] = 4
        values["accept_token_num"][:] = torch.tensor([1, 0], dtype=torch.int32)

    code.call = call
    assert repr(sglang.chain_sampling(code)(ROWS, None)) == "[[1, 2], [0]]"
    assert asked == [((2, 4), torch.float32), ((2,), torch.float32)]
    slots = torch.tensor([[0, 1, 2, 3], [4, 5, 6, 7]])
    assert_close(
        given,
        {
            "predicts": torch.full((8,), -1, dtype=torch.int32),
            "accept_index": torch.full((2, 4), -1, dtype=torch.int32),
            "accept_token_num": torch.full((2,), -1, dtype=torch.int32),
            "candidates": torch.tensor([[0, 1, 0, 2], [0, 2, 1, 0]]),
            "retrive_index": slots,
            "retrive_next_token": 0 * slots - 1,
            "retrive_next_sibling": 0 * slots - 1,
            "uniform_samples": coins[0],
            "uniform_samples_for_final_sampling": coins[1],
            "target_probs": TARGET,
            "draft_probs": DRAFT,
            "threshold_single": 1.0,
            "threshold_acc": 1.0,
            "deterministic": True,
        },
    )


@pytest.mark.parametrize(
    ("count", "index"),
    [(1, [0, -1]), (1, [0, 1, 2]), (1, [0, 5]), (4, [0, 1, 2, 3]), (-1, [0, 1]), (0, [4])],
    ids=["too few", "too many", "a neighbour's", "no such count", "a negative count", "no root"],
)
def test_slots_that_are_not_those_of_the_count(count: int, index: list[int]) -> None:
    """Of a kernel whose answer is read from the slots that it names; the partner is the test above."""

    def call(**values: Any) -> None:
        values["predicts"][:] = 1
        values["accept_index"][0, : len(index)] = torch.tensor(index, dtype=torch.int32)
        values["accept_token_num"][:] = count

    _, code = recorded(None)
    code.call = call
    with pytest.raises(
        UndefinedDrawError, match=f"it says that {count} drafted tokens are accepted, and names"
    ):
        sglang.chain_sampling(code)(ROWS[:1], None)


def test_a_greedy_request_has_a_row_with_one_token() -> None:
    """Beside another one, as with top_k = 1; the partner is the test of other requests above."""
    given, code = recorded(None)
    with pytest.raises(UndefinedDrawError):  # it answers nothing
        sglang.chain_sampling(code)([ROWS[0], ROWS[1]._replace(is_greedy=True)], None)
    likeliest = torch.tensor([[0, 0, 1], [1, 0, 0], [0, 1, 0], [1, 0, 0]])
    assert_close(given["target_probs"], torch.stack([TARGET[0], likeliest.float()]))


def test_tokens_that_are_cut_off() -> None:
    """DSpark's verification is given no length, so it cuts off nothing, and counts drafted tokens."""
    for answer, says in (
        ((torch.tensor([1]), torch.tensor([2]), torch.tensor([1])), "accepted tokens are cut off"),
        ((torch.tensor([4]), torch.tensor([2]), torch.tensor([0])), "4 of 3 drafted tokens are accepted"),
    ):
        _, code = recorded(answer)
        code.replace = lambda *_: None
        with pytest.raises(UndefinedDrawError, match=says):
            sglang_dspark.blockwise_rejection(code)(ROWS[:1], torch.Generator())


def test_what_dsparks_verification_is_given() -> None:
    """The step counter starts at the seed of the generator, and is kept there for the next call."""
    given, code = recorded((torch.tensor([2, 0]), torch.tensor([2, 1]), torch.zeros(2)))
    record, replaced = code.call, list[Any]()

    def call(**values: Any) -> Any:
        answer = record(
            **values | {"noise": vars(values["noise"]) | {"counter": int(values["noise"].counter)}}
        )
        values["noise"].counter += 4
        return answer

    code.call, code.replace = call, lambda *given: replaced.append(given)
    generator = torch.Generator().manual_seed(5)
    assert repr(sglang_dspark.blockwise_rejection(code)(ROWS, generator)) == "[[1, 0, 2], [1]]"
    assert generator.initial_seed() == 9
    assert_close(
        given,
        {
            "candidates": torch.tensor([[0, 1, 0, 2], [0, 2, 1, 0]]),
            "target_logits": torch.cat([*TARGET]).log(),
            "draft_logits": DRAFT.log(),
            "target_temperatures": torch.ones(2),
            "draft_temperatures": torch.ones(2),
            "noise": {"key": sglang_dspark.KEY, "counter": 5},
        },
    )
    (names, make, words), noise = replaced
    assert (names, words) == (("libdevice",), "libdevice: numpy's log1p")
    assert make("another")[0].log1p.__qualname__ == elementwise(np.log1p).__qualname__
    assert noise == (("_murmur3_uniform32", "_log1p_neg_stable"), gumbel_noise, NOISE)
