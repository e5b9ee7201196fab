"""Which pair of models shows which defect: exact total variations, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spectheory import instances
from spectheory.defects import defects
from spectheory.law import output_law
from spectheory.pair import ModelPair

_NAMED: tuple[tuple[str, int], ...] = (
    ("two_token", 1),
    ("two_token", 2),
    ("three_token_reversed", 1),
    ("three_token_reversed", 2),
    ("bernoulli_quarter_half", 2),
    ("bernoulli_quarter_one", 2),
    ("bernoulli_one_half", 1),
    ("uniform_4_2", 2),
    ("uniform_equal", 1),
    ("equal_models", 2),
    ("disjoint_supports", 2),
    ("partial_overlap", 2),
    ("sticky_chain", 2),
)
_RANDOM: tuple[tuple[int, int, int], ...] = ((6, 3, 2), (5, 2, 1), (3, 3, 1), (4, 2, 2), (6, 3, 1))
"""(seed, V, L): random pairs that tell defects apart which the named ones do not."""


def two_residual_tokens(draft_length: int = 2) -> ModelPair:
    """Target (1/2, 1/6, 1/3), draft (3/4, 1/16, 3/16): two tokens share the residual, in changing parts.

    max(p - q, 0) is divided 5 : 7 between them, max(2/3 p - q, 0), the residual of block verification
    after the first token, 7 : 5.  With one such token, as every pair of two tokens has, a
    wrong residual is normalised away.

    Example:
        >>> print(two_residual_tokens(1).draft[0][0])
        [Fraction(3, 4) Fraction(1, 16) Fraction(3, 16)]
    """
    return ModelPair.context_free_pair(["1/2", "1/6", "1/3"], ["3/4", "1/16", "3/16"], draft_length)


def standard_pairs() -> dict[str, ModelPair]:
    """The pairs of the kill matrix: short named instances and a few random ones, all exact.

    Labels end in the draft length, ``"two_token-L2"``; random ones begin with seed and vocabulary
    size.  Every defect is shown by one pair at least, and no two pairs show the same defects.

    Example:
        >>> standard_pairs()["two_token-L2"].draft_length
        2
    """
    pairs = {f"{name}-L{length}": instances.NAMED[name](length) for name, length in _NAMED}
    pairs |= {f"two_residual_tokens-L{length}": two_residual_tokens(length) for length in (1, 2)}
    pairs |= {
        f"random_seed{seed}_V{vocab_size}-L{length}": instances.random_rational(seed, vocab_size, length)
        for seed, vocab_size, length in _RANDOM
    }
    return pairs


def kill_matrix(
    pairs: Mapping[str, ModelPair] | None = None,
    num_drafts: int = 2,
    *,
    verifiers: Mapping[str, Any] | None = None,
) -> dict[str, dict[str, Any]]:
    """The defect of every known-wrong verifier on every pair, as a total variation.

    Between the output completed to L+1 tokens with the target and p_{L+1} (theory.md Statement 1.1).  A pair
    kills a defect where the entry is not zero; a lossless verifier has zeros only.

    Args:
        pairs: label -> pair; ``standard_pairs()`` if not given.
        num_drafts: K paths drafted i.i.d.; verifiers for one draft look at the first.
        verifiers: name -> verifier to judge; ``defects`` if not given.

    Returns:
        name -> label -> total variation: a Fraction for an exact pair and an exact verifier (all
        defects are), otherwise a float.

    Raises:
        InvalidInputError: ``num_drafts`` is no whole number of at least 1.
        InvalidOutcomeError: a verifier returned something that is not a conditional law.

    Example:
        >>> from spectheory import instances
        >>> matrix = kill_matrix({"two_token-L1": instances.two_token(1)})
        >>> print(matrix["target_correction"]["two_token-L1"], matrix["shared_uniform"]["two_token-L1"])
        1/9 0
    """
    table = standard_pairs() if pairs is None else pairs
    judged = defects if verifiers is None else verifiers
    return {
        name: {label: output_law(verifier, pair, num_drafts).total_variation for label, pair in table.items()}
        for name, verifier in judged.items()
    }
