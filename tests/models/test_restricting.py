"""Both models restricted to a few tokens: the enumerated pair, and drafting under the same restriction."""

import numpy as np
import pytest

from models_support import PROMPTS, full_row
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.models import LanguageModelPair, Restriction, SamplingOptions, restrict
from spectheory.models.drafting import draft_and_score, prefill


def rows_by_hand(
    pair: LanguageModelPair, text: list[int], ids: list[int], options: SamplingOptions
) -> tuple[np.ndarray, np.ndarray]:
    """(target, draft) rows conditioned on ``ids``, without the package's gathering code."""
    rows = []
    for model in (pair.target_model, pair.draft_model):
        kept = np.array([float(full_row(model, text, options)[token]) for token in ids])
        rows.append(kept / kept.sum())
    return rows[0], rows[1]


def test_a_restriction_holds_the_real_conditionals(pair: LanguageModelPair) -> None:
    """Every row is the full row conditioned on the stated set, at every context; sums are 1 to 1e-12."""
    options = SamplingOptions(temperature=0.8)
    result = restrict(pair, PROMPTS[0], 3, 2, options)
    assert (result.vocab_size, result.draft_length, result.arithmetic) == (3, 2, "float64")
    root = pair.encode(PROMPTS[0])
    ids = full_row(pair.target_model, root, options).argsort(descending=True)[:3].tolist()
    for depth in range(3):
        assert np.abs(result.target[depth].sum(axis=1) - 1).max() < 1e-12
        for number in range(3**depth):
            text = [*root, *(ids[token] for token in result.context(depth, number))]
            target_row, draft_row = rows_by_hand(pair, text, ids, options)
            np.testing.assert_allclose(result.target[depth][number], target_row, atol=1e-5)
            if depth < 2:
                np.testing.assert_allclose(result.draft[depth][number], draft_row, atol=1e-5)
    # Partner: contexts matter, so that a mix-up of contexts would show.
    assert np.abs(result.target[2][0] - result.target[2][5]).max() > 1e-3
    assert result.vocab == tuple(pair.decode([t]) for t in ids) or any("#" in name for name in result.vocab)


def test_drafting_under_a_restriction_agrees_with_the_enumeration(pair: LanguageModelPair) -> None:
    restriction = Restriction([9, 40, 3, 100])
    batch = draft_and_score(prefill(pair, PROMPTS), 3, 2, pair.generator(4), restriction=restriction)
    assert batch.target_rows.shape == (3, 3, 3, 4)
    for b, prompt in enumerate(PROMPTS):
        enumerated = restrict(pair, prompt, restriction, 2)
        for k in range(3):
            number = 0
            for depth in range(3):
                at = (b, k, depth)
                np.testing.assert_allclose(batch.target_rows[at], enumerated.target[depth][number], atol=1e-6)
                if depth == 2:
                    break
                np.testing.assert_allclose(batch.draft_rows[at], enumerated.draft[depth][number], atol=1e-6)
                assert batch.token_ids[at] == restriction.token_ids[batch.paths[at]]
                number = 4 * number + int(batch.paths[at])


def test_restrict_picks_the_most_likely_tokens(pair: LanguageModelPair) -> None:
    for prompt in PROMPTS:
        given = restrict(pair, prompt, Restriction.at_prompt(pair, prompt, 4), 1)
        chosen = restrict(pair, prompt, 4, 1)
        assert given.vocab == chosen.vocab
        np.testing.assert_allclose(given.target[1], chosen.target[1], atol=1e-12)


def test_too_large_an_enumeration_is_refused(gpt2_pair: LanguageModelPair) -> None:
    with pytest.raises(EnumerationTooLargeError, match=r"10\^6 contexts, more than 20000"):
        restrict(gpt2_pair, "x", 10, 6)
    with pytest.raises(EnumerationTooLargeError, match=r"10\^10000 contexts"):
        restrict(gpt2_pair, "x", 10, 10_000)
    with pytest.raises(InvalidInputError, match="draft_length must be at most 10000, got 99999999999999"):
        restrict(gpt2_pair, "x", 10, 99999999999999)


def test_a_set_without_mass_is_refused(gpt2_pair: LanguageModelPair) -> None:
    row = full_row(gpt2_pair.target_model, gpt2_pair.encode("x"), SamplingOptions())
    unlikely = Restriction(row.argsort()[:3].tolist())
    with pytest.raises(InvalidInputError, match="no mass"):
        restrict(gpt2_pair, "x", unlikely, 1, SamplingOptions(top_k=1))
    with pytest.raises(InvalidInputError, match="no mass"):
        draft_and_score(
            prefill(gpt2_pair, ["x"]), 1, 1, gpt2_pair.generator(0), SamplingOptions(top_k=1), unlikely
        )
    assert restrict(gpt2_pair, "x", unlikely, 1).vocab_size == 3


def test_low_temperatures_do_not_underflow_a_restriction(gpt2_pair: LanguageModelPair) -> None:
    """Unlikely tokens whose full probabilities are all 0 in float64 keep their conditionals."""
    options = SamplingOptions(temperature=0.002)
    full = full_row(gpt2_pair.target_model, gpt2_pair.encode("x"), SamplingOptions())
    ids = full.argsort()[:2].tolist()
    assert float(full_row(gpt2_pair.target_model, gpt2_pair.encode("x"), options)[ids].sum()) == 0
    row = restrict(gpt2_pair, "x", Restriction(ids), 1, options).target[0][0]
    odds = (np.log(float(full[ids[1]])) - np.log(float(full[ids[0]]))) / 0.002
    np.testing.assert_allclose(np.log(row[1] / row[0]), odds, rtol=1e-3, atol=1e-3)


def test_names_of_a_fixed_set_are_unique(gpt2_pair: LanguageModelPair) -> None:
    """Lone bytes of a multi-byte character all decode to the replacement character."""
    broken = [t for t in range(gpt2_pair.vocab_size) if gpt2_pair.decode([t]) == "�"][:3]
    result = restrict(gpt2_pair, "x", Restriction([*broken, gpt2_pair.encode("a")[0]]), 1)
    assert result.vocab == (*(f"�#{token}" for token in broken), "a")


def test_bad_restrictions_are_refused(gpt2_pair: LanguageModelPair) -> None:
    for build, words in (
        (lambda: Restriction.at_prompt(gpt2_pair, "x", 0), "at least 1"),
        (lambda: Restriction([1, 1]), "distinct"),
        (lambda: Restriction([]), "distinct"),
        (lambda: restrict(gpt2_pair, "x", 281, 1), "281"),
        (lambda: restrict(gpt2_pair, "x", 2, 0), "draft_length"),
        (lambda: restrict(gpt2_pair, "x", Restriction([280]), 1), "0..279"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            build()
